//! Coming in by a provider of OpenID Connect: a browser is sent there, and comes back with a code.
//!
//! Somebody is known by issuer and subject alone. A name or an address that the provider tells finds no account: an account that is
//! here already is linked by whoever is signed in to it, or by an admin.

use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::header::{self, HeaderMap};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use sha2::{Digest as _, Sha256};
use stages_client::OwnCookie;
use stages_platform_oidc::{ATTEMPT_LASTS, Attempt, Claims, OidcError, Provider};
use stages_platform_store::{Account, By, Identified, Identity, Provided, Role};

use super::Console;
use super::handlers::{
    HandlerResult, SESSION_LASTS, next_of, send, session_cookie, theme, unavailable, value,
};
use crate::fleet::Unavailable;
use crate::page::shell::outside;
use crate::page::sign_in::{self as page, Offer, SignIn};
use crate::session::{account_name, token};

/// A path that is longer is not come back to: a cookie holds it.
const LONGEST_NEXT: usize = 1_000;
/// So long the page for passwords waits for the provider.
const LOOK: Duration = Duration::from_secs(1);

const LATER: &str = "Begin again in a moment, and if it comes back, ask whoever manages it.";
const STALE: &str = "This attempt began in another browser, or more than 10 minutes ago: begin again.";
const NO_ACCOUNT: &str = "You have no account here: ask an admin for one, or to link you to yours.";
const NOBODY_YET: &str =
    "The first account is made by the link that the platform prints, and not by a provider.";
const DISABLED: &str = "Your account here is disabled: ask an admin.";
const TAKEN: &str = "Somebody else has your name here: ask an admin to link you to your account.";
const NOT_YOURS: &str = "You are not signed in any more as whoever began this: sign in, and link it again.";
const LINKED_ALREADY: &str =
    "That identity belongs to an account here already, or yours has another one: an admin can take it away.";

/// A provider by which people come in beside their passwords.
#[derive(Debug, Clone)]
pub struct OidcSignIn {
    /// The provider.
    pub provider: Provider,
    /// What stands on its button, such as `Sign in with Example`.
    pub button: String,
    /// Groups there and the teams here that their people are in.
    pub teams: Vec<(String, String)>,
    /// The group there whose people are admins here, as of their last sign-in.
    pub admin_group: Option<String>,
    /// Whose verified addresses may come in, by the domain; none means all, with an address or without.
    pub domains: Vec<String>,
    /// Whether somebody who has no account gets one, as a member.
    pub creates_users: bool,
}

/// A refusal: how it is answered, what is said, and what the audit log says.
struct Refusal {
    status: StatusCode,
    why: String,
}

impl Refusal {
    fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }
}

impl From<OidcError> for Refusal {
    fn from(error: OidcError) -> Self {
        let status = match &error {
            OidcError::Away(_) | OidcError::Random => StatusCode::SERVICE_UNAVAILABLE,
            OidcError::Code => StatusCode::BAD_REQUEST,
            _ => StatusCode::BAD_GATEWAY,
        };
        if !matches!(error, OidcError::Code) {
            let told = &error as &(dyn std::error::Error + 'static);
            tracing::warn!(error = told, "nobody was signed in by the provider");
        }
        let why = sentence(&error.to_string());
        Self::new(status, if error.is_away() { format!("{why} {LATER}") } else { why })
    }
}

/// An error as a sentence.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", rest.as_str())
}

/// What the page to sign in offers beside passwords; `look` asks the provider whether it is there.
pub(super) async fn offer(console: &Console, look: bool) -> Option<Offer<'_>> {
    let oidc = console.0.settings.oidc.as_ref()?;
    let (button, provider) = (&*oidc.button, &oidc.provider);
    let away = |error: OidcError| {
        format!("{button} is not possible now. {} Passwords go on.", sentence(&error.to_string()))
    };
    // One that is slow is waited for longer by whoever goes there.
    let slow = || {
        let (host, seconds) = (provider.issuer().host(), LOOK.as_secs());
        format!(
            "{host} has not answered within {seconds} s: on the way there it may take longer. Passwords go on."
        )
    };
    let note = match look {
        true => match provider.look_within(LOOK).await {
            Some(looked) => looked.err().map(away),
            None => Some(provider.failure(LOOK).map_or_else(slow, away)),
        },
        false => None,
    };
    Some(Offer { button, note })
}

/// Sends a browser to the provider.
pub(crate) async fn start(
    State(console): State<Console>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> HandlerResult {
    let Some(oidc) = &console.0.settings.oidc else { return Err(no_provider()) };
    let next = short(next_of(&query.unwrap_or_default()));
    match oidc.provider.begin(&next, None, console.now()).await {
        Ok(begun) => {
            let kept = [(header::SET_COOKIE, keep(&console, &begun.sealed))];
            Ok((kept, Redirect::to(begun.url.as_str())).into_response())
        }
        Err(error) => Err(shown(&console, &headers, &next, error.into()).await),
    }
}

/// The way to the provider for somebody who is signed in and wants to be known by who they are there. A form led here, and where a
/// form leads is told by the policy of its page: so the browser goes on from an answer, and not by a redirect.
pub(super) async fn link(console: &Console, oidc: &OidcSignIn, user: &str, headers: &HeaderMap) -> Response {
    match oidc.provider.begin("/settings", Some(user), console.now()).await {
        Ok(begun) => {
            let (host, url) = (oidc.provider.issuer().host(), begun.url.as_str());
            let body = page::going(host, url);
            let mut response = send(StatusCode::OK, &outside("Link an identity", theme(headers), &body));
            let all = response.headers_mut();
            let refresh = HeaderValue::from_str(&format!("0; url={url}"));
            all.extend(refresh.ok().map(|refresh| (header::REFRESH, refresh)));
            let kept = HeaderValue::from_str(&keep(console, &begun.sealed));
            all.extend(kept.ok().map(|kept| (header::SET_COOKIE, kept)));
            response
        }
        Err(error) => not_linked(headers, &error.into()),
    }
}

/// Whoever comes back from the provider.
pub(crate) async fn callback(
    State(console): State<Console>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> HandlerResult {
    let Some(oidc) = &console.0.settings.oidc else { return Err(no_provider()) };
    let query = query.unwrap_or_default();
    let (attempt, claims) = match Box::pin(verified(&console, oidc, &headers, &query)).await {
        Ok(verified) => verified,
        Err((next, refusal)) => return Ok(over(&console, shown(&console, &headers, &next, refusal).await)),
    };
    let unread = |error: Unavailable| unavailable(error, None, &headers);
    let identity =
        Identity { issuer: oidc.provider.issuer().as_str().to_owned(), subject: claims.subject.clone() };
    if let Some(user) = &attempt.links {
        let linked = link_to(&console, &headers, user, &identity).await.map_err(unread)?;
        let response = match linked {
            Ok(()) => Redirect::to("/settings").into_response(),
            Err(refusal) => not_linked(&headers, &refusal),
        };
        return Ok(over(&console, response));
    }
    let response = match enter(&console, oidc, &claims, &identity).await.map_err(unread)? {
        Ok(session) => {
            let cookie = session_cookie(&console, &session);
            ([(header::SET_COOKIE, cookie)], Redirect::to(&attempt.next)).into_response()
        }
        Err(why) => {
            let refusal = refuse(&console, &identity, why).await.map_err(unread)?;
            shown(&console, &headers, &attempt.next, refusal).await
        }
    };
    Ok(over(&console, response))
}

/// The attempt that a browser came back of, and who the provider says that is; or where it wanted to go, and why not.
async fn verified(
    console: &Console,
    oidc: &OidcSignIn,
    headers: &HeaderMap,
    query: &str,
) -> Result<(Attempt, Claims), (String, Refusal)> {
    let provider = &oidc.provider;
    let nowhere = |refusal| ("/".to_owned(), refusal);
    let opened = match attempt_cookie(console).read(headers) {
        Some(sealed) => provider.open(sealed, console.now()).await.map_err(|error| nowhere(error.into()))?,
        None => None,
    };
    let state = value(query, "state");
    let Some(attempt) = opened.filter(|attempt| attempt.is_of(&state)) else {
        return Err(nowhere(Refusal::new(StatusCode::BAD_REQUEST, STALE)));
    };
    let no = |status, why: String| (attempt.next.clone(), Refusal::new(status, why));
    let (host, issuer) = (provider.issuer().host(), value(query, "iss"));
    if !issuer.is_empty() && issuer != provider.issuer().as_str() {
        let why = format!("This answer is of another provider than {host}: begin again.");
        return Err(no(StatusCode::BAD_REQUEST, why));
    }
    let error = value(query, "error");
    if !error.is_empty() {
        let why = match &*error {
            "access_denied" => {
                format!("{host} did not let you in: try again there, or ask whoever manages it.")
            }
            _ => format!("{host} could not sign you in: begin again, and if it comes back, ask an admin."),
        };
        return Err(no(StatusCode::FORBIDDEN, why));
    }
    // A code can be tried for an attempt as often as a password for a name.
    if let Err(seconds) = console.0.attempts.begin(&state, console.now()) {
        let why = format!("Too many codes for this attempt. Try again in {seconds} s.");
        return Err(no(StatusCode::TOO_MANY_REQUESTS, why));
    }
    let claims = provider.finish(&attempt, &value(query, "code")).await;
    let claims = claims.map_err(|error| (attempt.next.clone(), error.into()))?;
    console.0.attempts.right(&state);
    Ok((attempt, claims))
}

/// A session of whoever the provider vouches for, or why there is none.
async fn enter(
    console: &Console,
    oidc: &OidcSignIn,
    claims: &Claims,
    identity: &Identity,
) -> Result<Result<String, String>, Unavailable> {
    let store = console.store();
    let now = console.now();
    if !oidc.domains.is_empty() && !is_of(&oidc.domains, claims.email.as_deref()) {
        let (host, domains) = (oidc.provider.issuer().host(), oidc.domains.join(", "));
        return Ok(Err(format!("Only addresses at {domains} that {host} has verified come in here.")));
    }
    // Whoever is in too many groups to be told is not in none of them.
    if claims.groups_elsewhere && (!oidc.teams.is_empty() || oidc.admin_group.is_some()) {
        let host = oidc.provider.issuer().host();
        return Ok(Err(format!(
            "{host} does not tell which groups you are in, as they are too many: an admin there has it tell those alone that are \
             assigned to this platform."
        )));
    }
    let known = match store.identified(identity).await? {
        Some(known) => Ok(known),
        None if !store.has_accounts().await? => Err(NOBODY_YET),
        None if !oidc.creates_users => Err(NO_ACCOUNT),
        None => add(console, claims, identity).await?.ok_or(TAKEN),
    };
    let known = match known {
        Ok(known) if known.disabled => return Ok(Err(DISABLED.to_owned())),
        Ok(known) => known,
        Err(why) => return Ok(Err(why.to_owned())),
    };
    let session = token::fresh()?;
    let until = now + SESSION_LASTS;
    let (digest, provided) =
        (token::digest(&session), provided(&oidc.teams, oidc.admin_group.as_deref(), &claims.groups));
    let (now, until) = (now.as_millisecond(), until.as_millisecond());
    let signed_in = store.sign_in_identified(digest, identity, &provided, now, until).await?;
    if !signed_in {
        // Disabled or taken away just now.
        return Ok(Err(DISABLED.to_owned()));
    }
    console.0.attempts.right(&refused_name(identity));
    tracing::debug!(user = known.name, "somebody came in by the provider");
    Ok(Ok(session))
}

/// An account for somebody who has none, as a member; `None`: their name is somebody's, and so is the one beside it.
async fn add(
    console: &Console,
    claims: &Claims,
    identity: &Identity,
) -> Result<Option<Identified>, Unavailable> {
    let store = console.store();
    for name in names(claims, identity) {
        let account = Account { name: name.clone(), password: String::new(), role: Role::Member };
        let now = console.now().as_millisecond();
        if store.add_identified(&account, identity, now).await? {
            return Ok(Some(Identified { name, disabled: false }));
        }
        // They came twice at once, and the other was faster.
        if let Some(known) = store.identified(identity).await? {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

async fn link_to(
    console: &Console,
    headers: &HeaderMap,
    user: &str,
    identity: &Identity,
) -> Result<Result<(), Refusal>, Unavailable> {
    let session = console.session_of(headers).await?;
    if session.is_none_or(|session| session.user != user) {
        return Ok(Err(Refusal::new(StatusCode::FORBIDDEN, NOT_YOURS)));
    }
    let by = By { who: user.to_owned(), how: "session" };
    let now = console.now().as_millisecond();
    let linked = console.store().link_identity(&by, user, identity, now).await?;
    Ok(if linked { Ok(()) } else { Err(Refusal::new(StatusCode::CONFLICT, LINKED_ALREADY)) })
}

/// Keeps a refusal in the audit log, no oftener than a wrong password may be tried.
async fn refuse(console: &Console, identity: &Identity, why: String) -> Result<Refusal, Unavailable> {
    if let Err(seconds) = console.0.attempts.begin(&refused_name(identity), console.now()) {
        let why = format!("You were refused too often. Try again in {seconds} s.");
        return Ok(Refusal::new(StatusCode::TOO_MANY_REQUESTS, why));
    }
    let now = console.now().as_millisecond();
    console.store().refuse_identified(identity, &why, now).await?;
    Ok(Refusal::new(StatusCode::FORBIDDEN, why))
}

fn refused_name(identity: &Identity) -> String {
    format!("{} {}", identity.issuer, identity.subject)
}

/// The page to sign in, with what went wrong.
async fn shown(console: &Console, headers: &HeaderMap, next: &str, refusal: Refusal) -> Response {
    let any_user = match console.store().has_accounts().await {
        Ok(any_user) => any_user,
        Err(error) => return unavailable(error, None, headers),
    };
    let offer = offer(console, false).await;
    let body = page::sign_in(&SignIn { failed: Some(&refusal.why), name: "", next, any_user, offer });
    send(refusal.status, &outside("Sign in", theme(headers), &body))
}

fn not_linked(headers: &HeaderMap, refusal: &Refusal) -> Response {
    send(refusal.status, &outside("Not linked", theme(headers), &page::not_linked(&refusal.why)))
}

fn no_provider() -> Response {
    (StatusCode::NOT_FOUND, "this platform has no provider to sign in by\n").into_response()
}

/// Holds the attempt while the browser is at the provider.
fn attempt_cookie(console: &Console) -> OwnCookie {
    OwnCookie::new("attempt", "/login/oidc", &console.0.settings.external)
}

fn keep(console: &Console, sealed: &str) -> String {
    attempt_cookie(console).set(sealed, ATTEMPT_LASTS.unsigned_abs().as_secs())
}

/// An attempt is good for one answer.
fn over(console: &Console, mut response: Response) -> Response {
    let gone = HeaderValue::from_str(&attempt_cookie(console).over()).ok();
    response.headers_mut().extend(gone.map(|gone| (header::SET_COOKIE, gone)));
    response
}

fn short(next: String) -> String {
    if next.len() > LONGEST_NEXT { "/".to_owned() } else { next }
}

fn is_of(domains: &[String], email: Option<&str>) -> bool {
    let domain = email.and_then(|email| email.rsplit_once('@')).map(|(_, domain)| domain);
    domain.is_some_and(|domain| domains.iter().any(|one| one.eq_ignore_ascii_case(domain)))
}

/// What the provider decides of somebody in these groups.
fn provided(teams: &[(String, String)], admins: Option<&str>, groups: &[String]) -> Provided {
    let joined = teams.iter().filter(|(group, _)| groups.contains(group));
    Provided {
        decided: teams.iter().map(|(_, team)| team.clone()).collect(),
        joined: joined.map(|(_, team)| team.clone()).collect(),
        admin: admins.and_then(|admins| groups.iter().find(|group| *group == admins)).cloned(),
    }
}

/// What somebody may be called here: as there, or so with a few letters that are theirs alone.
fn names(claims: &Claims, identity: &Identity) -> [String; 2] {
    let told = [claims.name.as_deref(), claims.email.as_deref(), Some(&*claims.subject)];
    // Control characters before white space, which may stand between them.
    let plain = |name: &str| {
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        name.trim().to_lowercase()
    };
    let name = told.into_iter().flatten().map(plain).find(|name| !name.is_empty()).unwrap_or_default();
    let digest = Sha256::digest(refused_name(identity).as_bytes());
    let mark = hex::encode(&digest[..3]);
    let cut = |length| name.chars().take(length).collect::<String>().trim_end().to_owned();
    [cut(account_name::LONGEST), format!("{}-{mark}", cut(account_name::LONGEST - 7))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(name: Option<&str>, email: Option<&str>) -> Claims {
        let (name, email) = (name.map(str::to_owned), email.map(str::to_owned));
        Claims { subject: "S-1".to_owned(), name, email, groups: Vec::new(), groups_elsewhere: false }
    }

    #[test]
    fn somebody_is_called_as_they_are_there_or_so_with_letters_of_their_own() {
        let identity = Identity { issuer: "https://id.example.com".to_owned(), subject: "S-1".to_owned() };
        let names = |name, email| names(&claims(name, email), &identity);
        let [first, second] = names(Some(" Mia\u{7} "), Some("mia@example.com"));
        assert_eq!(first, "mia");
        assert!(second.starts_with("mia-") && second.len() == 10, "{second}");
        assert_eq!(names(None, Some("Mia@example.com"))[0], "mia@example.com");
        assert_eq!(names(Some("  "), None)[0], "s-1");
        for name in ["\u{1} Bob", " \u{1}\u{7f} bob\u{1} ", "\u{a0}bob\u{2003}\u{9f}"] {
            let [first, second] = names(Some(name), None);
            assert_eq!(first, "bob", "{name:?}");
            assert!(second.starts_with("bob-") && second.len() == 10, "{second}");
        }
        assert_eq!(names(Some(" \u{1} "), None)[0], "s-1");
        let spaced = format!("{} {} x", "a".repeat(52), "b".repeat(6));
        let [first, second] = names(Some(&spaced), None);
        assert_eq!(first, format!("{} {}", "a".repeat(52), "b".repeat(6)), "cut within white space");
        assert!(second.starts_with(&format!("{}-", "a".repeat(52))), "{second}");
        let long = "é".repeat(100);
        let [first, second] = names(Some(&long), None);
        assert_eq!((first.chars().count(), second.chars().count()), (60, 60));
    }

    #[test]
    fn teams_are_those_of_the_groups_and_a_domain_is_the_whole_of_it() {
        let all = [("a", "ops"), ("b", "shop"), ("c", "ops")]
            .map(|(group, team)| (group.to_owned(), team.to_owned()));
        let found = provided(&all, Some("admins"), &["c".to_owned(), "z".to_owned()]);
        assert_eq!((found.decided.len(), found.joined, found.admin), (3, vec!["ops".to_owned()], None));
        let found = provided(&all, Some("z"), &["c".to_owned(), "z".to_owned()]);
        assert_eq!(found.admin.as_deref(), Some("z"));
        let domains = ["example.com".to_owned()];
        for (email, may) in [
            (Some("mia@example.com"), true),
            (Some("mia@EXAMPLE.com"), true),
            (Some("mia@evil.example.com"), false),
            (Some("mia@example.com.evil.example"), false),
            (Some("example.com"), false),
            (None, false),
        ] {
            assert_eq!(is_of(&domains, email), may, "{email:?}");
        }
        assert_eq!(sentence("id.example.com refused"), "Id.example.com refused.");
    }
}
