//! The source server over HTTP.
//!
//! takes: questions as `openapi.json` describes them, each with a token - gives: answers, with an `ETag` of their content
//! calls: nothing - fails: 400 what cannot be asked, 401 and 403 who may not ask, 404 what is not there, 413 what is too
//! large, 422 a version that cannot be told, 503 what takes too long or too much

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use pipeline_core::SecretString;
use prometheus::{IntCounterVec, Opts, Registry};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use stages_git::FetchError;

use crate::asked::{Asked, AskedSource};
use crate::callers::{Admitted, Callers};
use crate::changed::AskedChange;
use crate::library::{Library, SourceError};
use crate::openapi::document;
use crate::repositories::NotHeld;
use crate::versions::Versions;

/// How long somebody who was turned away for too much work is to wait.
const LATER: HeaderValue = HeaderValue::from_static("5");

/// Bounds of what is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeBounds {
    /// Bytes of a question.
    pub body: usize,
}

struct Served {
    library: Library,
    callers: Arc<dyn Callers>,
    answered: IntCounterVec,
}

/// The routes. What they count is registered.
///
/// # Errors
/// The registry has such a metric already.
pub fn routes(
    library: Library,
    callers: Arc<dyn Callers>,
    bounds: ServeBounds,
    registry: &Registry,
) -> Result<Router, prometheus::Error> {
    let opts = Opts::new("gitops_runtime_source_requests_total", "Questions, by operation and status.");
    let answered = IntCounterVec::new(opts, &["operation", "status"])?;
    registry.register(Box::new(answered.clone()))?;
    let served = Arc::new(Served { library, callers, answered });
    Ok(Router::new()
        .route("/getAppVersion", post(app_version))
        .route("/v1/manifests", post(describe).get(list))
        .route("/v1/commit", get(commit))
        .route("/v1/changes", get(changes).post(changed))
        .layer(DefaultBodyLimit::max(bounds.body))
        .route_layer(from_fn_with_state(served.clone(), admitted))
        .with_state(served)
        .route("/openapi.json", get(async || Json(document()))))
}

/// Lets those pass who may ask, and counts.
async fn admitted(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let operation = match request.uri().path() {
        "/getAppVersion" => "app_version",
        "/v1/manifests" => "manifests",
        "/v1/commit" => "commit",
        _ => "changes",
    };
    let response = match token(request.headers()) {
        None => refusal(StatusCode::UNAUTHORIZED, "no token: send it as authorization: Bearer TOKEN"),
        Some(token) => match served.callers.admit(&token).await {
            Admitted::Yes => next.run(request).await,
            Admitted::No => refusal(StatusCode::FORBIDDEN, "whoever has this token may not ask here"),
            Admitted::Unknown => later("whether this token may ask here could not be found out"),
        },
    };
    served.answered.with_label_values(&[operation, status(response.status())]).inc();
    response
}

const fn status(status: StatusCode) -> &'static str {
    match status.as_u16() {
        200..300 => "ok",
        304 => "not_modified",
        401 | 403 => "refused",
        400..500 => "wrong",
        503 => "busy",
        _ => "failed",
    }
}

fn token(headers: &HeaderMap) -> Option<SecretString> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_token = scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty();
    is_token.then(|| SecretString::from(token.trim().to_owned()))
}

fn refusal(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({"error": why}))).into_response()
}

fn later(why: &str) -> Response {
    let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, why);
    response.headers_mut().insert(header::RETRY_AFTER, LATER);
    response
}

fn failed(error: &SourceError) -> Response {
    let why = error.to_string();
    match error {
        SourceError::Shared(error) => failed(error),
        SourceError::Asked(_) => refusal(StatusCode::BAD_REQUEST, &why),
        SourceError::NotHeld(NotHeld::Unconfigured { .. }) => refusal(StatusCode::NOT_FOUND, &why),
        SourceError::NotHeld(error) if error.is_no_revision() => refusal(StatusCode::NOT_FOUND, &why),
        SourceError::NotHeld(NotHeld::NotAllowed { .. }) => refusal(StatusCode::FORBIDDEN, &why),
        SourceError::NotHeld(NotHeld::Fetch(error)) => not_fetched(error, &why),
        SourceError::Version(_) => refusal(StatusCode::UNPROCESSABLE_ENTITY, &why),
        SourceError::Busy(_) | SourceError::NotHeld(NotHeld::TooMany) => later(&why),
        error => {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "a question about a repository was not answered"
            );
            refusal(StatusCode::INTERNAL_SERVER_ERROR, &why)
        }
    }
}

/// Nothing that a caller or this server did wrong, but for an address that is none.
fn not_fetched(error: &FetchError, why: &str) -> Response {
    match error {
        FetchError::Address { .. } => refusal(StatusCode::BAD_REQUEST, why),
        FetchError::FilesRefused { .. } => refusal(StatusCode::FORBIDDEN, why),
        FetchError::NoRepository { .. } => refusal(StatusCode::NOT_FOUND, why),
        error if error.is_transient() => later(why),
        error => {
            tracing::warn!(error = error as &dyn std::error::Error, "a repository could not be fetched");
            refusal(StatusCode::BAD_GATEWAY, why)
        }
    }
}

/// An answer under the digest of its content; none where whoever asks has it.
fn answer(headers: &HeaderMap, answer: &impl Serialize) -> Response {
    let Ok(body) = serde_json::to_vec(answer) else {
        return refusal(StatusCode::INTERNAL_SERVER_ERROR, "write the answer");
    };
    let digest = Sha256::digest(&body);
    let tag: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
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
    let asked = match asked {
        Ok(Json(asked)) => asked,
        Err(error) => return unread(&error),
    };
    match served.library.describe(asked).await {
        // A question of this kind is never kept by whoever asks.
        Ok(told) => answer(&HeaderMap::new(), &*told),
        Err(error) => failed(&error),
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
        let source = AskedSource { source: Value::Object(source), revision: self.revision };
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
    match served.library.describe(asked).await {
        Ok(told) => answer(&headers, &*told),
        Err(error) => failed(&error),
    }
}

fn unasked() -> Response {
    refusal(StatusCode::BAD_REQUEST, "the query is no question: /openapi.json describes it")
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedCommit {
    #[serde(rename = "repoURL")]
    repo_url: String,
    #[serde(default)]
    revision: String,
}

async fn commit(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    asked: Result<Query<AskedCommit>, QueryRejection>,
) -> Response {
    let Ok(Query(asked)) = asked else { return unasked() };
    match served.library.commit(&asked.repo_url, &asked.revision).await {
        Ok(told) => answer(&headers, &told),
        Err(error) => failed(&error),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedChanges {
    #[serde(rename = "repoURL")]
    repo_url: String,
    from: String,
    to: String,
    /// Paths with `;` between them.
    #[serde(default)]
    paths: String,
}

async fn changes(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    asked: Result<Query<AskedChanges>, QueryRejection>,
) -> Response {
    let Ok(Query(asked)) = asked else { return unasked() };
    let paths = asked.paths.split(';').map(str::trim).filter(|path| !path.is_empty());
    let paths = paths.map(str::to_owned).collect();
    match served.library.changes(&asked.repo_url, &asked.from, &asked.to, paths).await {
        Ok(told) => answer(&headers, &told),
        Err(error) => failed(&error),
    }
}

async fn changed(
    State(served): State<Arc<Served>>,
    asked: Result<Json<AskedChange>, JsonRejection>,
) -> Response {
    let asked = match asked {
        Ok(Json(asked)) => asked,
        Err(error) => return unread(&error),
    };
    match served.library.changed(asked).await {
        Ok(told) => answer(&HeaderMap::new(), &told),
        Err(error) => failed(&error),
    }
}

/// The version of an application, as other programs ask for it: an Application and a revision, or the Application alone.
async fn app_version(State(served): State<Arc<Served>>, body: Result<Bytes, BytesRejection>) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(error) => return too_large(&error),
    };
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return refusal(StatusCode::BAD_REQUEST, "the body is no JSON");
    };
    let (app, revision) = match body.get("app") {
        Some(app) => (app, body["revision"].as_str().unwrap_or_default()),
        None => (&body, ""),
    };
    let sources = sources_of(app, revision);
    match served.library.versions(&app["metadata"], &sources).await {
        Ok(versions) => answer(&HeaderMap::new(), &app_version_of(versions)),
        Err(error) => failed(&error),
    }
}

/// The sources of an Application: at `revision` where it has but one, else at what it was compared with.
fn sources_of(app: &Value, revision: &str) -> Vec<AskedSource> {
    let several = app["spec"]["sources"].as_array().filter(|sources| !sources.is_empty());
    let at = |source: &Value, revision: &Value| AskedSource {
        source: source.clone(),
        revision: revision.as_str().unwrap_or_default().to_owned(),
    };
    match several {
        Some(sources) => {
            let compared = &app["status"]["sync"]["revisions"];
            sources.iter().enumerate().map(|(n, source)| at(source, &compared[n])).collect()
        }
        None if app["spec"]["source"].is_object() => {
            let compared = &app["status"]["sync"]["revision"];
            let given = Value::String(revision.to_owned());
            vec![at(&app["spec"]["source"], if revision.is_empty() { compared } else { &given })]
        }
        None => Vec::new(),
    }
}

/// As other programs read it; of an application that packages nothing there is nothing.
fn app_version_of(versions: Option<Versions>) -> Value {
    let Some(Versions { app_version, dependencies }) = versions else { return json!({}) };
    let files = [
        ("helm/Chart.lock", dependencies.lock),
        ("helm/dependencies", dependencies.deps),
        ("helm/requirements.yaml", dependencies.requirements),
    ];
    let files = files.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::String(text?))));
    json!({"appVersion": app_version, "dependencies": files.collect::<Map<String, Value>>()})
}

#[cfg(test)]
mod tests;
