//! When it is tried again to follow a reporter.

use std::time::Duration;

use pipeline_bus::BusError;
use pipeline_core::Backoff;

use super::LOOK;

/// Between tries that a bus refuses.
const PAUSE: Backoff = Backoff { min: LOOK, max: Duration::from_secs(60) };

/// Tries that came to nothing, in a row.
#[derive(Debug, Default)]
pub(super) struct Tries {
    failures: u32,
    said: String,
}

impl Tries {
    /// How long to wait before the next. Where the bus answers that there is nobody to follow it is looked soon; where it refuses, or
    /// what was begun does not last, less and less often.
    pub(super) fn pause(&self, seed: u64) -> Duration {
        match self.failures {
            0 => LOOK,
            failures => PAUSE.wait(failures, None, seed).max(LOOK),
        }
    }

    /// The bus says that there is nobody to follow.
    pub(super) fn found_nobody(&mut self) {
        *self = Self::default();
    }

    /// It begins; that is no success before it has lasted.
    pub(super) fn begin(&mut self) {
        self.said.clear();
    }

    /// It ended after so long.
    pub(super) fn ended(&mut self, lasted: Duration) {
        self.failures = if lasted >= PAUSE.max { 0 } else { self.failures.saturating_add(1) };
    }

    /// The bus refuses; why is said once.
    pub(super) fn refused(&mut self, error: &BusError) {
        self.failures = self.failures.saturating_add(1);
        let reason = error.to_string();
        if reason != self.said {
            let error: &dyn std::error::Error = error;
            tracing::warn!(error, "it is not known whether there is a reporter to follow");
            self.said = reason;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_that_refuses_is_asked_less_and_less_often_and_one_that_answers_soon() {
        let mut tries = Tries::default();
        let pauses = |tries: &Tries| [0, u64::MAX].map(|seed| tries.pause(seed).as_millis().div_ceil(1_000));
        assert_eq!(pauses(&tries), [2, 2]);
        for expected in [[2, 2], [2, 4], [4, 8], [8, 16], [16, 32], [30, 60], [30, 60]] {
            tries.refused(&BusError::Away);
            assert_eq!(pauses(&tries), expected);
        }
        tries.begin();
        assert_eq!(pauses(&tries), [30, 60], "it has not lasted yet");
        tries.ended(PAUSE.max);
        assert_eq!(pauses(&tries), [2, 2]);
        for expected in [[2, 2], [2, 4], [4, 8]] {
            tries.ended(Duration::from_secs(59));
            assert_eq!(pauses(&tries), expected);
        }
        tries.found_nobody();
        assert_eq!(pauses(&tries), [2, 2]);
    }
}
