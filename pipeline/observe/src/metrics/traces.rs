//! What became of the spans of traces, as metrics. Only there where traces are exported.

use std::sync::Arc;

use pipeline_core::Families;
use prometheus::{IntCounter, IntCounterVec};

use super::{Metrics, PREFIX};

/// What became of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum SpanResult {
    /// The collector took them.
    Exported,
    /// The collector took the request, and said that it did not take these.
    Rejected,
    /// The collector was away, too slow, or refused the request.
    Failed,
    /// More were waiting than are kept.
    Dropped,
}

impl SpanResult {
    /// All, so that each starts at zero.
    pub const ALL: [Self; 4] = [Self::Exported, Self::Rejected, Self::Failed, Self::Dropped];

    /// The label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Counts spans; cloning shares.
#[derive(Debug, Clone)]
pub struct SpanSeries {
    counters: Arc<[IntCounter; 4]>,
}

impl SpanSeries {
    fn new(family: &IntCounterVec) -> Self {
        let counters = SpanResult::ALL.map(|result| family.with_label_values(&[result.as_str()]));
        Self { counters: Arc::new(counters) }
    }

    /// Counts so many spans with this result.
    pub fn add(&self, result: SpanResult, spans: usize) {
        self.counters[result as usize].inc_by(spans as u64);
    }
}

impl Metrics {
    /// Registers the counters of spans, at zero. Called once, as a second call would register them again.
    #[must_use]
    pub fn spans(&self) -> SpanSeries {
        let make = Families::new(&self.inner.registry, PREFIX);
        SpanSeries::new(&make.counters(
            "trace_spans_total",
            "Spans of traces, by what became of them.",
            ["result"],
        ))
    }
}
