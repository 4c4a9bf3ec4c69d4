//! What the router answers below `/webhooks/_access`, so that `gitops-runtime check access` can tell what lies between a client
//! and it. `_access` is no DNS label and so no namespace of a webhook, and every way in leads `/webhooks` here.
//!
//! takes: a request - gives: whether the services behind can be connected to; an event, and another one later, which both
//! arrive late where somebody holds streams back; or a WebSocket that says back what it is told
//! calls: the services, to connect alone - fails: never; so many at a time

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{Response, StatusCode};
use hyper::body::Frame;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use pipeline_core::Shutdown;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::exchange::Exchange;
use crate::names::Names;
use crate::refusal::Refusal;
use crate::upstream::Upstream;

/// How many probes may be under way at a time.
pub(crate) const PLACES: usize = 16;
/// The time between the two events.
const EVENT_INTERVAL: Duration = Duration::from_secs(5);
/// How long the client of a WebSocket has for its message and for the end.
const ECHO_TIMEOUT: Duration = Duration::from_secs(10);
/// How many bytes the message of a WebSocket may have.
const MAX_MESSAGE: usize = 1 << 10;
/// The events of the stream.
const EVENTS: [&str; 2] = ["data: first\n\n", "data: last\n\n"];

/// What is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    /// Whether it is the router that answers, and whether the services behind it can be connected to.
    Hop,
    /// Whether a stream of two events arrives as it is sent.
    Events,
    /// Whether a WebSocket is let through: it sends back the first message.
    Socket,
}

impl Probe {
    /// The probe that is named by what follows `/webhooks/_access/`.
    pub(crate) fn of(rest: &str) -> Option<Self> {
        match rest {
            "hop" => Some(Self::Hop),
            "events" => Some(Self::Events),
            "socket" => Some(Self::Socket),
            _ => None,
        }
    }
}

/// Whether a service can be connected to: `connects`, or the reason why not.
pub(crate) async fn connects(names: &Names, upstream: &Upstream, within: Duration) -> &'static str {
    let Some(addresses) = names.addresses(&upstream.host).await else { return Refusal::Unresolved.reason() };
    let connecting = async {
        for address in addresses.iter() {
            if TcpStream::connect((*address, upstream.port)).await.is_ok() {
                return true;
            }
        }
        false
    };
    match timeout(within, connecting).await {
        Ok(true) => "connects",
        Ok(false) => Refusal::Unreachable.reason(),
        Err(_) => Refusal::ConnectTimeout.reason(),
    }
}

/// The head of the answer to [`Probe::Events`].
pub(crate) fn events() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The body of the answer to [`Probe::Events`].
pub(crate) struct Events {
    sent: usize,
    timer: Option<Pin<Box<Sleep>>>,
    exchange: Exchange,
    _place: OwnedSemaphorePermit,
}

impl Events {
    pub(crate) fn new(exchange: Exchange, place: OwnedSemaphorePermit) -> Self {
        Self { sent: 0, timer: None, exchange, _place: place }
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        let Some(event) = EVENTS.get(self.sent) else {
            self.exchange.complete();
            return Poll::Ready(None);
        };
        if self.sent > 0 {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(EVENT_INTERVAL)));
            std::task::ready!(timer.as_mut().poll(context));
        }
        self.sent += 1;
        Poll::Ready(Some(Frame::data(Bytes::from_static(event.as_bytes()))))
    }
}

/// The answer that switches to a WebSocket, or the refusal of a request that is no handshake of one.
pub(crate) fn switched(head: &Parts) -> Result<Response<()>, Refusal> {
    let version = head.headers.get(SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    let key = head.headers.get(SEC_WEBSOCKET_KEY).filter(|_| version).ok_or(Refusal::Upgrade)?;
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_| Refusal::Upgrade)?;
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

/// Sends the first message of a WebSocket back, and closes it.
pub(crate) async fn echo(
    client: OnUpgrade,
    mut exchange: Exchange,
    place: OwnedSemaphorePermit,
    cut: Shutdown,
) {
    let mut limits = WebSocketConfig::default();
    limits.max_message_size = Some(MAX_MESSAGE);
    limits.max_frame_size = Some(MAX_MESSAGE);
    let echoing = async {
        let client = TokioIo::new(client.await.ok()?);
        let mut socket = WebSocketStream::from_raw_socket(client, Role::Server, Some(limits)).await;
        let said = socket.next().await?.ok()?;
        socket.send(said).await.ok()?;
        socket.close(None).await.ok()?;
        while socket.next().await?.is_ok() {}
        Some(())
    };
    tokio::select! {
        ended = timeout(ECHO_TIMEOUT, echoing) => if ended.is_ok() { exchange.complete() },
        () = cut.cancelled() => {}
    }
    drop(place);
}
