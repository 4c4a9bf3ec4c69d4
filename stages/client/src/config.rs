//! How a peer is called, and the client that is built by it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::Digest;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::{Client, ServerVerifier, Target, install_crypto, through_environment};

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
        let (http, held) = match &self.ca_file {
            Some(path) => {
                let pem = self.authorities(path)?;
                (self.trusting(path, &pem)?, Digest::of(&pem))
            }
            None => (self.trusting_system(&target)?, Digest::NONE),
        };
        Ok(Client::new(self, http, held, target))
    }

    /// A client that trusts the authorities of the system.
    fn trusting_system(&self, target: &Target) -> Result<reqwest::Client, BuildError> {
        let source = match self.builder().build() {
            Ok(http) => return Ok(http),
            Err(source) => source,
        };
        let host = target.host().clone();
        // The verifier refuses to exist without a single authority, which a slim container has none of. Plain HTTP does not need
        // one: then none is given, and no certificate ever verifies.
        match self.builder().tls_certs_only([]).build() {
            Ok(_) if target.is_https() => Err(BuildError::NoAuthorities { host }),
            Ok(http) => Ok(http),
            Err(_) => Err(BuildError::Client { host, source }),
        }
    }

    pub(crate) fn authorities(&self, path: &Path) -> Result<Vec<u8>, BuildError> {
        std::fs::read(path).map_err(|source| BuildError::CaFile { path: path.to_owned(), source })
    }

    /// A client that trusts the authorities in `pem`, the content of `path`, beside those of the system.
    pub(crate) fn trusting(&self, path: &Path, pem: &[u8]) -> Result<reqwest::Client, BuildError> {
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
