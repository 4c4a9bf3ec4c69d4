//! The page of a commit that a deployment brought.

use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::HeaderMap;
use axum::response::Response;
use jiff::Timestamp;

use super::handlers::{HandlerResult, framed, page_of, send, unavailable};
use super::{Console, Session};
use crate::fleet::Unavailable;
use crate::page;
use crate::page::application::Asked;

type Parts = (String, String, String, String, String);

pub(crate) async fn commit(
    State(console): State<Console>,
    Extension(session): Extension<Session>,
    Path((runtime, namespace, name, began, revision)): Path<Parts>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> HandlerResult {
    let failed = |error: Unavailable| unavailable(&error, Some(&session), &headers);
    let id = console.application_at(&session, (runtime, namespace, name)).await.map_err(failed)?;
    let asked = Asked::parse(id, &query.unwrap_or_default());
    let unknown = || -> Response {
        let page = page::commit::unknown(&asked, &revision);
        send(StatusCode::NOT_FOUND, &framed(&page, &session, &headers))
    };
    let Some(at) = began.parse().ok().and_then(|began| Timestamp::from_millisecond(began).ok()) else {
        return Ok(unknown());
    };
    let found = session.fleet.commit(&asked.id, at.as_millisecond(), &revision).await;
    Ok(match found.map_err(failed)? {
        Some(commit) => page_of(&page::commit::page(&asked, at, &commit), &session, &headers),
        None => unknown(),
    })
}
