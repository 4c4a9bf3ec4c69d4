//! Settings: what people do to keys, what was done, and what admins do to people, rules, tokens and retention.

pub(crate) mod git;
pub(crate) mod identity;
pub(crate) mod people;
pub(crate) mod retention;
pub(crate) mod rules;
pub(crate) mod tokens;

use pipeline_core::ExposeSecret as _;
use stages_platform_store::{By, Role, Scope, StoreError};

use super::Session;
use super::desk::Desk;
use super::handlers::{HandlerResult, value};
use crate::page::settings::{Said, audit as audit_page, keys as keys_page};

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;
/// Rows of a page of the audit log.
const ROWS: u32 = 100;

/// Somebody's keys, with what is to be said above them.
async fn listed(desk: &Desk, said: &Said<'_>) -> HandlerResult {
    let user = &desk.session.user;
    let keys = desk.store().keys(Some(user)).await.map_err(|error| desk.unread(error))?;
    let linked = identity::of(&desk.console, user).await.map_err(|error| desk.unread(error))?;
    let page = keys_page::page(&keys, linked.as_ref(), desk.session.role == Role::Admin, said);
    Ok(desk.shown(&page))
}

pub(crate) async fn keys(desk: Desk) -> HandlerResult {
    listed(&desk, &Said::Nothing).await
}

pub(crate) async fn add_key(desk: Desk) -> HandlerResult {
    let name = value(&desk.form, "name");
    let days = value(&desk.form, "days").parse::<i64>().unwrap_or_default();
    let wrong = if name.trim().is_empty() || name.chars().count() > 100 {
        Some("A key says what it is for in 1 to 100 characters.")
    } else if !(1..=365).contains(&days) {
        Some("A key ends after 1 to 365 days.")
    } else {
        None
    };
    let (Some(scope), None) = (Scope::of(&value(&desk.form, "scope")), wrong) else {
        let why = wrong.unwrap_or("A key may 'read', or has the scope 'full'.");
        return listed(&desk, &Said::Refused(why)).await;
    };
    let now = desk.now();
    let made = match desk.store().add_key(&desk.by(), name.trim(), scope, now + days * DAY, now).await {
        Err(error) if matches!(*error, StoreError::ManyKeys(_)) => {
            let why = "You have 50 keys: take one back first.";
            return listed(&desk, &Said::Refused(why)).await;
        }
        made => made.map_err(|error| desk.unread(error))?,
    };
    listed(&desk, &Said::Made(made.expose_secret())).await
}

pub(crate) async fn remove_key(desk: Desk) -> HandlerResult {
    let id = value(&desk.form, "id").parse().unwrap_or_default();
    let removed = desk.store().remove_key(&desk.by(), id, false, desk.now()).await;
    let removed = removed.map_err(|error| desk.unread(error))?;
    let said = if removed { Said::Nothing } else { Said::Refused("You have no such key (any more).") };
    listed(&desk, &said).await
}

pub(crate) async fn audit(desk: Desk) -> HandlerResult {
    let (text, before) = (desk.value("q"), value(&desk.form, "before").parse().unwrap_or(i64::MAX));
    let acts = desk.store().audit_of(&text, before, ROWS).await.map_err(|error| desk.unread(error))?;
    let more = acts.last().filter(|_| acts.len() == ROWS as usize).map(|act| act.id);
    Ok(desk.shown(&audit_page::page(&text, &acts, more)))
}

impl Session {
    pub(super) fn by(&self) -> By {
        By { who: self.user.clone(), how: "session" }
    }
}
