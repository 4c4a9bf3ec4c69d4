//! How long to wait before the next try.

use std::time::Duration;

/// A peer that asks for more than this is asked again earlier.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Doubling from `min` to `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Before the second try.
    pub min: Duration,
    /// Before any later try.
    pub max: Duration,
}

impl Backoff {
    /// The wait after `failures` (at least one) failures in a row: between half and all of the doubled
    /// time, chosen by `seed`, so that keys which failed together do not come back together. `after`, what
    /// the peer asked for, is never undercut, up to an hour.
    #[must_use]
    pub fn wait(&self, failures: u32, after: Option<Duration>, seed: u64) -> Duration {
        let doubled =
            self.min.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
        let full = doubled.min(self.max);
        // The upper 32 bits, as a share of half the time.
        let share = f64::from((seed >> 32) as u32) / (f64::from(u32::MAX) + 1.0);
        let jittered = full / 2 + (full / 2).mul_f64(share);
        match after {
            // Those who were told the same moment are spread over a tenth more.
            Some(after) => {
                let after = after.min(LONGEST_RETRY_AFTER);
                jittered.max(after + (after / 10).mul_f64(share))
            }
            None => jittered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff { min: Duration::from_secs(1), max: Duration::from_secs(300) };

    #[test]
    fn doubles_up_to_the_maximum_between_half_and_all() {
        for (failures, full) in [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (33, 300), (u32::MAX, 300)] {
            let full = Duration::from_secs(full);
            assert_eq!(BACKOFF.wait(failures, None, 0), full / 2, "{failures}");
            let longest = BACKOFF.wait(failures, None, u64::MAX);
            assert!(longest <= full && longest > full.mul_f64(0.999), "{failures}: {longest:?}");
        }
    }

    #[test]
    fn never_undercuts_what_the_peer_asked_for_up_to_an_hour() {
        let asked = Duration::from_secs(20);
        assert_eq!(BACKOFF.wait(1, Some(asked), 0), asked);
        assert!(BACKOFF.wait(1, Some(asked), u64::MAX) <= Duration::from_secs(22));
        assert_eq!(BACKOFF.wait(10, Some(asked), 0), Duration::from_secs(150), "the longer of the two");
        assert_eq!(BACKOFF.wait(1, Some(Duration::MAX), 0), LONGEST_RETRY_AFTER);
    }
}
