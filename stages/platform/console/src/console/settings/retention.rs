//! How long what is kept: shown, and set once whoever sets it has seen what goes.

use axum::response::{IntoResponse as _, Redirect};
use stages_platform_store::{Retention, RetentionDays, TooOld};

use super::Desk;
use crate::console::handlers::HandlerResult;
use crate::page::settings::{Said, retention as page};

/// Whole days; what is set in a file may be less than one.
fn days(retention: Retention) -> RetentionDays {
    let days = |lasts: std::time::Duration| {
        u32::try_from(lasts.as_secs().div_ceil(86_400)).unwrap_or(u32::MAX).max(1)
    };
    RetentionDays { history: days(retention.history), keys: days(retention.keys) }
}

async fn shown(desk: &Desk, asked: Option<(RetentionDays, TooOld)>, said: &Said<'_>) -> HandlerResult {
    let set = desk.store().retention_days().await.map_err(|error| desk.unread(error))?;
    let file = days(desk.console.0.settings.retention);
    Ok(desk.shown(&page::page(set, file, asked, said)))
}

pub(crate) async fn form(desk: Desk) -> HandlerResult {
    shown(&desk, None, &Said::Nothing).await
}

pub(crate) async fn keep(desk: Desk) -> HandlerResult {
    let file = desk.console.0.settings.retention;
    let reset = desk.value("act") == "reset";
    let number = |name: &str| desk.value(name).parse().unwrap_or_default();
    let asked = match reset {
        true => days(file),
        false => RetentionDays { history: number("history"), keys: number("keys") },
    };
    if let (Err(why), false) = (asked.check(), reset) {
        return shown(&desk, None, &Said::Refused(why)).await;
    }
    let set = desk.store().retention_days().await.map_err(|error| desk.unread(error))?;
    let now = set.unwrap_or_else(|| days(file));
    // What is kept for less long goes at once, and nobody brings it back.
    if asked.history < now.history && desk.value("confirmed") != "yes" {
        let old = desk.store().older_than(asked.history, desk.now()).await;
        let old = old.map_err(|error| desk.unread(error))?;
        return shown(&desk, Some((asked, old)), &Said::Nothing).await;
    }
    let kept = (!reset).then_some(asked);
    let done = desk.store().keep_retention_days(&desk.by(), kept, desk.now()).await;
    done.map_err(|error| desk.unread(error))?;
    Ok(Redirect::to("/settings/retention").into_response())
}
