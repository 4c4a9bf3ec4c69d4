//! Tokens of runtimes: listed, made, taken back.

use axum::response::{IntoResponse as _, Redirect};
use pipeline_core::ExposeSecret as _;

use super::SignedInRequest;
use crate::console::handlers::HandlerResult;
use crate::page::settings::{Said, tokens as page};

async fn listed(request: &SignedInRequest, said: &Said<'_>) -> HandlerResult {
    let tokens = request.store().tokens().await.map_err(|error| request.unread(error))?;
    let runtimes = request.store().registrations(None).await.map_err(|error| request.unread(error))?;
    Ok(request.shown(&page::page(&tokens, &runtimes, said)))
}

pub(crate) async fn list(request: SignedInRequest) -> HandlerResult {
    listed(&request, &Said::Nothing).await
}

pub(crate) async fn add(request: SignedInRequest) -> HandlerResult {
    let made = request.store().add_token(&request.by(), &request.value("runtime"), request.now()).await;
    match made.map_err(|error| request.unread(error))? {
        Some(token) => listed(&request, &Said::Made(token.expose_secret())).await,
        None => listed(&request, &Said::Refused("There is no runtime of that name: add it first.")).await,
    }
}

pub(crate) async fn remove(request: SignedInRequest) -> HandlerResult {
    let removed = request.store().remove_token(&request.by(), &request.value("token"), request.now()).await;
    match removed.map_err(|error| request.unread(error))? {
        true => Ok(Redirect::to("/settings/tokens").into_response()),
        false => listed(&request, &Said::Refused("There is no such token (any more).")).await,
    }
}
