//! Through which proxy the API server is reached.
//!
//! takes: the server's address, what a kubeconfig names, the environment - gives: the proxy's address - fails: with
//! [`ConfigError::Proxy`], which holds nothing of the address, because that may hold a password.
//!
//! As `kubectl` does it: what the kubeconfig names counts for every server; the environment's proxy neither for a server
//! on loopback nor for one that `NO_PROXY` excepts. kube's own reading is set aside: it compares `NO_PROXY` with the
//! address of the proxy.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

use crate::ConfigError;

/// The proxy for `server`. `named` stands in the kubeconfig, `variable` reads the environment.
pub(crate) fn of(
    server: &Uri,
    named: Option<String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Uri>, ConfigError> {
    let first = |names: &[&str]| names.iter().find_map(|name| variable(name).filter(|text| !text.is_empty()));
    let named = named.filter(|text| !text.is_empty());
    let text = match named {
        Some(named) => named,
        None if is_loopback(server) => return Ok(None),
        None => {
            let names = match server.scheme_str() {
                Some("https") => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
                _ => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
            };
            let Some(text) = first(&names) else { return Ok(None) };
            // `*.corp` are those below `corp`, which the library knows as `.corp` alone.
            let except = first(&["NO_PROXY", "no_proxy"]).unwrap_or_default().replace("*.", ".");
            // Any address will do for a proxy: the question is whether there is one.
            let matcher = Matcher::builder().all("http://proxy").no(except).build();
            if matcher.intercept(server).is_none() {
                return Ok(None);
            }
            text
        }
    };
    let text = if text.contains("://") { text } else { format!("http://{text}") };
    // Names are looked up by the proxy in either.
    let text = text.replacen("socks5h://", "socks5://", 1);
    let proxy: Uri = text.parse().map_err(|_| ConfigError::Proxy)?;
    // The client shows a SOCKS proxy no credentials.
    let has_user = proxy.authority().is_some_and(|authority| authority.as_str().contains('@'));
    match proxy.scheme_str() {
        Some("socks5") if has_user => Err(ConfigError::Proxy),
        Some("http" | "https" | "socks5") if proxy.host().is_some_and(|host| !host.is_empty()) => {
            Ok(Some(proxy))
        }
        _ => Err(ConfigError::Proxy),
    }
}

fn is_loopback(server: &Uri) -> bool {
    let Some(host) = server.host() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(server: &str, named: Option<&str>, environment: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let proxy = of(&server.parse().unwrap(), named.map(str::to_owned), variable).unwrap();
        proxy.map(|proxy| proxy.to_string())
    }

    #[test]
    fn a_proxy_is_chosen_as_kubectl_does() {
        let (far, proxy, other) = ("https://api.example:6443", "http://p:1", "http://q:2");
        let is = |proxy: &str| Some(format!("{proxy}/"));
        assert_eq!(chosen(far, None, &[]), None);
        assert_eq!(chosen(far, Some(""), &[("HTTPS_PROXY", "")]), None);
        assert_eq!(chosen(far, Some(proxy), &[("HTTPS_PROXY", other), ("NO_PROXY", "*")]), is(proxy));
        assert_eq!(chosen("https://127.0.0.1", Some(proxy), &[]), is(proxy));
        assert_eq!(chosen(far, None, &[("HTTPS_PROXY", proxy), ("HTTP_PROXY", other)]), is(proxy));
        assert_eq!(
            chosen("http://api.example", None, &[("HTTPS_PROXY", proxy), ("HTTP_PROXY", other)]),
            is(other)
        );
        assert_eq!(chosen(far, None, &[("ALL_PROXY", "p:1")]), is(proxy));
        for socks in ["socks5://p:1", "socks5h://p:1"] {
            assert_eq!(chosen(far, Some(socks), &[]), Some("socks5://p:1/".to_owned()));
        }
        for near in ["https://localhost:1", "https://127.0.0.2", "https://[::1]:1"] {
            assert_eq!(chosen(near, None, &[("HTTPS_PROXY", proxy)]), None, "{near}");
        }
        for (except, used) in [
            ("example", false),
            (".example", false),
            ("a.invalid, *.example", false),
            ("a.invalid,api.example,", false),
            ("*", false),
            ("pi.example", true),
            // The proxy's own name excepts nothing.
            ("p", true),
            ("", true),
        ] {
            let environment = [("https_proxy", proxy), ("no_proxy", except)];
            assert_eq!(chosen(far, None, &environment).is_some(), used, "{except}");
        }
        assert_eq!(
            chosen("https://10.1.2.3", None, &[("HTTPS_PROXY", proxy), ("NO_PROXY", "10.0.0.0/8")]),
            None
        );
    }
}
