//! A request, and what is answered.
//!
//! takes: a request as it was read - gives: the answer of the service that its path is for, or why there is none
//! calls: that service; what was not sent, or changes nothing when it is done twice, is sent a second time
//! fails: with a [`Refusal`]; browsers get the headers with which they may see it

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, UPGRADE,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::upgrade::OnUpgrade;
use ipnet::IpNet;
use pipeline_core::Shutdown;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use crate::access;
use crate::config::{Limits, Webhooks};
use crate::connection_state::RequestGuard;
use crate::exchange::{Exchange, RequestInfo};
use crate::expiring_body::ExpiringBody;
use crate::forwarded::{Arrival, forward};
use crate::head;
use crate::metrics::RouterMetrics;
use crate::names::Names;
use crate::path;
use crate::probe::{self, Events, Probe};
use crate::refusal::Refusal;
use crate::replayable_body::{AttemptBody, ReplayableBody};
use crate::route::{Route, Way, route, way};
use crate::streamed::{Cut, Flow, Streamed};
use crate::upgrade;
use crate::upstream::{Pool, SendError, Upstream};

/// How often a request is sent at most.
const TRIES: u32 = 2;
const CORS_METHODS: &str = "GET,HEAD,PUT,PATCH,POST,DELETE";
const CORS_HEADERS: &str = "content-type,x-access-token,authorization";

/// What is behind one route.
pub(crate) struct Backend {
    /// The service; `None` where each request says which.
    pub(crate) upstream: Option<Upstream>,
    pub(crate) limits: Limits,
    pub(crate) places: Arc<Semaphore>,
}

/// Answers requests.
pub(crate) struct Proxy {
    pub(crate) app_proxy: Option<Backend>,
    pub(crate) workflows: Option<Backend>,
    pub(crate) events: Backend,
    pub(crate) webhooks: Webhooks,
    pub(crate) cors_origin: HeaderValue,
    pub(crate) trusted: Vec<IpNet>,
    pub(crate) names: Names,
    pub(crate) pool: Pool,
    pub(crate) metrics: RouterMetrics,
    pub(crate) log: bool,
    /// The places of [`Probe`]s.
    pub(crate) probes: Arc<Semaphore>,
    pub(crate) connect_timeout: Duration,
    /// How long a client may take nothing of its answer before it is cut off.
    pub(crate) write_timeout: Duration,
    /// Cancelled once the router is to stop and says that it is not ready.
    pub(crate) draining: Shutdown,
    /// Cancelled once what has outlived the grace is to end.
    pub(crate) cut: Shutdown,
    /// The tasks of upgraded connections.
    pub(crate) upgraded: TaskTracker,
}

/// How a request is answered.
enum Outcome {
    Own(StatusCode, &'static str),
    Answer(Response<Incoming>),
    Upgrade(Response<Incoming>, OnUpgrade),
    /// The answer to [`Probe::Hop`], as JSON.
    Hop(String),
    Events(OwnedSemaphorePermit),
    Echo(Response<()>, OnUpgrade, OwnedSemaphorePermit),
}

/// The body of an answer.
pub(crate) enum ProxyBody {
    Own(Full<Bytes>, #[expect(dead_code, reason = "it ends when the answer does")] Exchange),
    Streamed(Streamed),
    Expiring(ExpiringBody),
    Events(Box<Events>),
    /// There is no body, as HTTP is over on this connection.
    Ended,
}

impl Proxy {
    pub(crate) fn metrics(&self) -> &RouterMetrics {
        &self.metrics
    }

    /// Answers a request. A client of HTTP/2 may give an answer no room, whoever makes it: it is kept for so long.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        arrival: Arrival,
        guard: Arc<RequestGuard>,
    ) -> Response<ProxyBody> {
        let kept = (request.version() == Version::HTTP_2).then_some(self.write_timeout);
        let response = self.answered(request, arrival, guard).await;
        response.map(|body| match kept {
            Some(limit) if !body.is_end_stream() => ProxyBody::Expiring(ExpiringBody::new(body, limit)),
            _ => body,
        })
    }

    async fn answered(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        arrival: Arrival,
        guard: Arc<RequestGuard>,
    ) -> Response<ProxyBody> {
        let leaving = request.headers().contains_key(UPGRADE).then(|| hyper::upgrade::on(&mut request));
        let (mut head, body) = request.into_parts();
        let route = route(head.uri.path());
        let size = head::size(&head.headers);
        let host = head::host(&head);
        let named = host.as_ref().ok().and_then(Option::as_deref);
        let client = forward(&mut head.headers, arrival, named, &self.trusted);
        let idle = self.backend(route).map_or(self.events.limits, |backend| backend.limits).idle;
        let flow = Flow::new(idle);
        let path = access::shown(head.uri.path());
        let (method, version) = (head.method.clone(), head.version);
        let request = RequestInfo { method: method.clone(), route, path, client, flow: flow.clone() };
        let mut exchange = Exchange::begin(request, &self.metrics, self.log, guard);
        let outcome = match host {
            Ok(_) => self.pass(head, body, size, leaving, &mut exchange).await,
            Err(refusal) => Err(refusal),
        };
        let (mut response, body) = match outcome {
            Ok(Outcome::Answer(response)) => {
                let (head, body) = response.into_parts();
                (Response::from_parts(head, ()), Ok(body))
            }
            Ok(Outcome::Upgrade(response, leaving)) => return self.upgrade(response, leaving, exchange),
            Ok(Outcome::Hop(text)) => {
                let mut response = own(StatusCode::OK);
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                (response, Err(text))
            }
            Ok(Outcome::Events(place)) => {
                exchange.answered(StatusCode::OK.as_u16());
                return probe::events().map(|()| ProxyBody::Events(Box::new(Events::new(exchange, place))));
            }
            Ok(Outcome::Echo(response, leaving, place)) => {
                exchange.answered(response.status().as_u16());
                self.upgraded.spawn(probe::echo(leaving, exchange, place, self.cut.clone()));
                return response.map(|()| ProxyBody::Ended);
            }
            Ok(Outcome::Own(status, text)) => (own(status), Err(text.to_owned())),
            Err(refusal) => (self.refused(route, refusal), Err(format!("{refusal}\n"))),
        };
        head::strip(response.headers_mut());
        if route == Route::AppProxy && self.allow_origin(&method, &mut response) {
            exchange.answered(response.status().as_u16());
            return finish(response, Err(String::new()), &flow, exchange);
        }
        // What is left of a body that is not wanted is no request.
        if flow.refusal.get().is_some() && version == Version::HTTP_11 {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        exchange.answered(response.status().as_u16());
        finish(response, body, &flow, exchange)
    }

    /// Where the App Proxy is away, sets the headers of CORS that it would set itself, so that browsers may see it. Whether the
    /// response is the whole answer to a preflight then.
    fn allow_origin(&self, method: &Method, response: &mut Response<()>) -> bool {
        let is_away = matches!(response.status().as_u16(), 502..=504);
        let headers = response.headers_mut();
        if !is_away || headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            return false;
        }
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.cors_origin.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(CORS_METHODS));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(CORS_HEADERS));
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        if *method != Method::OPTIONS {
            return false;
        }
        headers.remove(CONTENT_TYPE);
        headers.remove(CONTENT_LENGTH);
        *response.status_mut() = StatusCode::NO_CONTENT;
        true
    }

    /// The head of the answer that says why there is no other.
    fn refused(&self, route: Route, refusal: Refusal) -> Response<()> {
        self.metrics.refused(route, refusal);
        let mut response = own(refusal.status());
        if refusal.status() == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    fn backend(&self, route: Route) -> Option<&Backend> {
        match route {
            Route::AppProxy => self.app_proxy.as_ref(),
            Route::Workflows => self.workflows.as_ref(),
            Route::Webhooks => Some(&self.events),
            Route::Itself => None,
        }
    }

    async fn pass(
        &self,
        mut head: Parts,
        body: Incoming,
        size: usize,
        leaving: Option<OnUpgrade>,
        exchange: &mut Exchange,
    ) -> Result<Outcome, Refusal> {
        head::check(&head)?;
        let seen = head.uri.path().to_owned();
        path::check(&seen)?;
        let found = match way(&seen, &self.webhooks.allowed)? {
            Way::Alive => return Ok(Outcome::Own(StatusCode::OK, "ok")),
            Way::Ready if self.draining.is_cancelled() => {
                return Ok(Outcome::Own(StatusCode::SERVICE_UNAVAILABLE, "stopping\n"));
            }
            Way::Ready => return Ok(Outcome::Own(StatusCode::OK, "ok")),
            Way::Probe(asked) => {
                let wants = head::upgrade(&head, !body.is_end_stream())?;
                return self.probe(asked, &head, wants.and(leaving)).await;
            }
            found => found,
        };
        let backend = self.backend(exchange.route).ok_or(Refusal::Nowhere)?;
        let limits = backend.limits;
        if size > limits.headers {
            return Err(Refusal::Headers(limits.headers));
        }
        if body.size_hint().lower() > limits.body {
            return Err(Refusal::Body(limits.body));
        }
        exchange.hold(backend.places.clone().try_acquire_owned().map_err(|_| Refusal::Busy)?);
        let (upstream, below) = self.target(&found, &seen, backend)?;
        let wanted = match exchange.route {
            Route::AppProxy => head::upgrade(&head, !body.is_end_stream())?,
            _ => None,
        };
        let uri = upstream.uri(&below, head.uri.query())?;
        let version = if is_grpc(&head) { Version::HTTP_2 } else { Version::HTTP_11 };
        head::pass_on(&mut head.headers);
        if let Some(protocol) = &wanted {
            head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            head.headers.insert(UPGRADE, protocol.clone());
        }
        let mut outgoing = Request::new(());
        *outgoing.method_mut() = head.method;
        *outgoing.uri_mut() = uri;
        *outgoing.version_mut() = version;
        *outgoing.headers_mut() = head.headers;
        let body = ReplayableBody::new(Streamed::request(body, exchange.flow.clone(), limits.body));
        let response = self.send(&upstream, &outgoing, &body, wanted.is_some(), exchange).await?;
        match (wanted, leaving) {
            _ if response.status() != StatusCode::SWITCHING_PROTOCOLS => Ok(Outcome::Answer(response)),
            (Some(wanted), Some(leaving)) if is_one_of(&response, &wanted) => {
                Ok(Outcome::Upgrade(response, leaving))
            }
            _ => Err(Refusal::Protocol),
        }
    }

    /// The service that a request is for, and the path that it has there.
    fn target<'a>(
        &self,
        way: &Way<'_>,
        seen: &'a str,
        backend: &'a Backend,
    ) -> Result<(Cow<'a, Upstream>, Cow<'a, str>), Refusal> {
        if let Way::Webhook { namespace, service } = way {
            let host = self.names.service(service, namespace);
            let upstream = Upstream::plain(host, self.webhooks.port).map_err(|_| Refusal::WebhookName)?;
            return Ok((Cow::Owned(upstream), Cow::Borrowed(seen)));
        }
        let below: Cow<'a, str> = match way {
            Way::Workflows(below) => Cow::Owned(format!("/{below}")),
            _ => Cow::Borrowed(seen),
        };
        Ok((Cow::Borrowed(backend.upstream.as_ref().ok_or(Refusal::Nowhere)?), below))
    }

    async fn probe(
        &self,
        asked: Probe,
        head: &Parts,
        leaving: Option<OnUpgrade>,
    ) -> Result<Outcome, Refusal> {
        let place = self.probes.clone().try_acquire_owned().map_err(|_| Refusal::Busy)?;
        match asked {
            Probe::Hop => {
                let state = async |backend: &Option<Backend>| match backend
                    .as_ref()
                    .and_then(|it| it.upstream.as_ref())
                {
                    Some(upstream) => probe::connects(&self.names, upstream, self.connect_timeout).await,
                    None => "not served",
                };
                let (app_proxy, workflows) = tokio::join!(state(&self.app_proxy), state(&self.workflows));
                Ok(Outcome::Hop(format!(
                    "{{\"router\":\"gitops-runtime\",\"appProxy\":\"{app_proxy}\",\"workflows\":\"{workflows}\"}}\n"
                )))
            }
            Probe::Events => Ok(Outcome::Events(place)),
            Probe::Socket => {
                let leaving = leaving.ok_or(Refusal::Upgrade)?;
                Ok(Outcome::Echo(probe::switched(head)?, leaving, place))
            }
        }
    }

    /// Sends a request, and once more if nothing of it was sent or if it changes nothing to send it twice.
    async fn send(
        &self,
        upstream: &Upstream,
        head: &Request<()>,
        body: &ReplayableBody,
        upgrade: bool,
        exchange: &Exchange,
    ) -> Result<Response<Incoming>, Refusal> {
        let flow = &exchange.flow;
        let mut tries = 1;
        loop {
            let addresses = self.names.addresses(&upstream.host).await.ok_or(Refusal::Unresolved)?;
            let sending = self.pool.send(upstream, addresses, filled(head, body.lend()));
            let answered = tokio::select! {
                answered = sending => answered,
                () = flow.moved.stale(flow.idle) => {
                    if flow.asked.load(Ordering::Relaxed) {
                        let _ = flow.refusal.set(Refusal::BodyIdle);
                    }
                    Err(SendError { refusal: Refusal::AnswerTimeout, unsent: false })
                }
            };
            let failed = match answered {
                Ok(response) => {
                    flow.moved.touch();
                    return Ok(response);
                }
                Err(failed) => failed,
            };
            if let Some(refusal) = flow.refusal.get() {
                return Err(*refusal);
            }
            if failed.unsent {
                // It may have moved before its address was to be asked for again.
                self.names.forget(&upstream.host);
            }
            let broken = failed.refusal == Refusal::Broken;
            let harmless = head.method().is_idempotent() && body.is_empty() && broken && !upgrade;
            if tries == TRIES || !body.is_whole() || !(failed.unsent || harmless) {
                return Err(failed.refusal);
            }
            tries += 1;
            self.metrics.retried(exchange.route);
        }
    }

    fn upgrade(
        &self,
        mut response: Response<Incoming>,
        leaving: OnUpgrade,
        mut exchange: Exchange,
    ) -> Response<ProxyBody> {
        let arriving = hyper::upgrade::on(&mut response);
        let (mut head, _) = response.into_parts();
        let protocol = head.headers.get(UPGRADE).cloned();
        head::strip(&mut head.headers);
        head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        head.headers.extend(protocol.map(|protocol| (UPGRADE, protocol)));
        exchange.answered(head.status.as_u16());
        self.upgraded.spawn(upgrade::pass(leaving, arriving, exchange, self.cut.clone()));
        Response::from_parts(head, ProxyBody::Ended)
    }
}

fn is_grpc(head: &Parts) -> bool {
    let kind = head.headers.get(CONTENT_TYPE);
    head.version == Version::HTTP_2
        && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

fn own(status: StatusCode) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn filled(head: &Request<()>, body: AttemptBody) -> Request<AttemptBody> {
    let mut request = Request::new(body);
    *request.method_mut() = head.method().clone();
    *request.uri_mut() = head.uri().clone();
    *request.version_mut() = head.version();
    *request.headers_mut() = head.headers().clone();
    request
}

/// Whether the service switches to a protocol that was asked for.
fn is_one_of(response: &Response<Incoming>, wanted: &HeaderValue) -> bool {
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_ascii_lowercase();
    let taken = response.headers().get(UPGRADE).map(text).unwrap_or_default();
    text(wanted).split(',').any(|one| !taken.is_empty() && one.trim() == taken.trim())
}

/// Puts head, body and exchange together.
fn finish(
    head: Response<()>,
    body: Result<Incoming, String>,
    flow: &Arc<Flow>,
    mut exchange: Exchange,
) -> Response<ProxyBody> {
    match body {
        Ok(body) => head.map(|()| ProxyBody::Streamed(Streamed::answer(body, flow.clone(), exchange))),
        Err(text) => {
            exchange.complete();
            head.map(|()| ProxyBody::Own(Full::new(Bytes::from(text)), exchange))
        }
    }
}

impl Body for ProxyBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            Self::Own(body, _) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Self::Streamed(body) => Pin::new(body).poll_frame(context),
            Self::Expiring(body) => Pin::new(body).poll_frame(context),
            Self::Events(events) => events.poll(context).map(|frame| frame.map(Ok)),
            Self::Ended => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(body, _) => body.is_end_stream(),
            Self::Streamed(body) => body.is_end_stream(),
            Self::Expiring(body) => body.is_end_stream(),
            Self::Events(_) => false,
            Self::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(body, _) => body.size_hint(),
            Self::Streamed(body) => body.size_hint(),
            Self::Expiring(body) => body.size_hint(),
            Self::Events(_) => SizeHint::default(),
            Self::Ended => SizeHint::with_exact(0),
        }
    }
}
