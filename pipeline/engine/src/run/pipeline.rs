//! What an engine works on.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Enrich, Event, Filtered, Key, Sink, Source};

use super::Match;
use pipeline_ledger::Ledger;
use pipeline_observe::health::Health;
use pipeline_observe::metrics::Metrics;
use pipeline_observe::spans::Tap;

/// From one source, by one enrichment, to as many sinks as it has routes.
pub struct Pipeline {
    /// What the source is called on the bus.
    pub name: String,
    /// Where events come from.
    pub source: Arc<dyn Source>,
    /// What makes reports of them, where a route says nothing else.
    pub enrich: Arc<dyn Enrich>,
    /// Where they go: each route sees every event, and is delayed by itself alone.
    pub routes: Vec<Route>,
}

/// One way of events to one sink, with lanes, a record of what was acknowledged, and a circuit of its own.
pub struct Route {
    /// The group of consumers that it is on the bus.
    pub name: String,
    /// Which events are reported.
    pub takes: Match,
    /// What makes its reports, where that is not what makes those of the whole pipeline.
    pub enrich: Option<Arc<dyn Enrich>>,
    /// Where reports go.
    pub sink: Arc<dyn Sink>,
    /// What was acknowledged; no other route's.
    pub ledger: Ledger,
    /// Where to count; no other route's.
    pub metrics: Metrics,
    /// Where to tell how it goes; no other route's.
    pub health: Health,
    /// Is told how long everything takes, where somebody wants to know.
    pub tap: Option<Tap>,
    /// Whether what was acknowledged is published too, for other readers of the bus.
    pub reports: bool,
    /// Reports on their way to the sink at a time, of all objects; `None` is as many as the lanes work on.
    pub concurrency: Option<NonZeroU32>,
    /// Hears of what brings no report, where somebody wants to know.
    pub unreported: Option<Arc<dyn Unreported>>,
    /// How often the sink is told, in short, what was acknowledged; `None` is never.
    pub digest: Option<Duration>,
}

/// Hears of what brings no report on a route, as it happens: for whoever looks on. Nobody waits for it.
pub trait Unreported: Send + Sync + 'static {
    /// The route does not take what an event shows.
    fn unmatched(&self, event: &Event);
    /// Nothing of what an event shows is to be reported.
    fn filtered(&self, key: &Key, why: Filtered);
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("name", &self.name)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("name", &self.name).field("takes", &self.takes).finish_non_exhaustive()
    }
}
