//! A peer that works on so many calls at a time: those beyond wait, in the order in which they came.
//!
//! The workers are times at which they are free again, not tasks: so many calls a second are answered as the setting
//! says, however late a busy machine wakes up those that sleep.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use tokio::time::{Instant, sleep_until};

/// How much a simulated peer can do: at most `workers / service` answers a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Calls that are worked on at once, at least 1.
    pub workers: usize,
    /// How long each is worked on, as `20ms`.
    #[serde(deserialize_with = "time")]
    pub service: Duration,
}

impl Capacity {
    /// The most answers a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.workers.max(1) as f64 / self.service.as_secs_f64()
    }
}

/// What a peer with a capacity had to do, since that was last asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Worked {
    /// Calls that came.
    pub calls: u64,
    /// The most that were there at once, waiting or worked on.
    pub most: usize,
    /// The most that waited at once.
    pub queue: usize,
    /// The longest that one waited and was worked on.
    pub longest: Duration,
    /// How long workers worked, all together.
    pub work: Duration,
    /// How long workers had nothing to do before the next call came, all together.
    pub idle: Duration,
}

impl Worked {
    /// The share of its time that a worker worked: of the most answers that there could be, so many there were.
    #[must_use]
    pub fn busy(&self) -> f64 {
        self.work.as_secs_f64() / (self.work + self.idle).as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

#[derive(Debug)]
struct State {
    capacity: Option<Capacity>,
    /// When each worker is free again.
    free: BinaryHeap<Reverse<Instant>>,
    here: usize,
    worked: Worked,
    /// When it was last asked what was done: workers that were free before count as idle since then.
    asked: Instant,
}

/// The workers of one peer; without a [`Capacity`] there are as many as it takes.
#[derive(Debug)]
pub(crate) struct Workers {
    state: Mutex<State>,
}

impl Default for Workers {
    fn default() -> Self {
        let (worked, asked) = (Worked::default(), Instant::now());
        let state = State { capacity: None, free: BinaryHeap::new(), here: 0, worked, asked };
        Self { state: Mutex::new(state) }
    }
}

/// A call that is here until this is dropped.
struct Here<'a>(&'a Workers);

impl Workers {
    /// From now on; calls that are here keep what they were promised.
    pub(crate) fn set(&self, capacity: Option<Capacity>) {
        self.with(|state| {
            let now = Instant::now();
            let workers = capacity.map_or(0, |capacity| capacity.workers.max(1));
            state.free = (0..workers).map(|_| Reverse(now)).collect();
            state.capacity = capacity;
        });
    }

    /// What was done since this was last asked.
    pub(crate) fn worked(&self) -> Worked {
        self.with(|state| {
            let worked = state.worked;
            state.asked = Instant::now();
            state.worked = Worked { most: state.here, ..Worked::default() };
            worked
        })
    }

    /// Waits for a worker and its work. A caller that goes away meanwhile is worked for all the same.
    pub(crate) async fn work(&self) {
        let (done, here) = self
            .with(|state| {
                let capacity = state.capacity?;
                let now = Instant::now();
                let Reverse(free) = state.free.pop()?;
                let done = free.max(now) + capacity.service;
                state.free.push(Reverse(done));
                state.here += 1;
                let worked = &mut state.worked;
                worked.calls += 1;
                worked.most = worked.most.max(state.here);
                worked.queue = worked.queue.max(state.here.saturating_sub(capacity.workers));
                worked.longest = worked.longest.max(done - now);
                worked.work += capacity.service;
                worked.idle += now.saturating_duration_since(free.max(state.asked));
                Some((done, Here(self)))
            })
            .unzip();
        if let Some(done) = done {
            sleep_until(done).await;
        }
        drop(here);
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.here -= 1);
    }
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let read = text.parse::<jiff::SignedDuration>().ok().and_then(|read| Duration::try_from(read).ok());
    read.filter(|read| !read.is_zero())
        .ok_or_else(|| serde::de::Error::custom("a time is written as 5ms, 20ms or 1s, and is not 0"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn so_many_are_worked_on_at_a_time_and_the_others_wait() {
        let workers = Arc::new(Workers::default());
        workers.work().await;
        assert_eq!(workers.worked(), Worked::default(), "without a capacity nothing waits");
        let service = Duration::from_millis(5);
        workers.set(Some(Capacity { workers: 4, service }));
        let begun = Instant::now();
        let calls = (0..20).map(|_| {
            let workers = workers.clone();
            tokio::spawn(async move { workers.work().await })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        assert!(begun.elapsed() >= service * 5, "{:?}", begun.elapsed());
        let worked = workers.worked();
        assert_eq!((worked.calls, workers.worked()), (20, Worked::default()));
        assert_eq!(worked.work, service * 20);
        assert!(worked.busy() > 0.0 && worked.busy() <= 1.0);
        assert!(worked.most <= 20 && worked.queue <= 16 && worked.longest <= service * 5, "{worked:?}");
        workers.set(None);
        workers.work().await;
        assert_eq!(workers.worked(), Worked::default());
    }

    #[test]
    fn it_is_data() {
        let read = |text: &str| serde_json::from_str::<Capacity>(text).map_err(|error| error.to_string());
        let capacity = read(r#"{"workers": 16, "service": "20ms"}"#).unwrap();
        assert_eq!(capacity, Capacity { workers: 16, service: Duration::from_millis(20) });
        assert!((capacity.per_second() - 800.0).abs() < 1e-9);
        for service in ["soon", "0s", "-1s"] {
            let refused = read(&format!(r#"{{"workers": 16, "service": "{service}"}}"#)).unwrap_err();
            assert!(
                refused.starts_with("a time is written as 5ms, 20ms or 1s, and is not 0 at"),
                "{refused}"
            );
        }
    }
}
