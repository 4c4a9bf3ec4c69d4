//! Lanes that are broken on purpose: a simulation that does not notice them proves nothing.

use pipeline_core::Filtered;

use super::{Lane, Outcome};

/// One way to be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// An event that finds the queue full is lost: it leaves as coalesced, and no dirty entry remains.
    DropsOnFull,
    /// An attempt that must be tried again is taken for one that had nothing to report.
    ForgetsRetry,
}

impl Lane {
    /// The same lane, broken.
    pub(crate) fn with_mutant(self, mutant: Mutant) -> Self {
        Self { mutant: Some(mutant), ..self }
    }

    /// What the lane makes of how an attempt ended.
    pub(super) fn heard(&self, outcome: Outcome) -> Outcome {
        if self.mutant == Some(Mutant::ForgetsRetry) && matches!(outcome, Outcome::Retry { .. }) {
            return Outcome::Filtered { why: Filtered::Unchanged, refetch: None, settled: false };
        }
        outcome
    }
}
