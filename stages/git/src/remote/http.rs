//! Git over HTTP: `GET {url}/info/refs`, then one `POST {url}/git-upload-pack` after another, or one `git-receive-pack`.
//!
//! Credentials go to the configured host alone: a redirect to another one is not followed, and named; one to HTTPS there is followed.
//! The token of a GitHub App is asked for first; one that is kept and refused all at once is replaced once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use secrecy::ExposeSecret as _;
use url::Url;

use super::access::Access;
use super::connection::first_line;
use super::credentials::Credential;
use super::github_tokens::{AppCall, GitHubApps, Token};
use super::http_client::{below, client, failed};
use super::no_token::ALONE;
use super::{FetchError, RepositoryUrl};

/// Redirects that are followed one after another, all on one host.
const REDIRECTS: usize = 3;
/// The user to whom a token belongs, to forges that want one.
const TOKEN_USER: &str = "x-access-token";
/// Bytes that are read of why a host refuses.
const MOST_SAID: usize = 4_096;

/// What a server is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// To send.
    Upload,
    /// To take.
    Receive,
}

impl Service {
    const fn name(self) -> &'static str {
        match self {
            Self::Upload => "git-upload-pack",
            Self::Receive => "git-receive-pack",
        }
    }
}

/// What the HTTP way is given.
pub(super) struct HttpCall<'a> {
    pub(super) url: &'a RepositoryUrl,
    pub(super) service: Service,
    pub(super) credential: Option<&'a Credential>,
    /// Whose authorities are trusted beside those of the system.
    pub(super) access: &'a Access,
    /// Where the tokens of GitHub Apps are kept.
    pub(super) apps: &'a GitHubApps,
    pub(super) connect_timeout: Duration,
    pub(super) idle: Duration,
}

impl<'a> HttpCall<'a> {
    /// Whose token is shown, where the credential is that of a GitHub App.
    fn app(&self) -> Option<AppCall<'a>> {
        let Self { url, access, apps, connect_timeout, .. } = *self;
        let credential = self.credential?;
        let app = credential.github_app.as_ref()?;
        Some(AppCall { apps, app, credential, url, access, connect_timeout })
    }
}

/// Requests to one repository.
pub(super) struct HttpExchange {
    client: Client,
    url: RepositoryUrl,
    base: Url,
    service: Service,
    credential: Option<Credential>,
    /// Of a GitHub App.
    token: Option<Arc<Token>>,
    answer: Option<Response>,
}

impl HttpExchange {
    /// Asks for the greeting, which is what is read first.
    pub(super) async fn open(call: HttpCall<'_>) -> Result<Self, FetchError> {
        let base = call.url.url().ok_or(FetchError::Address { why: "it is no URL" })?;
        let limit = call.idle;
        let (url, host) = (call.url.clone(), call.url.host());
        let client = client(&host, call.access, call.credential, call.connect_timeout)?;
        let app = call.app();
        let token = match &app {
            Some(app) => Some(app.token(None, Timestamp::now()).await?),
            None => None,
        };
        let credential = call.credential.cloned();
        let mut this = Self { client, url, base, service: call.service, credential, token, answer: None };
        let greeted = tokio::time::timeout(limit, this.greet(app.as_ref())).await;
        greeted.unwrap_or(Err(FetchError::Idle { host, limit }))?;
        Ok(this)
    }

    async fn greet(&mut self, app: Option<&AppCall<'_>>) -> Result<(), FetchError> {
        for _ in 0..=REDIRECTS {
            let mut answer = self.ask().await?;
            if answer.status() == StatusCode::UNAUTHORIZED && self.renew(app).await? {
                answer = self.ask().await?;
            }
            if answer.status().is_redirection() {
                self.base = self.moved(&answer)?;
                continue;
            }
            let answer = self.judged(answer).await?;
            let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let wanted = format!("application/x-{}-advertisement", self.service.name());
            if kind.is_none_or(|kind| !kind.starts_with(&wanted)) {
                let why = "what is at this address is a page, or files without a server of Git's protocol"
                    .to_owned();
                return Err(FetchError::Protocol { host: self.url.host(), why });
            }
            if let Some(token) = &self.token {
                token.was_taken();
            }
            self.answer = Some(answer);
            return Ok(());
        }
        Err(self.redirected(self.url.host()))
    }

    async fn ask(&self) -> Result<Response, FetchError> {
        let mut address = below(&self.base, "info/refs")?;
        address.set_query(Some(&format!("service={}", self.service.name())));
        let request = self.request(Method::GET, address)?;
        request.send().await.map_err(|error| failed(self.url.host(), &error))
    }

    /// Has another token in the place of one that was taken once and no more is.
    async fn renew(&mut self, app: Option<&AppCall<'_>>) -> Result<bool, FetchError> {
        let Some((app, refused)) = app.zip(self.token.take_if(|token| token.has_been_taken())) else {
            return Ok(false);
        };
        self.token = Some(app.token(Some(&refused), Timestamp::now()).await?);
        Ok(true)
    }

    /// Sends a request; what is read from now on is its answer.
    pub(super) async fn post(&mut self, body: Vec<u8>) -> Result<(), FetchError> {
        self.answer = None;
        let request = self.request(Method::POST, below(&self.base, self.service.name())?)?;
        let request = request
            .header(CONTENT_TYPE, format!("application/x-{}-request", self.service.name()))
            .header(ACCEPT, format!("application/x-{}-result", self.service.name()))
            .body(body);
        let answer = request.send().await.map_err(|error| failed(self.url.host(), &error))?;
        if answer.status().is_redirection() {
            let to = self.moved(&answer).map_or_else(|_| self.url.host(), |url| url.to_string());
            return Err(self.redirected(to));
        }
        self.answer = Some(self.judged(answer).await?);
        Ok(())
    }

    /// The next bytes of the answer; `None` at its end.
    pub(super) async fn read(&mut self) -> Result<Option<Bytes>, FetchError> {
        let Some(answer) = &mut self.answer else { return Ok(None) };
        answer.chunk().await.map_err(|_| FetchError::Connect {
            host: self.url.host(),
            why: "the connection broke in the middle of an answer".to_owned(),
        })
    }

    fn request(&self, method: Method, address: Url) -> Result<RequestBuilder, FetchError> {
        let request = self.client.request(method, address).header("git-protocol", "version=2");
        let Some(credential) = &self.credential else { return Ok(request) };
        Ok(match (&credential.bearer, &credential.password, &self.token) {
            (Some(token), ..) => request.bearer_auth(token.expose_secret()),
            (None, Some(password), _) => {
                // Forges that take a token for a password hardly look at the name, but want one: that of Argo CD.
                let user = credential.username.as_deref().filter(|user| !user.is_empty());
                let user = user.unwrap_or(TOKEN_USER);
                request.basic_auth(user, Some(password.expose_secret()))
            }
            (None, None, Some(token)) => request.basic_auth(TOKEN_USER, Some(token.secret())),
            (None, None, None) => request,
        })
    }

    /// Where the greeting is by now: on the same host, and not with less protection.
    fn moved(&self, answer: &Response) -> Result<Url, FetchError> {
        let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
        let to = to.and_then(|to| answer.url().join(to).ok());
        let Some(mut to) = to else { return Err(self.redirected("nowhere".to_owned())) };
        let host = |url: &Url| {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
        };
        let path = to.path().strip_suffix("/info/refs").map(str::to_owned);
        match path {
            Some(path) if may_follow(&self.base, &to) => {
                to.set_path(&path);
                to.set_query(None);
                Ok(to)
            }
            Some(_) => Err(self.redirected(host(&to))),
            None => Err(FetchError::Protocol {
                host: self.url.host(),
                why: format!(
                    "it sends whoever asks to a page of {}, such as one to sign in: give credentials that it takes, or let this process \
                     past what stands before it",
                    host(&to)
                ),
            }),
        }
    }

    fn redirected(&self, to: String) -> FetchError {
        FetchError::Redirected { url: self.url.to_string(), to }
    }

    async fn judged(&self, answer: Response) -> Result<Response, FetchError> {
        let url = || self.url.to_string();
        let after = left_alone(&answer);
        match answer.status() {
            status if status.is_success() => Ok(answer),
            StatusCode::FORBIDDEN if after.is_some() => Err(self.unsuccessful(&answer, after)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(match &self.credential {
                Some(credential) if credential.is_for_http() && credential.unsupported.is_none() => {
                    let (url, from, said) = (url(), credential.from.clone(), said(answer).await);
                    match self.service {
                        Service::Upload => FetchError::Refused { url, from, said },
                        Service::Receive => FetchError::NotWritten { url, from, said },
                    }
                }
                Some(credential) => credential.shows_nothing(&self.url),
                None => FetchError::NoCredentials { url: url() },
            }),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(FetchError::NoRepository { url: url() }),
            _ => Err(self.unsuccessful(&answer, after)),
        }
    }

    fn unsuccessful(&self, answer: &Response, after: Option<Duration>) -> FetchError {
        FetchError::Status { host: self.url.host(), status: answer.status().as_u16(), after }
    }
}

/// Whether what is asked of one address may be asked of another: on the same host, and not with less protection.
fn may_follow(from: &Url, to: &Url) -> bool {
    let is_same = from.scheme() == to.scheme() && from.port() == to.port();
    let is_secured =
        from.scheme() == "http" && to.scheme() == "https" && from.port().is_none() && to.port().is_none();
    from.host_str() == to.host_str() && (is_same || is_secured)
}

/// For how long a host wants to be asked nothing.
fn left_alone(answer: &Response) -> Option<Duration> {
    let header = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let after = header.and_then(|value| stages_client::retry_after(value, Timestamp::now()));
    let usual = (answer.status() == StatusCode::TOO_MANY_REQUESTS).then_some(ALONE.0);
    after.or(usual).map(|after| after.min(ALONE.1))
}

/// Why a host refuses, in its own words, where these are for people: a list of addresses that may ask, or another way to sign in.
async fn said(mut answer: Response) -> Option<String> {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.filter(|kind| kind.starts_with("text/plain"))?;
    let mut body = Vec::new();
    while body.len() < MOST_SAID {
        let Ok(Some(more)) = answer.chunk().await else { break };
        body.extend_from_slice(&more);
    }
    first_line(&String::from_utf8_lossy(&body))
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::may_follow;

    #[test]
    fn a_redirect_is_followed_on_the_same_host_and_to_more_protection_alone() {
        let follows = |from: &str, to: &str| may_follow(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
        for (from, to) in [
            ("https://git.example/a", "https://git.example/a.git"),
            ("http://git.example/a", "https://git.example/a"),
            ("http://git.example:80/a", "https://git.example:443/a"),
            ("http://git.example:3000/a", "http://git.example:3000/b"),
        ] {
            assert!(follows(from, to), "{from} {to}");
        }
        for (from, to) in [
            ("https://git.example/a", "http://git.example/a"),
            ("https://git.example/a", "https://other.example/a"),
            ("http://git.example/a", "https://other.example/a"),
            ("http://git.example/a", "http://git.example:8080/a"),
            ("http://git.example:3000/a", "https://git.example/a"),
            ("http://git.example/a", "https://git.example:8443/a"),
        ] {
            assert!(!follows(from, to), "{from} {to}");
        }
    }
}
