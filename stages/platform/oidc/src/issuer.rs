//! An issuer: what a provider is called by, and where its discovery document stands below.

use std::net::IpAddr;
use std::sync::Arc;

use openidconnect::IssuerUrl;
use url::{Host, Url};

/// An issuer, as it was written: `https://id.example.com` and `https://id.example.com/` are two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    pub(crate) url: IssuerUrl,
    host: Arc<str>,
}

/// What is no issuer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IssuerError {
    /// No URL.
    #[error("is not a URL such as https://id.example.com")]
    NotAUrl,
    /// Whoever is on the way could vouch for anybody.
    #[error("must begin with https://; http:// is taken of this machine alone")]
    Plain,
    /// An issuer has neither.
    #[error("must not hold a user name, a password, a query or a fragment")]
    Parts,
}

impl Issuer {
    /// Reads an issuer.
    ///
    /// # Errors
    /// [`IssuerError`], as its variants say.
    pub fn parse(text: &str) -> Result<Self, IssuerError> {
        let url = Url::parse(text).map_err(|_| IssuerError::NotAUrl)?;
        let is_local = match url.host().ok_or(IssuerError::NotAUrl)? {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => IpAddr::V4(address).is_loopback(),
            Host::Ipv6(address) => IpAddr::V6(address).is_loopback(),
        };
        if url.scheme() != "https" && !(url.scheme() == "http" && is_local) {
            return Err(IssuerError::Plain);
        }
        let named = !url.username().is_empty() || url.password().is_some();
        if named || url.query().is_some() || url.fragment().is_some() {
            return Err(IssuerError::Parts);
        }
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let url = IssuerUrl::new(text.to_owned()).map_err(|_| IssuerError::NotAUrl)?;
        Ok(Self { url, host: host.into() })
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Its host, with its port where one is given; what people are told of it.
    #[must_use]
    pub fn host(&self) -> &Arc<str> {
        &self.host
    }

    pub(crate) fn is_https(&self) -> bool {
        self.url.url().scheme() == "https"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_https_or_on_this_machine_and_stays_as_it_was_written() {
        for (text, host) in [
            ("https://id.example.com", "id.example.com"),
            ("https://id.example.com/", "id.example.com"),
            ("https://id.example.com:8443/realms/main", "id.example.com:8443"),
            ("http://localhost:9000/o/", "localhost:9000"),
            ("http://127.0.0.7", "127.0.0.7"),
            ("http://[::1]:80/x", "[::1]"),
        ] {
            let issuer = Issuer::parse(text).unwrap();
            assert_eq!((issuer.as_str(), &**issuer.host()), (text, host));
            assert_eq!(issuer.is_https(), text.starts_with("https"));
        }
        let plain = "must begin with https://; http:// is taken of this machine alone";
        let parts = "must not hold a user name, a password, a query or a fragment";
        for (text, why) in [
            ("id.example.com", "is not a URL such as https://id.example.com"),
            ("https://", "is not a URL such as https://id.example.com"),
            ("http://id.example.com", plain),
            ("http://localhost.example.com", plain),
            ("http://10.0.0.1", plain),
            ("ftp://127.0.0.1", plain),
            ("https://me:secret@id.example.com", parts),
            ("https://id.example.com?x=1", parts),
            ("https://id.example.com#x", parts),
        ] {
            assert_eq!(Issuer::parse(text).unwrap_err().to_string(), why, "{text}");
        }
    }
}
