//! Going on where a former process ended: what came and went since then is shown by the watch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pipeline_core::{Progress, SourceNote, Version};

use crate::fake::{Answer, Asked, Fake, app, list, stream};
use crate::harness::{Run, brief, config};

/// A former process was done up to each of these, on a route.
#[derive(Default)]
struct Former {
    done: Vec<Version>,
    reached: Mutex<Vec<u64>>,
}

impl Former {
    fn new(done: &[u64]) -> Arc<Self> {
        Self::of(done.iter().copied().map(Version))
    }

    fn of(done: impl IntoIterator<Item = Version>) -> Arc<Self> {
        Arc::new(Self { done: done.into_iter().collect(), ..Self::default() })
    }

    fn reached(&self) -> Vec<u64> {
        self.reached.lock().unwrap().clone()
    }
}

impl Progress for Former {
    fn done(&self, _: &str) -> Vec<Version> {
        self.done.clone()
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
    let former = Former::new(&[7]);
    let mut run = Run::resuming(config(fake.address), &KNOWN, former.clone()).await;
    assert_eq!(run.listed().await, 2);
    assert_eq!(run.next().await, "home/a u1 5", "what did not change is compared");
    assert_eq!(former.reached(), [] as [u64; 0], "nothing is reached that the watch has not shown");
    for version in [8, 12, 15] {
        feed.change("MODIFIED", &app("home", "b", "u2", version));
    }
    feed.change("DELETED", &app("home", "c", "u3", 16));
    feed.change("ADDED", &app("home", "c", "u4", 17));
    feed.change("DELETED", &app("home", "c", "u4", 18));
    feed.change("MODIFIED", &app("home", "a", "u1", 21));
    feed.change("MODIFIED", &app("home", "b", "u2", 22));
    // What is not the newest, and what is over, a route may know: the rest is looked at in any case.
    for (expected, again) in [
        ("home/b u2 8", true),
        ("home/b u2 12", true),
        ("home/b u2 15", false),
        ("-home/c u3 16", true),
        ("home/c u4 17", true),
        ("-home/c u4 18", true),
        ("home/a u1 21", false),
        ("home/b u2 22", false),
    ] {
        let event = run.event().await;
        assert_eq!((brief(&event).as_str(), event.again), (expected, again));
    }
    assert_eq!(from(&fake), ["7"]);
    assert_eq!(fake.asked("list").len(), 1);
    assert_eq!(former.reached()[..7], [8, 12, 15, 16, 17, 18, 21]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn where_the_server_knows_no_more_what_changed_all_is_handed_over_as_it_is() {
    let (feed, open) = stream();
    let (_later, again) = stream();
    let fake = Fake::start(script(vec![open, again])).await;
    let former = Former::new(&[7]);
    let mut run = Run::resuming(config(fake.address), &KNOWN, former.clone()).await;
    assert_eq!(run.listed().await, 2);
    assert_eq!(run.next().await, "home/a u1 5");
    feed.change("ERROR", r#"{"kind":"Status","code":410}"#);
    let (notes, deleted, there) = run.until_listed().await;
    assert!(notes.iter().any(|note| matches!(note, SourceNote::Broken(_))), "{notes:?}");
    assert_eq!(deleted, ["-home/c u3 20 (gone)"]);
    assert_eq!(there, ["home/a u1 5", "home/b u2 15"]);
    run.until(|note| note == SourceNote::Alive).await;
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
    let mut run = Run::resuming(config(fake.address), &KNOWN, Former::new(&[7])).await;
    assert_eq!(run.listed().await, 2);
    assert_eq!(run.next().await, "home/a u1 5");
    feed.change("MODIFIED", &app("home", "b", "u2", 15));
    assert_eq!(run.next().await, "home/b u2 15");
    feed.change("BOOKMARK", &bookmark(20));
    let (_, deleted, there) = run.until_listed().await;
    assert_eq!(deleted, ["-home/c u3 20 (gone)"]);
    assert_eq!(there, ["home/a u1 5", "home/b u2 15"]);
    run.until(|note| note == SourceNote::Alive).await;
    assert_eq!(from(&fake), ["7", "20"]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_list_that_is_older_than_what_was_done_is_of_another_store() {
    let fake = Fake::start(script(vec![])).await;
    let mut run = Run::resuming(config(fake.address), &[], Former::new(&[21])).await;
    let (_, deleted, there) = run.until_listed().await;
    assert_eq!((deleted.len(), there.len()), (0, 2));
    run.finish().await.unwrap();
}

/// One that lags, one that does not, and one that is new, of which nothing is known.
#[tokio::test]
async fn the_watch_goes_on_from_where_the_route_ended_that_was_behind_all_others() {
    let (feed, open) = stream();
    let fake = Fake::start(script(vec![open])).await;
    let mut run = Run::resuming(config(fake.address), &KNOWN, Former::new(&[12, 4, 9])).await;
    assert_eq!(run.listed().await, 2);
    assert_eq!(run.waiting(), [] as [String; 0], "both changed since");
    feed.change("MODIFIED", &app("home", "a", "u1", 5));
    feed.change("MODIFIED", &app("home", "b", "u2", 12));
    for (expected, again) in [("home/a u1 5", false), ("home/b u2 12", true)] {
        let event = run.event().await;
        assert_eq!((brief(&event).as_str(), event.again), (expected, again));
    }
    assert_eq!(from(&fake), ["4"]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn where_the_server_knows_no_more_of_what_one_route_lacks_the_watch_goes_on_where_the_next_one_ended() {
    let gone = || {
        let (feed, open) = stream();
        feed.change("ERROR", r#"{"kind":"Status","code":410}"#);
        (feed, open)
    };
    let ((_one, first), (_other, second)) = (gone(), gone());
    let (feed, third) = stream();
    let fake = Fake::start(script(vec![first, second, third])).await;
    let former = Former::new(&[12, 4, 7]);
    let mut run = Run::resuming(config(fake.address), &KNOWN, former.clone()).await;
    for _ in 0..3 {
        assert_eq!(run.listed().await, 2);
    }
    feed.change("MODIFIED", &app("home", "b", "u2", 13));
    feed.change("MODIFIED", &app("home", "b", "u2", 15));
    for (expected, again) in
        [("home/a u1 5", false), ("home/a u1 5", false), ("home/b u2 13", true), ("home/b u2 15", false)]
    {
        let event = run.event().await;
        assert_eq!((brief(&event).as_str(), event.again), (expected, again));
    }
    assert_eq!(from(&fake), ["4", "7", "12"]);
    assert_eq!(former.reached(), [13, 15]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_route_that_ended_before_the_versions_went_back_holds_up_no_other() {
    let (_feed, open) = stream();
    let now = |version: u64| Version(version).in_era(1);
    let fake = Fake::start(script(vec![open])).await;
    let known = [("home/a", "u1", now(5).0)];
    let mut run = Run::resuming(config(fake.address), &known, Former::of([Version(900), now(12)])).await;
    assert_eq!(run.listed().await, 2);
    assert_eq!(run.event().await.version, now(5));
    run.until(|note| note == SourceNote::Alive).await;
    assert_eq!(from(&fake), ["12"]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn where_one_route_was_done_with_more_than_the_list_shows_no_watch_goes_on() {
    let fake = Fake::start(script(vec![])).await;
    let mut run = Run::resuming(config(fake.address), &[], Former::new(&[7, 21])).await;
    let (_, deleted, there) = run.until_listed().await;
    assert_eq!((deleted.len(), there.len()), (0, 2));
    run.finish().await.unwrap();
}
