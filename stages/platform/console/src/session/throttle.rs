//! Slows those who try passwords: after three that were wrong for a name it has to wait, twice as long each time. A browser that is
//! known to whoever has the name waits for itself alone.
//!
//! Names are not kept: each falls into one of a fixed number of buckets, by a key that each process draws anew. So made-up names fill
//! no memory and lock nobody out, and which names share a bucket, and wait for each other, cannot be worked out.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

const FREE: u32 = 3;
const LONGEST: SignedDuration = SignedDuration::from_secs(60);
/// After so long without a wrong one a bucket is free again.
const FORGOTTEN: SignedDuration = SignedDuration::from_mins(15);
const BUCKETS: usize = 65_536;

#[derive(Clone, Copy, Default)]
struct Failures {
    count: u32,
    last: Timestamp,
}

impl Failures {
    fn wait(self) -> SignedDuration {
        match self.count.checked_sub(FREE) {
            None => SignedDuration::ZERO,
            Some(over) => SignedDuration::from_secs(1 << over.min(6)).min(LONGEST),
        }
    }
}

pub(crate) struct Throttle {
    keys: RandomState,
    buckets: Mutex<Box<[Failures]>>,
}

impl Default for Throttle {
    fn default() -> Self {
        let buckets = vec![Failures::default(); BUCKETS].into_boxed_slice();
        Self { keys: RandomState::new(), buckets: Mutex::new(buckets) }
    }
}

impl Throttle {
    /// How many seconds a name has to wait, if it has to; else the try counts as wrong until [`Self::right`] says otherwise.
    pub(crate) fn begin(&self, name: &str, now: Timestamp) -> Result<(), i64> {
        self.with(name, |failures| {
            if now.duration_since(failures.last) >= FORGOTTEN {
                failures.count = 0;
            }
            let waits = failures.wait() - now.duration_since(failures.last);
            if failures.count > 0 && waits > SignedDuration::ZERO {
                return Err(waits.as_secs().max(1));
            }
            *failures = Failures { count: failures.count.saturating_add(1), last: now };
            Ok(())
        })
    }

    pub(crate) fn right(&self, name: &str) {
        self.with(name, |failures| *failures = Failures::default());
    }

    fn bucket(&self, name: &str) -> usize {
        usize::try_from(self.keys.hash_one(name) % BUCKETS as u64).unwrap_or_default()
    }

    fn with<T>(&self, name: &str, act: impl FnOnce(&mut Failures) -> T) -> T {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut buckets[self.bucket(name)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    #[test]
    fn wrong_passwords_wait_twice_as_long_each_time_and_no_longer_than_a_minute() {
        let throttle = Throttle::default();
        let (mut now, mut waits) = (0, Vec::new());
        for _ in 0..12 {
            while let Err(wait) = throttle.begin("ada", at(now)) {
                now += wait;
                waits.push(wait);
            }
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn another_name_does_not_wait_and_a_right_password_frees_its_own() {
        let throttle = Throttle::default();
        for _ in 0..3 {
            assert_eq!(throttle.begin("ada", at(0)), Ok(()));
        }
        assert_eq!(throttle.begin("ada", at(0)), Err(1));
        let other = ["lin", "mia"].into_iter().find(|name| throttle.bucket(name) != throttle.bucket("ada"));
        assert_eq!(throttle.begin(other.unwrap(), at(0)), Ok(()));
        throttle.right("ada");
        assert_eq!(throttle.begin("ada", at(0)), Ok(()));
    }

    #[test]
    fn names_that_are_made_up_lock_nobody_out() {
        let throttle = Throttle::default();
        for name in 0..20_000 {
            let _ = throttle.begin(&name.to_string(), at(0));
        }
        // Three made-up names in the bucket of somebody else are a rarity.
        let others = (0..1_000).map(|name| throttle.begin(&format!("somebody-{name}"), at(0)));
        let refused = others.filter(Result::is_err).count();
        assert!(refused < 50, "{refused} of 1,000 others have to wait");
    }
}
