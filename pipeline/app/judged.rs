//! Tells health of a token or a login that Argo CD refuses, beside counting the calls.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pipeline_core::{Meter, Outcome, Peer, Pressure, Reason, Sample, Wait};
use pipeline_observe::health::{Health, Refusal};
use pipeline_observe::metrics::Metrics;
use stages_argocd::labels;

/// Counts in the metrics, and judges the answers to the token.
pub(super) struct Judged {
    metrics: Metrics,
    health: Health,
    refused: Mutex<Option<Refusal>>,
}

impl Judged {
    pub(super) fn new(metrics: Metrics, health: Health) -> Self {
        Self { metrics, health, refused: Mutex::default() }
    }
}

impl Meter for Judged {
    fn record(&self, sample: Sample) {
        self.metrics.record(sample);
        if sample.call.peer() != labels::ARGOCD {
            return;
        }
        let is_login = sample.call == labels::SESSION;
        // The settings are given to anybody, whatever the token.
        let is_open = sample.call == labels::SETTINGS;
        let now = match sample.outcome {
            Outcome::Ok => None,
            Outcome::Failed(Reason::Unauthorized) if is_open => Some(Refusal::Settings),
            Outcome::Failed(Reason::Unauthorized) if is_login => Some(Refusal::Login),
            Outcome::Failed(Reason::Unauthorized) => Some(Refusal::Token),
            _ => return,
        };
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        // That a session is given does not say that it is taken.
        let is_settled = now.is_none()
            && match *refused {
                Some(Refusal::Token) => is_login || is_open,
                Some(Refusal::Login) => is_open,
                _ => false,
            };
        if !is_settled && (now.is_some() || refused.is_some()) {
            *refused = now;
            self.health.argocd_refuses(now, Instant::now());
        }
    }

    fn pressure(&self, pressure: Pressure) {
        self.metrics.pressure(pressure);
    }

    fn waited(&self, peer: Peer, wait: Wait, took: Duration) {
        self.metrics.waited(peer, wait, took);
    }
}
