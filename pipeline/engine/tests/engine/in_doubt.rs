//! A report whose answer is lost, and a state that returns to what was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pipeline_core::{EntityId, Reason, StageError};
use pipeline_engine::run::Config;

use crate::fakes::{Cluster, Enricher, Receiver, key};
use crate::restart::{crash, open};
use crate::running::{one_shard, start, start_on};

const A: u64 = 1;
const B: u64 = 2;

#[tokio::test(start_paused = true)]
async fn a_state_that_returns_while_the_answer_is_lost_is_reported_again_under_a_new_key() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put_content("app", 1, A);
    let lost = Arc::new(AtomicBool::new(true));
    let is_lost = lost.clone();
    receiver.answers(move |report, _| match report.content.0 == B && is_lost.load(Ordering::SeqCst) {
        true => Err(StageError::retry(Reason::Timeout, "no answer")),
        false => Ok(()),
    });
    // No room to keep what must be tried again: it is shown by the next state.
    let engine = start(Config { queue_events: 1, ..one_shard() }, cluster, Enricher::default(), receiver);
    engine.until("reported", |counts| counts.acked == 1).await;
    engine.receiver.gate.forget_permits(usize::MAX);
    engine.cluster.put_content("app", 2, B);
    engine.until("on its way", |_| engine.receiver.unanswered() == 1).await;
    engine.cluster.put_content("app", 3, A);
    engine.until("queued", |counts| counts.queued == 1).await;
    engine.receiver.gate.add_permits(1000);
    let counts = engine.until_idle(3).await;
    assert_eq!((counts.acked, counts.coalesced), (2, 1));
    let came = engine.receiver.came();
    let told: Vec<_> = came.iter().map(|came| (came.version, came.accepted)).collect();
    assert_eq!(told, [(1, true), (2, false), (3, true)]);
    assert_ne!(came[0].idempotency_key, came[2].idempotency_key, "the receiver would take it for the first");
    assert!(!engine.ledger.get(&key("app")).unwrap().is_in_doubt());

    engine.cluster.repeat("app");
    let counts = engine.until_idle(4).await;
    assert_eq!((counts.filtered, engine.receiver.came().len()), (1, 3), "sure again: nothing to say");
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_held_and_was_never_reported_is_read_again_when_another_has_begun_to_watch() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put("reported", 1);
    let is_down = Arc::new(AtomicBool::new(false));
    let down = is_down.clone();
    receiver.answers(move |_, _| match down.load(Ordering::SeqCst) {
        true => Err(StageError::retry(Reason::Unauthorized, "status 401")),
        false => Ok(()),
    });
    let engine = start(one_shard(), cluster, Enricher::default(), receiver);
    engine.until("one is reported", |counts| counts.acked == 1).await;
    is_down.store(true, Ordering::SeqCst);
    engine.cluster.put("reported", 2);
    engine.until("the circuit is open", |counts| counts.paused && counts.in_flight == 0).await;
    // Nothing of them is sent, and so the ledger knows nothing of them.
    engine.cluster.put("gone", 3);
    engine.cluster.put("there", 4);
    engine.until("all three wait", |counts| counts.queued + counts.waiting == 3).await;
    engine.cluster.delete_unwatched("gone");
    let reads = engine.cluster.reads.load(Ordering::SeqCst);
    engine.handle.read_held().await;
    is_down.store(false, Ordering::SeqCst);
    engine
        .until("both lives are told", |_| {
            let told = |name, ends| {
                engine
                    .receiver
                    .came()
                    .iter()
                    .any(|came| came.accepted && came.key == key(name) && came.ends == ends)
            };
            told("gone", false) && told("gone", true) && told("there", false)
        })
        .await;
    let lived: Vec<u64> = engine
        .receiver
        .came()
        .iter()
        .filter(|came| came.accepted && came.key == key("there"))
        .map(|came| came.version)
        .collect();
    assert_eq!(lived, [4], "what is there is reported once");
    assert_eq!(
        engine.cluster.reads.load(Ordering::SeqCst) - reads,
        2,
        "what was reported is compared by the ledger"
    );
    engine.end().await;
}

#[tokio::test]
async fn a_state_that_returns_while_the_process_is_away_is_reported_again_under_a_new_key() {
    let directory = tempfile::tempdir().unwrap();
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    let enricher = Enricher { resources: 1, ..Enricher::default() };
    cluster.put_content("app", 1, A);
    let ledger = open(directory.path()).await;
    let engine = start_on(ledger, one_shard(), cluster.clone(), enricher.clone(), receiver);
    engine.until("reported", |counts| counts.acked == 1).await;
    engine.ledger.flush().await.unwrap();
    // The receiver takes the object's report, and the process never hears so.
    engine.receiver.gate.forget_permits(usize::MAX);
    engine.cluster.put_content("app", 2, B);
    engine.until("on its way", |_| engine.receiver.unanswered() == 1).await;
    let image = crash(directory.path());
    engine.task.abort();
    let first = engine.receiver.came();

    cluster.put_content("app", 3, A);
    let ledger = open(image.path()).await;
    let again = start_on(ledger, one_shard(), cluster, enricher, Receiver::new());
    again.until_idle(1).await;
    let came = again.receiver.came();
    let told: Vec<_> = came.iter().map(|came| (came.entity, came.version)).collect();
    assert_eq!(told, [(EntityId::OBJECT, 3)], "the resource was not on its way: {told:?}");
    assert_eq!((first[0].entity, first[1].entity), (EntityId::OBJECT, EntityId(1)));
    assert_ne!(first[0].idempotency_key, came[0].idempotency_key);
    assert!(!again.ledger.get(&key("app")).unwrap().is_in_doubt());
    again.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_the_whole_reports_what_is_acknowledged_and_any_other_only_what_differs() {
    let cluster = Cluster::new();
    cluster.put("app", 5);
    let enricher = Enricher { resources: 2, ..Enricher::default() };
    let engine = start(one_shard(), cluster, enricher, Receiver::new());
    engine.until_idle(1).await;
    assert!(engine.handle.replay(&key("app"), false).await);
    engine.until("read", |counts| counts.filtered == 1).await;
    assert_eq!(engine.receiver.came().len(), 3);
    assert!(engine.handle.replay(&key("app"), true).await);
    engine.until("reported", |counts| counts.acked == 2).await;
    let came = engine.receiver.came();
    let told: Vec<_> = came.iter().map(|came| came.entity).collect();
    assert_eq!(told[..3], told[3..]);
    let keys: std::collections::BTreeSet<_> = came.iter().map(|came| &came.idempotency_key).collect();
    assert_eq!(keys.len(), 6, "the receiver is to take each of them");
    engine.end().await;
}

/// As after a restart: the list shows the acknowledged state once more.
#[tokio::test(start_paused = true)]
async fn a_repeated_state_of_which_a_report_is_in_doubt_is_not_stale() {
    let cluster = Cluster::new();
    cluster.put("app", 5);
    let engine = start(one_shard(), cluster, Enricher::default(), Receiver::new());
    engine.until_idle(1).await;
    engine.ledger.update(&key("app"), |record| {
        let mut record = record.unwrap();
        record.doubt();
        Some(record)
    });
    engine.cluster.repeat("app");
    let counts = engine.until("reported", |counts| counts.acked == 2).await;
    assert_eq!((counts.filtered, engine.receiver.came().len()), (0, 2));
    engine.end().await;
}

/// Answers that never come while a process is told to stop leave their entities in doubt.
#[tokio::test]
async fn what_is_given_up_at_the_end_of_the_grace_period_is_sent_again() {
    let directory = tempfile::tempdir().unwrap();
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put_content("app", 1, A);
    let ledger = open(directory.path()).await;
    let config = Config { grace: Duration::from_millis(20), ..one_shard() };
    let engine = start_on(ledger, config, cluster.clone(), Enricher::default(), receiver);
    engine.until("reported", |counts| counts.acked == 1).await;
    engine.receiver.gate.forget_permits(usize::MAX);
    engine.cluster.put_content("app", 2, B);
    engine.until("on its way", |_| engine.receiver.unanswered() == 1).await;
    engine.stop.cancel();
    engine.task.await.unwrap().unwrap();
    assert!(engine.ledger.get(&key("app")).unwrap().object().in_doubt);
    engine.ledger.close().await.unwrap();

    cluster.put_content("app", 3, A);
    let ledger = open(directory.path()).await;
    let again = start_on(ledger, one_shard(), cluster, Enricher::default(), Receiver::new());
    again.until_idle(1).await;
    assert_eq!(again.receiver.newest()[&key("app")], 3);
    again.end().await;
}
