//! How a client reaches a server: TCP, through a proxy where the environment names one, TLS if the address says so, and the
//! upgrade to a WebSocket.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::BuilderVerifierExt as _;
use stages_client::ServerVerifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

use crate::http_proxy::{HttpProxy, ProxyError};
use crate::read_ahead::ReadAhead;
use crate::session::Io;
use crate::ws::{accept_of, new_key};

/// How many bytes of a refusal are read, to say what the server answered.
const MAX_REFUSAL: usize = 4 << 10;

/// Where a server is, and which certificates of it are taken.
#[derive(Clone)]
pub struct Dial {
    url: Url,
    tls: Option<TlsConnector>,
    proxy: Option<HttpProxy>,
    within: Duration,
}

impl std::fmt::Debug for Dial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dial").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// Why no connection to a server was made.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The address is none of a server.
    #[error("the address of a tunnel server begins with https://, http://, wss:// or ws:// and names a host")]
    Address,
    /// The authorities cannot be read.
    #[error("read the certificate authorities of {path}")]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system's certificate authorities cannot be used.
    #[error("use TLS")]
    Tls(#[source] rustls::Error),
    /// There is no connection.
    #[error("connect to {host}")]
    Connect {
        /// The host.
        host: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What the environment names as a proxy is none.
    #[error(transparent)]
    Proxy(ProxyError),
    /// The proxy does not lead there.
    #[error("connect to {host} through the proxy {proxy}")]
    Through {
        /// The host.
        host: String,
        /// The proxy's host and port.
        proxy: String,
        /// Why.
        #[source]
        source: ProxyError,
    },
    /// What answers there does not speak the protocol.
    #[error("ask {host} for a tunnel")]
    Ask {
        /// The host.
        host: String,
        /// Why.
        #[source]
        source: hyper::Error,
    },
    /// It said no.
    #[error("{host} refused the tunnel with {status}: {said}")]
    Refused {
        /// The host.
        host: String,
        /// With which status.
        status: StatusCode,
        /// What it said, in one line.
        said: String,
    },
    /// It answered something that no server says.
    #[error("{0} does not speak WebSocket as it should")]
    Accept(String),
    /// It took too long.
    #[error("{0} did not answer in time")]
    Late(String),
}

impl Dial {
    /// `authorities` are trusted instead of the system's; each try is given up after `within`.
    ///
    /// # Errors
    /// [`DialError`].
    pub fn new(url: &Url, authorities: Option<&Path>, within: Duration) -> Result<Self, DialError> {
        let is_secure = match url.scheme() {
            "https" | "wss" => true,
            "http" | "ws" => false,
            _ => return Err(DialError::Address),
        };
        if url.host_str().is_none_or(str::is_empty) {
            return Err(DialError::Address);
        }
        stages_client::install_crypto();
        let tls = if is_secure { Some(connector(authorities)?) } else { None };
        Ok(Self { url: url.clone(), tls, proxy: None, within })
    }

    /// Goes through the proxy that the environment names for the server, as `variable` reads it.
    ///
    /// # Errors
    /// [`DialError::Proxy`].
    pub fn through(mut self, variable: impl Fn(&str) -> Option<String>) -> Result<Self, DialError> {
        let host = self.url.host_str().unwrap_or_default();
        self.proxy = HttpProxy::of(host, self.is_secure(), variable).map_err(DialError::Proxy)?;
        Ok(self)
    }

    /// Whether what is sent is secret.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Host and port as a header has them.
    #[must_use]
    pub(crate) fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Where a page would have come from.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", if self.is_secure() { "https" } else { "http" }, self.full())
    }

    /// Host and port, always with the port.
    fn full(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        format!("{host}:{}", self.port())
    }

    fn port(&self) -> u16 {
        self.url.port().unwrap_or(if self.is_secure() { 443 } else { 80 })
    }

    /// Connects and upgrades at `path`, with `headers` beside those of a WebSocket.
    pub(crate) async fn upgrade(
        &self,
        path: &str,
        headers: HeaderMap,
    ) -> Result<TokioIo<Upgraded>, DialError> {
        tokio::time::timeout(self.within, self.upgraded(path, headers))
            .await
            .unwrap_or_else(|_| Err(DialError::Late(self.full())))
    }

    async fn connect(&self) -> Result<Box<dyn Io>, DialError> {
        // An address in brackets is connected to without them.
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let failed = |source| DialError::Connect { host: self.full(), source };
        let stream = match &self.proxy {
            None => TcpStream::connect((host, self.port())).await.map_err(failed)?,
            Some(proxy) => proxy.connect(&self.full()).await.map_err(|source| DialError::Through {
                host: self.full(),
                proxy: proxy.to_string(),
                source,
            })?,
        };
        stream.set_nodelay(true).map_err(failed)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other).map_err(failed)?;
        Ok(Box::new(tls.connect(name, ReadAhead::new(stream)).await.map_err(failed)?))
    }

    async fn upgraded(&self, path: &str, headers: HeaderMap) -> Result<TokioIo<Upgraded>, DialError> {
        let host = || self.full();
        let io = self.connect().await?;
        let ask = |source| DialError::Ask { host: host(), source };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(io)).await.map_err(ask)?;
        let driving = tokio::spawn(connection.with_upgrades());
        let key = new_key().map_err(|source| DialError::Connect { host: host(), source })?;
        let mut request = Request::builder()
            .uri(path)
            .header(header::HOST, self.authority())
            .header(header::UPGRADE, "websocket")
            .header(header::CONNECTION, "Upgrade")
            .header(header::SEC_WEBSOCKET_KEY, &key)
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .body(Empty::<Bytes>::new())
            .map_err(|_| DialError::Address)?;
        request.headers_mut().extend(headers);
        let mut answer = sender.send_request(request).await.map_err(ask)?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = answer.status();
            let body = Limited::new(answer.into_body(), MAX_REFUSAL).collect().await;
            let said = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
            let said = said.unwrap_or_default().replace(char::is_control, " ").trim().to_owned();
            driving.abort();
            return Err(DialError::Refused { host: host(), status, said });
        }
        let accept = answer.headers().get(header::SEC_WEBSOCKET_ACCEPT);
        if accept.is_none_or(|accept| accept.as_bytes() != accept_of(&key).as_bytes()) {
            return Err(DialError::Accept(host()));
        }
        hyper::upgrade::on(&mut answer).await.map(TokioIo::new).map_err(ask)
    }
}

fn connector(authorities: Option<&Path>) -> Result<TlsConnector, DialError> {
    let builder = ClientConfig::builder();
    let mut config = match authorities {
        None => builder.with_platform_verifier().map_err(DialError::Tls)?.with_no_client_auth(),
        Some(path) => {
            let failed = |source: Box<dyn std::error::Error + Send + Sync>| DialError::Authorities {
                path: path.to_owned(),
                source,
            };
            let given: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect)
                .map_err(|error| failed(error.into()))?;
            if given.is_empty() {
                return Err(failed("it holds no certificate".into()));
            }
            let verifier = ServerVerifier::alone(given).map_err(|error| failed(error.into()))?;
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
