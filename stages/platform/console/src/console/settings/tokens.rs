//! Tokens of runtimes: listed, made, taken back.

use axum::response::{IntoResponse as _, Redirect};
use pipeline_core::ExposeSecret as _;

use super::SignedInRequest;
use crate::console::handlers::HandlerResult;
use crate::page::settings::{Said, tokens as page};

async fn listed(request: &SignedInRequest, said: &Said<'_>) -> HandlerResult {
    let tokens = request.stored(request.store().tokens()).await?;
    let runtimes = request.stored(request.store().registrations(None)).await?;
    Ok(request.shown(&page::page(&tokens, &runtimes, said)))
}

pub(crate) async fn list(request: SignedInRequest) -> HandlerResult {
    listed(&request, &Said::Nothing).await
}

pub(crate) async fn add(request: SignedInRequest) -> HandlerResult {
    let (store, by, runtime) = (request.store(), request.by(), request.value("runtime"));
    match request.stored(store.add_token(&by, &runtime, request.now())).await? {
        Some(token) => listed(&request, &Said::Made(token.expose_secret())).await,
        None => listed(&request, &Said::Refused("There is no runtime of that name: add it first.")).await,
    }
}

pub(crate) async fn remove(request: SignedInRequest) -> HandlerResult {
    let (store, by, token) = (request.store(), request.by(), request.value("token"));
    match request.stored(store.remove_token(&by, &token, request.now())).await? {
        true => Ok(Redirect::to("/settings/tokens").into_response()),
        false => listed(&request, &Said::Refused("There is no such token (any more).")).await,
    }
}
