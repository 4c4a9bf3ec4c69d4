//! The source server asked over a bus: within a process and through a real `nats-server`, with the answers of HTTP.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use git2::build::TreeUpdateBuilder;
use git2::{FileMode, Repository, Signature, Time};
use loadtest::nats::NatsServer;
use loadtest::sim::server::serve;
use loadtest::sim::wait_for;
use pipeline_bus::Memory;
use pipeline_core::{REQUEST_BYTES, Requests, Shutdown, async_trait};
use prometheus::{Registry, TextEncoder};
use serde_json::{Value, json};
use stages_git::remote::Tenant;
use stages_source::{
    Directories, FixedVersionSource, Library, LibraryConfig, LocalCommit, ManifestsRequest, Operation,
    Operations, OverBus, Question, ReceivedManifests, Repositories, RepositoryError, RequestedSource,
    SUBJECT, ServeBounds, SourceApi, TokenFile, routes, serve_over,
};
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::runtime::{Runtime, SOON, eventually, http_client};
use crate::sources::{Kept, URL, carries_what_git_says, refused, reported};
use crate::told;

/// Bytes of a question.
const BOUNDS: ServeBounds = ServeBounds { body: 8 << 20 };

/// A connection of one process to the bus of a server.
pub(crate) async fn connected(server: &NatsServer) -> Arc<dyn Requests> {
    Arc::new(crate::bus_commands::connected(server).await)
}

/// A bus as those who ask and those who answer have it.
struct Between {
    name: &'static str,
    asks: Arc<dyn Requests>,
    answers: Arc<dyn Requests>,
    _server: Option<NatsServer>,
}

/// Each kind of bus.
async fn buses() -> Vec<Between> {
    let memory: Arc<dyn Requests> = Arc::new(Memory::default());
    let server = NatsServer::start().await.unwrap();
    let (asks, answers) = (connected(&server).await, connected(&server).await);
    vec![
        Between { name: "memory", asks: memory.clone(), answers: memory, _server: None },
        Between { name: "nats", asks, answers, _server: Some(server) },
    ]
}

/// What answers over a bus, until it is stopped.
struct Answerer {
    stop: Shutdown,
    ended: JoinHandle<()>,
}

impl Answerer {
    /// Begins, and returns once it can be asked.
    async fn begin(between: &Between, answering: SourceApi) -> Self {
        Self::begin_for(between, answering, Operations::ALL).await
    }

    /// The same, where no more than this may be asked for.
    async fn begin_for(between: &Between, answering: SourceApi, may: Operations) -> Self {
        let stop = Shutdown::new();
        let within = (BOUNDS, may);
        let ended = tokio::spawn(serve_over(between.answers.clone(), answering, within, SOON, stop.clone()));
        let what = format!("an answer over {}", between.name);
        wait_for(&what, async || between.asks.request(SUBJECT, "?".into(), SOON).await, Result::is_ok)
            .await
            .unwrap();
        Self { stop, ended }
    }

    async fn end(self) {
        self.stop.cancel();
        self.ended.await.unwrap();
    }
}

fn library(repositories: impl Repositories + 'static) -> Library {
    let config = LibraryConfig { concurrency: 2, timeout: SOON, cache_bytes: 1 << 20 };
    config.build(Arc::new(repositories), Arc::new(FixedVersionSource(None)))
}

fn kept_library(kept: &Kept) -> Library {
    library(Directories::new([(URL, kept.folder.path().join("repo"))]))
}

/// What is answered to a question as it stands: its status, and the answer or why there is none.
async fn ask_raw(bus: &dyn Requests, payload: Vec<u8>) -> (u64, Value) {
    let answer = bus.request(SUBJECT, payload.into(), SOON).await.unwrap();
    let reply: Value = serde_json::from_slice(&answer).unwrap();
    let status = reply["status"].as_u64().unwrap();
    match reply.get("answer") {
        Some(answer) => (status, answer.clone()),
        None => (status, json!({"error": reply["error"]})),
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packing = GzEncoder::new(Vec::new(), Compression::default());
    packing.write_all(text).unwrap();
    packing.finish().unwrap()
}

fn application(path: &str) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"}, "spec": {"source": {"repoURL": URL, "path": path}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn each_question_has_the_answer_that_http_gives() {
    stages_client::install_crypto();
    let kept = Kept::new();
    for between in buses().await {
        let registry = Registry::new();
        let answering = SourceApi::new(kept_library(&kept), &registry);
        let routes = routes(answering.clone(), Arc::new(TokenFile::open(&kept.token()).await), BOUNDS);
        let address = serve(routes).await.unwrap();
        let client = http_client();
        let answerer = Answerer::begin(&between, answering).await;
        let thing = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\n";
        let sources = json!([{"source": {"repoURL": URL, "path": "shop"}}]);
        let (one, gone) = (json!({"repoURL": URL}), json!({"repoURL": URL, "revision": "gone"}));
        let elsewhere = json!({"repoURL": "https://elsewhere.example/a.git"});
        let files = json!({"repoURL": URL, "from": kept.revision, "to": "HEAD", "paths": "shop; other"});
        let changes = json!({"app": application("shop"), "to": "HEAD"});
        let no_source = json!({"app": application("shop"), "to": "HEAD", "source": 1});
        let version = json!({"app": application("shop"), "revision": kept.revision});
        for (member, path, is_get, of, status) in [
            ("manifests", "/v1/manifests", false, json!({"sources": sources, "compiled": [thing]}), 200),
            ("manifests", "/v1/manifests", false, json!({"sources": sources}), 200),
            ("manifests", "/v1/manifests", false, json!({"sources": []}), 400),
            ("commit", "/v1/commit", true, one, 200),
            ("commit", "/v1/commit", true, gone, 404),
            ("commit", "/v1/commit", true, elsewhere, 404),
            ("files", "/v1/changes", true, files, 200),
            ("changes", "/v1/changes", false, changes, 200),
            ("changes", "/v1/changes", false, no_source, 400),
            ("appVersion", "/getAppVersion", false, version, 200),
            ("appVersion", "/getAppVersion", false, application("shop"), 200),
            ("appVersion", "/getAppVersion", false, json!({}), 400),
        ] {
            let url = format!("{address}{path}");
            let request = if is_get { client.get(url).query(&of) } else { client.post(url).json(&of) };
            let over_http = request.bearer_auth("callers-token").send().await.unwrap();
            let wanted = (u64::from(over_http.status().as_u16()), over_http.json::<Value>().await.unwrap());
            assert_eq!(wanted.0, status, "{member}: {wanted:?}");
            let question = json!({member: of}).to_string().into_bytes();
            assert_eq!(ask_raw(&*between.asks, question).await, wanted, "{member} over {}", between.name);
        }
        let counted = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        assert!(counted.contains("{operation=\"commit\",status=\"ok\"} 2"), "once by each way: {counted}");
        answerer.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_manifests_may_be_asked_for_nothing_else_is_answered() {
    let kept = Kept::new();
    for between in buses().await {
        let registry = Registry::new();
        let answering = SourceApi::new(kept_library(&kept), &registry);
        let may = Operations::from_iter([Operation::Manifests]);
        let answerer = Answerer::begin_for(&between, answering, may).await;
        let ask = async |question: Value| ask_raw(&*between.asks, question.to_string().into_bytes()).await;
        let sources = json!([{"source": {"repoURL": URL, "path": "shop"}}]);
        assert_eq!(ask(json!({"manifests": {"sources": sources}})).await.0, 200, "{}", between.name);
        for (question, what) in [
            (json!({"commit": {"repoURL": URL}}), "commit"),
            (json!({"files": {"repoURL": URL, "from": "HEAD", "to": "HEAD"}}), "changes"),
            (json!({"changes": {"app": application("shop"), "to": "HEAD"}}), "changes"),
            (json!({"appVersion": application("shop")}), "app_version"),
        ] {
            let why = format!(
                "whoever asks may not ask for {what}: sourceServer.callers says who may ask for what"
            );
            assert_eq!(ask(question).await, (403, json!({"error": why})), "{}", between.name);
        }
        let counted = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        assert!(counted.contains("{operation=\"changes\",status=\"refused\"} 2"), "{counted}");
        answerer.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_question_and_what_is_too_large_are_refused_with_why() {
    let kept = Kept::new();
    for between in buses().await {
        let bus = &*between.asks;
        let none = bus.request(SUBJECT, "{}".into(), SOON).await.unwrap_err();
        assert_eq!(none.to_string(), "nobody serves `source`", "{}", between.name);
        let answering = SourceApi::new(kept_library(&kept), &Registry::new());
        let answerer = Answerer::begin(&between, answering).await;
        let unread =
            "it is no question: ask with JSON of one member, manifests, commit, files, changes or appVersion";
        let mut broken = gzip(b"{}");
        broken.truncate(12);
        for payload in [
            b"?".to_vec(),
            b"{}".to_vec(),
            json!({"secret": "x"}).to_string().into_bytes(),
            json!({"commit": {"repoURL": URL, "more": 1}}).to_string().into_bytes(),
            json!({"commit": {"repoURL": URL}, "files": {}}).to_string().into_bytes(),
            b"\xff\x00".to_vec(),
        ] {
            assert_eq!(ask_raw(bus, payload).await, (400, json!({"error": unread})));
        }
        // What was packed is answered packed.
        let unpacked = async |payload: Vec<u8>| {
            let answer = bus.request(SUBJECT, payload.into(), SOON).await.unwrap();
            let mut text = String::new();
            GzDecoder::new(&answer[..]).read_to_string(&mut text).unwrap();
            serde_json::from_str::<Value>(&text).unwrap()
        };
        assert_eq!(unpacked(broken).await, json!({"status": 400, "error": unread}));
        let commit = gzip(json!({"commit": {"repoURL": URL}}).to_string().as_bytes());
        assert_eq!(unpacked(commit).await["answer"]["revision"], kept.revision);
        // It is small while it travels.
        let bomb = gzip(&vec![b' '; BOUNDS.body + 1]);
        assert!(bomb.len() < 100_000);
        let why = "the question is larger than sourceServer.maxBody allows";
        assert_eq!(unpacked(bomb).await, json!({"status": 413, "error": why}));
        let beyond = bus.request(SUBJECT, vec![b' '; REQUEST_BYTES + 1].into(), SOON).await.unwrap_err();
        let why = format!(
            "{} bytes are more than the {REQUEST_BYTES} of a question or an answer",
            REQUEST_BYTES + 1
        );
        assert_eq!(beyond.to_string(), why);
        answerer.end().await;
        let ended = bus.request(SUBJECT, "{}".into(), Duration::from_secs(1)).await.unwrap_err();
        assert!(ended.to_string().contains("`source`"), "{ended}");
    }
}

/// A repository of so many manifests, which hardly shrink; and these as they are compiled.
fn many(directory: &Path, manifests: usize) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(7);
    let repository = Repository::init_bare(directory).unwrap();
    let empty = repository.find_tree(repository.treebuilder(None).unwrap().write().unwrap()).unwrap();
    let mut update = TreeUpdateBuilder::new();
    let mut all = Vec::new();
    for number in 0..manifests {
        let noise: String = (0..4_000).map(|_| random.alphanumeric()).collect();
        let manifest = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}}}\ndata: {{noise: {noise}}}\n"
        );
        let blob = repository.blob(manifest.as_bytes()).unwrap();
        update.upsert(format!("many/{number}.yaml"), blob, FileMode::Blob);
        all.push(manifest);
    }
    let tree = repository.find_tree(update.create_updated(&repository, &empty).unwrap()).unwrap();
    let who = Signature::new("Ada", "ada@example.com", &Time::new(1_700_000_000, 0)).unwrap();
    repository.commit(Some("HEAD"), &who, &who, "First\n", &tree, &[]).unwrap();
    all
}

fn asked(path: &str, compiled: Vec<String>) -> ManifestsRequest {
    let source =
        RequestedSource { source: json!({"repoURL": URL, "path": path}), ..RequestedSource::default() };
    ManifestsRequest { sources: vec![source], compiled, ..ManifestsRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_that_no_answer_has_room_for_is_asked_about_in_parts() {
    let folder = TempDir::new().unwrap();
    let compiled = many(folder.path(), 400);
    let library = || library(Directories::new([(URL, folder.path().to_owned())]));
    let whole = library().describe(asked("many", compiled.clone())).await.unwrap();
    let whole: ReceivedManifests = serde_json::from_value(serde_json::to_value(&*whole).unwrap()).unwrap();
    assert_eq!((whole.objects.len(), whole.files.len()), (400, 400));
    for between in buses().await {
        let answering = SourceApi::new(library(), &Registry::new());
        let answerer = Answerer::begin(&between, answering).await;
        let over_bus = OverBus::new(between.asks.clone(), SOON);
        assert_eq!(
            over_bus.describe(asked("many", compiled.clone())).await.unwrap(),
            whole,
            "{}",
            between.name
        );
        // What lists all of it has no parts.
        let error = over_bus.ask::<Value>(Question::Manifests(asked("many", Vec::new()))).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "ask the source server over the bus: it answered 413: the answer is larger than the {REQUEST_BYTES} bytes that \
                 one over the bus may have: ask for less at a time, or over HTTP"
            )
        );
        assert!(error.is_refusal());
        let gone = ManifestsRequest { sources: Vec::new(), ..asked("many", Vec::new()) };
        let error = over_bus.describe(gone).await.unwrap_err().to_string();
        assert_eq!(error, "ask the source server over the bus: it answered 400: it names no source");
        answerer.end().await;
    }
}

/// Has nothing until it is let go, and says how many wait.
#[derive(Debug)]
struct Waiting {
    waiting: watch::Sender<usize>,
    go: Semaphore,
}

#[async_trait]
impl Repositories for Waiting {
    async fn hold(&self, _: &str, _: &str, _: Option<&Tenant>) -> Result<LocalCommit, RepositoryError> {
        self.waiting.send_modify(|waiting| *waiting += 1);
        drop(self.go.acquire().await);
        Err(RepositoryError::TooMany)
    }
}

/// As a library takes it.
#[derive(Debug, Clone)]
struct Shared(Arc<Waiting>);

#[async_trait]
impl Repositories for Shared {
    async fn hold(
        &self,
        repo_url: &str,
        revision: &str,
        of: Option<&Tenant>,
    ) -> Result<LocalCommit, RepositoryError> {
        self.0.hold(repo_url, revision, of).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_question_more_than_are_worked_on_is_told_to_come_again_and_a_stop_answers_those() {
    for between in buses().await {
        let held = Shared(Arc::new(Waiting { waiting: watch::Sender::new(0), go: Semaphore::new(0) }));
        let answering = SourceApi::new(library(held.clone()), &Registry::new());
        let answerer = Answerer::begin(&between, answering).await;
        let question = || json!({"commit": {"repoURL": URL}}).to_string().into_bytes();
        let mut asking = JoinSet::new();
        for _ in 0..64 {
            let bus = between.asks.clone();
            asking.spawn(async move { ask_raw(&*bus, question()).await });
        }
        let mut waiting = held.0.waiting.subscribe();
        waiting.wait_for(|waiting| *waiting == 64).await.unwrap();
        let busy = json!({"error": "64 questions are being answered: ask again later"});
        assert_eq!(ask_raw(&*between.asks, question()).await, (503, busy), "{}", between.name);
        // Told to stop it takes no more, and lets these have their answers.
        let ending = tokio::spawn(answerer.end());
        held.0.go.add_permits(64);
        let told = json!({"error": "1024 revisions are being fetched: ask again later"});
        while let Some(answer) = asking.join_next().await {
            assert_eq!(answer.unwrap(), (503, told.clone()), "{}", between.name);
        }
        ending.await.unwrap();
    }
}

/// What a process needs to be let onto a bus that knows a token.
fn on(server: &NatsServer, token: &Path) -> Value {
    json!({"url": server.url(), "tokenFile": token})
}

#[tokio::test]
async fn reports_carry_what_the_source_server_says_over_the_bus_and_go_without_it_while_it_is_away() {
    let server = NatsServer::with("authorization { token: right }").await.unwrap();
    let (kept, simulation) = (Kept::new(), told::world(|_| {}).await);
    let token = kept.folder.path().join("bus-token");
    std::fs::write(&token, "right\n").unwrap();
    kept.put(&simulation, URL);
    // Nobody may ask over HTTP.
    let settings = json!({
        "log": {"format": "json"}, "bus": on(&server, &token),
        "sourceServer": {"listen": "127.0.0.1:0", "callers": {"bus": true}, "repositories": [kept.place()]},
    });
    let source_server = kept.server_of(&settings).await;
    source_server.says("answering questions over the bus").await;
    assert_eq!(source_server.page("/v1/commit").await.0, 401);
    let client = http_client();
    let asked = client.get(format!("{}/v1/commit?repoURL={URL}", source_server.url())).bearer_auth("any");
    assert_eq!(asked.send().await.unwrap().status().as_u16(), 403);

    let reporter = json!({"bus": on(&server, &token), "reporter": {"sources": {"from": "bus"}}});
    let runtime = Runtime::start(&simulation, &reporter).await;
    eventually("what git says", || carries_what_git_says(&simulation)).await;
    source_server
        .counts("gitops_runtime_source_requests_total", &[("operation", "manifests"), ("status", "ok")], 1.0)
        .await;
    runtime.stop().await;
    source_server.stop().await;

    let simulation = told::world(|_| {}).await;
    kept.put(&simulation, URL);
    // A bus of its own, on which nobody answers.
    let server = NatsServer::with("authorization { token: right }").await.unwrap();
    let reporter = json!({"bus": on(&server, &token), "reporter": {"sources": {"from": "bus"}}});
    let runtime = Runtime::start(&simulation, &reporter).await;
    eventually("a report without it", || reported(&simulation, Some("thing")).is_some()).await;
    assert_eq!(reported(&simulation, Some("thing")).unwrap()["source"]["path"], "");
    let line = runtime
        .says("the source server did not answer; what it says is missing in a report, and asked for again")
        .await;
    assert_eq!(line.field("error"), "ask the source server over the bus: nobody serves `source`");
    runtime.stop().await;
}

#[tokio::test]
async fn of_two_source_servers_one_that_is_killed_leaves_the_questions_to_the_other() {
    let server = NatsServer::start().await.unwrap();
    let kept = Kept::new();
    let settings = json!({
        "log": {"format": "json"}, "bus": {"url": server.url()},
        "sourceServer": {"listen": "127.0.0.1:0", "callers": {"bus": true}, "repositories": [kept.place()]},
    });
    let (one, other) = (kept.server_of(&settings).await, kept.server_of(&settings).await);
    one.says("answering questions over the bus").await;
    other.says("answering questions over the bus").await;
    let bus = connected(&server).await;
    let question = || json!({"commit": {"repoURL": URL}}).to_string().into_bytes();
    for _ in 0..20 {
        assert_eq!(ask_raw(&*bus, question()).await.0, 200);
    }
    one.kill().await;
    // What was on its way to the one that was killed is asked again, as a reporter does.
    let asked = async {
        loop {
            if bus.request(SUBJECT, question().into(), Duration::from_secs(1)).await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(SOON, asked).await.unwrap();
    other.stop().await;
}

#[test]
fn without_a_bus_nobody_is_asked_over_it() {
    assert_eq!(
        refused(&["--repository", "https://a/b=/c", "--set", "sourceServer.callers.bus=true"]),
        "gitops-runtime: sourceServer.callers.bus is set, and bus.url is not: set it to the bus over which it is to answer, \
         such as nats://nats:4222"
    );
}
