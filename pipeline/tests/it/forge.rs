//! A Git server over HTTP for tests: the real `git http-backend`, in a folder of repositories.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use loadtest::sim::git_server::GitRequest;
use loadtest::sim::server::serve;
use tempfile::TempDir;

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
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let serving = Serving { folder: folder.path().to_owned(), asked: asked.clone() };
        let router = Router::new().fallback(answer).with_state(serving);
        let url = serve(router).await.unwrap();
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
    GitRequest::new(&serving.folder, &parts, &body).answer().await.unwrap()
}

fn with_status(status: StatusCode, body: Body) -> Response {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
}
