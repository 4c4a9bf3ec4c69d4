//! TLS to servers whose authority is given: whom it trusts, and as whom this process connects.
//!
//! takes: files - gives: how TLS is spoken, by what they hold at each handshake - fails: the handshake, when they cannot be used

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_nats::rustls::client::{ResolvesClientCert, Resumption};
use async_nats::rustls::crypto::CryptoProvider;
use async_nats::rustls::pki_types::pem::PemObject as _;
use async_nats::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use async_nats::rustls::sign::CertifiedKey;
use async_nats::rustls::{ClientConfig, Error, SignatureScheme};
use pipeline_trust::ServerVerifier;

/// Trusts the authorities of a file and nobody else; `identity` has the files of the client's own certificate and key.
pub(super) fn client(authorities: &Path, identity: Option<&(PathBuf, PathBuf)>) -> ClientConfig {
    let builder = ClientConfig::builder();
    let provider = Arc::clone(builder.crypto_provider());
    let file = authorities.to_owned();
    let trusted = ServerVerifier::reading(move || certificates(&file));
    let builder = builder.dangerous().with_custom_certificate_verifier(trusted);
    let mut config = match identity {
        Some((certificate, key)) => {
            let own = Identity { certificate: certificate.clone(), key: key.clone(), provider };
            builder.with_client_cert_resolver(Arc::new(own))
        }
        None => builder.with_no_client_auth(),
    };
    // A session that goes on would look at no file.
    config.resumption = Resumption::disabled();
    config
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    match read {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(Error::General(format!("{} holds no certificates in PEM", file.display()))),
    }
}

/// The files of a certificate and its key.
#[derive(Debug)]
struct Identity {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
}

impl ResolvesClientCert for Identity {
    /// While the two do not belong together, as between the write of one and that of the other, none is shown, and a server
    /// that wants one refuses.
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let chain = certificates(&self.certificate).ok()?;
        let key = PrivateKeyDer::from_pem_file(&self.key).ok()?;
        CertifiedKey::from_der(chain, key, &self.provider).ok().map(Arc::new)
    }

    fn has_certs(&self) -> bool {
        true
    }
}
