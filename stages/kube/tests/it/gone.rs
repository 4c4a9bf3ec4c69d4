//! What is gone, and what only seems to be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pipeline_core::{Key, Reason, Source as _, SourceNote, Version};

use crate::fake::{Answer, Asked, Fake, app, cut, list, page, stream};
use crate::harness::{Run, config};

fn named(count: usize) -> Vec<(String, String)> {
    (0..count).map(|n| (format!("home/app-{n:02}"), format!("u{n}"))).collect()
}

fn borrowed(known: &[(String, String)]) -> Vec<(&str, &str)> {
    known.iter().map(|(key, uid)| (key.as_str(), uid.as_str())).collect()
}

/// The widgets of `named`, from `from` on.
fn items(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|n| app("home", &format!("app-{n:02}"), &format!("u{n}"), 1)).collect()
}

fn broken(notes: &[SourceNote]) -> Vec<Reason> {
    let reason = |note: &SourceNote| match note {
        SourceNote::Broken(reason) => Some(*reason),
        _ => None,
    };
    notes.iter().filter_map(reason).collect()
}

#[tokio::test]
async fn deleted_while_the_watch_was_down_for_a_moment() {
    let (first, open) = stream();
    let (second, again) = stream();
    let mut watches = vec![open, again].into_iter();
    let fake = Fake::start(move |asked| match asked.kind() {
        "list" => list(10, &[app("home", "a", "u1", 1), app("home", "b", "u2", 2)]),
        _ => watches.next().unwrap_or(Answer::Hang),
    })
    .await;
    let mut run = Run::start(config(fake.address)).await;
    run.until(|note| note == SourceNote::Alive).await;
    run.waiting();
    first.cut();
    second.change("DELETED", &app("home", "a", "u1", 11));
    second.change("DELETED", &app("home", "b", "u2", 12));
    second.change("ADDED", &app("home", "b", "u3", 13));
    assert_eq!(run.next().await, "-home/a u1 11");
    assert_eq!(run.next().await, "-home/b u2 12");
    assert_eq!(run.next().await, "home/b u3 13");
    assert_eq!(fake.asked("list").len(), 1, "the server still knew what had happened");
    run.finish().await.unwrap();
}

/// What an API server runs on, to take it away with all its connections.
struct Machine(Option<tokio::runtime::Runtime>);

impl Machine {
    fn new() -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        Self(Some(runtime.worker_threads(1).enable_all().build().unwrap()))
    }

    async fn stop(mut self) {
        let runtime = self.0.take().unwrap();
        let stopped = move || runtime.shutdown_timeout(Duration::from_secs(10));
        tokio::task::spawn_blocking(stopped).await.unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(tokio::runtime::Runtime::shutdown_background);
    }
}

#[tokio::test]
async fn deleted_while_the_api_server_could_not_be_reached() {
    let before = Machine::new();
    let (_feed, open) = stream();
    let mut open = Some(open);
    // Bound and not listening, so that nobody else is given the port between the two.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.set_reuseaddr(true).unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = held.local_addr().unwrap();
    let fake = Fake::start_at(address, move |asked| match asked.kind() {
        "list" => {
            list(10, &[app("home", "a", "u1", 1), app("home", "b", "u2", 2), app("home", "c", "u3", 3)])
        }
        _ => open.take().unwrap_or(Answer::Hang),
    });
    let _fake = before.0.as_ref().unwrap().spawn(fake).await.unwrap();
    let mut run = Run::start(config(address)).await;
    run.until(|note| note == SourceNote::Alive).await;
    run.waiting();
    before.stop().await;
    run.until(|note| note == SourceNote::Broken(Reason::Unreachable)).await;
    assert_eq!(run.waiting(), [""; 0], "that it cannot be reached says nothing of what is there");
    // Back, and so late that its history does not reach back to where the watch was.
    let fake = Fake::start_at(address, |asked| match (asked.kind(), asked.get("resourceVersion")) {
        ("list", _) => list(900, &[app("home", "a", "u1", 1), app("home", "b", "again", 800)]),
        ("watch", Some("10")) => Answer::Status(410),
        _ => Answer::Hang,
    })
    .await;
    let (_, deleted, there) = run.until_listed().await;
    assert_eq!((deleted, there), (vec!["-home/c u3 900 (gone)".into()], vec!["home/b again 800".into()]));
    assert_eq!(fake.asked("get").len(), 0);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn read_before_any_list_showed_it_and_missing_in_the_next() {
    let (feed, open) = stream();
    let mut open = Some(open);
    let stays = app("home", "c", "u3", 30);
    let fake = Fake::start(move |asked| match (asked.kind(), asked.path.rsplit('/').next()) {
        ("get", Some("app-00")) => Answer::Json(app("home", "app-00", "again", 15)),
        ("get", Some("b")) => Answer::Json(app("home", "b", "u2", 20)),
        ("get", Some("c")) => Answer::Json(stays.clone()),
        ("get", _) => Answer::Json(app("other", "d", "u4", 40)),
        ("list", _) if asked.nth == 0 => list(10, &items(0, 2)),
        ("list", _) => list(60, &[&items(1, 2)[..], std::slice::from_ref(&stays)].concat()),
        _ => open.take().unwrap_or(Answer::Hang),
    })
    .await;
    let mut run = Run::start(config(fake.address)).await;
    run.until_listed().await;
    // The watch tells of none of them.
    for key in ["home/app-00", "home/b", "home/c", "other/d"] {
        assert!(run.watch.read(&Key::parse(key).unwrap(), Version(0)).await.unwrap().is_some());
    }
    assert_eq!(run.waiting(), [""; 0], "what is read is given to whoever asked");
    feed.change("ERROR", r#"{"kind":"Status","code":410}"#);
    let (_, deleted, there) = run.until_listed().await;
    // What is in a namespace that is not watched is in no list, and not gone.
    assert_eq!(deleted, ["-home/app-00 again 60 (gone)", "-home/b u2 60 (gone)"], "the lives that were read");
    assert_eq!(there, ["home/c u3 30"], "whoever read it may have done so only to compare");
    assert_eq!(run.seen.len(), 2);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn recreated_while_the_process_was_down() {
    let fake = Fake::listing(50, &[app("home", "a", "new", 40)]).await;
    let mut run = Run::with(config(fake.address), &[("home/a", "old")], |_| true).await;
    let (_, deleted, there) = run.until_listed().await;
    // Its key lives: whoever remembers the old uid sees by the new one that a life has ended.
    assert_eq!((deleted, there), (vec![], vec!["home/a new 40".into()]));
    run.finish().await.unwrap();
}

#[tokio::test]
async fn recreated_between_two_pages() {
    let (feed, open) = stream();
    let mut open = Some(open);
    let fake = Fake::start(move |asked| match (asked.kind(), asked.nth) {
        ("list", 0) => page(50, "1", &[app("home", "a", "old", 1)]),
        ("list", 1) => page(50, "", &[app("home", "b", "u2", 2)]),
        // Meanwhile the history was lost.
        ("list", _) => list(90, &[app("home", "a", "newest", 80), app("home", "b", "u2", 2)]),
        _ => open.take().unwrap_or(Answer::Hang),
    })
    .await;
    let mut run = Run::start(config(fake.address)).await;
    let (_, deleted, there) = run.until_listed().await;
    assert_eq!((deleted, there), (vec![], vec!["home/a old 1".into(), "home/b u2 2".into()]));
    // All pages show the same moment; what came after it comes over the watch.
    feed.change("DELETED", &app("home", "a", "old", 51));
    feed.change("ADDED", &app("home", "a", "new", 52));
    assert_eq!((run.next().await, run.next().await), ("-home/a old 51".into(), "home/a new 52".into()));
    feed.change("ERROR", r#"{"kind":"Status","code":410}"#);
    let (_, deleted, there) = run.until_listed().await;
    assert_eq!((deleted, there), (vec![], vec!["home/a newest 80".into()]));
    assert_eq!(fake.asked("watch")[0].get("resourceVersion"), Some("50"));
    run.finish().await.unwrap();
}

/// The first page of a list and every way in which the second can fail, as answer and what is said of it.
fn second_pages() -> Vec<(Answer, Reason)> {
    let text = |text: &str| Answer::Raw(200, text.to_owned());
    vec![
        (Answer::Status(500), Reason::ServerError),
        (Answer::Status(503), Reason::ServerError),
        (Answer::Status(410), Reason::Refused),
        (Answer::Status(404), Reason::NotFound),
        (Answer::Status(401), Reason::Unauthorized),
        (cut(""), Reason::CutShort),
        (cut(r#"{"kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":["#), Reason::CutShort),
        (cut(r#"{"kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":[]}"#), Reason::CutShort),
        (text(""), Reason::Malformed),
        (text("{}"), Reason::Malformed),
        (text("[]"), Reason::Malformed),
        (text("null"), Reason::Malformed),
        (text(r#"{"kind":"Status","metadata":{"resourceVersion":"9"},"code":200}"#), Reason::Malformed),
        (text(r#"{"metadata":{"resourceVersion":""},"items":[]}"#), Reason::Malformed),
        (text(r#"{"metadata":{"resourceVersion":"9"},"items":{}}"#), Reason::Malformed),
        (Answer::Hang, Reason::Timeout),
    ]
}

#[tokio::test]
async fn a_second_page_that_fails_in_any_way_deletes_nothing() {
    for (failure, reason) in second_pages() {
        let mut failure = Some(failure);
        let fake = Fake::start(move |asked| match (asked.kind(), asked.nth) {
            ("list", 0) => page(50, "next", &items(0, 2)),
            ("list", 1) => failure.take().unwrap(),
            ("list", _) => list(60, &items(0, 4)),
            _ => Answer::Hang,
        })
        .await;
        let mut impatient = config(fake.address);
        impatient.call_timeout = Duration::from_secs(2);
        let known = named(5);
        let mut run = Run::with(impatient, &borrowed(&known), |_| true).await;
        let notes = run.until(|note| matches!(note, SourceNote::Broken(_))).await;
        let met = broken(&notes);
        // How a connection that closes without an answer is told depends on who notices first.
        assert!(
            met == [reason] || (reason, &met[..]) == (Reason::CutShort, &[Reason::Unreachable]),
            "{met:?}"
        );
        let (notes, deleted, _) = run.until_listed().await;
        assert_eq!(
            (broken(&notes), deleted),
            (vec![], vec!["-home/app-04 u4 60 (gone)".into()]),
            "{reason:?}"
        );
        run.finish().await.unwrap();
    }
}

#[tokio::test]
async fn an_empty_list_is_believed_of_a_few_and_confirmed_by_name_of_many() {
    // Of 9 all may vanish; of 12 six, but not seven.
    for (known, there, asked_for) in [(9, 0, 0), (12, 6, 0), (12, 5, 7), (12, 0, 12), (30, 0, 30)] {
        let fake = Fake::start(move |asked| match asked.kind() {
            "list" => list(50, &items(0, there)),
            "get" => Answer::Status(404),
            _ => Answer::Hang,
        })
        .await;
        let names = named(known);
        let begun = Instant::now();
        let mut run = Run::with(config(fake.address), &borrowed(&names), |_| true).await;
        let (notes, deleted, _) = run.until_listed().await;
        let expected: Vec<_> = (there..known).map(|n| format!("-home/app-{n:02} u{n} 50 (gone)")).collect();
        assert_eq!((broken(&notes), deleted), (vec![], expected));
        let gets = fake.asked("get");
        assert_eq!(gets.len(), asked_for);
        assert!(gets.iter().all(|get| get.get("resourceVersion").is_none()), "from the store, not a cache");
        assert!(begun.elapsed() >= Duration::from_millis(20) * u32::try_from(asked_for.div_ceil(8)).unwrap());
        run.finish().await.unwrap();
    }
}

#[tokio::test]
async fn what_others_own_is_not_asked_for() {
    let fake = Fake::start(|asked| match (asked.kind(), asked.nth) {
        ("list", 0) => list(50, &items(0, 40)),
        ("list", _) => list(60, &[]),
        ("get", _) => Answer::Status(404),
        ("watch", 0) => Answer::Status(410),
        _ => Answer::Hang,
    })
    .await;
    let ours = |key: &Key| key.name() < "app-11";
    let mut run = Run::with(config(fake.address), &[], ours).await;
    run.until_listed().await;
    let (_, deleted, _) = run.until_listed().await;
    assert_eq!((deleted.len(), fake.asked("get").len(), run.seen.len()), (11, 11, 0));
    run.finish().await.unwrap();
}

/// An API server that lists nothing at first and answers as `by_name` says; later it lists all 12 but the first.
async fn emptied(by_name: impl Fn(&Asked) -> Answer + Send + 'static) -> (Fake, Run) {
    let fake = Fake::start(move |asked| match (asked.kind(), asked.nth) {
        ("list", 0) => list(50, &[]),
        ("list", _) => list(60, &items(1, 12)),
        ("get", _) => by_name(asked),
        _ => Answer::Hang,
    })
    .await;
    let known = named(12);
    let run = Run::with(config(fake.address), &borrowed(&known), |_| true).await;
    (fake, run)
}

#[tokio::test]
async fn an_empty_list_that_is_not_true_deletes_nothing() {
    let there = |asked: &Asked| {
        let name = asked.path.rsplit('/').next().unwrap();
        app("home", name, &format!("u{}", name.trim_start_matches("app-").trim_start_matches('0')), 1)
    };
    let other = |asked: &Asked, uid: &str, version: u64| {
        app("home", asked.path.rsplit('/').next().unwrap(), uid, version)
    };
    type ByName = Box<dyn Fn(&Asked) -> Answer + Send>;
    let answers: [(ByName, Reason); 6] = [
        (Box::new(move |asked| Answer::Json(there(asked))), Reason::Malformed),
        // Older than the list and not in it.
        (Box::new(move |asked| Answer::Json(other(asked, "x", 40))), Reason::Malformed),
        (Box::new(|_| Answer::Json("{}".to_owned())), Reason::Malformed),
        (Box::new(|_| Answer::Status(500)), Reason::ServerError),
        (Box::new(|_| Answer::Status(403)), Reason::Forbidden),
        // A server that does not know widgets at all.
        (Box::new(|_| Answer::Raw(404, "404 page not found\n".to_owned())), Reason::NotFound),
    ];
    for (by_name, reason) in answers {
        let (fake, mut run) = emptied(by_name).await;
        let (notes, deleted, there) = run.until_listed().await;
        assert_eq!(broken(&notes), [reason]);
        assert_eq!((deleted, there.len()), (vec!["-home/app-00 u0 60 (gone)".into()], 11), "{reason:?}");
        assert_eq!(fake.asked("get").len(), 8, "the first answers were enough");
        run.finish().await.unwrap();
    }
}

#[tokio::test]
async fn those_that_are_not_found_are_deleted_although_the_list_is_not_believed() {
    let (_fake, mut run) = emptied(|asked| match asked.path.ends_with("/app-03") {
        true => Answer::Status(500),
        false => Answer::Status(404),
    })
    .await;
    run.until(|note| note == SourceNote::Broken(Reason::ServerError)).await;
    assert_eq!(
        run.waiting(),
        ["-home/app-00 u0 50 (gone)", "-home/app-01 u1 50 (gone)", "-home/app-02 u2 50 (gone)"]
    );
    run.finish().await.unwrap();
}

#[tokio::test]
async fn what_was_created_anew_after_the_list_is_the_end_of_the_earlier_life() {
    let (_fake, mut run) =
        emptied(|asked| Answer::Json(app("home", asked.path.rsplit('/').next().unwrap(), "new", 51))).await;
    let (notes, deleted, _) = run.until_listed().await;
    assert_eq!((broken(&notes).len(), deleted.len()), (0, 12));
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_namespace_that_is_no_longer_watched_is_not_taken_for_empty() {
    // The API server would answer for all namespaces; the process is started three times.
    let here = Arc::new(AtomicBool::new(true));
    let answers = here.clone();
    let fake = Fake::start(move |asked| match asked.kind() {
        "list" if asked.path.contains("/namespaces/home/") => list(50, &[app("home", "own", "u1", 1)]),
        "list" => {
            let mut all = vec![app("home", "own", "u1", 1)];
            all.extend(answers.load(Ordering::Relaxed).then(|| app("team-a", "x", "u2", 2)));
            list(50, &all)
        }
        _ => Answer::Hang,
    })
    .await;
    let known = [("home/own", "u1"), ("team-a/x", "u2"), ("team-a/y", "u3")];
    let narrow = config(fake.address);
    let mut wide = narrow.clone();
    wide.namespaces = vec!["team-*".to_owned()];

    let mut run = Run::with(narrow, &known, |_| true).await;
    let (_, deleted, there) = run.until_listed().await;
    assert_eq!((deleted, there), (vec![], vec!["home/own u1 1".into()]));
    run.finish().await.unwrap();
    // The pattern is back, and one of the two was deleted meanwhile.
    let mut run = Run::with(wide.clone(), &known, |_| true).await;
    let (_, deleted, there) = run.until_listed().await;
    assert_eq!(deleted, ["-team-a/y u3 50 (gone)"]);
    assert_eq!(there, ["home/own u1 1", "team-a/x u2 2"]);
    run.finish().await.unwrap();
    here.store(false, Ordering::Relaxed);
    let mut run = Run::with(wide, &known, |_| true).await;
    let (_, deleted, _) = run.until_listed().await;
    assert_eq!(deleted, ["-team-a/x u2 50 (gone)", "-team-a/y u3 50 (gone)"]);
    run.finish().await.unwrap();
}
