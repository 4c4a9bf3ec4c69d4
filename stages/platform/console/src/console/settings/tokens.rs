//! Tokens of runtimes: listed, made, taken back.

use axum::response::{IntoResponse as _, Redirect};
use pipeline_core::ExposeSecret as _;

use super::Desk;
use crate::console::handlers::HandlerResult;
use crate::page::settings::{Said, tokens as page};

async fn listed(desk: &Desk, said: &Said<'_>) -> HandlerResult {
    let tokens = desk.store().tokens().await.map_err(|error| desk.unread(error))?;
    let runtimes = desk.store().registrations(None).await.map_err(|error| desk.unread(error))?;
    Ok(desk.shown(&page::page(&tokens, &runtimes, said)))
}

pub(crate) async fn list(desk: Desk) -> HandlerResult {
    listed(&desk, &Said::Nothing).await
}

pub(crate) async fn add(desk: Desk) -> HandlerResult {
    let made = desk.store().add_token(&desk.by(), &desk.value("runtime"), desk.now()).await;
    match made.map_err(|error| desk.unread(error))? {
        Some(token) => listed(&desk, &Said::Made(token.expose_secret())).await,
        None => listed(&desk, &Said::Refused("There is no runtime of that name: add it first.")).await,
    }
}

pub(crate) async fn remove(desk: Desk) -> HandlerResult {
    let removed = desk.store().remove_token(&desk.by(), &desk.value("token"), desk.now()).await;
    match removed.map_err(|error| desk.unread(error))? {
        true => Ok(Redirect::to("/settings/tokens").into_response()),
        false => listed(&desk, &Said::Refused("There is no such token (any more).")).await,
    }
}
