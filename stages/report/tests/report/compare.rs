//! Digests: what is asked, and what answers mean.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use pipeline_core::{
    Compared, Key, ObjectDigest, Others, OthersQuestion, Reason, ShardDigest, Shutdown, Sink as _,
    StageError, Timestamp, Version,
};
use serde_json::{Value, json};
use stages_client::Token;
use stages_report::{file, stdout};

use crate::support::{host, platform, serve, ship, shipment};

fn shard() -> ShardDigest {
    ShardDigest {
        ledger: "ledger-1".to_owned(),
        shard: 3,
        shards: 32,
        objects: 2,
        entities: 11,
        digest: 0xabc,
        at: "2026-11-21T12:00:00Z".parse::<Timestamp>().unwrap(),
    }
}

fn application(number: u128) -> ObjectDigest {
    ObjectDigest {
        key: Key::new("argocd", &format!("app-{number:04}")).unwrap(),
        uid: format!("u{number}").into(),
        version: Version(42).in_era(1),
        entities: 5,
        digest: u128::MAX - number,
    }
}

type Asked = Arc<Mutex<Vec<(String, HeaderMap, Value)>>>;

/// A platform that answers every request as `answer` says, by its path and body.
async fn answering(
    answer: impl Fn(&str, &Value) -> Response + Clone + Send + Sync + 'static,
) -> (String, Asked) {
    let asked = Asked::default();
    let log = asked.clone();
    let router = Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| async move {
        let body = serde_json::from_slice(&body).unwrap();
        let answer = answer(&uri.to_string(), &body);
        log.lock().unwrap().push((uri.to_string(), headers, body));
        answer
    });
    (serve(router).await, asked)
}

fn text(status: u16, text: &'static str) -> Response {
    (StatusCode::from_u16(status).unwrap(), text).into_response()
}

fn shown(error: &StageError) -> (bool, Reason, String) {
    (error.is_retry(), error.reason(), error.to_string())
}

#[tokio::test]
async fn a_shard_is_compared_below_the_path_of_events() {
    let (address, asked) = answering(|_, _| text(200, r#"{"equal": true, "more": 1}"#)).await;
    let sink = platform(&address, |_| {}).await;
    assert_eq!(sink.digest(&shard()).await.unwrap(), Compared::Equal);
    let (path, headers, body) = asked.lock().unwrap().remove(0);
    assert_eq!(path, "/2.0/api/events/digest");
    assert_eq!(headers["authorization"], "token-of-the-runtime");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(
        body,
        json!({
            "ledger": "ledger-1", "shard": 3, "shards": 32, "applications": 2, "entities": 11,
            "digest": "00000000000000000000000000000abc", "at": "2026-11-21T12:00:00Z",
        })
    );
    let below =
        platform(&format!("{address}/base"), |config| config.path = "/in?tenant=a%2Fb".to_owned()).await;
    below.digest(&shard()).await.unwrap();
    assert_eq!(asked.lock().unwrap()[0].0, "/base/in/digest?tenant=a%2Fb");
}

#[tokio::test]
async fn a_platform_says_that_it_differs_or_that_it_does_not_compare() {
    for (status, answer, compared) in [
        (200, r#"{"equal":true}"#, Compared::Equal),
        (200, r#"{"equal":false}"#, Compared::Differs),
        (200, r#"{"equal":null}"#, Compared::Unknown),
        (200, "{}", Compared::Unknown),
        (200, "", Compared::Unknown),
        (202, "accepted", Compared::Unknown),
        (204, "", Compared::Unknown),
        (404, "no such page", Compared::Unknown),
        (405, "", Compared::Unknown),
        (501, "", Compared::Unknown),
    ] {
        let (address, _) = answering(move |_, _| text(status, answer)).await;
        let sink = platform(&address, |_| {}).await;
        assert_eq!(sink.digest(&shard()).await.unwrap(), compared, "{status} {answer}");
        if compared == Compared::Unknown {
            assert_eq!(sink.differing(&[application(1)]).await.unwrap(), None, "{status} {answer}");
            let others = sink.others(&OthersQuestion::default()).await.unwrap();
            assert_eq!(others, None, "{status} {answer}");
        }
    }
}

#[tokio::test]
async fn a_platform_is_asked_which_states_of_objects_of_other_kinds_it_holds() {
    let rollout =
        |name: &str| ObjectDigest { key: Key::of_kind("rollout", "shop", name).unwrap(), ..application(1) };
    let differing = |_: &str, _: &Value| {
        text(200, r#"{"differing": ["rollout/shop/web", "shop/api", "rollout/shop/no"]}"#)
    };
    let (address, asked) = answering(differing).await;
    let sink = platform(&address, |_| {}).await;
    let answer = sink.differing(&[rollout("web"), rollout("api")]).await.unwrap().unwrap();
    assert_eq!(answer, [rollout("web").key]);
    let asked = asked.lock().unwrap().clone();
    let object = |name: &str| json!({"key": format!("rollout/shop/{name}"), "namespace": "shop", "name": name, "uid": "u1", "resourceVersion": "42"});
    let [(path, _, body)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(
        (path.as_str(), body),
        ("/2.0/api/events/digest/objects", &json!({"objects": [object("web"), object("api")]}))
    );

    // One that compares applications alone.
    let (address, _) =
        answering(|path, _| text(if path.ends_with("objects") { 404 } else { 200 }, r#"{"differing": []}"#))
            .await;
    let sink = platform(&address, |_| {}).await;
    assert_eq!(sink.differing(&[rollout("web")]).await.unwrap(), None);
    assert_eq!(sink.differing(&[application(1)]).await.unwrap(), Some(Vec::new()));
}

#[tokio::test]
async fn any_other_answer_is_an_error() {
    for (status, answer, retry, reason, told) in [
        (400, "canary", false, Reason::Refused, "it answered 400"),
        (413, "canary", false, Reason::Refused, "it answered 413"),
        (401, "canary", true, Reason::Unauthorized, "it answered 401"),
        (403, "canary", false, Reason::Forbidden, "it answered 403"),
        (408, "canary", true, Reason::Timeout, "it answered 408"),
        (425, "canary", true, Reason::RateLimited, "it answered 425"),
        (429, "canary", true, Reason::RateLimited, "it answered 429"),
        (500, "canary", false, Reason::ServerError, "it answered 500"),
        (503, "canary", true, Reason::ServerError, "it answered 503"),
        (307, "canary", true, Reason::Redirect, "it answered 307, a redirect, which is not followed"),
        (
            200,
            "<canary>",
            true,
            Reason::Malformed,
            "its answer is not the JSON that was expected (line 1, column 1)",
        ),
        (
            200,
            r#"{"equal":"canary","differing":7,"others":7}"#,
            true,
            Reason::Malformed,
            "its answer is not the JSON that was expected (line 1, column 17)",
        ),
    ] {
        let (address, _) = answering(move |_, _| text(status, answer)).await;
        let sink = platform(&address, |_| {}).await;
        let error = sink.digest(&shard()).await.unwrap_err();
        let message = format!("cannot compare a shard at {}: {told}", host(&address));
        assert_eq!(shown(&error), (retry, reason, message));
        assert!(!format!("{error:?}").contains("canary"), "{error:?}");
        let error = sink.differing(&[application(1)]).await.unwrap_err();
        assert!(error.to_string().starts_with("cannot compare applications at "), "{error}");
        assert_eq!((error.is_retry(), error.reason()), (retry, reason));
        let error = sink.others(&OthersQuestion::default()).await.unwrap_err();
        assert!(error.to_string().starts_with("cannot compare other applications at "), "{error}");
        assert_eq!((error.is_retry(), error.reason()), (retry, reason));
    }
}

#[tokio::test]
async fn a_platform_is_asked_what_it_holds_beside_what_is_known() {
    let key = |name: &str| Key::new("shop", name).unwrap();
    let answer = |_: &str, _: &Value| {
        let held = |key: &str, uid: &str| json!({"key": key, "uid": uid});
        let others = [
            held("shop/web", "w"),
            held("shop/cart", "c"),
            held("shop/known", "k"),
            held("shop/api", "before the range"),
            held("shop/zoo", "behind it"),
            held("rollout/shop/mail", "of another kind"),
            held("nameless", "n"),
            held("shop/lifeless", ""),
        ];
        axum::Json(json!({"others": others})).into_response()
    };
    let (address, asked) = answering(answer).await;
    let sink = platform(&address, |_| {}).await;
    let question = OthersQuestion {
        shards: 32,
        own: vec![0, 3],
        after: Some(key("api")),
        upto: Some(key("web")),
        known: vec![key("known")],
    };
    let others = sink.others(&question).await.unwrap().unwrap();
    let held = vec![(key("cart"), "c".into()), (key("web"), "w".into())];
    assert_eq!(others, Others { held, more_after: None });
    let (path, headers, body) = asked.lock().unwrap().remove(0);
    assert_eq!(
        (path.as_str(), &headers["authorization"]),
        ("/2.0/api/events/digest/others", &"token-of-the-runtime".parse().unwrap())
    );
    assert_eq!(
        body,
        json!({"shards": 32, "own": [0, 3], "after": "shop/api", "upto": "shop/web", "known": ["shop/known"]})
    );
    sink.others(&OthersQuestion { after: None, upto: None, ..question }).await.unwrap();
    let (_, _, body) = asked.lock().unwrap().remove(0);
    assert_eq!((&body["after"], &body["upto"]), (&json!(""), &Value::Null));
}

#[tokio::test]
async fn a_platform_that_names_a_thousand_others_may_hold_more() {
    for (count, more_after) in [(999, None), (1_000, Some(application(999).key))] {
        let answer = move |_: &str, _: &Value| {
            let held = |number| json!({"key": application(number).key, "uid": "u"});
            axum::Json(json!({"others": (0..count).map(held).collect::<Vec<_>>()})).into_response()
        };
        let (address, _) = answering(answer).await;
        let others = platform(&address, |_| {}).await.others(&OthersQuestion::default()).await.unwrap();
        let others = others.unwrap();
        assert_eq!((others.held.len() as u128, others.more_after), (count, more_after));
    }
}

#[tokio::test]
async fn the_time_to_wait_and_the_size_of_an_answer_are_bounded() {
    let wait = || (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "17")]).into_response();
    let (address, _) = answering(move |_, _| wait()).await;
    let error = platform(&address, |_| {}).await.digest(&shard()).await.unwrap_err();
    let StageError::Retry { after, .. } = error else { panic!("{error}") };
    assert_eq!(after, Some(Duration::from_secs(17)));

    let (address, _) = answering(|_, _| " ".repeat(1024 * 1024 + 1).into_response()).await;
    let error = platform(&address, |_| {}).await.digest(&shard()).await.unwrap_err();
    let message =
        format!("cannot compare a shard at {}: its answer is larger than 1048576 bytes", host(&address));
    assert_eq!(shown(&error), (true, Reason::TooLarge, message));
}

#[tokio::test]
async fn applications_are_compared_a_thousand_at_once() {
    let (address, asked) = answering(|_, body| {
        // Holds something else of every application whose number ends in 7, and names one that nobody asked for.
        let all = body["applications"].as_array().unwrap();
        let mut differing: Vec<&str> = all.iter().map(|one| one["key"].as_str().unwrap()).collect();
        differing.retain(|key| key.ends_with('7'));
        differing.push("argocd/other");
        differing.push("no key");
        axum::Json(json!({"differing": differing})).into_response()
    })
    .await;
    let sink = platform(&address, |_| {}).await;
    let applications: Vec<_> = (0..2_001).map(application).collect();
    let differing = sink.differing(&applications).await.unwrap().unwrap();
    assert_eq!(differing.len(), 200);
    assert!(differing.iter().all(|key| key.name().ends_with('7')));
    let asked = asked.lock().unwrap();
    let sizes: Vec<_> =
        asked.iter().map(|(_, _, body)| body["applications"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [1_000, 1_000, 1]);
    let (path, headers, body) = &asked[0];
    assert_eq!(
        (path.as_str(), &headers["authorization"]),
        ("/2.0/api/events/digest/applications", &"token-of-the-runtime".parse().unwrap())
    );
    assert_eq!(
        body["applications"][1],
        json!({"key": "argocd/app-0001", "uid": "u1", "entities": 5, "digest": "fffffffffffffffffffffffffffffffe"})
    );
}

#[tokio::test]
async fn nothing_is_asked_about_nothing() {
    let sink = platform("http://127.0.0.1:1", |_| {}).await;
    assert_eq!(sink.differing(&[]).await.unwrap(), Some(Vec::new()));
}

#[tokio::test]
async fn a_refused_token_that_is_replaced_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "old\n").unwrap();
    let router = Router::new().fallback(|headers: HeaderMap| async move {
        if headers["authorization"] == "new" { StatusCode::OK } else { StatusCode::UNAUTHORIZED }
    });
    let address = serve(router).await;
    let inner = platform(&address, |config| config.token = Token::file(&path)).await;
    assert_eq!(ship(&inner).await.unwrap_err().reason(), Reason::Unauthorized);
    let sink = inner;
    // Written again as it was: still refused.
    std::fs::write(&path, "old").unwrap();
    tokio::time::timeout(Duration::from_millis(1_500), sink.credentials_changed()).await.unwrap_err();
    let beside = folder.path().join("beside");
    std::fs::write(&beside, "new\n").unwrap();
    std::fs::rename(beside, &path).unwrap();
    tokio::time::timeout(Duration::from_secs(60), sink.credentials_changed()).await.unwrap();
    assert!(sink.ship(&[shipment("{}", 0)]).await.remove(0).is_ok());
}

#[tokio::test]
async fn a_file_takes_digests_between_reports_and_answers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.jsonl");
    let sink = file::Config { path: path.clone() }.build().unwrap();
    assert!(sink.ship(&[shipment("1", 0)]).await.remove(0).is_ok());
    assert_eq!(sink.digest(&shard()).await.unwrap(), Compared::Unknown);
    assert!(sink.ship(&[shipment("2", 0)]).await.remove(0).is_ok());
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let members = |line: &Value| line.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&lines[1]), ["digest"]);
    assert_eq!(
        (lines[1]["digest"]["digest"].as_str(), lines[1]["digest"]["shards"].as_u64()),
        (Some("00000000000000000000000000000abc"), Some(32))
    );
    assert!([0, 2].iter().all(|&at| lines[at].get("digest").is_none() && lines[at].get("data").is_some()));
    assert_eq!(sink.differing(&[application(1)]).await.unwrap(), None);
    assert_eq!(sink.others(&OthersQuestion::default()).await.unwrap(), None);
    tokio::time::timeout(Duration::from_millis(50), sink.credentials_changed()).await.unwrap_err();
}

#[tokio::test]
async fn a_digest_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.jsonl");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let sink = file::Config { path }.build().unwrap();
    let error = sink.digest(&shard()).await.unwrap_err();
    assert_eq!(shown(&error), (true, Reason::Io, "cannot write to the report file".to_owned()));
}

#[tokio::test]
async fn standard_output_takes_no_digest() {
    let (reader, writer) = std::io::pipe().unwrap();
    let sink = stdout::Config.build_onto(writer, Shutdown::new()).unwrap();
    assert_eq!(sink.digest(&shard()).await.unwrap(), Compared::Unknown);
    drop(sink);
    assert_eq!(std::io::read_to_string(reader).unwrap(), "");
}
