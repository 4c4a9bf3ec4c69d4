//! Starting, breaking and stopping.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::fakes::{Cluster, Enricher, Failure, QUIET, Receiver, key};
use crate::on;
use crate::running::{one_shard, start};

#[tokio::test(start_paused = true)]
async fn stopping_finishes_what_is_in_flight_and_begins_nothing() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    receiver.gate.forget_permits(usize::MAX);
    for number in 0..100 {
        cluster.put(&format!("app-{number}"), number + 1);
    }
    let engine = start(one_shard(), cluster, Enricher::default(), receiver);
    engine.until("all places are taken", |counts| counts.in_flight == 16 && counts.observed == 100).await;
    engine.stop.cancel();
    tokio::time::sleep(Duration::from_secs(1)).await;
    engine.receiver.gate.add_permits(1000);
    let began = Instant::now();
    engine.task.await.unwrap().unwrap();
    assert!(began.elapsed() < Duration::from_secs(1) + on::SLACK);
    assert_eq!(engine.receiver.came().len(), 16);
    assert_eq!(engine.ledger.known().len(), 16, "each acknowledgement is kept");
    let counts = engine.handle.status().total();
    assert_eq!((counts.acked, counts.in_flight, counts.balance()), (16, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_ends_is_started_again() {
    let cluster = Cluster::new();
    cluster.put("app", 1);
    *cluster.failures.lock().unwrap() = vec![Failure::Error, Failure::Panic, Failure::Return];
    let engine = start(one_shard(), cluster, Enricher::default(), Receiver::new());
    engine.until("reported", |counts| counts.acked == 1).await;
    assert_eq!(engine.cluster.runs.load(Ordering::SeqCst), 4);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_panics_is_tried_again_and_holds_no_other_up() {
    let (cluster, enricher) = (Cluster::new(), Enricher::default());
    for number in 0..20 {
        cluster.put(&format!("app-{number}"), number + 1);
    }
    enricher.panics.lock().unwrap().insert(key("app-3"), 2);
    let engine = start(one_shard(), cluster, enricher, Receiver::new());
    let counts = engine.until("reported", |counts| counts.acked == 20).await;
    assert_eq!((counts.retried, engine.receiver.newest().len()), (2, 20));
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_ends_at_once_holds_nobody_up_however_much_it_is() {
    let cluster = Cluster::new();
    for number in 0..3000 {
        cluster.put(&format!("{QUIET}{number}"), number + 1);
    }
    cluster.put("app", 3001);
    let engine = start(one_shard(), cluster, Enricher::default(), Receiver::new());
    let counts = engine.until("looked at", |counts| counts.acked == 1 && counts.filtered == 3000).await;
    assert_eq!((counts.in_flight, counts.parked, engine.receiver.came().len()), (0, 0, 1));
    engine.end().await;
}
