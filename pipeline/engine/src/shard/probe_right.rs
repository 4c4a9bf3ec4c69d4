//! The right to probe a sink that is down.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;

/// The right to probe: at most one is out. It is given back when it is dropped, however its shard ends: while it is out no shard
/// reports anything.
pub(super) struct ProbeRight {
    shared: Arc<Shared>,
    number: u64,
}

impl ProbeRight {
    /// Takes it, if it is time and nobody has it.
    pub(super) fn take(shared: &Arc<Shared>, now: Duration) -> Option<Self> {
        let number = shared.breaker.try_probe(now)?;
        Some(Self { shared: Arc::clone(shared), number })
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for ProbeRight {
    /// Of one that the sink has answered nothing comes.
    fn drop(&mut self) {
        self.shared.breaker.probe_over(self.number, self.shared.now());
    }
}
