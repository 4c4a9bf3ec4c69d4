//! What the receiver is told of the shards, and what it does to nobody else.

use std::time::Duration;

use pipeline_core::EntityId;
use pipeline_engine::run::{Config, Route};
use pipeline_ledger::Ledger;

use crate::fakes::{Cluster, Compares, Enricher, Receiver, key};
use crate::running::{Running, config, one_shard, start_route};

const EVERY: Duration = Duration::from_secs(60);

fn telling(compares: Compares) -> Running {
    telling_of(one_shard(), compares)
}

fn telling_of(config: Config, compares: Compares) -> Running {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    receiver.held.compares(compares);
    for number in 0..20 {
        cluster.put(&format!("app-{number}"), number + 1);
    }
    let enricher = Enricher { resources: 2, ..Enricher::default() };
    let changed = |route: &mut Route| route.digest = Some(EVERY);
    start_route(changed, Ledger::memory(), config, cluster, enricher, receiver)
}

async fn told(engine: &Running, times: usize) {
    engine.until("told", |_| engine.receiver.held.digests.lock().unwrap().len() >= times).await;
}

#[tokio::test(start_paused = true)]
async fn the_receiver_is_told_what_was_acknowledged_of_each_shard() {
    let engine = telling(Compares::Yes);
    told(&engine, 1).await;
    let first = engine.receiver.held.digests.lock().unwrap()[0].clone();
    assert_eq!((first.shard, first.shards, first.objects, first.entities), (0, 1, 20, 60));
    assert_eq!(first.ledger, engine.ledger.id());
    // A receiver that remembers the last key of every entity comes to the same.
    let compared = engine.receiver.clone();
    assert_eq!(compared.held.digest(&first).await.unwrap(), pipeline_core::Compared::Equal);
    engine.cluster.put("app-3", 100);
    engine.cluster.delete_unwatched("app-4");
    engine.handle.replay(&key("app-4"), false).await;
    engine.until("reported", |counts| counts.acked == 22).await;
    told(&engine, 3).await;
    let later = engine.receiver.held.digests.lock().unwrap().last().unwrap().clone();
    assert_eq!((later.objects, later.entities), (19, 57));
    assert_ne!(later.digest, first.digest);
    assert_eq!(compared.held.digest(&later).await.unwrap(), pipeline_core::Compared::Equal);
    compared.held.spoil(&key("app-5"), EntityId::OBJECT);
    assert_eq!(compared.held.digest(&later).await.unwrap(), pipeline_core::Compared::Differs);
    engine.end().await;
}

/// How often each answer was counted.
fn answers(engine: &Running) -> Vec<(String, u64)> {
    let text = engine.metrics.render();
    let lines = text.lines().filter_map(|line| line.strip_prefix("gitops_runtime_digests_total{result=\""));
    let mut all: Vec<_> = lines
        .map(|line| line.split_once("\"} ").unwrap())
        .map(|(result, count)| (result.to_owned(), count.parse().unwrap()))
        .filter(|(_, count)| *count > 0)
        .collect();
    all.sort();
    all
}

#[tokio::test(start_paused = true)]
async fn a_difference_counts_when_nothing_is_under_way() {
    let engine = telling(Compares::Yes);
    told(&engine, 2).await;
    engine.receiver.held.spoil(&key("app-5"), EntityId::OBJECT);
    told(&engine, 4).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let count = |result: &str, count: u64| (result.to_owned(), count);
    assert_eq!(answers(&engine), [count("differs", 2), count("equal", 2)]);
    // The difference may be that of a report on its way.
    engine.receiver.gate.forget_permits(usize::MAX);
    engine.cluster.put("app-3", 100);
    engine.until("on its way", |counts| counts.in_flight == 1).await;
    told(&engine, 6).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(answers(&engine), [count("differs", 2), count("equal", 2), count("unsettled", 2)]);
    engine.receiver.gate.add_permits(1000);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_or_is_in_doubt_accuses_nobody() {
    let engine = telling(Compares::Yes);
    told(&engine, 1).await;
    engine.receiver.held.spoil(&key("app-5"), EntityId::OBJECT);
    engine.ledger.update(&key("app-6"), |record| {
        let mut record = record.unwrap();
        record.doubt();
        Some(record)
    });
    let answered = async |times: usize| {
        told(&engine, times).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        answers(&engine)
    };
    let count = |result: &str, count: u64| (result.to_owned(), count);
    assert_eq!(answered(3).await, [count("equal", 1), count("unsettled", 2)]);
    engine.cluster.repeat("app-6");
    engine.until("sure", |_| !engine.ledger.get(&key("app-6")).unwrap().is_in_doubt()).await;
    assert_eq!(answered(4).await, [count("differs", 1), count("equal", 1), count("unsettled", 2)]);
    // Nothing is in doubt while an object waits to be read, and it may be what differs.
    engine.cluster.unreadable.lock().unwrap().insert(key("app-7"));
    assert!(engine.handle.replay(&key("app-7"), false).await);
    engine.until("to be read", |counts| counts.dirty == 1).await;
    assert_eq!(answered(6).await, [count("differs", 1), count("equal", 1), count("unsettled", 4)]);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_cannot_be_told_holds_no_report_up() {
    for compares in [Compares::Fails, Compares::NeverAnswers] {
        let engine = telling(compares);
        engine.until("reported", |counts| counts.acked == 20).await;
        told(&engine, 2).await;
        engine.cluster.put("app-3", 100);
        engine.until("reported", |counts| counts.acked == 21).await;
        assert!(answers(&engine).iter().all(|(result, count)| result == "failed" && *count > 0));
        // Also not the end of the process.
        engine.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_refuses_digests_is_asked_less_and_less_often_and_as_before_once_it_answers() {
    let engine = telling_of(config(), Compares::Refuses);
    let asked = |engine: &Running| engine.receiver.held.digests.lock().unwrap().len();
    told(&engine, 3).await;
    let before = asked(&engine);
    tokio::time::sleep(Duration::from_secs(10 * 3_600)).await;
    let more = asked(&engine) - before;
    assert!((55..=130).contains(&more), "{more} times in ten hours");
    engine.receiver.held.compares(Compares::No);
    let refused = asked(&engine);
    let answers = async {
        while asked(&engine) == refused {
            tokio::time::sleep(EVERY).await;
        }
    };
    tokio::time::timeout(EVERY * 12, answers).await.expect("it is asked every ten minutes at least");
    let before = asked(&engine);
    tokio::time::sleep(EVERY * 10).await;
    let more = asked(&engine) - before;
    assert!((9..=11).contains(&more), "{more} times in ten minutes");
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_does_not_compare_is_asked_about_one_shard_each_time() {
    let engine = telling_of(config(), Compares::No);
    told(&engine, 3).await;
    let asked: Vec<u32> =
        engine.receiver.held.digests.lock().unwrap().iter().map(|digest| digest.shard).collect();
    assert_eq!(asked, [asked[0]; 3]);
    engine.end().await;
}
