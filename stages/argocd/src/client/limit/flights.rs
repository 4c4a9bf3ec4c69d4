//! The calls under way, and those among them that have been for far too long.

use std::collections::BTreeSet;
use std::time::Duration;

use pipeline_core::Call;

/// A call that takes this many times as long as usual, and at least so long, is stuck: what it waits for is not
/// what the others wait for.
const STUCK_TIMES: u32 = 10;
pub(in crate::client) const STUCK_AFTER: Duration = Duration::from_secs(1);

/// A call under way, given back when it ends.
#[derive(Debug)]
pub(in crate::client) struct Flight {
    pub(super) call: Call,
    pub(super) begun: Duration,
    /// When it counts as stuck.
    overdue: Duration,
    number: u64,
}

/// Counts them. Times are since any moment, and never go back.
#[derive(Debug, Default)]
pub(super) struct Flights {
    /// In the order in which they will be stuck.
    moving: BTreeSet<(Duration, u64)>,
    stuck: usize,
    begun: u64,
}

impl Flights {
    /// A call begins that usually takes so long, as far as that is known.
    pub(super) fn begin(&mut self, call: Call, usual: Option<Duration>, now: Duration) -> Flight {
        self.look(now);
        let patience = usual.map_or(STUCK_AFTER, |usual| usual.saturating_mul(STUCK_TIMES).max(STUCK_AFTER));
        let flight = Flight { call, begun: now, overdue: now.saturating_add(patience), number: self.begun };
        self.begun += 1;
        self.moving.insert((flight.overdue, flight.number));
        flight
    }

    pub(super) fn end(&mut self, flight: &Flight) {
        if !self.moving.remove(&(flight.overdue, flight.number)) {
            self.stuck = self.stuck.saturating_sub(1);
        }
    }

    /// Finds out which calls are stuck by now.
    pub(super) fn look(&mut self, now: Duration) {
        while let Some(first) = self.moving.first().copied().filter(|(overdue, _)| *overdue <= now) {
            self.moving.remove(&first);
            self.stuck += 1;
        }
    }

    /// When the next one will be stuck, if none ends before.
    pub(super) fn next_stuck(&self) -> Option<Duration> {
        self.moving.first().map(|(overdue, _)| *overdue)
    }

    pub(super) fn moving(&self) -> usize {
        self.moving.len()
    }

    pub(super) fn stuck(&self) -> usize {
        self.stuck
    }
}
