//! What is there, asked for once, beside the watch.

use pipeline_core::{Reason, StageError, Survey as _, Surveyed};
use stages_kube::Namespaces;

use crate::fake::{ALL, Answer, Fake, HOME, app, cut, list, page, paged};
use crate::harness::{build, config};

async fn survey(fake: &Fake) -> Result<Vec<String>, StageError> {
    let (watch, seen, _) = build(config(fake.address)).await;
    let there = watch.survey(Vec::new()).await;
    assert!(seen.is_empty(), "only the watch says what was seen");
    let show = |of: Surveyed| {
        format!("{} {} {}{}", of.key, of.uid, of.version.0, if of.may_drift { " drifts" } else { "" })
    };
    Ok(there?.objects.into_iter().map(show).collect())
}

fn shown(error: &StageError) -> (bool, Reason, String) {
    (error.is_retry(), error.reason(), error.to_string())
}

#[tokio::test]
async fn all_pages_are_read_and_nothing_else_is_asked() {
    let items: Vec<_> = (0..250).rev().map(|n| app("home", &format!("app-{n:03}"), "u", n + 1)).collect();
    let fake = Fake::start(move |asked| paged(asked, 900, &items)).await;
    let there = survey(&fake).await.unwrap();
    assert_eq!((there.len(), there[0].as_str()), (250, "home/app-000 u 1"));
    assert!(there.is_sorted());
    assert_eq!(fake.asked("list").len(), 3);
    assert_eq!(fake.asked("list")[0].path, HOME);
    assert_eq!((fake.asked("get").len(), fake.asked("watch").len()), (0, 0));
}

#[tokio::test]
async fn only_namespaces_that_are_watched_count() {
    let items = [app("home", "a", "u1", 1), app("team-a", "b", "u2", 2), app("kube-system", "c", "u3", 3)];
    let fake = Fake::start(move |_| list(9, &items)).await;
    let mut wide = config(fake.address);
    wide.namespaces = Namespaces::split("team-*");
    let (watch, _, _) = build(wide).await;
    let keys: Vec<_> =
        watch.survey(Vec::new()).await.unwrap().objects.into_iter().map(|of| of.key.to_string()).collect();
    assert_eq!(keys, ["home/a", "team-a/b"]);
    assert_eq!(fake.asked("list")[0].path, ALL);
}

#[tokio::test]
async fn what_may_drift_is_what_the_mapping_says() {
    let with = |name: &str, status: &str| {
        app("home", name, "u", 5).replace(r#""spec":{}"#, &format!(r#""spec":{{}},"status":{status}"#))
    };
    let items =
        [with("a", r#"{"loose":true}"#), with("b", r#"{"loose":false}"#), with("c", r#"{"loose":"true"}"#)];
    let fake = Fake::start(move |_| list(9, &items)).await;
    assert_eq!(survey(&fake).await.unwrap(), ["home/a u 5 drifts", "home/b u 5", "home/c u 5"]);
}

#[tokio::test]
async fn a_list_that_fails_half_way_is_an_error() {
    let failures = [
        (Answer::Status(500), Reason::ServerError, "list widgets: the api server answered 500"),
        (Answer::Status(429), Reason::RateLimited, "list widgets: the api server answered 429"),
        (Answer::Raw(200, "{}".into()), Reason::Malformed, "list widgets: the answer is not a list in json"),
        (
            Answer::Raw(200, r#"{"metadata":{},"items":[]}"#.into()),
            Reason::Malformed,
            "list widgets: the list has no version",
        ),
        (page(9, "next", &[]), Reason::Malformed, "list widgets: the continue token came back"),
    ];
    for (failure, reason, message) in failures {
        let error = survey(&second(failure).await).await.unwrap_err();
        assert_eq!(shown(&error), (true, reason, message.to_owned()));
    }
    // Whether a broken connection is told as such or by the body that it cut depends on how far that had come.
    let broken = cut(r#"{"metadata":{"resourceVersion":"9"},"items":[]"#);
    assert!(survey(&second(broken).await).await.unwrap_err().is_retry());
}

/// Answers the second page with `answer`.
async fn second(answer: Answer) -> Fake {
    let mut answer = Some(answer);
    Fake::start(move |asked| match asked.nth {
        0 => page(9, "next", &[app("home", "a", "u1", 1)]),
        _ => answer.take().unwrap(),
    })
    .await
}

#[tokio::test]
async fn a_continue_token_that_expired_begins_the_list_anew_once() {
    for (expires, fine) in [(1, true), (2, false)] {
        let fake = Fake::start(move |asked| match (asked.get("continue"), asked.nth) {
            (None, _) => page(9, "next", &[app("home", "a", "u1", 1)]),
            (Some(_), nth) if nth < expires * 2 => Answer::Status(410),
            (Some(_), _) => page(9, "", &[app("home", "b", "u2", 2)]),
        })
        .await;
        let answer = survey(&fake).await;
        assert_eq!(fake.asked("list").len(), 4);
        if fine {
            assert_eq!(answer.unwrap(), ["home/a u1 1", "home/b u2 2"], "nothing twice");
        } else {
            let message = "list widgets: the api server answered 410".to_owned();
            assert_eq!(shown(&answer.unwrap_err()), (true, Reason::Refused, message));
        }
    }
}

#[tokio::test]
async fn an_object_without_a_name_is_an_error_and_one_with_a_name_is_there() {
    let no_uid = r#"{"metadata":{"namespace":"home","name":"no-uid","resourceVersion":"2"}}"#;
    let no_version = r#"{"metadata":{"namespace":"home","name":"no-version","uid":"u3"}}"#;
    let named = [app("home", "a", "u1", 1), no_uid.to_owned(), no_version.to_owned()];
    let mut nameless = named.to_vec();
    nameless.push(r#"{"metadata":{"namespace":"home","uid":"u9","resourceVersion":"2"}}"#.to_owned());
    let fake = Fake::start(move |_| list(9, &named)).await;
    assert_eq!(survey(&fake).await.unwrap(), ["home/a u1 1", "home/no-uid  0", "home/no-version  0"]);
    let fake = Fake::start(move |_| list(9, &nameless)).await;
    let message = "list widgets: there are objects whose name cannot be read".to_owned();
    assert_eq!(shown(&survey(&fake).await.unwrap_err()), (true, Reason::Malformed, message));
}
