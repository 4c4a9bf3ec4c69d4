//! TLS to servers whose authority is given: whom it trusts, and as whom this process connects.
//!
//! takes: files - gives: how TLS is spoken, by what they hold at each handshake - fails: the handshake, when they cannot be used
//!
//! A server that signs its certificate itself has one that is that of an authority as well, unless its maker took care: TLS
//! libraries take it once it was given as an authority, and webpki, which sees a server with the certificate of an authority,
//! never does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_nats::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use async_nats::rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier, verify_server_name};
use async_nats::rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use async_nats::rustls::pki_types::pem::PemObject as _;
use async_nats::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use async_nats::rustls::server::ParsedCertificate;
use async_nats::rustls::sign::CertifiedKey;
use async_nats::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use webpki::{EndEntityCert, KeyUsage};

/// Trusts the authorities of a file and nobody else; `identity` has the files of the client's own certificate and key.
pub(super) fn client(authorities: &Path, identity: Option<&(PathBuf, PathBuf)>) -> ClientConfig {
    let builder = ClientConfig::builder();
    let provider = Arc::clone(builder.crypto_provider());
    let trusted = Authorities { file: authorities.to_owned(), provider: Arc::clone(&provider) };
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(trusted));
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

/// A file of authorities.
#[derive(Debug)]
struct Authorities {
    file: PathBuf,
    provider: Arc<CryptoProvider>,
}

/// Whether it is, byte by byte, one that was given, that of an authority, and within its dates.
fn is_given_authority(given: &[CertificateDer<'_>], own: &CertificateDer<'_>, now: UnixTime) -> bool {
    if !given.iter().any(|one| **one == **own) {
        return false;
    }
    let Ok(own) = EndEntityCert::try_from(own) else { return false };
    // Its dates are looked at before what it is for.
    let verified = own.verify_for_usage(&[], &[], &[], now, KeyUsage::server_auth(), None, None);
    matches!(verified, Err(webpki::Error::CaUsedAsEndEntity))
}

impl ServerCertVerifier for Authorities {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let given = certificates(&self.file)?;
        if is_given_authority(&given, own, now) {
            verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        let mut roots = RootCertStore::empty();
        for one in given {
            roots.add(one)?;
        }
        let inner =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider)).build();
        let inner = inner.map_err(|error| Error::General(error.to_string()))?;
        inner.verify_server_cert(own, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, own, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, own, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
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
