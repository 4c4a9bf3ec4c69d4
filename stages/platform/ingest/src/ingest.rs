//! Takes reports.
//!
//! takes: `POST /2.0/api/events` and its kin - gives: 2xx once what was sent is durable - calls: the store
//! fails: with a refusal each, 4xx for what cannot be taken as it is, 429 and 503 with `Retry-After` for what may be
//! later; never 500

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use prometheus::Registry;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use stages_client::mark_as_data;
use stages_platform_store::{Delivery, Outcome, Runtime, Store};

use crate::auth::Tokens;
use crate::body::{self, Bounds};
use crate::changes::{self, SyncChanges};
use crate::metrics::IngestMetrics;
use crate::noted::Noted;
use crate::quota::{Passage, Quota, Quotas};
use crate::refusal::Refusal;
use crate::turns::Turns;
use crate::wire::{self, Form};
use crate::{compare, read};

/// Reports of a batch.
const BATCH: usize = 1_000;
/// How a program of ours says which it is, before its version.
const PROGRAM: &str = "gitops-runtime/";

/// What is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestConfig {
    /// Bytes of a body as it is sent.
    pub max_body: usize,
    /// Bytes that it may unpack to.
    pub max_unpacked: usize,
    /// A body arrives within this time.
    pub body_timeout: Duration,
    /// Requests of one runtime under way at a time.
    pub runtime_requests: usize,
    /// Bytes of one runtime under way at a time.
    pub runtime_bytes: usize,
    /// Bytes of all runtimes under way at a time.
    pub all_bytes: usize,
}

/// Takes reports; cloning shares.
#[derive(Debug, Clone)]
pub struct Ingest {
    pub(crate) store: Store,
    tokens: Arc<Tokens>,
    quotas: Arc<Quotas>,
    pub(crate) turns: Arc<Turns>,
    bounds: Bounds,
    metrics: IngestMetrics,
    noted: Arc<Noted>,
}

impl IngestConfig {
    /// Calls nobody.
    #[must_use]
    pub fn build(self, store: Store, registry: &Registry) -> Ingest {
        let quota = Quota {
            requests: self.runtime_requests,
            bytes: self.runtime_bytes,
            all_bytes: self.all_bytes.max(self.max_body + 2 * self.max_unpacked),
        };
        let bounds = Bounds { packed: self.max_body, unpacked: self.max_unpacked, within: self.body_timeout };
        let metrics = IngestMetrics::new(registry);
        // What is compared leaves half of a runtime's requests to its reports.
        let turns = Arc::new(Turns::new(self.runtime_requests.div_ceil(2)));
        let (tokens, noted) = (Arc::default(), Arc::new(Noted::new(store.clone())));
        Ingest { store, tokens, quotas: Quotas::new(quota), turns, bounds, metrics, noted }
    }
}

/// The router is made from this list alone.
fn all() -> [(&'static str, &'static str, MethodRouter<Ingest>); 13] {
    [
        ("POST", "/2.0/api/events", post(event)),
        ("POST", "/2.0/api/applications", post(alone)),
        ("POST", "/2.0/api/resources", post(alone)),
        ("POST", "/2.0/api/events/batch", post(batch)),
        ("POST", "/2.0/api/events/changes", post(changed)),
        ("POST", "/2.0/api/events/event-payload", post(ignored)),
        ("POST", "/2.0/api/events/error", post(ignored)),
        ("POST", "/2.0/api/events/digest", post(compare::shard)),
        ("POST", "/2.0/api/events/digest/applications", post(compare::applications)),
        ("POST", "/2.0/api/events/digest/objects", post(compare::objects)),
        ("POST", "/2.0/api/events/digest/others", post(compare::others)),
        ("GET", "/api/v1/applications", get(read::applications)),
        ("GET", "/api/v1/applications/{namespace}/{name}/timeline", get(read::timeline)),
    ]
}

/// Method and path of every route.
#[must_use]
pub fn table() -> Vec<(&'static str, &'static str)> {
    all().into_iter().map(|(method, path, _)| (method, path)).collect()
}

/// Who sent a request, and the text of its body.
pub(crate) struct Sent {
    pub(crate) runtime: Runtime,
    pub(crate) headers: HeaderMap,
    pub(crate) text: Vec<u8>,
    /// Holds the request's share until it is answered, and what was read of it until that is kept.
    pub(crate) passage: Passage,
}

impl Ingest {
    /// Its routes. Every answer says that it is data: nothing of it is a page, runs, or is kept by whoever passes it on.
    pub fn routes(self) -> Router {
        let routes = all().into_iter();
        let routes = routes.fold(Router::new(), |router, (_, path, handler)| router.route(path, handler));
        let routes = routes.route_layer(from_fn_with_state(self.clone(), of_a_runtime));
        routes.with_state(self).layer(map_response(marked))
    }

    /// The body of a request whose sender is known.
    pub(crate) async fn sent(&self, request: Request<Body>) -> Result<Sent, Refusal> {
        let (mut head, body) = request.into_parts();
        // Nobody comes here without it.
        let runtime = head.extensions.remove::<Runtime>().ok_or(Refusal::NoToken)?;
        let passage = match self.quotas.enter(runtime.id) {
            Ok(passage) => passage,
            Err(refusal) => {
                body::put_aside(&head.headers, body, self.bounds).await;
                return Err(refusal);
            }
        };
        let (text, mut passage) = body::read(&head.headers, body, self.bounds, passage).await?;
        // What is read of a text holds about as much again.
        passage.hold(text.len())?;
        Ok(Sent { runtime, headers: head.headers, text, passage })
    }

    /// Counts what was not taken.
    fn refused(&self, runtime: Option<i64>, refusal: &Refusal) {
        self.metrics.refused(refusal);
        self.noted.refused(runtime, refusal.reason());
    }

    /// Notes that a role of a runtime lives.
    pub(crate) fn heard(&self, sent: &Sent, role: &'static str) {
        let program = sent.headers.get(header::USER_AGENT).and_then(|program| program.to_str().ok());
        let version = program.and_then(|program| program.strip_prefix(PROGRAM)).unwrap_or_default();
        self.noted.heard(sent.runtime.id, role, version);
    }

    async fn one(&self, request: Request<Body>, form: Form) -> Result<Response, Refusal> {
        let Sent { runtime, headers, text, passage } = self.sent(request).await?;
        let (key, (epoch, era)) = (wire::key(&headers)?, wire::fence(&headers)?);
        let report = wire::report(&text, form, now())?;
        let digest = Sha256::digest(key.map_or(&*text, str::as_bytes));
        let delivery =
            Delivery { runtime: runtime.id, key: digest.into(), keyed: key.is_some(), epoch, era, report };
        drop(text);
        match self.keep(vec![delivery], passage).await?.first().and_then(refusal) {
            Some(refusal) => Err(refusal),
            None => Ok(Json(json!({})).into_response()),
        }
    }

    /// A sender that goes away leaves what it sent in the queue, and that counts for as long as it is there.
    async fn keep(&self, deliveries: Vec<Delivery>, passage: Passage) -> Result<Vec<Outcome>, Refusal> {
        self.metrics.requests.inc();
        // The writer has told why, once for all of a commit.
        self.store.keep_holding(deliveries, passage).await.map_err(|_| Refusal::Store)
    }
}

const fn refusal(outcome: &Outcome) -> Option<Refusal> {
    match outcome {
        Outcome::Kept | Outcome::Repeated => None,
        Outcome::Outdated => Some(Refusal::Outdated),
        Outcome::Unfit => Some(Refusal::Unfit),
    }
}

/// Lets nobody by whose token is not known, before anything of a body is read; and counts what is not taken.
async fn of_a_runtime(State(ingest): State<Ingest>, mut request: Request<Body>, next: Next) -> Response {
    let known = ingest.tokens.runtime(&ingest.store, request.headers()).await;
    let runtime = match known {
        Ok(runtime) => runtime,
        Err(refusal) => {
            ingest.refused(None, &refusal);
            let (head, body) = request.into_parts();
            body::put_aside(&head.headers, body, ingest.bounds).await;
            return refusal.into_response();
        }
    };
    let (id, is_report) = (runtime.id, request.method() == Method::POST);
    request.extensions_mut().insert(runtime);
    let response = next.run(request).await;
    if let Some(refusal) = response.extensions().get::<Refusal>().filter(|_| is_report) {
        ingest.refused(Some(id), refusal);
    }
    response
}

async fn event(State(ingest): State<Ingest>, request: Request<Body>) -> Result<Response, Refusal> {
    ingest.one(request, Form::Event).await
}

async fn alone(State(ingest): State<Ingest>, request: Request<Body>) -> Result<Response, Refusal> {
    ingest.one(request, Form::Alone).await
}

async fn batch(State(ingest): State<Ingest>, request: Request<Body>) -> Result<Response, Refusal> {
    let Sent { runtime, text, passage, .. } = ingest.sent(request).await?;
    let (from, reports) = (runtime.id, wire::batch(&text)?);
    if reports.len() > BATCH {
        return Err(Refusal::ManyReports(BATCH));
    }
    let read = |sent: &wire::InBatch<'_>| -> Result<Delivery, Refusal> {
        let key = Sha256::digest(wire::checked_key(&sent.idempotency_key)?).into();
        let (epoch, era) = sent.fence()?;
        let report = wire::report_in_batch(sent.data, now())?;
        Ok(Delivery { runtime: from, key, keyed: true, epoch, era, report })
    };
    let mut deliveries = Vec::new();
    let mut results: Vec<Option<Refusal>> = Vec::new();
    for report in &reports {
        results.push(match read(report) {
            Ok(delivery) => {
                deliveries.push(delivery);
                None
            }
            Err(refusal) => Some(refusal),
        });
    }
    drop(reports);
    drop(text);
    let mut kept = ingest.keep(deliveries, passage).await?.into_iter();
    for result in results.iter_mut().filter(|result| result.is_none()) {
        *result = kept.next().as_ref().and_then(refusal);
    }
    let result = |refusal: &Option<Refusal>| {
        let Some(refusal) = refusal else { return json!({"status": 200}) };
        ingest.refused(Some(from), refusal);
        json!({"status": refusal.status().as_u16(), "message": refusal.to_string()})
    };
    let results: Vec<Value> = results.iter().map(result).collect();
    Ok(Json(json!({"results": results})).into_response())
}

/// Which commits changed an application: kept under its name and the beginning of its sync, so that a repeat changes nothing.
async fn changed(State(ingest): State<Ingest>, request: Request<Body>) -> Result<Response, Refusal> {
    let sent = ingest.sent(request).await?;
    let read = changes::report(&sent.text)?;
    ingest.heard(&sent, "change-revision");
    let Sent { runtime, text, passage, .. } = sent;
    drop(text);
    ingest.metrics.requests.inc();
    if let Some(SyncChanges { namespace, name, started_at, sources }) = read {
        let kept = ingest.store.keep_changes(runtime.id, (&namespace, &name), started_at, sources).await;
        kept.map_err(|error| {
            let error = &*error as &(dyn std::error::Error + 'static);
            tracing::warn!(error, "which commits changed an application cannot be kept");
            Refusal::Store
        })?;
    }
    drop(passage);
    Ok(Json(json!({})).into_response())
}

/// Payloads of event sources, and their errors: senders of an earlier generation expect an answer.
async fn ignored(State(ingest): State<Ingest>, request: Request<Body>) -> Result<Response, Refusal> {
    let sent = ingest.sent(request).await?;
    ingest.heard(&sent, "");
    ingest.metrics.ignored.inc();
    Ok(Json(json!({})).into_response())
}

fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

async fn marked(mut response: Response) -> Response {
    mark_as_data(response.headers_mut());
    response
}
