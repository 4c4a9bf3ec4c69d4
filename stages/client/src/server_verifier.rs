//! Which servers TLS trusts: those of authorities, and one whose own certificate was given as an authority.
//!
//! takes: certificates of authorities - gives: a verifier of servers' certificates - fails: with what TLS says of authorities
//! that cannot be used
//!
//! A server that signs its certificate itself has one that is that of an authority as well, unless its maker took care: TLS
//! libraries take it once it was given as an authority, and webpki, which sees a server with the certificate of an authority, never
//! does.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use webpki::{EndEntityCert, KeyUsage};

/// Verifies the certificates of servers.
#[derive(Debug)]
pub struct ServerVerifier {
    inner: Arc<dyn ServerCertVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl ServerVerifier {
    /// Trusts these beside the system's authorities, which it reads. Blocks.
    ///
    /// # Errors
    /// One of them cannot be used, or there is none here nor there.
    pub fn beside_system(given: Vec<CertificateDer<'static>>) -> Result<Arc<Self>, Error> {
        let inner = rustls_platform_verifier::Verifier::new_with_extra_roots(given.clone(), provider()?)?;
        Ok(Arc::new(Self { inner: Arc::new(inner), given }))
    }

    /// Trusts these and nobody else.
    ///
    /// # Errors
    /// One of them cannot be used, or there is none.
    pub fn alone(given: Vec<CertificateDer<'static>>) -> Result<Arc<Self>, Error> {
        let mut roots = RootCertStore::empty();
        for one in &given {
            roots.add(one.clone())?;
        }
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()?).build();
        let inner = inner.map_err(|error| Error::General(error.to_string()))?;
        Ok(Arc::new(Self { inner, given }))
    }

    /// How a client of HTTP/1.1 speaks TLS to whom it trusts, with a certificate of its own and the key of that.
    ///
    /// # Errors
    /// The certificate and the key do not belong together.
    pub fn http(
        self: Arc<Self>,
        own: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    ) -> Result<ClientConfig, Error> {
        let builder = ClientConfig::builder().dangerous().with_custom_certificate_verifier(self);
        let mut config = match own {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    /// Whether it is, byte by byte, one that was given, that of an authority, and within its dates. Whoever has its key could sign
    /// one for each name of a server: that this very one is taken, for the names in it, lets nobody in who would be kept out else.
    fn is_given_authority(&self, own: &CertificateDer<'_>, now: UnixTime) -> bool {
        if !self.given.iter().any(|one| **one == **own) {
            return false;
        }
        let Ok(own) = EndEntityCert::try_from(own) else { return false };
        // Its dates are looked at before what it is for.
        let verified = own.verify_for_usage(&[], &[], &[], now, KeyUsage::server_auth(), None, None);
        matches!(verified, Err(webpki::Error::CaUsedAsEndEntity))
    }
}

fn provider() -> Result<Arc<CryptoProvider>, Error> {
    crate::install_crypto();
    let none = || Error::General("there is no provider of TLS".to_owned());
    CryptoProvider::get_default().cloned().ok_or_else(none)
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.is_given_authority(own, now) {
            verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.inner.verify_server_cert(own, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, own, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, own, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
