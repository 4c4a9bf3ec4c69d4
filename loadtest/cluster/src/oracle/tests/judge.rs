//! The whole way: an API server, Argo CD and a platform over HTTP, and a verdict that comes when it can.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse as _, Response};
use tokio::sync::broadcast;

use super::super::{Judge, Witness, judge, judge_rest};
use super::ends::gone;
use super::*;
use loadtest_sim::platform::{self, Keep, PlatformSim};

const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/web/deployments/web";
/// The Deployment as it was when it was reported.
const PAST: &str = "/apis/apps/v1/namespaces/web/deployments@60";
const SECRET: &str = "/api/v1/namespaces/web/secrets/login";
const NEVER: Duration = Duration::from_millis(900);
const SOON: Duration = Duration::from_secs(20);

/// Both peers: what there is, by path; a path with `@` and a version for what was.
#[derive(Clone)]
struct World {
    answers: Arc<Mutex<BTreeMap<String, Value>>>,
    events: broadcast::Sender<String>,
}

impl World {
    fn new() -> Self {
        let is = is();
        let kind = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true});
        let kinds = |all: &[Value]| json!({"kind": "APIResourceList", "groupVersion": "x", "resources": all});
        let answers = [
            ("/apis/argoproj.io/v1alpha1".to_owned(), kinds(&[kind("applications", "Application")])),
            ("/apis/apps/v1".to_owned(), kinds(&[kind("deployments", "Deployment")])),
            ("/api/v1".to_owned(), kinds(&[kind("secrets", "Secret")])),
            (
                APPLICATIONS.to_owned(),
                json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationList",
                       "metadata": {"resourceVersion": "70"}, "items": [app()]}),
            ),
            (format!("{APPLICATIONS}/web"), app()),
            (DEPLOYMENT.to_owned(), is.live[&key("apps/v1", "Deployment", "web")].clone()),
            (PAST.to_owned(), past(was())),
            (SECRET.to_owned(), is.live[&key("v1", "Secret", "login")].clone()),
            (
                "/api/v1/secrets".to_owned(),
                json!({"apiVersion": "v1", "kind": "SecretList", "metadata": {},
                       "items": [is.live[&key("v1", "Secret", "login")]]}),
            ),
            ("/api/v1/settings".to_owned(), json!({"trackingMethod": "annotation"})),
            ("/api/v1/applications/web/managed-resources".to_owned(), is.managed.unwrap()),
            ("/api/v1/applications/web/resource-tree".to_owned(), is.tree.unwrap()),
        ];
        Self { answers: Arc::new(Mutex::new(answers.into())), events: broadcast::Sender::new(16) }
    }

    fn set(&self, path: &str, answer: Option<Value>) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Some(answer) => answers.insert(path.to_owned(), answer),
            None => answers.remove(path),
        };
    }

    fn tell(&self, kind: &str, object: &Value) {
        self.events.send(format!("{}\n", json!({"type": kind, "object": object}))).unwrap();
    }

    async fn serve(&self) -> String {
        let router = Router::new().fallback(answer).with_state(self.clone());
        loadtest_sim::server::serve(router).await.unwrap()
    }
}

/// What a list of one holds; its items do not say what they are.
fn past(mut object: Value) -> Value {
    for name in ["apiVersion", "kind"] {
        object.as_object_mut().unwrap().remove(name);
    }
    json!({"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": {}, "items": [object]})
}

async fn answer(State(world): State<World>, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    if query.contains("watch=") {
        let events = world.events.subscribe();
        let lines = futures::stream::unfold(events, |mut events| async move {
            let line = events.recv().await.ok()?;
            Some((Ok::<_, std::convert::Infallible>(line), events))
        });
        return Body::from_stream(lines).into_response();
    }
    let version = query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
    let path = match version.filter(|_| query.contains("resourceVersionMatch=Exact")) {
        Some(version) => format!("{}@{version}", uri.path()),
        None => uri.path().to_owned(),
    };
    let answers = world.answers.lock().unwrap_or_else(PoisonError::into_inner);
    match answers.get(&path) {
        Some(answer) => axum::Json(answer.clone()).into_response(),
        None => {
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                                "message": "not found", "reason": "NotFound", "code": 404,
                                "details": {"name": "x"}});
            (axum::http::StatusCode::NOT_FOUND, axum::Json(status)).into_response()
        }
    }
}

/// Everything, running.
struct Scene {
    world: World,
    platform: PlatformSim,
    witness: Witness,
    url: String,
}

impl Scene {
    async fn start() -> Self {
        // Another test may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let world = World::new();
        let url = world.serve().await;
        let keep = Keep { last: true, reports: 100 };
        let platform =
            PlatformSim::start(platform::Config { keep, ..platform::Config::default() }).await.unwrap();
        let witness = Witness::start(client(&url), "argocd").await.unwrap();
        Self { world, platform, witness, url }
    }

    /// Reports something to the platform.
    async fn send(&self, draft: &Draft) {
        let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let payload = draft.payload();
        write!(zipped, "{{\"data\":{}}}", std::str::from_utf8(&payload).unwrap()).unwrap();
        let answer = reqwest::Client::new()
            .post(format!("{}/2.0/api/events", self.platform.url()))
            .header("Content-Encoding", "gzip")
            .header("Content-Type", "application/json")
            .body(zipped.finish().unwrap())
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
    }

    fn judge(&self) -> Judge<'_> {
        Judge {
            kubernetes: client(&self.url),
            argocd_url: self.url.clone(),
            argocd_token: "t".into(),
            namespace: "argocd".into(),
            witness: &self.witness,
            platform: &self.platform,
            shown_by: None,
            canaries: Vec::new(),
            quiet: Duration::from_millis(100),
        }
    }

    async fn verdict(&self, within: Duration) -> Vec<String> {
        judge(&self.judge(), &["web".to_owned()], within).await.unwrap()
    }
}

fn client(url: &str) -> kube::Client {
    let mut config = kube::Config::new(url.parse().unwrap());
    config.root_cert = Some(Vec::new());
    kube::Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_verdict_waits_for_what_is_missing_and_tells_it_at_the_deadline() {
    let scene = Scene::start().await;
    let drafts = told();
    scene.send(&drafts[0]).await;
    scene.send(&drafts[1]).await;
    assert_eq!(
        scene.verdict(NEVER).await,
        [r#"argocd/web Secret web/login: report is null, expected "one""#]
    );
    let (verdict, ()) = tokio::join!(scene.verdict(SOON), async {
        tokio::task::yield_now().await;
        scene.send(&drafts[2]).await;
    });
    assert_eq!(verdict, Vec::<String>::new());
}

#[tokio::test]
async fn an_older_live_state_is_compared_with_what_the_cluster_remembers() {
    let scene = Scene::start().await;
    for draft in told() {
        scene.send(&draft).await;
    }
    assert_eq!(scene.verdict(SOON).await, Vec::<String>::new());
    let mut then = was();
    then["metadata"]["labels"] = json!({"l": "m"});
    scene.world.set(PAST, Some(past(then)));
    assert_eq!(
        scene.verdict(NEVER).await,
        [r#"argocd/web Deployment web/web: live as it was: metadata.labels is null, expected {"l":"m"}"#]
    );
    let mut newer = deployment(true);
    newer["metadata"]["resourceVersion"] = json!("66");
    newer["spec"]["replicas"] = json!(9);
    scene.world.set(DEPLOYMENT, Some(newer));
    let told = scene.verdict(NEVER).await;
    assert!(
        told.contains(&"argocd/web Deployment web/web: live spec.replicas is 2, expected 9".to_owned()),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_deletion_that_the_watch_told_must_be_reported() {
    let scene = Scene::start().await;
    for draft in told() {
        scene.send(&draft).await;
    }
    assert_eq!(scene.verdict(SOON).await, Vec::<String>::new());
    let mut last = app();
    last["metadata"]["resourceVersion"] = json!("71");
    scene.world.set(&format!("{APPLICATIONS}/web"), None);
    scene.world.tell("DELETED", &last);
    let missing = [
        "argocd/web: deleted is false, expected true".to_owned(),
        "argocd/web: live manifest is true, expected false".to_owned(),
        format!("argocd/web: no report says that {UID} was deleted"),
    ];
    assert_eq!(scene.verdict(NEVER).await, missing);
    scene.send(&gone(told().remove(0))).await;
    assert_eq!(scene.verdict(SOON).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_no_scenario_is_about_is_found_at_the_end() {
    let scene = Scene::start().await;
    for draft in told() {
        scene.send(&draft).await;
    }
    assert_eq!(judge_rest(&scene.judge(), &[]).await.unwrap(), Vec::<String>::new());
    let mut ghost = told().remove(0);
    ghost.object["metadata"]["name"] = json!("ghost");
    ghost.source["x"] = json!("a: hunter2-hunter2");
    scene.send(&ghost).await;
    let log = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(log.path(), "sending hunter2-hunter2\n").unwrap();
    assert_eq!(
        judge_rest(&scene.judge(), &[log.path()]).await.unwrap(),
        [
            "argocd/ghost: reported, but there never was such an application".to_owned(),
            "argocd/ghost: password of the Secret web/login is in a report in clear".to_owned(),
            format!("{}: password of the Secret web/login is there in clear", log.path().display()),
        ]
    );
}

#[tokio::test]
async fn peers_that_do_not_answer_are_no_verdict() {
    let scene = Scene::start().await;
    let away = Judge { argocd_url: "http://127.0.0.1:1".into(), ..scene.judge() };
    let error = judge(&away, &["web".to_owned()], NEVER).await.unwrap_err();
    assert_eq!(error.to_string(), "look at what was reported");
    assert_eq!(
        error.root_cause().downcast_ref::<std::io::Error>().map(std::io::Error::kind),
        Some(std::io::ErrorKind::ConnectionRefused),
        "{error:#}"
    );
}
