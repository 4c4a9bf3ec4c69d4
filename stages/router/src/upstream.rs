//! Services, and the connections to them.
//!
//! takes: a request and where it is to go - gives: the head of the answer, its body on the way
//! calls: the service, at addresses that are no older than DNS lets them be: connections are kept for a set of addresses,
//! and let go of with it
//! fails: with what may be said of it, and whether anything was sent

use std::error::Error as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri, Version};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use moka::sync::Cache;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::BuilderVerifierExt as _;
use stages_client::ServerVerifier;
use tower_service::Service;
use url::Url;

use crate::config::Proxied;
use crate::refusal::Refusal;
use crate::replayable_body::AttemptBody;

/// How long a connection without a request is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How many connections without a request are kept to a service.
const MAX_IDLE_CONNECTIONS: usize = 64;
/// How many sets of addresses connections are kept to.
const MAX_CLIENTS: u64 = 1_024;
/// How long a connection is silent before the peer is probed, so that one that went away without a word is noticed after
/// three probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
const KEEPALIVE_RETRIES: u32 = 3;
/// How many bytes the head of an answer may have over HTTP/2.
const MAX_HEAD: usize = 64 << 10;
const WINDOW: u32 = 512 << 10;

/// Why requests cannot be sent to a service.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// Its address names no host.
    #[error("the address of a service names no host")]
    Host,
    /// The authorities cannot be read.
    #[error("read the authorities in {file}")]
    Authorities {
        /// The file that they are in.
        file: PathBuf,
        /// What is wrong with them.
        source: rustls::pki_types::pem::Error,
    },
    /// The authorities cannot be used for TLS.
    #[error("take the authorities of a service")]
    Tls(#[from] rustls::Error),
}

/// A service that requests are passed on to.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    scheme: Scheme,
    pub(crate) host: String,
    authority: Authority,
    pub(crate) port: u16,
    /// The path that all its paths begin with, without a slash at the end.
    base: String,
    tls: Option<Arc<ClientConfig>>,
}

impl Upstream {
    pub(crate) fn new(proxied: &Proxied) -> Result<Self, UpstreamError> {
        let Proxied { url, ca_file, insecure, .. } = proxied;
        let (host, port) = address(url).ok_or(UpstreamError::Host)?;
        let text = url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        let secure = url.scheme() == "https";
        let tls = if secure { Some(Arc::new(tls_config(ca_file.as_ref(), *insecure)?)) } else { None };
        Ok(Self {
            scheme: if secure { Scheme::HTTPS } else { Scheme::HTTP },
            authority: text.parse().map_err(|_| UpstreamError::Host)?,
            host,
            port,
            base: url.path().trim_end_matches('/').to_owned(),
            tls,
        })
    }

    /// A service that is spoken to without TLS.
    pub(crate) fn plain(host: String, port: u16) -> Result<Self, UpstreamError> {
        let text = if port == 80 { host.clone() } else { format!("{host}:{port}") };
        let authority = text.parse().map_err(|_| UpstreamError::Host)?;
        Ok(Self { scheme: Scheme::HTTP, host, authority, port, base: String::new(), tls: None })
    }

    /// The address of `path` at this service; `path` begins with a slash.
    pub(crate) fn uri(&self, path: &str, query: Option<&str>) -> Result<Uri, Refusal> {
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let path: PathAndQuery =
            format!("{}{path}{query}", self.base).parse().map_err(|_| Refusal::Encoding)?;
        let whole =
            Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone()).path_and_query(path);
        whole.build().map_err(|_| Refusal::Encoding)
    }
}

fn address(url: &Url) -> Option<(String, u16)> {
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}

fn tls_config(ca_file: Option<&PathBuf>, insecure: bool) -> Result<ClientConfig, UpstreamError> {
    let builder = ClientConfig::builder();
    if insecure {
        let any = ServerVerifier::by(|_| Ok(()));
        return Ok(builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth());
    }
    let Some(file) = ca_file else { return Ok(builder.with_platform_verifier()?.with_no_client_auth()) };
    let failed = |source| UpstreamError::Authorities { file: file.clone(), source };
    let given: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect).map_err(failed)?;
    let verifier = ServerVerifier::alone(given)?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Why a request was not answered.
#[derive(Debug)]
pub(crate) struct SendError {
    pub(crate) refusal: Refusal,
    /// Whether nothing of the request was sent.
    pub(crate) unsent: bool,
}

type HttpClient = Client<HttpsConnector<HttpConnector<FixedAddresses>>, AttemptBody>;

/// What connections are kept by: the service, its set of addresses, and whether HTTP/2 is spoken to it.
type PoolKey = (Scheme, Authority, Arc<[IpAddr]>, bool);

/// Connections to services.
pub(crate) struct Pool {
    clients: Cache<PoolKey, HttpClient>,
    connect_timeout: Duration,
}

impl Pool {
    pub(crate) fn new(connect_timeout: Duration) -> Self {
        Self {
            clients: Cache::builder().max_capacity(MAX_CLIENTS).time_to_idle(2 * IDLE_TIMEOUT).build(),
            connect_timeout,
        }
    }

    /// Sends a request to one of the addresses, over a connection that is kept or a new one, in the request's version of HTTP.
    pub(crate) async fn send(
        &self,
        upstream: &Upstream,
        addresses: Arc<[IpAddr]>,
        request: Request<AttemptBody>,
    ) -> Result<Response<Incoming>, SendError> {
        let http2 = request.version() == Version::HTTP_2;
        let place = (upstream.scheme.clone(), upstream.authority.clone(), addresses.clone(), http2);
        let client = self.clients.get_with(place, || self.client(upstream, addresses, http2));
        client.request(request).await.map_err(|error| failed(&error))
    }

    fn client(&self, upstream: &Upstream, addresses: Arc<[IpAddr]>, http2: bool) -> HttpClient {
        let mut tcp = HttpConnector::new_with_resolver(FixedAddresses {
            addresses,
            port: upstream.port,
            turn: Arc::default(),
        });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(self.connect_timeout));
        tcp.set_keepalive(Some(KEEPALIVE_INTERVAL));
        tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
        tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
        let tls = match &upstream.tls {
            Some(tls) => tls.as_ref().clone(),
            // It is never used, as the service is spoken to without TLS.
            None => {
                ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
            }
        };
        let tls = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let connector = match http2 {
            true => tls.enable_http2().wrap_connector(tcp),
            false => tls.enable_http1().wrap_connector(tcp),
        };
        Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .http1_max_buf_size(MAX_HEAD.max(256 << 10))
            .http2_only(http2)
            .http2_initial_stream_window_size(WINDOW)
            .http2_initial_connection_window_size(4 * WINDOW)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .http2_max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
            .build(connector)
    }
}

fn failed(error: &Error) -> SendError {
    if error.is_connect() {
        let mut source = error.source();
        let mut late = false;
        while let Some(error) = source {
            late |= error.downcast_ref::<io::Error>().is_some_and(|it| it.kind() == io::ErrorKind::TimedOut);
            source = error.source();
        }
        let refusal = if late { Refusal::ConnectTimeout } else { Refusal::Unreachable };
        return SendError { refusal, unsent: true };
    }
    let parse =
        error.source().and_then(|it| it.downcast_ref::<hyper::Error>()).is_some_and(hyper::Error::is_parse);
    SendError { refusal: if parse { Refusal::Protocol } else { Refusal::Broken }, unsent: false }
}

/// Resolves every name to the same addresses, and begins with another one for each connection.
#[derive(Debug, Clone)]
struct FixedAddresses {
    addresses: Arc<[IpAddr]>,
    port: u16,
    /// Counts the connections; clones share it, as the client clones this for each connection.
    turn: Arc<AtomicUsize>,
}

impl Service<Name> for FixedAddresses {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = std::future::Ready<Result<Self::Response, io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        let mut all: Vec<SocketAddr> =
            self.addresses.iter().map(|address| SocketAddr::new(*address, self.port)).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % all.len().max(1);
        all.rotate_left(turn);
        std::future::ready(Ok(all.into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    #[tokio::test]
    async fn a_service_is_trusted_whose_own_certificate_was_given_as_its_authority_and_for_its_name_alone() {
        stages_client::install_crypto();
        let mut of = CertificateParams::new(vec!["service".to_owned()]).unwrap();
        of.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let own = of.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, own.pem()).unwrap();
        let client = TlsConnector::from(Arc::new(tls_config(Some(&file), false).unwrap()));
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let server = ServerConfig::builder().with_no_client_auth();
        let server =
            TlsAcceptor::from(Arc::new(server.with_single_cert(vec![own.der().clone()], key).unwrap()));
        for (name, is_trusted) in [("service", true), ("elsewhere", false)] {
            let (near, far) = tokio::io::duplex(64 << 10);
            let (shown, _) = tokio::join!(client.connect(name.try_into().unwrap(), near), server.accept(far));
            assert_eq!(shown.is_ok(), is_trusted, "{name}");
        }
    }

    #[test]
    fn each_connection_begins_with_another_address_whichever_copy_makes_it() {
        let addresses: Arc<[IpAddr]> = Arc::new([IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])]);
        let fixed = FixedAddresses { addresses, port: 80, turn: Arc::default() };
        let first = || fixed.clone().call("x".parse().unwrap()).into_inner().unwrap().next();
        assert_ne!(first(), first());
    }
}
