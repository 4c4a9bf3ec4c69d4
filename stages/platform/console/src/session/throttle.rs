//! Slows those who try passwords: after three that were wrong for a name it has to wait, twice as long each time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

const FREE: u32 = 3;
const LONGEST: SignedDuration = SignedDuration::from_secs(60);
/// After so long without a wrong one a name is free again.
const FORGOTTEN: SignedDuration = SignedDuration::from_mins(15);
const NAMES: usize = 10_000;

#[derive(Clone, Copy)]
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

#[derive(Default)]
pub(crate) struct Throttle {
    names: Mutex<HashMap<String, Failures>>,
}

impl Throttle {
    /// How many seconds a name has to wait, if it has to; else the try counts as wrong until [`Self::right`] says otherwise.
    pub(crate) fn begin(&self, name: &str, now: Timestamp) -> Result<(), i64> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= NAMES {
            names.retain(|_, failures| now.duration_since(failures.last) < FORGOTTEN);
            if names.len() >= NAMES && !names.contains_key(name) {
                return Err(LONGEST.as_secs());
            }
        }
        let failures = names.entry(name.to_owned()).or_insert(Failures { count: 0, last: now });
        if now.duration_since(failures.last) >= FORGOTTEN {
            failures.count = 0;
        }
        let waits = failures.wait() - now.duration_since(failures.last);
        if failures.count > 0 && waits > SignedDuration::ZERO {
            return Err(waits.as_secs().max(1));
        }
        *failures = Failures { count: failures.count.saturating_add(1), last: now };
        Ok(())
    }

    pub(crate) fn right(&self, name: &str) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
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
        assert_eq!(throttle.begin("lin", at(0)), Ok(()));
        throttle.right("ada");
        assert_eq!(throttle.begin("ada", at(0)), Ok(()));
    }

    #[test]
    fn names_that_are_made_up_do_not_fill_the_memory() {
        let throttle = Throttle::default();
        for name in 0..NAMES {
            assert_eq!(throttle.begin(&name.to_string(), at(0)), Ok(()));
        }
        assert_eq!(throttle.begin("one more", at(0)), Err(60));
        assert_eq!(throttle.begin("one more", at(1_000)), Ok(()));
    }
}
