//! How the circuit of a sink stands.

use std::time::Duration;

use crate::Reason;

/// Whether reports may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CircuitState {
    /// They may.
    Closed,
    /// They may not; from `until` on one may try.
    Open {
        /// Time since the engine started.
        until: Duration,
        /// Why it opened.
        reason: Reason,
    },
    /// One is trying.
    Probing {
        /// Which try it is.
        probe: u64,
        /// Why it had opened.
        reason: Reason,
    },
}
