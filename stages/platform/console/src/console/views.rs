//! Views that somebody saved, and the list of applications that they stand above.

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Redirect, Response};
use stages_platform_store::SavedView;

use super::form::Form;
use super::handlers::{HandlerResult, page_of, unavailable, value};
use super::{Console, Session};
use crate::filter::{Filter, Grouping};
use crate::fleet::Unavailable;
use crate::page::link::with;
use crate::page::{applications as page, matrix as matrix_page, views::Views};

/// Characters of a name,
const NAME: usize = 60;
/// and of a filter.
const QUERY: usize = 2_000;

/// Somebody's own, by name.
pub(super) async fn of(
    console: &Console,
    session: &Session,
    headers: &HeaderMap,
) -> Result<Vec<SavedView>, Response> {
    let views = console.0.settings.store.saved_views(&session.user).await;
    views.map_err(|error| unavailable(&Unavailable(Box::new(error)), Some(session), headers))
}

/// The list that a filter leaves, with what is to be said above it.
pub(super) async fn listed(
    console: &Console,
    session: &Session,
    headers: &HeaderMap,
    filter: &Filter,
    refused: Option<&str>,
) -> HandlerResult {
    let saved = of(console, session, headers).await?;
    let views = Views { saved: &saved, refused };
    if filter.grouping == Grouping::Matrix {
        let matrix = session.fleet.matrix(filter).await;
        let matrix = matrix.map_err(|error| unavailable(&error, Some(session), headers))?;
        return Ok(page_of(&matrix_page::page(filter, &matrix, &views), session, headers));
    }
    let listing = session.fleet.applications(filter).await;
    let listing = listing.map_err(|error| unavailable(&error, Some(session), headers))?;
    Ok(page_of(&page::page(filter, &listing, &views, console.now()), session, headers))
}

/// Saves the filter of the address that it is sent to under a name, or takes a view away; then the list is shown again.
pub(crate) async fn act(
    State(console): State<Console>,
    Extension(session): Extension<Session>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    Form(body): Form,
) -> HandlerResult {
    let filter = Filter::parse(&query.unwrap_or_default());
    let form = String::from_utf8_lossy(&body).into_owned();
    let name = value(&form, "name").trim().to_owned();
    let (store, by, now) = (&console.0.settings.store, session.by(), console.now().as_millisecond());
    let (done, otherwise) = match &*value(&form, "act") {
        "remove" => (store.remove_view(&by, &name, now).await, "You have no such view (any more)."),
        _ => {
            // Whoever opens it begins with its first page.
            let query = Filter { page: 0, ..filter.clone() }.query();
            if name.is_empty() || name.chars().count() > NAME || name.contains(char::is_control) {
                let why = "A view has a name of 1 to 60 characters.";
                return listed(&console, &session, &headers, &filter, Some(why)).await;
            }
            if query.len() > QUERY {
                let why = "A view keeps a filter of at most 2,000 characters: take something away.";
                return listed(&console, &session, &headers, &filter, Some(why)).await;
            }
            let saved = store.save_view(&by, &SavedView { name, query }, now).await;
            (saved, "You have 50 views: remove one first.")
        }
    };
    let done = done.map_err(|error| unavailable(&Unavailable(Box::new(error)), Some(&session), &headers))?;
    match done {
        true => Ok(Redirect::to(&with("/applications", &filter.query())).into_response()),
        false => listed(&console, &session, &headers, &filter, Some(otherwise)).await,
    }
}
