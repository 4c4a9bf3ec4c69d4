//! A visitor's request, led through a tunnel.
//!
//! takes: a request whose host names a tunnel - gives: the answer of the service behind it, streamed both ways, upgrades and
//! trailers too - fails: 404 without a tunnel, 403 for whom it does not let in, 503 when it is full or away, 502 and 504 when
//! the service is. Tried again is only what was not sent, or what asks for nothing but an answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use stages_client::{HOP_BY_HOP, NO_TUNNEL, has_other_coding, says_who_asked, speaks_http};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::body_progress::{BodyProgress, TrackedBody};
use crate::head_timeout::RequestGuard;
use crate::holding_body::HoldingBody;
use crate::metrics::{Metrics, Outcome, Refusal};
use crate::registry::{Registry, Route};
use crate::relay::relay;
use crate::session::{Active, Body, LeadError};
use crate::visitors::{Networks, address_of};
use crate::{Name, Times};

/// Connections of a tunnel that are tried for one request.
const TRIES: usize = 3;

/// What leads visitors through.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) domain: String,
    pub(crate) trusted: Networks,
    pub(crate) times: Times,
    pub(crate) registry: Arc<Registry>,
    pub(crate) metrics: Metrics,
    /// Visitors that may finish for a while when the server is told to stop.
    pub(crate) visits: TaskTracker,
    /// That while is over.
    pub(crate) close: CancellationToken,
}

/// Why a request did not get an answer.
enum SendError {
    /// It was not sent: another connection may be tried.
    Unsent(Box<Request<Body>>),
    /// It was not sent, as the client took it for the service and gave it up.
    Away(Box<Request<Body>>),
    /// As many are under way as may be.
    Full,
    /// It was sent, or part of it, and nothing came back.
    Broken,
    /// Nothing came back in time.
    Late,
    /// The server that has the tunnel does not let the visitor in.
    Refused,
}

impl SendError {
    /// It was not sent, as nothing led to the service.
    fn unsent(error: LeadError, request: Box<Request<Body>>) -> Self {
        match error {
            LeadError::Full => Self::Full,
            LeadError::Gone | LeadError::Late => Self::Unsent(request),
            LeadError::Refused => Self::Refused,
        }
    }
}

impl Proxy {
    /// Answers one request of a visitor.
    pub(crate) async fn answer(
        &self,
        peer: SocketAddr,
        is_secure: bool,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let (outcome, answer) = self.lead(peer, is_secure, request).await;
        self.metrics.ended(outcome);
        answer
    }

    async fn lead(
        &self,
        peer: SocketAddr,
        is_secure: bool,
        mut request: Request<Incoming>,
    ) -> (Outcome, Response<Body>) {
        let none = || no_tunnel(say(StatusCode::NOT_FOUND, "no tunnel is open for this host\n"));
        if let Some((status, text)) = refusal(&request) {
            return (Outcome::Refused, say(status, text));
        }
        let Some(name) = host(&request).and_then(|host| Name::of_host(host, &self.domain)) else {
            return none();
        };
        let mut tried = Vec::new();
        let mut active = match self.wait(&name, &tried).await {
            Route::Through(active) => active,
            Route::Unknown => return none(),
            Route::Expected => return away(),
        };
        let visitor = address_of(request.headers(), peer.ip(), &self.trusted);
        let upgrade =
            request.headers().contains_key(header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
        let is_trusted = self.trusted.hold(peer.ip());
        let progress = Arc::new(BodyProgress::default());
        // No other head is waited for before this body is through.
        let guard = request.extensions_mut().remove::<Arc<RequestGuard>>();
        let request = request.map(|body| {
            HoldingBody::new(TrackedBody { body, progress: progress.clone() }, guard).boxed_unsync()
        });
        let mut request = Box::new(prepared(request, peer, is_secure, is_trusted));
        for attempt in 1..=TRIES {
            // Each connection says itself whom it lets in: another may be of a newer life of the client.
            if !active.session().allowed.is_empty() && !active.session().allowed.hold(visitor) {
                return self.refused(&name, visitor);
            }
            tried.push(active.session().id);
            match self.send(active, SocketAddr::new(visitor, peer.port()), request, &progress).await {
                Ok((active, answer)) => {
                    return (Outcome::Answered, self.answered(active, answer, upgrade));
                }
                Err(SendError::Unsent(back)) if attempt < TRIES => {
                    request = back;
                    active = match self.wait(&name, &tried).await {
                        Route::Through(active) => active,
                        _ => return away(),
                    };
                }
                Err(SendError::Unsent(_)) => return away(),
                // Another connection may lead to another client; none is waited for.
                Err(SendError::Away(back)) => match self.registry.route(&name, &tried) {
                    Route::Through(other) if attempt < TRIES => (request, active) = (back, other),
                    _ => return unreachable(),
                },
                Err(SendError::Full) => return full(),
                Err(SendError::Refused) => return self.refused(&name, visitor),
                Err(SendError::Broken) => return unreachable(),
                Err(SendError::Late) => return late(),
            }
        }
        away()
    }

    fn refused(&self, name: &Name, visitor: IpAddr) -> (Outcome, Response<Body>) {
        self.metrics.refused(Refusal::Address);
        tracing::info!(tunnel = %name, address = %visitor, "a visitor from an address that the tunnel does not let in");
        (Outcome::Refused, say(StatusCode::FORBIDDEN, "this address may not visit this host\n"))
    }

    /// A connection of the tunnel; one that was there until shortly before is waited for.
    async fn wait(&self, name: &Name, tried: &[u64]) -> Route {
        let mut changes = self.registry.changes();
        let until = tokio::time::Instant::now() + self.times.expected;
        loop {
            changes.borrow_and_update();
            match self.registry.route(name, tried) {
                Route::Expected => {}
                found => return found,
            }
            if tokio::time::timeout_at(until, changes.changed()).await.is_err() {
                return Route::Expected;
            }
        }
    }

    async fn send(
        &self,
        active: Active,
        visitor: SocketAddr,
        request: Box<Request<Body>>,
        progress: &BodyProgress,
    ) -> Result<(Active, Response<Incoming>), SendError> {
        let (mut sender, is_used) = match active.session().idle() {
            Some(sender) => (sender, true),
            None => {
                let io = match active.session().lead.lead(visitor).await {
                    Ok(io) => io,
                    Err(error) => return Err(SendError::unsent(error, request)),
                };
                match connect(io).await {
                    Ok(sender) => (sender, false),
                    Err(_) => return Err(SendError::Unsent(request)),
                }
            }
        };
        let is_passed_on = active.session().lead.is_passed_on();
        let again = (is_used || is_passed_on).then(|| copy(&request)).flatten();
        let mut error = match progress.within(self.times.answer, sender.try_send_request(*request)).await {
            Some(Ok(answer)) => {
                if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
                    let session = active.session().clone();
                    // The server that has the tunnel judges each visitor anew.
                    let is_anybodys = !is_passed_on || session.allowed.is_empty();
                    tokio::spawn(async move {
                        // Ready when the answer was read to its end; an error when it never will be.
                        if sender.ready().await.is_ok() && is_anybodys {
                            session.keep(sender);
                        }
                    });
                }
                return Ok((active, answer));
            }
            Some(Err(error)) => error,
            None => return Err(SendError::Late),
        };
        let request = match (error.take_message(), again) {
            (Some(request), _) if is_used => return Err(SendError::Unsent(Box::new(request))),
            (Some(request), _) if !is_passed_on => return Err(SendError::Away(Box::new(request))),
            (Some(request), _) | (None, Some(request)) => request,
            (None, None) => return Err(SendError::Broken),
        };
        // At the same moment the service closed a connection that waited for a request, or the server that it was passed on to
        // ended: that one leads nowhere any more.
        let fresh = match active.session().lead.lead(visitor).await {
            Ok(fresh) => fresh,
            Err(error) => return Err(SendError::unsent(error, Box::new(request))),
        };
        let mut sender = connect(fresh).await.map_err(|_| SendError::Broken)?;
        match progress.within(self.times.answer, sender.try_send_request(request)).await {
            Some(Ok(answer)) => Ok((active, answer)),
            Some(Err(mut error)) => Err(error
                .take_message()
                .map_or(SendError::Broken, |request| SendError::Away(Box::new(request)))),
            None => Err(SendError::Late),
        }
    }

    /// The answer as the visitor gets it.
    fn answered(
        &self,
        active: Active,
        mut answer: Response<Incoming>,
        upgrade: Option<hyper::upgrade::OnUpgrade>,
    ) -> Response<Body> {
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let Some(visitor) = upgrade else {
                return say(
                    StatusCode::BAD_GATEWAY,
                    "the service behind the tunnel upgraded what was not asked to be\n",
                );
            };
            let service = hyper::upgrade::on(&mut answer);
            let (close, last) = (self.close.clone(), self.times.answer);
            // The connection over which it was asked for ends with this answer.
            self.visits.spawn(async move {
                let passing = async {
                    let (Ok(visitor), Ok(service)) = tokio::join!(visitor, service) else { return };
                    drop(relay(TokioIo::new(visitor), TokioIo::new(service), last).await);
                };
                tokio::select! {
                    () = passing => {}
                    () = close.cancelled() => {}
                }
                drop(active);
            });
            strip(answer.headers_mut());
            return answer.map(|_| empty());
        }
        strip(answer.headers_mut());
        // The service behind the tunnel cannot say that there is none.
        answer.headers_mut().remove(NO_TUNNEL);
        answer.map(|body| HoldingBody::new(body, active).boxed_unsync())
    }
}

async fn connect(io: Box<dyn crate::session::Io>) -> Result<SendRequest<Body>, hyper::Error> {
    let handshake = http1::Builder::new().preserve_header_case(true).handshake(TokioIo::new(io));
    let (sender, connection) = handshake.await?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to the service behind a tunnel ended");
        }
    });
    Ok(sender)
}

/// Why a request is not passed on, whichever tunnel it is for.
fn refusal<B>(request: &Request<B>) -> Option<(StatusCode, &'static str)> {
    if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
        // The one asks for a tunnel to anywhere, the other for what proxies have added to it.
        return Some((StatusCode::METHOD_NOT_ALLOWED, "this method is not taken\n"));
    }
    if has_other_coding(request.headers()) {
        // What else was done to the body nobody would be told.
        return Some((StatusCode::NOT_IMPLEMENTED, "the transfer coding `chunked` alone is taken\n"));
    }
    if request.headers().get_all(header::HOST).iter().count() > 1 {
        // The service behind the tunnel may take the other for the one that counts.
        return Some((StatusCode::BAD_REQUEST, "a request names one host\n"));
    }
    None
}

/// The host that a request is for. That of its line counts, if it has one.
fn host<B>(request: &Request<B>) -> Option<&str> {
    match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => request.headers().get(header::HOST).and_then(|host| host.to_str().ok()),
    }
}

/// The same request once more, if it asks for nothing but an answer.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !is_safe || !request.body().is_end_stream() || request.headers().contains_key(header::UPGRADE) {
        return None;
    }
    let mut again = Request::new(empty());
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.headers_mut() = request.headers().clone();
    Some(again)
}

fn unreachable() -> (Outcome, Response<Body>) {
    (Outcome::Unreachable, say(StatusCode::BAD_GATEWAY, "the service behind the tunnel did not answer\n"))
}

fn late() -> (Outcome, Response<Body>) {
    let text = "the service behind the tunnel did not answer in time\n";
    (Outcome::Late, say(StatusCode::GATEWAY_TIMEOUT, text))
}

fn full() -> (Outcome, Response<Body>) {
    let mut answer = say(StatusCode::SERVICE_UNAVAILABLE, "as many requests are under way as may be\n");
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    (Outcome::Full, answer)
}

fn away() -> (Outcome, Response<Body>) {
    let mut answer = say(
        StatusCode::SERVICE_UNAVAILABLE,
        "the tunnel of this host is not connected at the moment: try again\n",
    );
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
    no_tunnel(answer)
}

/// An answer that says that nobody is led anywhere: whoever asks by a program can tell it from that of the service.
fn no_tunnel(mut answer: Response<Body>) -> (Outcome, Response<Body>) {
    answer.headers_mut().insert(NO_TUNNEL, HeaderValue::from_static("true"));
    (Outcome::NoTunnel, answer)
}

/// An answer of the server itself.
pub(crate) fn say(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut answer = Response::new(Full::new(text.into()).map_err(|never| match never {}).boxed_unsync());
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

pub(crate) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// The answer that makes a WebSocket of a client's connection.
pub(crate) fn switched(accept: &str) -> Response<Body> {
    let mut answer = Response::new(empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Ok(accept) = HeaderValue::from_str(accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    answer
}

/// Takes out what belongs to one connection alone, and keeps the wish for trailers and an upgrade, but for one to another version of
/// HTTP. Whose request it is, and who asked, no visitor takes away.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let upgrade = named.contains(&header::UPGRADE).then(|| headers.get(header::UPGRADE).cloned()).flatten();
    let upgrade = upgrade.filter(|protocol| !speaks_http(protocol.to_str().unwrap_or_default()));
    let trailers = headers.get(header::TE).is_some_and(|te| te.as_bytes().eq_ignore_ascii_case(b"trailers"));
    let taken = |name: &&HeaderName| **name != header::HOST && !says_who_asked(name);
    for name in named.iter().filter(taken).chain(HOP_BY_HOP.iter()) {
        headers.remove(name);
    }
    if let Some(upgrade) = upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade);
    } else if trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
}

/// The request as the service gets it. What somebody who is not trusted says of who asked is taken away.
fn prepared(request: Request<Body>, peer: SocketAddr, is_secure: bool, is_trusted: bool) -> Request<Body> {
    let (mut parts, body) = request.into_parts();
    strip(&mut parts.headers);
    if !is_trusted {
        let said: Vec<HeaderName> =
            parts.headers.keys().filter(|name| says_who_asked(name)).cloned().collect();
        for name in said {
            parts.headers.remove(name);
        }
    }
    let mut forwarded = String::new();
    for value in parts.headers.get_all("x-forwarded-for") {
        if let Ok(value) = value.to_str() {
            forwarded.push_str(value);
            forwarded.push_str(", ");
        }
    }
    forwarded.push_str(&peer.ip().to_canonical().to_string());
    let text = |value: &str| HeaderValue::from_str(value).ok();
    if let Some(value) = text(&forwarded) {
        parts.headers.insert("x-forwarded-for", value);
    }
    let proto = HeaderValue::from_static(if is_secure { "https" } else { "http" });
    parts.headers.entry("x-forwarded-proto").or_insert(proto);
    if let Some(authority) = parts.uri.authority().and_then(|authority| text(authority.as_str())) {
        parts.headers.insert(header::HOST, authority);
    }
    if let Some(host) = parts.headers.get(header::HOST).cloned() {
        parts.headers.entry("x-forwarded-host").or_insert(host);
    }
    let path = parts.uri.path_and_query().cloned();
    parts.uri = path.map_or_else(|| http::Uri::from_static("/"), http::Uri::from);
    parts.version = Version::HTTP_11;
    Request::from_parts(parts, body)
}

/// How long a visitor's connection is kept that asks nothing: longer than proxies in front keep theirs (load balancers of Google Cloud
/// for ten minutes, Envoy for an hour), as a request over one that is being closed is lost. Who asks nothing keeps nobody out.
pub(crate) const HEAD: Duration = Duration::from_secs(65 * 60);

#[cfg(test)]
mod tests;
