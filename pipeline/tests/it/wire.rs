//! What stands on the wire: how the platform is called, byte by byte, and how the other peers are.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Uri};
use loadtest::sim::server::serve;
use serde_json::{Value, json};

use crate::runtime::{Runtime, eventually, fleet, taken};
use crate::told;

/// A request as it came.
struct Request {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
}

impl Request {
    fn header(&self, name: &str) -> &str {
        let all: Vec<_> = self.headers.get_all(name).iter().collect();
        assert_eq!(all.len(), 1, "{name} stands {} times", all.len());
        all[0].to_str().unwrap()
    }
}

/// A platform that notes what comes and takes everything.
async fn platform() -> (String, Arc<Mutex<Vec<Request>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let noted = requests.clone();
    let take = move |method: Method, uri: Uri, headers: HeaderMap, zipped: Bytes| {
        let mut body = String::new();
        flate2::read::GzDecoder::new(&*zipped).read_to_string(&mut body).unwrap();
        noted.lock().unwrap().push(Request { method, uri, headers, body });
        async { "" }
    };
    let router = Router::new().fallback(take);
    let url = serve(router).await.unwrap();
    (url, requests)
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[tokio::test]
async fn a_report_is_posted_as_the_platform_expects_it() {
    let (url, requests) = platform().await;
    let simulation = fleet(3, 2, |_| {}).await;
    let runtime = Runtime::start(&simulation, &json!({"platform": {"url": url}})).await;
    eventually("all reports", || requests.lock().unwrap().len() >= 9).await;
    runtime.idle(3).await;
    runtime.stop().await;
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 9);
    let mut keys = BTreeSet::new();
    let mut traces: BTreeMap<String, usize> = BTreeMap::new();
    let mut spans = BTreeSet::new();
    for request in requests.iter() {
        assert_eq!(
            (&request.method, request.uri.path_and_query().unwrap().as_str()),
            (&Method::POST, "/2.0/api/events")
        );
        assert_eq!(request.header("content-type"), "application/json");
        assert_eq!(request.header("content-encoding"), "gzip");
        // As it stands in the file: without a scheme.
        assert_eq!(request.header("authorization"), "simulated-platform-token");
        let key = request.header("idempotency-key");
        assert!(is_hex(key, 64), "{key}");
        keys.insert(key.to_owned());
        let trace: Vec<&str> = request.header("traceparent").split('-').collect();
        let [version, trace, span, flags] = trace[..] else { panic!("{trace:?}") };
        assert_eq!((version, flags), ("00", "01"));
        assert!(is_hex(trace, 32) && is_hex(span, 16), "{trace} {span}");
        assert!(trace.bytes().any(|byte| byte != b'0') && span.bytes().any(|byte| byte != b'0'));
        *traces.entry(trace.to_owned()).or_default() += 1;
        spans.insert(span.to_owned());

        let body: Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["data"]);
        let mut parts: Vec<&str> = body["data"].as_object().unwrap().keys().map(String::as_str).collect();
        parts.retain(|part| *part != "errors");
        assert_eq!(parts, ["appVersions", "object", "source", "timestamp"]);
        let time = body["data"]["timestamp"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && time.get(19..20) == Some("."), "{time}");
    }
    assert_eq!((keys.len(), spans.len()), (9, 9), "a key and a span for each report");
    assert_eq!(traces.into_values().collect::<Vec<_>>(), [3, 3, 3], "a trace for each event");
}

#[tokio::test]
async fn the_platform_may_stand_below_a_path_of_its_address() {
    let (url, requests) = platform().await;
    let simulation = fleet(1, 1, |_| {}).await;
    let settings = json!({"platform": {"url": format!("{url}/base/")}, "reporter": {"sink": {"platform": {"path": "/v3/x"}}}});
    let runtime = Runtime::start(&simulation, &settings).await;
    eventually("all reports", || requests.lock().unwrap().len() >= 2).await;
    runtime.stop().await;
    assert!(requests.lock().unwrap().iter().all(|request| request.uri == "/base/v3/x"));
}

#[tokio::test]
async fn argo_cd_below_a_root_path_is_asked_there_with_its_token() {
    let simulation = told::world(|setup| setup.argocd_root = "/argo-cd".to_owned()).await;
    simulation.argocd.traffic().keep(100);
    told::put(&simulation, "web");
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, told::REPORTS).await;
    runtime.stop().await;
    let asked = simulation.argocd.traffic().kept();
    assert!(asked.iter().all(|path| path.starts_with("/argo-cd/api/")), "{asked:#?}");
    let about: Vec<&String> = asked.iter().filter(|path| path.contains("/applications/web/")).collect();
    assert!(about.len() >= 3 && about.iter().all(|path| path.contains("appNamespace=argocd&")), "{asked:#?}");
    assert_eq!((simulation.argocd.unauthorized(), simulation.kube.counts().unauthorized), (0, 0));
}
