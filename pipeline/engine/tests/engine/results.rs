//! What was acknowledged is published for other readers of the bus.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use pipeline_bus::{Durable, REPORTS};
use pipeline_core::Shutdown;
use pipeline_engine::run::Engine;
use pipeline_ledger::Ledger;
use pipeline_observe::health::{Health, HealthLimits};
use pipeline_observe::metrics::{Metrics, MetricsConfig};

use crate::fakes::{Cluster, Enricher, Receiver};
use crate::on;
use crate::running::{PATIENCE, one_shard, pipeline, until};

/// A few dozen of some two hundred reports fill it.
const MAX_BYTES: u64 = 20_000;

fn counted(metrics: &Metrics, name: &str) -> u64 {
    let text = metrics.render();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("gitops_runtime_{name} ")));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_reader_that_never_acknowledges_costs_old_reports_and_nothing_else() {
    let kept = on::server();
    let bus = kept.connect_with(|config| config.reports_max_bytes = MAX_BYTES);
    let slow = Durable { group: "slow".to_owned(), source: REPORTS.to_owned(), shard: None };
    bus.ensure(std::slice::from_ref(&slow)).await.unwrap();
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    for number in 0..200 {
        cluster.put(&format!("app-{number}"), 1);
    }
    let metrics = Metrics::new(&MetricsConfig::new(0..1, "test"));
    let health = Health::new(HealthLimits::default(), 0..1, Instant::now());
    let parts = (cluster.clone(), Enricher::default(), receiver);
    let mut pipeline = pipeline(parts, Ledger::memory(), metrics.clone(), health);
    pipeline.routes.iter_mut().for_each(|route| route.reports = true);
    let engine = Engine::new(one_shard(), Arc::new(bus.clone()), None).pipeline(pipeline);
    let handle = engine.handle("objects", "reporter").unwrap();
    let stop = Shutdown::new();
    let task = tokio::spawn(engine.run(stop.clone()));
    until(&handle, "reported", || handle.status().total().acked == 200).await;
    until(&handle, "discarded", || counted(&metrics, "bus_results_discarded_total") > 0).await;

    // Events go on, and the newest report is on the bus.
    cluster.put("last", 1);
    until(&handle, "reported", || handle.status().total().acked == 201).await;
    let mut deliveries = bus.consume(&slow, Shutdown::new()).unwrap();
    let mut seen = BTreeSet::new();
    while !seen.contains("last") {
        let next = tokio::time::timeout(PATIENCE, deliveries.next()).await.unwrap().unwrap().unwrap();
        assert!(seen.insert(next.message.unwrap().key.name().to_owned()), "one of each object");
    }
    assert_eq!(counted(&metrics, "bus_results_dropped_total"), 0);
    let held = bus.show("objects").await.unwrap().reports.unwrap();
    assert!(held.bytes <= MAX_BYTES, "{held:?}");
    stop.cancel();
    task.await.unwrap().unwrap();
    kept.end();
}
