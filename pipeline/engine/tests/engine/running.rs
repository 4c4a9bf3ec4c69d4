//! An engine that runs, and what tests ask of it.

use std::num::NonZeroU32;
use std::time::Duration;

use pipeline_core::{LaneCounts, Shutdown};
use pipeline_engine::run::{Config, Engine, EngineError, Handle, Parts};
use pipeline_ledger::Ledger;
use pipeline_observe::health::{Health, HealthLimits};
use pipeline_observe::metrics::{Metrics, MetricsConfig};
use pipeline_ownership::sharding::Sharding;
use tokio::task::JoinHandle;

use crate::fakes::{Cluster, Enricher, Receiver};
use crate::on;

/// A test fails when something does not happen within this time of the machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

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
    pub(crate) bus: on::Kept,
}

pub(crate) fn one_shard() -> Config {
    Config { sharding: Sharding::Jump { shards: NonZeroU32::MIN }, ..Config::default() }
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
    let owned = config.owned.shards(config.sharding);
    let health = Health::new(HealthLimits::default(), owned.clone(), std::time::Instant::now());
    let metrics = Metrics::new(&MetricsConfig::new(owned, "test"));
    let (bus, kept) = on::bus();
    let parts = Parts {
        source: cluster.clone(),
        enrich: enricher.clone(),
        sink: receiver.clone(),
        ledger: ledger.clone(),
        metrics: metrics.clone(),
        health: health.clone(),
        bus,
    };
    let engine = Engine::new(config, parts);
    let handle = engine.handle();
    let stop = Shutdown::new();
    let task = tokio::spawn(engine.run(stop.clone()));
    Running { cluster, receiver, enricher, ledger, health, metrics, handle, stop, task, bus: kept }
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
                && counts.queued + counts.waiting + counts.in_flight + counts.dirty + counts.owed == 0
        };
        self.until("idle", idle).await
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
        self.bus.end();
    }
}
