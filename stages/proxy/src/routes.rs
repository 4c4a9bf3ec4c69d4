//! The routes: the API, below `/app-proxy` and without it, where browsers go for a consent and come back, and whether it lives.
//!
//! takes: HTTP - gives: answers of the schema; a stream of events to whoever accepts one, and sockets; the runtime's own logs -
//! calls: nothing itself - fails: 401 without a token, 413 for a body that is too long, 400 for one that is no query; whatever else
//! is wrong stands under `errors` of an answer 200, also that nobody knows whoever asks, of whom no body is read

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_graphql::Request;
use axum::body::{Body, to_bytes};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection as NoSocket;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{AppendHeaders, IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures::stream;
use pipeline_core::{SecretString, Shutdown};
use serde_json::json;
use stages_client::{bearer_token, event_stream};
use tokio::sync::Semaphore;

use crate::archive::LogArchive;
use crate::dispatcher::{Caller, Dispatcher, Invocation};
use crate::error::ActError;
use crate::gate::Subject;
use crate::git::OAuth;
use crate::operation::Operation;
use crate::query_text::read_query;
use crate::registration::RegistrationState;
use crate::schema::Schema;
use crate::socket::{FULL, SocketOwner, SocketSession, agreed};
use crate::strangers::Strangers;

/// The HTTP API of the app proxy, and what its routes need. Cloning shares.
#[derive(Clone)]
pub(crate) struct HttpApi {
    pub(crate) schema: Schema,
    pub(crate) cors: Option<HeaderValue>,
    /// The most bytes of a request's body.
    pub(crate) body: usize,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) archive: Arc<LogArchive>,
    pub(crate) oauth: OAuth,
    pub(crate) stop: Shutdown,
    pub(crate) registered: RegistrationState,
    /// Places for sockets of those who are known.
    pub(crate) sockets: Arc<Semaphore>,
    /// As many places for those whom the platform is asked about.
    pub(crate) checking: Arc<Semaphore>,
    /// Places for those who have not said yet who they are.
    pub(crate) strangers: Strangers,
}

const METHODS: HeaderValue = HeaderValue::from_static("GET,HEAD,PUT,PATCH,POST,DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static("content-type,authorization,x-access-token");
/// The provider that gives tokens by OAuth.
const GITHUB: &str = "github";
const TOKEN: HeaderName = HeaderName::from_static("x-access-token");
/// How often a comment is sent on a stream without events, so that no proxy on the way takes it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

impl HttpApi {
    pub(crate) fn routes(self) -> Router {
        let alive = || get(async || "OK");
        let api = Router::new()
            .route("/api/graphql", get(socket).post(graphql))
            .route("/api/applications/logs", get(logs))
            .route("/api/git-auth/{provider}", get(consent))
            .route("/api/git-auth/{provider}/callback", get(came_back))
            .route("/api/readyz", get(ready))
            .route("/api/healthz", alive())
            .route("/api/health", alive())
            .with_state(self.clone());
        Router::new().nest("/app-proxy", api.clone()).merge(api).layer(from_fn_with_state(self, cors))
    }

    /// The answer to a request that is refused, as a stream of events or as JSON.
    async fn refused(self, is_stream: bool, message: &str, code: &str) -> Response {
        let error = json!({"message": message, "extensions": {"code": code}});
        let said = json!({"data": null, "errors": [error]});
        match is_stream {
            true => event_stream(stream::iter([said]), self.stop, KEEP_ALIVE).await,
            false => answer(&said),
        }
    }
}

/// Readiness: the app proxy can do nothing before the runtime is registered.
async fn ready(State(front): State<HttpApi>) -> Response {
    match front.registered.borrow().clone() {
        Some(why) => wrong(StatusCode::SERVICE_UNAVAILABLE, &ActError::Unregistered(why).to_string()),
        None => "OK".into_response(),
    }
}

/// The token, as it is or after `Bearer`.
fn token(headers: &HeaderMap) -> Option<SecretString> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let header = text(header::AUTHORIZATION).filter(|text| !text.is_empty()).or_else(|| text(TOKEN))?;
    bearer_token(header).map(SecretString::from)
}

fn wrong(status: StatusCode, text: &str) -> Response {
    (status, format!("{text}\n")).into_response()
}

async fn graphql(State(front): State<HttpApi>, request: axum::extract::Request) -> Response {
    let (head, body) = request.into_parts();
    let caller = Caller(token(&head.headers));
    let accepts = head.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_stream = accepts.contains("text/event-stream");
    // Of whom nobody knows nothing is read: what a body takes while it is read is for those who may ask.
    match front.dispatcher.knows(&caller).await {
        Ok(()) => {}
        Err(error @ ActError::NoCredentials) => return wrong(StatusCode::UNAUTHORIZED, &error.to_string()),
        Err(error) => return front.refused(is_stream, &error.to_string(), error.code()).await,
    }
    let Ok(body) = to_bytes(body, front.body).await else {
        return wrong(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("the body is longer than {} bytes", front.body),
        );
    };
    // Where in a text that is not JSON the fault is, may be told; the text itself is not.
    let mut request: Request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => {
            let text = format!(
                r#"the body is no JSON of the form {{"query": "…", "variables": {{}}}}: line {}, column {}"#,
                error.line(),
                error.column()
            );
            return wrong(StatusCode::BAD_REQUEST, &text);
        }
    };
    if let Err(why) = read_query(&mut request) {
        return front.refused(is_stream, &why, "BAD_REQUEST").await;
    }
    let request = request.data(caller);
    if is_stream {
        return event_stream(front.schema.execute_stream(request), front.stop, KEEP_ALIVE).await;
    }
    answer(&front.schema.execute(request).await)
}

/// An answer that nobody keeps.
fn answer(answer: &impl serde::Serialize) -> Response {
    let mut response = Json(answer).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Opens a socket, for whoever says on it who they are.
async fn socket(
    State(front): State<HttpApi>,
    headers: HeaderMap,
    wanted: Result<WebSocketUpgrade, NoSocket>,
) -> Response {
    let upgrade = match wanted {
        Ok(upgrade) => upgrade,
        Err(
            NoSocket::InvalidWebSocketVersionHeader(_)
            | NoSocket::WebSocketKeyHeaderMissing(_)
            | NoSocket::ConnectionNotUpgradable(_),
        ) => {
            return wrong(StatusCode::BAD_REQUEST, "this is no WebSocket of version 13");
        }
        Err(_) => {
            let text = "ask with POST, or open a WebSocket of the protocol graphql-transport-ws";
            let allow = [(header::ALLOW, HeaderValue::from_static("POST"))];
            return (allow, wrong(StatusCode::METHOD_NOT_ALLOWED, text)).into_response();
        }
    };
    let Some((protocol, upgrade)) = agreed(upgrade, front.body) else {
        let text = "the protocols here are graphql-transport-ws and graphql-ws";
        return wrong(StatusCode::BAD_REQUEST, text);
    };
    // Whoever opens one takes no place of those who are known before they are.
    if front.sockets.available_permits() == 0 {
        return wrong(StatusCode::SERVICE_UNAVAILABLE, FULL);
    }
    let HttpApi { schema, dispatcher, stop, checking, sockets, strangers, .. } = front;
    let session = SocketSession {
        schema,
        dispatcher,
        token: token(&headers),
        stop,
        checking,
        sockets,
        who: SocketOwner::Stranger(strangers.enter()),
    };
    upgrade.on_upgrade(move |socket| session.run(protocol, socket))
}

/// The runtime's own logs, for admins: browsers that send no header are refused, since a log is nobody's whom nobody knows.
async fn logs(State(front): State<HttpApi>, headers: HeaderMap) -> Response {
    let invocation = Invocation::new(Operation::DOWNLOAD_LOGS, Subject::default());
    let begun = async {
        front.dispatcher.begin(&Caller(token(&headers)), &invocation).await?;
        front.archive.clone().begin(front.stop.clone()).await
    };
    let stream = match begun.await {
        Ok(stream) => stream,
        Err(error) => return wrong(status(&error), &error.to_string()),
    };
    let headers = [
        (header::CONTENT_TYPE, "application/gzip"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"gitops-runtime-logs.tar.gz\""),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, Body::from_stream(stream)).into_response()
}

/// The query that a browser comes with.
type CallbackQuery = Query<HashMap<String, String>>;

/// Sends the browser of whoever began to where they consent.
async fn consent(
    State(front): State<HttpApi>,
    Path(provider): Path<String>,
    brought: CallbackQuery,
) -> Response {
    let Query(brought) = brought;
    let of = |name: &str| brought.get(name).map(String::as_str).unwrap_or_default();
    if provider != GITHUB {
        return no_provider();
    }
    match front.oauth.consent(of("userId"), of("state")).await {
        Ok(url) => told(StatusCode::FOUND, [(header::LOCATION, url)], String::new()),
        Err(error) => told(status(&error), [], format!("{error}\n")),
    }
}

/// Shows whoever consented a line, or that they did not.
async fn came_back(
    State(front): State<HttpApi>,
    Path(provider): Path<String>,
    brought: CallbackQuery,
) -> Response {
    let Query(brought) = brought;
    let of = |name: &str| brought.get(name).map(String::as_str).unwrap_or_default();
    if provider != GITHUB {
        return no_provider();
    }
    let said = match of("error") {
        "" => front.oauth.came_back(of("state"), of("code")).await.map(|line| {
            let text = format!(
                "Copy this line to where you began, within 10 minutes:\n\n{line}\n\nWhoever began works with your account of GitHub in this \
                 runtime then: give it to nobody else.\n"
            );
            (StatusCode::OK, text)
        }),
        _ => front.oauth.refused(of("state")).await.map(|()| {
            (StatusCode::FORBIDDEN, "GitHub says that there is no consent: nothing was registered.\n".to_owned())
        }),
    };
    let (status, text) = said.unwrap_or_else(|error| (status(&error), format!("{error}\n")));
    told(status, [], text)
}

fn no_provider() -> Response {
    told(StatusCode::NOT_FOUND, [], "a browser gives a token of github alone\n".to_owned())
}

/// A text for a browser, which keeps nothing of it, and tells nobody where it was.
fn told<const N: usize>(status: StatusCode, more: [(HeaderName, String); N], text: String) -> Response {
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (status, headers, AppendHeaders(more), text).into_response()
}

/// The status that says why something was not done.
fn status(error: &ActError) -> StatusCode {
    match error.code() {
        "UNAUTHENTICATED" => StatusCode::UNAUTHORIZED,
        "FORBIDDEN" => StatusCode::FORBIDDEN,
        "BAD_REQUEST" => StatusCode::BAD_REQUEST,
        "PLATFORM_AWAY" | "BUSY" | "STOPPING" => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// Says which pages may ask, and answers what browsers ask before.
async fn cors(State(front): State<HttpApi>, request: axum::extract::Request, next: Next) -> Response {
    let asked_before = request.method() == Method::OPTIONS;
    let mut response = match asked_before {
        true => StatusCode::NO_CONTENT.into_response(),
        false => next.run(request).await,
    };
    if let Some(origin) = front.cors {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        if asked_before {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        }
    }
    response
}
