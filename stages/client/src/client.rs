//! The client of one peer: connections that are kept, time limits, bounded answers, no redirects. The file of
//! certificate authorities is followed: once it holds others, they are trusted, and no connection is kept that was made
//! before.
//!
//! takes: requests to one [`Target`] - gives: a [`Reply`] of any status - fails: with [`HttpError`] when
//! there is no whole answer. The environment's proxy settings hold. A request that is part of a traced event carries its
//! `traceparent`. Never retries.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use pipeline_core::{Call, Digest, Meter, Timestamp};
use reqwest::header::{LOCATION, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::error::{of_body, of_request};
use crate::metered::Metered;
use crate::target::authority;
use crate::{
    Fault, HttpError, ServerVerifier, Target, Token, install_crypto, reason_of_status, retry_after,
    through_environment,
};

/// Of an answer that is not 2xx so much is kept: enough for the peer's own error text.
const ERROR_BODY: usize = 64 * 1024;

/// The body of an answer of which the head was enough is read for so long, so that its connection may serve the next call.
const DRAIN: Duration = Duration::from_millis(100);

/// A connection that nobody needed for so long is closed: after a burst a peer holds no more of them than it is called by.
const IDLE: Duration = Duration::from_secs(30);

/// How a peer is called.
#[derive(Debug, Clone)]
pub struct Config {
    /// PEM file of certificate authorities that are trusted beside those of the system, and of certificates that peers themselves
    /// have.
    pub ca_file: Option<PathBuf>,
    /// Trust any certificate. For a peer inside a cluster that has a self-signed one and no better way.
    pub insecure_skip_verify: bool,
    /// How often `ca_file` is looked at, while there are calls.
    pub look: Duration,
    /// Limit of connecting, TLS included.
    pub connect_timeout: Duration,
    /// Limit of a whole call, from connecting to the last byte.
    pub timeout: Duration,
    /// Bytes of a 2xx body after decompression; a larger one is an error.
    pub max_body: usize,
    /// Idle connections that are kept for the next call.
    pub max_idle: usize,
}

impl Config {
    /// Calls that may take so long, and be answered with so many bytes.
    #[must_use]
    pub fn new(timeout: Duration, max_body: usize) -> Self {
        Self {
            ca_file: None,
            insecure_skip_verify: false,
            look: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(10),
            timeout,
            max_body,
            max_idle: 64,
        }
    }
}

/// Calls one peer. Cloning shares its connections.
#[derive(Debug, Clone)]
pub struct Client {
    /// Makes requests; they are sent by the one that trusts what the file holds now.
    http: reqwest::Client,
    trusting: Arc<Trusting>,
    target: Target,
    max_body: usize,
    metered: Option<Metered>,
}

/// The client that trusts what the file of certificate authorities held when it was looked at last.
#[derive(Debug)]
struct Trusting {
    config: Config,
    now: Mutex<Trusted>,
}

#[derive(Debug)]
struct Trusted {
    http: reqwest::Client,
    /// What the file held, also if it could not be used.
    held: Digest,
    looked: Instant,
}

/// A client that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The file of certificate authorities cannot be read.
    #[error("cannot read the certificate authorities of {}", path.display())]
    CaFile {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of certificate authorities holds none.
    #[error("{} holds no certificate in PEM", path.display())]
    NoCertificate {
        /// Which file.
        path: PathBuf,
    },
    /// The file of certificate authorities holds something else than certificates.
    #[error("{} holds a certificate that cannot be read", path.display())]
    BadCertificate {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nothing to verify an `https` peer with.
    #[error("this machine has no certificate authorities to verify {host} with: name a file that holds them")]
    NoAuthorities {
        /// Which peer.
        host: Arc<str>,
    },
    /// Anything else.
    #[error("cannot build the HTTP client of {host}")]
    Client {
        /// Which peer.
        host: Arc<str>,
        /// Why.
        source: reqwest::Error,
    },
    /// The thread that built it is gone: the process is stopping.
    #[error("the HTTP client was not built: the process is stopping")]
    Stopping,
}

impl Config {
    /// Builds the client of `target`. Reads the system's certificate authorities and `ca_file` once, on a
    /// thread that may block.
    ///
    /// # Errors
    /// [`BuildError`] as its variants say.
    pub async fn build(self, target: Target) -> Result<Client, BuildError> {
        tokio::task::spawn_blocking(move || self.build_blocking(target))
            .await
            .unwrap_or(Err(BuildError::Stopping))
    }

    fn build_blocking(self, target: Target) -> Result<Client, BuildError> {
        install_crypto();
        let mut held = Digest(0);
        let http = match &self.ca_file {
            Some(path) => {
                let pem = self.authorities(path)?;
                held = Digest::of(&pem);
                self.trusting(path, &pem)?
            }
            None => match self.builder().build() {
                Ok(http) => http,
                // The verifier refuses to exist without a single authority, which a slim container has none
                // of. Plain HTTP does not need one: then none is given, and no certificate ever verifies.
                Err(source) => match self.builder().tls_certs_only([]).build() {
                    Ok(_) if target.is_https() => {
                        return Err(BuildError::NoAuthorities { host: target.host().clone() });
                    }
                    Ok(http) => http,
                    Err(_) => return Err(BuildError::Client { host: target.host().clone(), source }),
                },
            },
        };
        let now = Mutex::new(Trusted { http: http.clone(), held, looked: Instant::now() });
        let max_body = self.max_body;
        Ok(Client {
            http,
            trusting: Arc::new(Trusting { config: self, now }),
            target,
            max_body,
            metered: None,
        })
    }

    fn authorities(&self, path: &Path) -> Result<Vec<u8>, BuildError> {
        std::fs::read(path).map_err(|source| BuildError::CaFile { path: path.to_owned(), source })
    }

    /// A client that trusts the authorities in `pem`, the content of `path`, beside those of the system.
    fn trusting(&self, path: &Path, pem: &[u8]) -> Result<reqwest::Client, BuildError> {
        fn bad<E: Into<Box<dyn std::error::Error + Send + Sync>>>(path: &Path) -> impl Fn(E) -> BuildError {
            move |source| BuildError::BadCertificate { path: path.to_owned(), source: source.into() }
        }
        let found: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(bad(path))?;
        if found.is_empty() {
            return Err(BuildError::NoCertificate { path: path.to_owned() });
        }
        let mut builder = self.builder();
        // Whoever trusts any certificate asks no authority.
        if !self.insecure_skip_verify {
            let tls = ServerVerifier::beside_system(found).and_then(|trusted| trusted.http(None));
            builder = builder.tls_backend_preconfigured(tls.map_err(bad(path))?);
        }
        builder.build().map_err(bad(path))
    }

    fn builder(&self) -> reqwest::ClientBuilder {
        through_environment(reqwest::Client::builder(), |name| std::env::var(name).ok())
            .user_agent(concat!("gitops-runtime/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(self.connect_timeout)
            .timeout(self.timeout)
            .pool_max_idle_per_host(self.max_idle)
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true)
            .tls_danger_accept_invalid_certs(self.insecure_skip_verify)
    }
}

impl Client {
    /// Tells a meter of every call from now on: how it ended, and how long that took; of one that is [opened](Client::open), until
    /// the head of its answer was there.
    #[must_use]
    pub fn metered(self, call: Call, meter: Arc<dyn Meter>) -> Self {
        Self { metered: Some(Metered { call, meter }), ..self }
    }

    /// Begins a request to the path made of `segments` below the target's base.
    ///
    /// # Errors
    /// A segment that cannot be addressed.
    pub fn request(
        &self,
        act: &'static str,
        method: Method,
        segments: &[&str],
    ) -> Result<RequestBuilder, HttpError> {
        let url = self.target.url(segments).map_err(|error| self.error(act, Fault::Address(error)))?;
        Ok(self.http.request(method, url))
    }

    /// Begins a request to `path` below the target's base; `path` and its query are escaped already.
    ///
    /// # Errors
    /// A path that cannot be addressed.
    pub fn request_escaped(
        &self,
        act: &'static str,
        method: Method,
        path: &str,
    ) -> Result<RequestBuilder, HttpError> {
        let url = self.target.escaped(path).map_err(|error| self.error(act, Fault::Address(error)))?;
        Ok(self.http.request(method, url))
    }

    /// Begins a request to the URL that the peer itself gave as that of one of its endpoints.
    ///
    /// # Errors
    /// A URL that is not at the target's host.
    pub fn request_at(
        &self,
        act: &'static str,
        method: Method,
        url: &Url,
    ) -> Result<RequestBuilder, HttpError> {
        let url = self.target.told(url).map_err(|error| self.error(act, Fault::Address(error)))?;
        Ok(self.http.request(method, url))
    }

    /// Adds the `Authorization` header `prefix` + token.
    ///
    /// # Errors
    /// A token that cannot be used.
    pub async fn authorize(
        &self,
        act: &'static str,
        request: RequestBuilder,
        token: &Token,
        prefix: &str,
    ) -> Result<RequestBuilder, HttpError> {
        let value = token.header(prefix).await.map_err(|error| self.error(act, Fault::Token(error)))?;
        Ok(request.header(reqwest::header::AUTHORIZATION, value))
    }

    /// Sends a request and reads its answer, whatever its status. `act` completes "cannot ..." in errors.
    ///
    /// # Errors
    /// No answer, or a 2xx answer that is too large, cut short, or not what its encoding says.
    pub async fn send(&self, act: &'static str, request: RequestBuilder) -> Result<Reply, HttpError> {
        self.exchange(act, request, Some(self.max_body)).await
    }

    /// As [`Client::send`], with a limit of its own for the body of a 2xx.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_within(
        &self,
        act: &'static str,
        request: RequestBuilder,
        limit: usize,
    ) -> Result<Reply, HttpError> {
        self.exchange(act, request, Some(limit.min(self.max_body))).await
    }

    /// Sends a request of whose answer only the head matters: it stands once that is complete, whatever becomes of its
    /// body, which is neither given nor waited for. Whoever sends a status has decided; a connection that breaks before
    /// the head's end is an error, one whose body is long or late is not used again.
    ///
    /// # Errors
    /// No answer.
    pub async fn deliver(&self, act: &'static str, request: RequestBuilder) -> Result<Reply, HttpError> {
        self.exchange(act, request, None).await
    }

    /// Sends a request and gives its answer before it has ended, if it is a 2xx: what comes may come for as long as the request's
    /// own limit says. Any other answer is read as [`Client::send`] reads it.
    ///
    /// # Errors
    /// No answer.
    pub async fn open(
        &self,
        act: &'static str,
        request: RequestBuilder,
    ) -> Result<Result<Opened, Reply>, HttpError> {
        let fail = |error| self.error(act, of_request(error));
        let request = request.build().map_err(fail)?;
        let begun = Instant::now();
        let answered = Trusting::now(&self.trusting).await.execute(request).await.map_err(fail);
        if let Some(metered) = &self.metered {
            let failed = match &answered {
                Ok(response) => reason_of_status(response.status().as_u16()),
                Err(error) => Some(error.reason()),
            };
            metered.record(begun, failed);
        }
        let mut response = answered?;
        let host = self.target.host().clone();
        if response.status().is_success() {
            return Ok(Ok(Opened { act, host, response }));
        }
        let body = beginning(&mut response).await;
        Ok(Err(Reply::new(act, host, &response, body)))
    }

    /// The peer's host, for messages and logs.
    #[must_use]
    pub fn host(&self) -> &Arc<str> {
        self.target.host()
    }

    /// An error of this peer.
    #[must_use]
    pub fn error(&self, act: &'static str, fault: Fault) -> HttpError {
        HttpError::new(act, self.target.host().clone(), fault)
    }

    async fn exchange(
        &self,
        act: &'static str,
        request: RequestBuilder,
        limit: Option<usize>,
    ) -> Result<Reply, HttpError> {
        let begun = Instant::now();
        let answered = self.answer(act, request, limit).await;
        if let Some(metered) = &self.metered {
            let failed = match &answered {
                Ok(reply) => reason_of_status(reply.status),
                Err(error) => Some(error.reason()),
            };
            metered.record(begun, failed);
        }
        answered
    }

    async fn answer(
        &self,
        act: &'static str,
        request: RequestBuilder,
        limit: Option<usize>,
    ) -> Result<Reply, HttpError> {
        let request = match pipeline_core::traceparent() {
            Some(trace) => request.header("traceparent", &*trace),
            None => request,
        };
        let fail = |error| self.error(act, of_request(error));
        let request = request.build().map_err(fail)?;
        let mut response = Trusting::now(&self.trusting).await.execute(request).await.map_err(fail)?;
        let body = match limit {
            Some(limit) if response.status().is_success() => {
                whole(&mut response, limit).await.map_err(|fault| self.error(act, fault))?
            }
            Some(_) => beginning(&mut response).await,
            None => {
                // Whether it came to its end does not matter.
                let _ = tokio::time::timeout(DRAIN, beginning(&mut response)).await;
                Bytes::new()
            }
        };
        Ok(Reply::new(act, self.target.host().clone(), &response, body))
    }
}

impl Trusting {
    /// The client that is used now. Looks at the file at most so often, and leaves the runtime's threads for it; who
    /// asks meanwhile is not kept waiting.
    async fn now(this: &Arc<Self>) -> reqwest::Client {
        {
            let mut now = this.lock();
            if this.config.ca_file.is_none() || now.looked.elapsed() < this.config.look {
                return now.http.clone();
            }
            now.looked = Instant::now();
        }
        let look = this.clone();
        // It fails when the process is stopping.
        let _ = tokio::task::spawn_blocking(move || look.look()).await;
        this.lock().http.clone()
    }

    /// Trusts what the file holds by now. One that cannot be read or used leaves in force what was.
    fn look(&self) {
        let Some(path) = &self.config.ca_file else { return };
        let Ok(pem) = self.config.authorities(path) else { return };
        let held = Digest::of(&pem);
        if self.lock().held == held {
            return;
        }
        let trusting = self.config.trusting(path, &pem);
        let mut now = self.lock();
        now.held = held;
        let path = path.display();
        match trusting {
            Ok(http) => {
                now.http = http;
                tracing::info!(%path, "other certificate authorities are trusted from now on");
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%path, error, "the certificate authorities read before stay in use");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Trusted> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that is read as it comes.
pub struct Opened {
    act: &'static str,
    host: Arc<str>,
    response: Response,
}

impl Opened {
    /// A header of it, unless it is no text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// What came next; `None` at its end. Of the size that it came in: whoever puts pieces together bounds that. Nothing is lost
    /// where nobody waits for it to the end.
    ///
    /// # Errors
    /// It was cut short, or its time is over.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let (act, host) = (self.act, &self.host);
        self.response.chunk().await.map_err(|error| HttpError::new(act, host.clone(), of_body(error)))
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("host", &self.host).finish_non_exhaustive()
    }
}

/// An answer.
pub struct Reply {
    act: &'static str,
    host: Arc<str>,
    status: u16,
    after: Option<Duration>,
    location: Option<String>,
    body: Bytes,
}

impl Reply {
    /// What the head of an answer says, and what is kept of its body.
    fn new(act: &'static str, host: Arc<str>, response: &Response, body: Bytes) -> Self {
        let status = response.status().as_u16();
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let after = text(RETRY_AFTER).and_then(|value| retry_after(value, Timestamp::now()));
        let location = text(LOCATION)
            .filter(|_| (300..400).contains(&status))
            .and_then(|location| response.url().join(location).ok())
            .and_then(|url: Url| authority(&url));
        Self { act, host, status, after, location, body }
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Its body; of an answer that is not 2xx at most the first 64 KiB, and nothing where only the head was asked for.
    /// Never to be logged.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// How long the peer asks to wait.
    #[must_use]
    pub fn after(&self) -> Option<Duration> {
        self.after
    }

    /// The error that this answer is for a reason of its own, e.g. because it is not the JSON expected.
    #[must_use]
    pub fn into_error(self, fault: Fault) -> HttpError {
        HttpError::new(self.act, self.host, fault).with_after(self.after)
    }

    /// The answer itself if it is a 2xx.
    ///
    /// # Errors
    /// Any other status.
    pub fn checked(self) -> Result<Self, HttpError> {
        match self.status {
            200..=299 => Ok(self),
            status @ 300..=399 => {
                let host = self.location.clone();
                Err(self.into_error(Fault::Redirect { status, host }))
            }
            status => Err(self.into_error(Fault::Status(status))),
        }
    }

    /// The body of a 2xx.
    ///
    /// # Errors
    /// Any other status.
    pub fn into_body(self) -> Result<Bytes, HttpError> {
        self.checked().map(|reply| reply.body)
    }
}

impl std::fmt::Debug for Reply {
    /// Without the body, which may hold anything.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The whole body, or why there is none. Counts decoded bytes, so that a small archive cannot become a
/// large answer.
async fn whole(response: &mut Response, limit: usize) -> Result<Bytes, Fault> {
    let announced = usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(Fault::TooLarge { limit });
    }
    // What is announced may never come: room is made ahead for an ordinary answer only.
    let mut body = Vec::with_capacity(announced.min(1024 * 1024));
    while let Some(chunk) = response.chunk().await.map_err(of_body)? {
        if body.len() + chunk.len() > limit {
            return Err(Fault::TooLarge { limit });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.into())
}

/// The beginning of a body that may be as long and as broken as it likes: the status has said enough.
async fn beginning(response: &mut Response) -> Bytes {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = ERROR_BODY - body.len();
        if chunk.len() >= room {
            body.extend(chunk.iter().take(room));
            break;
        }
        body.extend_from_slice(&chunk);
    }
    body.into()
}
