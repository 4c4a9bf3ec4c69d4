//! Cluster, ledger and receiver are compared, and exactly what differs is reported again.

use std::collections::BTreeSet;
use std::time::Duration;

use pipeline_core::{EntityId, Reason, StageError};
use pipeline_engine::run::{Config, Match};
use pipeline_engine::verify::{Found, Verified, VerifyError, VerifyOptions};

use crate::fakes::{Cluster, Compares, Enricher, Receiver, key};
use crate::running::{Running, one_shard, start, start_route};

pub(crate) const DRY: VerifyOptions = VerifyOptions { dry: true, seconds: 300, drift: true };

/// An engine that has reported eight objects of three entities each.
pub(crate) async fn reported(compares: Compares) -> Running {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    receiver.held.compares(compares);
    for number in 0..8 {
        cluster.put(&format!("app-{number}"), number + 1);
    }
    let enricher = Enricher { resources: 2, ..Enricher::default() };
    let engine = start(one_shard(), cluster, enricher, receiver);
    engine.until_idle(8).await;
    engine
}

pub(crate) fn found(names: &[&str]) -> Found {
    Found { total: names.len(), keys: names.iter().map(|name| format!("ns/{name}")).collect() }
}

/// Without the time that it took.
pub(crate) async fn verified(engine: &Running, options: VerifyOptions) -> Verified {
    let verified = engine.handle.verify(options).await.unwrap();
    assert_eq!(engine.handle.verifying(), None);
    Verified { seconds: 0.0, ..verified }
}

/// What came after the first `from` reports, by object.
pub(crate) fn came(engine: &Running, from: usize) -> Vec<(String, EntityId, bool)> {
    let came = engine.receiver.came().split_off(from);
    let mut came: Vec<_> =
        came.into_iter().map(|came| (came.key.name().to_owned(), came.entity, came.ends)).collect();
    came.sort();
    came
}

/// Eight objects in one namespace, without labels, and a route of `takes`.
pub(crate) fn matched(takes: &Match) -> Running {
    let cluster = Cluster::new();
    for number in 0..8 {
        cluster.put(&format!("app-{number}"), number + 1);
    }
    let (enricher, receiver) = (Enricher::default(), Receiver::new());
    start_route(
        |route| route.takes = takes.clone(),
        pipeline_ledger::Ledger::memory(),
        one_shard(),
        cluster,
        enricher,
        receiver,
    )
}

#[tokio::test(start_paused = true)]
async fn what_a_route_does_not_take_by_its_name_is_neither_compared_nor_replayed() {
    for takes in [
        Match::default().in_namespaces(|namespace| namespace == "other"),
        Match::default().of_kinds(["other".to_owned()]),
    ] {
        let engine = matched(&takes);
        let result = verified(&engine, VerifyOptions::default()).await;
        assert_eq!((result.objects, result.repaired, result.is_clean()), (0, 0, true));
        assert_eq!(engine.cluster.reads.load(std::sync::atomic::Ordering::SeqCst), 0);
        assert!(!engine.handle.replay(&key("app-1"), true).await);
        assert_eq!(engine.receiver.came(), []);
        engine.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_route_does_not_take_by_its_labels_is_neither_missing_nor_reported() {
    let engine = matched(&Match::default().labelled(|labels| labels.contains_key("team")));
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((result.missing, result.repaired), (Found::default(), 0));
    assert!(engine.handle.replay(&key("app-1"), true).await, "only its body tells");
    engine.until("judged", |counts| counts.filtered == 1 && counts.held() == 0).await;
    assert_eq!(engine.receiver.came(), []);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_as_it_should_be_is_left_alone() {
    let engine = reported(Compares::Yes).await;
    let reads = engine.cluster.reads.load(std::sync::atomic::Ordering::SeqCst);
    let result = verified(&engine, VerifyOptions::default()).await;
    let clean = Verified {
        objects: 8,
        acknowledged: 8,
        receiver_differs: Some(Found::default()),
        receiver_others: Some(Found::default()),
        ..Verified::default()
    };
    assert_eq!(result, clean);
    assert!(result.is_clean());
    assert_eq!(engine.receiver.came().len(), 24);
    assert_eq!(engine.cluster.reads.load(std::sync::atomic::Ordering::SeqCst), reads);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn of_a_kind_that_cannot_be_listed_nothing_is_gone_and_it_is_said() {
    let engine = reported(Compares::Yes).await;
    engine.cluster.put_unwatched("app-9", 1, 50);
    engine.cluster.delete_unwatched("app-2");
    // What these are called by names no kind.
    engine.cluster.unlisted_kinds.lock().unwrap().insert("");
    let result = verified(&engine, VerifyOptions::default()).await;
    let expected = Verified {
        receiver_differs: Some(Found::default()),
        unlisted: BTreeSet::from([String::new()]),
        ..Verified::default()
    };
    assert_eq!(result, expected);
    assert!(!result.is_clean());
    assert_eq!(engine.receiver.came().len(), 24);
    engine.cluster.unlisted_kinds.lock().unwrap().clear();
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((result.missing, result.gone, result.repaired), (found(&["app-9"]), found(&["app-2"]), 2));
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn exactly_what_differs_is_found_and_reported_again() {
    let engine = reported(Compares::Yes).await;
    engine.cluster.put_unwatched("app-9", 1, 50);
    engine.cluster.put_unwatched("app-1", 2, 51);
    engine.cluster.delete_unwatched("app-2");
    engine.cluster.put_unwatched("app-3", 1, 52);
    engine.receiver.held.spoil(&key("app-4"), EntityId(2));
    let differences = Verified {
        dry: true,
        objects: 8,
        acknowledged: 8,
        missing: found(&["app-9"]),
        recreated: found(&["app-1"]),
        gone: found(&["app-2"]),
        newer: found(&["app-3"]),
        receiver_differs: Some(found(&["app-4"])),
        receiver_others: Some(Found::default()),
        still_different: found(&["app-1", "app-2", "app-4", "app-9"]),
        ..Verified::default()
    };
    let result = verified(&engine, DRY).await;
    assert_eq!(result, differences);
    assert!(!result.is_clean());
    assert_eq!(engine.receiver.came().len(), 24, "nothing is sent");

    let result = verified(&engine, VerifyOptions::default()).await;
    let repaired = Verified {
        dry: false,
        repaired: 5,
        // Three of each of four, and the ends of two lives.
        reports: 14,
        still_different: Found::default(),
        ..differences
    };
    assert_eq!(result, repaired);
    let all = |name: &str| {
        let resources = (1..=2).map(EntityId);
        let entities = std::iter::once(EntityId::OBJECT).chain(resources);
        entities.map(|entity| (name.to_owned(), entity, false)).collect::<Vec<_>>()
    };
    let mut expected = ["app-1", "app-2"].map(|name| (name.to_owned(), EntityId::OBJECT, true)).to_vec();
    expected.extend(["app-1", "app-3", "app-4", "app-9"].iter().flat_map(|name| all(name)));
    expected.sort();
    assert_eq!(came(&engine, 24), expected);
    let again = verified(&engine, VerifyOptions::default()).await;
    assert!(again.is_clean() && again.repaired == 0, "{again:?}");
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_no_list_shows_is_not_taken_for_deleted() {
    let engine = reported(Compares::No).await;
    engine.cluster.unlisted.lock().unwrap().extend([key("app-1"), key("app-2")]);
    engine.cluster.delete_unwatched("app-2");
    engine.cluster.delete_unwatched("app-3");
    engine.cluster.unreadable.lock().unwrap().insert(key("app-3"));
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((result.gone, result.receiver_differs), (found(&["app-2"]), None));
    assert_eq!(result.unread, found(&["app-3"]), "whether it is gone is not known");
    assert_eq!(came(&engine, 24), [("app-2".to_owned(), EntityId::OBJECT, true)]);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_on_its_way_is_no_difference() {
    let engine = reported(Compares::Yes).await;
    engine.receiver.gate.forget_permits(usize::MAX);
    engine.cluster.put("app-1", 60);
    engine.cluster.put("app-9", 61);
    engine.until("on their way", |_| engine.receiver.unanswered() == 2).await;
    let handle = engine.handle.clone();
    let verifying = tokio::spawn(async move { handle.verify(DRY).await });
    engine.until("waiting", |_| engine.handle.verifying().is_some()).await;
    let second = engine.handle.verify(DRY).await.unwrap_err();
    assert!(matches!(second, VerifyError::Busy));
    assert_eq!(second.to_string(), "a verification is running already");
    tokio::time::sleep(Duration::from_secs(5)).await;
    engine.receiver.gate.add_permits(1000);
    let result = verifying.await.unwrap().unwrap();
    assert!(result.is_clean() && result.missing.total + result.newer.total == 0, "{result:?}");
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_comes_to_no_end_is_said() {
    let engine = reported(Compares::Yes).await;
    engine.receiver.answers(|_, _| Err(StageError::retry(Reason::ServerError, "it is broken")));
    engine.cluster.put_unwatched("app-9", 1, 50);
    let result = verified(&engine, VerifyOptions { dry: false, seconds: 20, drift: true }).await;
    assert_eq!((result.missing, result.unfinished), (found(&["app-9"]), found(&["app-9"])));
    assert_eq!((result.repaired, result.reports), (1, 0));
    assert_eq!(result.still_different, found(&["app-9"]));
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_for_good_is_left_to_a_person() {
    let engine = reported(Compares::Yes).await;
    engine.receiver.answers(|_, _| Err(StageError::reject(Reason::Refused, "it will not have it")));
    engine.cluster.put("app-1", 60);
    engine.until("parked", |counts| counts.parked == 1).await;
    let sent = engine.receiver.came().len();
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((result.parked.clone(), result.repaired), (found(&["app-1"]), 0));
    assert!(!result.is_clean());
    assert_eq!(engine.receiver.came().len(), sent);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_does_not_answer_is_said_and_the_rest_is_done() {
    let failing = [
        (Compares::Fails, "server_error"),
        (Compares::Refuses, "refused"),
        (Compares::NeverAnswers, "timeout"),
    ];
    for (compares, reason) in failing {
        let engine = reported(compares).await;
        engine.cluster.put_unwatched("app-9", 1, 50);
        let result = verified(&engine, VerifyOptions::default()).await;
        assert_eq!(
            (result.receiver_differs.clone(), result.receiver_failed.as_deref()),
            (None, Some(reason))
        );
        assert_eq!((result.missing.total, result.still_different.total), (1, 0));
        assert!(!result.is_clean(), "what the receiver holds is not known");
        assert_eq!(came(&engine, 24).len(), 3);
        engine.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_finds_nothing() {
    let engine = reported(Compares::Yes).await;
    engine.cluster.unreadable.lock().unwrap().insert(key("app-1"));
    let error = engine.handle.verify(VerifyOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot list what is in the cluster");
    assert!(std::error::Error::source(&error).is_some());
    assert_eq!(engine.receiver.came().len(), 24);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn many_are_asked_about_in_pages_and_named_in_part() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    receiver.held.compares(Compares::Yes);
    for number in 0..1100 {
        cluster.put(&format!("app-{number:04}"), number + 1);
    }
    let config = Config { queue_events: 2000, ..one_shard() };
    let engine = start(config, cluster, Enricher::default(), receiver);
    engine.until_idle(1100).await;
    for number in 0..150 {
        engine.receiver.held.spoil(&key(&format!("app-{number:04}")), EntityId::OBJECT);
    }
    let result = verified(&engine, DRY).await;
    let differs = result.receiver_differs.unwrap();
    assert_eq!((differs.total, differs.keys.len()), (150, 100));
    assert_eq!((differs.keys[0].as_str(), differs.keys[99].as_str()), ("ns/app-0000", "ns/app-0099"));
    assert_eq!(engine.receiver.held.pages(), [500, 500, 100, 150], "those that differ are asked about twice");
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_cluster_is_asked_at_a_pace_and_no_longer_than_there_is_time() {
    let cluster = Cluster::new();
    for number in 0..800 {
        cluster.put(&format!("app-{number:04}"), number + 1);
    }
    let engine = start(one_shard(), cluster, Enricher::default(), Receiver::new());
    engine.until_idle(800).await;
    for number in 0..800 {
        engine.cluster.delete_unwatched(&format!("app-{number:04}"));
    }
    let reads = engine.cluster.reads.load(std::sync::atomic::Ordering::SeqCst);
    let result = engine.handle.verify(VerifyOptions { dry: true, seconds: 1, drift: true }).await.unwrap();
    let (gone, unread) = (result.gone.total, result.unread.total);
    assert!((320..=400).contains(&gone), "400 a second: {gone}");
    assert_eq!(gone + unread, 800, "what was not looked at is said");
    assert_eq!(engine.cluster.reads.load(std::sync::atomic::Ordering::SeqCst), reads + gone);
    assert!(engine.cluster.most_reading.load(std::sync::atomic::Ordering::SeqCst) <= 16);
    assert!(!result.is_clean() && result.seconds < 1.1, "{result:?}");
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_away_ends_the_verification() {
    let engine = reported(Compares::NeverAnswers).await;
    let handle = engine.handle.clone();
    let asking = tokio::spawn(async move { handle.verify(DRY).await });
    engine
        .until("asking", |_| engine.handle.verifying().is_some_and(|at| at.step == "asking the receiver"))
        .await;
    asking.abort();
    engine.until("over", |_| engine.handle.verifying().is_none()).await;
    engine.receiver.held.compares(Compares::Yes);
    assert!(verified(&engine, DRY).await.is_clean());
    let (handle, stop) = (engine.handle.clone(), engine.stop.clone());
    stop.cancel();
    engine.task.await.unwrap().unwrap();
    assert_eq!(handle.verify(DRY).await.unwrap_err().to_string(), "the engine is stopping");
}
