//! The router.

use std::time::Duration;

use async_graphql::Request;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::header::{self, HeaderMap};
use axum::http::request::Parts;
use axum::middleware::map_response;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, any, get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use pipeline_core::Shutdown;
use stages_client::{OwnCookie, check_query, event_stream, mark_as_data};
use stages_platform_store::{Sequence, Store};

use crate::authorize;
use crate::caller::{Caller, Refusal};
use crate::forward::{self, Forward, ForwardConfig};
use crate::rest;
use crate::schema::{self, Credentials, Schema};

/// The most that a body may be long.
pub(crate) const BODY: usize = 256 * 1_024;
/// The most that the body of a runtime may be long: 50 clusters are told of at a time, each with the versions of all its kinds.
const BODY_OF_RUNTIME: usize = 2 * 1_024 * 1_024;
/// A comment on a stream of events on which nothing comes, so that whoever listens knows that it lives.
const BEAT: Duration = Duration::from_secs(5);
const STREAM: &str = "text/event-stream";

/// The API; cloning shares.
#[derive(Clone)]
pub struct Api {
    pub(crate) store: Store,
    pub(crate) forward: Forward,
    pub(crate) session: OwnCookie,
    schema: Schema,
    clock: fn() -> Timestamp,
    /// Streams end with it.
    stop: Shutdown,
}

type Route = (&'static str, &'static str, MethodRouter<Api>);

/// The router is made from this list alone.
fn all() -> [Route; 7] {
    [
        ("POST", "/2.0/api/graphql", post(graphql)),
        ("POST", "/2.0/api/runtimes/{runtime}/app-proxy/graphql", post(forward::forward)),
        ("POST", "/2.0/api/authorize", post(authorize::authorize)),
        ("POST", "/2.0/api/audit", post(authorize::audit)),
        ("GET", "/api/ping", get(rest::ping)),
        ("POST", "/api/argo-runtime", post(rest::token)),
        ("GET", "/api/argo-runtime/{name}/storeKey", get(rest::store_key)),
    ]
}

/// Method and path of every route.
#[must_use]
pub fn table() -> Vec<(&'static str, &'static str)> {
    all().into_iter().map(|(method, path, _)| (method, path)).collect()
}

impl Api {
    /// Over a store, of which `sequence` says when anything is kept; `clock` says what time it is, `forward` how runtimes are asked,
    /// and when streams end, `session` by which cookie a page of the platform is known.
    #[must_use]
    pub fn new(
        store: Store,
        sequence: Sequence,
        clock: fn() -> Timestamp,
        forward: ForwardConfig,
        session: OwnCookie,
    ) -> Self {
        let (schema, stop) = (schema::build(store.clone(), sequence, clock), forward.stop.clone());
        Self { schema, forward: Forward::new(forward), session, store, clock, stop }
    }

    /// Its routes. Every answer says that it is data: nothing of it is a page, runs, or is kept by whoever passes it on.
    pub fn routes(self) -> Router {
        let routes = all().into_iter();
        let routes = routes.fold(Router::new(), |router, (_, path, handler)| router.route(path, handler));
        // What lies beside them is the API's as well, and not the console's, which is merged with it.
        let no_path = || any(async || Refusal::NoPath);
        let routes = routes.route("/api/{*path}", no_path()).route("/2.0/{*path}", no_path());
        let routes = routes.method_not_allowed_fallback(async || Refusal::OtherMethod);
        routes.with_state(self).layer(map_response(marked))
    }

    pub(crate) fn now(&self) -> i64 {
        (self.clock)().as_millisecond()
    }

    pub(crate) async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Refusal> {
        Caller::of(&self.store, &self.session, headers, self.now()).await
    }

    /// Who asks, and then the body.
    pub(crate) async fn asked(&self, head: &Parts, body: Body) -> Result<(Caller, Vec<u8>), Refusal> {
        let caller = self.caller(&head.headers).await?;
        is_plain(&head.headers)?;
        let most = match caller {
            Caller::Runtime(_) => BODY_OF_RUNTIME,
            Caller::Person(_) => BODY,
        };
        let body = to_bytes(body, most).await.map_err(|_| Refusal::TooLong(most))?;
        Ok((caller, body.into()))
    }
}

/// What is packed would be read as what it is not.
pub(crate) fn is_plain(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(Refusal::Packed),
        _ => Ok(()),
    }
}

async fn graphql(State(api): State<Api>, request: axum::extract::Request) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    let (caller, body) = api.asked(&head, body).await?;
    // What pages show of the platform itself they are made with: they ask it nothing.
    if caller.is_page() {
        return Err(Refusal::Unstored);
    }
    // Where in a text that is not JSON the fault is, may be told; the text itself is not.
    let request: Request = serde_json::from_slice(&body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Refusal::Wrong(format!(
            r#"the body is no JSON of the form {{"query": "…", "variables": {{}}}}: line {line}, column {column}"#
        ))
    })?;
    // Values may be long, where a runtime tells of much; what is asked is not.
    check_query(&request.query)?;
    if request.query.trim().is_empty() {
        let text = r#"a query is missing: the body is to be {"query": "…", "variables": {}}"#;
        return Err(Refusal::Wrong(text.to_owned()));
    }
    let request = request.data(caller).data(api.store.of_one_request());
    let accepted = head.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if accepted.is_some_and(|accepted| accepted.contains(STREAM)) {
        let answers = api
            .schema
            .execute_stream(request.data(Credentials { session: api.session, headers: head.headers }));
        return Ok(event_stream(answers, api.stop, BEAT).await);
    }
    Ok(Json(api.schema.execute(request).await).into_response())
}

async fn marked(mut response: Response) -> Response {
    mark_as_data(response.headers_mut());
    response
}
