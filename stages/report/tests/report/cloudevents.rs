//! CloudEvents in each of their modes, to a real server.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use pipeline_core::{NoMeter, Sink as _};
use serde_json::{Value, json};
use stages_client::Token;
use stages_report::cloudevents::{CloudEvents, Config, Mode};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::support::{Requests, TellsEnd, serve, shipment};

/// Less than a request may take.
const SOON: Duration = Duration::from_secs(10);

/// Takes every request but those whose body holds `refused`.
async fn receiver() -> (String, Requests) {
    let requests = Requests::default();
    let taken = requests.clone();
    let take = move |headers: HeaderMap, body: Bytes| {
        let refused = body.windows(7).any(|part| part == b"refused");
        taken.lock().unwrap().push((headers, body));
        async move { if refused { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::ACCEPTED } }
    };
    (serve(Router::new().route("/events", post(take))).await, requests)
}

pub(crate) async fn sink(address: &str, mode: Mode) -> CloudEvents {
    let config = Config {
        address: format!("{address}/events"),
        token: Some(Token::literal("secret")),
        http: stages_client::Config::new(Duration::from_secs(30), 1 << 20),
        source: "/clusters/one".to_owned(),
        mode,
    };
    config.build(Arc::new(NoMeter)).await.unwrap()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_structured_event_is_its_attributes_and_the_payload_as_it_is() {
    let (address, requests) = receiver().await;
    let one = shipment(r#"{"object": {"weight": 1.50}}"#, 1);
    assert!(sink(&address, Mode::Structured).await.ship(std::slice::from_ref(&one)).await[0].is_ok());
    let (headers, body) = requests.lock().unwrap().remove(0);
    assert_eq!(header(&headers, "content-type"), "application/cloudevents+json");
    assert_eq!(header(&headers, "authorization"), "Bearer secret");
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(text.ends_with(r#""data":{"object": {"weight": 1.50}}}"#), "{text}");
    let mut event: Value = serde_json::from_str(&text).unwrap();
    event.as_object_mut().unwrap().remove("data");
    let expected = json!({
        "specversion": "1.0", "id": &*one.idempotency_key, "source": "/clusters/one",
        "type": "gitops-runtime.app.reported", "subject": "argocd/store", "datacontenttype": "application/json",
        "traceparent": stages_report::traceparent(&one),
    });
    assert_eq!(event, expected);
}

#[tokio::test]
async fn a_binary_event_has_its_attributes_in_headers_and_an_end_is_told_apart() {
    let (address, requests) = receiver().await;
    let mut one = shipment(r#"{"object":{}}"#, 1);
    one.report.ends = true;
    assert!(sink(&address, Mode::Binary).await.ship(std::slice::from_ref(&one)).await[0].is_ok());
    let (headers, body) = requests.lock().unwrap().remove(0);
    for (name, expected) in [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", &*one.idempotency_key),
        ("ce-source", "/clusters/one"),
        ("ce-type", "gitops-runtime.app.ended"),
        ("ce-subject", "argocd/store"),
    ] {
        assert_eq!(header(&headers, name), expected, "{name}");
    }
    assert_eq!(body, r#"{"object":{}}"#);
}

#[tokio::test]
async fn a_batch_is_a_list_and_one_that_is_refused_holds_up_no_other_event() {
    let (address, requests) = receiver().await;
    let sink = sink(&address, Mode::Batched { events: 3, bytes: 1 << 20 }).await;
    let some: Vec<_> = (0..5).map(|at| shipment(&format!("{{\"object\":{at}}}"), at)).collect();
    assert!(sink.ship(&some).await.iter().all(Result::is_ok));
    let came: Vec<(HeaderMap, Bytes)> = std::mem::take(&mut *requests.lock().unwrap());
    let sizes: Vec<usize> = came
        .iter()
        .map(|(headers, body)| {
            assert_eq!(header(headers, "content-type"), "application/cloudevents-batch+json");
            serde_json::from_slice::<Vec<Value>>(body).unwrap().len()
        })
        .collect();
    assert_eq!(sizes, [3, 2]);
    let mixed = [shipment("{\"object\":1}", 7), shipment("{\"object\":\"refused\"}", 8)];
    let answers = sink.ship(&mixed).await;
    assert!(answers[0].is_ok());
    let refused = answers[1].as_ref().unwrap_err();
    assert!(!refused.is_retry(), "{refused}");
    assert_eq!(requests.lock().unwrap().len(), 3, "the batch, and each of its events");
}

/// A receiver that answers batches with `status` and takes single events; gives how many of each came.
async fn without_batches(status: StatusCode) -> (String, impl Fn() -> (usize, usize)) {
    let requests = Requests::default();
    let came = requests.clone();
    let take = move |headers: HeaderMap, body: Bytes| {
        let is_batch = header(&headers, "content-type") == "application/cloudevents-batch+json";
        came.lock().unwrap().push((headers, body));
        async move { if is_batch { status } else { StatusCode::ACCEPTED } }
    };
    let address = serve(Router::new().route("/events", post(take))).await;
    let counts = move || {
        let all = requests.lock().unwrap();
        let batches = all.iter().filter(|(_, body)| body.starts_with(b"[")).count();
        (batches, all.len() - batches)
    };
    (address, counts)
}

#[tokio::test]
async fn a_receiver_that_takes_no_batches_is_sent_single_events_and_soon_nothing_else() {
    for (status, batches) in [
        (StatusCode::BAD_REQUEST, 3),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, 1),
        // Whatever it takes of them it says so, and then each event comes to it twice.
        (StatusCode::MULTI_STATUS, 3),
    ] {
        let (address, came) = without_batches(status).await;
        let sink = sink(&address, Mode::Batched { events: 2, bytes: 1 << 20 }).await;
        for at in 0..5 {
            let answers = sink.ship(&[shipment("{\"object\":1}", at)]).await;
            assert!(answers[0].is_ok(), "{status}: {:?}", answers[0]);
        }
        assert_eq!(came(), (batches, 5), "{status}");
    }
}

#[tokio::test]
async fn a_batch_of_which_some_was_taken_is_sent_again_event_by_event() {
    let (address, came) = without_batches(StatusCode::MULTI_STATUS).await;
    let sink = sink(&address, Mode::Batched { events: 2, bytes: 1 << 20 }).await;
    let both = [shipment("{\"object\":1}", 1), shipment("{\"object\":2}", 2)];
    assert!(sink.ship(&both).await.iter().all(Result::is_ok));
    assert_eq!(came(), (1, 2));
    // Of one alone nothing may have been taken.
    assert!(sink.ship(&both[..1]).await.iter().all(Result::is_ok));
    assert_eq!(came(), (2, 3));
}

#[tokio::test]
async fn several_callers_are_each_answered_whoever_sends_for_them() {
    let (address, requests) = receiver().await;
    let sink = Arc::new(sink(&address, Mode::Batched { events: 100, bytes: 1 << 20 }).await);
    let ships = (0..50).map(|at| {
        let sink = sink.clone();
        tokio::spawn(async move { sink.ship(&[shipment("{\"object\":1}", at)]).await })
    });
    for ship in ships.collect::<Vec<_>>() {
        assert!(ship.await.unwrap()[0].is_ok());
    }
    let events = requests
        .lock()
        .unwrap()
        .iter()
        .map(|(_, body)| serde_json::from_slice::<Vec<Value>>(body).unwrap().len())
        .sum::<usize>();
    assert_eq!(events, 50);
}

/// Three events: the first is sent alone, and answered when the others wait. The second then sends itself and the third,
/// which is not answered in a batch, or `alone` after a batch that is refused; and whoever waits for the third gives up. Gives
/// whether the second was taken, and is tried again if it was not.
async fn sent_for_another(alone: bool) -> (bool, bool) {
    let (come, go, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (coming, going, ending) = (come.clone(), go.clone(), ended.clone());
    let take = move |body: Bytes| {
        let (coming, going, ending) = (coming.clone(), going.clone(), ending.clone());
        async move {
            let body = String::from_utf8(body.to_vec()).unwrap();
            let is_batch = body.starts_with('[');
            if body.contains("first") {
                coming.notify_one();
                going.notified().await;
            } else if body.contains("third") && !(alone && is_batch) {
                let _ended = TellsEnd(ending);
                coming.notify_one();
                std::future::pending::<()>().await;
            }
            if alone && body.contains("third") { StatusCode::BAD_REQUEST } else { StatusCode::ACCEPTED }
        }
    };
    let address = serve(Router::new().route("/events", post(take))).await;
    let sink = Arc::new(sink(&address, Mode::Batched { events: 3, bytes: 1 << 20 }).await);
    let ship = |name: &str, n| {
        let (sink, shipment) = (sink.clone(), shipment(&format!("\"{name}\""), n));
        tokio::spawn(async move { sink.ship(&[shipment]).await })
    };
    let _first = ship("first", 1);
    assert!(timeout(SOON, come.notified()).await.is_ok(), "the first is not sent");
    let sending = ship("second", 2);
    // In this runtime's one thread it goes as far as it can.
    yield_now().await;
    let waiting = ship("third", 3);
    yield_now().await;
    go.notify_one();
    assert!(timeout(SOON, come.notified()).await.is_ok(), "the third is not sent");
    waiting.abort();
    assert!(timeout(SOON, ended.notified()).await.is_ok(), "the third is still under way");
    let answers = timeout(SOON, sending).await.unwrap().unwrap();
    (answers[0].is_ok(), answers[0].as_ref().is_err_and(|error| error.is_retry()))
}

#[tokio::test]
async fn a_batch_ends_when_who_waits_for_one_of_its_events_gives_up_and_the_others_are_retried() {
    assert_eq!(sent_for_another(false).await, (false, true));
}

#[tokio::test]
async fn an_event_of_a_refused_batch_ends_when_who_waits_for_it_gives_up() {
    assert_eq!(sent_for_another(true).await, (true, false));
}

#[tokio::test]
async fn a_receiver_that_is_away_or_not_there_yet_is_tried_again_and_a_source_must_be_one() {
    let gone = serve(Router::new()).await;
    for mode in [Mode::Structured, Mode::Binary, Mode::Batched { events: 2, bytes: 1 }] {
        let answers = sink(&gone, mode).await.ship(&[shipment("{}", 1), shipment("{}", 2)]).await;
        assert!(
            answers.iter().all(|answer| answer.as_ref().is_err_and(|error| error.is_retry())),
            "{mode:?}"
        );
    }
    let config = Config {
        address: "http://127.0.0.1:1".to_owned(),
        token: None,
        http: stages_client::Config::new(Duration::from_secs(1), 1 << 10),
        source: "a b".to_owned(),
        mode: Mode::Structured,
    };
    let error = config.build(Arc::new(NoMeter)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the source of events is empty, or holds spaces or characters that are not ascii"
    );
}
