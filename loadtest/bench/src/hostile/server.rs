//! A Git server for the repositories: the real `git http-backend`, over HTTP.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use loadtest_sim::git_server::GitRequest;
use loadtest_sim::server::serve;

/// Bytes of a request: it names commits.
const LARGEST: usize = 1 << 20;

/// Serves a folder of repositories.
#[derive(Clone)]
pub(super) struct GitServer {
    folder: PathBuf,
    asked: Arc<Mutex<Vec<String>>>,
}

impl GitServer {
    /// Begins; it ends with this program. Gives its address.
    pub(super) async fn start(folder: PathBuf) -> anyhow::Result<(Self, String)> {
        let server = Self { folder, asked: Arc::default() };
        let url = serve(Router::new().fallback(answer).with_state(server.clone())).await?;
        Ok((server, url))
    }

    /// The repositories that were asked for since this was asked last, each once.
    pub(super) fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner));
        asked.sort();
        asked.dedup();
        asked
    }
}

async fn answer(State(served): State<GitServer>, request: Request) -> Response {
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
