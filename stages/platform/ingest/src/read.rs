//! Shows what a runtime reported, to whoever has its token, as plain JSON: enough to see that reports arrive, without GraphQL.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::json;
use stages_platform_store::Runtime;

use crate::compare::unreadable;
use crate::ingest::Ingest;
use crate::refusal::Refusal;

/// Rows of an answer, unless fewer are asked for.
const LIMIT: u32 = 500;

#[derive(Deserialize)]
pub(crate) struct Page {
    /// Applications: `namespace/name` of the last that is known.
    #[serde(default)]
    after: String,
    /// A timeline: the number of the last that is known.
    before: Option<String>,
    limit: Option<String>,
}

impl Page {
    fn limit(&self) -> Result<u32, Refusal> {
        let limit =
            self.limit.as_deref().map(|limit| limit.parse::<u32>().map_err(|_| Refusal::Number("limit")));
        Ok(limit.transpose()?.unwrap_or(LIMIT).clamp(1, LIMIT))
    }

    fn before(&self) -> Result<i64, Refusal> {
        let before =
            self.before.as_deref().map(|before| before.parse().map_err(|_| Refusal::Number("before")));
        Ok(before.transpose()?.unwrap_or(i64::MAX))
    }
}

/// `GET /api/v1/applications?after=NAMESPACE/NAME&limit=N`.
pub(crate) async fn applications(
    State(ingest): State<Ingest>,
    Extension(runtime): Extension<Runtime>,
    Query(page): Query<Page>,
) -> Result<Response, Refusal> {
    let (after, limit) = (page.after.split_once('/').unwrap_or_default(), page.limit()?);
    let found = ingest.store.applications(runtime.id, after, limit).await.map_err(unreadable)?;
    let next = (found.len() == limit as usize).then(|| found.last()).flatten();
    let next = next.map(|last| format!("{}/{}", last.namespace, last.name));
    Ok(Json(json!({"runtime": runtime.name, "applications": found, "next": next})).into_response())
}

/// `GET /api/v1/applications/NAMESPACE/NAME/timeline?before=NUMBER&limit=N`, the newest first.
pub(crate) async fn timeline(
    State(ingest): State<Ingest>,
    Extension(runtime): Extension<Runtime>,
    Path((namespace, name)): Path<(String, String)>,
    Query(page): Query<Page>,
) -> Result<Response, Refusal> {
    let (limit, before, application) = (page.limit()?, page.before()?, (&*namespace, &*name));
    let store = &ingest.store;
    let found = store.timeline(runtime.id, application, before, limit).await.map_err(unreadable)?;
    if found.is_empty() && page.before.is_none() {
        return Err(Refusal::NoApplication);
    }
    let next = (found.len() == limit as usize).then(|| found.last()).flatten().map(|last| last.id);
    let deployments = store.deployments(runtime.id, application).await.map_err(unreadable)?;
    let drifts = store.drifts(runtime.id, application).await.map_err(unreadable)?;
    let answer = json!({"transitions": found, "next": next, "deployments": deployments, "drifts": drifts});
    Ok(Json(answer).into_response())
}
