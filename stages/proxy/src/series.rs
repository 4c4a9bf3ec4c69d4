//! What the app proxy counts by. Labels are of closed sets alone: neither a person nor an application, a repository or a host is
//! ever one.

use std::sync::Arc;

use pipeline_core::{Families, Meter, Outcome, Peer, Reason, Sample};
use prometheus::{HistogramVec, IntCounter, IntCounterVec, IntGauge, Registry};
use stages_client::GaugeGuard;

use crate::error::ActError;
use crate::operation::Operation;
use crate::refusal::Refusal;

/// Who is called.
pub(crate) const ARGOCD: Peer = Peer::new("argocd");
pub(crate) const GIT: Peer = Peer::new("git");
pub(crate) const SEALED_SECRETS: Peer = Peer::new("sealed_secrets");
pub(crate) const WORKFLOWS: Peer = Peer::new("workflows");
const PEERS: [Peer; 6] = [ARGOCD, GIT, Peer::KUBERNETES, Peer::PLATFORM, SEALED_SECRETS, WORKFLOWS];

/// How an operation, or a call of a peer, ends.
const DONE: &str = "done";
const ANSWERED: &str = "answered";
const REFUSED: &str = "refused";
const FAILED: &str = "failed";
/// What becomes of a record.
const WRITTEN: &str = "written";
const LOST: &str = "lost";

/// From a peer nearby to one that renders manifests.
const PEER_SECONDS: [f64; 8] = [0.01, 0.05, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0];

/// Counts; cloning shares.
#[derive(Debug, Clone)]
pub struct ProxySeries {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    operations: IntCounterVec,
    refusals: IntCounterVec,
    peer_seconds: HistogramVec,
    streams: IntGauge,
    streams_limit: IntGauge,
    streams_refused: IntCounter,
    records: IntCounterVec,
    records_waiting: IntGauge,
    audit_failures: IntCounter,
}

const fn kind(operation: Operation) -> &'static str {
    if operation.is_act { "act" } else { "read" }
}

impl ProxySeries {
    /// Counts that a registry shows, to be made once a registry.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        let make = Families::new(registry, "gitops_runtime_app_proxy_");
        let operations = make.counters(
            "operations_total",
            "What people asked for, by operation of the schema and how it ended.",
            ["kind", "operation", "outcome"],
        );
        let refusals =
            make.counters("refusals_total", "How often somebody was not let in, by why.", ["reason"]);
        let peer_seconds = make.histograms(
            "peer_seconds",
            "How long peers take to answer; of streams, to begin.",
            ["outcome", "peer"],
            &PEER_SECONDS,
        );
        let records = make.counters(
            "audit_records_total",
            "Records for the audit log, by what became of them.",
            ["outcome"],
        );
        // Nothing shows only once it has happened.
        for operation in Operation::ALL.into_iter().chain([Operation::DOWNLOAD_LOGS]) {
            for outcome in [DONE, REFUSED, FAILED] {
                operations.with_label_values(&[kind(operation), operation.name, outcome]);
            }
        }
        for reason in Refusal::ALL {
            refusals.with_label_values(&[reason.label()]);
        }
        for peer in PEERS {
            for outcome in [ANSWERED, REFUSED, FAILED] {
                peer_seconds.with_label_values(&[outcome, peer.as_str()]);
            }
        }
        for outcome in [WRITTEN, LOST] {
            records.with_label_values(&[outcome]);
        }
        let inner = Inner {
            operations,
            refusals,
            peer_seconds,
            streams: make.gauge("streams", "Streams of logs that are open."),
            streams_limit: make.gauge("streams_limit", "Streams of logs that may be open."),
            streams_refused: make.counter(
                "streams_refused_total",
                "Streams that were not opened because as many were as may be.",
            ),
            records,
            records_waiting: make
                .gauge("audit_records_waiting", "Records that the platform has not taken yet."),
            audit_failures: make
                .counter("audit_failures_total", "Calls with records that the platform did not take."),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Tells clients' calls to these series.
    pub(crate) fn meter(&self) -> Arc<dyn Meter> {
        Arc::new(self.clone())
    }

    /// An operation ended.
    pub(crate) fn ended<T>(&self, operation: Operation, ended: &Result<T, ActError>) {
        let outcome = match ended.as_ref().err().map(ActError::code) {
            None => DONE,
            Some("UNAUTHENTICATED" | "FORBIDDEN" | "PLATFORM_AWAY") => REFUSED,
            Some(_) => FAILED,
        };
        let labels = [kind(operation), operation.name, outcome];
        self.inner.operations.with_label_values(&labels).inc();
    }

    /// Somebody was not let in.
    pub(crate) fn refused(&self, why: Refusal) {
        self.inner.refusals.with_label_values(&[why.label()]).inc();
    }

    /// So many streams may be open.
    pub(crate) fn streams_limit(&self, limit: usize) {
        self.inner.streams_limit.set(i64::try_from(limit).unwrap_or(i64::MAX));
    }

    /// A stream is open, until what this gives is dropped.
    pub(crate) fn stream(&self) -> GaugeGuard {
        GaugeGuard::new(&self.inner.streams)
    }

    /// There was no place for a stream.
    pub(crate) fn stream_refused(&self) {
        self.inner.streams_refused.inc();
    }

    /// A record waits for the platform.
    pub(crate) fn record_waits(&self) {
        self.inner.records_waiting.inc();
    }

    /// Records that waited are written, or can't be.
    pub(crate) fn recorded(&self, records: usize, written: bool) {
        let outcome = if written { WRITTEN } else { LOST };
        self.inner.records_waiting.sub(i64::try_from(records).unwrap_or(i64::MAX));
        self.inner.records.with_label_values(&[outcome]).inc_by(u64::try_from(records).unwrap_or(u64::MAX));
    }

    /// The platform did not take records.
    pub(crate) fn audit_failed(&self) {
        self.inner.audit_failures.inc();
    }
}

impl Meter for ProxySeries {
    fn record(&self, sample: Sample) {
        let outcome = match sample.outcome {
            // What is not there, or cannot be, is an answer.
            Outcome::Ok | Outcome::Cached | Outcome::Failed(Reason::NotFound | Reason::Refused) => ANSWERED,
            Outcome::Failed(Reason::Unauthorized | Reason::Forbidden | Reason::RateLimited) => REFUSED,
            Outcome::Failed(_) => FAILED,
        };
        let labels = [outcome, sample.call.peer().as_str()];
        self.inner.peer_seconds.with_label_values(&labels).observe(sample.took.as_secs_f64());
    }
}
