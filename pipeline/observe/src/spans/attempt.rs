//! What took time in one attempt.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pipeline_core::{Outcome, Reason, ReportKind, Sample, Version};

use super::{Activity, Span, root, span_id};

/// How many spans are kept of one attempt: of an application with thousands of resources the first say what the others
/// would.
const KEPT: usize = 512;

/// The spans of one attempt, in the making.
#[derive(Debug)]
pub struct AttemptSpans {
    pub(super) trace: u128,
    pub(super) version: Version,
    pub(super) spans: Vec<Span>,
    pub(super) left_out: u32,
    /// Whether the spans are exported.
    sampled: bool,
    /// The id of the event's own span.
    event: u64,
    enrich: u64,
    attempt: u32,
    started: Instant,
}

impl AttemptSpans {
    /// Begins the spans of an attempt at the event that the shard knows as `trace` and `version`; `event` is the id of its own
    /// span, if it is followed. Times are counted from `started`, when the engine started.
    pub(super) fn new(
        (trace, version): (u128, Version),
        event: Option<u64>,
        attempt: u32,
        started: Instant,
    ) -> Self {
        Self {
            trace,
            version,
            spans: Vec::new(),
            left_out: 0,
            sampled: event.is_some(),
            event: event.unwrap_or_else(|| root(trace)),
            enrich: span_id(),
            attempt,
            started,
        }
    }

    /// The value of the header `traceparent` that requests of the enrichment carry: a peer that traces too hangs its spans below ours, and leaves the trace
    /// alone if it is not exported.
    pub fn traceparent(&self) -> Option<Arc<str>> {
        let Self { trace, enrich, sampled, .. } = self;
        (*trace != 0).then(|| format!("00-{trace:032x}-{enrich:016x}-{:02x}", u8::from(*sampled)).into())
    }

    /// The reports were made, or not, in the time since `began`, with these calls.
    pub fn enriched(
        &mut self,
        began: Instant,
        calls: &[(Instant, Sample)],
        reports: usize,
        failed: Option<Reason>,
    ) {
        if !self.sampled {
            return;
        }
        let activity = Activity::Enrich { attempt: self.attempt, reports, failed };
        let (from, to) = (self.since(began), self.since(Instant::now()));
        self.push(Span { id: self.enrich, parent: self.event, from, to, activity });
        for (ended, Sample { call, outcome, took, .. }) in calls {
            let failed = match outcome {
                Outcome::Failed(reason) => Some(*reason),
                Outcome::Ok | Outcome::Cached => None,
            };
            let activity = Activity::Call { call: *call, cached: *outcome == Outcome::Cached, failed };
            let to = self.since(*ended).min(to);
            // What a call that was begun for another event took may have begun before this one.
            let from = to.saturating_sub(*took).max(from);
            self.push(Span { id: span_id(), parent: self.enrich, from, to, activity });
        }
    }

    /// A report was answered, `took` after it was sent at `began`. The span of one that was taken is `id`, which its
    /// receiver was told; a try that failed is another, for the next try carries the same id.
    pub fn reported(
        &mut self,
        (began, took): (Instant, Duration),
        kind: ReportKind,
        id: u64,
        failed: Option<Reason>,
    ) {
        if !self.sampled {
            return;
        }
        let from = self.since(began);
        let id = if failed.is_some() { span_id() } else { id };
        let activity = Activity::Report { kind, failed };
        self.push(Span { id, parent: self.event, from, to: from + took, activity });
    }

    fn push(&mut self, span: Span) {
        if self.spans.len() < KEPT {
            self.spans.push(span);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    fn since(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.started)
    }
}
