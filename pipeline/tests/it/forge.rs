//! A Git server over HTTP for tests: the real `git http-backend`, in a folder of repositories.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

/// Repositories in a folder, served over HTTP. Those below `private/` are given to `ada` with the password `right` alone.
pub(crate) struct Forge {
    folder: TempDir,
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Serving {
    folder: PathBuf,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Forge {
    pub(crate) async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let serving = Serving { folder: folder.path().to_owned(), asked: asked.clone() };
        let router = Router::new().fallback(answer).with_state(serving);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { folder, url, asked }
    }

    pub(crate) fn directory(&self, repository: &str) -> PathBuf {
        self.folder.path().join(repository)
    }

    pub(crate) fn url(&self, repository: &str) -> String {
        format!("{}/{repository}", self.url)
    }

    /// Whether anything of a repository was ever asked for.
    pub(crate) fn was_asked(&self, repository: &str) -> bool {
        let start = format!("/{repository}");
        self.asked.lock().unwrap().iter().any(|path| path.starts_with(&start))
    }
}

async fn answer(State(serving): State<Serving>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    serving.asked.lock().unwrap().push(parts.uri.path().to_owned());
    let authorization = parts.headers.get("authorization");
    // `ada:right`.
    let is_let_in = authorization.is_some_and(|value| value == "Basic YWRhOnJpZ2h0");
    if parts.uri.path().starts_with("/private/") && !is_let_in {
        return with_status(StatusCode::UNAUTHORIZED, Body::empty());
    }
    let body = to_bytes(body, 16 << 20).await.unwrap();
    backend(&serving.folder, None, &parts, &body).await
}

/// What `git http-backend` answers for the repositories in a folder; whoever is named may push.
pub(crate) async fn backend(folder: &Path, writer: Option<&str>, parts: &Parts, body: &[u8]) -> Response {
    let header =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let environment = [
        ("GIT_HTTP_EXPORT_ALL", "1"),
        ("PATH_INFO", parts.uri.path()),
        ("QUERY_STRING", parts.uri.query().unwrap_or_default()),
        ("REQUEST_METHOD", parts.method.as_str()),
        ("CONTENT_TYPE", header("content-type")),
        ("GIT_PROTOCOL", header("git-protocol")),
    ];
    let mut child = tokio::process::Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_PROJECT_ROOT", folder)
        .envs(environment)
        .envs(writer.map(|name| ("REMOTE_USER", name)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let written = async move {
        // What it does not want to hear it does not read.
        let _ = stdin.write_all(body).await;
    };
    let ((), output) = tokio::join!(written, child.wait_with_output());
    let output = output.unwrap().stdout;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let (head, rest) = output.split_at(end + 4);
    let mut answer = with_status(StatusCode::OK, Body::from(rest.to_vec()));
    for (name, value) in String::from_utf8_lossy(head).lines().filter_map(|line| line.split_once(": ")) {
        match name {
            "Status" => *answer.status_mut() = value.split(' ').next().unwrap().parse().unwrap(),
            _ => {
                let name: axum::http::HeaderName = name.parse().unwrap();
                answer.headers_mut().insert(name, value.parse().unwrap());
            }
        }
    }
    answer
}

fn with_status(status: StatusCode, body: Body) -> Response {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
}
