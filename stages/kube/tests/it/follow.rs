//! Watches: changes, bookmarks, every way to break, and what a relist finds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use pipeline_core::{Key, KindState, Reason, SourceNote, Version};

use crate::fake::{Answer, Asked, Fake, app, list, stream};
use crate::harness::{Run, config};

/// Lists `items` at first and `later` at every further list; watches are answered one after the other, then
/// hang.
fn script(
    items: Vec<String>,
    later: Vec<String>,
    watches: Vec<Answer>,
) -> impl FnMut(&Asked) -> Answer + Send + 'static {
    let mut watches = VecDeque::from(watches);
    move |asked| match (asked.kind(), asked.nth) {
        ("list", 0) => list(10, &items),
        ("list", _) => list(100, &later),
        _ => watches.pop_front().unwrap_or(Answer::Hang),
    }
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

#[tokio::test]
async fn changes_come_in_order_and_a_deletion_carries_the_last_state() {
    let (feed, open) = stream();
    let fake = Fake::start(script(vec![], vec![], vec![open])).await;
    let mut run = Run::start(config(fake.address)).await;
    assert_eq!(run.listed().await, 0);
    feed.change("ADDED", &app("home", "a", "u1", 11));
    feed.change("MODIFIED", &app("home", "a", "u1", 12));
    assert_eq!((run.next().await, run.next().await), ("home/a u1 11".into(), "home/a u1 12".into()));
    assert_eq!(run.seen.get(&key("home/a")), Some(("u1".into(), Version(12))));
    feed.change("DELETED", &app("home", "a", "u1", 13));
    feed.change("ADDED", &app("home", "a", "u2", 14));
    assert_eq!((run.next().await, run.next().await), ("-home/a u1 13".into(), "home/a u2 14".into()));
    assert_eq!(run.seen.get(&key("home/a")), Some(("u2".into(), Version(14))));
    feed.change("DELETED", &app("home", "a", "u1", 15));
    assert_eq!(run.next().await, "-home/a u1 15");
    assert!(run.seen.get(&key("home/a")).is_some(), "the end of an earlier life is not that of this one");
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_watch_that_ends_goes_on_from_the_last_bookmark() {
    let (first, open) = stream();
    let (second, again) = stream();
    let fake = Fake::start(script(vec![], vec![], vec![open, again])).await;
    let mut run = Run::start(config(fake.address)).await;
    run.until(|note| note == SourceNote::Alive).await;
    first.change("ADDED", &app("home", "a", "u1", 11));
    first.change("BOOKMARK", r#"{"kind":"Widget","metadata":{"resourceVersion":"40"}}"#);
    assert_eq!(run.next().await, "home/a u1 11");
    assert_eq!(run.until(|note| note == SourceNote::Alive).await, [SourceNote::Alive]);
    drop(first);
    second.change("MODIFIED", &app("home", "a", "u1", 41));
    assert_eq!(run.next().await, "home/a u1 41");
    let versions: Vec<_> =
        fake.asked("watch").iter().map(|w| w.get("resourceVersion").unwrap().to_owned()).collect();
    assert_eq!(versions, ["10", "40"]);
    assert_eq!(fake.asked("list").len(), 1, "no list is needed");
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_watch_cut_mid_line_goes_on_from_the_last_whole_change() {
    let (first, open) = stream();
    let (second, short) = stream();
    let (third, again) = stream();
    let fake = Fake::start(script(vec![], vec![], vec![open, short, again])).await;
    let mut run = Run::start(config(fake.address)).await;
    first.change("ADDED", &app("home", "a", "u1", 11));
    assert_eq!(run.next().await, "home/a u1 11");
    first.text(r#"{"type":"MODIFIED","object":{"metadata":{"na"#);
    first.cut();
    let cut = run.until(|note| matches!(note, SourceNote::Broken(_))).await.pop().unwrap();
    assert_eq!(cut, SourceNote::Broken(Reason::CutShort));
    // The same with a clean end of the connection.
    second.text(r#"{"type":"MODIFIED","object":{"metadata":{"na"#);
    drop(second);
    let cut = run.until(|note| matches!(note, SourceNote::Broken(_))).await.pop().unwrap();
    assert_eq!(cut, SourceNote::Broken(Reason::CutShort));
    third.change("MODIFIED", &app("home", "a", "u1", 12));
    assert_eq!(run.next().await, "home/a u1 12");
    let versions: Vec<_> =
        fake.asked("watch").iter().map(|w| w.get("resourceVersion").unwrap().to_owned()).collect();
    assert_eq!(versions, ["10", "11", "11"]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn what_vanished_while_the_watch_was_down_is_found_by_the_next_list() {
    let items = vec![
        app("home", "changed", "u1", 1),
        app("home", "gone", "u2", 2),
        app("home", "again", "u3", 3),
        app("home", "same", "u4", 4),
    ];
    let later =
        vec![app("home", "changed", "u1", 90), app("home", "again", "u5", 91), app("home", "same", "u4", 4)];
    let (feed, open) = stream();
    let fake = Fake::start(script(items, later, vec![open])).await;
    let mut run = Run::start(config(fake.address)).await;
    assert_eq!(run.listed().await, 4);
    run.waiting();
    feed.change("ERROR", r#"{"kind":"Status","status":"Failure","reason":"Expired","code":410}"#);
    assert_eq!(run.listed().await, 3);
    assert_eq!(
        run.waiting(),
        ["home/changed u1 90", "home/again u5 91", "-home/gone u2 100 (gone)"],
        "what is as it was is not handed over again"
    );
    assert_eq!(run.seen.get(&key("home/gone")), None);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_version_that_is_too_old_for_a_watch_is_replaced_by_a_list() {
    let (feed, open) = stream();
    let fake = Fake::start(script(vec![], vec![], vec![Answer::Status(410), open])).await;
    let mut run = Run::start(config(fake.address)).await;
    run.listed().await;
    let notes = run.until(|note| matches!(note, SourceNote::Listed { .. })).await;
    let kind = "widget";
    let stands: Vec<_> = notes
        .into_iter()
        .filter(|note| matches!(note, SourceNote::Kind { .. } | SourceNote::Gap { .. }))
        .collect();
    assert_eq!(
        stands,
        [
            SourceNote::Kind { kind, state: KindState::Unreadable },
            SourceNote::Gap { kind },
            SourceNote::Kind { kind, state: KindState::Watched { objects: 0 } }
        ]
    );
    feed.change("ADDED", &app("home", "a", "u1", 101));
    assert_eq!(run.next().await, "home/a u1 101");
    assert_eq!(fake.asked("watch")[1].get("resourceVersion"), Some("100"));
    run.finish().await.unwrap();
}

#[tokio::test]
async fn it_begins_again_after_every_kind_of_failure() {
    let (last, open) = stream();
    let error = |code: u16| {
        let (feed, answer) = stream();
        feed.change("ERROR", &format!(r#"{{"kind":"Status","code":{code}}}"#));
        answer
    };
    let (ends_at_once, ended) = stream();
    drop(ends_at_once);
    let failures = vec![
        Answer::Status(401),
        Answer::Status(403),
        Answer::Status(404),
        Answer::Status(429),
        Answer::Status(500),
        Answer::Status(503),
        Answer::Status(504),
        Answer::Status(302),
        Answer::Status(400),
        error(500),
        error(410),
        ended,
        Answer::Hang,
        open,
    ];
    let fake = Fake::start(script(vec![], vec![], failures)).await;
    let mut impatient = config(fake.address);
    impatient.call_timeout = Duration::from_secs(2);
    let mut run = Run::start(impatient).await;
    let notes = run.until(|note| note == SourceNote::Broken(Reason::Timeout)).await;
    let mut broken: Vec<Reason> = notes.into_iter().filter_map(reason).collect();
    let notes = run.until(|note| note == SourceNote::Broken(Reason::Timeout)).await;
    broken.extend(notes.into_iter().filter_map(reason));
    assert_eq!(
        broken.iter().map(|reason| reason.as_str()).collect::<Vec<_>>(),
        [
            "unauthorized",
            "forbidden",
            "not_found",
            "rate_limited",
            "server_error",
            "server_error",
            "timeout",
            "redirect",
            "refused",
            "server_error",
            "refused",
            "cut_short",
            "timeout",
        ]
    );
    last.change("ADDED", &app("home", "a", "u1", 101));
    assert_eq!(run.next().await, "home/a u1 101");
    run.finish().await.unwrap();
}

fn reason(note: SourceNote) -> Option<Reason> {
    match note {
        SourceNote::Broken(reason) => Some(reason),
        _ => None,
    }
}

#[tokio::test]
async fn after_three_failures_in_a_row_it_lists_again() {
    let failures = (0..7).map(|_| Answer::Status(400)).collect();
    let fake = Fake::start(script(vec![], vec![], failures)).await;
    let mut run = Run::start(config(fake.address)).await;
    for _ in 0..7 {
        run.until(|note| note == SourceNote::Broken(Reason::Refused)).await;
    }
    assert_eq!(fake.asked("list").len(), 3);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_away_is_no_reason_for_a_list() {
    let (feed, open) = stream();
    let mut failures: Vec<Answer> = [503, 401, 429, 403, 503].map(Answer::Status).into();
    failures.push(open);
    let fake = Fake::start(script(vec![], vec![], failures)).await;
    let mut run = Run::start(config(fake.address)).await;
    feed.change("ADDED", &app("home", "a", "u1", 101));
    assert_eq!(run.next().await, "home/a u1 101");
    assert_eq!(fake.asked("list").len(), 1);
    let versions: Vec<_> =
        fake.asked("watch").iter().map(|asked| asked.get("resourceVersion").map(str::to_owned)).collect();
    assert_eq!(versions, [(); 6].map(|()| Some("10".to_owned())), "it goes on from where it was");
    run.finish().await.unwrap();
}

#[tokio::test]
async fn after_an_absence_a_version_that_is_too_old_is_replaced_without_the_wait_of_an_absence() {
    let mut failures: Vec<Answer> = (0..6).map(|_| Answer::Status(503)).collect();
    failures.extend([Answer::Status(410), Answer::Status(410), Answer::Hang]);
    let fake = Fake::start(script(vec![], vec![], failures)).await;
    let mut patient = config(fake.address);
    (patient.backoff_min, patient.backoff_max) = (Duration::from_millis(300), Duration::from_secs(60));
    let mut run = Run::start(patient).await;
    run.listed().await;
    run.until(|note| note == SourceNote::Broken(Reason::Refused)).await;
    let begun = Instant::now();
    run.listed().await;
    // The seventh failure in a row would wait for at least 9.6 s.
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    run.until(|note| note == SourceNote::Broken(Reason::Refused)).await;
    let begun = Instant::now();
    run.listed().await;
    assert!(begun.elapsed() > Duration::from_millis(10), "what does not help is not repeated without pause");
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_server_that_repeats_itself_is_not_asked_without_pause() {
    let repeated = || {
        let (feed, answer) = stream();
        feed.change("ADDED", &app("home", "a", "u1", 11));
        answer
    };
    let fake = Fake::start(script(vec![], vec![], vec![repeated(), repeated(), repeated()])).await;
    let mut run = Run::start(config(fake.address)).await;
    for _ in 0..2 {
        let notes = run.until(|note| matches!(note, SourceNote::Broken(_))).await;
        assert_eq!(notes.last(), Some(&SourceNote::Broken(Reason::CutShort)));
    }
    assert_eq!(run.waiting(), ["home/a u1 11"; 3], "the first is progress, the others are not");
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_watch_that_was_open_and_is_cut_goes_on_and_is_no_failure() {
    let (feeds, mut answers): (Vec<_>, Vec<_>) = (0..5).map(|_| stream()).unzip();
    let (last, open) = stream();
    answers.push(open);
    let fake = Fake::start(script(vec![], vec![], answers)).await;
    let mut behind = config(fake.address);
    behind.settled = Duration::ZERO;
    let mut run = Run::start(behind).await;
    run.listed().await;
    let mut notes = Vec::new();
    for feed in feeds {
        notes.extend(run.until(|note| note == SourceNote::Alive).await);
        feed.cut();
    }
    last.change("ADDED", &app("home", "a", "u1", 101));
    assert_eq!(run.next().await, "home/a u1 101");
    assert!(!notes.iter().any(|note| matches!(note, SourceNote::Broken(_) | SourceNote::Gap { .. })));
    assert_eq!(fake.asked("list").len(), 1, "no list is needed");
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_silent_watch_is_taken_for_dead() {
    let (_silent, open) = stream();
    let (feed, again) = stream();
    let fake = Fake::start(script(vec![], vec![], vec![open, again])).await;
    let mut impatient = config(fake.address);
    impatient.idle_limit = Duration::from_secs(2);
    let mut run = Run::start(impatient).await;
    let notes = run.until(|note| matches!(note, SourceNote::Broken(_))).await;
    assert_eq!(notes.last(), Some(&SourceNote::Broken(Reason::Timeout)));
    feed.change("ADDED", &app("home", "a", "u1", 11));
    assert_eq!(run.next().await, "home/a u1 11");
    run.finish().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_read_is_skipped_counted_and_made_good_by_a_list() {
    let (feed, open) = stream();
    let later = vec![app("home", "a", "u1", 11), app("home", "missed", "u2", 12)];
    let fake = Fake::start(script(vec![], later, vec![open])).await;
    let mut bounded = config(fake.address);
    bounded.max_body = 2_000;
    let mut run = Run::start(bounded).await;
    run.until(|note| note == SourceNote::Alive).await;
    feed.text("this is not json\n\n");
    feed.text(&format!("{{\"type\":\"ADDED\",\"object\":{{\"x\":\"{}\"}}}}\n", "y".repeat(3_000)));
    feed.change("RENAMED", "{}");
    feed.change("ADDED", r#"{"metadata":{"name":"no-uid","namespace":"home","resourceVersion":"13"}}"#);
    feed.change("ADDED", r#"{"metadata":"none"}"#);
    feed.change("ADDED", &app("home", "a", "u1", 11));
    assert_eq!(run.next().await, "home/a u1 11");
    assert_eq!(fake.asked("watch").len(), 1, "the watch went on");
    drop(feed);
    let notes = run.until(|note| matches!(note, SourceNote::Listed { .. })).await;
    assert_eq!(notes.iter().filter(|note| **note == SourceNote::Malformed).count(), 5);
    assert!(!notes.iter().any(|note| matches!(note, SourceNote::Broken(_))));
    assert_eq!(run.waiting(), ["home/missed u2 12"]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn an_unreadable_deletion_is_found_by_a_list() {
    let (feed, open) = stream();
    let fake = Fake::start(script(vec![app("home", "a", "u1", 1)], vec![], vec![open])).await;
    let mut run = Run::start(config(fake.address)).await;
    assert_eq!(run.next().await, "home/a u1 1");
    run.until(|note| note == SourceNote::Alive).await;
    feed.change("DELETED", r#"{"metadata":{"name":"a","namespace":"home","resourceVersion":"13"}}"#);
    drop(feed);
    assert_eq!(run.next().await, "-home/a u1 100 (gone)");
    run.finish().await.unwrap();
}

#[tokio::test]
async fn changes_elsewhere_and_of_other_shards_are_not_handed_over() {
    let (feed, open) = stream();
    let fake = Fake::start(script(vec![], vec![], vec![open])).await;
    let mut wide = config(fake.address);
    wide.namespaces = vec!["team-*".to_owned()];
    let mut run = Run::with(wide, &[], |key| key.name() != "theirs").await;
    run.until(|note| note == SourceNote::Alive).await;
    feed.change("ADDED", &app("kube-system", "x", "u1", 11));
    feed.change("ADDED", &app("team-a", "theirs", "u2", 12));
    feed.change("ADDED", &app("team-a", "ours", "u3", 13));
    assert_eq!(run.next().await, "team-a/ours u3 13");
    assert_eq!(run.seen.get(&key("kube-system/x")), None);
    assert!(run.seen.get(&key("team-a/theirs")).is_some());
    run.finish().await.unwrap();
}

#[tokio::test]
async fn the_servers_wish_to_wait_is_granted() {
    let fake = Fake::start(|asked| match (asked.kind(), asked.nth) {
        ("list", 0) => Answer::RetryAfter(429, 1),
        ("list", _) => list(10, &[]),
        _ => Answer::Hang,
    })
    .await;
    let begun = Instant::now();
    let mut run = Run::start(config(fake.address)).await;
    run.listed().await;
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    run.finish().await.unwrap();
}

#[tokio::test]
async fn it_stops_quickly_wherever_it_waits() {
    let waits: [fn() -> Answer; 4] =
        [|| Answer::Hang, || Answer::RetryAfter(429, 60), || list(10, &[]), || Answer::Status(500)];
    for wait in waits {
        let fake = Fake::start(move |asked| if asked.kind() == "list" { wait() } else { Answer::Hang }).await;
        let mut run = Run::start(config(fake.address)).await;
        run.until(|note| note == SourceNote::Listing).await;
        run.finish().await.unwrap();
    }
}

#[tokio::test]
async fn it_ends_when_nobody_listens() {
    let (feed, open) = stream();
    let fake = Fake::start(script(vec![], vec![], vec![open])).await;
    let mut run = Run::start(config(fake.address)).await;
    run.until(|note| note == SourceNote::Alive).await;
    let ended = run.nobody_listens();
    feed.change("ADDED", &app("home", "a", "u1", 11));
    ended.await.unwrap();
}

#[tokio::test]
async fn what_never_comes_over_watches_that_stay_open_is_found_by_a_list() {
    let (_silent, answers): (Vec<_>, Vec<_>) = (0..3).map(|_| stream()).unzip();
    let fake = Fake::start(script(vec![], vec![app("home", "missed", "u2", 12)], answers)).await;
    let mut behind = config(fake.address);
    (behind.settled, behind.idle_limit) = (Duration::ZERO, Duration::from_millis(50));
    let mut run = Run::start(behind).await;
    assert_eq!(run.next().await, "home/missed u2 12");
    run.finish().await.unwrap();
}
