//! The role `app-proxy` registers its runtime with a real platform: killed between any two steps of that it goes on where it was, and
//! what keeps it from being registered is said.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadtest::port;
use loadtest::process::{Process, Start};
use loadtest::sim::server::serve;
use loadtest::sim::{local_client, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::desk::Desk;
use crate::platform::{PROGRAM, Platform, SOON};

const SECRET: &str = "/api/v1/namespaces/runtime/secrets/codefresh-token";

/// The peers of an app proxy: a platform behind it, and an API server that keeps Secrets. It stops at one request.
#[derive(Clone)]
struct Peers {
    platform: String,
    client: reqwest::Client,
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    secrets: Mutex<BTreeMap<String, Value>>,
    /// What was asked: method and path.
    asked: Mutex<Vec<String>>,
    /// At which request it stops, counted from 1, and whether it still does what is asked.
    stop: Mutex<Option<(usize, bool)>>,
    reached: Notify,
}

async fn answer(State(peers): State<Peers>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let number = {
        let mut asked = peers.inner.asked.lock().unwrap();
        asked.push(format!("{} {}", head.method, head.uri.path()));
        asked.len()
    };
    let stop = peers.inner.stop.lock().unwrap().filter(|(at, _)| *at == number);
    if stop.is_none_or(|(_, does)| does) {
        let answer = match head.uri.path().starts_with("/api/v1/") || head.uri.path().starts_with("/apis/") {
            true => peers.keep(&head, &body),
            false => peers.pass_on(&head, body.to_vec()).await,
        };
        if stop.is_none() {
            return answer;
        }
    }
    peers.inner.reached.notify_one();
    std::future::pending().await
}

impl Peers {
    async fn start(platform: &str) -> (Self, String) {
        let client = local_client().timeout(SOON).build().unwrap();
        let peers = Self { platform: platform.to_owned(), client, inner: Arc::default() };
        let router = Router::new().fallback(answer).with_state(peers.clone());
        let url = serve(router).await.unwrap();
        (peers, url)
    }

    /// Secrets are read, applied where there are none, and merged onto the version that was read.
    fn keep(&self, head: &Parts, body: &[u8]) -> Response {
        let mut secrets = self.inner.secrets.lock().unwrap();
        let there = secrets.get(head.uri.path()).cloned();
        if head.method == Method::GET {
            return there
                .map_or(StatusCode::NOT_FOUND.into_response(), |secret| secret.to_string().into_response());
        }
        let patch: Value = serde_json::from_slice(body).unwrap();
        let applies = head.headers["content-type"] == "application/apply-patch+yaml";
        let mut secret = match there {
            Some(secret) => secret,
            None if applies => json!({"metadata": {"resourceVersion": "0"}, "data": {}}),
            None => return StatusCode::NOT_FOUND.into_response(),
        };
        let version = secret["metadata"]["resourceVersion"].clone();
        if !applies && patch["metadata"]["resourceVersion"] != version {
            return StatusCode::CONFLICT.into_response();
        }
        for (name, value) in patch["data"].as_object().into_iter().flatten() {
            match value.is_null() {
                true => drop(secret["data"].as_object_mut().unwrap().remove(name)),
                false => secret["data"][name] = value.clone(),
            }
        }
        let next = version.as_str().unwrap().parse::<u64>().unwrap() + 1;
        secret["metadata"]["resourceVersion"] = next.to_string().into();
        secrets.insert(head.uri.path().to_owned(), secret.clone());
        secret.to_string().into_response()
    }

    async fn pass_on(&self, head: &Parts, body: Vec<u8>) -> Response {
        let mut asked = self.client.request(head.method.clone(), format!("{}{}", self.platform, head.uri));
        for name in ["authorization", "content-type"] {
            if let Some(value) = head.headers.get(name) {
                asked = asked.header(name, value);
            }
        }
        match asked.body(body).send().await {
            Ok(answer) => (answer.status(), answer.bytes().await.unwrap()).into_response(),
            Err(_) => StatusCode::BAD_GATEWAY.into_response(),
        }
    }

    /// The keys of the Secret, and the token in it.
    fn kept(&self) -> (Vec<String>, String) {
        let secrets = self.inner.secrets.lock().unwrap();
        let data = secrets[SECRET]["data"].as_object().unwrap();
        let token = data.get("token").and_then(Value::as_str).unwrap_or_default();
        (data.keys().cloned().collect(), String::from_utf8(STANDARD.decode(token).unwrap()).unwrap())
    }
}

/// An app proxy, registering a runtime.
struct Registering {
    process: Process,
    port: u16,
    client: reqwest::Client,
}

impl Registering {
    fn start(folder: &Path, peers: &str, runtime: &str) -> Self {
        Self::at(folder, peers, runtime, "https://runtime.example.com")
    }

    /// The same of one that is reached at an address.
    fn at(folder: &Path, peers: &str, runtime: &str, address: &str) -> Self {
        let port = port::free().unwrap();
        for (name, text) in [("argocd-token", "any"), ("cluster-token", "any")] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let sets = [
            "log.format=json".to_owned(),
            "serve.address=127.0.0.1:0".to_owned(),
            format!("platform.url={peers}"),
            "argocd.url=http://127.0.0.1:9".to_owned(),
            "argocd.tokenFile=argocd-token".to_owned(),
            format!("kubernetes.server={peers}"),
            "kubernetes.tokenFile=cluster-token".to_owned(),
            "kubernetes.namespace=runtime".to_owned(),
            format!("appProxy.listen=127.0.0.1:{port}"),
            format!("appProxy.repositories.directory=clones-{port}"),
            format!("appProxy.registration.runtime={runtime}"),
            "appProxy.registration.tokenFile=key".to_owned(),
            format!("appProxy.registration.ingressHost={address}"),
            "appProxy.registration.accessMode=INGRESS".to_owned(),
            "appProxy.registration.ingressClass=nginx".to_owned(),
            "appProxy.registration.ingressController=k8s.io/ingress-nginx".to_owned(),
            "appProxy.registration.chartVersion=0.30.1".to_owned(),
        ];
        let process = Process::start(&Start {
            env: vec![("GITOPS_RUNTIME_CONTEXT".to_owned(), "none".to_owned())],
            ..Start::with_settings(PROGRAM, ["app-proxy"], sets, folder)
        })
        .unwrap();
        let client = local_client().timeout(SOON).build().unwrap();
        Self { process, port, client }
    }

    /// Waits until it says so of whether it is ready.
    async fn says(&self, status: u16, wanted: &str) {
        let url = format!("http://127.0.0.1:{}/api/readyz", self.port);
        let look = async || {
            let (status, text) = match self.client.get(&url).send().await {
                Ok(answer) => (answer.status().as_u16(), answer.text().await.unwrap()),
                Err(error) => (0, error.to_string()),
            };
            (status, text, self.process.lines().end())
        };
        let what = format!("{status} {wanted:?}");
        wait_for(&what, look, |(now, text, _)| *now == status && text.trim_end() == wanted).await;
    }

    /// Kills it; no secret is in its log.
    async fn kill(self) {
        let lines = self.process.lines().clone();
        self.process.kill().await.unwrap();
        for line in lines.all() {
            assert!(!line.contains("goak_") && !line.contains("gort_"), "a secret stands in the log: {line}");
        }
    }
}

/// What a token is listed by.
fn begins(token: &str) -> String {
    token.chars().take(13).collect()
}

/// A platform, and a folder with its admin's key.
async fn platform() -> (Platform, TempDir) {
    let (platform, folder) = (Platform::start().await, TempDir::new().unwrap());
    std::fs::write(folder.path().join("key"), platform.key()).unwrap();
    (platform, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_registers_once_however_often_it_is_killed_on_the_way() {
    let (platform, folder) = platform().await;
    // How many requests it takes, undisturbed.
    let (peers, url) = Peers::start(&platform.url()).await;
    let first = Registering::start(folder.path(), &url, "first");
    first.says(200, "OK").await;
    first.kill().await;
    let asked = peers.inner.asked.lock().unwrap().clone();
    let secret = |method: &str| format!("{method} {SECRET}");
    let steps = [
        secret("GET"),
        secret("PATCH"),
        secret("GET"),
        secret("PATCH"),
        secret("GET"),
        "GET /api/ping".to_owned(),
        "POST /2.0/api/graphql".to_owned(),
        secret("PATCH"),
        secret("GET"),
    ];
    assert_eq!(asked[..steps.len()], steps);
    let (keys, token) = peers.kept();
    assert_eq!(keys, ["token"]);
    let mut registered = vec![("first".to_owned(), token)];

    for at in 1..=steps.len() {
        for does in [false, true] {
            let runtime = format!("{}{at}", if does { "after" } else { "before" });
            let (peers, url) = Peers::start(&platform.url()).await;
            *peers.inner.stop.lock().unwrap() = Some((at, does));
            let killed = Registering::start(folder.path(), &url, &runtime);
            tokio::time::timeout(SOON, peers.inner.reached.notified()).await.unwrap();
            killed.kill().await;
            *peers.inner.stop.lock().unwrap() = None;
            let next = Registering::start(folder.path(), &url, &runtime);
            next.says(200, "OK").await;
            next.kill().await;
            let (keys, token) = peers.kept();
            assert_eq!(keys, ["token"], "{runtime}");
            registered.push((runtime, token));
        }
    }

    // Two at once, as where a new one takes over.
    let (peers, url) = Peers::start(&platform.url()).await;
    let two = [(); 2].map(|()| Registering::start(folder.path(), &url, "twice"));
    for one in &two {
        one.says(200, "OK").await;
    }
    for one in two {
        one.kill().await;
    }
    registered.push(("twice".to_owned(), peers.kept().1));

    // Each has one token, which is known, and no other is.
    let me = json!({"query": "{ me { runtimeName } }"});
    for (runtime, token) in &registered {
        assert_eq!(platform.ask(token, &me).await["data"]["me"]["runtimeName"], **runtime);
    }
    let mut tokens = platform.tokens().await;
    let mut expected: Vec<_> =
        registered.iter().map(|(runtime, token)| (runtime.clone(), begins(token))).collect();
    expected.push(("prod".to_owned(), begins(platform.token())));
    tokens.sort();
    expected.sort();
    assert_eq!(tokens, expected);
    let fields = "installationType ingressHost accessMode ingressClass ingressController chartVersion isExternalArgoCd metadata { namespace }";
    let named = json!({"query": format!(r#"{{ runtime(name: "twice") {{ {fields} }} }}"#)});
    let said = json!({
        "installationType": "HELM", "ingressHost": "https://runtime.example.com/", "accessMode": "INGRESS", "ingressClass": "nginx",
        "ingressController": "k8s.io/ingress-nginx", "chartVersion": "0.30.1", "isExternalArgoCd": true,
        "metadata": {"namespace": "runtime"},
    });
    assert_eq!(platform.ask(platform.key(), &named).await["data"]["runtime"], said);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_was_upgraded_is_listed_with_the_version_that_runs() {
    let desk = Desk::start().await;
    let (platform, folder) = (&desk.platform, TempDir::new().unwrap());
    let create = "mutation($args: RuntimeInstallationArgs!) { createRuntime(installationArgs: $args) { newAccessToken } }";
    // With its address: registered anew for that, its version would be told as well.
    let args = json!({"runtimeName": "eu1", "runtimeVersion": "0.0.1", "ingressHost": "https://runtime.example.com"});
    let made = platform.ask(platform.key(), &json!({"query": create, "variables": {"args": args}})).await;
    let token = made["data"]["createRuntime"]["newAccessToken"].as_str().unwrap();
    desk.typed(&["login", &platform.url()], platform.key()).await.done();
    let version = async || desk.json(&["runtime", "get", "eu1"]).await["runtimeVersion"].clone();
    assert_eq!(version().await, "0.0.1");
    // It was registered before, by the version that was upgraded.
    let (peers, url) = Peers::start(&platform.url()).await;
    let secret = json!({"metadata": {"resourceVersion": "1"}, "data": {"token": STANDARD.encode(token)}});
    peers.inner.secrets.lock().unwrap().insert(SECRET.to_owned(), secret);
    std::fs::write(folder.path().join("key"), platform.key()).unwrap();
    let upgraded = Registering::start(folder.path(), &url, "eu1");
    wait_for("the new version", version, |version| version == env!("CARGO_PKG_VERSION")).await;
    let listed = desk.run(&["runtime", "list"]).await.done();
    let row = listed.lines().find(|line| line.starts_with("eu1 ")).unwrap();
    assert!(row.split_whitespace().any(|cell| cell == env!("CARGO_PKG_VERSION")), "{listed}");
    upgraded.kill().await;
    desk.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_whose_address_changes_with_an_upgrade_is_asked_there() {
    let (platform, folder) = platform().await;
    let (peers, url) = Peers::start(&platform.url()).await;
    let first = Registering::start(folder.path(), &url, "eu1");
    first.says(200, "OK").await;
    first.kill().await;
    let named = json!({"query": r#"{ runtime(name: "eu1") { ingressHost } }"#});
    let address =
        async || platform.ask(platform.key(), &named).await["data"]["runtime"]["ingressHost"].clone();
    assert_eq!(address().await, "https://runtime.example.com/");
    let former = peers.kept();

    let moved = Registering::at(folder.path(), &url, "eu1", "https://elsewhere.example.com");
    wait_for(
        "the new address",
        async || address().await,
        |address| address == "https://elsewhere.example.com/",
    )
    .await;
    // The token that it was given then is kept, and known as that of the runtime.
    wait_for("the new token", async || peers.kept(), |kept| *kept != former).await;
    moved.kill().await;
    let (keys, token) = peers.kept();
    assert_eq!(keys, ["token"]);
    let me = json!({"query": "{ me { runtimeName } }"});
    assert_eq!(platform.ask(&token, &me).await["data"]["me"]["runtimeName"], "eu1");

    // Without the key it is said that nobody was told.
    std::fs::remove_file(folder.path().join("key")).unwrap();
    let keyless = Registering::at(folder.path(), &url, "eu1", "https://nowhere.example.com");
    let lines = keyless.process.lines().clone();
    let untold = "the platform could not be told where the runtime is now";
    wait_for("the warning", async || lines.all(), |all| all.iter().any(|line| line.contains(untold))).await;
    keyless.says(200, "OK").await;
    keyless.kill().await;
    assert_eq!(address().await, "https://elsewhere.example.com/");
    assert_eq!(peers.kept(), (keys, token));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_a_runtime_from_being_registered_is_said_until_it_is_mended() {
    let (platform, folder) = platform().await;
    let not_yet = |why: &str| format!("the runtime is not registered with the platform yet: {why}");
    // A name that somebody else has; then another key, and the key of whom nobody knows.
    let (peers, url) = Peers::start(&platform.url()).await;
    let taken = Registering::start(folder.path(), &url, "prod");
    let said = not_yet(
        "the platform does not register it: there is a runtime 'prod': choose another name, or send recover: true to register it anew",
    );
    taken.says(503, &said).await;
    // Nobody is let in meanwhile.
    let asked = taken.client.post(format!("http://127.0.0.1:{}/api/graphql", taken.port));
    let asked =
        asked.header("authorization", platform.key()).json(&json!({"query": "{ versionInfo { version } }"}));
    let answer: Value = asked.send().await.unwrap().json().await.unwrap();
    let error = json!({"message": said, "code": "PLATFORM_AWAY"});
    assert_eq!(
        json!({"message": answer["errors"][0]["message"], "code": answer["errors"][0]["extensions"]["code"]}),
        error
    );
    taken.kill().await;
    assert_eq!(peers.kept().0, ["installation"]);

    let (peers, url) = Peers::start(&platform.url()).await;
    std::fs::write(folder.path().join("key"), "nobody-s").unwrap();
    let runtime = Registering::start(folder.path(), &url, "eu1");
    let unknown = "the platform does not know the key of appProxy.registration.tokenFile: make an API key of an admin, of the scope full";
    runtime.says(503, &not_yet(unknown)).await;
    let reads = json!({"query": r#"mutation { createApiKey(name: "reads", scope: "read") { key } }"#});
    let reads = platform.ask(platform.key(), &reads).await["data"]["createApiKey"]["key"]
        .as_str()
        .unwrap()
        .to_owned();
    std::fs::write(folder.path().join("key"), reads).unwrap();
    runtime
        .says(
            503,
            &not_yet(
                "the platform does not register it: this key may only read: make one of the scope 'full'",
            ),
        )
        .await;
    // It goes on by itself once the key is the right one.
    std::fs::write(folder.path().join("key"), platform.key()).unwrap();
    runtime.says(200, "OK").await;
    runtime.kill().await;
    let (_, token) = peers.kept();

    // Registered, it needs neither the key nor the platform to begin; with the token it is asked as any other.
    std::fs::remove_file(folder.path().join("key")).unwrap();
    let again = Registering::start(folder.path(), &url, "eu1");
    again.says(200, "OK").await;
    again.kill().await;
    assert_eq!(peers.kept(), (vec!["token".to_owned()], token));
    let (_, url) = Peers::start(&platform.url()).await;
    let keyless = Registering::start(folder.path(), &url, "eu2");
    let none = "the key of appProxy.registration.tokenFile is not to be had: cannot read the token file key";
    keyless.says(503, &not_yet(none)).await;
    keyless.kill().await;
    let (_, url) = Peers::start("http://127.0.0.1:9").await;
    std::fs::write(folder.path().join("key"), platform.key()).unwrap();
    let alone = Registering::start(folder.path(), &url, "eu2");
    let host = url.strip_prefix("http://").unwrap();
    let away = format!(
        "the platform did not answer: cannot ask whether there is a platform at {host}: it answered 502"
    );
    alone.says(503, &not_yet(&away)).await;
    alone.kill().await;
}
