//! Certificates of the simulators: an authority of their own, and servers that do or do not verify.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// An authority that signs the simulators' certificates.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// What a server's certificate is like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Identity {
    /// It verifies.
    #[default]
    Good,
    /// It is for another host.
    WrongHost,
    /// It has expired.
    Expired,
    /// It verifies, and ends within days.
    Ending,
}

impl Authority {
    /// A new authority with a key of its own.
    pub fn new() -> anyhow::Result<Self> {
        let mut params = CertificateParams::new(Vec::new()).context("describe the authority")?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "simulated authority");
        let key = KeyPair::generate().context("make the authority's key")?;
        let certificate = params.self_signed(&key).context("sign the authority's certificate")?;
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// The authority's certificate, to be trusted by a client.
    #[must_use]
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// A certificate for `names` and its key, both as PEM.
    pub fn signed(&self, names: Vec<String>) -> anyhow::Result<(String, String)> {
        let params = CertificateParams::new(names).context("describe the certificate")?;
        let key = KeyPair::generate().context("make the certificate's key")?;
        let certificate = params.signed_by(&key, &self.issuer).context("sign the certificate")?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    /// TLS settings of a server on loopback.
    pub fn server(&self, identity: Identity) -> anyhow::Result<Arc<ServerConfig>> {
        let names = match identity {
            Identity::Good | Identity::Expired | Identity::Ending => {
                vec!["127.0.0.1".to_owned(), "localhost".to_owned()]
            }
            Identity::WrongHost => vec!["elsewhere.example.com".to_owned()],
        };
        let mut params = CertificateParams::new(names).context("describe the certificate")?;
        params.distinguished_name.push(DnType::CommonName, "simulator");
        if identity == Identity::Expired {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        }
        if identity == Identity::Ending {
            params.not_after = (SystemTime::now() + Duration::from_secs(5 * 24 * 60 * 60)).into();
        }
        self.settings(&params)
    }

    /// TLS settings of a server that is reached by these names.
    pub fn server_of(&self, names: Vec<String>) -> anyhow::Result<Arc<ServerConfig>> {
        self.settings(&CertificateParams::new(names).context("describe the certificate")?)
    }

    fn settings(&self, params: &CertificateParams) -> anyhow::Result<Arc<ServerConfig>> {
        let key = KeyPair::generate().context("make the certificate's key")?;
        let certificate = params.signed_by(&key, &self.issuer).context("sign the certificate")?;
        showing(&certificate, &key)
    }
}

/// TLS settings of a server on loopback that signed its certificate itself, as OpenSSL does unless it is told otherwise: it is
/// that of an authority as well; and that certificate, as PEM.
pub fn of_itself() -> anyhow::Result<(String, Arc<ServerConfig>)> {
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let mut params = CertificateParams::new(names).context("describe the certificate")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().context("make the certificate's key")?;
    let certificate = params.self_signed(&key).context("sign the certificate")?;
    Ok((certificate.pem(), showing(&certificate, &key)?))
}

fn showing(certificate: &Certificate, key: &KeyPair) -> anyhow::Result<Arc<ServerConfig>> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("choose TLS versions")?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .context("set up the certificate")?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
