//! What a client of the frp family has learned of its server from earlier connections.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lock::lock;

/// What is known of a server; kept from one connection to the next.
#[derive(Debug, Default)]
pub(crate) struct ServerProfile {
    /// The run id that the server has given this client.
    run_id: Mutex<String>,
    is_without_mux: AtomicBool,
    wants_proof: AtomicBool,
}

impl ServerProfile {
    pub(super) fn run_id(&self) -> String {
        lock(&self.run_id).clone()
    }

    pub(super) fn keep_run_id(&self, run_id: &str) {
        run_id.clone_into(&mut lock(&self.run_id));
    }

    /// Whether the server has no multiplexer, as far as is known.
    pub(super) fn is_without_mux(&self) -> bool {
        self.is_without_mux.load(Ordering::Acquire)
    }

    /// Notes that the server did not understand the login, so that the next one is made the other way: with a multiplexer or without.
    pub(super) fn switch_mux(&self) {
        let was_without_mux = self.is_without_mux.fetch_xor(true, Ordering::AcqRel);
        tracing::info!(
            multiplexer = was_without_mux,
            "the server did not answer the login: the next one goes the other way"
        );
    }

    /// Whether the server wants each work connection to prove whose it is.
    pub(super) fn wants_proof(&self) -> bool {
        self.wants_proof.load(Ordering::Acquire)
    }

    /// Notes that the server refused a work connection that proved nothing.
    pub(super) fn refused_without_proof(&self) {
        self.wants_proof.store(true, Ordering::Release);
    }
}
