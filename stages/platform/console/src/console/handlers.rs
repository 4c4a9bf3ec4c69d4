//! From a request to a page.

use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};
use stages_client::ACCEL_BUFFERING;
use stages_platform_store::{Account, GroupBy, Link, Role, runtime_id};
use url::form_urlencoded;

use super::form::Form;
use super::signed_in_request::SignedInRequest;
use super::{Console, Session, cookie, live, oidc, views};
use crate::assets;
use crate::filter::Filter;
use crate::fleet::{Side, Steps, Unavailable, Window};
use crate::installation::Installation;
use crate::page::application::{Asked, Interval, Tab};
use crate::page::link::{application_path, with};
use crate::page::shell::{Page, Section, outside, shell};
use crate::page::shipping::Figure;
use crate::page::sign_in::SignIn;
use crate::page::{self, pieces};
use crate::session::password::{HashError, Passwords, PasswordsBusy};
use crate::session::token;
use crate::session::{account_name, known_browser};
use crate::view::runtime::Added;

pub(super) const SESSION_LASTS: SignedDuration = SignedDuration::from_hours(7 * 24);
const MANY: &str = "Many people sign in at this moment. Try again in a few seconds.";
/// How many seconds later whoever was told so comes again.
const FEW_SECONDS: i64 = 5;
/// The least that the palette looks for resources by.
const RESOURCE: usize = 3;

pub(super) type HandlerResult = Result<Response, Response>;

pub(super) fn theme(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, "theme").filter(|theme| ["dark", "light"].contains(theme))
}

/// A page in its frame, for whoever has this session.
pub(super) fn framed(page: &Page, session: &Session, headers: &HeaderMap) -> Markup {
    shell(page, (&*session.user, session.access.lapsed.as_deref()), theme(headers))
}

pub(super) fn send(status: StatusCode, markup: &Markup) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], markup.0.clone()).into_response()
}

/// Said where a person sees it, and in the log.
pub(crate) fn unavailable(
    error: impl Into<Unavailable>,
    session: Option<&Session>,
    headers: &HeaderMap,
) -> Response {
    let error: Unavailable = error.into();
    tracing::error!(error = &error as &(dyn std::error::Error + 'static), "a page could not be shown");
    let body = pieces::empty(
        "The store does not answer",
        &html! {
            p { "Reports are refused meanwhile and come again; nothing is lost. The platform's log says why." }
            (pieces::command("kubectl logs -n gitops-runtime deploy/platform --tail 50"))
        },
    );
    let body = html! { h1.hidden { "Not now" } (body) };
    let markup = match session {
        Some(session) => {
            let page = Page { title: "Not now".to_owned(), section: Section::Home, bar: html! {}, body };
            framed(&page, session, headers)
        }
        None => outside("Not now", theme(headers), &body),
    };
    send(StatusCode::SERVICE_UNAVAILABLE, &markup)
}

pub(super) fn value(text: &str, name: &str) -> String {
    let found = form_urlencoded::parse(text.as_bytes()).find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

pub(crate) async fn home(request: SignedInRequest) -> HandlerResult {
    let fleet = &request.session.fleet;
    let (home, trend) = (fleet.home(), fleet.trend(page::shipping::DAYS));
    let (home, trend) = tokio::try_join!(request.stored(home), request.stored(trend))?;
    Ok(request.shown(&page::home::page(&home, &trend, request.session.is_admin(), request.console.now())))
}

/// As many days as an address says, within what figures are made of.
pub(super) fn days_of(text: &str) -> u32 {
    text.parse().unwrap_or(page::shipping::DAYS).clamp(1, 90)
}

pub(crate) async fn shipping(
    Path((days, figure)): Path<(String, String)>,
    request: SignedInRequest,
) -> HandlerResult {
    let (filter, days) = (Filter::parse(&request.form), days_of(&days));
    let figure = Figure::ALL.into_iter().find(|one| one.word() == figure).unwrap_or(Figure::Deployments);
    let shipping = request.stored(request.session.fleet.shipping(&filter, days)).await?;
    Ok(request.shown(&page::shipping::page(&filter, &shipping, figure)))
}

pub(crate) async fn applications(request: SignedInRequest) -> HandlerResult {
    views::listed(&request, &Filter::parse(&request.form), None).await
}

pub(crate) async fn application(
    Path(at): Path<(String, String, String)>,
    request: SignedInRequest,
) -> HandlerResult {
    let SignedInRequest { console, session, .. } = &request;
    let (fleet, now) = (&session.fleet, console.now());
    let id = request.application_at(at).await?;
    let asked = Asked::parse(id.clone(), &request.form);
    let mut window = asked.window(now);
    let (application, neighbours) = (fleet.application(&id, window), fleet.neighbours(&asked.filter, &id));
    let (application, neighbours) =
        tokio::try_join!(request.stored(application), request.stored(neighbours))?;
    let Some(mut application) = application else {
        let markup = page::application::unknown(&id, request.session.is_admin());
        return Ok(request.answered(StatusCode::NOT_FOUND, &markup));
    };
    let (from, to) = page::application::interval(&application, window);
    if window.from.is_none() && asked.tab == Tab::Compare {
        // What changed is told for an interval, and the default one is known by now.
        window.from = Some(from);
        application = request.stored(fleet.application(&id, window)).await?.unwrap_or(application);
    }
    let resource = match asked.tab {
        Tab::Compare => {
            asked.resource.clone().or_else(|| page::application::first_changed(&application.resources))
        }
        Tab::Resources => asked.resource.clone(),
        _ => None,
    };
    let mut interval = Interval { from, to, resource, before: None, after: None, desired: None };
    if let Some(key) = &interval.resource {
        let manifest = |side, at| request.stored(fleet.manifest(&id, key, side, at));
        if asked.tab == Tab::Compare {
            let both = (manifest(asked.side, from), manifest(asked.side, to));
            (interval.before, interval.after) = tokio::try_join!(both.0, both.1)?;
        } else {
            let both = (manifest(Side::Live, to), manifest(Side::Desired, to));
            (interval.after, interval.desired) = tokio::try_join!(both.0, both.1)?;
        }
    }
    let acts = super::acts::of(console, session, &id, &application, interval.resource.as_ref());
    let acts = request.stored(acts).await?;
    Ok(request.shown(&page::application::page(&asked, &application, &interval, &neighbours, &acts, now)))
}

/// What stands in the place of a part of a page that is of no application.
fn not_known() -> Response {
    send(StatusCode::NOT_FOUND, &html! { p.mute { "This application is not known any more." } })
}

/// A day before.
fn day_before(at: Timestamp) -> Timestamp {
    at.checked_sub(SignedDuration::from_hours(24)).unwrap_or(Timestamp::UNIX_EPOCH)
}

pub(crate) async fn preview(
    Path(at): Path<(String, String, String)>,
    request: SignedInRequest,
) -> HandlerResult {
    let now = request.console.now();
    let window =
        Window { begin: day_before(now), end: now, from: None, to: None, steps: Steps::None, drifts: false };
    let id = request.application_at(at).await?;
    let application = request.stored(request.session.fleet.application(&id, window)).await?;
    let application = application.ok_or_else(not_known)?;
    Ok(send(StatusCode::OK, &page::preview::fragment(&application, now)))
}

/// What is known of its deployments since `since`, when the oldest of those that its runtime remembers had ended: it began before.
pub(crate) async fn deployed(
    Path(at): Path<(String, String, String)>,
    request: SignedInRequest,
) -> HandlerResult {
    let oldest = request.value("since").parse().unwrap_or_else(|_| request.console.now());
    let id = request.application_at(at).await?;
    let deployments = request.stored(request.session.fleet.deployed(&id, day_before(oldest))).await?;
    let deployments = deployments.ok_or_else(not_known)?;
    Ok(send(StatusCode::OK, &page::deployed::fragment(&deployments)))
}

pub(crate) async fn deployments(request: SignedInRequest) -> HandlerResult {
    let filter = Filter::parse(&request.form);
    let (found, is_more) = request.stored(request.session.fleet.deployments(&filter)).await?;
    Ok(request.shown(&page::deployments::page(&filter, &found, is_more, request.console.now())))
}

pub(crate) async fn resources(request: SignedInRequest) -> HandlerResult {
    let text = request.value("q");
    let found = request.stored(request.session.fleet.resources(&text)).await?;
    Ok(request.shown(&page::resources::page(&text, &found, request.console.now())))
}

pub(crate) async fn runtimes(request: SignedInRequest) -> HandlerResult {
    let fleet = &request.session.fleet;
    let all = request.stored(fleet.runtimes()).await?;
    let clusters = request.stored(fleet.clusters()).await?;
    let refused_of_nobody = if request.session.is_admin() {
        Some(request.stored(fleet.refused_of_nobody()).await?)
    } else {
        None
    };
    Ok(request.shown(&page::runtimes::page(
        &all,
        &clusters,
        refused_of_nobody.as_deref(),
        request.console.now(),
    )))
}

pub(crate) async fn add_runtime_form(request: SignedInRequest) -> Response {
    request.shown(&page::add_runtime::form(&Installation::default(), None))
}

pub(crate) async fn add_runtime(request: SignedInRequest) -> HandlerResult {
    let runtime = Installation::of_form(request.form.as_bytes());
    if let Some(refused) = runtime.refused().or_else(|| runtime.refused_as_new()) {
        return Ok(request.shown(&page::add_runtime::form(&runtime, Some(refused))));
    }
    let added = request.session.fleet.add_runtime(&runtime.name, &request.session.user);
    Ok(request.shown(&match request.stored(added).await? {
        Added::Token(token) => {
            page::add_runtime::added(&runtime, &token, &request.console.0.settings.external)
        }
        Added::Refused(why) => page::add_runtime::form(&runtime, Some(("name", &why))),
    }))
}

/// How far a runtime is that was added.
pub(crate) async fn added_runtime(Path(name): Path<String>, request: SignedInRequest) -> HandlerResult {
    let typed = Installation::of_form(request.form.as_bytes());
    let all = request.stored(request.session.fleet.runtimes()).await?;
    let known = all.iter().find(|one| one.name == name || runtime_id(&one.name) == name);
    let (false, Some(known)) = (typed.refused().is_some(), known) else {
        return Ok((StatusCode::NOT_FOUND, "there is no such runtime\n").into_response());
    };
    let typed = Installation { name: known.name.clone(), ..typed };
    Ok(request.shown(&page::add_runtime::progress(&typed, Some(known))))
}

/// What the palette shows while somebody types: views of theirs by name, applications by the same filter as the list, and
/// resources by name.
pub(crate) async fn find(request: SignedInRequest) -> HandlerResult {
    let (fleet, text) = (&request.session.fleet, request.value("q").to_lowercase());
    let filter = Filter { grouping: GroupBy::Nothing, page: 0, ..Filter::parse(&request.form) };
    let resources = async {
        // What is too short is in everything.
        if text.len() < RESOURCE { Ok(Vec::new()) } else { fleet.resources(&text).await }
    };
    let listing = request.stored(fleet.applications(&filter));
    let (listing, resources) = tokio::try_join!(listing, request.stored(resources))?;
    let views = views::of(&request).await?;
    let named = views.iter().filter(|view| view.name.to_lowercase().contains(&text));
    // Those of an application whose own name is meant say nothing more.
    let is_meant = |name: &str| text.contains('/') || name.to_lowercase().contains(&text);
    let resources = resources.iter().filter(|one| is_meant(&one.resource.key.name));
    let markup = html! {
        @for view in named.take(4) {
            li role="presentation" { a role="option" href=(with("/applications", &view.query)) tabindex="-1" { (view.name) " " span.mute { "view" } } }
        }
        @for row in listing.rows.iter().take(8) {
            li role="presentation" { a role="option" href=(application_path(&row.id)) tabindex="-1" { (pieces::health(row.health)) " " (row.id.name) " " span.mute { (row.environment) " · " (row.id.runtime) } } }
        }
        @for one in resources.take(4) {
            li role="presentation" { a role="option" href=(page::resources::link(one)) tabindex="-1" {
                span.mute { (one.resource.key.kind) "/" } (one.resource.key.name) " "
                span.mute { "of " (one.application.name) " · " (one.application.runtime) @if one.gone.is_some() { " · gone" } } } }
        }
    };
    Ok(send(StatusCode::OK, &markup))
}

/// From behind the last event that is known: a browser that begins a stream again by itself says it in a header, which is newer than
/// what the page says where it does.
pub(crate) async fn live(request: SignedInRequest) -> Response {
    let header = request.headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = header.and_then(|id| id.parse().ok()).or_else(|| request.value("after").parse().ok());
    ([(ACCEL_BUFFERING, "no")], live::stream(request.console, request.session, after)).into_response()
}

pub(crate) async fn asset(Path((version, name)): Path<(String, String)>) -> Response {
    match assets::file(&version, &name) {
        Some((kind, content)) => {
            let forever = "public, max-age=31536000, immutable";
            ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, forever)], content).into_response()
        }
        None => (StatusCode::NOT_FOUND, "not of this version of the console\n").into_response(),
    }
}

/// Only a path of this console is gone to afterwards.
pub(super) fn next_of(text: &str) -> String {
    let next = value(text, "next");
    let mut begins = next.chars();
    let local = begins.next() == Some('/')
        && !matches!(begins.next(), Some('/' | '\\'))
        && !next.contains(char::is_control);
    if local { next } else { "/".to_owned() }
}

pub(crate) async fn sign_in_form(
    State(console): State<Console>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> HandlerResult {
    let any_user = console.store().has_accounts().await;
    let any_user = any_user.map_err(|error| unavailable(error, None, &headers))?;
    let (next, offer) = (next_of(&query.unwrap_or_default()), oidc::offer(&console, true).await);
    let body = page::sign_in::sign_in(&SignIn { failed: None, name: "", next: &next, any_user, offer });
    Ok(send(StatusCode::OK, &outside("Sign in", theme(&headers), &body)))
}

fn broken(_: HashError) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, "a password could not be hashed; the platform is out of memory\n")
        .into_response()
}

fn later(mut response: Response, seconds: i64) -> Response {
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

/// A wrong password stands in the audit log where there is somebody of that name: what else is typed there may be anything. The answer
/// does not wait for it, and so does not tell which names there are.
fn keep_wrong(console: &Console, name: String) {
    let (store, now) = (console.store().clone(), console.now().as_millisecond());
    tokio::spawn(async move {
        if let Err(error) = store.refuse_password(&name, now).await {
            let error = &*error as &(dyn std::error::Error + 'static);
            tracing::warn!(error, "a wrong password is not in the audit log");
        }
    });
}

pub(crate) async fn sign_in(
    State(console): State<Console>,
    headers: HeaderMap,
    Form(body): Form,
) -> HandlerResult {
    let failed = |error: Unavailable| unavailable(error, None, &headers);
    let form = String::from_utf8_lossy(&body).into_owned();
    let (name, password) = (value(&form, "name").to_lowercase(), value(&form, "password"));
    let (next, offer) = (next_of(&form), oidc::offer(&console, false).await);
    let said = |status: StatusCode, why: &str| {
        let shown =
            SignIn { failed: Some(why), name: &name, next: &next, any_user: true, offer: offer.clone() };
        send(status, &outside("Sign in", theme(&headers), &page::sign_in::sign_in(&shown)))
    };
    // What can never be right is not counted either: whoever made names up with it would fill the throttle for nothing.
    if !account_name::may_be(&name) || !Passwords::may_be(&password) {
        return Err(said(StatusCode::UNAUTHORIZED, "That name and password do not go together."));
    }
    // Before the try is counted: tries are counted no faster than passwords are compared.
    let place = console.0.passwords.place().await;
    let place =
        place.map_err(|PasswordsBusy| later(said(StatusCode::SERVICE_UNAVAILABLE, MANY), FEW_SECONDS))?;
    let mut user = console.store().account(&name).await.map_err(|error| failed(error.into()))?;
    let mut called = &*name;
    // Keyboards of phones put a blank behind a word. Tries are counted by the name that is meant.
    if user.is_none() && called.trim() != called {
        called = called.trim();
        user = console.store().account(called).await.map_err(|error| failed(error.into()))?;
    }
    let held = known_browser::cookie(&console.0.settings.external).read(&headers);
    let browser = held.zip(user.as_ref());
    let browser = browser.and_then(|(held, user)| known_browser::id_of(held, user, console.now()));
    let who = browser.map_or_else(|| called.to_owned(), |id| format!("{called} {id}"));
    if let Err(seconds) = console.0.throttle.begin(&who, console.now()) {
        let why = format!("Too many wrong passwords for this name. Try again in {seconds} s.");
        return Err(later(said(StatusCode::TOO_MANY_REQUESTS, &why), seconds));
    }
    let is_known = user.is_some();
    let hash = user.as_ref().map(|user| user.password.clone());
    let right = console.0.passwords.is_right(place, password, hash).await.map_err(broken)?;
    let Some(user) = user.filter(|_| right) else {
        tracing::warn!("somebody failed to sign in");
        if is_known {
            keep_wrong(&console, called.to_owned());
        }
        return Err(said(StatusCode::UNAUTHORIZED, "That name and password do not go together."));
    };
    console.0.throttle.right(&who);
    begin(&console, &user, &next).await.map_err(failed)
}

/// A session of its own for each time that somebody signs in by a password, in a browser that is known from now on.
async fn begin(console: &Console, user: &Account, next: &str) -> Result<Response, Unavailable> {
    let (token, now) = (token::fresh()?, console.now());
    let (digest, until) = (token::digest(&token), (now + SESSION_LASTS).as_millisecond());
    console.store().keep_session(digest, &user.name, now.as_millisecond(), until).await?;
    let browser = known_browser::fresh(user, now)?;
    let known = known_browser::cookie(&console.0.settings.external);
    let cookies = AppendHeaders([
        (header::SET_COOKIE, session_cookie(console, &token)),
        (header::SET_COOKIE, known.set(&browser, known_browser::LASTS.unsigned_abs().as_secs())),
    ]);
    Ok((cookies, Redirect::to(next)).into_response())
}

pub(super) fn session_cookie(console: &Console, token: &str) -> String {
    console.session_cookie().set(token, SESSION_LASTS.unsigned_abs().as_secs())
}

pub(crate) async fn sign_out(
    State(console): State<Console>,
    Extension(session): Extension<Session>,
    headers: HeaderMap,
) -> HandlerResult {
    let ended = console.store().end_session(session.digest).await;
    ended.map_err(|error| unavailable(error, Some(&session), &headers))?;
    let gone = console.session_cookie().over();
    Ok(([(header::SET_COOKIE, gone)], Redirect::to("/sign-in")).into_response())
}

/// What a link is good for; gone where it is for nothing (any more).
async fn link_of(console: &Console, digest: [u8; 32], headers: &HeaderMap) -> Result<Link, Response> {
    let found = console.store().link(digest, console.now().as_millisecond()).await;
    let found = found.map_err(|error| unavailable(error, None, headers))?;
    found.ok_or_else(|| gone(headers))
}

fn gone(headers: &HeaderMap) -> Response {
    send(StatusCode::GONE, &outside("Welcome", theme(headers), &page::sign_in::stale()))
}

/// Whose password a link sets; `None`: it makes the first account.
fn whose(link: &Link) -> Option<&str> {
    match link {
        Link::FirstAccount => None,
        Link::PasswordOf(name) => Some(name),
    }
}

pub(crate) async fn welcome_form(
    State(console): State<Console>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> HandlerResult {
    let token = value(&query.unwrap_or_default(), "token");
    let link = link_of(&console, token::digest(&token), &headers).await?;
    let body = page::sign_in::welcome(&token, whose(&link), None);
    Ok(send(StatusCode::OK, &outside("Welcome", theme(&headers), &body)))
}

pub(crate) async fn welcome(
    State(console): State<Console>,
    headers: HeaderMap,
    Form(body): Form,
) -> HandlerResult {
    let failed = |error: Unavailable| unavailable(error, None, &headers);
    let form = String::from_utf8_lossy(&body).into_owned();
    let (token, password) = (value(&form, "token"), value(&form, "password"));
    let digest = token::digest(&token);
    // Before the password is hashed: nobody without a link makes the platform work.
    let link = link_of(&console, digest, &headers).await?;
    let name = match whose(&link) {
        Some(name) => name.to_owned(),
        None => value(&form, "name").trim().to_lowercase(),
    };
    let wrong = if !account_name::may_be(&name) {
        Some("A name has 1 to 60 characters.")
    } else if !Passwords::is_well(&password) {
        Some("A password has 12 to 1024 characters.")
    } else {
        None
    };
    if let Some(why) = wrong {
        let body = page::sign_in::welcome(&token, whose(&link), Some(why));
        return Err(send(StatusCode::UNPROCESSABLE_ENTITY, &outside("Welcome", theme(&headers), &body)));
    }
    let place = console.0.passwords.place().await.map_err(|PasswordsBusy| {
        let body = page::sign_in::welcome(&token, whose(&link), Some(MANY));
        let page = outside("Welcome", theme(&headers), &body);
        later(send(StatusCode::SERVICE_UNAVAILABLE, &page), FEW_SECONDS)
    })?;
    let password = console.0.passwords.hash(place, password).await.map_err(broken)?;
    // Whoever makes the first account is an admin; a link for somebody's password changes nothing but that.
    let user = Account { name, password, role: Role::Admin };
    let (store, now) = (console.store(), console.now().as_millisecond());
    let used = match whose(&link) {
        None => store.use_link(digest, now, &user).await,
        Some(name) => store.use_link_for(digest, now, name, &user.password).await,
    };
    if !used.map_err(|error| failed(error.into()))? {
        return Err(gone(&headers));
    }
    begin(&console, &user, "/").await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_of_the_console_is_gone_to_after_signing_in() {
        for (asked, goes) in [
            ("%2Fapplications%3Fq%3Dpay", "/applications?q=pay"),
            ("https%3A%2F%2Fevil.example", "/"),
            ("%2F%2Fevil.example", "/"),
            ("%2F%5Cevil.example", "/"),
            ("%2Fa%0D%0Ab", "/"),
            ("", "/"),
        ] {
            assert_eq!(next_of(&format!("next={asked}")), goes, "{asked}");
        }
    }
}
