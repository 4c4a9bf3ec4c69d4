//! What arrives: everything, in order, once.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use pipeline_core::{Call, Cause, Digest, EntityId, Reason, ReportKind, StageError, Step};
use pipeline_engine::run::{Config, Route};
use pipeline_ledger::Ledger;
use pipeline_ownership::sharding::{Owned, Sharding};

use crate::fakes::{Came, Cluster, Enricher, Receiver, key};
use crate::on;
use crate::running::{one_shard, start, start_route};

const CALL: Call = Call::new(pipeline_core::Peer::new("peer"), "call");
const OBJECT: ReportKind = ReportKind::of_object("object");

#[tokio::test(start_paused = true)]
async fn more_objects_than_the_queue_holds_are_all_reported() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    receiver.gate.forget_permits(usize::MAX);
    for number in 0..2500 {
        cluster.put(&format!("app-{number}"), number + 1);
    }
    let engine = start(one_shard(), cluster, Enricher::default(), receiver);
    let taken = on::undone(2500);
    let queued = (taken - 16).min(1000);
    let dirty = taken - 16 - queued;
    let counts = engine.until("taken in", |counts| counts.observed == taken).await;
    assert_eq!((counts.queued, counts.dirty, counts.in_flight, counts.acked), (queued, dirty, 16, 0));
    engine.receiver.gate.add_permits(1_000_000);
    let counts = engine.until_idle(2500).await;
    assert_eq!(engine.receiver.newest().len(), 2500);
    assert_eq!(engine.receiver.came().len(), 2500, "none twice");
    assert_eq!((counts.acked, counts.coalesced, counts.reads), (2500, dirty, dirty));
    assert!(engine.cluster.most_reading.load(std::sync::atomic::Ordering::SeqCst) <= 16);
    assert_eq!(engine.cluster.reads.load(std::sync::atomic::Ordering::SeqCst) as u64, dirty);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn each_objects_states_arrive_in_order_and_deliveries_do_not_overlap() {
    let delays = std::sync::Mutex::new(fastrand::Rng::with_seed(7));
    let mut receiver = Receiver::new();
    receiver.delay = std::sync::Arc::new(move || Duration::from_millis(delays.lock().unwrap().u64(0..40)));
    let fails = std::sync::Mutex::new(fastrand::Rng::with_seed(8));
    receiver.answers(move |_, _| match fails.lock().unwrap().u32(0..20) {
        0 => Err(StageError::retry(Reason::ServerError, "status 500")),
        _ => Ok(()),
    });
    let enricher = Enricher { resources: 5, ..Enricher::default() };
    let engine = start(crate::running::config(), Cluster::new(), enricher, receiver);
    engine.until("listed", |_| engine.health.listed()).await;
    let mut dice = fastrand::Rng::with_seed(9);
    let mut last = BTreeMap::new();
    for version in 1..=2000 {
        let name = format!("app-{}", dice.u32(0..40));
        engine.cluster.put(&name, version);
        last.insert(key(&name), version);
        if version % 10 == 0 {
            tokio::time::sleep(Duration::from_millis(dice.u64(0..50))).await;
        }
    }
    engine.until("reported", |_| engine.receiver.newest() == last).await;
    let counts = engine.until_idle(1).await;
    assert_eq!((counts.acked + counts.coalesced + counts.filtered, counts.parked), (counts.observed, 0));
    let came = engine.receiver.came();
    let mut newest: BTreeMap<_, u64> = BTreeMap::new();
    for report in came.iter().filter(|report| report.accepted) {
        let seen = newest.entry((&report.key, report.entity)).or_default();
        assert!(report.version > *seen, "{report:?} after {seen}");
        *seen = report.version;
        if report.entity != EntityId::OBJECT {
            let object = newest.get(&(&report.key, EntityId::OBJECT));
            assert_eq!(object, Some(&report.version), "the object goes first");
        }
    }
    for (name, version) in engine.receiver.newest() {
        assert_eq!(engine.ledger.get(&name).unwrap().version.0, version);
    }
    let keys: BTreeSet<_> =
        came.iter().filter(|came| came.accepted).map(|came| &came.idempotency_key).collect();
    assert_eq!(keys.len(), came.iter().filter(|came| came.accepted).count(), "each under a key of its own");
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn of_eleven_reports_three_fail_and_only_they_are_sent_again() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put("app", 7);
    receiver.answers(|report, number| match report.entity {
        EntityId(2 | 5 | 9) if number < 11 => Err(StageError::retry(Reason::ServerError, "status 503")),
        _ => Ok(()),
    });
    let enricher = Enricher { resources: 10, ..Enricher::default() };
    let engine = start(one_shard(), cluster, enricher, receiver);
    engine.until("retried", |counts| counts.retried == 1).await;
    let record = engine.ledger.get(&key("app")).unwrap();
    let moved = record.listed().filter(|row| row.content == Digest(14)).count();
    assert_eq!(
        (moved, record.object().counter, record.version.0, record.settled),
        (7, 1, 7, pipeline_core::Settled::Never)
    );

    engine.until_idle(1).await;
    let came = engine.receiver.came();
    let (first, again): (&[Came], &[Came]) = came.split_at(11);
    assert_eq!(first[0].entity, EntityId::OBJECT);
    let entities: Vec<_> = again.iter().map(|came| came.entity).collect();
    assert_eq!(entities, [2, 5, 9].map(EntityId));
    for report in again {
        let before = first.iter().find(|came| came.entity == report.entity).unwrap();
        assert_eq!(report.idempotency_key, before.idempotency_key, "the same content keeps its key");
    }
    let record = engine.ledger.get(&key("app")).unwrap();
    assert_eq!((record.version.0, record.is_settled()), (7, true));
    let tries = engine.enricher.tries.lock().unwrap().clone();
    assert_eq!((tries.len(), tries[0].2), (2, Duration::ZERO));
    assert!(tries[1].2 >= Duration::from_millis(500));
    assert_eq!(engine.receiver.most_flying.load(std::sync::atomic::Ordering::SeqCst), 8);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn no_more_reports_are_under_way_at_once_than_have_a_place() {
    let (cluster, mut receiver) = (Cluster::new(), Receiver::new());
    for number in 0..40 {
        cluster.put(&format!("app-{number}"), number + 1);
    }
    receiver.delay = std::sync::Arc::new(|| Duration::from_millis(5));
    let enricher = Enricher { resources: 10, ..Enricher::default() };
    let three = |route: &mut Route| route.concurrency = NonZeroU32::new(3);
    let config = crate::running::config();
    let engine = start_route(three, Ledger::memory(), config, cluster, enricher, receiver);
    engine.until_idle(40).await;
    assert_eq!(engine.receiver.came().len(), 40 * 11);
    assert_eq!(engine.receiver.most_of_all.load(std::sync::atomic::Ordering::SeqCst), 3);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_report_parks_its_object_until_it_is_replayed() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put("bad", 1);
    cluster.put("good", 2);
    receiver.answers(|report, _| match (report.key.name(), report.entity) {
        ("bad", EntityId(1)) => Err(StageError::reject(Reason::TooLarge, "status 413")),
        _ => Ok(()),
    });
    let enricher = Enricher { resources: 3, ..Enricher::default() };
    let engine = start(one_shard(), cluster, enricher, receiver);
    let counts = engine.until_idle(2).await;
    assert_eq!((counts.acked, counts.parked, counts.parked_keys), (1, 1, 1));
    assert_eq!(engine.receiver.came().len(), 8, "the others went on");
    let parked = engine.handle.parked().await;
    assert_eq!((parked[0].0.name(), parked[0].1.reason, parked[0].1.version.0), ("bad", Reason::TooLarge, 1));
    assert_eq!(
        engine.ledger.get(&key("bad")).unwrap().settled,
        pipeline_core::Settled::Never,
        "the decision has not moved"
    );

    engine.receiver.answers(|_, _| Ok(()));
    assert!(engine.handle.replay(&key("bad"), false).await);
    let counts = engine.until("replayed", |counts| counts.acked == 2).await;
    assert_eq!(counts.parked_keys, 0);
    let last = engine.receiver.came().pop().unwrap();
    assert_eq!((last.entity, engine.receiver.came().len()), (EntityId(1), 9));
    assert!(!engine.handle.discard(&key("bad")).await, "no longer parked");
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_is_reported_as_deleted_when_it_is_read_again() {
    let cluster = Cluster::new();
    cluster.put("app", 1);
    let engine = start(one_shard(), cluster, Enricher::default(), Receiver::new());
    engine.until_idle(1).await;
    engine.cluster.delete_unwatched("app");
    engine.handle.replay(&key("app"), false).await;
    engine.until("reported", |counts| counts.acked == 2).await;
    assert!(engine.receiver.came()[1].ends);
    assert_eq!(engine.ledger.get(&key("app")), None);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn redeliveries_of_what_is_acknowledged_cost_no_enrichment() {
    let cluster = Cluster::new();
    cluster.put("app", 5);
    let engine = start(one_shard(), cluster, Enricher::default(), Receiver::new());
    engine.until_idle(1).await;
    engine.cluster.repeat("app");
    let counts = engine.until_idle(2).await;
    assert_eq!((counts.filtered, counts.acked), (1, 1));
    assert_eq!(engine.enricher.tries.lock().unwrap().len(), 1);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_incomplete_is_read_again_after_its_time() {
    let (cluster, enricher) = (Cluster::new(), Enricher::default());
    cluster.put("app", 5);
    enricher.lacking.lock().unwrap().insert(key("app"));
    let engine = start(one_shard(), cluster, enricher, Receiver::new());
    engine.until("incomplete", |counts| counts.incomplete == 1).await;
    let begun = tokio::time::Instant::now();
    let counts = engine.until("paid", |counts| counts.acked == 2).await;
    assert!(begun.elapsed() > Duration::from_secs(59), "{:?}", begun.elapsed());
    assert_eq!((counts.incomplete, engine.receiver.came().len()), (0, 2));
    assert_eq!(engine.enricher.tries.lock().unwrap()[1].1, Cause::Refetch);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_owns_one_shard_takes_its_objects_alone() {
    let sharding = Sharding::Jump { shards: NonZeroU32::new(5).unwrap() };
    let cluster = Cluster::new();
    let names: Vec<_> = (0..100).map(|number| format!("app-{number}")).collect();
    names.iter().for_each(|name| cluster.put(name, 1));
    let own = names.iter().filter(|name| sharding.place(&key(name)) == 3).count();
    let config = Config { sharding, owned: Owned::One(3), ..crate::running::config() };
    let engine = start(config, cluster, Enricher::default(), Receiver::new());
    engine.until_idle(own as u64).await;
    assert_eq!(engine.receiver.newest().len(), own);
    assert_eq!(engine.handle.status().shards[0].0, 3);
    let other = names.iter().find(|name| sharding.place(&key(name)) != 3).unwrap();
    assert!(!engine.handle.replay(&key(other), false).await);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_listens_sees_an_events_life() {
    let engine = start(one_shard(), Cluster::new(), Enricher::default(), Receiver::new());
    let mut traces = engine.handle.traces();
    engine.until("listed", |_| engine.health.listed()).await;
    engine.cluster.put("app", 3);
    engine.until_idle(1).await;
    let mut steps = Vec::new();
    while let Ok((shard, trace)) = traces.try_recv() {
        assert_eq!((shard, trace.key.name(), trace.version.0, trace.trace), (0, "app", 3, 3));
        steps.push(trace.step);
    }
    assert_eq!(steps.len(), 6, "{steps:?}");
    assert_eq!(steps[..2], [Step::Observed, Step::Started { attempt: 0 }]);
    assert!(
        matches!(
            steps[2..],
            [
                Step::Fetched { call: CALL, failed: None, .. },
                Step::Enriched { reports: 1, .. },
                Step::Reported { kind: OBJECT, .. },
                Step::Acked { .. }
            ]
        ),
        "{steps:?}"
    );
    engine.end().await;
}
