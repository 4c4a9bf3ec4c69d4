//! The times in which an answer may not get into the ledger.

use std::time::{Duration, Instant};

/// So long after an answer a kill may still meet a report that the ledger does not hold: the process reads the answer,
/// a commit that runs ends, the next group begins after 50 ms at the latest, and is written. The longest that was met is
/// printed.
pub(super) const COMMIT: Duration = Duration::from_millis(500);
/// A kill so soon after an answer had that report in flight.
pub const RECENT: Duration = Duration::from_millis(60);
/// So long after a kill answers may still go to the process that was killed.
pub(super) const DYING: Duration = Duration::from_millis(300);

/// What one kill met, or a time without the ledger.
#[derive(Debug, Clone, Copy)]
pub struct Kill {
    pub(super) at: Instant,
    /// The last moment at which an answer may have gone astray; `None` as long as it lasts.
    pub(super) until: Option<Instant>,
    /// Requests that had been received and not answered.
    pub open: u64,
    /// Answers within [`RECENT`] before.
    pub recent: u64,
    /// Keys answered before the kill that came again after it.
    pub again: u64,
}

impl Kill {
    /// Whether reports were in flight.
    pub fn met_reports(&self) -> bool {
        self.open + self.recent > 0
    }

    /// Whether an answer of this moment may be missing in the ledger, into which answers get within `commit`.
    pub(super) fn meets(&self, answered: Instant, commit: Duration) -> bool {
        self.at <= answered + commit && self.reaches(answered)
    }

    /// Whether it was not over at this moment.
    pub(super) fn reaches(&self, moment: Instant) -> bool {
        self.until.is_none_or(|until| until >= moment)
    }

    pub(super) fn end(&mut self, now: Instant) {
        self.until.get_or_insert(now);
    }
}
