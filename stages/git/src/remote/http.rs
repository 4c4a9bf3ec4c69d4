//! Git over HTTP: `GET {url}/info/refs`, then one `POST {url}/git-upload-pack` after another, or one `git-receive-pack`.
//!
//! Credentials go to the configured host alone: a redirect to another one is not followed, and named.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Certificate, Client, Identity, Method, NoProxy, RequestBuilder, Response, StatusCode};
use secrecy::ExposeSecret as _;
use url::Url;

use super::credentials::Credential;
use super::{FetchError, RepositoryUrl};

/// Redirects that are followed one after another, all on one host.
const REDIRECTS: usize = 3;

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
    /// PEM of the authorities that are trusted beside those of the system.
    pub(super) authorities: Vec<String>,
    pub(super) connect_timeout: Duration,
    pub(super) idle: Duration,
}

/// Requests to one repository.
pub(super) struct HttpExchange {
    client: Client,
    url: RepositoryUrl,
    base: Url,
    service: Service,
    credential: Option<Credential>,
    answer: Option<Response>,
}

impl HttpExchange {
    /// Asks for the greeting, which is what is read first.
    pub(super) async fn open(call: HttpCall<'_>) -> Result<Self, FetchError> {
        let base = call.url.url().ok_or(FetchError::Address { why: "it is no URL" })?;
        let limit = call.idle;
        let (url, host) = (call.url.clone(), call.url.host());
        let client = client(&call)?;
        let credential = call.credential.cloned();
        let mut this = Self { client, url, base, service: call.service, credential, answer: None };
        tokio::time::timeout(limit, this.greet()).await.unwrap_or(Err(FetchError::Idle { host, limit }))?;
        Ok(this)
    }

    async fn greet(&mut self) -> Result<(), FetchError> {
        for _ in 0..=REDIRECTS {
            let mut address = below(&self.base, "info/refs")?;
            address.set_query(Some(&format!("service={}", self.service.name())));
            let request = self.request(Method::GET, address)?;
            let answer = request.send().await.map_err(|error| self.failed(&error))?;
            if answer.status().is_redirection() {
                self.base = self.moved(&answer)?;
                continue;
            }
            let answer = self.judged(answer)?;
            let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let wanted = format!("application/x-{}-advertisement", self.service.name());
            if kind.is_none_or(|kind| !kind.starts_with(&wanted)) {
                let why = "what is at this address is a page, or files without a server of Git's protocol"
                    .to_owned();
                return Err(FetchError::Protocol { host: self.url.host(), why });
            }
            self.answer = Some(answer);
            return Ok(());
        }
        Err(self.redirected(self.url.host()))
    }

    /// Sends a request; what is read from now on is its answer.
    pub(super) async fn post(&mut self, body: Vec<u8>) -> Result<(), FetchError> {
        self.answer = None;
        let request = self.request(Method::POST, below(&self.base, self.service.name())?)?;
        let request = request
            .header(CONTENT_TYPE, format!("application/x-{}-request", self.service.name()))
            .header(ACCEPT, format!("application/x-{}-result", self.service.name()))
            .body(body);
        let answer = request.send().await.map_err(|error| self.failed(&error))?;
        if answer.status().is_redirection() {
            let to = self.moved(&answer).map_or_else(|_| self.url.host(), |url| url.to_string());
            return Err(self.redirected(to));
        }
        self.answer = Some(self.judged(answer)?);
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
        let request = self.client.request(method, address);
        let Some(credential) = &self.credential else { return Ok(request) };
        Ok(match (&credential.bearer, &credential.password) {
            (Some(token), _) => request.bearer_auth(token.expose_secret()),
            (None, Some(password)) => {
                // Forges that take a token for a password hardly look at the name, but want one: that of Argo CD.
                let user = credential.username.as_deref().filter(|user| !user.is_empty());
                let user = user.unwrap_or("x-access-token");
                request.basic_auth(user, Some(password.expose_secret()))
            }
            (None, None) => request,
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
            Some(path) if host(&to) == host(&self.base) => {
                to.set_path(&path);
                to.set_query(None);
                Ok(to)
            }
            _ => Err(self.redirected(host(&to))),
        }
    }

    fn redirected(&self, to: String) -> FetchError {
        FetchError::Redirected { url: self.url.to_string(), to }
    }

    fn judged(&self, answer: Response) -> Result<Response, FetchError> {
        let url = || self.url.to_string();
        match answer.status() {
            status if status.is_success() => Ok(answer),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(match &self.credential {
                Some(credential) if credential.is_for_http() && credential.unsupported.is_none() => {
                    let (url, from) = (url(), credential.from.clone());
                    match self.service {
                        Service::Upload => FetchError::Refused { url, from },
                        Service::Receive => FetchError::NotWritten { url, from },
                    }
                }
                Some(credential) => credential.shows_nothing(&self.url),
                None => FetchError::NoCredentials { url: url() },
            }),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(FetchError::NoRepository { url: url() }),
            status => Err(FetchError::Status { host: self.url.host(), status: status.as_u16() }),
        }
    }

    fn failed(&self, error: &reqwest::Error) -> FetchError {
        let host = self.url.host();
        let mut why = None;
        let mut next = error.source();
        while let Some(of) = next {
            let text = of.to_string();
            if text.contains("certificate") || text.contains("UnknownIssuer") {
                return FetchError::Certificate { host, why: text };
            }
            why = Some(text);
            next = of.source();
        }
        let why = why
            .unwrap_or_else(|| if error.is_timeout() { "it takes too long" } else { "it failed" }.to_owned());
        FetchError::Connect { host, why }
    }
}

fn below(base: &Url, path: &str) -> Result<Url, FetchError> {
    let mut address = base.clone();
    address
        .path_segments_mut()
        .map_err(|()| FetchError::Address { why: "it is no URL" })?
        .pop_if_empty()
        .extend(path.split('/'));
    Ok(address)
}

fn client(call: &HttpCall<'_>) -> Result<Client, FetchError> {
    stages_client::install_crypto();
    let host = call.url.host();
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("git-protocol"), HeaderValue::from_static("version=2"));
    let mut builder = Client::builder()
        .user_agent(concat!("git/gitops-runtime-", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(call.connect_timeout)
        .pool_max_idle_per_host(1);
    let mut authorities = Vec::new();
    for pem in &call.authorities {
        let found = Certificate::from_pem_bundle(pem.as_bytes()).ok().filter(|found| !found.is_empty());
        authorities.extend(found.ok_or_else(|| FetchError::Certificate {
            host: host.clone(),
            why: "what is configured for it holds no certificate in PEM".to_owned(),
        })?);
    }
    if let Some(credential) = call.credential {
        if credential.insecure {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        if let Some(token) = &credential.bearer
            && HeaderValue::from_str(token.expose_secret()).is_err()
        {
            return Err(
                credential.unusable("its bearer token holds a line break or what else no header takes")
            );
        }
        if let Some(pem) = &credential.client_certificate {
            builder = builder.identity(identity(credential, pem.expose_secret())?);
        }
        if let Some(proxy) = &credential.proxy {
            let proxy = reqwest::Proxy::all(proxy.expose_secret())
                .map_err(|_| credential.unusable("the address of its proxy is no URL"))?;
            let without = credential.no_proxy.as_deref().and_then(NoProxy::from_string);
            builder = builder.proxy(proxy.no_proxy(without));
        }
    }
    let none = authorities.is_empty();
    builder.tls_certs_merge(authorities).build().map_err(|_| FetchError::Certificate {
        host,
        why: if none {
            "this machine has no certificate authorities"
        } else {
            "the authorities cannot be used"
        }
        .to_owned(),
    })
}

/// A client's certificate and its key.
fn identity(of: &Credential, pem: &str) -> Result<Identity, FetchError> {
    if ["-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED"]
        .iter()
        .any(|line| pem.contains(line))
    {
        return Err(of.unusable("the key of its client certificate has a passphrase: give one without"));
    }
    let read = || Identity::from_pem(pem.as_bytes());
    let identity = read().map_err(|_| of.unusable("its client certificate and key are not PEM"))?;
    // Whether they belong together is looked at where they are used, and is said there of nobody.
    let used = read().and_then(|identity| Client::builder().identity(identity).tls_certs_only([]).build());
    used.map_err(|_| of.unusable("its client certificate and its key do not belong together"))?;
    Ok(identity)
}
