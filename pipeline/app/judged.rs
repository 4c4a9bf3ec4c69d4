//! Tells health of a token that Argo CD refuses, beside counting the calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pipeline_core::{Meter, Outcome, Peer, Pressure, Reason, Sample, Wait};
use pipeline_observe::health::Health;
use pipeline_observe::metrics::Metrics;
use stages_argocd::labels;

/// Counts in the metrics, and judges the answers to the token.
pub(super) struct Judged {
    metrics: Metrics,
    health: Health,
    refused: AtomicBool,
}

impl Judged {
    pub(super) fn new(metrics: Metrics, health: Health) -> Self {
        Self { metrics, health, refused: AtomicBool::new(false) }
    }
}

impl Meter for Judged {
    fn record(&self, sample: Sample) {
        self.metrics.record(sample);
        // The settings are given to anybody: they say nothing of the token.
        if sample.call.peer() != labels::ARGOCD || sample.call == labels::SETTINGS {
            return;
        }
        let refused = match sample.outcome {
            Outcome::Ok => false,
            Outcome::Failed(Reason::Unauthorized) => true,
            _ => return,
        };
        if refused || self.refused.load(Ordering::Relaxed) {
            self.refused.store(refused, Ordering::Relaxed);
            self.health.argocd_refuses(refused, Instant::now());
        }
    }

    fn pressure(&self, pressure: Pressure) {
        self.metrics.pressure(pressure);
    }

    fn waited(&self, peer: Peer, wait: Wait, took: Duration) {
        self.metrics.waited(peer, wait, took);
    }
}
