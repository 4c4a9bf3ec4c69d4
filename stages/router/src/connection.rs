//! One connection of a client.
//!
//! takes: a stream, and a place for it - gives: answers, until either side or the process ends it - calls: the proxy
//! fails: never; a client that begins a request and does not end its head, asks nothing, or takes nothing is cut off

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use pipeline_core::{Place, Shutdown};
use stages_client::OwnCertificate;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::config::RouterConfig;
use crate::connection_state::{ConnectionState, RequestGuard, WatchedStream};
use crate::forwarded::Arrival;
use crate::proxy::Proxy;

/// How many bytes the head of a request may have.
const MAX_HEAD: usize = 64 << 10;
/// How many requests one connection of HTTP/2 may have under way at a time.
const MAX_STREAMS: u32 = 128;
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// How often a client of HTTP/2 is asked whether it is still there, and how long it has to answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// How long an idle client has to close its connection after it was told that it ends.
const GOODBYE_TIMEOUT: Duration = Duration::from_millis(500);

/// What all connections share.
pub(crate) struct Front {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) tls: Option<TlsAcceptor>,
    http: Builder<TokioExecutor>,
    head_timeout: Duration,
    keep_alive: Duration,
    write_timeout: Duration,
    grace: Duration,
}

impl Front {
    pub(crate) fn new(
        config: &RouterConfig,
        proxy: Arc<Proxy>,
        certificate: Option<&Arc<OwnCertificate>>,
    ) -> Self {
        let tls = certificate.map(|certificate| certificate.serving(&["h2", "http/1.1"]).into());
        let mut http = Builder::new(TokioExecutor::new());
        // Times are kept here: those of hyper do not tell a client that asks nothing from one that is slow.
        http.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(MAX_HEAD);
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL);
        Self {
            proxy,
            tls,
            http,
            head_timeout: config.head_timeout,
            keep_alive: config.keep_alive,
            write_timeout: config.write_timeout,
            grace: config.grace,
        }
    }
}

/// Answers one client, until it, the process or its idleness ends that.
pub(crate) async fn converse(
    front: Arc<Front>,
    stream: TcpStream,
    arrival: Arrival,
    place: Place,
    closing: Shutdown,
) {
    // Small frames of streams are not to wait for each other.
    let _ = stream.set_nodelay(true);
    let state = ConnectionState::opened();
    let stream = WatchedStream::new(stream, state.clone());
    let Some(tls) = &front.tls else {
        return serve(&front, stream, arrival, place, state, closing).await;
    };
    let shaken = tokio::select! {
        shaken = timeout(front.head_timeout, tls.accept(stream)) => shaken,
        () = closing.cancelled() => return,
        () = place.lost() => return,
    };
    match shaken {
        Ok(Ok(stream)) => serve(&front, stream, arrival, place, state, closing).await,
        Ok(Err(error)) => tracing::debug!(%error, "a client speaks no TLS that is spoken here"),
        Err(_) => {}
    }
}

async fn serve(
    front: &Front,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    arrival: Arrival,
    place: Place,
    state: Arc<ConnectionState>,
    closing: Shutdown,
) {
    let place = Arc::new(place);
    let service = service_fn(|request: Request<Incoming>| {
        let guard = RequestGuard::begin(state.clone(), place.busy(), request.version() == Version::HTTP_2);
        // On the heap: a connection that is kept has room for its future from the beginning.
        let answer = Box::pin(front.proxy.clone().answer(request, arrival, guard));
        async { Ok::<_, Infallible>(answer.await) }
    });
    let mut connection = pin!(front.http.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let (ended, grace) = tokio::select! {
        result = connection.as_mut() => (Some(result), Duration::ZERO),
        () = closing.cancelled() => (None, front.grace),
        () = place.lost() => (None, Duration::ZERO),
        () = idle(front, &place, &state) => (None, GOODBYE_TIMEOUT),
    };
    let ended = match ended {
        Some(result) => Some(result),
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                result = timeout(grace, connection) => result.ok(),
                () = state.blocked.stale(front.write_timeout) => None,
            }
        }
    };
    if let Some(Err(error)) = ended {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
            front.proxy.metrics().no_request();
        }
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Waits until the client has asked nothing, ended no head, or taken nothing for too long.
async fn idle(front: &Front, place: &Place, state: &ConnectionState) {
    loop {
        let Some(taking) = state.blocked.left(front.write_timeout) else { return };
        let asking = if place.requests() > 0 {
            front.head_timeout
        } else {
            let late = state.reading.elapsed().is_some() && !state.http2.load(Ordering::Relaxed);
            let left = match late {
                true => state.reading.left(front.head_timeout),
                false => state.idle.left(front.keep_alive),
            };
            match left {
                Some(left) => left,
                None => return,
            }
        };
        // A request may end meanwhile, and with it the time that a shorter limit counts from.
        sleep(taking.min(asking).min(front.head_timeout).min(front.keep_alive)).await;
    }
}
