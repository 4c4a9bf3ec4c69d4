//! The certificate that a server has of its own, read anew while it runs: whoever renews it restarts nobody.
//!
//! takes: the files of a certificate and its key - gives: what connections that begin now are served with - fails: at the start
//! with [`ServerError::Tls`]; later never: what cannot be used is said, and the former one is served with

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig as Rustls;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use crate::server::{ServerError, Tls};

/// The certificate in use.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: Tls,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Reads it for the first time.
    pub(crate) fn open(files: &Tls) -> Result<Arc<Self>, ServerError> {
        stages_client::install_crypto();
        let current = RwLock::new(read(files)?);
        Ok(Arc::new(Self { files: files.clone(), current }))
    }

    /// Takes connections with whatever is in use by then.
    pub(crate) fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        let mut config = Rustls::builder().with_no_client_auth().with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    /// Reads it anew every now and then, for ever.
    pub(crate) async fn renew(self: Arc<Self>, every: Duration) {
        loop {
            tokio::time::sleep(every).await;
            let files = self.files.clone();
            match tokio::task::spawn_blocking(move || read(&files)).await {
                Ok(Ok(new)) => *self.current.write().unwrap_or_else(PoisonError::into_inner) = new,
                Ok(Err(error)) => {
                    let source = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(
                        %error,
                        source,
                        "the certificate cannot be read anew: the former one is served with"
                    );
                }
                // The process ends.
                Err(_) => return,
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

fn read(files: &Tls) -> Result<Arc<CertifiedKey>, ServerError> {
    fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(path: &Path) -> impl Fn(E) -> ServerError {
        move |source| ServerError::Tls { path: path.to_owned(), source: source.into() }
    }
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(failed(&files.certificate))?;
    if chain.is_empty() {
        return Err(failed(&files.certificate)("it holds no certificate"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(failed(&files.key))?;
    let provider = CryptoProvider::get_default().ok_or("there is no provider of TLS");
    let provider = provider.map_err(failed(&files.certificate))?;
    CertifiedKey::from_der(chain, key, provider).map(Arc::new).map_err(failed(&files.certificate))
}
