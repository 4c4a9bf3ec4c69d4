//! Lists: pages, what vanished, what cannot be read, which namespaces.

use pipeline_core::{Change, KindState, Outcome, Reason, SourceNote, Version};

use crate::fake::{ALL, Answer, Fake, HOME, app, list, page, paged, stream};
use crate::harness::{Run, config};
use stages_kube::labels;

fn many(count: u64) -> Vec<String> {
    (0..count).map(|n| app("home", &format!("app-{n:03}"), &format!("u{n}"), n + 1)).collect()
}

#[tokio::test]
async fn a_list_of_250_comes_in_three_pages() {
    let items = many(250);
    let (_feed, open) = stream();
    let mut open = Some(open);
    let fake = Fake::start(move |asked| match asked.kind() {
        "list" => paged(asked, 900, &items),
        _ => open.take().unwrap_or(Answer::Hang),
    })
    .await;
    let mut run = Run::start(config(fake.address)).await;
    let notes = run.until(|note| note == SourceNote::Alive).await;
    assert_eq!(
        notes,
        [
            SourceNote::Listing,
            SourceNote::Page { objects: 100 },
            SourceNote::Page { objects: 100 },
            SourceNote::Page { objects: 50 },
            SourceNote::Kind { kind: "widget", state: KindState::Watched { objects: 250 } },
            SourceNote::Listed { objects: 250 },
            SourceNote::Alive
        ]
    );
    let events = run.waiting();
    assert_eq!(events.len(), 250);
    assert_eq!((events[0].as_str(), events[249].as_str()), ("home/app-000 u0 1", "home/app-249 u249 250"));
    assert_eq!(run.seen.len(), 250);

    let pages = fake.asked("list");
    assert!(pages.iter().all(|asked| asked.path == HOME && asked.get("limit") == Some("100")));
    let tokens: Vec<_> = pages.iter().map(|asked| asked.get("continue")).collect();
    assert_eq!(tokens, [None, Some("100"), Some("200")]);
    let watch = &fake.asked("watch")[0];
    assert_eq!((watch.get("resourceVersion"), watch.get("allowWatchBookmarks")), (Some("900"), Some("true")));
    let seconds: u32 = watch.get("timeoutSeconds").unwrap().parse().unwrap();
    assert!((232..=290).contains(&seconds), "{seconds}");

    let samples = run.samples.0.lock().unwrap().clone();
    let calls: Vec<_> = samples.iter().map(|sample| (sample.call, sample.outcome)).collect();
    let list = (labels::LIST, Outcome::Ok);
    assert_eq!(calls, [list, list, list, (labels::WATCH, Outcome::Ok)]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn the_first_list_asks_between_its_pages_whether_it_may_go_on_and_later_ones_do_not() {
    let items = many(250);
    let mut watches = 0;
    let fake = Fake::start(move |asked| match asked.kind() {
        "list" => paged(asked, 900, &items),
        _ => {
            watches += 1;
            if watches == 1 { Answer::Status(410) } else { Answer::Hang }
        }
    })
    .await;
    let mut run = Run::start(config(fake.address)).await;
    for _ in 0..2 {
        run.until(|note| note == SourceNote::Listed { objects: 250 }).await;
    }
    assert_eq!(*run.paced.lock().unwrap(), [100, 200]);
    assert_eq!(fake.asked("list").len(), 6);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn the_body_is_what_the_server_sent_and_the_mapping_completes_the_event() {
    let object = r#"{ "kind":"Application", "metadata":{"name":"a","namespace":"home","uid":"u1","resourceVersion":"7"}, "status":{"trace":7} , "spec":{"n":1.0}}"#;
    let fake = Fake::listing(9, &[object.to_owned()]).await;
    let mut run = Run::start(config(fake.address)).await;
    let event = run.event().await;
    assert_eq!(event.change, Change::Applied { body: object.into() });
    assert_eq!(event.trace, 7);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_skipped_and_counted() {
    let fake = Fake::start(|asked| match asked.kind() {
        "list" => list(
            9,
            &[
                app("home", "a", "u1", 1),
                r#"{"metadata":{"namespace":"home","uid":"u2","resourceVersion":"2"}}"#.to_owned(),
                "17".to_owned(),
                app("home", "b", "u3", 3).replace("\"u3\"", "3"),
                app("home", "c", "u4", 4).replace("\"metadata\":{", "\"metadata\":{\"labels\":{\"n\":1},"),
            ],
        ),
        "get" => Answer::Status(404),
        _ => Answer::Hang,
    })
    .await;
    let mut run = Run::start(config(fake.address)).await;
    let notes = run.until(|note| matches!(note, SourceNote::Listed { .. })).await;
    assert_eq!(notes.iter().filter(|note| **note == SourceNote::Malformed).count(), 3);
    assert!(
        notes.contains(&SourceNote::Page { objects: 5 })
            && notes.contains(&SourceNote::Listed { objects: 2 })
    );
    assert_eq!(run.waiting(), ["home/a u1 1", "home/c u4 4"]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn what_the_ledger_knew_and_the_first_list_lacks_is_deleted() {
    let fake = Fake::listing(50, &[app("home", "stays", "u1", 1), app("home", "again", "new", 2)]).await;
    let known = [
        ("home/stays", "u1"),
        ("home/again", "old"),
        ("home/gone", "u3"),
        ("home/other-shard", "u4"),
        ("elsewhere/gone", "u5"),
    ];
    let wants = |key: &pipeline_core::Key| key.name() != "other-shard";
    let mut run = Run::with(config(fake.address), &known, wants).await;
    assert_eq!(run.listed().await, 2);
    assert_eq!(run.waiting(), ["home/stays u1 1", "home/again new 2", "-home/gone u3 50 (gone)"]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn an_unreadable_object_is_not_taken_for_deleted() {
    let nameless = r#"{"metadata":{"namespace":"home","uid":"u9","resourceVersion":"2"}}"#;
    let no_uid = r#"{"metadata":{"namespace":"home","name":"no-uid","resourceVersion":"2"}}"#;
    let fake = Fake::start(move |asked| match asked.kind() {
        "list" => list(50, &[nameless.to_owned(), no_uid.to_owned()]),
        "get" if asked.path.ends_with("/gone") => Answer::Status(404),
        "get" => Answer::Json(nameless.to_owned()),
        _ => Answer::Hang,
    })
    .await;
    let known = [("home/gone", "u1"), ("home/hidden", "u9"), ("home/no-uid", "u3")];
    let mut run = Run::with(config(fake.address), &known, |_| true).await;
    assert_eq!(run.listed().await, 0);
    assert_eq!(run.waiting(), ["-home/gone u1 50 (gone)"]);
    let mut confirmed: Vec<_> = fake.asked("get").into_iter().map(|asked| asked.path).collect();
    confirmed.sort();
    assert_eq!(confirmed, [format!("{HOME}/gone"), format!("{HOME}/hidden")]);
    assert!(run.seen.get(&"home/hidden".parse_key()).is_some(), "it is asked for again at the next list");
    run.finish().await.unwrap();
}

trait ParseKey {
    fn parse_key(&self) -> pipeline_core::Key;
}

impl ParseKey for &str {
    fn parse_key(&self) -> pipeline_core::Key {
        pipeline_core::Key::parse(self).unwrap()
    }
}

#[tokio::test]
async fn a_list_that_failed_half_way_deletes_nothing() {
    let items = many(150);
    let fake = Fake::start(move |asked| match (asked.kind(), asked.nth) {
        // Lists fail at their second page in every way there is, before one goes through.
        ("list", 1) => Answer::Status(410),
        ("list", 3) => Answer::Status(500),
        ("list", 5) => {
            Answer::Raw(200, "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{\"a\":".to_owned())
        }
        ("list", 7) => Answer::Raw(200, "<html>sign in</html>".to_owned()),
        ("list", 9) => page(900, "100", &[]),
        ("list", 11) => page(900, "", &[]).without_version(),
        ("list", _) => paged(asked, 900, &items),
        _ => Answer::Hang,
    })
    .await;
    let mut run =
        Run::with(config(fake.address), &[("home/app-149", "u149"), ("home/gone", "x")], |_| true).await;
    let notes = run.until(|note| matches!(note, SourceNote::Listed { .. })).await;
    let broken: Vec<_> = notes.iter().filter(|note| matches!(note, SourceNote::Broken(_))).collect();
    assert_eq!(
        broken,
        [
            &SourceNote::Broken(Reason::Refused),
            &SourceNote::Broken(Reason::ServerError),
            &SourceNote::Broken(Reason::Malformed),
            &SourceNote::Broken(Reason::Malformed),
            &SourceNote::Broken(Reason::Malformed),
            &SourceNote::Broken(Reason::Malformed)
        ]
    );
    let events = run.waiting();
    let deleted: Vec<_> = events.iter().filter(|event| event.starts_with('-')).collect();
    assert_eq!(deleted, ["-home/gone x 900 (gone)"]);
    assert_eq!(events.len(), 6 * 100 + 150 + 1, "every try hands over what it reached");
    assert_eq!(events.last().unwrap(), deleted[0], "deletions come last");
    run.finish().await.unwrap();
}

impl Answer {
    fn without_version(self) -> Self {
        match self {
            Self::Json(text) => Self::Json(text.replace("resourceVersion", "version")),
            other => other,
        }
    }
}

#[tokio::test]
async fn pages_larger_than_the_bound_are_asked_for_smaller() {
    let items = many(40);
    let fake = Fake::start(move |asked| match asked.kind() {
        "list" => paged(asked, 900, &items),
        _ => Answer::Hang,
    })
    .await;
    let mut bounded = config(fake.address);
    bounded.max_body = 2_500;
    let mut run = Run::start(bounded).await;
    assert_eq!(run.listed().await, 40);
    assert_eq!(run.waiting().len(), 40);
    let limits: Vec<_> =
        fake.asked("list").iter().map(|asked| asked.get("limit").unwrap().to_owned()).collect();
    assert_eq!(limits, ["100", "50", "25", "12", "12", "12", "12"]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn an_object_larger_than_the_bound_fails_the_list_and_says_so() {
    let fake = Fake::listing(9, &[app("home", &"x".repeat(5_000), "u1", 1)]).await;
    let mut bounded = config(fake.address);
    bounded.max_body = 2_500;
    let mut run = Run::start(bounded).await;
    let notes = run.until(|note| matches!(note, SourceNote::Broken(_))).await;
    assert_eq!(notes, [SourceNote::Listing, SourceNote::Broken(Reason::TooLarge)]);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn patterns_widen_the_watch_to_the_cluster() {
    let fake = Fake::listing(
        9,
        &[
            app("home", "own", "u1", 1),
            app("team-a", "x", "u2", 2),
            app("kube-system", "no", "u3", 3),
            app("blue-17", "y", "u4", 4),
        ],
    )
    .await;
    let mut wide = config(fake.address);
    wide.namespaces = stages_kube::Namespaces::split(r"team-*, /^blue-\d+$/");
    let mut run = Run::with(wide, &[("kube-system/old", "u5"), ("team-b/old", "u6")], |_| true).await;
    assert_eq!(run.listed().await, 3);
    assert_eq!(
        run.waiting(),
        ["home/own u1 1", "team-a/x u2 2", "blue-17/y u4 4", "-team-b/old u6 9 (gone)"]
    );
    assert_eq!(fake.asked("list")[0].path, ALL);
    assert_eq!(run.seen.len(), 3);
    run.finish().await.unwrap();
}

#[tokio::test]
async fn objects_of_other_shards_are_seen_but_not_handed_over() {
    let fake = Fake::listing(9, &[app("home", "ours", "u1", 1), app("home", "theirs", "u2", 2)]).await;
    let mut run = Run::with(config(fake.address), &[], |key| key.name() == "ours").await;
    assert_eq!(run.listed().await, 2);
    assert_eq!(run.waiting(), ["home/ours u1 1"]);
    assert_eq!(run.seen.get(&"home/theirs".parse_key()), Some(("u2".into(), Version(2))));
    run.finish().await.unwrap();
}
