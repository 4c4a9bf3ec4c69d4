//! Settings: what people do to keys, what was done, and what admins do to people, rules, tokens and retention.

pub(crate) mod git;
pub(crate) mod identity;
pub(crate) mod people;
pub(crate) mod retention;
pub(crate) mod rules;
pub(crate) mod tokens;

use pipeline_core::ExposeSecret as _;
use stages_platform_store::{By, DAY, Scope, StoreError};

use super::Session;
use super::handlers::{HandlerResult, value};
use super::signed_in_request::SignedInRequest;
use crate::page::settings::{Said, audit as audit_page, keys as keys_page};

/// Rows of a page of the audit log.
const ROWS: u32 = 100;

/// Somebody's keys, with what is to be said above them.
async fn listed(request: &SignedInRequest, said: &Said<'_>) -> HandlerResult {
    let user = &request.session.user;
    let keys = request.stored(request.store().keys(Some(user))).await?;
    let linked = request.stored(identity::of(&request.console, user)).await?;
    let page = keys_page::page(&keys, linked.as_ref(), request.session.is_admin(), said);
    Ok(request.shown(&page))
}

pub(crate) async fn keys(request: SignedInRequest) -> HandlerResult {
    listed(&request, &Said::Nothing).await
}

pub(crate) async fn add_key(request: SignedInRequest) -> HandlerResult {
    let name = value(&request.form, "name");
    let days = value(&request.form, "days").parse::<i64>().unwrap_or_default();
    let wrong = if name.trim().is_empty() || name.chars().count() > 100 {
        Some("A key says what it is for in 1 to 100 characters.")
    } else if !(1..=365).contains(&days) {
        Some("A key ends after 1 to 365 days.")
    } else {
        None
    };
    let (Some(scope), None) = (Scope::of(&value(&request.form, "scope")), wrong) else {
        let why = wrong.unwrap_or("A key may 'read', or has the scope 'full'.");
        return listed(&request, &Said::Refused(why)).await;
    };
    let now = request.now();
    let made = match request.store().add_key(&request.by(), name.trim(), scope, now + days * DAY, now).await {
        Err(error) if matches!(*error, StoreError::ManyKeys(_)) => {
            let why = "You have 50 keys: take one back first.";
            return listed(&request, &Said::Refused(why)).await;
        }
        made => made.map_err(|error| request.unread(error))?,
    };
    listed(&request, &Said::Made(made.expose_secret())).await
}

pub(crate) async fn remove_key(request: SignedInRequest) -> HandlerResult {
    let id = value(&request.form, "id").parse().unwrap_or_default();
    let removed = request.stored(request.store().remove_key(&request.by(), id, false, request.now())).await?;
    let said = if removed { Said::Nothing } else { Said::Refused("You have no such key (any more).") };
    listed(&request, &said).await
}

pub(crate) async fn audit(request: SignedInRequest) -> HandlerResult {
    let (text, before) = (request.value("q"), value(&request.form, "before").parse().unwrap_or(i64::MAX));
    let acts = request.stored(request.store().audit_of(&text, before, ROWS)).await?;
    let more = acts.last().filter(|_| acts.len() == ROWS as usize).map(|act| act.id);
    Ok(request.shown(&audit_page::page(&text, &acts, more)))
}

impl Session {
    pub(super) fn by(&self) -> By {
        By { who: self.user.clone(), how: "session" }
    }
}
