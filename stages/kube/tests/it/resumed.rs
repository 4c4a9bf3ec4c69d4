//! Going on where a former process ended: what came and went since then is shown by the watch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pipeline_core::{Key, Note, Progress, Uid, Version};

use crate::fake::{Answer, Asked, Fake, app, list, stream};
use crate::harness::{Run, config};

/// A former process was done up to `done`; of `home/b` the state 8 of the life `u2` was acknowledged.
#[derive(Default)]
struct Former {
    done: u64,
    reached: Mutex<Vec<u64>>,
}

impl Former {
    fn new(done: u64) -> Arc<Self> {
        Arc::new(Self { done, ..Self::default() })
    }

    fn reached(&self) -> Vec<u64> {
        self.reached.lock().unwrap().clone()
    }
}

impl Progress for Former {
    fn done(&self, _: &str) -> Option<Version> {
        Some(Version(self.done))
    }

    fn acknowledged(&self, key: &Key, uid: &Uid) -> Version {
        Version(if (key.as_str(), &**uid) == ("home/b", "u2") { 8 } else { 0 })
    }

    fn reached(&self, _: &str, version: Version) {
        self.reached.lock().unwrap().push(version.0);
    }
}

const KNOWN: [(&str, &str, u64); 3] = [("home/a", "u1", 5), ("home/b", "u2", 8), ("home/c", "u3", 6)];

/// What is there at version 20: one that did not change, and one that did.
fn there() -> [String; 2] {
    [app("home", "a", "u1", 5), app("home", "b", "u2", 15)]
}

/// Lists the same whenever it is asked; watches are answered one after the other, then hang.
fn script(watches: Vec<Answer>) -> impl FnMut(&Asked) -> Answer + Send + 'static {
    let mut watches = VecDeque::from(watches);
    move |asked| match asked.kind() {
        "list" => list(20, &there()),
        _ => watches.pop_front().unwrap_or(Answer::Hang),
    }
}

fn bookmark(version: u64) -> String {
    format!(r#"{{"kind":"Widget","metadata":{{"resourceVersion":"{version}"}}}}"#)
}

/// The versions that watches went on from.
fn from(fake: &Fake) -> Vec<String> {
    let asked = fake.asked("watch");
    asked.iter().map(|watch| watch.get("resourceVersion").unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn what_changed_since_a_former_process_ended_is_left_to_the_watch_which_shows_all_of_it() {
    let (feed, open) = stream();
    let fake = Fake::start(script(vec![open])).await;
    let former = Former::new(7);
    let mut run = Run::resuming(config(fake.address), &KNOWN, former.clone()).await;
    assert_eq!(run.listed().await, 2);
    assert_eq!(run.next().await, "home/a u1 5", "what did not change is compared");
    assert_eq!(former.reached(), [] as [u64; 0], "nothing is reached that the watch has not shown");
    for version in [8, 12, 15] {
        feed.change("MODIFIED", &app("home", "b", "u2", version));
    }
    feed.change("DELETED", &app("home", "c", "u3", 16));
    feed.change("ADDED", &app("home", "c", "u4", 17));
    feed.change("BOOKMARK", &bookmark(20));
    feed.change("MODIFIED", &app("home", "a", "u1", 21));
    for expected in ["home/b u2 12", "home/b u2 15", "-home/c u3 16", "home/c u4 17", "home/a u1 21"] {
        assert_eq!(run.next().await, expected);
    }
    assert_eq!(from(&fake), ["7"]);
    assert_eq!(fake.asked("list").len(), 1);
    assert_eq!(former.reached()[..6], [8, 12, 15, 16, 17, 20]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn where_the_server_knows_no_more_what_changed_all_is_handed_over_as_it_is() {
    let (feed, open) = stream();
    let (_later, again) = stream();
    let fake = Fake::start(script(vec![open, again])).await;
    let former = Former::new(7);
    let mut run = Run::resuming(config(fake.address), &KNOWN, former.clone()).await;
    assert_eq!(run.listed().await, 2);
    assert_eq!(run.next().await, "home/a u1 5");
    feed.change("ERROR", r#"{"kind":"Status","code":410}"#);
    let (notes, deleted, there) = run.until_listed().await;
    assert!(notes.iter().any(|note| matches!(note, Note::Broken(_))), "{notes:?}");
    assert_eq!(deleted, ["-home/c u3 20 (gone)"]);
    assert_eq!(there, ["home/a u1 5", "home/b u2 15"]);
    run.until(|note| note == Note::Alive).await;
    assert_eq!(from(&fake), ["7", "20"]);
    assert_eq!(former.reached(), [20]);
    run.finish().await.unwrap();
}

/// Of what is not selected any more, no watch says that it is gone.
#[tokio::test]
async fn what_neither_list_nor_watch_shows_is_found_by_another_list() {
    let (feed, open) = stream();
    let (_later, again) = stream();
    let fake = Fake::start(script(vec![open, again])).await;
    let mut run = Run::resuming(config(fake.address), &KNOWN, Former::new(7)).await;
    assert_eq!(run.listed().await, 2);
    assert_eq!(run.next().await, "home/a u1 5");
    feed.change("MODIFIED", &app("home", "b", "u2", 15));
    assert_eq!(run.next().await, "home/b u2 15");
    feed.change("BOOKMARK", &bookmark(20));
    let (_, deleted, there) = run.until_listed().await;
    assert_eq!(deleted, ["-home/c u3 20 (gone)"]);
    assert_eq!(there, ["home/a u1 5", "home/b u2 15"]);
    run.until(|note| note == Note::Alive).await;
    assert_eq!(from(&fake), ["7", "20"]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_list_that_is_older_than_what_was_done_is_of_another_store() {
    let fake = Fake::start(script(vec![])).await;
    let mut run = Run::resuming(config(fake.address), &[], Former::new(21)).await;
    let (_, deleted, there) = run.until_listed().await;
    assert_eq!((deleted.len(), there.len()), (0, 2));
    run.finish().await.unwrap();
}
