//! Which servers TLS trusts: those of authorities, and one whose own certificate was given as an authority.
//!
//! takes: certificates of authorities - gives: a verifier of servers' certificates - fails: with what TLS says of authorities
//! that cannot be used
//!
//! A server that signs its certificate itself has one that is that of an authority as well, unless its maker took care: TLS
//! libraries take it once it was given as an authority, and webpki, which sees a server with the certificate of an authority, never
//! does.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use webpki::{EndEntityCert, KeyUsage};

/// Makes ring the TLS provider of the process. May be called any number of times, and after somebody else
/// installed a provider, which then stays.
///
/// One provider for every client of the process, because two that are both compiled in and neither chosen
/// make the first TLS connection panic.
pub fn install_crypto() {
    if CryptoProvider::get_default().is_none() {
        // An error means that another thread was faster: then there is a provider, which is what is wanted.
        drop(ring::default_provider().install_default());
    }
}

fn provider() -> Arc<CryptoProvider> {
    install_crypto();
    CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()))
}

/// What a server shows at a handshake.
#[derive(Debug)]
pub struct Presented<'a> {
    /// Its own certificate.
    pub own: &'a CertificateDer<'a>,
    /// Those between its own and an authority's.
    pub between: &'a [CertificateDer<'a>],
    name: &'a ServerName<'a>,
    ocsp: &'a [u8],
    now: UnixTime,
}

impl Presented<'_> {
    fn verify_by(&self, verifier: &dyn ServerCertVerifier) -> Result<(), Error> {
        verifier.verify_server_cert(self.own, self.between, self.name, self.ocsp, self.now).map(drop)
    }

    /// Whether its own certificate is, byte by byte, one that was given, that of an authority, and within its dates. Whoever has
    /// its key could sign one for each name of a server: that this very one is taken, for the names in it, lets nobody in who would
    /// be kept out else.
    fn is_given_authority(&self, given: &[CertificateDer<'_>]) -> bool {
        if !given.iter().any(|one| **one == **self.own) {
            return false;
        }
        let Ok(own) = EndEntityCert::try_from(self.own) else { return false };
        // Its dates are looked at before what it is for.
        let verified = own.verify_for_usage(&[], &[], &[], self.now, KeyUsage::server_auth(), None, None);
        matches!(verified, Err(webpki::Error::CaUsedAsEndEntity))
    }

    fn verify_name(&self) -> Result<(), Error> {
        verify_server_name(&ParsedCertificate::try_from(self.own)?, self.name)
    }
}

/// Whether a server is trusted.
type Rule = dyn Fn(&Presented<'_>) -> Result<(), Error> + Send + Sync;

/// Verifies the certificates of servers by a rule, and the signatures of handshakes as the provider of TLS does.
pub struct ServerVerifier {
    rule: Box<Rule>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerVerifier {
    /// Trusts those for which the rule gives no error.
    pub fn by(rule: impl Fn(&Presented<'_>) -> Result<(), Error> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { rule: Box::new(rule), algorithms: provider().signature_verification_algorithms })
    }

    /// Trusts these beside the system's authorities, which it reads. Blocks.
    ///
    /// # Errors
    /// One of them cannot be used, or there is none here nor there.
    pub fn beside_system(given: Vec<CertificateDer<'static>>) -> Result<Arc<Self>, Error> {
        let inner = rustls_platform_verifier::Verifier::new_with_extra_roots(given.clone(), provider())?;
        Ok(Self::with_given(given, Arc::new(inner)))
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
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
        let inner = inner.map_err(|error| Error::General(error.to_string()))?;
        Ok(Self::with_given(given, inner))
    }

    /// Trusts those that are read at each handshake, and nobody else. One that cannot be used keeps out whom an authority is to vouch
    /// for, and nobody whose own certificate was given.
    pub fn reading(
        read: impl Fn() -> Result<Vec<CertificateDer<'static>>, Error> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::by(move |presented| {
            let given = read()?;
            if presented.is_given_authority(&given) {
                return presented.verify_name();
            }
            Self::alone(given)?.verify(presented)
        })
    }

    fn with_given(given: Vec<CertificateDer<'static>>, inner: Arc<dyn ServerCertVerifier>) -> Arc<Self> {
        Self::by(move |presented| {
            if presented.is_given_authority(&given) {
                return presented.verify_name();
            }
            presented.verify_by(&*inner)
        })
    }

    /// Whether it trusts who presents this.
    ///
    /// # Errors
    /// Why not.
    pub fn verify(&self, presented: &Presented<'_>) -> Result<(), Error> {
        (self.rule)(presented)
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
}

impl fmt::Debug for ServerVerifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerVerifier").finish_non_exhaustive()
    }
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
        self.verify(&Presented { own, between, name, ocsp, now })?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, own, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, own, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
