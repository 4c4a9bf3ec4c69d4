//! Git providers: real HTTP on a free port, which says of tokens what GitHub (`GET /user`, the header X-OAuth-Scopes) and GitLab
//! (`GET /personal_access_tokens/self`, `GET /user`) document, of repositories what both document, and which holds one: behind
//! `git http-backend`, for whoever has a token.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

/// A token that may enough: never to be seen elsewhere.
pub(crate) const TOKEN: &str = "canary-of-git";

#[derive(Clone, Default)]
pub(crate) struct Provider {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
    folder: Option<Arc<TempDir>>,
    /// Where it says that its repositories are; nowhere: where they are.
    pub(crate) elsewhere: Arc<Mutex<Option<String>>>,
}

/// Runs the real git.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs([("GIT_AUTHOR_NAME", "Init"), ("GIT_AUTHOR_EMAIL", "init@example.com")])
        .envs([("GIT_COMMITTER_NAME", "Init"), ("GIT_COMMITTER_EMAIL", "init@example.com")])
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
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

    /// The paths that were asked for since the last look.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

async fn either(State(provider): State<Provider>, request: Request) -> Response {
    match request.uri().path().strip_prefix("/git").map(str::to_owned) {
        Some(path) => backend(&provider, &path, request).await,
        None => answer(State(provider), request.uri().clone(), request.headers().clone()).await,
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
    let user = (token != "fetches").then_some(("REMOTE_USER", user));
    let body = to_bytes(body, 16 << 20).await.unwrap();
    let mut child = tokio::process::Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_PROJECT_ROOT", provider.folder.as_ref().unwrap().path())
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", head.uri.query().unwrap_or_default())
        .env("REQUEST_METHOD", head.method.as_str())
        .env("CONTENT_TYPE", text("content-type"))
        .env("GIT_PROTOCOL", text("git-protocol"))
        .envs(user)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let give = async move { drop(stdin.write_all(&body).await) };
    let ((), done) = tokio::join!(give, child.wait_with_output());
    let output = done.unwrap().stdout;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let mut answer = Response::new(Body::from(output[end + 4..].to_vec()));
    for (name, value) in
        String::from_utf8_lossy(&output[..end]).lines().filter_map(|line| line.split_once(": "))
    {
        match name {
            "Status" => *answer.status_mut() = value.split(' ').next().unwrap().parse().unwrap(),
            _ => {
                let name: HeaderName = name.parse().unwrap();
                answer.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
            }
        }
    }
    answer
}

/// Whose a token is that may enough.
fn login(token: &str) -> Option<&str> {
    match token {
        TOKEN | "all" | "fetches" => Some("ada-lovelace"),
        _ => token.strip_prefix("of-"),
    }
}

/// What GitHub says of the repository.
fn of_github(provider: &Provider) -> Value {
    json!({
        "id": 1, "full_name": "team/mono", "private": true, "pushed_at": "2026-11-01T10:00:00Z",
        "open_issues_count": 3, "clone_url": provider.clone_url(), "ssh_url": "git@git.example:team/mono.git",
        "owner": {"login": "team", "avatar_url": "https://git.example/a.png", "type": "Organization"},
        "default_branch": "main", "permissions": {"admin": false, "push": true},
        "html_url": "https://git.example/team/mono",
    })
}

/// What GitLab says of the repository.
fn of_gitlab(provider: &Provider) -> Value {
    json!({
        "id": 2, "path_with_namespace": "team/mono", "visibility": "private",
        "last_activity_at": "2026-11-01T10:00:00Z", "open_issues_count": 4,
        "http_url_to_repo": provider.clone_url(), "ssh_url_to_repo": "git@git.example:team/mono.git",
        "default_branch": "main", "namespace": {"full_path": "team", "kind": "group", "avatar_url": null},
        "web_url": "https://git.example/team/mono",
    })
}

async fn answer(State(provider): State<Provider>, uri: Uri, headers: HeaderMap) -> Response {
    provider.asked.lock().unwrap().push(uri.path().to_owned());
    let given = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, token) = given.split_once(' ').unwrap_or_default();
    let scopes = match token {
        TOKEN => Some("gist, repo, read_api, write_repository"),
        "all" | "fetches" => Some("repo, api"),
        _ if token.starts_with("of-") => Some("repo, api"),
        "reads" => Some("public_repo, read:user, read_api, read_repository"),
        "silent" => None,
        "project" => Some("api"),
        "broken" => return (StatusCode::OK, "<html>").into_response(),
        "moved" => {
            let to = [("location", "http://127.0.0.1:1/user")];
            return (StatusCode::FOUND, to, "").into_response();
        }
        _ => return (StatusCode::UNAUTHORIZED, r#"{"message": "Bad credentials"}"#).into_response(),
    };
    let login = login(token).unwrap_or("ada-lovelace");
    match (scheme, uri.path()) {
        ("token", "/api/v3/user/repos") => {
            let link = r#"<https://git.example/api/v3/user/repos?page=3>; rel="next", <https://git.example/api/v3/user/repos?page=9>; rel="last""#;
            let body = json!([of_github(&provider)]).to_string();
            match uri.query() {
                Some("page=2&per_page=100&sort=full_name") => ([("link", link)], body).into_response(),
                Some("page=1&per_page=30&sort=full_name") => body.into_response(),
                _ => StatusCode::BAD_REQUEST.into_response(),
            }
        }
        ("token", "/api/v3/repos/team/mono") => of_github(&provider).to_string().into_response(),
        ("token", "/api/v3/user/orgs") => json!([{"login": "team", "id": 3}]).to_string().into_response(),
        ("Bearer", "/api/v4/projects") => {
            let body = json!([of_gitlab(&provider)]).to_string();
            match uri.query() {
                Some("page=1&per_page=30&membership=true&order_by=path&sort=asc") => {
                    ([("x-next-page", "")], body).into_response()
                }
                _ => StatusCode::BAD_REQUEST.into_response(),
            }
        }
        ("Bearer", "/api/v4/projects/team%2Fmono") => of_gitlab(&provider).to_string().into_response(),
        ("Bearer", "/api/v4/groups") => {
            json!([{"full_path": "team/sub", "id": 3}]).to_string().into_response()
        }
        ("token", "/api/v3/user") => {
            let body = json!({"id": 7, "login": login, "email": null}).to_string();
            match scopes {
                Some(scopes) => ([("x-oauth-scopes", scopes)], body).into_response(),
                None => body.into_response(),
            }
        }
        ("Bearer", "/api/v4/personal_access_tokens/self") => {
            let scopes: Vec<&str> = scopes.into_iter().flat_map(|all| all.split(", ")).collect();
            json!({"id": 4, "name": "mine", "active": true, "scopes": scopes}).to_string().into_response()
        }
        ("Bearer", "/api/v4/user") => {
            let (bot, name) = match token {
                "project" => (true, "project_7_bot_4ffca233d8298ea1"),
                _ => (false, "ada.lovelace"),
            };
            json!({"id": 7, "username": name, "bot": bot}).to_string().into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
