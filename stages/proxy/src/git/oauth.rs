//! Tokens that nobody types: whoever wants one is sent to GitHub's own page by a browser, consents, and comes back here with a code,
//! which this app proxy changes into a token of an OAuth application and keeps as any other.
//!
//! takes: who begins, the browser that comes back, and the line that it shows - gives: a token - calls: the platform for the store key,
//! the API server for the Secret of the application, `POST {GitHub}/login/oauth/access_token` - fails: closed, and then it is begun
//! again
//!
//! Browsers say nothing of who somebody is here. So whoever began ends it as well, with the line that the browser shows: nobody is
//! given the token of somebody else who was sent an address, unless these hand them the line. Nothing is remembered meanwhile: what is
//! known of an attempt goes along with the browser, sealed, so that any replica goes on with it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use pipeline_core::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use stages_client::{Fault, Method, Target, Url};

use super::forge::PEER;
use super::integration::Integration;
use super::integrations::Integrations;
use super::provider::Provider;
use crate::account::Account;
use crate::error::ActError;
use crate::shown::shown;

/// How long an attempt may take, in seconds.
const ATTEMPT_SECONDS: i64 = 10 * 60;
/// The OAuth scope of a token.
const SCOPE: &str = "repo";
const ACT: &str = "give a token for the code";
/// How long a call of GitHub may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The most bytes of an answer of GitHub.
const MAX_ANSWER: usize = 64 << 10;
/// The most characters of GitHub's error message that are told.
const MAX_MESSAGE: usize = 300;
/// The path below the runtime's address at which a browser begins.
const BEGIN: &str = "app-proxy/api/git-auth/github";
/// The path below the runtime's address to which GitHub sends a browser back.
const CALLBACK: &str = "app-proxy/api/git-auth/github/callback";
/// The most bytes of a code.
const MAX_CODE: usize = 1_024;
/// The places that attempts are sealed for: one on its way to GitHub is told from one that came back.
const AWAY: &str = "oauth/away";
const BACK: &str = "oauth/back";

/// The OAuth application of a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthConfig {
    /// The Secret of the runtime's namespace with its `clientId`, `clientSecret` and `url`.
    pub secret: String,
    /// Where browsers reach this runtime's router.
    pub external_url: Url,
}

/// Gets tokens by OAuth, with people's consent. Cloning shares.
#[derive(Clone)]
pub(crate) struct OAuth(Arc<Inner>);

struct Inner {
    config: Option<OAuthConfig>,
    git: Integrations,
}

/// An attempt to get a token, which a browser carries sealed.
#[derive(Serialize, Deserialize)]
struct ConsentAttempt {
    /// The uid of the account of whoever began it.
    uid: String,
    /// The name of that account.
    user: String,
    integration: String,
    /// The verifier of PKCE.
    verifier: String,
    /// When it is over, in seconds since 1970.
    until: i64,
    /// The code that the browser came back with; empty before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    code: String,
}

/// The OAuth application, as its Secret holds it.
struct OAuthApplication {
    id: String,
    secret: SecretString,
    url: Url,
}

/// GitHub's answer to the exchange of a code.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: Option<SecretString>,
    expires_in: Option<u64>,
    error: Option<String>,
    error_description: Option<String>,
}

fn wrong<T>(why: impl Into<String>) -> Result<T, ActError> {
    Err(ActError::Wrong(why.into()))
}

fn unknown() -> ActError {
    ActError::Wrong("this was not begun here, or more than 10 minutes ago: begin again".to_owned())
}

/// The code challenge of PKCE for a verifier.
fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

impl OAuth {
    pub(crate) fn new(config: Option<OAuthConfig>, git: Integrations) -> Self {
        Self(Arc::new(Inner { config, git }))
    }

    /// Begins an attempt; gives the address that a browser is to open.
    pub(crate) async fn begin(
        &self,
        account: &Account,
        (name, integration): (&str, &Integration),
    ) -> Result<String, ActError> {
        let (user, uid) = (&*account.name, account.uid()?.to_owned());
        let config = self.config()?;
        self.application(integration).await?;
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| ActError::Wrong("there are no random numbers".to_owned()))?;
        let attempt = ConsentAttempt {
            uid,
            user: user.to_owned(),
            integration: name.to_owned(),
            verifier: URL_SAFE_NO_PAD.encode(bytes),
            until: Timestamp::now().as_second() + ATTEMPT_SECONDS,
            code: String::new(),
        };
        let state = self.0.git.sealer().await?.seal(AWAY, &attempt.text()?)?;
        let mut url = at(&config.external_url, BEGIN);
        url.query_pairs_mut().extend_pairs([("userId", user), ("accountId", "default"), ("state", &state)]);
        Ok(url.into())
    }

    /// The address at which GitHub asks for consent.
    pub(crate) async fn consent(&self, user: &str, state: &str) -> Result<String, ActError> {
        let config = self.config()?;
        let attempt = self.open(AWAY, state).await?;
        if attempt.user != user {
            return Err(unknown());
        }
        let OAuthApplication { id, url, .. } = self.read().await?;
        let mut url = at(&url, "login/oauth/authorize");
        url.query_pairs_mut().extend_pairs([
            ("client_id", &*id),
            ("redirect_uri", at(&config.external_url, CALLBACK).as_str()),
            ("scope", SCOPE),
            ("state", state),
            ("code_challenge", &challenge(&attempt.verifier)),
            ("code_challenge_method", "S256"),
        ]);
        Ok(url.into())
    }

    /// Takes the code that a browser came back with; gives the line that the browser shows.
    pub(crate) async fn came_back(&self, state: &str, code: &str) -> Result<String, ActError> {
        let attempt = self.open(AWAY, state).await?;
        if code.is_empty() || code.len() > MAX_CODE || !code.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("that is no code of GitHub: begin again");
        }
        let back = ConsentAttempt { code: code.to_owned(), ..attempt };
        self.0.git.sealer().await?.seal(BACK, &back.text()?)
    }

    /// Checks the state of a browser that came back without a code.
    pub(crate) async fn refused(&self, state: &str) -> Result<(), ActError> {
        self.open(AWAY, state).await.map(drop)
    }

    /// Exchanges the code of an attempt, by the line that the browser showed; gives the token.
    pub(crate) async fn finish(
        &self,
        account: &Account,
        (name, integration): (&str, &Integration),
        line: &str,
    ) -> Result<SecretString, ActError> {
        let config = self.config()?;
        let attempt = self.open(BACK, line.trim()).await?;
        if attempt.uid != account.uid()? || attempt.integration != name {
            return Err(unknown());
        }
        let application = self.application(integration).await?;
        let redirect = at(&config.external_url, CALLBACK);
        let (secret, code, verifier) =
            (application.secret.expose_secret(), &*attempt.code, &*attempt.verifier);
        let body = [
            ("client_id", &*application.id),
            ("client_secret", secret),
            ("code", code),
            ("redirect_uri", redirect.as_str()),
            ("code_verifier", verifier),
        ];
        let answer = self.exchange(&application.url, &body).await?;
        if let Some(error) = answer.error {
            let said = shown(&answer.error_description.unwrap_or(error), MAX_MESSAGE);
            let said = [secret, code, verifier].iter().fold(said, |said, one| said.replace(one, "…"));
            return Err(ActError::Peer { peer: PEER, act: ACT, status: 200, said });
        }
        if answer.expires_in.is_some() {
            return wrong(format!(
                "the application of the Secret {} gives tokens that end within hours: let its tokens not expire, or make an OAuth \
                 application, which is none of a GitHub App",
                config.secret
            ));
        }
        answer.access_token.ok_or(ActError::Unreadable(PEER))
    }

    fn config(&self) -> Result<&OAuthConfig, ActError> {
        let none = "this runtime has no OAuth application: set appProxy.oauth.secret, or register a token";
        self.0.config.as_ref().ok_or_else(|| ActError::Wrong(none.to_owned()))
    }

    /// Opens a sealed attempt that is not over.
    async fn open(&self, place: &str, sealed: &str) -> Result<ConsentAttempt, ActError> {
        let opener = self.0.git.opener().await?.ok_or_else(unknown)?;
        let text = opener.open(place, sealed).map_err(|_| unknown())?;
        let attempt: ConsentAttempt = serde_json::from_str(text.expose_secret()).map_err(|_| unknown())?;
        if attempt.is_over(Timestamp::now().as_second()) { Err(unknown()) } else { Ok(attempt) }
    }

    /// The OAuth application, if the integration is of the same GitHub.
    async fn application(&self, integration: &Integration) -> Result<OAuthApplication, ActError> {
        if integration.provider != Provider::GitHub {
            return wrong(format!(
                "a browser gives a token of GITHUB alone, and this Git integration is of {}: register a token",
                integration.provider.word()
            ));
        }
        let application = self.read().await?;
        if Provider::GitHub.api(Some(application.url.as_str()))? != integration.api_url {
            return wrong(format!(
                "the OAuth application is of {}, and this Git integration is at {}: register a token",
                application.url, integration.api_url
            ));
        }
        Ok(application)
    }

    async fn read(&self) -> Result<OAuthApplication, ActError> {
        let name = &self.config()?.secret;
        let path = format!("/api/v1/namespaces/{}/secrets/{name}", self.0.git.kept.namespace);
        let act = "read the OAuth application";
        let secret =
            self.0.git.kept.cluster.get(&path).await.map_err(|source| ActError::Cluster { act, source })?;
        let mend = "write clientId, clientSecret and url of the application there";
        let Some(secret) = secret else { return wrong(format!("there is no Secret {name}: {mend}")) };
        let text = |key: &str| {
            let value = secret.get("data").and_then(|data| data.get(key)?.as_str());
            let text = value.and_then(|value| String::from_utf8(STANDARD.decode(value).ok()?).ok());
            text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let (Some(id), Some(secret), Some(url)) = (text("clientId"), text("clientSecret"), text("url"))
        else {
            return wrong(format!("the Secret {name} lacks something, or it cannot be read: {mend}"));
        };
        // Checked as addresses of integrations are, since a secret is sent there.
        let unfit =
            |error: &dyn std::fmt::Display| ActError::Wrong(format!("the url of the Secret {name}: {error}"));
        Provider::GitHub.api(Some(&url)).map_err(|error| unfit(&error))?;
        let url = Url::parse(&url).map_err(|error| unfit(&error))?;
        Ok(OAuthApplication { id, secret: secret.into(), url })
    }

    async fn exchange(&self, url: &Url, body: &[(&str, &str)]) -> Result<TokenResponse, ActError> {
        let away = |source| ActError::Away { peer: PEER, act: ACT, source };
        let target =
            Target::new(url.as_str(), "").map_err(|error| ActError::Wrong(format!("url: {error}")))?;
        let config = stages_client::Config { max_idle: 0, ..stages_client::Config::new(TIMEOUT, MAX_ANSWER) };
        let client = self.0.git.calls.client(target, config).await;
        let client = client.map_err(|error| ActError::Wrong(format!("{PEER}: {error}")))?;
        let request = client.request(ACT, Method::POST, &["login", "oauth", "access_token"]).map_err(away)?;
        // As a form, which every version of GitHub takes.
        let mut form = url.clone();
        form.query_pairs_mut().clear().extend_pairs(body);
        let form = form.query().unwrap_or_default().to_owned();
        let request = request.header("accept", "application/json");
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
        let reply = client.send(ACT, request).await.map_err(away)?;
        match reply.status() {
            200 => serde_json::from_slice(reply.body()).map_err(|_| ActError::Unreadable(PEER)),
            status => Err(away(reply.into_error(Fault::Status(status)))),
        }
    }
}

impl ConsentAttempt {
    fn is_over(&self, now: i64) -> bool {
        self.until <= now
    }

    fn text(&self) -> Result<SecretString, ActError> {
        let text = serde_json::to_string(self);
        text.map(SecretString::from).map_err(|_| ActError::Wrong("that cannot be written as JSON".to_owned()))
    }
}

/// A path below an address.
fn at(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stands_below_an_address_as_it_is() {
        let below = |base: &str| at(&Url::parse(base).unwrap(), "a/b").to_string();
        assert_eq!(below("https://git.example.com"), "https://git.example.com/a/b");
        assert_eq!(below("https://git.example.com/github/?q#f"), "https://git.example.com/github/a/b");
    }

    #[test]
    fn an_attempt_is_over_after_its_time_and_is_read_as_it_was_written() {
        let of = |code: &str| ConsentAttempt {
            uid: "1f".to_owned(),
            user: "ada".to_owned(),
            integration: "default".to_owned(),
            verifier: "v".to_owned(),
            until: 600,
            code: code.to_owned(),
        };
        assert!(!of("").is_over(599) && of("").is_over(600));
        for code in ["", "c"] {
            let read: ConsentAttempt =
                serde_json::from_str(of(code).text().unwrap().expose_secret()).unwrap();
            assert_eq!((&*read.uid, &*read.user, &*read.code, read.until), ("1f", "ada", code, 600));
        }
    }

    #[test]
    fn a_challenge_is_the_one_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
