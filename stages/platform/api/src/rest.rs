//! The REST calls that a runtime makes when it is installed.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;
use pipeline_core::ExposeSecret as _;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::Api;
use crate::caller::{Refusal, registered, unread, unwritten};

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// `GET /api/ping`: whether there is a platform.
pub(crate) async fn ping() -> &'static str {
    "pong\n"
}

/// `POST /api/argo-runtime {"name": NAME}`: another token of a runtime that is registered.
pub(crate) async fn token(State(api): State<Api>, request: Request) -> Result<Json<Value>, Refusal> {
    let (head, body) = request.into_parts();
    let (caller, body) = api.asked(&head, body).await?;
    let person = caller.governs()?;
    let Named { name } = serde_json::from_slice(&body)
        .map_err(|_| Refusal::Wrong(r#"the body is to be {"name": "the runtime's name"}"#.to_owned()))?;
    let made = api.store.add_token(&person.by, &name, api.now()).await.map_err(unwritten)?;
    let token = made.ok_or(Refusal::NoRuntime(name))?;
    Ok(Json(json!({"token": token.expose_secret()})))
}

/// `GET /api/argo-runtime/NAME/storeKey`: what a runtime keeps its own secrets under.
pub(crate) async fn store_key(
    State(api): State<Api>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Refusal> {
    let caller = api.caller(&headers).await?;
    caller.acts_for(&name)?;
    let Some(key) = api.store.store_key(&name).await.map_err(unread)? else {
        registered(&api.store, &name).await?;
        return Err(Refusal::Unregistered(name));
    };
    Ok(Json(json!({"storeKey": key.expose_secret()})))
}
