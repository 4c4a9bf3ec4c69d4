//! Says the same thing at most once a minute.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(60);

/// When something was said last.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<Option<Instant>>);

impl Warnings {
    /// Whether it is time to say it again, which then counts as said.
    pub(crate) fn due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| last.elapsed() >= EVERY);
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
        let warnings = Warnings::default();
        assert!(warnings.due() && !warnings.due());
    }
}
