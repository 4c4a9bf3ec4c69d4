//! What is counted of requests.

use pipeline_core::Families;
use prometheus::{IntCounter, IntCounterVec, Registry};

use crate::refusal::Refusal;

/// Counts; cloning shares.
#[derive(Debug, Clone)]
pub(crate) struct IngestMetrics {
    refused: IntCounterVec,
    pub(crate) requests: IntCounter,
    pub(crate) ignored: IntCounter,
}

impl IngestMetrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let make = Families::new(registry, "gitops_runtime_platform_");
        let help = "Requests, and reports of batches, not taken.";
        let refused = make.counters("refused_total", help, ["reason"]);
        // Nothing shows only once it has happened.
        for reason in Refusal::REASONS {
            refused.with_label_values(&[reason]);
        }
        Self {
            refused,
            requests: make.counter("requests_total", "Requests with reports."),
            ignored: make.counter("ignored_total", "Events that are answered and not kept."),
        }
    }

    pub(crate) fn refused(&self, refusal: &Refusal) {
        self.refused.with_label_values(&[refusal.reason()]).inc();
    }
}
