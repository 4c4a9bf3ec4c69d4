//! An engine that runs, and what tests ask of it.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Backoff, LaneCounts, Shutdown, Sink};
use pipeline_engine::circuit;
use pipeline_engine::run::{Config, Engine, EngineError, Handle, Match, Pipeline, Route};
use pipeline_ledger::Ledger;
use pipeline_observe::health::{Health, HealthLimits};
use pipeline_observe::metrics::{Metrics, MetricsConfig};
use pipeline_ownership::sharding::{Owned, Sharding};
use tokio::task::JoinHandle;

use crate::fakes::{Cluster, Enricher, Receiver};
use crate::on;

/// A test fails when something does not happen within this time of the machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// An engine that runs.
pub(crate) struct Running {
    pub(crate) cluster: Cluster,
    pub(crate) receiver: Receiver,
    pub(crate) enricher: Enricher,
    pub(crate) ledger: Ledger,
    pub(crate) health: Health,
    pub(crate) metrics: Metrics,
    pub(crate) handle: Handle,
    pub(crate) stop: Shutdown,
    pub(crate) task: JoinHandle<Result<(), EngineError>>,
    /// What the bus runs on.
    pub(crate) bus: on::BusServer,
}

/// An engine of five shards, as it usually is.
pub(crate) fn config() -> Config {
    let count = |number| NonZeroU32::new(number).unwrap();
    let backoff = |min, max| Backoff { min: Duration::from_secs(min), max: Duration::from_secs(max) };
    Config {
        sharding: Sharding::Jump { shards: count(5) },
        owned: Owned::All,
        queue_events: 1_000,
        queue_events_per_key: 100,
        queue_bytes: 32 << 20,
        summary_bytes: 16 << 20,
        concurrency: count(16),
        reads: count(16),
        reports_per_key: count(8),
        retry: backoff(1, 300),
        circuit: circuit::Config { failures: 5, backoff: backoff(1, 30), refused: backoff(300, 300) },
        restart: backoff(1, 60),
        grace: Duration::from_secs(20),
        rate_limit: None,
        kind_limits: &[],
        refetch: backoff(60, 3_600),
        parked: 10_000,
        journal_every: Duration::from_millis(100),
        history: 2_000,
    }
}

pub(crate) fn one_shard() -> Config {
    Config { sharding: Sharding::Jump { shards: NonZeroU32::MIN }, ..config() }
}

pub(crate) fn start(config: Config, cluster: Cluster, enricher: Enricher, receiver: Receiver) -> Running {
    start_on(Ledger::memory(), config, cluster, enricher, receiver)
}

pub(crate) fn start_on(
    ledger: Ledger,
    config: Config,
    cluster: Cluster,
    enricher: Enricher,
    receiver: Receiver,
) -> Running {
    start_route(|_| {}, ledger, config, cluster, enricher, receiver)
}

/// Of a route that is as `changed` makes it.
pub(crate) fn start_route(
    changed: impl Fn(&mut Route),
    ledger: Ledger,
    config: Config,
    cluster: Cluster,
    enricher: Enricher,
    receiver: Receiver,
) -> Running {
    let owned = config.owned.shards(config.sharding);
    let health = Health::new(HealthLimits::default(), owned.clone(), std::time::Instant::now());
    let metrics = Metrics::new(&MetricsConfig::new(owned, "test"));
    let (bus, kept) = on::bus();
    let parts = (cluster.clone(), enricher.clone(), receiver.clone());
    let mut pipeline = pipeline(parts, ledger.clone(), metrics.clone(), health.clone());
    pipeline.routes.iter_mut().for_each(changed);
    let engine = Engine::new(config, bus, None).pipeline(pipeline);
    let handle = engine.handle("objects", "reporter").unwrap();
    let stop = Shutdown::new();
    let task = tokio::spawn(engine.run(stop.clone()));
    Running { cluster, receiver, enricher, ledger, health, metrics, handle, stop, task, bus: kept }
}

/// From a cluster to a receiver.
pub(crate) fn pipeline(
    (cluster, enricher, receiver): (Cluster, Enricher, Receiver),
    ledger: Ledger,
    metrics: Metrics,
    health: Health,
) -> Pipeline {
    let routes = vec![route("reporter", Arc::new(receiver), ledger, metrics, health)];
    let (source, enrich) = (Arc::new(cluster), Arc::new(enricher));
    Pipeline { name: "objects".to_owned(), source, enrich, routes }
}

/// A route that takes everything.
pub(crate) fn route(
    name: &str,
    sink: Arc<dyn Sink>,
    ledger: Ledger,
    metrics: Metrics,
    health: Health,
) -> Route {
    Route {
        name: name.to_owned(),
        takes: Match::default(),
        sink,
        ledger,
        metrics,
        health,
        enrich: None,
        tap: None,
        reports: false,
        concurrency: None,
        unreported: None,
        digest: None,
    }
}

/// Waits until it is so, looking every 10 ms.
pub(crate) async fn until(handle: &Handle, what: &str, is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never {what}: {:?}", handle.status());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl Running {
    /// Waits until `done`, looking every 10 ms; every look checks that nothing is missing.
    pub(crate) async fn until(&self, what: &str, done: impl Fn(&LaneCounts) -> bool) -> LaneCounts {
        let begun = std::time::Instant::now();
        while begun.elapsed() < PATIENCE {
            let status = self.handle.status();
            for (shard, counts) in &status.shards {
                assert_eq!(counts.balance(), 0, "shard {shard}: {counts:?}");
            }
            let total = status.total();
            if done(&total) {
                return total;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never {what}: {:?}", self.handle.status());
    }

    /// Waits until nothing is held any more and `observed` events were taken in.
    pub(crate) async fn until_idle(&self, observed: u64) -> LaneCounts {
        let idle = |counts: &LaneCounts| {
            counts.observed >= observed
                && counts.queued + counts.waiting + counts.in_flight + counts.dirty + counts.incomplete == 0
        };
        self.until("idle", idle).await
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
        self.bus.end();
    }
}
