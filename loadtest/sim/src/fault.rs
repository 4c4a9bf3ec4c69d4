//! Faults: how a simulator misbehaves, told at any moment.
//!
//! A [`Rule`] says which calls, which application, how often, and what goes wrong; rules are data, so that a
//! scenario file holds them too. Without a rule a request pays one atomic load.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt as _;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

/// What goes wrong with one answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// The answer comes this much later.
    Delay {
        /// Milliseconds.
        ms: u64,
    },
    /// Another status, with the peer's own kind of error body.
    Status {
        /// HTTP status.
        status: u16,
        /// `Retry-After`, in seconds.
        #[serde(default)]
        retry_after: Option<u64>,
    },
    /// No answer ever.
    Hang,
    /// The body breaks off after this many bytes; its length was promised.
    Cut {
        /// Bytes that are sent.
        after: usize,
    },
    /// 200 with a body that is not JSON.
    Nonsense,
    /// 302 to this address.
    Redirect {
        /// The `Location`.
        to: String,
    },
    /// The connection closes without an answer.
    Close,
}

/// Which requests a fault meets.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What goes wrong.
    pub fault: Fault,
    /// Only calls of this kind, by the simulator's own name of it (e.g. `list`, `managed_resources`).
    #[serde(default)]
    pub call: Option<String>,
    /// Only calls about this application, by its name.
    #[serde(default)]
    pub application: Option<String>,
    /// Only so many times.
    #[serde(default)]
    pub times: Option<u64>,
    /// Only this part of the calls, 0 to 1.
    #[serde(default)]
    pub rate: Option<f64>,
    /// The request takes effect although its answer is spoilt: the platform has the report.
    #[serde(default)]
    pub effect: bool,
}

impl Rule {
    /// A rule for every request.
    #[must_use]
    pub fn always(fault: Fault) -> Self {
        Self { fault, call: None, application: None, times: None, rate: None, effect: false }
    }

    /// Only calls of this kind.
    #[must_use]
    pub fn on(mut self, call: &str) -> Self {
        self.call = Some(call.to_owned());
        self
    }

    /// Only calls about this application.
    #[must_use]
    pub fn of(mut self, application: &str) -> Self {
        self.application = Some(application.to_owned());
        self
    }

    /// Only so many times.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Only this part of the calls, 0 to 1.
    #[must_use]
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// The request takes effect although its answer is spoilt.
    #[must_use]
    pub fn after_effect(mut self) -> Self {
        self.effect = true;
        self
    }

    fn meets(&self, call: &str, application: &str) -> bool {
        self.times != Some(0)
            && self.call.as_deref().is_none_or(|own| own == call)
            && self.application.as_deref().is_none_or(|own| own == application)
    }
}

/// Names a rule that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleId(u64);

#[derive(Debug)]
struct Active {
    id: RuleId,
    rule: Rule,
}

#[derive(Debug)]
struct Rules {
    active: Vec<Active>,
    next: u64,
    chance: fastrand::Rng,
}

/// The rules of one simulator, changed while it serves.
#[derive(Debug)]
pub struct Faults {
    latency_us: AtomicU64,
    count: AtomicUsize,
    hits: AtomicU64,
    rules: Mutex<Rules>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            latency_us: AtomicU64::new(0),
            count: AtomicUsize::new(0),
            hits: AtomicU64::new(0),
            rules: Mutex::new(Rules { active: Vec::new(), next: 0, chance: fastrand::Rng::with_seed(1) }),
        }
    }
}

impl Faults {
    /// Every answer takes at least this long.
    pub fn set_latency(&self, latency: Duration) {
        self.latency_us.store(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Adds a rule; older rules go first.
    pub fn add(&self, rule: Rule) -> RuleId {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let id = RuleId(rules.next);
        rules.next += 1;
        rules.active.push(Active { id, rule });
        self.count.store(rules.active.len(), Ordering::Release);
        id
    }

    /// Takes a rule away.
    pub fn remove(&self, id: RuleId) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.active.retain(|active| active.id != id);
        self.count.store(rules.active.len(), Ordering::Release);
    }

    /// Takes every rule away; the latency stays.
    pub fn clear(&self) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.active.clear();
        self.count.store(0, Ordering::Release);
    }

    /// How many requests met a rule.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Waits for the latency.
    pub(crate) async fn latency(&self) {
        let us = self.latency_us.load(Ordering::Relaxed);
        if us > 0 {
            tokio::time::sleep(Duration::from_micros(us)).await;
        }
    }

    /// The rule that this request meets, if any, which counts as one use of it.
    pub(crate) fn meet(&self, call: &str, application: &str) -> Option<Rule> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let Rules { active, chance, .. } = &mut *rules;
        let met = active.iter_mut().find(|active| {
            active.rule.meets(call, application) && active.rule.rate.is_none_or(|rate| chance.f64() < rate)
        })?;
        if let Some(times) = &mut met.rule.times {
            *times -= 1;
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(met.rule.clone())
    }
}

/// One answer, whole.
#[derive(Debug, Clone)]
pub(crate) struct PeerResponse {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl PeerResponse {
    pub(crate) fn ok(body: impl Into<Bytes>) -> Self {
        Self { status: 200, body: body.into() }
    }

    pub(crate) fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, body: body.into() }
    }

    pub(crate) fn response(self) -> Response {
        respond(self.status, &[], Body::from(self.body))
    }
}

/// Spoils an answer. `error` makes the peer's own error body of a status.
pub(crate) async fn spoil(
    fault: &Fault,
    answer: PeerResponse,
    error: impl Fn(u16) -> Bytes,
    stop: &CancellationToken,
) -> Response {
    match fault {
        Fault::Delay { ms } => {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(*ms)) => answer.response(),
                () = stop.cancelled() => answer.response(),
            }
        }
        Fault::Status { status, retry_after } => {
            let mut response = PeerResponse::new(*status, error(*status)).response();
            if let Some(seconds) = retry_after {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(*seconds));
            }
            response
        }
        Fault::Hang => {
            stop.cancelled().await;
            closed()
        }
        Fault::Cut { after } => {
            let kept = answer.body.slice(..(*after).min(answer.body.len()));
            let promised = answer.body.len().max(kept.len() + 1);
            broken(promised, kept)
        }
        Fault::Nonsense => PeerResponse::ok("{\"items\": [nonsense, }<html>").response(),
        Fault::Redirect { to } => {
            let mut response = respond(302, &[], Body::empty());
            if let Ok(to) = HeaderValue::from_str(to) {
                response.headers_mut().insert(header::LOCATION, to);
            }
            response
        }
        Fault::Close => closed(),
    }
}

/// How long a body that is to break stands still, so that what came before is on its way.
const FLUSH: Duration = Duration::from_millis(10);

/// An answer of `promised` bytes whose connection breaks after `kept`.
fn broken(promised: usize, kept: Bytes) -> Response {
    let body = futures::stream::once(async { Ok(kept) }).chain(futures::stream::once(async {
        tokio::time::sleep(FLUSH).await;
        Err(cut())
    }));
    let length = (header::CONTENT_LENGTH, HeaderValue::from(promised));
    respond(200, &[length], Body::from_stream(body))
}

/// A connection that closes before a byte of the answer is sent.
fn closed() -> Response {
    let body = Body::from_stream(futures::stream::iter([Err::<Bytes, _>(cut())]));
    respond(200, &[], body)
}

fn cut() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::ConnectionAborted, "cut on purpose")
}

fn respond(status: u16, headers: &[(header::HeaderName, HeaderValue)], body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let all = response.headers_mut();
    all.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        all.insert(name, value.clone());
    }
    response
}

/// Whether the request carries this `Authorization`; `None` asks for none.
pub(crate) fn authorized(headers: &HeaderMap, wanted: Option<&HeaderValue>) -> bool {
    wanted.is_none_or(|wanted| headers.get(header::AUTHORIZATION) == Some(wanted))
}
