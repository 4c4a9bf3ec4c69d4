//! Servers on loopback that end with the test, and the client that calls them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use stages_client::{Client, Config, HttpError, Method, Reply, Target};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

/// Serves `router` without TLS; gives its base address.
pub(crate) async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// A certificate authority of its own, as PEM, and a TLS configuration with a certificate that it signed.
pub(crate) struct Authority {
    pub(crate) pem: String,
    acceptor: TlsAcceptor,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        stages_client::install_crypto();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "test authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        Self::showing(issuer.pem(), &certificate, &key)
    }

    /// One whose own certificate is that of the server as well, for `name`, as OpenSSL makes one unless it is told otherwise.
    pub(crate) fn itself(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        stages_client::install_crypto();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        Self::showing(own.pem(), &own, &key)
    }

    fn showing(pem: String, own: &Certificate, key: &KeyPair) -> Self {
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], key)
            .unwrap();
        Self { pem, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }

    /// Serves `router` with TLS; gives its base address.
    pub(crate) async fn serve(&self, router: Router) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tls = Tls { listener, acceptor: self.acceptor.clone() };
        tokio::spawn(async move { axum::serve(tls, router).await });
        format!("https://{address}")
    }
}

struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.listener.accept().await.unwrap();
            // A client that does not trust the certificate ends its handshake: the next one may.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// Calls as they usually are.
pub(crate) fn config() -> Config {
    Config::new(Duration::from_secs(30), 64 << 20)
}

/// A client of `address`.
pub(crate) async fn client(address: &str, config: Config) -> Client {
    config.build(Target::new(address, "").unwrap()).await.unwrap()
}

/// `GET {address}/thing`, as "read the thing".
pub(crate) async fn get(client: &Client) -> Result<Reply, HttpError> {
    let request = client.request("read the thing", Method::GET, &["thing"])?;
    client.send("read the thing", request).await
}

/// Host and port of a base address.
pub(crate) fn host(address: &str) -> &str {
    address.split_once("://").unwrap().1
}

/// The chain of an error, outermost first.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> Vec<String> {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect()
}
