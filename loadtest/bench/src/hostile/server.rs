//! A Git server for the repositories: the real `git http-backend`, over HTTP.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use loadtest_sim::git_server::GitRequest;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Bytes of a request: it names commits.
const LARGEST: usize = 1 << 20;

/// Serves a folder of repositories until it is dropped.
pub(super) struct GitServer {
    pub(super) url: String,
    asked: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

#[derive(Clone)]
struct Served {
    folder: PathBuf,
    asked: Arc<Mutex<Vec<String>>>,
}

impl GitServer {
    pub(super) async fn start(folder: PathBuf) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
        let url = format!("http://{}", listener.local_addr().context("listen")?);
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let served = Served { folder, asked: asked.clone() };
        let router = Router::new().fallback(answer).with_state(served);
        // It ends with this program.
        let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Ok(Self { url, asked, serving })
    }

    /// The repositories that were asked for since this was asked last, each once.
    pub(super) fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner));
        asked.sort();
        asked.dedup();
        asked
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(served): State<Served>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let name = parts.uri.path().split('/').nth(1).unwrap_or_default().to_owned();
    served.asked.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    match GitRequest::new(&served.folder, &parts, &body).answer().await {
        Ok(answer) => answer,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
