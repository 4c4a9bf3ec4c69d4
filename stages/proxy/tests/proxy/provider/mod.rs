//! Git providers: real HTTP on a free port, which answers as each of them documents it, and holds one repository: behind
//! `git http-backend`, for whoever has a token.

mod bitbucket;
mod bitbucket_server;
mod description;
mod gitea;
mod github;
mod gitlab;
pub(crate) mod oauth;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadtest_sim::Listen;
use loadtest_sim::certificate::{Authority, Identity};
use loadtest_sim::git_server::{self, GitRequest};
use loadtest_sim::server::Server;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// A token that may enough: never to be seen elsewhere.
pub(crate) const TOKEN: &str = "canary-of-git";

/// A token that may enough for the runtime.
pub(crate) const OF_THE_RUNTIME: &str = "canary-of-git-of-the-runtime";
/// One of GitHub that does not say what it may.
pub(crate) const FINE_GRAINED: &str = "github_pat_of-git";

#[derive(Clone, Default)]
pub(crate) struct Provider {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
    folder: Option<Arc<TempDir>>,
    /// Where it says that its repositories are; nowhere: where they are.
    pub(crate) elsewhere: Arc<Mutex<Option<String>>>,
    /// The day at whose beginning tokens end, where the provider says that.
    pub(crate) ends: Arc<Mutex<Option<String>>>,
    /// The pull requests that are open.
    pub(crate) pulls: Arc<Mutex<Vec<Pull>>>,
    /// Looks at them that find none, as if they came before somebody else's.
    pub(crate) unseen: Arc<AtomicUsize>,
    /// The OAuth application there.
    pub(crate) oauth: Arc<Mutex<oauth::Application>>,
    /// The next one is opened, and its answer lost.
    pub(crate) loses: Arc<AtomicBool>,
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pull {
    pub(crate) number: u64,
    /// Who opened it.
    pub(crate) by: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) head: String,
    pub(crate) base: String,
}

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    git_server::git(directory, arguments).unwrap()
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let folder = Some(Arc::new(TempDir::new().unwrap()));
        let provider = Self { url, folder, ..Self::default() };
        let router = Router::new().fallback(either).with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        provider
    }

    /// The same once more, behind TLS of an authority of its own.
    pub(crate) async fn secured(&self, authority: &Authority) -> (Self, Server) {
        let port = loadtest_sim::port::free().unwrap();
        let provider = Self { url: format!("https://127.0.0.1:{port}"), ..self.clone() };
        let router = Router::new().fallback(either).with_state(provider.clone());
        let listen = Listen::port(port).with_tls(authority.server(Identity::Good).unwrap());
        (provider, Server::start(router, listen).await.unwrap())
    }

    /// The repository `team/mono`, with a branch `main` of one commit.
    pub(crate) fn with_repository(&mut self, file: &str, text: &str) -> PathBuf {
        let folder = self.folder.clone().unwrap();
        let (bare, work) = (folder.path().join("team/mono.git"), folder.path().join("work"));
        std::fs::create_dir_all(&bare).unwrap();
        git(&bare, &["init", "-q", "--bare", "-b", "main"]);
        git(folder.path(), &["clone", "-q", bare.to_str().unwrap(), "work"]);
        std::fs::write(work.join(file), text).unwrap();
        git(&work, &["checkout", "-q", "-B", "main"]);
        git(&work, &["add", "."]);
        git(&work, &["commit", "-q", "-m", "First"]);
        git(&work, &["push", "-q", "origin", "main"]);
        bare
    }

    fn clone_url(&self) -> String {
        let elsewhere = self.elsewhere.lock().unwrap().clone();
        format!("{}/team/mono.git", elsewhere.unwrap_or_else(|| format!("{}/git", self.url)))
    }

    /// A repository `team/mono` without commits.
    pub(crate) fn with_empty_repository(&self) -> PathBuf {
        let bare = self.bare();
        std::fs::create_dir_all(&bare).unwrap();
        git(&bare, &["init", "-q", "--bare", "-b", "main"]);
        bare
    }

    fn bare(&self) -> PathBuf {
        self.folder.as_ref().unwrap().path().join("team/mono.git")
    }

    fn has_branch(&self, branch: &str) -> bool {
        let all = git(&self.bare(), &["branch", "--format=%(refname:short)"]);
        all.lines().any(|one| one == branch)
    }

    /// Whether a branch has nothing that another lacks.
    fn is_merged(&self, head: &str, base: &str) -> bool {
        git(&self.bare(), &["rev-list", "--count", &format!("{base}..{head}")]) == "0"
    }

    fn is_open(&self, head: &str, base: &str) -> bool {
        self.pulls.lock().unwrap().iter().any(|pull| pull.head == head && pull.base == base)
    }

    /// All that are open, as one look sees them.
    fn looked_at(&self) -> Vec<Pull> {
        let less = |left: usize| left.checked_sub(1);
        match self.unseen.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
            Ok(_) => Vec::new(),
            Err(_) => self.pulls.lock().unwrap().clone(),
        }
    }

    fn pulls_of(&self, head: &str, base: &str) -> Vec<Pull> {
        self.looked_at().into_iter().filter(|pull| pull.head == head && pull.base == base).collect()
    }

    fn open(&self, pull: Pull) -> Pull {
        let mut pulls = self.pulls.lock().unwrap();
        let pull = Pull { number: pulls.len() as u64 + 1, ..pull };
        pulls.push(pull.clone());
        pull
    }

    /// The paths that were asked for since the last look.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

async fn either(State(provider): State<Provider>, request: Request) -> Response {
    match request.uri().path().strip_prefix("/git").map(str::to_owned) {
        Some(path) => backend(&provider, &path, request).await,
        None => answer(&provider, request).await,
    }
}

/// Whoever has a token may fetch and push, but for one that may only fetch.
async fn backend(provider: &Provider, path: &str, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let text = |name: &str| {
        let value = head.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let given = text("authorization").strip_prefix("Basic ").and_then(|text| STANDARD.decode(text).ok());
    let given = given.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let Some((user, token)) = given.split_once(':').filter(|(_, token)| login(token).is_some()) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let writer = (token != "fetches").then_some(user);
    let body = to_bytes(body, 16 << 20).await.unwrap();
    let folder = provider.folder.as_ref().unwrap().path();
    let asked = GitRequest { path, writer, ..GitRequest::new(folder, &head, &body) };
    asked.answer().await.unwrap()
}

/// Whose a token is that may enough.
fn login(token: &str) -> Option<&str> {
    match token {
        TOKEN | OF_THE_RUNTIME | FINE_GRAINED | "all" | "fetches" => Some("ada-lovelace"),
        _ => token.strip_prefix("of-"),
    }
}

/// What is asked of a provider.
struct Asked {
    method: String,
    /// Below the root of its API.
    path: String,
    query: Vec<(String, String)>,
    body: Vec<u8>,
}

/// What a provider says.
#[derive(Clone)]
struct Said {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Value,
}

impl Asked {
    /// Of the query.
    fn value(&self, name: &str) -> &str {
        self.query.iter().find(|(of, _)| of == name).map_or("", |(_, value)| value)
    }

    /// Of the body.
    fn text(&self, field: &str) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body[field].as_str().unwrap_or_default().to_owned()
    }
}

impl Said {
    fn new(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

impl axum::response::IntoResponse for Said {
    fn into_response(self) -> Response {
        let mut answer = (StatusCode::from_u16(self.status).unwrap(), self.body.to_string()).into_response();
        for (name, value) in self.headers {
            answer.headers_mut().insert(name, HeaderValue::from_str(&value).unwrap());
        }
        answer
    }
}

async fn answer(provider: &Provider, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let (uri, headers) = (head.uri, head.headers);
    provider.asked.lock().unwrap().push(uri.path().to_owned());
    if let Some(path) = uri.path().strip_prefix("/login/oauth/") {
        let body = to_bytes(body, 1 << 16).await.unwrap();
        return oauth::answer(provider, (head.method.as_str(), path), (&uri, &headers), &body);
    }
    let given = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, token) = given.split_once(' ').unwrap_or_default();
    let named = (scheme == "Basic").then(|| STANDARD.decode(token).unwrap());
    let named = named.map(|bytes| String::from_utf8(bytes).unwrap()).unwrap_or_default();
    let (name, token) = named.split_once(':').unwrap_or(("", token));
    let scopes = match token {
        TOKEN => Some("gist, repo, read_api, write_repository"),
        OF_THE_RUNTIME => Some("repo, admin:repo_hook, api"),
        "all" | "fetches" => Some("repo, api"),
        _ if token.starts_with("of-") => Some("repo, api"),
        "reads" => Some("public_repo, read:user, read_api, read_repository"),
        "silent" | FINE_GRAINED => None,
        "project" => Some("api"),
        "broken" => return (StatusCode::OK, "<html>").into_response(),
        "moved" => {
            let to = [("location", "http://127.0.0.1:1/user")];
            return (StatusCode::FOUND, to, "").into_response();
        }
        _ => return (StatusCode::UNAUTHORIZED, r#"{"message": "Bad credentials"}"#).into_response(),
    };
    let login = login(token).unwrap_or("ada-lovelace");
    let url = stages_client::Url::parse(&format!("http://provider{uri}")).unwrap();
    let (method, query) = (head.method.to_string(), url.query_pairs().into_owned().collect());
    let asked = |path: &str, body: Vec<u8>| Asked { method, path: path.to_owned(), query, body };
    let body = to_bytes(body, 1 << 20).await.unwrap().to_vec();
    let below = |root: &str| uri.path().strip_prefix(root);
    let said = if let ("token", Some(path)) = (scheme, below("/api/v3")) {
        github::answer(provider, &asked(path, body), login, scopes)
    } else if let ("Bearer", Some(path)) = (scheme, below("/api/v4")) {
        gitlab::answer(provider, &asked(path, body), token, scopes.unwrap_or_default())
    } else if let ("token", Some(path)) = (scheme, below("/api/v1")) {
        gitea::answer(provider, &asked(path, body), token, login)
    } else if let ("Basic", Some(path)) = (scheme, below("/2.0")) {
        bitbucket::answer(provider, &asked(path, body), token, name)
    } else if let ("Bearer", Some(path)) = (scheme, below("/rest/api/1.0")) {
        bitbucket_server::answer(provider, &asked(path, body), token, login)
    } else {
        Said::new(404, json!({"message": "Not Found"}))
    };
    let is_made = head.method == "POST" && said.status == 201;
    match is_made && provider.loses.swap(false, Ordering::SeqCst) {
        true => StatusCode::BAD_GATEWAY.into_response(),
        false => said.into_response(),
    }
}
