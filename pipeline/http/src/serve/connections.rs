//! Connections of HTTP/1.1 clients: accepted up to a number, bounded in time and in the size of a head.
//!
//! takes: a listener and a router - gives: answers, until it is told to stop
//! calls: nothing - fails: never; a client that is slow or sends too large a head is answered or cut off

use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pipeline_core::{Place, Places, Shutdown, WriteTimed};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::counted_body::CountedBody;

/// Bytes of a request's line and headers. Whoever signs people in before the platform, such as a load balancer, adds cookies of 16 KiB.
pub(crate) const HEAD_BYTES: usize = 32 << 10;
/// After a failed accept (no file descriptors left, say), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// A client that takes nothing of its answer for so long loses it, and its place.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// What a client may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// It has this long to send a request's head, or its next one.
    pub(crate) head_timeout: Duration,
    /// The next answer is the last of its connection after this long, and says so. An idle one is not closed then: a load balancer
    /// may ask over it at that very moment, and would tell its client of an error.
    pub(crate) connection_age: Duration,
    /// What is being answered then has about this much longer. Without any, the connection ends at its age, idle or not.
    pub(crate) answer_age: Duration,
    /// Answers under way when the process stops have this long.
    pub(crate) grace: Duration,
    /// Connections at a time; one more takes the place of the one that has been idle the longest, or waits where all are
    /// being answered.
    pub(crate) connections: usize,
}

/// Where connections come from.
pub(crate) trait Listen {
    /// One of them.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next one.
    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listen for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

impl Listen for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

/// Answers whoever connects, until `stop`.
pub(crate) async fn serve<L: Listen>(listener: L, pages: Router, bounds: Bounds, stop: Shutdown) {
    let places = Places::new(bounds.connections);
    let tasks = TaskTracker::new();
    let accepting = async {
        loop {
            let stream = accept(&listener).await;
            let place = places.take().await;
            tasks.spawn(converse(stream, pages.clone(), bounds, stop.clone(), place));
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = accepting => {}
    }
    drop(listener);
    tasks.close();
    // Every conversation has its own grace; none is waited for longer.
    tasks.wait().await;
}

async fn accept<L: Listen>(listener: &L) -> L::Stream {
    loop {
        match listener.next().await {
            Ok(stream) => return stream,
            Err(error) => {
                let gone = [ErrorKind::ConnectionAborted, ErrorKind::ConnectionReset, ErrorKind::Interrupted];
                if !gone.contains(&error.kind()) {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// One connection, until its client, its age or the process ends it. One that is upgraded is whoever's that answered so: it is no
/// connection of HTTP any more, and takes no place.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    pages: Router,
    bounds: Bounds,
    stop: Shutdown,
    place: Place,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.head_timeout).max_buf_size(HEAD_BYTES);
    let (place, pages) = (Arc::new(place), TowerToHyperService::new(pages));
    let is_old = Arc::new(AtomicBool::new(false));
    let asked = AtomicU64::new(0);
    let pages = service_fn(|request| {
        asked.fetch_add(1, Ordering::Relaxed);
        let (busy, answer, is_old) = (place.busy(), pages.call(request), Arc::clone(&is_old));
        async move {
            answer.await.map(|mut response: Response| {
                if is_old.load(Ordering::Relaxed) && response.status() != StatusCode::SWITCHING_PROTOCOLS {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                response.map(|body| CountedBody::new(body, busy))
            })
        }
    });
    let stream = TokioIo::new(WriteTimed::new(stream, WRITE_TIMEOUT));
    let mut connection = pin!(http.serve_connection(stream, pages).with_upgrades());
    let mut aged = pin!(tokio::time::sleep(bounds.connection_age));
    let mut answered_before = None;
    let (ended, grace) = loop {
        tokio::select! {
            result = connection.as_mut() => break (Some(result), Duration::ZERO),
            () = stop.cancelled() => break (None, bounds.grace),
            // Nothing was asked, or everything was answered: whoever is to have the place waits for it.
            () = place.lost() => break (None, Duration::ZERO),
            () = aged.as_mut() => {
                // What is on its way, such as lines that somebody follows, goes on for a while.
                is_old.store(true, Ordering::Relaxed);
                let answered = (place.requests() > 0).then(|| asked.load(Ordering::Relaxed));
                // Where no answer has any time left, none is to be asked for: it would be cut off at once.
                if bounds.answer_age.is_zero() || (answered.is_some() && answered == answered_before) {
                    break (None, Duration::ZERO);
                }
                answered_before = answered;
                aged.as_mut().reset(Instant::now() + bounds.answer_age);
            }
        }
    };
    let ended = match ended {
        Some(result) => Some(result),
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(grace, connection).await.ok()
        }
    };
    if let Some(Err(error)) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Makes an answer within `timeout`, or says that it was not; no answer is kept by whoever passes it on.
pub(crate) async fn timed(request: Request, next: Next, timeout: Duration) -> Response {
    match tokio::time::timeout(timeout, next.run(request)).await {
        Ok(response) => guarded(response),
        Err(_) => {
            guarded((StatusCode::SERVICE_UNAVAILABLE, "the answer was not ready in time\n").into_response())
        }
    }
}

/// Tells caches to keep nothing, and browsers to guess nothing.
pub(crate) fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests;
