//! What the process counts of itself, in Prometheus' text form.
//!
//! takes: one typed call for each thing that happened - gives: [`Metrics::render`]
//! calls: nothing but `/proc/self` while rendering - fails: never
//!
//! Labels come from closed sets (shard, peer, call, kind, reason, check): never a name, a URL or an error's text,
//! so that the number of series is known before the first event: under 300 a process, all of them there from
//! the start. The compatibility family is the one exception, and is off unless it is asked for.

mod bus;
mod compat;
mod figures;
mod kinds;
mod lanes;
mod ledger;
mod pressure;
mod process;
mod routes;
mod traces;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pipeline_core::{
    CircuitState, DigestOutcome, Families, Filtered, Labels, LaneCounts, Meter, Outcome, Peer, Pressure,
    Reason, ReportKind, Sample, SourceNote, Wait,
};
use prometheus::proto::MetricFamily;
use prometheus::{
    Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, TextEncoder,
};

pub use bus::{BusSeries, Unreadable};
pub use compat::Compat;
use figures::set_gauge;
use kinds::KindSeries;
use lanes::{Lanes, seconds};
use ledger::LedgerSeries;
use pressure::PressureSeries;
use process::ProcessSeries;
pub use traces::{SpanResult, SpanSeries};

use crate::health::{Check, HealthReport};
use pipeline_ledger::LedgerStatus;

/// What the names of metrics begin with, except those of the process and of the compatibility family.
const PREFIX: &str = "gitops_runtime_";
/// The upper bounds of the buckets of calls' durations, in seconds: from a fast answer of a near peer to the 30 s after which
/// calls are given up.
const CALL_BUCKETS: [f64; 7] = [0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0];
/// The upper bounds of the buckets of reports' latency, in seconds: from a report that met no queue to one that met an outage.
pub const LATENCY_BUCKETS: [f64; 12] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0];

/// What the metrics are made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsConfig {
    /// The shards this process owns.
    pub owned: Vec<u32>,
    /// Shards over all processes: what the owned ones of all of them must add up to.
    pub shards: u32,
    /// The program's version, for `build_info`.
    pub version: &'static str,
    /// Whether the compatibility family is there.
    pub compat: bool,
    /// Applications that the compatibility family names; the others are `other`.
    pub compat_applications: usize,
    /// What the stages declare; a call that none of them does is counted as `other` of its peer.
    pub stages: Vec<Labels>,
}

impl MetricsConfig {
    /// The defaults, for the shards this process owns, as if there were no others.
    #[must_use]
    pub fn new(owned: impl IntoIterator<Item = u32>, version: &'static str) -> Self {
        let owned: Vec<u32> = owned.into_iter().collect();
        let shards = u32::try_from(owned.len()).unwrap_or(u32::MAX);
        Self { owned, shards, version, compat: false, compat_applications: 10_000, stages: Vec::new() }
    }
}

/// How one try at sending a report ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ReportResult {
    /// The receiver acknowledged it.
    Acknowledged,
    /// It is tried again.
    Retried,
    /// It was refused for good.
    Rejected,
}

impl ReportResult {
    /// All, so that each starts at zero.
    pub const ALL: [Self; 3] = [Self::Acknowledged, Self::Retried, Self::Rejected];

    /// The label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The metrics of a process; clones share them. No call blocks longer than it takes to add one.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    registry: Registry,
    started: Instant,
    stages: Vec<Labels>,
    lanes: Mutex<Lanes>,
    moved: Mutex<Instant>,
    filtered: IntCounterVec,
    reports: IntCounterVec,
    retries: IntCounterVec,
    parked: IntCounterVec,
    digests: IntCounterVec,
    latency: Histogram,
    calls: IntCounterVec,
    call_failures: IntCounterVec,
    call_duration: HistogramVec,
    pressure: PressureSeries,
    malformed: IntCounter,
    watch_restarts: IntCounter,
    lists: IntCounter,
    listed: IntGauge,
    kinds: KindSeries,
    watch_silent: Gauge,
    ledger: LedgerSeries,
    circuit: IntGauge,
    ready: IntGauge,
    health: IntGaugeVec,
    uptime: Gauge,
    process: ProcessSeries,
    compat: Option<Compat>,
    bus: OnceLock<BusSeries>,
    owned: IntGauge,
}

impl Metrics {
    /// The registry of these metrics, where others may register more to be shown with them.
    #[must_use]
    pub fn registry(&self) -> Registry {
        self.inner.registry.clone()
    }

    /// Registers every series, at zero.
    #[must_use]
    pub fn new(config: &MetricsConfig) -> Self {
        let now = Instant::now();
        let registry = Registry::new();
        let make = Families::new(&registry, PREFIX);
        let compat = config.compat.then(|| Compat::new(&make, config.compat_applications));
        make.gauges("build_info", "The program's version; always 1.", ["version"])
            .with_label_values(&[config.version])
            .set(1);
        make.gauge("shards", "Shards over all processes.").set(i64::from(config.shards));
        let owned = make.gauge("shards_owned", "Shards that this process owns.");
        set_gauge(&owned, config.owned.len() as u64);
        let inner = Inner {
            started: now,
            stages: config.stages.clone(),
            lanes: Mutex::new(Lanes::new(&make, &config.owned, now)),
            moved: Mutex::new(now),
            filtered: make.counters("filtered_total", "Events without a report, by why.", ["reason"]),
            reports: make.counters("reports_total", "Tries at sending a report.", ["kind", "result"]),
            retries: make.counters("retries_total", "Tries that are repeated, by why.", ["reason"]),
            parked: make.counters("parked_total", "Events refused for good, by why.", ["reason"]),
            digests: make.counters(
                "digests_total",
                "Digests told to the receiver, by its answer.",
                ["result"],
            ),
            latency: make.histogram(
                "report_latency_seconds",
                "From the watch to the receiver's acknowledgement of all reports of an event.",
                &LATENCY_BUCKETS,
            ),
            calls: make.counters("calls_total", "Calls of peers.", ["peer", "call", "outcome"]),
            call_failures: make.counters("call_failures_total", "Failed calls, by why.", ["peer", "reason"]),
            call_duration: make.histograms(
                "call_duration_seconds",
                "How long calls take.",
                ["peer"],
                &CALL_BUCKETS,
            ),
            pressure: PressureSeries::new(&make, &config.stages),
            malformed: make.counter("malformed_objects_total", "Objects that could not be read."),
            watch_restarts: make.counter("watch_restarts_total", "Watches that broke and were begun again."),
            lists: make.counter("lists_total", "Lists that were completed."),
            listed: make.gauge("listed_objects", "Objects in the last complete list."),
            kinds: KindSeries::new(&make),
            watch_silent: make.measure("watch_silent_seconds", "How long the watch has not moved."),
            ledger: LedgerSeries::new(&make),
            circuit: make.gauge("circuit_state", "Of the sink: 0 closed, 1 probing, 2 open."),
            ready: make.gauge("ready", "1 when the first list is complete and every shard runs."),
            health: make.gauges("health_state", "0 ok, 1 degraded, 2 failing.", ["check"]),
            uptime: make.measure("uptime_seconds", "How long the process has been running."),
            process: ProcessSeries::new(&make),
            registry,
            compat,
            bus: OnceLock::new(),
            owned,
        };
        inner.start_at_zero();
        Self { inner: Arc::new(inner) }
    }

    /// Takes a shard's newest snapshot.
    pub fn lane(&self, shard: u32, counts: &LaneCounts) {
        self.lanes().take(shard, counts, Instant::now());
    }

    /// A shard came to this process, or went, with its last snapshot.
    pub fn owns(&self, shard: u32, owned: bool) {
        let mut lanes = self.lanes();
        lanes.owns(shard, owned, Instant::now());
        set_gauge(&self.inner.owned, lanes.shards() as u64);
    }

    /// An event brought no report.
    pub fn filtered(&self, why: Filtered) {
        self.inner.filtered.with_label_values(&[why.as_str()]).inc();
    }

    /// A try at sending a report ended.
    pub fn report(&self, kind: ReportKind, result: ReportResult) {
        self.inner.reports.with_label_values(&[kind.as_str(), result.as_str()]).inc();
    }

    /// An attempt or a read is repeated later.
    pub fn retried(&self, why: Reason) {
        self.inner.retries.with_label_values(&[why.as_str()]).inc();
    }

    /// An event was refused for good.
    pub fn parked(&self, why: Reason) {
        self.inner.parked.with_label_values(&[why.as_str()]).inc();
    }

    /// The receiver was told the digest of a shard.
    pub fn digest(&self, told: DigestOutcome) {
        self.inner.digests.with_label_values(&[told.as_str()]).inc();
    }

    /// All reports of an event were acknowledged, `latency` after the watch saw it.
    pub fn acknowledged(&self, latency: Duration) {
        self.inner.latency.observe(latency.as_secs_f64());
    }

    /// The source told how its watch stands.
    pub fn note(&self, note: &SourceNote) {
        let inner = &*self.inner;
        match note {
            SourceNote::Listing => {}
            SourceNote::Malformed => inner.malformed.inc(),
            SourceNote::Broken(_) => inner.watch_restarts.inc(),
            SourceNote::Listed { objects } => {
                inner.lists.inc();
                set_gauge(&inner.listed, *objects as u64);
            }
            SourceNote::Kind { kind, state } => inner.kinds.stands(kind, *state),
            SourceNote::Gap { kind } => inner.kinds.gap(kind),
            SourceNote::Ended => inner.kinds.ended(),
            SourceNote::Page { .. } | SourceNote::Alive => {}
        }
        if matches!(note, SourceNote::Page { .. } | SourceNote::Listed { .. } | SourceNote::Alive) {
            *inner.moved.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    }

    /// Takes the ledger's newest status.
    pub fn ledger(&self, status: &LedgerStatus) {
        self.inner.ledger.take(status);
    }

    /// Takes the newest state of the sink's circuit.
    pub fn circuit(&self, state: CircuitState) {
        self.inner.circuit.set(match state {
            CircuitState::Closed => 0,
            CircuitState::Probing { .. } => 1,
            CircuitState::Open { .. } => 2,
        });
    }

    /// Takes the newest report of health.
    pub fn health(&self, report: &HealthReport) {
        self.inner.ready.set(i64::from(report.ready));
        // What is a further route's stands in its own.
        for finding in report.checks.iter().filter(|finding| finding.route.is_none()) {
            self.inner.health.with_label_values(&[finding.check.as_str()]).set(finding.state as i64);
        }
    }

    /// The compatibility family, when it is switched on.
    #[must_use]
    pub fn compat(&self) -> Option<&Compat> {
        self.inner.compat.as_ref()
    }

    /// Everything, in Prometheus' text form (version 0.0.4). Reads `/proc`: not for a runtime's thread.
    #[must_use]
    pub fn render(&self) -> String {
        text(&self.gather())
    }

    /// Everything, and of further routes what is a route's own, each under the label `route`; `name` is this one's.
    #[must_use]
    pub fn render_with(&self, name: &str, routes: &[(&str, &Self)]) -> String {
        let further = routes.iter().map(|(name, metrics)| (*name, metrics.gather()));
        text(&routes::merge((name, self.gather()), further))
    }

    fn gather(&self) -> Vec<MetricFamily> {
        let inner = &*self.inner;
        let now = Instant::now();
        seconds(&inner.uptime, now.saturating_duration_since(inner.started));
        let moved = *inner.moved.lock().unwrap_or_else(PoisonError::into_inner);
        seconds(&inner.watch_silent, now.saturating_duration_since(moved));
        inner.process.read();
        // Held until all is read: another scrape would put newer snapshots between.
        let lanes = self.lanes();
        lanes.show(now);
        if let Some(compat) = &inner.compat {
            lanes.queued().for_each(|(shard, size)| compat.queue_size(shard, size));
        }
        inner.registry.gather()
    }

    fn lanes(&self) -> std::sync::MutexGuard<'_, Lanes> {
        self.inner.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter for Metrics {
    fn record(&self, sample: Sample) {
        let inner = &*self.inner;
        let peer = sample.call.peer().as_str();
        let expected = inner.stages.iter().any(|stage| stage.calls.contains(&sample.call));
        let call = if expected { sample.call.as_str() } else { "other" };
        let outcome = match sample.outcome {
            Outcome::Ok => "ok",
            Outcome::Cached => "cached",
            Outcome::Failed(reason) => {
                inner.call_failures.with_label_values(&[peer, reason.as_str()]).inc();
                "failed"
            }
        };
        inner.calls.with_label_values(&[peer, call, outcome]).inc();
        if sample.outcome != Outcome::Cached {
            inner.call_duration.with_label_values(&[peer]).observe(sample.took.as_secs_f64());
        }
    }

    fn pressure(&self, pressure: Pressure) {
        self.inner.pressure.take(pressure);
    }

    fn waited(&self, peer: Peer, wait: Wait, took: Duration) {
        self.inner.pressure.waited(peer, wait, took);
    }
}

impl Inner {
    fn start_at_zero(&self) {
        let declared = self.stages.iter().flat_map(|stage| stage.filtered);
        for why in Filtered::COMMON.iter().chain(declared) {
            self.filtered.with_label_values(&[why.as_str()]);
        }
        for told in DigestOutcome::ALL {
            self.digests.with_label_values(&[told.as_str()]);
        }
        for kind in self.stages.iter().flat_map(|stage| stage.kinds) {
            for result in ReportResult::ALL {
                self.reports.with_label_values(&[kind.as_str(), result.as_str()]);
            }
        }
        for reason in Reason::ALL {
            self.retries.with_label_values(&[reason.as_str()]);
            self.parked.with_label_values(&[reason.as_str()]);
        }
        for Labels { peer, calls, caches, .. } in &self.stages {
            self.call_duration.with_label_values(&[peer.as_str()]);
            // A call is never given up for want of disk space, nor for its content, nor because the process stops.
            let of_calls =
                |reason: &Reason| !matches!(reason, Reason::Io | Reason::TooSlow | Reason::Stopping);
            for reason in Reason::ALL.iter().copied().filter(of_calls) {
                self.call_failures.with_label_values(&[peer.as_str(), reason.as_str()]);
            }
            let outcomes: &[&str] = if *caches { &["ok", "cached", "failed"] } else { &["ok", "failed"] };
            for call in *calls {
                for outcome in outcomes {
                    self.calls.with_label_values(&[peer.as_str(), call.as_str(), outcome]);
                }
            }
        }
        for check in Check::ALL {
            self.health.with_label_values(&[check.as_str()]);
        }
    }
}

fn text(families: &[MetricFamily]) -> String {
    let mut text = String::new();
    if let Err(error) = TextEncoder::new().encode_utf8(families, &mut text) {
        tracing::error!(error = &error as &dyn std::error::Error, "cannot render the metrics");
    }
    text
}

#[cfg(test)]
mod tests;
