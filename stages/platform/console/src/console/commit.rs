//! The page of a commit that a deployment brought.

use axum::extract::Path;
use axum::http::StatusCode;
use jiff::Timestamp;

use super::handlers::HandlerResult;
use super::signed_in_request::SignedInRequest;
use crate::fleet::Unavailable;
use crate::page;
use crate::page::application::Asked;

type Parts = (String, String, String, String, String);

pub(crate) async fn commit(
    Path((runtime, namespace, name, began, revision)): Path<Parts>,
    request: SignedInRequest,
) -> HandlerResult {
    let SignedInRequest { console, session, .. } = &request;
    let failed = |error: Unavailable| request.unavailable(&error);
    let id = console.application_at(session, (runtime, namespace, name)).await.map_err(failed)?;
    let asked = Asked::parse(id, &request.form);
    let unknown = || request.answered(StatusCode::NOT_FOUND, &page::commit::unknown(&asked, &revision));
    let Some(at) = began.parse().ok().and_then(|began| Timestamp::from_millisecond(began).ok()) else {
        return Ok(unknown());
    };
    let found = session.fleet.commit(&asked.id, at.as_millisecond(), &revision).await;
    Ok(match found.map_err(failed)? {
        Some(commit) => request.shown(&page::commit::page(&asked, at, &commit)),
        None => unknown(),
    })
}
