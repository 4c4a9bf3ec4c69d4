//! The rate limit of each object: a bucket that refills steadily.
//!
//! Its clock is the lane's: it moves only when the lane says what time it is.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, FakeRelativeClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use pipeline_core::Key;

/// Objects remembered before those whose bucket is full again are forgotten.
const REMEMBERED: usize = 4096;

/// At most `events` in a burst, and `events` per `window` in the long run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Size of each object's bucket.
    pub events: NonZeroU32,
    /// In this time an empty bucket fills.
    pub window: Duration,
    /// Count what would be delayed, and delay nothing.
    pub learning: bool,
}

/// Rate limits of some kinds, each by what keys call the kind. As long-lived as the process: there are as many as somebody
/// configured.
pub type KindLimits = &'static [(&'static str, RateLimit)];

type Buckets = RateLimiter<
    Key,
    HashMapStateStore<Key>,
    FakeRelativeClock,
    NoOpMiddleware<<FakeRelativeClock as Clock>::Instant>,
>;

/// The buckets of a lane's objects.
pub(crate) struct Limiter {
    buckets: Buckets,
    clock: FakeRelativeClock,
    at: Duration,
    forget_at: usize,
    learning: bool,
}

impl Limiter {
    /// `None` when the window is too short to limit anything.
    pub(crate) fn new(limit: RateLimit) -> Option<Self> {
        let quota = Quota::with_period(limit.window / limit.events.get())?.allow_burst(limit.events);
        let clock = FakeRelativeClock::default();
        let buckets = RateLimiter::new(quota, HashMapStateStore::default(), clock.clone());
        Some(Self { buckets, clock, at: Duration::ZERO, forget_at: REMEMBERED, learning: limit.learning })
    }

    /// Whether delays are only counted.
    pub(crate) fn learning(&self) -> bool {
        self.learning
    }

    /// Takes one from the bucket of `key`, or says how long until there is one.
    pub(crate) fn take(&mut self, key: &Key, now: Duration) -> Result<(), Duration> {
        if let Some(passed) = now.checked_sub(self.at) {
            self.clock.advance(passed);
            self.at = now;
        }
        if self.buckets.len() >= self.forget_at {
            self.buckets.retain_recent();
            self.buckets.shrink_to_fit();
            self.forget_at = (self.buckets.len() * 2).max(REMEMBERED);
        }
        let wait = self.buckets.check_key(key).map_err(|until| until.wait_time_from(self.clock.now()));
        wait.map_err(|wait| wait.max(Duration::from_millis(1)))
    }
}

/// The buckets of a lane: those of kinds that have a limit of their own, and those of all others.
#[derive(Debug)]
pub(crate) struct Limiters {
    others: Option<Limiter>,
    kinds: Vec<(&'static str, Option<Limiter>)>,
}

impl Limiters {
    pub(crate) fn new(others: Option<RateLimit>, kinds: KindLimits) -> Self {
        let kinds = kinds.iter().map(|(kind, limit)| (*kind, Limiter::new(*limit))).collect();
        Self { others: others.and_then(Limiter::new), kinds }
    }

    /// The buckets that a key is limited by, if it is.
    pub(crate) fn of(&mut self, key: &Key) -> Option<&mut Limiter> {
        match self.kinds.iter_mut().find(|(kind, _)| *kind == key.kind()) {
            Some((_, limiter)) => limiter.as_mut(),
            None => self.others.as_mut(),
        }
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("keys", &self.buckets.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_refills_and_is_each_objects_own() {
        let limit = RateLimit {
            events: NonZeroU32::new(3).unwrap(),
            window: Duration::from_secs(30),
            learning: false,
        };
        let mut limiter = Limiter::new(limit).unwrap();
        let (a, b) = (Key::new("ns", "a").unwrap(), Key::new("ns", "b").unwrap());
        let start = Duration::from_secs(5);
        for _ in 0..3 {
            assert_eq!(limiter.take(&a, start), Ok(()));
        }
        assert_eq!(limiter.take(&a, start), Err(Duration::from_secs(10)));
        assert_eq!(limiter.take(&b, start), Ok(()));
        assert_eq!(limiter.take(&a, start + Duration::from_secs(10)), Ok(()));
        assert!(limiter.take(&a, start + Duration::from_secs(10)).is_err());
    }

    #[test]
    fn a_kind_with_a_limit_of_its_own_has_that_one_alone() {
        let limit = |events| RateLimit {
            events: NonZeroU32::new(events).unwrap(),
            window: Duration::from_secs(60),
            learning: false,
        };
        let kinds: KindLimits = Vec::leak(vec![("rollout", limit(1))]);
        let key = |kind: &str| Key::of_kind(kind, "shop", "web").unwrap();
        let taken = |limiters: &mut Limiters, kind: &str| {
            let key = key(kind);
            (0..5)
                .take_while(|_| limiters.of(&key).is_none_or(|of| of.take(&key, Duration::ZERO).is_ok()))
                .count()
        };
        let mut limiters = Limiters::new(Some(limit(3)), kinds);
        assert_eq!((taken(&mut limiters, "rollout"), taken(&mut limiters, "workflow")), (1, 3));
        let mut limiters = Limiters::new(None, kinds);
        assert_eq!((taken(&mut limiters, "rollout"), taken(&mut limiters, "workflow")), (1, 5));
    }

    #[test]
    fn a_window_of_nothing_limits_nothing() {
        let limit =
            RateLimit { events: NonZeroU32::new(3).unwrap(), window: Duration::ZERO, learning: false };
        assert!(Limiter::new(limit).is_none());
    }

    #[test]
    fn full_buckets_are_forgotten() {
        let limit = RateLimit {
            events: NonZeroU32::new(1).unwrap(),
            window: Duration::from_secs(1),
            learning: false,
        };
        let mut limiter = Limiter::new(limit).unwrap();
        for number in 0..3 * REMEMBERED {
            let key = Key::new("ns", &format!("app-{number}")).unwrap();
            assert_eq!(limiter.take(&key, Duration::from_secs(2 * number as u64)), Ok(()));
        }
        assert!(limiter.buckets.len() <= REMEMBERED);
    }
}
