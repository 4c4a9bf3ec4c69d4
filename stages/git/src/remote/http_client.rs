//! What asks hosts over HTTP: with the authorities, the proxy and the certificate that are configured for them.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Client, ClientBuilder, Identity, NoProxy};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::ExposeSecret as _;
use stages_client::{ServerVerifier, proxy_exceptions, through_environment};
use url::Url;

use super::FetchError;
use super::access::Access;
use super::credentials::Credential;
use super::ssh_key::has_passphrase;

/// What asks a host, through the proxy of a credential and with its certificate, and follows no redirect.
pub(super) fn client(
    host: &str,
    access: &Access,
    credential: Option<&Credential>,
    connect_timeout: Duration,
) -> Result<Client, FetchError> {
    stages_client::install_crypto();
    let mut builder = Client::builder();
    // The proxy of a credential goes before those of the environment.
    if credential.is_none_or(|credential| credential.proxy.is_none()) {
        builder = through_environment(builder, |name| std::env::var(name).ok());
    }
    builder = builder
        .user_agent(concat!("git/gitops-runtime-", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(connect_timeout)
        .pool_max_idle_per_host(1);
    let (mut authorities, mut own) = (Vec::new(), None);
    for pem in access.authorities(host) {
        authorities.extend(certificates(&pem).ok_or_else(|| FetchError::Certificate {
            host: host.to_owned(),
            why: "what is configured for it holds no certificate in PEM".to_owned(),
        })?);
    }
    if let Some(credential) = credential {
        if credential.insecure {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        if let Some(token) = &credential.bearer
            && HeaderValue::from_str(token.expose_secret()).is_err()
        {
            return Err(
                credential.unusable("its bearer token holds a line break or what else no header takes")
            );
        }
        if let Some(pem) = &credential.client_certificate {
            let identity = identity(credential, pem.expose_secret())?;
            builder = builder.identity(identity.clone());
            own = Some((credential, identity, pem.expose_secret()));
        }
        if let Some(proxy) = &credential.proxy {
            let proxy = reqwest::Proxy::all(proxy.expose_secret())
                .map_err(|_| credential.unusable("the address of its proxy is no URL"))?;
            let without = credential.no_proxy.as_deref().map(proxy_exceptions);
            let without = without.as_deref().and_then(NoProxy::from_string);
            builder = builder.proxy(proxy.no_proxy(without));
        }
    }
    let none = authorities.is_empty();
    let is_verified = credential.is_none_or(|credential| !credential.insecure);
    let builder = match is_verified && !none {
        true => trusting(builder, authorities, own.as_ref().map(|(_, _, pem)| *pem)),
        false => Some(builder),
    };
    builder.and_then(|builder| builder.build().ok()).ok_or_else(|| {
        // What does not fit is said of nobody: it is the certificate and its key if they do not work alone either.
        let alone = own.map(|(of, own, _)| (of, Client::builder().identity(own).tls_certs_only([]).build()));
        if let Some((of, Err(_))) = alone {
            return of.unusable("its client certificate and its key do not belong together");
        }
        let why = match none {
            true => "this machine has no certificate authorities",
            false => "the authorities cannot be used",
        };
        FetchError::Certificate { host: host.to_owned(), why: why.to_owned() }
    })
}

/// Verifies servers by these authorities, beside those of the system, and shows them what `own` holds; what the builder was told of
/// that is passed over then.
fn trusting(
    builder: ClientBuilder,
    authorities: Vec<CertificateDer<'static>>,
    own: Option<&str>,
) -> Option<ClientBuilder> {
    let own = match own {
        Some(pem) => Some((certificates(pem)?, PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()?)),
        None => None,
    };
    let tls = ServerVerifier::beside_system(authorities).and_then(|trusted| trusted.http(own));
    Some(builder.tls_backend_preconfigured(tls.ok()?))
}

/// All of a text in PEM; none where there is none, or one that cannot be read.
fn certificates(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    found.ok().filter(|found| !found.is_empty())
}

/// A client's certificate and its key.
fn identity(of: &Credential, pem: &str) -> Result<Identity, FetchError> {
    if has_passphrase(pem) {
        return Err(of.unusable("the key of its client certificate has a passphrase: give one without"));
    }
    Identity::from_pem(pem.as_bytes()).map_err(|_| of.unusable("its client certificate and key are not PEM"))
}

/// Why a host could not be asked.
pub(super) fn failed(host: String, error: &reqwest::Error) -> FetchError {
    let mut why = None;
    let mut next = error.source();
    while let Some(of) = next {
        let text = of.to_string();
        if text.contains("certificate") || text.contains("UnknownIssuer") {
            return FetchError::Certificate { host, why: text };
        }
        why = Some(text);
        next = of.source();
    }
    let why =
        why.unwrap_or_else(|| if error.is_timeout() { "it takes too long" } else { "it failed" }.to_owned());
    FetchError::Connect { host, why }
}

/// An address with more of a path.
pub(super) fn below(base: &Url, path: &str) -> Result<Url, FetchError> {
    let mut address = base.clone();
    address
        .path_segments_mut()
        .map_err(|()| FetchError::Address { why: "it is no URL" })?
        .pop_if_empty()
        .extend(path.split('/'));
    Ok(address)
}
