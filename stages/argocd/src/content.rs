//! Work on content: reading, redacting and building, which nothing can interrupt once it has begun.
//!
//! takes: a piece of work, and how many bytes it is about - gives: its result - calls: none - fails: when the work takes
//! longer than it may; whoever waits for it goes on, and it keeps its place until it ends
//!
//! What is small is done where it is asked for. All else is done in threads of its own, a few at a time: however long it
//! takes, no other task stands still. An application whose content took too long again and again is given up until it
//! changes, or until it is asked for after an hour: by itself it is not tried again.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use moka::sync::Cache;
use pipeline_core::{Digest, Key, Reason, StageError, Uid};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// Work about more bytes than these leaves the runtime's threads.
pub const SMALL: usize = 64 * 1024;
/// So often the same content is tried.
const TRIES: u32 = 3;
/// So long a place is waited for where the event's time is over: all of it may have been needed for answers, which are to be told, and
/// not to be asked for again and again.
const SPARE: Duration = Duration::from_secs(5);
/// Whoever asks for it after so long has it tried once more, though it is the same: what was slow may be an answer of
/// Argo CD.
const FORGIVEN: Duration = Duration::from_secs(3600);
/// Applications remembered for their content.
const REMEMBERED: u64 = 1_000;

/// How content is worked on.
#[derive(Debug, Clone)]
pub struct Config {
    /// Each piece of work ends within this time.
    pub time: Duration,
    /// So many are worked on at a time, beside what is small.
    pub places: usize,
    /// Is told where work begins.
    pub probe: Probe,
}

impl Default for Config {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), places: 8, probe: Probe::default() }
    }
}

/// Is called where work on the content of an application begins that is not small, in the thread that does it; for whoever
/// wants to hold it up.
#[derive(Clone, Default)]
pub struct Probe(Option<Arc<Tell>>);

type Tell = dyn Fn(&Key) + Send + Sync;

impl Probe {
    /// Calls `probe`.
    pub fn new(probe: impl Fn(&Key) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(probe)))
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").finish_non_exhaustive()
    }
}

impl Config {
    pub(crate) fn build(self) -> Content {
        let Self { time, places, probe } = self;
        Content {
            time,
            places: Arc::new(Semaphore::new(places.max(1))),
            probe,
            slow: Cache::new(REMEMBERED),
            running: Cache::new(REMEMBERED),
            last: Mutex::new(None),
        }
    }
}

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unworked {
    #[error("work on the application's content takes longer than {} s", .0.as_secs_f64())]
    TooSlow(Duration),
    #[error("earlier work on the application's content goes on still")]
    Running,
    #[error("work on the content of other applications took up all places until the event's time was over")]
    NoPlace,
}

/// Content that took too long.
#[derive(Debug, Clone)]
struct Slow {
    /// Of what counts of the application's text then.
    content: Digest,
    tries: u32,
    last: Instant,
}

/// Works on content.
#[derive(Debug)]
pub(crate) struct Content {
    time: Duration,
    places: Arc<Semaphore>,
    probe: Probe,
    slow: Cache<Uid, Slow>,
    /// Work that nobody waits for any more.
    running: Cache<Key, Weak<()>>,
    /// When it was last said that content takes too long.
    last: Mutex<Option<Instant>>,
}

impl Content {
    /// Works on the content of `key`, of so many `bytes`. A place is waited for until `deadline`, and for [`SPARE`] at the least.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        key: &Key,
        bytes: usize,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unworked> {
        if bytes <= SMALL {
            return Ok(work());
        }
        let (probe, of) = (self.probe.clone(), key.clone());
        if self.running.get(key).is_some_and(|running| running.strong_count() > 0) {
            // However often it is tried, it takes up one place.
            return Err(Unworked::Running);
        }
        let running = Arc::new(());
        let goes_on = Arc::downgrade(&running);
        let work = move || {
            let _running = running;
            if let Some(probe) = &probe.0 {
                probe(&of);
            }
            work()
        };
        let worked = self.aside(deadline, work).await;
        if worked.is_err() {
            self.running.insert(key.clone(), goes_on);
        }
        worked
    }

    /// The same for what goes through a text once and does nothing with it.
    pub(crate) async fn scan<T: Send + 'static>(
        &self,
        bytes: usize,
        deadline: Instant,
        scan: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unworked> {
        if bytes <= SMALL { Ok(scan()) } else { self.aside(deadline, scan).await }
    }

    /// Works in a thread of its own.
    async fn aside<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unworked> {
        let deadline = deadline.max(Instant::now() + SPARE);
        let place = timeout_at(deadline, self.places.clone().acquire_owned()).await;
        let place = place.ok().and_then(Result::ok).ok_or(Unworked::NoPlace)?;
        let (begins, begun) = oneshot::channel();
        let working = tokio::task::spawn_blocking(move || {
            let _place = place;
            // Whoever waited may have gone.
            let _ = begins.send(());
            work()
        });
        // That a thread is waited for says nothing of the content.
        // It never began where the runtime is shut down, which its end tells below.
        let _ = timeout_at(deadline, begun).await.map_err(|_| Unworked::NoPlace)?;
        match timeout(self.time, working).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(ended)) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only a runtime that is shut down gives it up.
                Err(_) => Err(Unworked::NoPlace),
            },
            Err(_) => Err(Unworked::TooSlow(self.time)),
        }
    }

    /// What becomes of an event whose content was not worked on: it is tried again, and given up after some tries.
    pub(crate) fn failed(&self, key: &Key, uid: &Uid, content: Digest, why: Unworked) -> StageError {
        let known = self.slow.get(uid).filter(|slow| slow.content == content);
        match why {
            Unworked::TooSlow(_) => {}
            Unworked::Running if known.is_some() => {}
            Unworked::Running | Unworked::NoPlace => return StageError::retry(Reason::Timeout, why),
        }
        let tries = known.map_or(0, |slow| slow.tries.min(TRIES - 1)) + 1;
        self.slow.insert(uid.clone(), Slow { content, tries, last: Instant::now() });
        self.say(key, tries);
        if tries < TRIES {
            StageError::retry(Reason::TooSlow, why)
        } else {
            StageError::reject(Reason::TooSlow, Unworked::TooSlow(self.time))
        }
    }

    /// Refuses content that was given up before.
    pub(crate) fn admit(&self, uid: &Uid, content: Digest) -> Result<(), StageError> {
        let given_up =
            |slow: Slow| slow.content == content && slow.tries >= TRIES && slow.last.elapsed() < FORGIVEN;
        match self.slow.get(uid).is_some_and(given_up) {
            true => Err(StageError::reject(Reason::TooSlow, Unworked::TooSlow(self.time))),
            false => Ok(()),
        }
    }

    /// Forgets that content took too long: it did not this time.
    pub(crate) fn worked(&self, uid: &Uid) {
        self.slow.invalidate(uid);
    }

    /// Once a minute, whichever application it is.
    fn say(&self, key: &Key, tries: u32) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if tries >= TRIES || last.is_none_or(|at| at.elapsed() >= Duration::from_secs(60)) {
            *last = Some(Instant::now());
            let seconds = self.time.as_secs();
            tracing::warn!(%key, tries, seconds, "work on the content of an application takes too long");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_had_until_an_events_time_was_over_is_worked_on() {
        let content = Config::default().build();
        let key = Key::new("argocd", "shop").unwrap();
        assert_eq!(content.work(&key, SMALL + 1, Instant::now(), || 7).await, Ok(7));
    }
}
