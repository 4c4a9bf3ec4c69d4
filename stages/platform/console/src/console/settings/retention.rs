//! How long what is kept: shown, and set once whoever sets it has seen what goes.

use axum::response::{IntoResponse as _, Redirect};
use stages_platform_store::{Retention, RetentionDays, TooOld};

use super::SignedInRequest;
use crate::console::handlers::HandlerResult;
use crate::page::settings::{Said, retention as page};

/// Whole days; what is set in a file may be less than one.
fn days(retention: Retention) -> RetentionDays {
    let days = |lasts: std::time::Duration| {
        u32::try_from(lasts.as_secs().div_ceil(86_400)).unwrap_or(u32::MAX).max(1)
    };
    RetentionDays { history: days(retention.history), keys: days(retention.keys) }
}

async fn shown(
    request: &SignedInRequest,
    asked: Option<(RetentionDays, TooOld)>,
    said: &Said<'_>,
) -> HandlerResult {
    let set = request.stored(request.store().retention_days()).await?;
    let file = days(request.console.0.settings.retention);
    Ok(request.shown(&page::page(set, file, asked, said)))
}

pub(crate) async fn form(request: SignedInRequest) -> HandlerResult {
    shown(&request, None, &Said::Nothing).await
}

pub(crate) async fn keep(request: SignedInRequest) -> HandlerResult {
    let file = request.console.0.settings.retention;
    let reset = request.value("act") == "reset";
    let number = |name: &str| request.value(name).parse().unwrap_or_default();
    let asked = match reset {
        true => days(file),
        false => RetentionDays { history: number("history"), keys: number("keys") },
    };
    if let (Err(why), false) = (asked.check(), reset) {
        return shown(&request, None, &Said::Refused(why)).await;
    }
    let set = request.stored(request.store().retention_days()).await?;
    let now = set.unwrap_or_else(|| days(file));
    // What is kept for less long goes at once, and nobody brings it back.
    if asked.history < now.history && request.value("confirmed") != "yes" {
        let old = request.stored(request.store().older_than(asked.history, request.now())).await?;
        return shown(&request, Some((asked, old)), &Said::Nothing).await;
    }
    let kept = (!reset).then_some(asked);
    request.stored(request.store().keep_retention_days(&request.by(), kept, request.now())).await?;
    Ok(Redirect::to("/settings/retention").into_response())
}
