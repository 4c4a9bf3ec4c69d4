//! What outlives the process beside acknowledgements: ends of operations, deletions, what was refused for good.

use pipeline_core::Digest;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use pipeline_core::{Backoff, EntityId, Fact, Key, Pending, Reason, StageError, Version};
use pipeline_engine::run::Config;
use pipeline_engine::verify::VerifyOptions;
use pipeline_ledger::{Ledger, LedgerOptions};
use tempfile::TempDir;

use crate::fakes::{Cluster, Enricher, Receiver, key};
use crate::running::{PATIENCE, Running, one_shard, start_on};

pub(crate) async fn open(directory: &Path) -> Ledger {
    let path = directory.join("ledger");
    tokio::task::spawn_blocking(|| Ledger::open(path, LedgerOptions::new("receiver")).unwrap()).await.unwrap()
}

/// What a process that is killed now leaves on disk. Files are read until two readings in a row are equal: one that is
/// written while it is read would be an image that no kill leaves.
pub(crate) fn crash(directory: &Path) -> TempDir {
    let read = || -> BTreeMap<OsString, Vec<u8>> {
        let files = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
        files.filter_map(|file| Some((file.file_name(), std::fs::read(file.path()).ok()?))).collect()
    };
    let mut files = read();
    loop {
        let again = read();
        if again == files {
            break;
        }
        files = again;
    }
    let image = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(image.path().join(name), content).unwrap();
    }
    image
}

/// The first image of the disk that satisfies `done`.
async fn crash_when(directory: &Path, what: &str, done: impl Fn(&Ledger) -> bool) -> TempDir {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let image = crash(directory);
        let ledger = open(image.path()).await;
        let is_done = done(&ledger);
        ledger.close().await.unwrap();
        if is_done {
            return image;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never {what}");
}

fn down() -> Result<(), StageError> {
    Err(StageError::retry(Reason::Unreachable, "connection refused"))
}

/// Retries come after hours: what waits keeps waiting.
fn patient() -> Config {
    let hours = Duration::from_secs(3 * 3600);
    Config { retry: Backoff { min: hours, max: hours }, ..one_shard() }
}

/// An engine that reported an object, whose sink then went down while two operations ended, the object was
/// deleted, and another life began.
async fn waiting(config: Config, directory: &Path) -> Running {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put("app", 1);
    cluster.put("other", 1);
    let ledger = open(directory).await;
    let engine = start_on(ledger, config, cluster, Enricher::default(), receiver);
    engine.until("reported", |counts| counts.acked == 2).await;
    engine.receiver.answers(|_, _| down());
    engine.cluster.finish("app", 2, 10);
    engine.cluster.finish("app", 3, 20);
    engine.cluster.delete("app", 4);
    engine.cluster.begin("app", 2, 5);
    engine.until("waiting", |counts| counts.observed == 6 && counts.waiting == 1).await;
    engine
}

/// What the receiver was told of an object: shown end, and whether its life is over.
fn told(receiver: &Receiver) -> Vec<(String, bool)> {
    let came = receiver.came();
    let of_app = came.iter().filter(|came| came.key == key("app") && came.accepted);
    of_app.map(|came| (came.told.clone(), came.ends)).collect()
}

fn all_told() -> Vec<(String, bool)> {
    let end = |second: u32| format!("2024-03-01T10:00:{second}Z");
    vec![(end(10), false), (end(20), false), ("{}".into(), true), ("{}".into(), false)]
}

#[tokio::test]
async fn ends_and_deletions_that_wait_for_the_sink_survive_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let engine = waiting(patient(), directory.path()).await;
    let complete = |ledger: &Ledger| {
        let journaled = ledger.journaled();
        let app = journaled.iter().find(|(journaled, _)| *journaled == key("app"));
        app.is_some_and(|(_, pending)| pending.facts.len() == 2 && pending.gone.len() == 1)
    };
    let image = crash_when(directory.path(), "journaled", complete).await;
    engine.task.abort();
    let cluster = engine.cluster;

    let ledger = open(image.path()).await;
    assert_eq!(ledger.journaled().len(), 1, "nothing of what was acknowledged");
    let again = start_on(ledger, one_shard(), cluster.clone(), Enricher::default(), Receiver::new());
    again.until("reported", |_| told(&again.receiver).len() == 4).await;
    assert_eq!(told(&again.receiver), all_told());
    let forgotten = |ledger: &Ledger| {
        // The last report may be in a later commit than those that it follows.
        let known = ledger.get(&key("app"));
        ledger.journaled().is_empty() && known.is_some_and(|it| it.is_settled() && !it.is_in_doubt())
    };
    let image = crash_when(image.path(), "forgotten", forgotten).await;
    again.end().await;

    let ledger = open(image.path()).await;
    let last = start_on(ledger, one_shard(), cluster, Enricher::default(), Receiver::new());
    let counts = last.until_idle(2).await;
    assert_eq!((counts.filtered, last.receiver.came()), (2, vec![]), "it was told once");
    last.end().await;
}

#[tokio::test]
async fn ends_and_deletions_that_wait_when_the_process_is_told_to_stop_are_written_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { journal_every: Duration::from_secs(3600), ..patient() };
    let engine = waiting(config, directory.path()).await;
    let cluster = engine.cluster.clone();
    engine.end().await;

    let ledger = open(directory.path()).await;
    let again = start_on(ledger, one_shard(), cluster, Enricher::default(), Receiver::new());
    again.until("reported", |_| told(&again.receiver).len() == 4).await;
    assert_eq!(told(&again.receiver), all_told());
    again.end().await;
}

#[tokio::test]
async fn ends_and_deletions_that_wait_are_written_before_the_grace_period_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put("app", 1);
    let hour = Duration::from_secs(3600);
    let config = Config { journal_every: hour, grace: hour, ..one_shard() };
    let ledger = open(directory.path()).await;
    let engine = start_on(ledger, config, cluster.clone(), Enricher::default(), receiver);
    engine.until("reported", |counts| counts.acked == 1).await;
    // A report whose answer does not come keeps the process from ending.
    engine.receiver.gate.forget_permits(usize::MAX);
    cluster.finish("app", 2, 10);
    engine.until("on its way", |_| engine.receiver.unanswered() == 1).await;
    cluster.finish("app", 3, 20);
    cluster.delete("app", 4);
    cluster.begin("app", 2, 5);
    engine.until("queued", |counts| counts.observed == 5).await;
    assert_eq!(open(crash(directory.path()).path()).await.journaled(), []);
    engine.stop.cancel();
    let image = crash_when(directory.path(), "journaled", |ledger| ledger.journaled().len() == 1).await;
    assert!(!engine.task.is_finished());
    engine.task.abort();

    let ledger = open(image.path()).await;
    let again = start_on(ledger, one_shard(), cluster, Enricher::default(), Receiver::new());
    again.until("reported", |_| told(&again.receiver).len() == 4).await;
    assert_eq!(told(&again.receiver), all_told());
    again.end().await;
}

/// So much that nothing else has room. Returns of which keys it is.
fn fill_journal(ledger: &Ledger) -> Vec<Key> {
    let mut filled = Vec::new();
    for bytes in [1024, 1] {
        for number in 0.. {
            let end = Fact { id: Digest(1), body: "m".repeat(bytes).into() };
            let facts = vec![("life-1".into(), Version(1), end); if bytes == 1 { 1 } else { 8 }];
            let of = key(&format!("fill-{bytes}-{number}"));
            if !ledger.journal(&of, Some(Pending { facts, gone: Vec::new() })) {
                break;
            }
            filled.push(of);
        }
    }
    filled
}

#[tokio::test(start_paused = true)]
async fn what_the_journal_had_no_room_for_is_offered_again() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put("app", 1);
    let engine = start_on(Ledger::memory(), patient(), cluster, Enricher::default(), receiver);
    engine.until("reported", |counts| counts.acked == 1).await;
    let filled = fill_journal(&engine.ledger);
    engine.receiver.answers(|_, _| down());
    engine.cluster.finish("app", 2, 10);
    engine.cluster.finish("app", 3, 20);
    engine.cluster.delete("app", 4);
    engine.until("waiting", |counts| counts.observed == 4 && counts.waiting == 1).await;
    let before = engine.ledger.status().journal_refused;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let journaled = || engine.ledger.journaled().into_iter().find(|(journaled, _)| *journaled == key("app"));
    let refused = engine.ledger.status().journal_refused;
    assert_eq!(journaled(), None);
    assert!((50..70).contains(&(refused - before)), "about once a second: {before} {refused}");
    for key in &filled[..10] {
        assert!(engine.ledger.journal(key, None));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (_, pending) = journaled().unwrap();
    assert_eq!((pending.facts.len(), pending.gone.len()), (2, 1));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(engine.ledger.status().journal_refused, refused, "it stands there now");
    engine.end().await;
}

/// A life that was taken for over, wrongly or before its cluster was restored, ends once more.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_life_that_came_back_is_told_again() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put("app", 1);
    let engine = start_on(Ledger::memory(), one_shard(), cluster, Enricher::default(), receiver);
    engine.until("reported", |counts| counts.acked == 1).await;
    engine.cluster.delete("app", 2);
    engine.until("over", |counts| counts.acked == 2).await;
    engine.cluster.begin("app", 1, 3);
    engine.until("back", |counts| counts.acked == 3).await;
    engine.cluster.delete("app", 4);
    engine.until_idle(4).await;
    let came: Vec<_> = engine.receiver.came().iter().map(|came| (came.version, came.ends)).collect();
    assert_eq!(came, [(1, false), (2, true), (3, false), (4, true)]);
    engine.end().await;
}

#[tokio::test]
async fn what_is_not_watched_any_more_is_left_alone_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let engine = waiting(patient(), directory.path()).await;
    let cluster = engine.cluster.clone();
    engine.end().await;

    let ledger = open(directory.path()).await;
    let journaled = ledger.journaled();
    assert_eq!(journaled.len(), 1);
    let elsewhere = Cluster::new();
    elsewhere.put("other", 1);
    elsewhere.unwatched.lock().unwrap().insert(key("app"));
    let again = start_on(ledger, one_shard(), elsewhere, Enricher::default(), Receiver::new());
    let counts = again.until_idle(1).await;
    assert_eq!((counts.filtered, counts.reads), (1, 0));
    assert!(!again.handle.replay(&key("app"), true).await);
    let found = again.handle.verify(VerifyOptions::default()).await.unwrap();
    assert!(found.is_clean() && found.gone.total == 0, "{found:?}");
    assert_eq!((found.objects, found.acknowledged), (1, 1));
    assert_eq!(again.receiver.came(), []);
    again.end().await;

    let ledger = open(directory.path()).await;
    assert_eq!(ledger.journaled(), journaled);
    let last = start_on(ledger, one_shard(), cluster, Enricher::default(), Receiver::new());
    last.until("reported", |_| told(&last.receiver).len() == 4).await;
    assert_eq!(told(&last.receiver), all_told(), "it is watched again");
    last.end().await;
}

/// An engine that has one object refused for good, and another reported.
async fn refused(directory: &Path) -> Running {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put("bad", 1);
    cluster.put("good", 2);
    receiver.answers(refuse);
    let enricher = Enricher { resources: 3, ..Enricher::default() };
    let engine = start_on(open(directory).await, one_shard(), cluster, enricher, receiver);
    let counts = engine.until_idle(2).await;
    assert_eq!((counts.acked, counts.parked_keys, engine.receiver.came().len()), (1, 1, 8));
    engine
}

fn refuse(report: &pipeline_core::Report, _: usize) -> Result<(), StageError> {
    match (report.key.name(), report.entity) {
        ("bad", EntityId(1)) => Err(StageError::reject(Reason::TooLarge, "status 413")),
        _ => Ok(()),
    }
}

#[tokio::test]
async fn what_was_refused_for_good_is_not_sent_again_after_a_restart_until_it_is_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let engine = refused(directory.path()).await;
    let before = engine.handle.parked().await;
    let image = crash_when(directory.path(), "written", |ledger| ledger.parked().len() == 1).await;
    engine.task.abort();
    let cluster = engine.cluster;

    let enricher = Enricher { resources: 3, ..Enricher::default() };
    let ledger = open(image.path()).await;
    let again = start_on(ledger, one_shard(), cluster.clone(), enricher.clone(), Receiver::new());
    let counts = again.until_idle(2).await;
    assert_eq!((counts.filtered, counts.parked_keys, again.receiver.came()), (2, 1, vec![]));
    assert_eq!(again.handle.parked().await, before);

    assert!(again.handle.replay(&key("bad"), false).await);
    again.until("reported", |counts| counts.acked == 1 && counts.parked_keys == 0).await;
    let came = again.receiver.came();
    assert_eq!(came.iter().map(|came| came.entity).collect::<Vec<_>>(), [EntityId(1)]);
    let image = crash_when(image.path(), "forgotten", |ledger| ledger.parked().is_empty()).await;
    again.end().await;

    let ledger = open(image.path()).await;
    let last = start_on(ledger, one_shard(), cluster, enricher, Receiver::new());
    let counts = last.until_idle(2).await;
    assert_eq!((counts.filtered, counts.parked_keys, last.receiver.came()), (2, 0, vec![]));
    last.end().await;
}

#[tokio::test]
async fn what_a_person_gave_up_is_forgotten_and_tried_once_more_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let engine = refused(directory.path()).await;
    crash_when(directory.path(), "written", |ledger| ledger.parked().len() == 1).await;
    assert!(engine.handle.discard(&key("bad")).await);
    assert!(!engine.handle.discard(&key("bad")).await, "once");
    let image = crash_when(directory.path(), "forgotten", |ledger| ledger.parked().is_empty()).await;
    let cluster = engine.cluster.clone();
    engine.end().await;

    let ledger = open(image.path()).await;
    assert_eq!(ledger.parked(), []);
    let receiver = Receiver::new();
    receiver.answers(refuse);
    let enricher = Enricher { resources: 3, ..Enricher::default() };
    let again = start_on(ledger, one_shard(), cluster, enricher, receiver);
    // It did not change; what was taken of it is not sent again.
    let counts = again.until_idle(2).await;
    assert_eq!((counts.filtered, counts.parked, counts.parked_keys), (1, 1, 1));
    let came = again.receiver.came();
    assert_eq!(came.iter().map(|came| came.entity).collect::<Vec<_>>(), [EntityId(1)]);
    again.end().await;
}
