//! What one attempt did, in figures.

use std::time::Duration;

use pipeline_core::{Cause, Event, Outcome, Peer, Reason, Sample, Timestamp};

/// What one attempt did: counted where it happens, and taken in by its shard when it ends.
#[derive(Debug)]
pub struct Tally {
    pub(super) trace: u128,
    /// Calls of Argo CD that were sent.
    pub(super) calls: u64,
    /// It was a refetch.
    refetch: bool,
    /// How long they took together.
    pub(super) took: Duration,
    /// Reports that were acknowledged.
    pub(super) reports: u64,
    /// What failed, at most one entry for each peer and reason, how often, and when last.
    pub(super) failed: Vec<(Peer, Reason, u64, Timestamp)>,
}

impl Tally {
    /// Of an attempt that begins, in this trace.
    pub fn new(trace: u128) -> Self {
        Self { trace, calls: 0, refetch: false, took: Duration::ZERO, reports: 0, failed: Vec::new() }
    }

    /// Of an attempt that begins with this event.
    pub fn of(event: &Event) -> Self {
        Self { refetch: event.cause == Cause::Refetch, ..Self::new(event.trace) }
    }

    /// How many calls of Argo CD a refetch made.
    pub fn refetched(&self) -> Option<u32> {
        self.refetch.then(|| u32::try_from(self.calls).unwrap_or(u32::MAX))
    }

    /// A call was made, or its answer was at hand.
    pub fn call(&mut self, sample: &Sample) {
        if sample.outcome != Outcome::Cached {
            self.calls += 1;
            self.took = self.took.saturating_add(sample.took);
        }
        if let Outcome::Failed(reason) = sample.outcome {
            self.fail(sample.call.peer(), reason);
        }
    }

    /// A report was sent to this sink, and acknowledged or not.
    pub fn report(&mut self, sink: Peer, answer: Result<(), Reason>) {
        match answer {
            Ok(()) => self.reports += 1,
            Err(reason) => self.fail(sink, reason),
        }
    }

    fn fail(&mut self, peer: Peer, reason: Reason) {
        let at = Timestamp::now();
        match self.failed.iter_mut().find(|(of, why, ..)| (*of, *why) == (peer, reason)) {
            Some((_, _, times, last)) => (*times, *last) = (*times + 1, at),
            None => self.failed.push((peer, reason, 1, at)),
        }
    }
}
