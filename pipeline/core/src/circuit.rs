//! How the circuit of a sink stands.

use std::time::Duration;

use crate::Reason;

/// Whether reports may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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

impl CircuitState {
    /// How it is shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Why it is not closed.
    #[must_use]
    pub const fn reason(self) -> Option<Reason> {
        match self {
            Self::Closed => None,
            Self::Open { reason, .. } | Self::Probing { reason, .. } => Some(reason),
        }
    }
}
