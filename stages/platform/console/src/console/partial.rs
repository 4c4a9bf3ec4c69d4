//! Addresses that lack their rest lead to the page that whoever shortened them means; what they ask for goes along.

use axum::extract::{Path, RawQuery};
use axum::response::Redirect;

use super::handlers::days_of;
use crate::page::link::with;
use crate::page::shipping::{self, Figure};

/// `/shipping`: the figures of four weeks, as home shows them.
pub(crate) async fn shipping(query: RawQuery) -> Redirect {
    deployments(shipping::DAYS, query)
}

/// `/shipping/{days}`: of that many days.
pub(crate) async fn shipping_of(Path(days): Path<String>, query: RawQuery) -> Redirect {
    deployments(days_of(&days), query)
}

fn deployments(days: u32, RawQuery(query): RawQuery) -> Redirect {
    Redirect::to(&with(&shipping::path(days, Figure::Deployments), &query.unwrap_or_default()))
}

/// `/preview`: an application's stands beside the list that it is chosen from.
pub(crate) async fn preview(RawQuery(query): RawQuery) -> Redirect {
    Redirect::to(&with("/applications", &query.unwrap_or_default()))
}

/// `/assets`: nothing to look at, so the first page.
pub(crate) async fn assets() -> Redirect {
    Redirect::to("/")
}
