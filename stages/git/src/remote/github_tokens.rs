//! Tokens of GitHub Apps: an app proves who it is, and is given a token of an installation, which stands for a password.
//!
//! takes: the app of a credential, and a repository - gives: a [`Token`], kept until shortly before it expires - calls:
//! `POST {api}/app/installations/{id}/access_tokens`, and before it `GET {api}/repos/{owner}/{name}/installation` where the
//! Secret names no installation - fails: with [`FetchError::NoToken`], which is remembered for a pause, and for as long as
//! GitHub wants to be left alone.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::header::ACCEPT;
use reqwest::{Client, Method};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::access::Access;
use super::credentials::Credential;
use super::github_app::GitHubApp;
use super::{FetchError, NoToken, RepositoryUrl, http_client, lock};

/// A token that expires within this time is given to nobody: what is fetched with it takes a while.
const MARGIN: SignedDuration = SignedDuration::from_mins(5);
/// Limit of asking for one token.
const LIMIT: Duration = Duration::from_secs(15);
/// Bytes of an answer.
const LARGEST: usize = 1 << 20;
/// Installations that are remembered before those that nobody waits for are forgotten.
const MOST: usize = 1_024;

const NO_OWNER: &str = "the address of the repository names no owner to look its installation up by: give githubAppInstallationID";

/// What Git is shown for a password.
pub(super) struct Token {
    secret: SecretString,
    expires: Timestamp,
    taken: AtomicBool,
}

impl Token {
    pub(super) fn secret(&self) -> &str {
        self.secret.expose_secret()
    }

    /// A server took it.
    pub(super) fn was_taken(&self) {
        self.taken.store(true, Ordering::Relaxed);
    }

    /// Whether a server took it at some time. If it is refused later, it was taken back; one that never was would be
    /// followed by others that are not.
    pub(super) fn has_been_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }
}

/// The tokens of all apps.
pub(super) struct GitHubApps {
    pause: Duration,
    all: Mutex<HashMap<[u8; 32], Arc<tokio::sync::Mutex<Installation>>>>,
}

/// What is known of an installation of an app.
#[derive(Default)]
struct Installation {
    /// As it was looked up.
    id: Option<u64>,
    token: Option<Arc<Token>>,
    /// From when until when it is not asked again: where the clock was set back, it is.
    failed: Option<(NoToken, Range<Timestamp>)>,
}

impl GitHubApps {
    /// Whoever is given no token asks for none again before this time.
    pub(super) fn new(pause: Duration) -> Self {
        Self { pause, all: Mutex::default() }
    }

    /// What failed is tried again at once, but where GitHub wants to be left alone.
    pub(super) fn forget_failures(&self) {
        for installation in lock(&self.all).values() {
            if let Ok(mut of) = installation.try_lock() {
                of.failed = of.failed.take().filter(|(why, _)| matches!(why, NoToken::TooOften { .. }));
            }
        }
    }

    fn installation(&self, key: [u8; 32]) -> Arc<tokio::sync::Mutex<Installation>> {
        let mut all = lock(&self.all);
        if all.len() >= MOST && !all.contains_key(&key) {
            all.retain(|_, of| Arc::strong_count(of) > 1);
        }
        all.entry(key).or_default().clone()
    }
}

/// The installation of a repository.
#[derive(Deserialize)]
struct Found {
    id: u64,
}

/// A token, as GitHub gives it.
#[derive(Deserialize)]
struct Given {
    token: SecretString,
    expires_at: Timestamp,
}

/// An app that is to have a repository, and how GitHub is reached.
pub(super) struct AppCall<'a> {
    pub(super) apps: &'a GitHubApps,
    pub(super) app: &'a GitHubApp,
    pub(super) credential: &'a Credential,
    pub(super) url: &'a RepositoryUrl,
    pub(super) access: &'a Access,
    pub(super) connect_timeout: Duration,
}

impl AppCall<'_> {
    /// The token that is kept, or else, and in the place of one that a server refused, a new one. However many ask at the same
    /// time, GitHub is asked once.
    pub(super) async fn token(
        &self,
        refused: Option<&Arc<Token>>,
        now: Timestamp,
    ) -> Result<Arc<Token>, FetchError> {
        // People read when it is asked again.
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let installation = self.apps.installation(self.identity()?);
        let mut of = installation.lock().await;
        let is_good = |token: &&Arc<Token>| {
            token.expires.duration_since(now) > MARGIN && refused.is_none_or(|of| !Arc::ptr_eq(of, token))
        };
        if let Some(token) = of.token.as_ref().filter(is_good) {
            return Ok(token.clone());
        }
        if let Some((why, pause)) = &of.failed
            && pause.contains(&now)
        {
            return Err(self.none(why.clone()));
        }
        of.token = None;
        let late = || self.none(NoToken::Unreachable { why: "it takes too long".to_owned() });
        let asked = tokio::time::timeout(LIMIT, self.ask(&mut of.id, now));
        let asked = asked.await.unwrap_or_else(|_| Err(late())).map(Arc::new);
        of.failed = match &asked {
            Err(FetchError::NoToken { why: why @ NoToken::TooOften { until, .. }, .. }) => {
                Some((why.clone(), now..*until))
            }
            Err(FetchError::NoToken { why, .. }) => {
                now.checked_add(self.apps.pause).ok().map(|until| (why.clone(), now..until))
            }
            _ => None,
        };
        of.token = asked.as_ref().ok().cloned();
        asked
    }

    async fn ask(&self, looked_up: &mut Option<u64>, now: Timestamp) -> Result<Token, FetchError> {
        let app = self.app.clone();
        let proof = tokio::task::spawn_blocking(move || app.proof(now)).await;
        let proof = proof.map_err(|_| FetchError::Stopping)?.map_err(|why| self.credential.unusable(why))?;
        let host = self.app.api.host();
        let client = http_client::client(&host, self.access, Some(self.credential), self.connect_timeout)?;
        let call = (&client, &proof, now);
        let id = match self.app.installation.or(*looked_up) {
            Some(id) => id,
            None => {
                let (owner, name) = self.repository()?;
                let repository = format!("{owner}/{name}");
                let path = format!("repos/{repository}/installation");
                self.answer::<Found>(call, Method::GET, &path, Some(&repository)).await?.id
            }
        };
        let path = format!("app/installations/{id}/access_tokens");
        let given = self.answer::<Given>(call, Method::POST, &path, None).await;
        // One that is gone is looked up again.
        *looked_up = given.is_ok().then_some(id);
        let Given { token, expires_at } = given?;
        Ok(Token { secret: token, expires: expires_at, taken: AtomicBool::new(false) })
    }

    /// One answer of the API.
    async fn answer<T: DeserializeOwned>(
        &self,
        (client, proof, now): (&Client, &SecretString, Timestamp),
        method: Method,
        path: &str,
        repository: Option<&str>,
    ) -> Result<T, FetchError> {
        let base = self.app.api.url().ok_or(FetchError::Address { why: "it is no URL" })?;
        let request =
            client.request(method, http_client::below(&base, path)?).bearer_auth(proof.expose_secret());
        let failed = |error| match http_client::failed(self.app.api.host(), &error) {
            FetchError::Connect { why, .. } => self.none(NoToken::Unreachable { why }),
            other => other,
        };
        let answer = request.header(ACCEPT, "application/vnd.github+json").send().await;
        let mut answer = answer.map_err(failed)?;
        if !answer.status().is_success() {
            return Err(self.none(NoToken::of(&answer, repository, now)));
        }
        let mut body = Zeroizing::new(Vec::new());
        while let Some(more) = answer.chunk().await.map_err(failed)? {
            if body.len() + more.len() > LARGEST {
                return Err(self.none(NoToken::NoApi));
            }
            body.extend_from_slice(&more);
        }
        serde_json::from_slice(&body).map_err(|_| self.none(NoToken::NoApi))
    }

    /// Who has a token together: the same key of the same app, of the same installation, or of a repository of the same owner.
    fn identity(&self) -> Result<[u8; 32], FetchError> {
        let of = match self.app.installation {
            Some(id) => id.to_string(),
            None => format!("of {}", self.repository()?.0.to_lowercase()),
        };
        let mut digest = Sha256::new();
        digest.update(format!("{}\n{of}\n{}\n", self.app.id, self.app.api));
        digest.update(self.app.key.expose_secret());
        Ok(digest.finalize().into())
    }

    /// The owner of the repository, and its name.
    fn repository(&self) -> Result<(String, String), FetchError> {
        let url = self.url.url();
        let mut parts = url.as_ref().and_then(|url| url.path_segments()).into_iter().flatten();
        let mut next = || parts.next().filter(|part| !part.is_empty());
        let (owner, name) = next().zip(next()).ok_or_else(|| self.credential.unusable(NO_OWNER))?;
        Ok((owner.to_owned(), name.strip_suffix(".git").unwrap_or(name).to_owned()))
    }

    fn none(&self, why: NoToken) -> FetchError {
        FetchError::NoToken { host: self.app.api.host(), from: self.credential.from.clone(), why }
    }
}

#[cfg(test)]
mod tests;
