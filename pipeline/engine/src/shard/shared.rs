//! What all shards of one route share.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Enrich, Event, Key, Report, Sink, Source, Timestamp, Trace};
use tokio::sync::{Semaphore, broadcast, mpsc};
use tokio::time::Instant;

use super::Breaker;
use crate::run::{Match, RunningShards, Unreported};
use pipeline_ledger::Ledger;
use pipeline_observe::health::Health;
use pipeline_observe::metrics::Metrics;
use pipeline_observe::spans::Tap;

/// What all shards of one route share.
pub(crate) struct Shared {
    /// Which events the route takes.
    pub(crate) takes: Match,
    pub(crate) running: Arc<RunningShards>,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) enrich: Arc<dyn Enrich>,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) ledger: Ledger,
    pub(crate) metrics: Metrics,
    pub(crate) health: Health,
    pub(crate) breaker: Breaker,
    pub(crate) traces: broadcast::Sender<(u32, Trace)>,
    pub(crate) tap: Option<Tap>,
    pub(crate) started: Instant,
    pub(crate) reports_per_key: usize,
    /// Places for reports on their way, of all objects.
    pub(crate) places: Semaphore,
    pub(crate) grace: Duration,
    /// Hears of what brings no report.
    pub(crate) unreported: Option<Arc<dyn Unreported>>,
    /// Takes what was acknowledged, for whoever reads the bus.
    pub(crate) results: Option<mpsc::Sender<AckedReport>>,
}

/// A report that the receiver has acknowledged.
#[derive(Debug)]
pub(crate) struct AckedReport {
    pub(crate) report: Report,
    pub(crate) at: Timestamp,
}

impl Shared {
    /// Time since the engine started: what lanes and the circuit call "now".
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether an object is watched by the settings of now, and may be the route's. What cannot be listed is watched as long
    /// as it is shown.
    pub(crate) fn watches(&self, key: &Key) -> bool {
        let watched = self.source.as_survey().is_none_or(|survey| survey.watches(key));
        watched && (self.takes.may_take(key) || self.ledger.get(key).is_some())
    }

    /// Whether an event is the route's: also what it has reported before.
    pub(crate) fn takes(&self, event: &Event) -> bool {
        self.takes.is_all() || self.takes.takes(event) || self.ledger.get(&event.key).is_some()
    }

    /// Tells whoever listens; nobody is waited for.
    pub(super) fn tell(&self, shard: u32, trace: impl FnOnce() -> Trace) {
        if self.traces.receiver_count() > 0 {
            // The last one may stop listening now.
            let _ = self.traces.send((shard, trace()));
        }
    }
}
