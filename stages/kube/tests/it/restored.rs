//! A cluster whose store was restored from a snapshot: its versions go back, and what it says then is the newest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pipeline_core::{Source as _, SourceNote, Survey as _, SurveyResult, Version};

use crate::fake::{Answer, Asked, Fake, Feed, app, list, stream};
use crate::harness::{Run, build, config, remembered};
use crate::said::Log;

const SAID: &str =
    "the versions of the cluster went back, as after a restore of its store: everything is compared again";

/// Before the restore: `a` and `b` at 50 and 60, the list at 70. After it: as they were at 20 and 30, the list at 40, and
/// `c`, which had been deleted, is there again.
fn cluster(asked: &Asked, restored: bool) -> Option<Answer> {
    let before = [app("home", "a", "u1", 50), app("home", "b", "u2", 60)];
    let after = [app("home", "a", "u1", 20), app("home", "b", "u2", 30), app("home", "c", "u3", 10)];
    match (asked.kind(), restored) {
        ("list", false) => Some(list(70, &before)),
        ("list", true) => Some(list(40, &after)),
        ("get", true) => Some(Answer::Json(app("home", "a", "u1", 20))),
        _ => None,
    }
}

/// An API server, whether its store was restored, and the watches that are begun.
async fn server() -> (Fake, Arc<AtomicBool>, tokio::sync::mpsc::UnboundedReceiver<(String, Feed)>) {
    let restored = Arc::new(AtomicBool::new(false));
    let (watches, begun) = tokio::sync::mpsc::unbounded_channel();
    let now = restored.clone();
    let fake = Fake::start(move |asked| {
        cluster(asked, now.load(Ordering::Relaxed)).unwrap_or_else(|| {
            let (feed, answer) = stream();
            watches.send((asked.get("resourceVersion").unwrap_or_default().to_owned(), feed)).unwrap();
            answer
        })
    })
    .await;
    (fake, restored, begun)
}

/// Everything of the restored cluster, newer than all before, and what was created after the snapshot and is gone.
fn all(known: u64) -> Vec<String> {
    let at = |number| Version(number).in_era(1).0;
    assert!(at(10) > known);
    vec![format!("home/a u1 {}", at(20)), format!("home/b u2 {}", at(30)), format!("home/c u3 {}", at(10))]
}

#[tokio::test]
async fn a_store_that_is_restored_while_the_watch_runs_is_noticed_and_everything_handed_over_again() {
    let (log, _guard) = Log::start();
    let (fake, restored, mut watches) = server().await;
    let mut run = Run::start(config(fake.address)).await;
    assert_eq!(run.listed().await, 2);
    assert_eq!(run.waiting(), ["home/a u1 50", "home/b u2 60"]);
    let (at, watch) = watches.recv().await.unwrap();
    assert_eq!(at, "70");
    watch.change("MODIFIED", &app("home", "a", "u1", 80));
    assert_eq!(run.next().await, "home/a u1 80");

    // A watch that goes on from 80 would be let in, and told nothing: the store is asked first.
    fake.newest.store(40, Ordering::Relaxed);
    restored.store(true, Ordering::Relaxed);
    drop(watch);
    assert_eq!(run.listed().await, 3);
    assert_eq!(run.waiting(), all(80));
    let (at, watch) = watches.recv().await.unwrap();
    assert_eq!(at, "40");
    // What comes from now on is newer than that, whatever its number.
    watch.change("MODIFIED", &app("home", "a", "u1", 41));
    assert_eq!(run.next().await, format!("home/a u1 {}", Version(41).in_era(1).0));
    // The API server is asked for its own numbers, and never for one that may not come again.
    let key = pipeline_core::Key::new("home", "a").unwrap();
    for (not_older, asked) in [(Version(80), None), (Version(41).in_era(1), Some("41"))] {
        let read = run.watch.read(&key, not_older).await.unwrap().unwrap();
        assert_eq!(read.version, Version(20).in_era(1));
        assert_eq!(fake.asked("get").last().unwrap().get("resourceVersion"), asked);
    }
    assert_eq!(log.text().matches(SAID).count(), 1, "{}", log.text());
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_store_that_was_restored_while_nobody_watched_is_noticed_by_what_the_ledger_remembers() {
    let (log, _guard) = Log::start();
    let (fake, restored, _watches) = server().await;
    restored.store(true, Ordering::Relaxed);
    let known = [("home/a", "u1", 50), ("home/b", "u2", 60), ("home/d", "u4", 65)];
    let mut run = Run::remembering(config(fake.address), &known).await;
    assert_eq!(run.listed().await, 3);
    let mut expected = all(65);
    expected.push(format!("-home/d u4 {} (gone)", Version(40).in_era(1).0));
    assert_eq!(run.waiting(), expected);
    assert_eq!(log.text().matches(SAID).count(), 1, "{}", log.text());
    run.finish().await.unwrap();

    // The next process goes on in the era that the ledger remembers, and has nothing to say.
    let at = |number| Version(number).in_era(1).0;
    let known = [("home/a", "u1", at(20)), ("home/b", "u2", at(30)), ("home/c", "u3", at(10))];
    let mut run = Run::remembering(config(fake.address), &known).await;
    assert_eq!(run.listed().await, 3);
    assert_eq!(run.waiting(), all(0));
    assert_eq!(log.text().matches(SAID).count(), 1, "{}", log.text());
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_restored_store_that_has_counted_on_is_noticed_by_an_object_that_became_older() {
    let (log, _guard) = Log::start();
    let fake = Fake::listing(900, &[app("home", "a", "u1", 20), app("home", "b", "u2", 880)]).await;
    let mut run = Run::remembering(config(fake.address), &[("home/a", "u1", 50), ("home/b", "u2", 60)]).await;
    assert_eq!(run.listed().await, 2);
    let at = |number| Version(number).in_era(1).0;
    assert_eq!(run.waiting(), [format!("home/a u1 {}", at(20)), format!("home/b u2 {}", at(880))]);
    assert_eq!(log.text().matches(SAID).count(), 1, "{}", log.text());
    run.finish().await.unwrap();
}

fn found(there: SurveyResult) -> Vec<(String, Version)> {
    there.objects.into_iter().map(|found| (found.key.to_string(), found.version)).collect()
}

#[tokio::test]
async fn a_survey_notices_a_restored_store_and_has_the_watch_list_again() {
    let (log, _guard) = Log::start();
    let (fake, restored, mut watches) = server().await;
    let mut run = Run::start(config(fake.address)).await;
    assert_eq!(run.listed().await, 2);
    drop(run.waiting());
    // The watch stands, and says nothing.
    let _watch = watches.recv().await.unwrap();
    let survey = async |run: &Run| found(run.watch.survey(Vec::new()).await.unwrap());
    let before = [("home/a".to_owned(), Version(50)), ("home/b".to_owned(), Version(60))];
    assert_eq!(survey(&run).await, before);
    restored.store(true, Ordering::Relaxed);
    let at = |number| Version(number).in_era(1);
    let after = [("a", 20), ("b", 30), ("c", 10)].map(|(name, number)| (format!("home/{name}"), at(number)));
    assert_eq!(survey(&run).await, after);
    run.until(|note| matches!(note, SourceNote::Listed { objects: 3 })).await;
    assert_eq!(run.waiting(), all(60));
    assert_eq!(survey(&run).await, after);
    assert_eq!(log.text().matches(SAID).count(), 1, "{}", log.text());
    run.finish().await.unwrap();
}

/// Of another shard, or of what nobody of this process has seen.
#[tokio::test]
async fn a_survey_notices_a_restored_store_by_what_the_ledger_remembers() {
    for known in [("home/elsewhere", "u9", 41), ("home/a", "u1", 21)] {
        let (log, _guard) = Log::start();
        let (fake, restored, _watches) = server().await;
        restored.store(true, Ordering::Relaxed);
        let (watch, ..) = build(config(fake.address)).await;
        let there = found(watch.survey(vec![remembered(known)]).await.unwrap());
        assert!(there.iter().all(|(_, version)| version.era() == 1), "{known:?}: {there:?}");
        let again = watch.survey(vec![remembered(known)]).await.unwrap();
        assert_eq!(found(again), there, "it goes on in that era");
        assert_eq!(log.text().matches(SAID).count(), 1, "{}", log.text());
    }
}

#[tokio::test]
async fn a_survey_that_is_told_of_a_later_era_has_the_watch_list_again_in_it() {
    let (log, _guard) = Log::start();
    let (fake, _restored, mut watches) = server().await;
    let mut run = Run::start(config(fake.address)).await;
    assert_eq!((run.listed().await, run.waiting().len()), (2, 2));
    let _watch = watches.recv().await.unwrap();
    let at = |number| Version(number).in_era(1).0;
    let there = run.watch.survey(vec![remembered(("home/elsewhere", "u9", at(20)))]).await.unwrap();
    assert!(there.objects.iter().all(|found| found.version.era() == 1), "{there:?}");
    run.until(|note| matches!(note, SourceNote::Listed { objects: 2 })).await;
    assert_eq!(run.waiting(), [format!("home/a u1 {}", at(50)), format!("home/b u2 {}", at(60))]);
    assert_eq!(log.text().matches(SAID).count(), 0, "whoever began the era said so: {}", log.text());
    run.finish().await.unwrap();
}

#[tokio::test]
async fn an_api_server_need_not_look_through_all_objects_for_its_newest_version() {
    let (fake, _restored, mut watches) = server().await;
    let mut run = Run::start(config(fake.address)).await;
    run.listed().await;
    drop(watches.recv().await.unwrap());
    watches.recv().await.unwrap();
    let asked = fake.asked("newest");
    let asked = asked.first().unwrap();
    assert_eq!((asked.get("limit"), asked.get("fieldSelector")), (Some("1"), None));
    run.finish().await.unwrap();
}
