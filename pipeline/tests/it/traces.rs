//! Traces of the real binary, as an OpenTelemetry collector receives them over real HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse as _;
use loadtest::sim::Simulation;
use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::kube::Collection;
use loadtest::sim::server::serve;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AttributeValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};

use crate::ask;
use crate::runtime::{Runtime, fleet, http_client, start, taken};
use crate::told::{self, REPORTS};

const SPANS: &str = "gitops_runtime_trace_spans_total";
const AWAY: &str = "the collector does not take traces: they are dropped until it does";

/// A collector.
#[derive(Clone)]
pub(crate) struct Collector {
    url: String,
    status: Arc<AtomicU16>,
    requests: Arc<Mutex<Vec<(Uri, HeaderMap, Bytes)>>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let (status, requests) = (Arc::new(AtomicU16::new(200)), Arc::new(Mutex::new(Vec::new())));
        let (answer, noted) = (status.clone(), requests.clone());
        let router = Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let status = StatusCode::from_u16(answer.load(Ordering::SeqCst)).unwrap();
            if status.is_success() {
                noted.lock().unwrap().push((uri, headers, body));
            }
            // What it says of its errors is nobody's business.
            async move { (status, "kanarie") }
        });
        let url = serve(router).await.unwrap();
        Self { url, status, requests }
    }

    /// Settings that send traces to it.
    pub(crate) fn settings(&self) -> Value {
        json!({"otlp": {"url": self.url}})
    }

    /// The bodies of all requests that it took.
    pub(crate) fn bodies(&self) -> Vec<Bytes> {
        self.requests.lock().unwrap().iter().map(|(.., body)| body.clone()).collect()
    }

    fn answers(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.bodies();
        let requests = requests.iter().map(|body| ExportTraceServiceRequest::decode(&**body).unwrap());
        let resources = requests.flat_map(|request| request.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// By trace id, as hexadecimal digits.
    fn traces(&self) -> BTreeMap<String, Vec<Span>> {
        let mut traces: BTreeMap<String, Vec<Span>> = BTreeMap::new();
        for span in self.spans() {
            traces.entry(hexadecimal(&span.trace_id)).or_default().push(span);
        }
        traces
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let value = attributes.iter().find(|attribute| attribute.key == key)?.value.clone()?.value?;
    Some(match value {
        AttributeValue::StringValue(text) => text,
        AttributeValue::IntValue(number) => number.to_string(),
        other => panic!("{key}: {other:?}"),
    })
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    text(&span.attributes, key)
}

/// The root of a trace, once all of it has been looked at.
fn root(spans: &[Span]) -> &Span {
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id.is_empty()).collect();
    assert_eq!(roots.len(), 1, "one event, one root: {spans:#?}");
    let known: BTreeMap<&[u8], &Span> = spans.iter().map(|span| (&*span.span_id, span)).collect();
    assert_eq!(known.len(), spans.len(), "every span has an id of its own: {spans:#?}");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    for span in spans {
        let (from, to) = (span.start_time_unix_nano, span.end_time_unix_nano);
        assert!(from <= to && u128::from(to) <= now, "{span:#?}");
        assert!(now - u128::from(from) < 600_000_000_000, "of this test: {span:#?}");
        if span.parent_span_id.is_empty() {
            continue;
        }
        let parent = known.get(&*span.parent_span_id).unwrap_or_else(|| panic!("no parent: {span:#?}"));
        // Tries that failed are told before the event ends. Each time the two clocks are read one after the other, and
        // the process may have to wait in between.
        let slack = 100_000_000;
        assert!(parent.start_time_unix_nano <= from + slack, "{span:#?} begins before {parent:#?}");
        assert!(to <= parent.end_time_unix_nano + slack, "{span:#?} ends after {parent:#?}");
    }
    roots[0]
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// Stands before Argo CD and notes what requests carry.
async fn before_argocd(simulation: &Simulation) -> (String, Arc<Mutex<Vec<(String, String)>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (noted, behind) = (seen.clone(), simulation.argocd.url());
    let client = http_client();
    let router = Router::new().fallback(move |request: Request| {
        let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        if let Some(trace) = header("traceparent") {
            noted.lock().unwrap().push((request.uri().path().to_owned(), trace));
        }
        let onward = client
            .get(format!("{behind}{}", request.uri()))
            .header("authorization", header("authorization").unwrap_or_default())
            .send();
        async move {
            let answer = onward.await.unwrap();
            (answer.status(), answer.bytes().await.unwrap()).into_response()
        }
    });
    (serve(router).await.unwrap(), seen)
}

#[tokio::test]
async fn each_event_is_one_trace_under_the_id_that_explain_shows() {
    let simulation = told::world(|_| {}).await;
    let mut object = told::application("shop", &told::thing());
    object["status"]["resourceHealthSource"] = json!("appTree");
    told::put_object(&simulation, object.clone());
    let collector = Collector::start().await;
    let (argocd, asked) = before_argocd(&simulation).await;
    let shipped = Arc::new(Mutex::new(BTreeSet::new()));
    let noted = shipped.clone();
    simulation.platform.look_on(move |arrived| {
        let trace = arrived.headers["traceparent"].to_str().unwrap().to_owned();
        noted.lock().unwrap().insert(trace);
    });
    let file = simulation.directory().join("otlp-token");
    std::fs::write(&file, "kanarie-token\n").unwrap();
    let more = json!({
        "argocd": {"url": argocd},
        "traces": {
            "service": {"namespace": "tests"},
            "otlp": {"url": collector.url, "tokenFile": file, "headers": "x-tenant=kanarie header"},
        },
    });
    let runtime = Runtime::start(&simulation, &more).await;
    taken(&simulation, REPORTS).await;
    runtime.idle(1).await;
    object["status"]["reconciledAt"] = json!("2026-01-01T00:00:07Z");
    simulation.kube.apply(Collection::Applications, object.clone()).unwrap();
    runtime.until("the second event", |status| status.total.filtered == 1).await;
    // The third is refused at first.
    let refusal = Rule::always(Fault::Status { status: 503, retry_after: None }).times(1);
    simulation.platform.faults().add(refusal);
    object["status"]["health"]["message"] = json!("slow");
    simulation.kube.apply(Collection::Applications, object).unwrap();
    runtime.until("the third event", |status| status.total.acked == 2).await;
    let explained = ask::json(&simulation, &["explain", "shop"]).await;
    let said = ask::answer(&simulation, &["explain", "shop"]).await;
    runtime.counts(SPANS, &[("result", "exported")], 1.0).await;
    let log = runtime.stop().await;

    let traces = collector.traces();
    let steps = explained["steps"].as_array().unwrap();
    let shown: Vec<&str> = steps.iter().map(|step| step["trace"].as_str().unwrap()).collect();
    let known: BTreeSet<&str> = traces.keys().map(String::as_str).collect();
    assert_eq!(known, shown.iter().copied().collect(), "{explained:#}");
    assert_eq!(known.len(), 3, "{explained:#}");
    let last = *shown.last().unwrap();
    let row = format!(" trace         {last}, of the last event; --json tells all\n");
    assert!(said.contains(&row), "{said}");

    let outcomes = traces.values().map(|spans| {
        let root = root(spans);
        assert_eq!(root.name, "event");
        let of = |key| attribute(root, key).unwrap_or_default();
        assert_eq!(
            (of("gitops.application.name"), of("gitops.application.namespace")),
            ("shop".into(), "argocd".into())
        );
        assert!(!of("gitops.application.uid").is_empty() && !of("gitops.shard").is_empty(), "{root:#?}");
        let version: u64 = of("gitops.application.resource_version").parse().unwrap();
        (version, (of("gitops.outcome"), of("gitops.reason")))
    });
    let outcomes: BTreeMap<u64, (String, String)> = outcomes.collect();
    let outcomes: Vec<(&str, &str)> = outcomes.values().map(|(end, why)| (&**end, &**why)).collect();
    assert_eq!(outcomes, [("acked", ""), ("filtered", "reconciled_only"), ("acked", "")]);

    let first = &traces[shown[0]];
    for (name, number) in [("queue", 1), ("enrich", 1), ("argocd managed_resources", 1), ("report", 3)] {
        assert_eq!(named(first, name).len(), number, "{name}: {first:#?}");
    }
    let enrich = named(first, "enrich")[0];
    assert_eq!(attribute(enrich, "gitops.reports").as_deref(), Some("3"));
    for call in first.iter().filter(|span| span.name.starts_with("argocd ")) {
        assert_eq!(call.parent_span_id, enrich.span_id);
    }
    for report in named(first, "report") {
        assert_eq!(report.parent_span_id, root(first).span_id);
        assert_eq!(attribute(report, "gitops.outcome").as_deref(), Some("acknowledged"));
    }
    let third = &traces[last];
    let failed = |span: &&Span| attribute(span, "error.type").as_deref() == Some("server_error");
    let refused: Vec<&Span> = named(third, "report").into_iter().filter(failed).collect();
    assert!(!refused.is_empty() && !named(third, "retry wait").is_empty(), "{third:#?}");
    assert!(named(third, "enrich").len() >= 2, "{third:#?}");

    // What the peers were told is what the collector knows.
    for report in traces.values().flat_map(|spans| named(spans, "report")) {
        let header = format!("00-{}-{}-01", hexadecimal(&report.trace_id), hexadecimal(&report.span_id));
        let taken = attribute(report, "error.type").is_none();
        assert_eq!(shipped.lock().unwrap().contains(&header), taken, "{report:#?}");
    }
    let asked = asked.lock().unwrap();
    let of = |span: &Span| format!("00-{}-{}-01", hexadecimal(&span.trace_id), hexadecimal(&span.span_id));
    let enrichments: BTreeSet<String> =
        traces.values().flat_map(|spans| named(spans, "enrich")).map(of).collect();
    assert!(asked.iter().any(|(path, _)| path.ends_with("/managed-resources")), "{asked:?}");
    assert!(asked.iter().all(|(_, trace)| enrichments.contains(trace)), "{asked:?} and {enrichments:?}");

    for (uri, headers, body) in &*collector.requests.lock().unwrap() {
        assert_eq!(uri.path(), "/v1/traces");
        assert_eq!(headers["content-type"], "application/x-protobuf");
        assert_eq!(headers["authorization"], "Bearer kanarie-token");
        assert_eq!(headers["x-tenant"], "kanarie header");
        assert!(!String::from_utf8_lossy(body).contains("kanarie"));
        let request = ExportTraceServiceRequest::decode(&**body).unwrap();
        let resource = request.resource_spans[0].resource.as_ref().unwrap();
        let of = |key| text(&resource.attributes, key).unwrap_or_default();
        assert_eq!((of("service.name"), of("service.namespace")), ("gitops-runtime".into(), "tests".into()));
        assert_eq!(of("service.version"), env!("CARGO_PKG_VERSION"));
    }
    assert!(log.iter().any(|line| line.message == "events are traced"));
    assert!(!log.iter().any(|line| line.fields.to_string().contains("kanarie")));
}

#[tokio::test]
async fn what_was_read_again_is_traced_with_its_read() {
    let simulation = fleet(60, 1, |_| {}).await;
    let collector = Collector::start().await;
    let slow = Rule::always(Fault::Delay { ms: 500 }).on("managed_resources");
    simulation.argocd.faults().add(slow.times(16));
    let more = json!({
        "traces": collector.settings(),
        "reporter": {"sharding": {"shards": 1}, "queue": {"events": 10}},
    });
    let runtime = Runtime::start(&simulation, &more).await;
    taken(&simulation, 120).await;
    let status = runtime.idle(60).await;
    assert!(status.total.reads > 0, "nothing was read again: {status:?}");
    runtime.stop().await;
    let traces = collector.traces();
    assert_eq!(traces.len() as u64, status.total.observed);
    let read = traces.values().filter(|spans| !named(spans, "read").is_empty());
    let mut reads = 0;
    for spans in read {
        let [link] = &root(spans).links[..] else { panic!("{spans:#?}") };
        let former = root(&traces[&hexadecimal(&link.trace_id)]);
        assert_eq!(former.span_id, link.span_id);
        assert_eq!(attribute(former, "gitops.outcome").as_deref(), Some("coalesced"));
        assert_eq!(
            attribute(former, "gitops.application.name"),
            attribute(root(spans), "gitops.application.name")
        );
        reads += 1;
    }
    assert_eq!(reads, status.total.reads);
}

#[tokio::test]
async fn a_collector_that_is_away_costs_spans_and_nothing_else() {
    let simulation = fleet(50, 3, |_| {}).await;
    let collector = Collector::start().await;
    collector.answers(503);
    let runtime = Runtime::start(&simulation, &json!({"traces": collector.settings()})).await;
    taken(&simulation, 200).await;
    runtime.idle(50).await;
    let line = runtime.says(AWAY).await;
    assert_eq!(line.level, "WARN");
    assert!(line.field("error").ends_with("it answered 503"), "{line:?}");
    runtime.counts(SPANS, &[("result", "failed")], 1.0).await;
    collector.answers(200);
    // What was traced so far may be lost whole.
    told::put(&simulation, "later");
    let told = runtime.says("the collector takes traces again").await;
    assert!(told.fields["lost"].as_u64() > Some(0), "{told:?}");
    runtime.counts(SPANS, &[("result", "exported")], 1.0).await;
    let log = runtime.stop().await;
    assert_eq!(log.iter().filter(|line| line.message == AWAY).count(), 1, "an outage is said once");
    assert!(!log.iter().any(|line| line.fields.to_string().contains("kanarie")));
    let totals = simulation.platform.totals();
    assert!(totals.taken > 200, "{totals:?}");
    assert_eq!((totals.posts, totals.out_of_order), (totals.taken, 0));
}

#[tokio::test]
async fn nobody_listens_at_the_collectors_address() {
    let simulation = fleet(50, 3, |_| {}).await;
    // Bound, so that nobody else is given the port, and not listening.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = socket.local_addr().unwrap();
    let more = json!({
        "traces": {"otlp": {"url": format!("http://{closed}")}},
        "shutdown": {"grace": "2s"},
    });
    let runtime = Runtime::start(&simulation, &more).await;
    taken(&simulation, 200).await;
    runtime.idle(50).await;
    runtime.counts(SPANS, &[("result", "failed")], 1.0).await;
    assert_eq!(runtime.counted(SPANS, &[("result", "exported")]).await, 0.0);
    assert_eq!(runtime.page("/healthz").await.0, 200, "the reporter is well without it");
    let log = runtime.stop().await;
    assert_eq!(log.iter().filter(|line| line.message == AWAY).count(), 1);
    assert_eq!(simulation.platform.totals().posts, 200);
}

#[tokio::test]
async fn nothing_is_traced_unless_the_settings_say_so() {
    let simulation = fleet(10, 1, |_| {}).await;
    let collector = Collector::start().await;
    for more in [json!({}), json!({"traces": {"ratio": 0, "otlp": {"url": collector.url}}})] {
        let mut start = start(&simulation, &more);
        for name in ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] {
            start.env.push((name.into(), collector.url.clone()));
        }
        let runtime = Runtime::launch(start).await;
        taken(&simulation, 20).await;
        runtime.idle(10).await;
        assert!(!runtime.page("/metrics").await.1.contains("trace_spans"), "not even a series");
        let log = runtime.stop().await;
        assert!(!log.iter().any(|line| line.message == "events are traced"));
        let ignored = "this variable is known and not needed";
        let said = |variable: &str| {
            log.iter().any(|line| line.message == ignored && line.field("variable") == variable)
        };
        assert!(
            said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
            "what the incumbent heeds is not ignored silently"
        );
    }
    assert_eq!(collector.bodies().len(), 0);
}
