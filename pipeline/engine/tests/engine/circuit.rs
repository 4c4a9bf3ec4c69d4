//! A sink that is down, and one that refuses everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pipeline_core::{CircuitState, Reason, StageError};
use pipeline_engine::run::Route;
use pipeline_ledger::Ledger;
use tokio::time::Instant;

use crate::fakes::{Cluster, Enricher, Receiver};
use crate::running::{Running, start, start_route};

/// An engine with 200 objects whose sink answers `down` while the switch is on.
fn down(down: impl Fn() -> StageError + Send + Sync + 'static) -> (Running, Arc<AtomicBool>) {
    let (cluster, receiver, is_down) = (Cluster::new(), Receiver::new(), Arc::new(AtomicBool::new(true)));
    for number in 0..200 {
        cluster.put(&format!("app-{number}"), number + 1);
    }
    let switch = is_down.clone();
    receiver.answers(move |_, _| if switch.load(Ordering::SeqCst) { Err(down()) } else { Ok(()) });
    (start(crate::running::config(), cluster, Enricher::default(), receiver), is_down)
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_down_gets_one_probe_at_a_time_and_then_everything() {
    let (engine, is_down) = down(|| StageError::retry(Reason::Unreachable, "connection refused"));
    engine.until("paused", |counts| counts.paused && counts.in_flight == 0).await;
    let storm = engine.receiver.came().len();
    assert!(storm <= 5 * 16, "what was in flight when it opened: {storm}");
    assert!(matches!(engine.handle.status().circuit, CircuitState::Open { reason: Reason::Unreachable, .. }));

    tokio::time::sleep(Duration::from_secs(600)).await;
    let probes = engine.receiver.came().len() - storm;
    assert!((20..=50).contains(&probes), "every 15 to 30 s: {probes}");
    let counts = engine.handle.status().total();
    assert_eq!((counts.acked, counts.parked), (0, 0));

    is_down.store(false, Ordering::SeqCst);
    let back = Instant::now();
    engine.until_idle(200).await;
    assert!(back.elapsed() < Duration::from_secs(35), "{:?}", back.elapsed());
    assert_eq!(engine.receiver.newest().len(), 200);
    assert_eq!(engine.handle.status().circuit, CircuitState::Closed);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_object_that_fails_holds_no_other_up() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    for number in 0..50 {
        cluster.put(&format!("app-{number}"), number + 1);
    }
    receiver.answers(|report, _| match report.key.name() {
        "app-7" => Err(StageError::retry(Reason::ServerError, "status 500")),
        _ => Ok(()),
    });
    let engine = start(crate::running::config(), cluster, Enricher::default(), receiver);
    engine.until("the others are reported", |counts| counts.acked == 49).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let tries = engine.receiver.came().iter().filter(|came| came.key.name() == "app-7").count();
    assert!((15..=40).contains(&tries), "up to 5 minutes between: {tries}");
    assert_eq!(engine.handle.status().circuit, CircuitState::Closed);
    assert_eq!(engine.handle.status().total().waiting, 1);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn reports_that_wait_for_a_place_when_the_circuit_opens_are_not_sent() {
    let (cluster, mut receiver) = (Cluster::new(), Receiver::new());
    for number in 0..12 {
        cluster.put(&format!("app-{number}"), number + 1);
    }
    receiver.delay = std::sync::Arc::new(|| Duration::from_millis(10));
    receiver.answers(|_, _| Err(StageError::retry(Reason::Unauthorized, "status 401")));
    let mut config = crate::running::one_shard();
    config.circuit.failures = 1;
    let two = |route: &mut Route| route.concurrency = std::num::NonZeroU32::new(2);
    let engine = start_route(two, Ledger::memory(), config, cluster, Enricher::default(), receiver);
    engine.until("paused", |counts| counts.paused && counts.in_flight == 0).await;
    assert_eq!(engine.receiver.came().len(), 2, "two had a place when the first failed");
    engine.receiver.answers(|_, _| Ok(()));
    engine.until_idle(12).await;
    assert_eq!(engine.receiver.newest().len(), 12);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn reports_of_a_delivery_stop_when_the_circuit_opens() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put("app", 1);
    receiver.answers(|_, number| match number {
        0 => Ok(()),
        _ => Err(StageError::retry(Reason::Unauthorized, "status 401")),
    });
    let mut config = crate::running::one_shard();
    config.reports_per_key = std::num::NonZeroU32::MIN;
    config.circuit.failures = 1;
    let enricher = Enricher { resources: 10, ..Enricher::default() };
    let engine = start(config, cluster, enricher, receiver);
    engine.until("paused", |counts| counts.paused && counts.in_flight == 0).await;
    assert_eq!(engine.receiver.came().len(), 2, "one was taken, one failed, nine were not tried");
    engine.end().await;
}
