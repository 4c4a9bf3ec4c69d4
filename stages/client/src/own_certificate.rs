//! The certificate that a server has of its own, read anew while it runs: whoever renews it restarts nobody.
//!
//! takes: the files of a certificate and its key - gives: what connections that begin now are served with - fails: at the start
//! with [`CertificateError`]; later never: what cannot be used is said, and the former one is served with

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// A certificate and its key, in PEM; read anew while a server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The file of the chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// The file of its key.
    pub key: PathBuf,
}

/// A certificate or its key is of no use.
#[derive(Debug, thiserror::Error)]
#[error("use {path}, which is to hold a certificate or its key, in PEM")]
pub struct CertificateError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: Box<dyn Error + Send + Sync>,
}

/// The certificate in use.
#[derive(Debug)]
pub struct OwnCertificate {
    files: CertificateFiles,
    current: RwLock<Arc<CertifiedKey>>,
}

impl OwnCertificate {
    /// Reads it for the first time. Blocks.
    ///
    /// # Errors
    /// [`CertificateError`] when a file cannot be read, or the two are no certificate and its key.
    pub fn open(files: CertificateFiles) -> Result<Arc<Self>, CertificateError> {
        crate::install_crypto();
        let current = RwLock::new(read(&files)?);
        Ok(Arc::new(Self { files, current }))
    }

    /// Serves connections with whatever is in use by then, over one of these protocols, such as `h2`.
    #[must_use]
    pub fn serving(self: &Arc<Self>, protocols: &[&str]) -> Arc<ServerConfig> {
        let mut config = ServerConfig::builder().with_no_client_auth().with_cert_resolver(self.clone());
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    /// Reads it anew every now and then, for ever.
    pub async fn renew(self: Arc<Self>, every: Duration) {
        loop {
            tokio::time::sleep(every).await;
            let files = self.files.clone();
            match tokio::task::spawn_blocking(move || read(&files)).await {
                Ok(Ok(new)) => *self.current.write().unwrap_or_else(PoisonError::into_inner) = new,
                Ok(Err(error)) => {
                    let error: &dyn Error = &error;
                    tracing::warn!(
                        error,
                        "the certificate cannot be read anew: the former one is served with"
                    );
                }
                // The process ends, or reading it has panicked and said so.
                Err(_) => {}
            }
        }
    }
}

impl ResolvesServerCert for OwnCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

fn read(files: &CertificateFiles) -> Result<Arc<CertifiedKey>, CertificateError> {
    fn failed<E: Into<Box<dyn Error + Send + Sync>>>(path: &Path) -> impl Fn(E) -> CertificateError {
        move |source| CertificateError { path: path.to_owned(), source: source.into() }
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
