//! How long an app proxy that is told to stop waits for what is under way.

use std::time::Duration;

/// Of the time to stop in, the audit log gets so much.
const RECORDS: Duration = Duration::from_secs(5);
/// The time to stop in where none is given: the default of `shutdown.grace`.
const GRACE: Duration = Duration::from_secs(20);

/// How long what is under way is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopping {
    /// For acts; those that have not ended by then are recorded as in doubt.
    pub acts: Duration,
    /// For the platform to take what is to be recorded, after that.
    pub records: Duration,
}

impl Stopping {
    /// Both within the time to stop in, `shutdown.grace`: whoever waits longer is killed, and what they did is recorded nowhere.
    #[must_use]
    pub fn within(grace: Duration) -> Self {
        let records = RECORDS.min(grace / 2);
        Self { acts: grace.saturating_sub(records), records }
    }
}

impl Default for Stopping {
    fn default() -> Self {
        Self::within(GRACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_and_their_records_have_the_time_to_stop_in_together() {
        let within = |seconds| Stopping::within(Duration::from_secs(seconds));
        let both = |acts, records| Stopping {
            acts: Duration::from_secs(acts),
            records: Duration::from_secs(records),
        };
        assert_eq!(within(20), both(15, 5));
        assert_eq!(within(4), both(2, 2));
        assert_eq!(within(0), both(0, 0));
        assert_eq!(Stopping::default(), within(20));
    }
}
