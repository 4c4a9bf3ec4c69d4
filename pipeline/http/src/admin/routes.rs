//! The handlers of the admin server: each asks the engine, and writes its answer as JSON.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::middleware::{from_fn, map_response};
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::{Json, Router};
use pipeline_core::{Key, Shutdown, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::answer::{Refusal, failed};
use super::near::near;
use super::short_kind::kind_of;
use super::tail::{self, tail};
use super::wire::{
    Applications, Explained, NO_NAMESPACE, OwnNamespace, Parked, ParkedList, Replay, Replayed, Top,
};
use super::{Answering, RouteAnswering};
use crate::serve::DEFAULT_ROUTE;
use crate::serve::connections::{guarded, timed};
use crate::serve::status::{status, with_routes};
use pipeline_engine::verify::{Progress, Verified, VerifyError, VerifyOptions};

/// How many bytes the body of a request may have, which is enough for some 10,000 names.
const MAX_BODY: usize = 1 << 20;
/// How many seconds a verification may be given at most.
const VERIFY_SECONDS: u64 = 24 * 3600;

/// How many applications of each list of [`Top`] may be asked for.
const MAX_LIMIT: usize = 100;

/// The query of `GET /v1/top`: how many applications of each list are asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopQuery {
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    20
}

/// The error for a path that does not exist.
const NO_PATH: &str = "nothing is answered at this path";

/// What the handlers of one route share.
struct Routes {
    answering: Arc<Answering>,
    closing: Shutdown,
    /// The places of listeners, which all routes share.
    listeners: Arc<Semaphore>,
}

/// What each handler is given: the route that it answers for.
type RoutesState = State<Arc<Routes>>;
/// The namespace and the name in a path.
type ObjectPath = Path<(String, String)>;
/// The query with the kind of an object, or why it cannot be read.
type KindResult = Result<Query<KindQuery>, QueryRejection>;

/// The query that names the kind of an object; the kind is empty for an application.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KindQuery {
    #[serde(default)]
    kind: String,
}

/// All paths; what is listened to without end ends with `closing`. Each answers within `timeout`, but a verification,
/// which has a time of its own, and a replay, which is as long as there are applications.
pub(super) fn router(
    answering: &Answering,
    closing: &Shutdown,
    listeners: usize,
    timeout: Duration,
) -> Router {
    let listeners = Arc::new(Semaphore::new(listeners));
    let of = |answering: Answering| {
        let (closing, listeners) = (closing.clone(), listeners.clone());
        Arc::new(Routes { answering: Arc::new(answering), closing, listeners })
    };
    let first = of(answering.clone());
    let mut named = vec![(DEFAULT_ROUTE, first.clone())];
    named.extend(answering.routes.iter().map(|route| (&*route.name, of(answering.of(route)))));
    let names: Arc<[String]> = named.iter().map(|(name, _)| (*name).to_owned()).collect();
    let role = answering.role;
    let unknown = async move |Path((name, _)): Path<(String, String)>| no_route(role, &name, &names);
    let mut router = Router::new()
        .route("/v1/status", get(process_status).fallback(other_method))
        .route("/v1/routes/{route}/{*rest}", any(unknown))
        .layer(from_fn(move |request, next| timed(request, next, timeout)))
        .with_state(first.clone())
        .nest("/v1", of_route(first, timeout));
    for (name, routes) in named {
        router = router.nest(&format!("/v1/routes/{name}"), of_route(routes, timeout));
    }
    router.fallback(async || failed(StatusCode::NOT_FOUND, NO_PATH))
}

/// The paths of one route.
fn of_route(routes: Arc<Routes>, timeout: Duration) -> Router {
    Router::new()
        .route("/explain/{namespace}/{name}", get(explain))
        .route("/parked", get(parked_list))
        .route("/parked/{namespace}/{name}", get(parked_one).delete(drop_parked))
        .route("/parked/{namespace}/{name}/replay", post(replay_parked))
        .route("/applications", get(applications))
        .route("/namespace", get(namespace))
        .route("/tail", get(listen))
        .route("/top", get(top))
        .method_not_allowed_fallback(other_method)
        .layer(from_fn(move |request, next| timed(request, next, timeout)))
        .merge(
            Router::new()
                .route("/replay", post(replay).fallback(other_method))
                .route("/verify", post(verify).get(verifying).fallback(other_method))
                .layer(map_response(|response: Response| ready(guarded(response)))),
        )
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(routes)
}

/// The refusal of a path below a route: there is no route of that name, or no such path.
fn no_route(role: &str, name: &str, names: &[String]) -> Refusal {
    if names.iter().any(|known| known == name) {
        return failed(StatusCode::NOT_FOUND, NO_PATH);
    }
    let why = format!("there is no route `{name}`: the role {role} has {}", told(names));
    failed(StatusCode::NOT_FOUND, why)
}

/// Names, as the end of a sentence.
fn told(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => format!("{} alone", names.concat()),
    }
}

async fn other_method() -> Refusal {
    failed(StatusCode::METHOD_NOT_ALLOWED, "this path is not asked with this method")
}

async fn process_status(State(routes): RoutesState) -> Json<Value> {
    let Answering { handle, ledger, health, routes, .. } = &*routes.answering;
    let now = Instant::now();
    let ledger = ledger.status();
    health.ledger(&ledger);
    let further = routes.iter().map(|route| {
        let ledger = route.ledger.status();
        route.health.ledger(&ledger);
        (route.name.clone(), route.health.report(now))
    });
    let mut told = status(Some(&(handle.status(), ledger)), &health.report(now).with_routes(further));
    let works = |route: &RouteAnswering| Some((route.handle.status(), route.ledger.status()));
    with_routes(&mut told, routes.iter().map(|route| (&*route.name, works(route))));
    Json(told)
}

async fn explain(
    State(routes): RoutesState,
    named: ObjectPath,
    kind: KindResult,
) -> Result<Json<Explained>, Refusal> {
    let answering = &routes.answering;
    let key = read(answering, named, kind)?;
    let Some(explained) = answering.handle.explain(&key).await else {
        return Err(answering.not_here(&key));
    };
    let heard_of = explained.standing.is_some()
        || explained.record.is_some()
        || explained.parked.is_some()
        || !explained.moments.is_empty();
    if !heard_of {
        let (known, asked) = (answering.clone(), key.clone());
        on_a_thread(move || known.find(&asked)).await??;
    }
    Ok(Json(Explained::new(&key, &explained)))
}

async fn applications(State(routes): RoutesState) -> Result<Json<Applications>, Refusal> {
    let answering = routes.answering.clone();
    on_a_thread(move || Applications::new((answering.keys)(), &answering.ledger)).await.map(Json)
}

async fn namespace(State(routes): RoutesState) -> Json<OwnNamespace> {
    let Answering { namespace, counts, .. } = &*routes.answering;
    Json(OwnNamespace { namespace: namespace.clone(), counts: *counts })
}

async fn parked_list(State(routes): RoutesState) -> Json<ParkedList> {
    let mut parked = routes.answering.handle.parked().await;
    parked.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    Json(ParkedList { parked: parked.iter().map(|(key, parked)| Parked::new(key, parked)).collect() })
}

async fn parked_one(
    State(routes): RoutesState,
    named: ObjectPath,
    kind: KindResult,
) -> Result<Json<Parked>, Refusal> {
    let key = read(&routes.answering, named, kind)?;
    routes.answering.parked(&key).await.map(Json)
}

async fn replay_parked(
    State(routes): RoutesState,
    named: ObjectPath,
    kind: KindResult,
) -> Result<StatusCode, Refusal> {
    let key = read(&routes.answering, named, kind)?;
    routes.answering.parked(&key).await?;
    match routes.answering.handle.replay(&key, false).await {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(routes.answering.not_here(&key)),
    }
}

async fn drop_parked(
    State(routes): RoutesState,
    named: ObjectPath,
    kind: KindResult,
) -> Result<StatusCode, Refusal> {
    let key = read(&routes.answering, named, kind)?;
    match routes.answering.handle.discard(&key).await {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(routes.answering.not_parked(&key)),
    }
}

async fn replay(
    State(routes): RoutesState,
    asked: Result<Json<Replay>, JsonRejection>,
) -> Result<Json<Replayed>, Refusal> {
    let Json(asked) = asked?;
    if asked.app.is_empty() && asked.since.is_none() {
        let why = "give applications (`app`), a time (`since`), or both";
        return Err(failed(StatusCode::BAD_REQUEST, why));
    }
    let keys: Result<BTreeSet<Key>, Refusal> = asked.app.iter().map(|app| named(app)).collect();
    let (keys, since) = (keys?, asked.since.map(|since| since.time(Timestamp::now())));
    let answering = routes.answering.clone();
    let (keys, mut replayed) = on_a_thread(move || {
        let keys = keys.iter().map(|key| answering.in_full(key.kind(), key.namespace(), key.name()));
        let keys = keys.collect::<Result<_, Refusal>>()?;
        Ok::<_, Refusal>(answering.choose(keys, since))
    })
    .await??;
    let of = keys.len();
    for key in keys {
        if !routes.answering.handle.replay(&key, asked.whole).await {
            let why = format!("the reporter is stopping: {} of {of} were marked", replayed.marked);
            return Err(failed(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        replayed.marked += 1;
    }
    let Replayed { marked, .. } = replayed;
    tracing::info!(marked, whole = asked.whole, "objects are read again because someone asked");
    Ok(Json(replayed))
}

async fn listen(
    State(routes): RoutesState,
    asked: Result<Query<tail::TailQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(asked) = asked?;
    let wanted = asked.read(routes.answering.handle.shards())?;
    let Ok(place) = routes.listeners.clone().try_acquire_owned() else {
        let why = "as many listen already as may: end one of them first";
        return Err(failed(StatusCode::SERVICE_UNAVAILABLE, why));
    };
    Ok(tail(routes.answering.handle.traces(), wanted, routes.closing.clone(), place))
}

async fn top(
    State(routes): RoutesState,
    asked: Result<Query<TopQuery>, QueryRejection>,
) -> Result<Json<Top>, Refusal> {
    let Query(TopQuery { limit }) = asked?;
    if !(1..=MAX_LIMIT).contains(&limit) {
        let why = format!("`limit` is to be from 1 to {MAX_LIMIT}");
        return Err(failed(StatusCode::BAD_REQUEST, why));
    }
    let handle = &routes.answering.handle;
    let rankings = handle.top(limit).await;
    Ok(Json(Top::new(&handle.status(), &rankings, limit, Timestamp::now())))
}

async fn verifying(State(routes): RoutesState) -> Json<Option<Progress>> {
    Json(routes.answering.handle.verifying())
}

async fn verify(
    State(routes): RoutesState,
    asked: Result<Json<VerifyOptions>, JsonRejection>,
) -> Result<Json<Verified>, Refusal> {
    let Json(asked) = asked?;
    if !(1..=VERIFY_SECONDS).contains(&asked.seconds) {
        let why = format!("`seconds` is to be from 1 to {VERIFY_SECONDS}");
        return Err(failed(StatusCode::BAD_REQUEST, why));
    }
    tracing::info!(dry = asked.dry, "verifying, because someone asked");
    let verifying = routes.answering.handle.verify(asked);
    let verified = tokio::select! {
        () = routes.closing.cancelled() => Err(VerifyError::Stopped),
        verified = verifying => verified,
    };
    match verified {
        Ok(verified) => Ok(Json(verified)),
        Err(error) => {
            let status = match error {
                VerifyError::Busy => StatusCode::CONFLICT,
                VerifyError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
                VerifyError::Unlisted => StatusCode::NOT_IMPLEMENTED,
                VerifyError::Survey(_) => StatusCode::BAD_GATEWAY,
            };
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            Err(failed(status, format!("{error}{}", source.unwrap_or_default())))
        }
    }
}

impl Answering {
    /// The same of a further route.
    fn of(&self, route: &RouteAnswering) -> Self {
        let (handle, ledger, health) = (route.handle.clone(), route.ledger.clone(), route.health.clone());
        Self { handle, ledger, health, routes: Vec::new(), ..self.clone() }
    }

    /// The key of an object whose kind is written as people write it.
    fn in_full(&self, kind: &str, namespace: &str, name: &str) -> Result<Key, Refusal> {
        let wrong = |error: pipeline_core::KeyError| failed(StatusCode::BAD_REQUEST, error.to_string());
        if kind.is_empty() {
            return Key::new(namespace, name).map_err(wrong);
        }
        let seen = (self.keys)();
        let remembered: Vec<Key> = self.ledger.known().into_iter().map(|(key, _)| key).collect();
        let kind = kind_of(kind, seen.iter().chain(&remembered))?;
        Key::of_kind(&kind, namespace, name).map_err(wrong)
    }

    /// Whether the application is known; else what may have been meant.
    fn find(&self, key: &Key) -> Result<(), Refusal> {
        let seen = (self.keys)();
        if seen.contains(key) || self.ledger.get(key).is_some() {
            return Ok(());
        }
        let remembered = self.ledger.known().into_iter().map(|(key, _)| key);
        let near = near(key, seen.into_iter().chain(remembered));
        Err(failed(StatusCode::NOT_FOUND, format!("{key} is not known")).near(near))
    }

    /// Why nothing can be said or done about an application.
    fn not_here(&self, key: &Key) -> Refusal {
        let shard = self.sharding.place(key);
        if self.handle.owns(key) {
            return match self.handle.watches(key) {
                true => failed(StatusCode::SERVICE_UNAVAILABLE, "the reporter is stopping"),
                false => unwatched(key),
            };
        }
        let why = format!("{key} belongs to shard {shard}, which another process has: ask that one");
        failed(StatusCode::NOT_FOUND, why)
    }

    fn not_parked(&self, key: &Key) -> Refusal {
        match self.handle.owns(key) {
            true => failed(StatusCode::NOT_FOUND, format!("{key} is not parked")),
            false => self.not_here(key),
        }
    }

    async fn parked(&self, key: &Key) -> Result<Parked, Refusal> {
        let explained = self.handle.explain(key).await.ok_or_else(|| self.not_here(key))?;
        let parked = explained.parked.ok_or_else(|| self.not_parked(key))?;
        Ok(Parked::new(key, &parked))
    }

    /// Which applications a replay is of: those of `keys` (none are all that the ledger remembers) that were reported
    /// since. One whose time is not known may have been.
    fn choose(&self, keys: BTreeSet<Key>, since: Option<Timestamp>) -> (Vec<Key>, Replayed) {
        let mut replayed = Replayed::default();
        let since = since.map(|since| u32::try_from(since.as_second().max(0)).unwrap_or(u32::MAX));
        if keys.is_empty() {
            let reported = self.ledger.reported_since(since.unwrap_or_default());
            let ours = reported.into_iter().filter(|key| self.handle.owns(key));
            let (watched, other): (Vec<_>, Vec<_>) = ours.partition(|key| self.handle.watches(key));
            replayed.unwatched = other.len() as u64;
            return (watched, replayed);
        }
        let is_older = |key: &Key| {
            let at = self.ledger.get(key).map_or(0, |record| record.reported);
            since.is_some_and(|since| at > 0 && at < since)
        };
        let mut chosen = Vec::new();
        for key in keys {
            if !self.handle.owns(&key) {
                replayed.unknown.push(self.not_here(&key).into_body());
            } else if !self.handle.watches(&key) {
                replayed.unknown.push(unwatched(&key).into_body());
            } else if let Err(refusal) = self.find(&key) {
                replayed.unknown.push(refusal.into_body());
            } else if is_older(&key) {
                replayed.older.push(key.to_string());
            } else {
                chosen.push(key);
            }
        }
        (chosen, replayed)
    }
}

/// To read it would report it, or its end, although nobody watches it.
fn unwatched(key: &Key) -> Refusal {
    let why = format!("{key} is in a namespace that is not watched: it is left as it is");
    failed(StatusCode::NOT_FOUND, why)
}

fn read(
    answering: &Answering,
    Path((namespace, name)): ObjectPath,
    kind: KindResult,
) -> Result<Key, Refusal> {
    let Query(KindQuery { kind }) = kind?;
    let namespace = if namespace == NO_NAMESPACE { "" } else { &namespace };
    answering.in_full(&kind, namespace, &name)
}

fn named(text: &str) -> Result<Key, Refusal> {
    Key::parse(text).map_err(|error| failed(StatusCode::BAD_REQUEST, format!("`{text}`: {error}")))
}

/// Does work that takes the longer the more applications there are on a thread where it holds up nothing else.
async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "cannot make an answer");
        failed(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be made: this is a bug")
    })
}
