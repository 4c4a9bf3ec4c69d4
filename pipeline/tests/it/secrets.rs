//! Canary secrets through the whole program: in every shape that the redaction knows, at every place where it may
//! come in, with every sink. No form of them may be in a byte sent, logged, served or kept.

mod shapes;

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadtest::canary::{FIRST, assert_absent};
use loadtest::process::Start;
use loadtest::sim::argocd::Kind;
use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::kube::Collection;
use loadtest::sim::platform::Keep;
use loadtest::sim::server::serve;
use loadtest::sim::{Setup, Simulation};
use pipeline_core::Key;
use serde_json::{Value, json};

use crate::ask;
use crate::runtime::{PROGRAM, Runtime, eventually, start};
use crate::told;
use crate::traces::Collector;
use shapes::Shape;

/// What the simulators ask for; to be nowhere but in the header of their own calls.
const TOKENS: [&str; 3] =
    ["simulated-argocd-token", "simulated-platform-token", "simulated-kubernetes-token"];

async fn world() -> (Simulation, Vec<Shape>) {
    let simulation = Simulation::start(Setup {
        tls: [None; 3],
        keep: Keep { last: false, reports: 1_000_000 },
        ..Setup::default()
    })
    .await
    .unwrap();
    let shapes = shapes::all();
    assert!(shapes.len() >= 30, "{} shapes", shapes.len());
    for shape in &shapes {
        shape.put(&simulation);
    }
    (simulation, shapes)
}

/// Every text that stands in a JSON value, however it is wrapped: in base64, or as JSON in a text.
fn unwrapped(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            out.push(text.clone());
            if let Ok(inner) = serde_json::from_str::<Value>(text)
                && (inner.is_object() || inner.is_array())
            {
                unwrapped(&inner, out);
            }
            if text.len() >= 8
                && let Ok(bytes) = STANDARD.decode(text)
                && let Ok(inner) = String::from_utf8(bytes)
            {
                unwrapped(&Value::String(inner), out);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| unwrapped(value, out)),
        Value::Object(all) => {
            for (name, value) in all {
                out.push(name.clone());
                unwrapped(value, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Texts by where they were seen.
#[derive(Default)]
struct Seen(BTreeMap<String, Vec<String>>);

impl Seen {
    fn add(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.0.entry(place.into()).or_default().push(text.into());
    }

    /// A payload, as it is and unwrapped, under the application that it is about.
    fn payload(&mut self, sink: &str, text: &str) {
        let payload: Value = serde_json::from_str(text).unwrap();
        let name = payload["source"]["appName"].as_str().unwrap_or_default();
        let mut texts = vec![text.to_owned()];
        unwrapped(&payload, &mut texts);
        let object = texts.iter().find_map(|text| {
            let object: Value = serde_json::from_str(text).ok()?;
            (object["kind"] == "Application")
                .then(|| object["metadata"]["name"].as_str().map(str::to_owned))?
        });
        let name = if name.is_empty() { object.unwrap_or_default() } else { name.to_owned() };
        self.0.entry(format!("{sink}: {name}")).or_default().extend(texts);
    }

    /// Asserts that no canary and no token stands in any of them; names every place where one does.
    fn assert_clean(&self) {
        let held: Vec<&String> = self
            .0
            .iter()
            .filter(|(place, texts)| {
                texts.iter().any(|text| {
                    TOKENS.iter().any(|token| text.contains(token))
                        || catch_unwind(|| assert_absent(place, text, &FIRST)).is_err()
                })
            })
            .map(|(place, _)| place)
            .collect();
        assert!(held.is_empty(), "a secret came out in {} of {} places: {held:#?}", held.len(), self.0.len());
    }
}

/// What the program says and serves.
async fn look(runtime: &Runtime, seen: &mut Seen) {
    for page in ["/", "/healthz", "/healthz?full=true", "/readyz", "/metrics", "/status", "/app-distribution"]
    {
        seen.add(page, runtime.page(page).await.1);
    }
}

fn logged(runtime: &Runtime, seen: &mut Seen) {
    let lines = runtime.process().lines().all();
    assert!(lines.len() < 19_000, "lines of the log were dropped: {}", lines.len());
    for line in lines {
        seen.add("log", line);
    }
}

/// Every file that the program keeps, but for its settings and the tokens it was given.
fn kept(simulation: &Simulation, seen: &mut Seen) {
    let state = simulation.directory().join("state");
    let mut files = 0;
    for entry in std::fs::read_dir(&state).unwrap() {
        let path = entry.unwrap().path();
        seen.add(format!("file {}", path.display()), String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
        files += 1;
    }
    assert!(files >= 2, "no ledger in {}", state.display());
}

/// Every byte that went to the collector of traces.
fn traced(collector: &Collector, seen: &mut Seen) {
    let bodies = collector.bodies();
    assert!(!bodies.is_empty(), "nothing was traced");
    bodies.iter().for_each(|body| seen.add("traces", String::from_utf8_lossy(body)));
}

/// Trace logs, and the family of metrics that has names.
fn talkative() -> Value {
    json!({"log": {"level": "trace"}, "metrics": {"compat": true}})
}

/// The applications of which there must be a report, and reports of whom there are.
fn assert_all_reported(shapes: &[Shape], seen: &Seen, sink: &str) {
    let missing: Vec<&str> = shapes
        .iter()
        .map(|shape| shape.name.as_str())
        .filter(|name| !seen.0.contains_key(&format!("{sink}: {name}")))
        .collect();
    assert!(missing.is_empty(), "never reported: {missing:?}");
}

#[test]
fn a_canary_that_comes_out_is_found() {
    let hidden = json!({"deep": [STANDARD.encode(format!("{{\"x\": \"{}\"}}", FIRST.text))]}).to_string();
    for text in [FIRST.text, &FIRST.text.to_uppercase(), TOKENS[1], &STANDARD.encode(FIRST.alphanumeric)] {
        let mut seen = Seen::default();
        seen.add("log", format!("one {text} two"));
        assert!(catch_unwind(|| seen.assert_clean()).is_err(), "{text}");
    }
    let object = json!({"object": STANDARD.encode(&hidden), "source": {"appName": "web"}});
    let mut seen = Seen::default();
    seen.payload("platform", &object.to_string());
    assert_eq!(seen.0.keys().collect::<Vec<_>>(), ["platform: web"]);
    assert!(catch_unwind(|| seen.assert_clean()).is_err());
}

#[tokio::test]
async fn no_shape_of_a_secret_reaches_the_platform_the_log_a_page_or_the_disk() {
    let (simulation, shapes) = world().await;
    let headers = Arc::new(Mutex::new(Vec::new()));
    let noted = headers.clone();
    simulation.platform.look_on(move |arrived| {
        let mut headers = arrived.headers.clone();
        headers.remove("authorization");
        noted.lock().unwrap().push(format!("{headers:?}"));
    });
    let collector = Collector::start().await;
    let mut more = talkative();
    more["traces"] = collector.settings();
    let runtime = Runtime::start(&simulation, &more).await;
    runtime.idle(shapes.len() as u64).await;
    let parked = "an event was refused for good and is parked";
    let log = runtime.log();
    let parked: Vec<&str> =
        log.iter().filter(|line| line.message == parked).map(|line| line.field("key")).collect();
    assert!(parked.is_empty(), "{parked:?}");
    let mut seen = Seen::default();
    look(&runtime, &mut seen).await;
    let names: Vec<&str> = shapes.iter().map(|shape| shape.name.as_str()).collect();
    for (command, text) in ask::everything(&simulation, &names).await {
        seen.add(command, text);
    }
    logged(&runtime, &mut seen);
    runtime.stop().await;
    kept(&simulation, &mut seen);
    traced(&collector, &mut seen);
    headers.lock().unwrap().drain(..).for_each(|text| seen.add("headers", text));
    for report in simulation.platform.kept() {
        seen.payload("platform", std::str::from_utf8(&report.payload).unwrap());
    }
    assert_all_reported(&shapes, &seen, "platform");
    let reports = simulation.platform.totals().taken as usize;
    assert!(reports >= 2 * shapes.len(), "only {reports} reports: resources are missing");
    seen.assert_clean();
}

/// Asserts that each shape is reported in the lines of a file, and that no canary is in these or in the log.
async fn assert_lines_clean(runtime: Runtime, shapes: &[Shape], path: &Path, sink: &str) {
    runtime.idle(shapes.len() as u64).await;
    let mut seen = Seen::default();
    logged(&runtime, &mut seen);
    runtime.stop().await;
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        seen.payload(sink, &line["data"].to_string());
    }
    assert_all_reported(shapes, &seen, sink);
    seen.assert_clean();
}

#[tokio::test]
async fn no_shape_of_a_secret_reaches_a_file() {
    let (simulation, shapes) = world().await;
    let path = simulation.directory().join("reports.jsonl");
    let mut more = talkative();
    more["reporter"] = json!({"sink": {"kind": "file", "file": {"path": path}}});
    let runtime = Runtime::start(&simulation, &more).await;
    assert_lines_clean(runtime, &shapes, &path, "file").await;
}

#[tokio::test]
async fn no_shape_of_a_secret_reaches_standard_output() {
    let (simulation, shapes) = world().await;
    let path = simulation.directory().join("stdout.jsonl");
    let mut more = talkative();
    more["reporter"] = json!({"sink": {"kind": "stdout"}});
    let line = format!("exec {PROGRAM} reporter > {}", path.display());
    let shell = Start {
        program: PathBuf::from("/bin/sh"),
        args: vec!["-c".into(), line.into()],
        ..start(&simulation, &more)
    };
    let runtime = Runtime::launch(shell).await;
    assert_lines_clean(runtime, &shapes, &path, "stdout").await;
}

#[tokio::test]
async fn peers_that_fail_with_secrets_in_their_answers_are_not_quoted() {
    let simulation = Simulation::start(Setup { tls: [None; 3], ..Setup::default() }).await.unwrap();
    let secret = FIRST.text;
    let says = format!("helm template --set auth.password={secret} failed: token {secret}");
    let error = json!({"error": says, "code": 2, "message": says}).to_string();
    let nonsense = format!("{{\"items\": [{{\"liveState\": \"{secret}\", oops {secret}");
    let kinds =
        [Kind::ManagedResources, Kind::ResourceTree, Kind::Manifests, Kind::Resource, Kind::RevisionMetadata];
    let answers: [(&str, u16, &str); 6] = [
        ("fails-500", 500, &error),
        ("fails-400", 400, &error),
        ("fails-403", 403, &error),
        ("fails-503", 503, &nonsense),
        ("answers-nonsense", 200, &nonsense),
        ("answers-a-text", 200, "\"kanarie-7Qx!Zp9~w\""),
    ];
    for (name, status, body) in answers {
        simulation.kube.apply(Collection::Applications, told::application(name, &told::thing())).unwrap();
        for kind in kinds {
            simulation.argocd.set(kind, name, status, body.to_owned());
        }
    }
    for number in 0..8 {
        told::put(&simulation, &format!("fine-{number}"));
    }
    // Objects that nobody can read.
    let nameless = Key::new("argocd", "nameless").unwrap();
    simulation.kube.apply_text(Collection::Applications, &nameless, |_| {
        format!("{{\"metadata\": {{\"password\": \"{secret}\"}}, \"spec\": \"{secret}\"}}").into()
    });
    let platform = Echo::start().await;
    let collector = Collector::start().await;
    let mut more = talkative();
    more["traces"] = collector.settings();
    more["platform"] = json!({"url": platform.url});
    more["argocd"] = json!({"retries": 1});
    let runtime = Runtime::start(&simulation, &more).await;
    runtime.counts("gitops_runtime_malformed_objects_total", &[], 1.0).await;
    eventually("a watch", || simulation.kube.open_watches() > 0).await;
    simulation.kube.inject(&format!("{{\"type\": \"ADDED\", \"object\": {{\"spec\": \"{secret}\"}}}}"));
    simulation.kube.inject(&format!("{secret} is no json"));
    simulation.kube.inject(&format!(
        "{{\"type\": \"ERROR\", \"object\": {{\"kind\": \"Status\", \"code\": 500, \"message\": \"{secret}\"}}}}"
    ));
    runtime.says("the watch broke and is begun again").await;
    runtime.counts("gitops_runtime_malformed_objects_total", &[], 3.0).await;
    let elsewhere = Fault::Redirect { to: format!("https://elsewhere.example/?token={secret}") };
    simulation.argocd.faults().add(Rule::always(elsewhere).on("settings").times(1));
    eventually("the platform to be asked a few times", || platform.posts() >= 8).await;
    runtime.counts("gitops_runtime_call_failures_total", &[("peer", "argocd")], 10.0).await;
    let mut seen = Seen::default();
    look(&runtime, &mut seen).await;
    logged(&runtime, &mut seen);
    runtime.stop().await;
    kept(&simulation, &mut seen);
    traced(&collector, &mut seen);
    platform.bodies().iter().for_each(|body| seen.add("platform", body.as_str()));
    seen.assert_clean();
}

/// A platform that takes nothing and answers with what it got and a secret, under ever other statuses.
struct Echo {
    url: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    async fn start() -> Self {
        use std::io::Read as _;
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let noted = bodies.clone();
        let router = Router::new().fallback(move |body: Bytes| {
            let mut text = String::new();
            flate2::read::GzDecoder::new(&*body).read_to_string(&mut text).unwrap();
            let mut noted = noted.lock().unwrap();
            noted.push(text.clone());
            // The token is refused last: nothing more comes for minutes then.
            let status = [401, 500, 503, 429, 400, 422, 500, 503][noted.len() % 8];
            let answer = format!("{{\"message\": \"{} refused: {text}\"}}", FIRST.text);
            async move { (StatusCode::from_u16(status).unwrap(), answer) }
        });
        let url = serve(router).await.unwrap();
        Self { url, bodies }
    }

    fn posts(&self) -> usize {
        self.bodies.lock().unwrap().len()
    }

    fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }
}
