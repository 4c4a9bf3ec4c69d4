//! What is sent: the exact headers and bytes, and in what order answers come.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use pipeline_core::{Outcome, Peer, Reason, Sink as _, Version};
use stages_client::Token;
use stages_report::labels;
use stages_report::platform::Config;
use stages_report::traceparent;

use crate::support::{Remembering, Requests, platform, serve, ship, shipment, unzipped};

async fn take(State(requests): State<Requests>, headers: HeaderMap, body: Bytes) -> StatusCode {
    requests.lock().unwrap().push((headers, body));
    StatusCode::ACCEPTED
}

fn events(requests: &Requests) -> Router {
    Router::new().route("/2.0/api/events", post(take)).with_state(requests.clone())
}

#[tokio::test]
async fn headers_and_body_are_those_of_the_wire() {
    let requests = Requests::default();
    let address = serve(events(&requests)).await;
    let sink = platform(&address, |_| {}).await;
    let payload = "{ \"b\": 1,\n\"a\":\"\\u003c\" , \"b\": 2 }";
    let shipment = shipment(payload, 3);
    assert!(matches!(sink.ship(std::slice::from_ref(&shipment)).await[..], [Ok(())]));
    let (headers, body) = requests.lock().unwrap().remove(0);
    assert_eq!(unzipped(&body), format!("{{\"data\":{payload}}}"), "the payload is not as it was");
    let mut sent: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    sent.sort_unstable();
    let length = body.len().to_string();
    let host = address.trim_start_matches("http://");
    let trace =
        format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", &shipment.idempotency_key.get(..16).unwrap());
    let expected = [
        ("accept", "*/*"),
        ("accept-encoding", "gzip"),
        ("authorization", "token-of-the-runtime"),
        ("content-encoding", "gzip"),
        ("content-length", length.as_str()),
        ("content-type", "application/json"),
        ("host", host),
        ("idempotency-key", &shipment.idempotency_key),
        ("traceparent", &trace),
        ("user-agent", concat!("gitops-runtime/", env!("CARGO_PKG_VERSION"))),
    ];
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn the_epoch_of_an_owner_is_a_header_of_its_own() {
    let requests = Requests::default();
    let address = serve(events(&requests)).await;
    let sink = platform(&address, |_| {}).await;
    let epochs = [Some(u64::MAX), None, Some(0)];
    let shipments: Vec<_> =
        (0..).zip(epochs).map(|(number, epoch)| shipment("{}", number).with_epoch(epoch)).collect();
    for shipment in &shipments {
        assert!(matches!(sink.ship(std::slice::from_ref(shipment)).await[..], [Ok(())]));
    }
    let requests = requests.lock().unwrap();
    let sent: Vec<_> = requests
        .iter()
        .map(|(headers, _)| headers.get("fencing-epoch").map(|epoch| epoch.to_str().unwrap()))
        .collect();
    assert_eq!(sent, [Some("18446744073709551615"), None, Some("0")]);
}

#[tokio::test]
async fn the_era_of_a_restored_cluster_is_a_header_of_its_own() {
    let requests = Requests::default();
    let address = serve(events(&requests)).await;
    let sink = platform(&address, |_| {}).await;
    for era in [0, 3] {
        let mut one = shipment("{}", era.into());
        one.report.version = Version(7).in_era(era);
        assert!(matches!(sink.ship(&[one]).await[..], [Ok(())]));
    }
    let requests = requests.lock().unwrap();
    let sent: Vec<_> = requests
        .iter()
        .map(|(headers, _)| headers.get("cluster-era").map(|era| era.to_str().unwrap()))
        .collect();
    assert_eq!(sent, [None, Some("3")]);
}

#[tokio::test]
async fn a_large_payload_comes_whole_at_every_level() {
    let requests = Requests::default();
    let address = serve(events(&requests)).await;
    let payload = format!("{{\"object\":\"{}\"}}", "abcdefghij".repeat(100_000));
    let mut sizes = Vec::new();
    for level in [0, 1, 9] {
        let sink = platform(&address, |config| config.gzip_level = level).await;
        assert!(matches!(sink.ship(&[shipment(&payload, 0)]).await[..], [Ok(())]), "level {level}");
        let (_, body) = requests.lock().unwrap().remove(0);
        assert!(unzipped(&body) == format!("{{\"data\":{payload}}}"), "level {level}");
        sizes.push(body.len());
    }
    assert!(matches!(sizes[..], [none, fast, best] if none > fast && fast >= best), "{sizes:?}");
}

#[tokio::test]
async fn another_path_is_configured_below_the_address() {
    let requests = Requests::default();
    let router = Router::new().route("/base/in", post(take)).with_state(requests.clone());
    let address = serve(router).await;
    let sink = platform(&format!("{address}/base/"), |config| config.path = "/in".to_owned()).await;
    ship(&sink).await.unwrap();
    assert_eq!(requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn each_report_has_its_own_answer_in_its_place() {
    // Answers come in the opposite order: later reports are answered first.
    async fn refuse_odd(body: Bytes) -> StatusCode {
        let number: u64 =
            unzipped(&body).chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
        tokio::time::sleep(Duration::from_millis(40 - number * 4)).await;
        if number % 2 == 1 { StatusCode::BAD_REQUEST } else { StatusCode::OK }
    }
    let address = serve(Router::new().route("/2.0/api/events", post(refuse_odd))).await;
    let meter = Arc::new(Remembering::default());
    let sink = crate::support::config(&address, "t").build(meter.clone()).await.unwrap();
    let sink = sink;
    assert_eq!(sink.name(), "platform");
    let shipments: Vec<_> = (0..9).map(|number| shipment(&number.to_string(), number)).collect();
    let answers = sink.ship(&shipments).await;
    let taken: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(taken, [true, false, true, false, true, false, true, false, true]);
    let samples = meter.0.lock().unwrap();
    assert_eq!(samples.len(), 9);
    assert!(
        samples.iter().all(|sample| sample.call.peer() == Peer::PLATFORM && sample.call == labels::REPORT)
    );
    let refused = samples.iter().filter(|sample| sample.outcome == Outcome::Failed(Reason::Refused)).count();
    assert_eq!((refused, samples.iter().filter(|sample| sample.outcome == Outcome::Ok).count()), (4, 5));
}

#[tokio::test]
async fn a_replaced_token_file_is_used_soon_and_from_then_on() {
    let requests = Requests::default();
    let address = serve(events(&requests)).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "first\n").unwrap();
    let sink = platform(&address, |config| config.token = Token::file(&path)).await;
    ship(&sink).await.unwrap();
    let beside = folder.path().join("new");
    std::fs::write(&beside, "other\n").unwrap();
    std::fs::rename(beside, &path).unwrap();
    let sent = || -> Vec<_> {
        requests.lock().unwrap().iter().map(|(headers, _)| headers["authorization"].clone()).collect()
    };
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while sent().last().is_none_or(|last| last != "other") {
        assert!(std::time::Instant::now() < until, "the first token is still in use");
        tokio::time::sleep(Duration::from_millis(20)).await;
        ship(&sink).await.unwrap();
    }
    ship(&sink).await.unwrap();
    let (first, other): (Vec<_>, Vec<_>) = sent().into_iter().partition(|token| token == "first");
    assert!(!first.is_empty() && other.len() == 2, "{first:?}, {other:?}");
}

#[tokio::test]
async fn what_cannot_be_called_is_refused_at_once() {
    let refusal = async |change: fn(&mut Config)| {
        let mut config = crate::support::config("https://platform.example", "t");
        change(&mut config);
        config.build(Arc::new(pipeline_core::NoMeter)).await.unwrap_err().to_string()
    };
    assert_eq!(
        refusal(|config| config.address = "platform.example".to_owned()).await,
        "the platform's address: the address is not a URL such as `https://argocd.example`"
    );
    assert_eq!(
        refusal(|config| config.path = "/a/../b".to_owned()).await,
        "the platform's path of events: an empty path segment, `.` and `..` cannot be addressed"
    );
    assert_eq!(refusal(|config| config.gzip_level = 10).await, "the gzip level 10 is not one of 0 to 9");
    assert_eq!(
        refusal(|config| config.http.ca_file = Some("/no/such/file".into())).await,
        "the platform's client: cannot read the certificate authorities of /no/such/file"
    );
}

#[tokio::test]
async fn nothing_shows_token_or_payload() {
    let sink = platform("http://127.0.0.1:1", |_| {}).await;
    assert_eq!(format!("{sink:?}"), "Platform { host: \"127.0.0.1:1\", .. }");
    let config = crate::support::config("http://a.example", "canary");
    assert!(!format!("{config:?}").contains("canary"));
}

#[test]
fn a_trace_is_the_same_for_a_retry_and_absent_without_an_id() {
    let mut first = shipment("{}", 1);
    assert_eq!(traceparent(&first), traceparent(&shipment("{}", 1)));
    assert_ne!(traceparent(&first), traceparent(&shipment("{}", 2)));
    first.report.trace = 0;
    assert_eq!(traceparent(&first), None);
}
