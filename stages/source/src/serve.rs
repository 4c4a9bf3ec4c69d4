//! The source server over HTTP.
//!
//! takes: questions as `openapi.json` describes them, each with a token - gives: answers, with an `ETag` of their content
//! calls: nothing - fails: 400 what cannot be asked, 401 and 403 who may not ask, 404 what is not there, 413 what is too
//! large, 422 a version that cannot be told, 503 what takes too long or too much

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use pipeline_core::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::callers::{Admission, Callers};
use crate::changed::ChangesRequest;
use crate::manifests::{ManifestsRequest, RequestedSource};
use crate::openapi::document;
use crate::operation::Operation;
use crate::question::{CommitRequest, FilesRequest, Question, SourceApi};
use crate::refusal::Refusal;

/// Bounds of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeBounds {
    /// The most bytes of a question.
    pub body: usize,
}

/// What the routes need.
struct ServerState {
    api: SourceApi,
    callers: Arc<dyn Callers>,
}

/// The routes of the source server.
pub fn routes(api: SourceApi, callers: Arc<dyn Callers>, bounds: ServeBounds) -> Router {
    let state = Arc::new(ServerState { api, callers });
    Router::new()
        .route("/getAppVersion", post(app_version))
        .route("/v1/manifests", post(describe).get(list))
        .route("/v1/commit", get(commit))
        .route("/v1/changes", get(changes).post(changed))
        .layer(DefaultBodyLimit::max(bounds.body))
        .route_layer(from_fn_with_state(state.clone(), admitted))
        .with_state(state)
        .route("/openapi.json", get(async || Json(document())))
}

/// Middleware that authorizes and counts questions.
async fn admitted(State(state): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    let operation = match request.uri().path() {
        "/getAppVersion" => Operation::AppVersion,
        "/v1/manifests" => Operation::Manifests,
        "/v1/commit" => Operation::Commit,
        _ => Operation::Changes,
    };
    let response = match token(request.headers()) {
        None => refusal(StatusCode::UNAUTHORIZED, "no token: send it as authorization: Bearer TOKEN"),
        Some(token) => match state.callers.admit(&token).await {
            Admission::To(may) if may.has(operation) => next.run(request).await,
            Admission::To(_) => Refusal::not_for_you(operation.name()).into_response(),
            Admission::No => refusal(StatusCode::FORBIDDEN, "whoever has this token may not ask here"),
            Admission::Unknown => {
                Refusal::later("whether this token may ask here could not be found out").into_response()
            }
        },
    };
    state.api.count(operation.name(), response.status());
    response
}

fn token(headers: &HeaderMap) -> Option<SecretString> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_token = scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty();
    is_token.then(|| SecretString::from(token.trim().to_owned()))
}

fn refusal(status: StatusCode, why: &str) -> Response {
    Refusal::new(status, why).into_response()
}

/// Answers a question, with an `ETag` of the content, or with 304 if the caller has that content.
async fn answered(state: &ServerState, question: Question, headers: &HeaderMap) -> Response {
    let body = match state.api.answer(question).await {
        Ok(body) => body,
        Err(refused) => return refused.into_response(),
    };
    let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&body)[..16]));
    let has_it = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|other| other.trim().trim_start_matches("W/") == tag);
    if has_it {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    let headers = [(header::ETAG, tag), (header::CONTENT_TYPE, "application/json".to_owned())];
    (headers, body).into_response()
}

async fn describe(
    State(state): State<Arc<ServerState>>,
    asked: Result<Json<ManifestsRequest>, JsonRejection>,
) -> Response {
    match asked {
        // An answer to a POST is never cached by the caller.
        Ok(Json(asked)) => answered(&state, Question::Manifests(asked), &HeaderMap::new()).await,
        Err(error) => unread(&error),
    }
}

fn unread(error: &JsonRejection) -> Response {
    let why = match error {
        JsonRejection::BytesRejection(error) => return too_large(error),
        JsonRejection::MissingJsonContentType(_) => {
            "the body is no JSON: send it as content-type: application/json"
        }
        // The parser's error may quote the body.
        _ => "the body is no question: /openapi.json describes it",
    };
    refusal(StatusCode::BAD_REQUEST, why)
}

fn too_large(error: &BytesRejection) -> Response {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            refusal(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than sourceServer.maxBody allows")
        }
        _ => refusal(StatusCode::BAD_REQUEST, "the body ended early"),
    }
}

/// A source in the query of a URL.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ListedSource {
    #[serde(rename = "repoURL")]
    repo_url: String,
    #[serde(default)]
    revision: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    chart: String,
    /// `spec.source.helm` as JSON, as are the two after it; empty: none.
    #[serde(default)]
    helm: String,
    #[serde(default)]
    kustomize: String,
    #[serde(default)]
    directory: String,
}

impl ListedSource {
    /// The question of this source; `Err` names the parameter that is no JSON object.
    fn into_asked(self) -> Result<ManifestsRequest, &'static str> {
        let mut source = Map::new();
        for (name, text) in [("repoURL", self.repo_url), ("path", self.path), ("chart", self.chart)] {
            if !text.is_empty() {
                source.insert(name.to_owned(), Value::String(text));
            }
        }
        for (name, text) in
            [("helm", self.helm), ("kustomize", self.kustomize), ("directory", self.directory)]
        {
            if !text.is_empty() {
                let value = serde_json::from_str::<Map<String, Value>>(&text).map_err(|_| name)?;
                source.insert(name.to_owned(), Value::Object(value));
            }
        }
        let source =
            RequestedSource { source: Value::Object(source), revision: self.revision, elsewhere: false };
        Ok(ManifestsRequest { sources: vec![source], ..ManifestsRequest::default() })
    }
}

async fn list(
    State(state): State<Arc<ServerState>>,
    headers: HeaderMap,
    source: Result<Query<ListedSource>, QueryRejection>,
) -> Response {
    let Ok(Query(source)) = source else { return unasked() };
    let asked = match source.into_asked() {
        Ok(asked) => asked,
        Err(name) => {
            let why = format!("{name} is no JSON object, as spec.source.{name} is one");
            return refusal(StatusCode::BAD_REQUEST, &why);
        }
    };
    answered(&state, Question::Manifests(asked), &headers).await
}

fn unasked() -> Response {
    refusal(StatusCode::BAD_REQUEST, "the query is no question: /openapi.json describes it")
}

async fn commit(
    State(state): State<Arc<ServerState>>,
    headers: HeaderMap,
    asked: Result<Query<CommitRequest>, QueryRejection>,
) -> Response {
    match asked {
        Ok(Query(asked)) => answered(&state, Question::Commit(asked), &headers).await,
        Err(_) => unasked(),
    }
}

async fn changes(
    State(state): State<Arc<ServerState>>,
    headers: HeaderMap,
    asked: Result<Query<FilesRequest>, QueryRejection>,
) -> Response {
    match asked {
        Ok(Query(asked)) => answered(&state, Question::Files(asked), &headers).await,
        Err(_) => unasked(),
    }
}

async fn changed(
    State(state): State<Arc<ServerState>>,
    asked: Result<Json<ChangesRequest>, JsonRejection>,
) -> Response {
    match asked {
        Ok(Json(asked)) => answered(&state, Question::Changes(asked), &HeaderMap::new()).await,
        Err(error) => unread(&error),
    }
}

async fn app_version(State(state): State<Arc<ServerState>>, body: Result<Bytes, BytesRejection>) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(error) => return too_large(&error),
    };
    match serde_json::from_slice::<Value>(&body) {
        Ok(asked) => answered(&state, Question::AppVersion(asked), &HeaderMap::new()).await,
        Err(_) => refusal(StatusCode::BAD_REQUEST, "the body is no JSON"),
    }
}

#[cfg(test)]
mod tests;
