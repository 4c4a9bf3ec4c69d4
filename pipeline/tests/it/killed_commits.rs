//! The role `app-proxy` as a process that is killed while it commits, at any request of its to the Git server: the repository stays
//! whole, what was acknowledged is there, and the next process goes on with the clones that it finds.
//!
//! It is killed at the push, before and after it arrives, and then at requests that are chosen at random: five times, or as often as
//! `KILLS` in the environment says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use loadtest::process::Start;
use loadtest::sim::git_server::{self, GitRequest};
use loadtest::sim::port;
use loadtest::sim::server::serve;
use pipeline_core::{ExposeSecret as _, Shutdown};
use serde_json::{Value, json};
use stages_client::OwnCookie;
use stages_platform_api::{Api, ForwardConfig};
use stages_platform_store::{
    Account, By, Place, Retention, Role, Scope, Sequence, Store, StoreConfig, create_token,
};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::runtime::{PROGRAM, Runtime, http_client};

/// A token of the provider: never to be seen elsewhere.
pub(crate) const TOKEN: &str = "canary-of-git";
const KILLS: usize = 5;

/// A Git provider that holds the repository `team/mono`, and stops at one request to its Git server.
#[derive(Clone)]
struct Provider {
    folder: PathBuf,
    url: String,
    /// Requests to the Git server.
    asked: Arc<AtomicUsize>,
    stop: Arc<Mutex<Option<Stop>>>,
    reached: Arc<Notify>,
}

/// At which request it stops, and whether it still does what is asked.
#[derive(Debug, Clone, Copy)]
struct Stop {
    /// `None`: at the push.
    at: Option<usize>,
    does: bool,
}

/// Secrets of an API server, by their path.
pub(crate) type Secrets = Arc<Mutex<BTreeMap<String, Value>>>;

pub(crate) struct World {
    pub(crate) folder: TempDir,
    provider: Provider,
    /// Where the platform is, which passes on what it is asked for the runtime `prod`.
    platform: String,
    port: u16,
    sets: Vec<String>,
    /// What the API server holds.
    pub(crate) secrets: Secrets,
    /// An admin's key.
    key: String,
    client: reqwest::Client,
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    git_server::git(directory, arguments).unwrap()
}

impl Provider {
    async fn start(folder: &Path) -> Self {
        let bare = folder.join("team/mono.git");
        std::fs::create_dir_all(&bare).unwrap();
        git(&bare, &["init", "-q", "--bare", "-b", "main"]);
        let empty = git(&bare, &["mktree", "--missing"]);
        let first = git(&bare, &["commit-tree", "-m", "First", &empty]);
        git(&bare, &["update-ref", "refs/heads/main", &first]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let provider = Self {
            folder: folder.to_owned(),
            url: format!("http://{}", listener.local_addr().unwrap()),
            asked: Arc::default(),
            stop: Arc::default(),
            reached: Arc::default(),
        };
        let router = Router::new().fallback(provide).with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        provider
    }

    fn repository(&self) -> PathBuf {
        self.folder.join("team/mono.git")
    }

    fn commits(&self) -> Vec<String> {
        git(&self.repository(), &["rev-list", "main"]).lines().map(str::to_owned).collect()
    }
}

async fn provide(State(provider): State<Provider>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    match parts.uri.path() {
        "/api/v3/user" => {
            let user = json!({"id": 7, "login": "ada", "name": "Ada", "email": "ada@example.com"});
            return ([("x-oauth-scopes", "repo")], user.to_string()).into_response();
        }
        "/api/v3/repos/team/mono" => {
            let repository = json!({
                "id": 1, "full_name": "team/mono", "clone_url": format!("{}/team/mono.git", provider.url),
                "default_branch": "main",
            });
            return repository.to_string().into_response();
        }
        _ => {}
    }
    let body = to_bytes(body, 16 << 20).await.unwrap();
    let number = provider.asked.fetch_add(1, Ordering::SeqCst) + 1;
    let stop = *provider.stop.lock().unwrap();
    let is_push = parts.method == Method::POST && parts.uri.path().ends_with("/git-receive-pack");
    let stop = stop.filter(|stop| stop.at.map_or(is_push, |at| at == number));
    if stop.is_none_or(|stop| stop.does) {
        let asked = GitRequest { writer: Some("ada"), ..GitRequest::new(&provider.folder, &parts, &body) };
        let answer = asked.answer().await.unwrap();
        if stop.is_none() {
            return answer;
        }
    }
    provider.reached.notify_one();
    std::future::pending().await
}

/// Secrets are read, applied where there are none, and merged.
async fn keep(
    State(secrets): State<Secrets>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let mut secrets = secrets.lock().unwrap();
    let path = uri.path().to_owned();
    let there = secrets.get(&path).cloned();
    if method == Method::GET {
        return there
            .map_or(StatusCode::NOT_FOUND.into_response(), |secret| secret.to_string().into_response());
    }
    let patch: Value = serde_json::from_str(&body).unwrap();
    let applies = headers["content-type"] == "application/apply-patch+yaml";
    let mut secret = match there {
        Some(secret) => secret,
        None if applies => json!({"metadata": {"resourceVersion": "0"}, "data": {}}),
        None => return StatusCode::NOT_FOUND.into_response(),
    };
    let version = secret["metadata"]["resourceVersion"].clone();
    if patch["metadata"]["resourceVersion"].is_string() && patch["metadata"]["resourceVersion"] != version {
        return StatusCode::CONFLICT.into_response();
    }
    for (name, value) in patch["data"].as_object().into_iter().flatten() {
        secret["data"][name] = value.clone();
    }
    let next = version.as_str().unwrap().parse::<u64>().unwrap() + 1;
    secret["metadata"]["resourceVersion"] = next.to_string().into();
    secrets.insert(path, secret.clone());
    secret.to_string().into_response()
}

/// Where the platform keeps what it knows.
pub(crate) fn place(folder: &Path) -> Place {
    Place::Sqlite(folder.join("platform.db"))
}

/// A platform with an admin and the runtime `prod`, whose app proxy is at a port; gives its address, the admin's key and the
/// runtime's token.
async fn platform(folder: &Path, port: u16) -> (String, String, String) {
    let place = place(folder);
    let token = create_token(&place, "prod").await.unwrap().expose_secret().to_owned();
    let day = Duration::from_secs(86_400);
    let retention = Retention { history: 90 * day, keys: day, interval: day };
    let (store, _): (Store, _) =
        StoreConfig { place, retention }.build(&prometheus::Registry::new()).await.unwrap();
    let now = Timestamp::now().as_millisecond();
    let end = now + 86_400_000;
    let by = By { who: "ada".to_owned(), how: "session" };
    store.keep_link([7; 32], end).await.unwrap();
    let ada = Account { name: "ada".to_owned(), password: "$made-up".to_owned(), role: Role::Admin };
    assert!(store.use_link([7; 32], now, &ada).await.unwrap());
    let key = store.add_key(&by, "test", Scope::Full, end, now).await.unwrap().expose_secret().to_owned();
    let body = json!({"ingressHost": format!("http://127.0.0.1:{port}")}).to_string();
    assert!(store.register(&by, "prod", &body, true, now).await.unwrap().is_some());
    let forward = ForwardConfig::new(Shutdown::new());
    let (sequence, session) = (Sequence::new(store.clone()), OwnCookie::session("http://localhost"));
    let api = Api::new(store, sequence, Timestamp::now, forward, session);
    let url = serve(api.routes()).await.unwrap();
    (url, key, token)
}

impl World {
    pub(crate) async fn start() -> Self {
        // First, as it installs the provider of TLS, which the platform's API in this process needs.
        let client = http_client();
        let folder = TempDir::new().unwrap();
        let provider = Provider::start(&folder.path().join("repositories")).await;
        let port = port::free().unwrap();
        let (platform, key, token) = platform(folder.path(), port).await;
        let secrets = Secrets::default();
        let kept = secrets.clone();
        let cluster = serve(Router::new().fallback(keep).with_state(kept)).await.unwrap();
        for (name, text) in
            [("platform-token", token.as_str()), ("argocd-token", "any"), ("cluster-token", "any")]
        {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let sets = [
            "log.format=json".to_owned(),
            "serve.address=127.0.0.1:0".to_owned(),
            format!("platform.url={platform}"),
            "platform.tokenFile=platform-token".to_owned(),
            "argocd.url=http://127.0.0.1:9".to_owned(),
            "argocd.tokenFile=argocd-token".to_owned(),
            format!("kubernetes.server={cluster}"),
            "kubernetes.tokenFile=cluster-token".to_owned(),
            "kubernetes.namespace=argocd".to_owned(),
            format!("appProxy.listen=127.0.0.1:{port}"),
            "appProxy.repositories.directory=clones".to_owned(),
        ];
        Self { folder, provider, platform, port, sets: sets.to_vec(), secrets, key, client }
    }

    pub(crate) async fn up(&self) -> Runtime {
        let start = Start::with_settings(PROGRAM, ["app-proxy"], &self.sets, self.folder.path());
        let runtime = Runtime::serving(start).await;
        runtime.says("taking requests").await;
        runtime
    }

    /// What is answered by way of the platform, as a browser asks: JSON, or a sentence that says what is wrong.
    pub(crate) async fn ask_the_platform(&self, query: &str) -> String {
        let url = format!("{}/2.0/api/runtimes/prod/app-proxy/graphql", self.platform);
        let asked = self.client.post(url).header("authorization", &self.key).json(&json!({"query": query}));
        asked.send().await.unwrap().text().await.unwrap()
    }

    /// Asks for a Git integration with the provider.
    pub(crate) fn add(&self) -> String {
        let add = r#"mutation { addGitIntegration(args: {provider: GITHUB, apiUrl: "URL", sharingPolicy: ALL_USERS_IN_ACCOUNT}) { name } }"#;
        add.replace("URL", &self.provider.url)
    }

    /// What it answers; `None`: nothing.
    async fn ask(&self, query: &str) -> Option<Value> {
        let url = format!("http://127.0.0.1:{}/api/graphql", self.port);
        let asked = self.client.post(url).header("authorization", &self.key).json(&json!({"query": query}));
        let answer: Value = asked.send().await.ok()?.json().await.ok()?;
        assert_eq!(answer.get("errors"), None, "{query}: {answer}");
        Some(answer["data"].clone())
    }

    /// Commits a file; gives the commit that was acknowledged.
    async fn commit(&self, number: usize) -> Option<String> {
        let commit = format!(
            r#"mutation {{ commitFiles(args: {{repo: "team/mono", files: [{{path: "deep/{number}.yaml", data: "of: {number}\n"}}]}}) {{ sha }} }}"#
        );
        let done = self.ask(&commit.replace('\n', "\\n")).await?;
        Some(done["commitFiles"]["sha"].as_str().unwrap().to_owned())
    }

    /// The repository lacks nothing, and each commit but the first wrote the file that it was asked for.
    fn is_whole(&self) {
        let repository = self.provider.repository();
        git(&repository, &["fsck", "--strict", "--full"]);
        for commit in self.provider.commits().iter().rev().skip(1) {
            let named =
                git(&repository, &["diff-tree", "--root", "-r", "--no-commit-id", "--name-only", commit]);
            let number = named.strip_prefix("deep/").and_then(|name| name.strip_suffix(".yaml")).unwrap();
            assert_eq!(git(&repository, &["show", &format!("{commit}:{named}")]), format!("of: {number}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_at_any_request_of_a_commit_leaves_a_whole_commit_or_none() {
    let kills = std::env::var("KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let world = World::start().await;
    let first = world.up().await;
    world.ask(&world.add()).await.unwrap();
    let register = r#"mutation { registerToGitIntegration(args: {token: "TOKEN"}) { name } }"#;
    world.ask(&register.replace("TOKEN", TOKEN)).await.unwrap();
    let mut acknowledged = vec![world.commit(0).await.unwrap()];
    // A process that has its clone asks for less than the first did: what is killed is one that has.
    world.provider.asked.store(0, Ordering::SeqCst);
    acknowledged.push(world.commit(1).await.unwrap());
    let requests = world.provider.asked.load(Ordering::SeqCst);
    assert!(requests >= 3, "{requests} requests are no fetch and push");
    first.kill().await;
    let mut random = fastrand::Rng::with_seed(21);
    let (mut arrived, mut lost) = (0, 0);
    for number in 2..2 + kills {
        let before = world.provider.commits().len();
        let stop = match number - 2 {
            0 => Stop { at: None, does: true },
            1 => Stop { at: None, does: false },
            _ => Stop { at: Some(random.usize(1..=requests)), does: random.bool() },
        };
        world.provider.asked.store(0, Ordering::SeqCst);
        *world.provider.stop.lock().unwrap() = Some(stop);
        let runtime = world.up().await;
        tokio::select! {
            done = world.commit(number) => acknowledged.extend(done),
            () = world.provider.reached.notified() => {}
        }
        runtime.kill().await;
        *world.provider.stop.lock().unwrap() = None;
        world.is_whole();
        let after = world.provider.commits();
        match after.len() - before {
            0 => lost += 1,
            1 => arrived += 1,
            more => panic!("{more} commits of one, stopped at {stop:?}"),
        }
        for commit in &acknowledged {
            assert!(after.contains(commit), "{commit} was acknowledged, and is not there: {stop:?}");
        }
    }
    assert!(arrived > 0 && lost > 0, "of {kills} kills {arrived} came after the push and {lost} before");
    let last = world.up().await;
    let done = world.commit(2 + kills).await.unwrap();
    assert_eq!(world.provider.commits().first(), Some(&done));
    world.is_whole();
    last.stop().await;
    println!("{kills} kills: {arrived} commits had arrived, {lost} had not; {requests} requests a commit");
}
