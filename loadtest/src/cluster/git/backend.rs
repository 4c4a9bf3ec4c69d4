//! `git http-backend` behind HTTP: one process a request (RFC 3875), its answer streamed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path as Segment, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use bytes::{Bytes, BytesMut};
use futures::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdout};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::command;

/// The largest request: what a client wants and has.
const REQUEST: usize = 8 << 20;
/// The longest head of an answer.
const HEAD: usize = 16 << 10;
/// Requests at once.
const AT_ONCE: usize = 32;
/// How long the process may keep silent.
const SILENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
struct Backend {
    directory: PathBuf,
    permits: Arc<Semaphore>,
}

/// What a request of a process is.
struct Call {
    method: &'static str,
    path: String,
    query: String,
    content: Option<HeaderValue>,
    encoding: Option<HeaderValue>,
    protocol: Option<HeaderValue>,
}

/// The two routes that reading takes.
pub(super) fn router(directory: PathBuf) -> Router {
    Router::new()
        .route("/{repository}/info/refs", get(refs))
        .route("/{repository}/git-upload-pack", post(upload))
        .with_state(Backend { directory, permits: Arc::new(Semaphore::new(AT_ONCE)) })
}

async fn refs(
    State(backend): State<Backend>,
    Segment(repository): Segment<String>,
    request: Request,
) -> Response {
    answer(&backend, "GET", &repository, "info/refs", request).await
}

async fn upload(
    State(backend): State<Backend>,
    Segment(repository): Segment<String>,
    request: Request,
) -> Response {
    answer(&backend, "POST", &repository, "git-upload-pack", request).await
}

async fn answer(
    backend: &Backend,
    method: &'static str,
    repository: &str,
    service: &str,
    request: Request,
) -> Response {
    let plain = repository.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    if !plain || !repository.ends_with(".git") || !backend.directory.join(repository).join("HEAD").is_file() {
        return (StatusCode::NOT_FOUND, "no such repository\n").into_response();
    }
    let Ok(permit) = backend.permits.clone().try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many requests at once\n").into_response();
    };
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, REQUEST).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the request is too large\n").into_response();
    };
    let header = |name: &str| head.headers.get(name).cloned();
    let call = Call {
        method,
        path: format!("/{repository}/{service}"),
        query: head.uri.query().unwrap_or_default().to_owned(),
        content: header("content-type"),
        encoding: header("content-encoding"),
        protocol: header("git-protocol"),
    };
    match run(&backend.directory, &call, body, permit).await {
        Ok(response) => response,
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "git request failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "git failed\n").into_response()
        }
    }
}

async fn run(
    directory: &Path,
    call: &Call,
    body: Bytes,
    permit: OwnedSemaphorePermit,
) -> anyhow::Result<Response> {
    let mut command = command(directory);
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", directory)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", call.method)
        .env("PATH_INFO", &call.path)
        .env("QUERY_STRING", &call.query)
        .env("CONTENT_LENGTH", body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let passed = [
        ("CONTENT_TYPE", &call.content),
        ("HTTP_CONTENT_ENCODING", &call.encoding),
        ("GIT_PROTOCOL", &call.protocol),
    ];
    for (name, value) in passed {
        if let Some(value) = value.as_ref().and_then(|value| value.to_str().ok()) {
            command.env(name, value);
        }
    }
    let mut child = command.spawn().context("start git http-backend")?;
    let mut input = child.stdin.take().context("write to git http-backend")?;
    // Beside the answer: the process may answer before it has read everything. It ends with the process.
    tokio::spawn(async move { input.write_all(&body).await });
    let mut output = child.stdout.take().context("read from git http-backend")?;
    let mut read = BytesMut::new();
    let end = loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if read.len() > HEAD {
            bail!("read the answer of git http-backend: its head is too long");
        }
        let count =
            timeout(SILENCE, output.read_buf(&mut read)).await.context("wait for git http-backend")?;
        if count.context("read from git http-backend")? == 0 {
            bail!("read the answer of git http-backend: it ended early");
        }
    };
    let (status, headers) = head(&read[..end])?;
    let rest = read.split_off(end + 4).freeze();
    let mut response = Response::new(Body::from_stream(rest_of(rest, output, child, permit)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// The head of a CGI answer: header lines, of which `Status` becomes the status.
fn head(head: &[u8]) -> anyhow::Result<(StatusCode, HeaderMap)> {
    let text = std::str::from_utf8(head).context("read the head of an answer")?;
    let (mut status, mut headers) = (StatusCode::OK, HeaderMap::new());
    for line in text.split("\r\n") {
        let (name, value) = line.split_once(':').context("read a header of an answer")?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("status") {
            let code = value.split(' ').next().unwrap_or_default();
            status = code.parse().context("read the status of an answer")?;
        } else if !name.eq_ignore_ascii_case(header::CONTENT_LENGTH.as_str()) {
            let name = HeaderName::from_bytes(name.as_bytes()).context("read a header of an answer")?;
            headers.append(name, HeaderValue::from_str(value).context("read a header of an answer")?);
        }
    }
    Ok((status, headers))
}

/// What follows the head; the process lives as long as somebody reads.
fn rest_of(
    first: Bytes,
    output: ChildStdout,
    child: Child,
    permit: OwnedSemaphorePermit,
) -> impl futures::Stream<Item = anyhow::Result<Bytes>> {
    stream::try_unfold(
        (Some(first), output, child, permit),
        async |(first, mut output, mut child, permit)| {
            if let Some(first) = first.filter(|first| !first.is_empty()) {
                return Ok(Some((first, (None, output, child, permit))));
            }
            let mut chunk = BytesMut::with_capacity(64 << 10);
            let count =
                timeout(SILENCE, output.read_buf(&mut chunk)).await.context("wait for git http-backend")?;
            if count.context("read from git http-backend")? > 0 {
                return Ok(Some((chunk.freeze(), (None, output, child, permit))));
            }
            let status = timeout(SILENCE, child.wait()).await.context("wait for git http-backend to end")?;
            if !status.context("wait for git http-backend to end")?.success() {
                bail!("git http-backend failed");
            }
            Ok(None)
        },
    )
}
