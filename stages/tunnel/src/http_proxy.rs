//! The way to a server through a proxy that the environment names.
//!
//! takes: the server's host, and what `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say, in either case - gives: a connection
//! that the proxy leads there - fails: with [`ProxyError`], which holds nothing of the proxy's address, because that may hold a
//! password

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use stages_client::proxy_exceptions;
use tokio::net::TcpStream;
use tower_service::Service as _;

/// Why there is no way through a proxy.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// Its address is none, or of a kind that is not spoken.
    #[error(
        "the proxy that the environment names for the tunnel server is to begin with http:// and name a host"
    )]
    Address,
    /// It was not reached, or leads nowhere.
    #[error("ask the proxy: {0}")]
    Refused(String),
}

/// A proxy.
#[derive(Clone)]
pub(crate) struct HttpProxy(Intercept);

impl fmt::Debug for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpProxy({self})")
    }
}

impl fmt::Display for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uri = self.0.uri();
        f.write_str(uri.host().unwrap_or_default())?;
        uri.port_u16().map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl HttpProxy {
    /// That for a server; `None` for one on this machine, or one that is excepted.
    pub(crate) fn of(
        host: &str,
        is_secure: bool,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ProxyError> {
        if is_here(host) {
            return Ok(None);
        }
        let said = |names: [&str; 2]| {
            let mut texts = names.into_iter().filter_map(&variable).map(|text| text.trim().to_owned());
            texts.find(|text| !text.is_empty()).unwrap_or_default()
        };
        let proxies = Matcher::builder()
            .all(said(["ALL_PROXY", "all_proxy"]))
            .http(said(["HTTP_PROXY", "http_proxy"]))
            .https(said(["HTTPS_PROXY", "https_proxy"]))
            .no(proxy_exceptions(&said(["NO_PROXY", "no_proxy"])))
            .build();
        let scheme = if is_secure { "https" } else { "http" };
        let server: Uri = format!("{scheme}://{host}").parse().map_err(|_| ProxyError::Address)?;
        match proxies.intercept(&server) {
            Some(proxy) if proxy.uri().scheme_str() != Some("http") => Err(ProxyError::Address),
            proxy => Ok(proxy.map(Self)),
        }
    }

    /// A connection to a host and port.
    pub(crate) async fn connect(&self, to: &str) -> Result<TcpStream, ProxyError> {
        let to: Uri = format!("https://{to}").parse().map_err(|_| ProxyError::Address)?;
        let mut tunnel = Tunnel::new(self.0.uri().clone(), HttpConnector::new());
        if let Some(login) = self.0.basic_auth() {
            tunnel = tunnel.with_auth(login.clone());
        }
        match tunnel.call(to).await {
            Ok(io) => Ok(io.into_inner()),
            Err(error) => {
                let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
                Err(ProxyError::Refused(format!("{error}{}", source.unwrap_or_default())))
            }
        }
    }
}

fn is_here(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(host: &str, environment: &[(&str, &str)]) -> Result<Option<String>, String> {
        let variable = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let proxy = HttpProxy::of(host, true, variable).map_err(|error| error.to_string())?;
        Ok(proxy.map(|proxy| proxy.to_string()))
    }

    #[test]
    fn the_environment_says_which_proxy_leads_to_which_server() {
        let far = "tunnels.example.com";
        let is = |proxy: &str| Ok(Some(proxy.to_owned()));
        assert_eq!(chosen(far, &[]), Ok(None));
        assert_eq!(chosen(far, &[("HTTP_PROXY", "http://p:1")]), Ok(None));
        assert_eq!(chosen(far, &[("HTTPS_PROXY", "http://p:1"), ("ALL_PROXY", "http://q:2")]), is("p:1"));
        assert_eq!(chosen(far, &[("HTTPS_PROXY", ""), ("https_proxy", "http://user:canary@p:1")]), is("p:1"));
        assert_eq!(chosen(far, &[("all_proxy", "p:1")]), is("p:1"));
        for except in ["example.com", ".example.com", "*.example.com", "*", "a.invalid, tunnels.example.com"]
        {
            assert_eq!(chosen(far, &[("HTTPS_PROXY", "p:1"), ("NO_PROXY", except)]), Ok(None), "{except}");
        }
        assert_eq!(chosen(far, &[("HTTPS_PROXY", "p:1"), ("no_proxy", "other.example.com,p")]), is("p:1"));
        assert_eq!(chosen("10.1.2.3", &[("HTTPS_PROXY", "p:1"), ("NO_PROXY", "10.0.0.0/8")]), Ok(None));
        for near in ["localhost", "127.0.0.2", "[::1]"] {
            assert_eq!(chosen(near, &[("HTTPS_PROXY", "p:1")]), Ok(None), "{near}");
        }
        for other in ["socks5://p:1", "https://p:1"] {
            assert_eq!(
                chosen(far, &[("HTTPS_PROXY", other)]),
                Err(ProxyError::Address.to_string()),
                "{other}"
            );
        }
    }
}
