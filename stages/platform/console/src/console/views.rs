//! Views that somebody saved, and the list of applications that they stand above.

use axum::extract::RawQuery;
use axum::response::{IntoResponse as _, Redirect, Response};
use stages_platform_store::{GroupBy, SavedView};

use super::handlers::{HandlerResult, value};
use super::signed_in_request::SignedInRequest;
use crate::filter::Filter;
use crate::page::link::with;
use crate::page::{applications as page, matrix as matrix_page, views::Views};

/// Characters of a name.
const NAME: usize = 60;
/// Characters of a filter.
const QUERY: usize = 2_000;

/// Somebody's own, by name.
pub(super) async fn of(request: &SignedInRequest) -> Result<Vec<SavedView>, Response> {
    request.stored(request.store().saved_views(&request.session.user)).await
}

/// The list that a filter leaves, with what is to be said above it.
pub(super) async fn listed(
    request: &SignedInRequest,
    filter: &Filter,
    refused: Option<&str>,
) -> HandlerResult {
    let (saved, fleet) = (of(request).await?, &request.session.fleet);
    let views = Views { saved: &saved, refused };
    if filter.grouping == GroupBy::Application {
        let matrix = request.stored(fleet.matrix(filter)).await?;
        return Ok(request.shown(&matrix_page::page(filter, &matrix, &views, request.session.is_admin())));
    }
    let listing = request.stored(fleet.applications(filter)).await?;
    Ok(request.shown(&page::page(
        filter,
        &listing,
        &views,
        request.session.is_admin(),
        request.console.now(),
    )))
}

/// Saves the filter of the address that it is sent to under a name, or takes a view away; then the list is shown again.
pub(crate) async fn act(RawQuery(query): RawQuery, request: SignedInRequest) -> HandlerResult {
    let filter = Filter::parse(&query.unwrap_or_default());
    let name = request.value("name");
    let (store, by, now) = (request.store(), request.by(), request.now());
    let (done, otherwise) = match &*value(&request.form, "act") {
        "remove" => (store.remove_view(&by, &name, now).await, "You have no such view (any more)."),
        _ => {
            // Whoever opens it begins with its first page.
            let query = Filter { page: 0, ..filter.clone() }.query();
            if name.is_empty() || name.chars().count() > NAME || name.contains(char::is_control) {
                let why = "A view has a name of 1 to 60 characters.";
                return listed(&request, &filter, Some(why)).await;
            }
            if query.len() > QUERY {
                let why = "A view keeps a filter of at most 2,000 characters: take something away.";
                return listed(&request, &filter, Some(why)).await;
            }
            let saved = store.save_view(&by, &SavedView { name, query }, now).await;
            (saved, "You have 50 views: remove one first.")
        }
    };
    match done.map_err(|error| request.unread(error))? {
        true => Ok(Redirect::to(&with("/applications", &filter.query())).into_response()),
        false => listed(&request, &filter, Some(otherwise)).await,
    }
}
