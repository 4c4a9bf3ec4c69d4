//! What a receiver holds and the ledger has forgotten: it was restored, and what was deleted since is told to be over once more.

use std::sync::atomic::Ordering;

use pipeline_core::{EntityId, Key, OTHERS_AT_ONCE, Reason, StageError};
use pipeline_engine::run::{Config, Match};
use pipeline_engine::verify::{Found, Verified, VerifyOptions};

use crate::fakes::{Cluster, Compares, Enricher, Receiver, key};
use crate::running::{Running, one_shard, start, start_on, start_route};
use crate::verify::{DRY, came, found, reported, verified};

/// The end of `app-2` was acknowledged, and the receiver holds that object again.
async fn restored(compares: Compares) -> Running {
    let engine = reported(compares).await;
    engine.cluster.delete("app-2", 50);
    engine.until_idle(9).await;
    assert_eq!(came(&engine, 24), [("app-2".to_owned(), EntityId::OBJECT, true)]);
    engine.receiver.held.restore(&key("app-2"), "app-2-1");
    engine
}

fn end(name: &str) -> (String, EntityId, bool) {
    (name.to_owned(), EntityId::OBJECT, true)
}

#[tokio::test(start_paused = true)]
async fn what_a_restored_receiver_holds_again_is_told_to_be_over_under_the_key_of_its_end() {
    let engine = restored(Compares::Yes).await;
    let expected = Verified {
        dry: true,
        objects: 7,
        acknowledged: 7,
        receiver_differs: Some(Found::default()),
        receiver_others: Some(found(&["app-2"])),
        still_different: found(&["app-2"]),
        ..Verified::default()
    };
    let result = verified(&engine, DRY).await;
    assert_eq!(result, expected);
    assert!(!result.is_clean());
    assert_eq!(engine.receiver.came().len(), 25, "nothing is sent");
    assert_eq!(engine.ledger.get(&key("app-2")), None, "and nothing remembered");

    let result = verified(&engine, VerifyOptions::default()).await;
    let repaired =
        Verified { dry: false, repaired: 1, reports: 1, still_different: Found::default(), ..expected };
    assert_eq!(result, repaired);
    assert!(result.is_clean());
    assert_eq!(came(&engine, 25), [end("app-2")]);
    let ends: Vec<_> = engine.receiver.came().into_iter().filter(|came| came.ends).collect();
    assert_eq!(ends[0].idempotency_key, ends[1].idempotency_key, "it is the same end");
    let again = verified(&engine, VerifyOptions::default()).await;
    assert!(again.is_clean() && again.receiver_others == Some(Found::default()), "{again:?}");
    assert_eq!(engine.receiver.came().len(), 26);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_it_holds_is_told_to_be_over_also_where_nothing_is_known() {
    let receiver = Receiver::new();
    receiver.held.compares(Compares::Yes);
    receiver.held.restore(&key("app-1"), "app-1-1");
    let engine = start(one_shard(), Cluster::new(), Enricher::default(), receiver);
    engine.until("listed", |_| engine.cluster.runs.load(Ordering::SeqCst) == 1).await;
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((&result.receiver_others, result.reports), (&Some(found(&["app-1"])), 1));
    assert!(result.is_clean(), "{result:?}");
    assert_eq!(came(&engine, 0), [end("app-1")]);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_cluster_and_not_the_routes_is_left_alone() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    receiver.held.compares(Compares::Yes);
    cluster.put("app-1", 1);
    // No list shows it, so that it is read.
    cluster.unlisted.lock().unwrap().insert(key("app-1"));
    receiver.held.restore(&key("app-1"), "app-1-1");
    receiver.held.restore(&Key::new("other", "app-1").unwrap(), "app-1-1");
    let takes = Match::default()
        .labelled(|labels| labels.contains_key("team"))
        .in_namespaces(|namespace| namespace == "ns");
    let engine = start_route(
        |route| route.takes = takes.clone(),
        pipeline_ledger::Ledger::memory(),
        one_shard(),
        cluster,
        Enricher::default(),
        receiver,
    );
    engine.until("listed", |_| engine.cluster.runs.load(Ordering::SeqCst) == 1).await;
    let result = verified(&engine, VerifyOptions::default()).await;
    let nothing = Some(Found::default());
    assert_eq!((&result.receiver_others, result.repaired, result.is_clean()), (&nothing, 0, true));
    assert_eq!(engine.cluster.reads.load(Ordering::SeqCst), 1, "of another namespace nothing is read");
    assert_eq!(engine.receiver.came(), []);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_watched_any_more_is_left_alone() {
    let engine = restored(Compares::Yes).await;
    engine.cluster.unwatched.lock().unwrap().insert(key("app-2"));
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((result.receiver_others, result.repaired), (Some(Found::default()), 0));
    assert_eq!(engine.receiver.came().len(), 25);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_cluster_and_in_no_list_is_reported_and_not_told_to_be_over() {
    let engine = reported(Compares::Yes).await;
    engine.cluster.put_unwatched("app-9", 1, 50);
    engine.cluster.unlisted.lock().unwrap().insert(key("app-9"));
    engine.receiver.held.restore(&key("app-9"), "app-9-1");
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((&result.missing, &result.receiver_others), (&found(&["app-9"]), &Some(Found::default())));
    assert_eq!((result.repaired, result.is_clean()), (1, true), "{result:?}");
    let came = came(&engine, 24);
    assert_eq!(came.len(), 3);
    assert!(came.iter().all(|(name, _, ends)| name == "app-9" && !ends), "{came:?}");
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_not_told_to_be_over() {
    let engine = restored(Compares::Yes).await;
    engine.cluster.unreadable.lock().unwrap().insert(key("app-2"));
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((&result.unread, &result.receiver_others), (&found(&["app-2"]), &Some(Found::default())));
    assert!(!result.is_clean());
    assert_eq!(engine.receiver.came().len(), 25);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_complete_tells_nothing_to_be_over() {
    let engine = restored(Compares::Yes).await;
    engine.cluster.unlisted_kinds.lock().unwrap().insert("");
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!(result.receiver_others, None);
    assert_eq!((engine.receiver.held.questions(), engine.receiver.came().len()), (Vec::new(), 25));
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_does_not_say_what_else_it_holds_is_asked_nothing_more() {
    let engine = restored(Compares::NamedAlone).await;
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((&result.receiver_differs, &result.receiver_others), (&Some(Found::default()), &None));
    assert!(result.is_clean());
    assert_eq!(engine.receiver.held.questions().len(), 1);
    engine.end().await;

    let engine = restored(Compares::No).await;
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((result.receiver_differs, result.receiver_others), (None, None));
    assert_eq!(engine.receiver.held.questions(), []);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_fails_to_say_what_else_it_holds_is_said() {
    let engine = restored(Compares::FailsOfOthers).await;
    engine.receiver.held.spoil(&key("app-4"), EntityId::OBJECT);
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((&result.receiver_others, result.receiver_failed.as_deref()), (&None, Some("server_error")));
    assert_eq!((&result.receiver_differs, result.repaired), (&Some(found(&["app-4"])), 1));
    assert!(!result.is_clean(), "what else the receiver holds is not known");
    engine.end().await;
}

#[tokio::test]
async fn an_end_that_does_not_arrive_is_said_and_told_by_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    receiver.held.compares(Compares::Yes);
    receiver.held.restore(&key("app-2"), "app-2-1");
    receiver.answers(|_, _| Err(StageError::retry(Reason::ServerError, "it is broken")));
    let open = async || crate::restart::open(directory.path()).await;
    let engine = start_on(open().await, one_shard(), cluster, Enricher::default(), receiver);
    engine.until("listed", |_| engine.cluster.runs.load(Ordering::SeqCst) == 1).await;
    let result = verified(&engine, VerifyOptions { dry: false, seconds: 3, drift: true }).await;
    assert_eq!((&result.receiver_others, &result.unfinished), (&Some(found(&["app-2"])), &found(&["app-2"])));
    assert_eq!((result.reports, result.still_different), (0, found(&["app-2"])));
    let (cluster, receiver) = (engine.cluster.clone(), engine.receiver.clone());
    engine.end().await;

    let before = receiver.came().len();
    receiver.answers(|_, _| Ok(()));
    let engine = start_on(open().await, one_shard(), cluster, Enricher::default(), receiver);
    engine.until("listed", |_| engine.cluster.runs.load(Ordering::SeqCst) == 2).await;
    // A list that lacks it tells that as well; the one of this cluster tells of no end.
    assert!(verified(&engine, VerifyOptions::default()).await.is_clean());
    assert_eq!(came(&engine, before), [end("app-2")]);
    assert_eq!(engine.ledger.get(&key("app-2")), None);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_takes_an_end_and_holds_the_object_all_the_same_is_different_still() {
    let engine = restored(Compares::Yes).await;
    let held = engine.receiver.held.clone();
    // What it takes is put back before it is asked again.
    engine.receiver.answers(move |report, _| {
        let (held, key) = (held.clone(), report.key.clone());
        tokio::spawn(async move { held.restore(&key, "app-2-1") });
        Ok(())
    });
    let result = verified(&engine, VerifyOptions::default()).await;
    assert_eq!((result.reports, &result.still_different), (1, &found(&["app-2"])), "{result:?}");
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_life_that_is_held_is_told_to_be_over_whichever_a_read_showed_to_be_over_just_before() {
    for uid in ["app-2-1", "app-2-0"] {
        let engine = reported(Compares::Yes).await;
        engine.cluster.delete_unwatched("app-2");
        assert_eq!(verified(&engine, VerifyOptions::default()).await.gone, found(&["app-2"]));
        assert_eq!(came(&engine, 24), [end("app-2")]);
        engine.receiver.held.restore(&key("app-2"), uid);
        let result = verified(&engine, VerifyOptions::default()).await;
        assert_eq!((&result.receiver_others, result.reports), (&Some(found(&["app-2"])), 1), "{uid}");
        assert!(result.is_clean(), "{result:?}");
        assert_eq!(came(&engine, 25), [end("app-2")], "{uid}");
        let again = verified(&engine, VerifyOptions::default()).await;
        assert!(again.is_clean() && again.repaired == 0, "{again:?}");
        engine.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_ten_thousand_are_looked_at_and_further_ones_are_said_to_be_unread() {
    let receiver = Receiver::new();
    receiver.held.compares(Compares::Yes);
    for number in 0..10_050 {
        receiver.held.restore(&key(&format!("app-{number:05}")), "u");
    }
    let engine = start(one_shard(), Cluster::new(), Enricher::default(), receiver);
    engine.until("listed", |_| engine.cluster.runs.load(Ordering::SeqCst) == 1).await;
    let result = verified(&engine, DRY).await;
    assert_eq!((result.receiver_others.as_ref().unwrap().total, result.unread.total), (10_000, 50));
    assert_eq!(result.unread.keys[0], "ns/app-10000");
    assert_eq!(engine.cluster.reads.load(Ordering::SeqCst), 10_000);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn many_are_asked_for_a_thousand_at_a_time() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    receiver.held.compares(Compares::Yes);
    for number in 0..1_100 {
        cluster.put(&format!("app-{number:04}"), number + 1);
    }
    let config = Config { queue_events: 2_000, ..one_shard() };
    let engine = start(config, cluster, Enricher::default(), receiver);
    engine.until_idle(1_100).await;
    // Behind all that is known, and one before it.
    for number in 0..OTHERS_AT_ONCE + 50 {
        engine.receiver.held.restore(&key(&format!("zoo-{number:04}")), "z");
    }
    engine.receiver.held.restore(&key("a"), "a");
    let result = verified(&engine, DRY).await;
    assert_eq!(result.receiver_others.unwrap().total, OTHERS_AT_ONCE + 51);
    let questions = engine.receiver.held.questions();
    let ranges: Vec<_> = questions
        .iter()
        .map(|question| {
            let text = |key: &Option<Key>| key.as_ref().map(ToString::to_string).unwrap_or_default();
            (text(&question.after), text(&question.upto), question.known.len())
        })
        .collect();
    let [first, last, further] = ["", "ns/app-0999", "ns/zoo-0999"].map(str::to_owned);
    let expected =
        [(first.clone(), last.clone(), OTHERS_AT_ONCE), (last, first.clone(), 100), (further, first, 0)];
    assert_eq!(ranges, expected);
    assert!(questions.iter().all(|question| (question.shards, &*question.own) == (1, &[0])));
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_comparison_that_nobody_asked_for_tells_the_end_of_few_and_leaves_many_to_somebody() {
    let engine = reported(Compares::Yes).await;
    let unasked = VerifyOptions { drift: false, ..VerifyOptions::default() };
    let before = engine.receiver.came().len();
    let restore = |number| {
        (0..number).for_each(|one| engine.receiver.held.restore(&key(&format!("zoo-{one:02}")), "z"));
    };
    restore(10);
    assert_eq!(verified(&engine, unasked).await.repaired, 10);
    assert_eq!(came(&engine, before).len(), 10);
    restore(11);
    let result = verified(&engine, unasked).await;
    assert_eq!((result.receiver_others.unwrap().total, result.repaired), (11, 0));
    assert_eq!(came(&engine, before).len(), 10, "they may be of another cluster");
    assert_eq!(verified(&engine, VerifyOptions::default()).await.repaired, 11, "somebody asked");
    engine.end().await;
}
