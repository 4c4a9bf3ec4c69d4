//! What a client knows of its server from connections before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is known of a server.
#[derive(Debug, Default)]
pub(crate) struct ServerProfile {
    /// What it knows this client by.
    run_id: Mutex<String>,
    is_alone: AtomicBool,
    wants_proof: AtomicBool,
}

impl ServerProfile {
    pub(super) fn run_id(&self) -> String {
        self.run_id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn is_called(&self, run_id: &str) {
        run_id.clone_into(&mut self.run_id.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether it has no multiplexer, as far as is known.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone.load(Ordering::Acquire)
    }

    /// It did not understand how it was spoken to: the other way is taken next.
    pub(super) fn was_misunderstood(&self) {
        let was_alone = self.is_alone.fetch_xor(true, Ordering::AcqRel);
        tracing::info!(
            multiplexer = was_alone,
            "the server did not answer the login: the next one goes the other way"
        );
    }

    /// Whether it wants each work connection to prove whose it is.
    pub(super) fn wants_proof(&self) -> bool {
        self.wants_proof.load(Ordering::Acquire)
    }

    /// It refused a work connection that proved nothing.
    pub(super) fn refused_without_proof(&self) {
        self.wants_proof.store(true, Ordering::Release);
    }
}
