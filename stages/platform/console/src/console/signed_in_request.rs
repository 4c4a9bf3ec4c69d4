//! A request of somebody who is signed in, and where its answer goes.

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use stages_platform_store::{ApplicationName, By, Store};

use super::form::Form;
use super::handlers::{framed, send, unavailable, value};
use super::{Console, Session};
use crate::fleet::Unavailable;
use crate::page::shell::Page;

/// A request of somebody who is signed in, and where its answer goes.
pub(crate) struct SignedInRequest {
    pub(super) console: Console,
    pub(super) session: Session,
    pub(super) headers: HeaderMap,
    /// The form that was sent, or the query.
    pub(super) form: String,
}

impl FromRequest<Console> for SignedInRequest {
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

impl SignedInRequest {
    pub(super) fn store(&self) -> &Store {
        self.console.store()
    }

    pub(super) fn now(&self) -> i64 {
        self.console.now().as_millisecond()
    }

    pub(super) fn by(&self) -> By {
        self.session.by()
    }

    pub(super) fn value(&self, name: &str) -> String {
        value(&self.form, name).trim().to_owned()
    }

    /// Who is acted on, by that very name: another may have the same but for white space.
    pub(super) fn person(&self) -> String {
        value(&self.form, "name")
    }

    /// What stands between commas, each once.
    pub(super) fn names(&self, name: &str) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for one in self.value(name).split(',').map(str::trim).filter(|one| !one.is_empty()) {
            if !all.iter().any(|known| known == one) {
                all.push(one.to_owned());
            }
        }
        all
    }

    /// What the store answers, or the page that says that it does not.
    pub(super) async fn stored<T, E: Into<Unavailable>>(
        &self,
        asked: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Response> {
        asked.await.map_err(|error| self.unread(error))
    }

    pub(super) fn unread(&self, error: impl Into<Unavailable>) -> Response {
        unavailable(error, Some(&self.session), &self.headers)
    }

    /// The application of an address, in which its runtime stands by its name, or by its id. Whoever does not see the runtime is not
    /// told which name an id is of.
    pub(super) async fn application_at(
        &self,
        (runtime, namespace, name): (String, String, String),
    ) -> Result<ApplicationName, Response> {
        let called = self.stored(self.store().seen_runtime(&self.session.access, &runtime)).await?;
        Ok(ApplicationName { runtime: called.unwrap_or(runtime), namespace, name })
    }

    pub(super) fn shown(&self, page: &Page) -> Response {
        self.answered(StatusCode::OK, page)
    }

    pub(super) fn answered(&self, status: StatusCode, page: &Page) -> Response {
        send(status, &framed(page, &self.session, &self.headers))
    }
}
