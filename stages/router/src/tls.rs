//! TLS: the router's own certificate, and services that have one which nobody signs.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, ServerConfig, SignatureScheme};
use tokio_rustls::TlsAcceptor;

use crate::config::CertificateFiles;

/// Why a certificate is not served with.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("read {file}, which is to hold a certificate, or its key, in PEM")]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// The two do not belong together, or are no certificate and key.
    #[error("serve with the certificate in {file}")]
    Pair {
        /// The certificate's file.
        file: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// The certificate in use.
pub(crate) struct Certificate {
    files: CertificateFiles,
    current: RwLock<TlsAcceptor>,
}

impl Certificate {
    pub(crate) fn read(files: CertificateFiles) -> Result<Self, CertificateError> {
        let current = RwLock::new(acceptor(&files)?);
        Ok(Self { files, current })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes what stands in the files now; keeps what there was where that is no certificate.
    pub(crate) fn refresh(&self) {
        match acceptor(&self.files) {
            Ok(new) => *self.current.write().unwrap_or_else(PoisonError::into_inner) = new,
            Err(error) => {
                tracing::warn!(%error, "the certificate cannot be read anew: the former one is served with");
            }
        }
    }
}

fn acceptor(files: &CertificateFiles) -> Result<TlsAcceptor, CertificateError> {
    let failed = |file: &PathBuf| {
        let file = file.clone();
        move |source| CertificateError::File { file, source }
    };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(failed(&files.certificate))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(failed(&files.key))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|source| CertificateError::Pair { file: files.certificate.clone(), source })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Takes a service for what it says it is.
#[derive(Debug)]
pub(crate) struct AnyCertificate(WebPkiSupportedAlgorithms);

impl AnyCertificate {
    pub(crate) fn new() -> Arc<Self> {
        let ring = || Arc::new(rustls::crypto::ring::default_provider());
        let provider = CryptoProvider::get_default().cloned().unwrap_or_else(ring);
        Arc::new(Self(provider.signature_verification_algorithms))
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
