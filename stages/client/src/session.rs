//! The session of an account that logs in to Argo CD by name and password.
//!
//! takes: a name, and a password that may change - gives: what calls are authorised with - calls:
//! `POST {argocd}/api/v1/session`, one at a time - fails: with [`Fault::Login`], at once while a login that failed is not to be
//! tried again yet.
//!
//! A session is renewed before it ends, by what its token says of its own life and not by this machine's clock. One that
//! is answered 401 (Argo CD was started with another key, or the password was changed) is given up, and one login follows, whoever
//! asks meanwhile. Argo CD counts what it refuses, locks an account after five times within five minutes, and answers
//! then as it does to a wrong password: so the same password is tried less and less often, and another one at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pipeline_core::{Backoff, Call, ExposeSecret as _, Meter, Outcome, Reason, Sample, SecretString};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use serde::Deserialize;
use tokio::time::Instant;

use crate::token::authorization;
use crate::{Client, Fault, HttpError, Method, Token, TokenError};

const ACT: &str = "log in";
/// After a login that failed for another reason than what was given.
const AWAY: Backoff = Backoff { min: Duration::from_secs(1), max: Duration::from_secs(30) };
/// After sessions that were given, and taken by nobody.
const UNTAKEN: Backoff = Backoff { min: Duration::from_secs(120), max: Duration::from_secs(600) };
/// A session that was given up sooner counts as one of several in a row.
const YOUNG: Duration = Duration::from_secs(60);
/// No session's token is longer.
const LARGEST: usize = 64 << 10;

/// Who logs in.
#[derive(Debug, Clone)]
pub struct Login {
    /// The account.
    pub username: String,
    /// Its password; one in a file or a Secret is read again for each login.
    pub password: Token,
    /// The waits after a password was refused.
    pub retry: Backoff,
}

impl Login {
    /// Waits that keep four processes together from ever locking an account of Argo CD as it is shipped, which counts
    /// refusals that follow one another within five minutes and locks at the fifth: five tries of four processes hold two of
    /// the same one, and what jitter leaves of its wait is longer than four times five minutes.
    pub const RETRY: Backoff = Backoff { min: Duration::from_secs(2_500), max: Duration::from_secs(7_200) };
}

/// The one session of a process.
pub struct Sessions {
    login: Login,
    /// What a login is counted as.
    call: Call,
    state: Mutex<State>,
    /// Held by whoever logs in.
    entering: tokio::sync::Mutex<()>,
}

/// A session as calls use it.
#[derive(Clone)]
pub struct Session {
    /// Which one, counted from 1.
    serial: u64,
    header: HeaderValue,
    since: Instant,
    /// Whether a call was ever answered with it.
    taken: Arc<AtomicBool>,
    /// When it is time for another one, and when it ends; `None`: never, as far as is known.
    life: Option<(Instant, Instant)>,
}

impl std::fmt::Debug for Session {
    /// Without what calls are authorised with.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("serial", &self.serial).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").field("username", &self.login.username).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    /// Logins so far.
    serial: u64,
    /// Logins that failed since the last that did not.
    failed: u32,
    /// Sessions in a row that were given up while they were young.
    lost: u32,
    held_off: Option<HeldOff>,
    /// Why logins fail, as far as it was said.
    said: Option<Reason>,
}

/// Why there is no login now.
struct HeldOff {
    until: Instant,
    reason: Reason,
    status: Option<u16>,
    /// The password that was refused: another one is tried at once.
    refused: Option<SecretString>,
}

impl Session {
    /// What calls are authorised with.
    #[must_use]
    pub fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// A call was answered with it.
    pub fn is_taken(&self) {
        self.taken.store(true, Ordering::Relaxed);
    }

    fn is_due(&self, now: Instant) -> bool {
        self.life.is_some_and(|(due, _)| due <= now)
    }

    fn is_over(&self, now: Instant) -> bool {
        self.life.is_some_and(|(_, end)| end <= now)
    }
}

impl Sessions {
    /// Of an account; a login is counted as `call`.
    #[must_use]
    pub fn new(login: Login, call: Call) -> Self {
        Self { login, call, state: Mutex::default(), entering: tokio::sync::Mutex::default() }
    }

    /// The session that calls are made with now; logs in where there is none, or where it is time to renew it.
    ///
    /// # Errors
    /// There is none: the login failed just now or a while ago.
    pub async fn get(&self, client: &Client, meter: &dyn Meter) -> Result<Session, HttpError> {
        if let Some(session) = self.current() {
            if !session.is_due(Instant::now()) {
                return Ok(session);
            }
            // One renews it, and meanwhile the others go on with it.
            let Ok(_entering) = self.entering.try_lock() else { return Ok(session) };
            let session = self.current().unwrap_or(session);
            if !session.is_due(Instant::now()) || self.held_off().await.is_some() {
                return Ok(session);
            }
            return Ok(self.enter(client, meter).await.unwrap_or(session));
        }
        let _entering = self.entering.lock().await;
        if let Some(session) = self.current() {
            return Ok(session);
        }
        match self.held_off().await {
            Some(fault) => Err(client.error(ACT, fault)),
            None => self.enter(client, meter).await.map_err(|fault| client.error(ACT, fault)),
        }
    }

    /// A call with `session` was answered 401. Returns whether another session may be had.
    pub fn lost(&self, session: &Session) -> bool {
        let mut state = self.lock();
        if state.session.as_ref().is_none_or(|held| held.serial != session.serial) {
            // Somebody else has said so, and may have logged in since.
            return true;
        }
        state.session = None;
        let now = Instant::now();
        state.lost = if now < session.since + YOUNG { state.lost + 1 } else { 1 };
        if state.lost == 1 {
            return true;
        }
        // Sessions that nobody takes, or several servers that do not take each other's: logging in again and again
        // would change nothing.
        let backoff = if session.taken.load(Ordering::Relaxed) { AWAY } else { UNTAKEN };
        let until = now + backoff.wait(state.lost - 1, None, fastrand::u64(..));
        let status = Some(401);
        state.held_off = Some(HeldOff { until, reason: Reason::Unauthorized, status, refused: None });
        false
    }

    /// The session that there is, where nothing is to be done about it.
    #[must_use]
    pub fn ready(&self) -> Option<Session> {
        self.current().filter(|session| !session.is_due(Instant::now()))
    }

    fn current(&self) -> Option<Session> {
        let now = Instant::now();
        self.lock().session.clone().filter(|session| !session.is_over(now))
    }

    /// Why there is to be no login now, if that is so.
    async fn held_off(&self) -> Option<Fault> {
        let (fault, refused) = {
            let state = self.lock();
            let held = state.held_off.as_ref().filter(|held| Instant::now() < held.until)?;
            (Fault::Login { reason: held.reason, status: held.status }, held.refused.clone())
        };
        if let Some(refused) = refused
            && let Ok(password) = self.login.password.read().await
            && password.expose_secret() != refused.expose_secret()
        {
            tracing::info!("there is another password of argo cd, which is tried now");
            return None;
        }
        Some(fault)
    }

    async fn enter(&self, client: &Client, meter: &dyn Meter) -> Result<Session, Fault> {
        let begun = Instant::now();
        let failed = {
            let mut state = self.lock();
            state.failed = state.failed.saturating_add(1);
            // Whoever gives up while it is under way leaves the next login to a later moment.
            let until = begun + AWAY.wait(state.failed, None, fastrand::u64(..));
            state.held_off = Some(HeldOff { until, reason: Reason::Timeout, status: None, refused: None });
            state.failed
        };
        let (result, password) = match self.login.password.read().await {
            Err(error) => (Err(client.error(ACT, Fault::Token(error))), None),
            Ok(password) => (self.ask(client, &password).await, Some(password)),
        };
        let outcome = Outcome::of(&result, HttpError::reason);
        meter.record(Sample { call: self.call, outcome, took: begun.elapsed() });
        match result {
            Ok(token) => self.entered(&token).map_err(|error| {
                let error = client.error(ACT, Fault::Token(error));
                self.failed(failed, &error, None)
            }),
            Err(error) => Err(self.failed(failed, &error, password)),
        }
    }

    async fn ask(&self, client: &Client, password: &SecretString) -> Result<SecretString, HttpError> {
        let (username, password) = (&self.login.username, password.expose_secret());
        let body = serde_json::json!({ "username": username, "password": password }).to_string();
        let request = client.request(ACT, Method::POST, &["api", "v1", "session"])?;
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        let Given { token } = client.send_within(ACT, request, LARGEST).await?.checked()?.json()?;
        Ok(token)
    }

    fn entered(&self, token: &SecretString) -> Result<Session, TokenError> {
        let header = authorization("Bearer ", token)?;
        let since = Instant::now();
        let life = lifetime(token).map(|life| (since + life - life / 10, since + life));
        let mut state = self.lock();
        state.serial += 1;
        let session = Session { serial: state.serial, header, since, taken: Arc::default(), life };
        state.session = Some(session.clone());
        (state.failed, state.held_off, state.said) = (0, None, None);
        tracing::info!(username = self.login.username, "logged in to argo cd");
        Ok(session)
    }

    /// Holds off the next login, and says once why this one failed.
    fn failed(&self, failed: u32, error: &HttpError, password: Option<SecretString>) -> Fault {
        let (reason, status) = (error.reason(), error.status());
        let is_refused = matches!(reason, Reason::Unauthorized | Reason::Forbidden | Reason::Refused);
        let backoff = if is_refused { self.login.retry } else { AWAY };
        let wait = backoff.wait(failed, error.after(), fastrand::u64(..));
        let mut state = self.lock();
        let refused = password.filter(|_| is_refused);
        state.held_off = Some(HeldOff { until: Instant::now() + wait, reason, status, refused });
        if state.said.replace(reason) != Some(reason) {
            let (cause, username) = (error as &(dyn std::error::Error + 'static), &self.login.username);
            if reason.may_pass() {
                tracing::warn!(error = cause, username, "cannot log in to argo cd");
            } else {
                let next =
                    "see that name and password are right, and that the account is enabled and may log in";
                tracing::error!(error = cause, username, next, "argo cd refuses the login");
            }
        }
        Fault::Login { reason, status }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize)]
struct Given {
    token: SecretString,
}

/// How long a session lives, by what its token says; `None`: it does not say, or has no end.
fn lifetime(token: &SecretString) -> Option<Duration> {
    #[derive(Deserialize)]
    struct Claims {
        iat: u64,
        exp: u64,
    }
    let claims = URL_SAFE_NO_PAD.decode(token.expose_secret().split('.').nth(1)?).ok()?;
    let Claims { iat, exp } = serde_json::from_slice(&claims).ok()?;
    // What no clock can count to has no end.
    let longest = Duration::from_secs(10 * 366 * 86_400);
    exp.checked_sub(iat).map(Duration::from_secs).filter(|life| !life.is_zero() && *life < longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lives_as_long_as_its_token_says() {
        let token = |claims: &str| SecretString::from(format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(claims)));
        let day = token(r#"{"iss":"argocd","nbf":1700000000,"iat":1700000000,"exp":1700086400}"#);
        assert_eq!(lifetime(&day), Some(Duration::from_secs(86_400)));
        for endless in [
            r#"{"iat":1700000000}"#,
            r#"{"iat":5,"exp":4}"#,
            r#"{"iat":5,"exp":5}"#,
            r#"{"iat":0,"exp":18446744073709551615}"#,
            "no json",
        ] {
            assert_eq!(lifetime(&token(endless)), None, "{endless}");
        }
        assert_eq!(lifetime(&SecretString::from("opaque")), None);
    }
}
