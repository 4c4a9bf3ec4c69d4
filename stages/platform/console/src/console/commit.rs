//! The page of a commit that a deployment brought.

use axum::extract::Path;
use axum::http::StatusCode;
use jiff::Timestamp;

use super::handlers::HandlerResult;
use super::signed_in_request::SignedInRequest;
use crate::page;
use crate::page::application::Asked;

type Parts = (String, String, String, String, String);

pub(crate) async fn commit(
    Path((runtime, namespace, name, began, revision)): Path<Parts>,
    request: SignedInRequest,
) -> HandlerResult {
    let id = request.application_at((runtime, namespace, name)).await?;
    let asked = Asked::parse(id, &request.form);
    let unknown = || request.answered(StatusCode::NOT_FOUND, &page::commit::unknown(&asked, &revision));
    let Some(at) = began.parse().ok().and_then(|began| Timestamp::from_millisecond(began).ok()) else {
        return Ok(unknown());
    };
    let found = request.session.fleet.commit(&asked.id, at.as_millisecond(), &revision);
    Ok(match request.stored(found).await? {
        Some(commit) => request.shown(&page::commit::page(&asked, at, &commit)),
        None => unknown(),
    })
}
