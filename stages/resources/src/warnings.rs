//! Limits a warning to one a minute.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least time between two of the same warning.
const INTERVAL: Duration = Duration::from_secs(60);

/// When a warning was logged last.
#[derive(Debug, Default)]
pub struct WarningLimit(Mutex<Option<Instant>>);

impl WarningLimit {
    /// Whether the warning may be logged now; if so, it counts as logged.
    pub fn due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| last.elapsed() >= INTERVAL);
        if due {
            *last = Some(Instant::now());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_and_then_not_for_a_while() {
        let warnings = WarningLimit::default();
        assert!(warnings.due() && !warnings.due());
    }
}
