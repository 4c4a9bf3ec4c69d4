//! What is counted of requests.

use prometheus::{IntCounter, IntCounterVec, Opts, Registry};

use crate::refusal::Refusal;

/// Counts; cloning shares.
#[derive(Debug, Clone)]
pub(crate) struct IngestMetrics {
    refused: IntCounterVec,
    pub(crate) requests: IntCounter,
    pub(crate) ignored: IntCounter,
}

impl IngestMetrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let of = |name: &str, help: &str| Opts::new(format!("gitops_runtime_platform_{name}_total"), help);
        let metrics = Self {
            refused: IntCounterVec::new(
                of("refused", "Requests, and reports of batches, not taken."),
                &["reason"],
            )?,
            requests: IntCounter::with_opts(of("requests", "Requests with reports."))?,
            ignored: IntCounter::with_opts(of("ignored", "Events that are answered and not kept."))?,
        };
        // Nothing shows only once it has happened.
        for reason in Refusal::REASONS {
            metrics.refused.with_label_values(&[reason]).reset();
        }
        registry.register(Box::new(metrics.refused.clone()))?;
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.ignored.clone()))?;
        Ok(metrics)
    }

    pub(crate) fn refused(&self, refusal: &Refusal) {
        self.refused.with_label_values(&[refusal.reason()]).inc();
    }
}
