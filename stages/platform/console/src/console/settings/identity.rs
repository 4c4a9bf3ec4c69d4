//! Who somebody is at the provider: linked by themselves, and taken away.

use axum::response::{IntoResponse as _, Redirect};
use stages_platform_store::StoreError;

use super::{SignedInRequest, listed};
use crate::console::handlers::HandlerResult;
use crate::console::{Console, oidc};
use crate::page::settings::{Said, identity::Linked};

/// What is known of somebody at the provider; `None`: there is no provider.
pub(super) async fn of<'c>(console: &'c Console, name: &str) -> Result<Option<Linked<'c>>, StoreError> {
    let settings = &console.0.settings;
    let Some(oidc) = &settings.oidc else { return Ok(None) };
    let issuer = oidc.provider.issuer();
    let subject = settings.store.subject_of(name, issuer.as_str()).await?;
    Ok(Some(Linked { host: issuer.host(), subject }))
}

pub(crate) async fn act(request: SignedInRequest) -> HandlerResult {
    let SignedInRequest { console, session, headers, .. } = &request;
    let name = &session.user;
    let Some(oidc) = &console.0.settings.oidc else {
        return refused(&request, "This platform has no provider to sign in by.").await;
    };
    match &*request.value("act") {
        "link" => Ok(oidc::link(console, oidc, name, headers).await),
        "unlink" => {
            let account = request.stored(request.store().account(name)).await?;
            if account.is_some_and(|account| account.password.is_empty()) {
                let why = "You have no password, and would not come in any more: ask an admin for a link to set one first.";
                return refused(&request, why).await;
            }
            let issuer = oidc.provider.issuer().as_str();
            let (store, by, now) = (request.store(), request.by(), request.now());
            match request.stored(store.unlink_identity(&by, name, issuer, session.digest, now)).await? {
                true => Ok(Redirect::to("/settings").into_response()),
                false => refused(&request, "You are not linked.").await,
            }
        }
        _ => refused(&request, "There is no such act.").await,
    }
}

async fn refused(request: &SignedInRequest, why: &str) -> HandlerResult {
    listed(request, &Said::Refused(why)).await
}
