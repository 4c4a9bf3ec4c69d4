//! Settings: what people do to keys, what was done, and what admins do to people, rules, tokens and retention.

pub(crate) mod git;
pub(crate) mod identity;
pub(crate) mod people;
pub(crate) mod retention;
pub(crate) mod rules;
pub(crate) mod tokens;

use axum::Extension;
use axum::extract::{FromRequest, RawQuery, Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use pipeline_core::ExposeSecret as _;
use stages_platform_store::{By, Role, Scope, Store, StoreError};

use super::form::Form;
use super::handlers::{HandlerResult, page_of, unavailable, value};
use super::{Console, Session};
use crate::fleet::Unavailable;
use crate::page::settings::{Said, audit as audit_page, keys as keys_page};
use crate::page::shell::Page;

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;
/// Rows of a page of the audit log.
const ROWS: u32 = 100;

/// A request of an admin, and where its answer goes.
pub(crate) struct Desk {
    console: Console,
    session: Session,
    headers: HeaderMap,
    /// The form that was sent, or the query.
    form: String,
}

impl FromRequest<Console> for Desk {
    type Rejection = Response;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Response> {
        let (head, body) = request.into_parts();
        let session = head.extensions.get::<Session>().cloned();
        // Nobody comes here without one.
        let session = session.ok_or_else(|| StatusCode::UNAUTHORIZED.into_response())?;
        let (headers, query) = (head.headers.clone(), head.uri.query().unwrap_or_default().to_owned());
        let form = match head.method {
            Method::POST => {
                let Form(body) = Form::from_request(Request::from_parts(head, body), console).await?;
                String::from_utf8_lossy(&body).into_owned()
            }
            _ => query,
        };
        Ok(Self { console: console.clone(), session, headers, form })
    }
}

impl Desk {
    fn store(&self) -> &Store {
        &self.console.0.settings.store
    }

    fn now(&self) -> i64 {
        self.console.now().as_millisecond()
    }

    fn by(&self) -> By {
        self.session.by()
    }

    fn value(&self, name: &str) -> String {
        value(&self.form, name).trim().to_owned()
    }

    /// Who is acted on, by that very name: another may have the same but for white space.
    fn person(&self) -> String {
        value(&self.form, "name")
    }

    /// What stands between commas, each once.
    fn names(&self, name: &str) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for one in self.value(name).split(',').map(str::trim).filter(|one| !one.is_empty()) {
            if !all.iter().any(|known| known == one) {
                all.push(one.to_owned());
            }
        }
        all
    }

    fn unread(&self, error: impl std::error::Error + Send + Sync + 'static) -> Response {
        unavailable(&failed(error), Some(&self.session), &self.headers)
    }

    fn shown(&self, page: &Page) -> Response {
        page_of(page, &self.session, &self.headers)
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Unavailable {
    Unavailable(Box::new(error))
}

/// Somebody's keys, with what is to be said above them.
async fn listed(console: &Console, session: &Session, headers: &HeaderMap, said: &Said<'_>) -> HandlerResult {
    let keys = console.0.settings.store.keys(Some(&session.user)).await;
    let unread = |error| unavailable(&failed(error), Some(session), headers);
    let keys = keys.map_err(unread)?;
    let linked = identity::of(console, &session.user).await.map_err(unread)?;
    let page = keys_page::page(&keys, linked.as_ref(), session.role == Role::Admin, said);
    Ok(page_of(&page, session, headers))
}

pub(crate) async fn keys(
    State(console): State<Console>,
    Extension(session): Extension<Session>,
    headers: HeaderMap,
) -> HandlerResult {
    listed(&console, &session, &headers, &Said::Nothing).await
}

pub(crate) async fn add_key(
    State(console): State<Console>,
    Extension(session): Extension<Session>,
    headers: HeaderMap,
    Form(body): Form,
) -> HandlerResult {
    let unread = |error: Unavailable| unavailable(&error, Some(&session), &headers);
    let form = String::from_utf8_lossy(&body).into_owned();
    let (name, days) = (value(&form, "name"), value(&form, "days").parse::<i64>().unwrap_or_default());
    let store = &console.0.settings.store;
    let wrong = if name.trim().is_empty() || name.chars().count() > 100 {
        Some("A key says what it is for in 1 to 100 characters.")
    } else if !(1..=365).contains(&days) {
        Some("A key ends after 1 to 365 days.")
    } else {
        None
    };
    let (Some(scope), None) = (Scope::of(&value(&form, "scope")), wrong) else {
        let why = wrong.unwrap_or("A key may 'read', or has the scope 'full'.");
        return listed(&console, &session, &headers, &Said::Refused(why)).await;
    };
    let (by, now) = (session.by(), console.now().as_millisecond());
    let made = match store.add_key(&by, name.trim(), scope, now + days * DAY, now).await {
        Err(error) if matches!(*error, StoreError::ManyKeys(_)) => {
            let why = "You have 50 keys: take one back first.";
            return listed(&console, &session, &headers, &Said::Refused(why)).await;
        }
        made => made.map_err(|error| unread(failed(error)))?,
    };
    listed(&console, &session, &headers, &Said::Made(made.expose_secret())).await
}

pub(crate) async fn remove_key(
    State(console): State<Console>,
    Extension(session): Extension<Session>,
    headers: HeaderMap,
    Form(body): Form,
) -> HandlerResult {
    let id = value(&String::from_utf8_lossy(&body), "id").parse().unwrap_or_default();
    let now = console.now().as_millisecond();
    let removed = console.0.settings.store.remove_key(&session.by(), id, false, now).await;
    let removed = removed.map_err(|error| unavailable(&failed(error), Some(&session), &headers))?;
    let said = if removed { Said::Nothing } else { Said::Refused("You have no such key (any more).") };
    listed(&console, &session, &headers, &said).await
}

pub(crate) async fn audit(
    State(console): State<Console>,
    Extension(session): Extension<Session>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let query = query.unwrap_or_default();
    let (text, before) = (value(&query, "q"), value(&query, "before").parse().unwrap_or(i64::MAX));
    let acts = console.0.settings.store.audit_of(text.trim(), before, ROWS).await;
    let acts = acts.map_err(|error| unavailable(&failed(error), Some(&session), &headers))?;
    let more = acts.last().filter(|_| acts.len() == ROWS as usize).map(|act| act.id);
    Ok(page_of(&audit_page::page(text.trim(), &acts, more), &session, &headers))
}

impl Session {
    pub(super) fn by(&self) -> By {
        By { who: self.user.clone(), how: "session" }
    }
}
