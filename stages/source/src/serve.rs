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

use crate::asked::{Asked, AskedSource};
use crate::callers::{Admitted, Callers};
use crate::changed::AskedChange;
use crate::openapi::document;
use crate::operation::Operation;
use crate::question::{Answering, AskedCommit, AskedFiles, Question};
use crate::refusal::Refusal;

/// Bounds of what is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeBounds {
    /// Bytes of a question.
    pub body: usize,
}

struct Served {
    answering: Answering,
    callers: Arc<dyn Callers>,
}

/// The routes.
pub fn routes(answering: Answering, callers: Arc<dyn Callers>, bounds: ServeBounds) -> Router {
    let served = Arc::new(Served { answering, callers });
    Router::new()
        .route("/getAppVersion", post(app_version))
        .route("/v1/manifests", post(describe).get(list))
        .route("/v1/commit", get(commit))
        .route("/v1/changes", get(changes).post(changed))
        .layer(DefaultBodyLimit::max(bounds.body))
        .route_layer(from_fn_with_state(served.clone(), admitted))
        .with_state(served)
        .route("/openapi.json", get(async || Json(document())))
}

/// Lets those pass who may ask, and counts.
async fn admitted(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let operation = match request.uri().path() {
        "/getAppVersion" => Operation::AppVersion,
        "/v1/manifests" => Operation::Manifests,
        "/v1/commit" => Operation::Commit,
        _ => Operation::Changes,
    };
    let response = match token(request.headers()) {
        None => refusal(StatusCode::UNAUTHORIZED, "no token: send it as authorization: Bearer TOKEN"),
        Some(token) => match served.callers.admit(&token).await {
            Admitted::To(may) if may.has(operation) => next.run(request).await,
            Admitted::To(_) => Refusal::not_for_you(operation.name()).into_response(),
            Admitted::No => refusal(StatusCode::FORBIDDEN, "whoever has this token may not ask here"),
            Admitted::Unknown => {
                Refusal::later("whether this token may ask here could not be found out").into_response()
            }
        },
    };
    served.answering.count(operation.name(), response.status());
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

/// Answers a question. What one who asks may keep goes under the digest of its content; nothing where they have it.
async fn answered(served: &Served, question: Question, headers: &HeaderMap) -> Response {
    let body = match served.answering.answer(question).await {
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

async fn describe(State(served): State<Arc<Served>>, asked: Result<Json<Asked>, JsonRejection>) -> Response {
    match asked {
        // A question of this kind is never kept by whoever asks.
        Ok(Json(asked)) => answered(&served, Question::Manifests(asked), &HeaderMap::new()).await,
        Err(error) => unread(&error),
    }
}

fn unread(error: &JsonRejection) -> Response {
    let why = match error {
        JsonRejection::BytesRejection(error) => return too_large(error),
        JsonRejection::MissingJsonContentType(_) => {
            "the body is no JSON: send it as content-type: application/json"
        }
        // What a parser says of a body may quote it.
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

/// A source, as an address carries it.
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
    /// JSON, as `spec.source` has it.
    #[serde(default)]
    helm: String,
    #[serde(default)]
    kustomize: String,
    #[serde(default)]
    directory: String,
}

impl ListedSource {
    /// As a question; `Err` names the part that is no JSON.
    fn into_asked(self) -> Result<Asked, &'static str> {
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
        let source = AskedSource { source: Value::Object(source), revision: self.revision, elsewhere: false };
        Ok(Asked { sources: vec![source], ..Asked::default() })
    }
}

async fn list(
    State(served): State<Arc<Served>>,
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
    answered(&served, Question::Manifests(asked), &headers).await
}

fn unasked() -> Response {
    refusal(StatusCode::BAD_REQUEST, "the query is no question: /openapi.json describes it")
}

async fn commit(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    asked: Result<Query<AskedCommit>, QueryRejection>,
) -> Response {
    match asked {
        Ok(Query(asked)) => answered(&served, Question::Commit(asked), &headers).await,
        Err(_) => unasked(),
    }
}

async fn changes(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    asked: Result<Query<AskedFiles>, QueryRejection>,
) -> Response {
    match asked {
        Ok(Query(asked)) => answered(&served, Question::Files(asked), &headers).await,
        Err(_) => unasked(),
    }
}

async fn changed(
    State(served): State<Arc<Served>>,
    asked: Result<Json<AskedChange>, JsonRejection>,
) -> Response {
    match asked {
        Ok(Json(asked)) => answered(&served, Question::Changes(asked), &HeaderMap::new()).await,
        Err(error) => unread(&error),
    }
}

async fn app_version(State(served): State<Arc<Served>>, body: Result<Bytes, BytesRejection>) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(error) => return too_large(&error),
    };
    match serde_json::from_slice::<Value>(&body) {
        Ok(asked) => answered(&served, Question::AppVersion(asked), &HeaderMap::new()).await,
        Err(_) => refusal(StatusCode::BAD_REQUEST, "the body is no JSON"),
    }
}

#[cfg(test)]
mod tests;
