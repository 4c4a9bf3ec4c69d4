//! The router: its state, who gets in, and what every answer carries.

mod acts;
pub(crate) mod commit;
mod form;
pub(crate) mod handlers;
mod live;
mod missing;
pub(crate) mod oidc;
mod packed;
pub(crate) mod partial;
pub(crate) mod settings;
mod signed_in_request;
pub(crate) mod views;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Redirect, Response};
use jiff::Timestamp;
use pipeline_core::Shutdown;
use stages_client::OwnCookie;
use stages_platform_store::{Access, Retention, Store};
use url::{Url, form_urlencoded};

use crate::fleet::{Fleet, Fleets, Unavailable};
use crate::page;
use crate::page::link::with;
use crate::routes::{self, Who};
use crate::session::link::{self, SignInLink};
use crate::session::password::Passwords;
use crate::session::throttle::Throttle;
use crate::session::token;

pub use oidc::OidcSignIn;

/// No inline script or style, nothing from elsewhere, and in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// How the console is reached.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address that people and runtimes have for this platform, such as `https://platform.example.com`.
    pub external: String,
    /// Where accounts, keys, rules and what was done are kept.
    pub store: Store,
    /// How long what is kept where no page says otherwise.
    pub retention: Retention,
    /// The provider by which people come in beside their passwords.
    pub oidc: Option<OidcSignIn>,
    /// What time it is.
    pub clock: fn() -> Timestamp,
}

struct Inner {
    fleets: Arc<dyn Fleets>,
    settings: Settings,
    passwords: Passwords,
    throttle: Throttle,
    /// Codes of attempts to come in by the provider, and people whom it vouched for and who were refused.
    attempts: Throttle,
    stop: Shutdown,
}

/// The console; cloning shares.
#[derive(Clone)]
pub struct Console(Arc<Inner>);

/// Whoever asks, once that is known.
#[derive(Clone)]
pub(crate) struct Session {
    user: String,
    digest: [u8; 32],
    access: Access,
    /// What is known, as far as they see it: there is no other way to ask.
    fleet: Arc<dyn Fleet>,
}

impl Session {
    pub(crate) fn is_admin(&self) -> bool {
        self.access.is_admin()
    }
}

impl Console {
    /// Over what is known and who may see it; live streams end with `stop`.
    #[must_use]
    pub fn new(fleets: Arc<dyn Fleets>, settings: Settings, stop: Shutdown) -> Self {
        let (passwords, throttle, attempts) = (Passwords::new(), Throttle::default(), Throttle::default());
        Self(Arc::new(Inner { fleets, settings, passwords, throttle, attempts, stop }))
    }

    /// A fresh link that makes the first user; `None` where there is one already.
    ///
    /// # Errors
    /// [`Unavailable`] when the link cannot be kept.
    pub async fn first_link(&self) -> Result<Option<SignInLink>, Unavailable> {
        if self.store().has_accounts().await? {
            return Ok(None);
        }
        let token = token::fresh()?;
        let until = self.now() + link::LASTS;
        self.store().keep_link(token::digest(&token), until.as_millisecond()).await?;
        let external = self.0.settings.external.trim_end_matches('/');
        Ok(Some(SignInLink(format!("{external}/welcome?token={token}"))))
    }

    /// Every page.
    pub fn router(self) -> Router {
        let mut router = Router::new();
        for route in routes::all() {
            let handler = match route.who {
                Who::Anyone => route.handler,
                Who::SignedIn => route.handler.layer(from_fn_with_state(self.clone(), signed_in)),
                Who::Admin => {
                    let handler = route.handler.layer(from_fn(admin));
                    handler.layer(from_fn_with_state(self.clone(), signed_in))
                }
            };
            router = router.route(route.path, handler);
        }
        router
            .fallback(missing::path)
            .method_not_allowed_fallback(missing::method)
            .layer(from_fn(packed::packed))
            .layer(from_fn_with_state(self.clone(), same_site))
            .layer(from_fn(marked))
            .layer(DefaultBodyLimit::max(form::MOST))
            .with_state(self)
    }

    /// Whose session it is, with what they see now.
    async fn session(&self, digest: [u8; 32]) -> Result<Option<Session>, Unavailable> {
        let (store, now) = (self.store(), self.now().as_millisecond());
        let Some(user) = store.session(digest, now).await? else { return Ok(None) };
        let access = store.access(&user, now).await?;
        // Whoever was taken away just now has no session either.
        let Some(access) = access else { return Ok(None) };
        let fleet = self.0.fleets.seen_by(access.view());
        Ok(Some(Session { user, digest, access, fleet }))
    }

    /// The same, by the cookie of whoever asks.
    async fn session_of(&self, headers: &HeaderMap) -> Result<Option<Session>, Unavailable> {
        match self.session_cookie().read(headers).map(token::digest) {
            Some(digest) => self.session(digest).await,
            None => Ok(None),
        }
    }

    fn store(&self) -> &Store {
        &self.0.settings.store
    }

    fn session_cookie(&self) -> OwnCookie {
        OwnCookie::session(&self.0.settings.external)
    }

    fn now(&self) -> Timestamp {
        (self.0.settings.clock)()
    }
}

/// The value of a cookie that anybody may have set.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(';'))
        .find_map(|pair| pair.trim().split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value))
}

/// Lets nobody by without a session: people are sent to sign in, programs are told.
async fn signed_in(State(console): State<Console>, mut request: Request, next: Next) -> Response {
    match console.session_of(request.headers()).await {
        Ok(Some(session)) => {
            request.extensions_mut().insert(session);
            next.run(request).await
        }
        Ok(None) => refused(&request),
        Err(error) => handlers::unavailable(error, None, request.headers()),
    }
}

/// Lets nobody by but an admin.
async fn admin(request: Request, next: Next) -> Response {
    match request.extensions().get::<Session>() {
        Some(session) if session.is_admin() => next.run(request).await,
        Some(session) if is_for_people(&request) => {
            let page = page::missing::of_admins();
            handlers::send(StatusCode::FORBIDDEN, &handlers::framed(&page, session, request.headers()))
        }
        _ => (StatusCode::FORBIDDEN, "only an admin may do this\n").into_response(),
    }
}

/// Whether a browser shows what is answered.
fn is_shown(request: &Request) -> bool {
    let accepted = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// Whether somebody looks at what is answered.
fn is_for_people(request: &Request) -> bool {
    request.method() == Method::GET && is_shown(request)
}

fn refused(request: &Request) -> Response {
    let next = match *request.method() {
        Method::GET if is_shown(request) => {
            request.uri().path_and_query().map_or("/", |asked| asked.as_str()).to_owned()
        }
        Method::POST if is_shown(request) => stood(request.headers()),
        _ => return (StatusCode::UNAUTHORIZED, "sign in at /sign-in\n").into_response(),
    };
    let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
    Redirect::to(&format!("/sign-in?next={next}")).into_response()
}

/// Where a form stood that was sent: whoever signs in is back there.
fn stood(headers: &HeaderMap) -> String {
    let from = headers.get(header::REFERER).and_then(|from| from.to_str().ok());
    let from = from.and_then(|from| Url::parse(from).ok());
    from.map_or_else(|| "/".to_owned(), |from| with(from.path(), from.query().unwrap_or_default()))
}

/// What changes anything must come from a page of this origin; what no browser sent has no cookie that it did not bring.
async fn same_site(State(console): State<Console>, request: Request, next: Next) -> Response {
    let reads = request.method() == Method::GET || request.method() == Method::HEAD;
    let site = request.headers().get("sec-fetch-site").and_then(|site| site.to_str().ok());
    let is_of_this_site = match site {
        Some(site) => site == "same-origin" || site == "none",
        None => console.session_cookie().is_from_the_site(request.headers()).unwrap_or(true),
    };
    if reads || is_of_this_site {
        return next.run(request).await;
    }
    let why = "this was sent from a page of another site; open the console itself, at the address of platformServer.externalUrl\n";
    (StatusCode::FORBIDDEN, why).into_response()
}

/// What every answer carries.
async fn marked(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
