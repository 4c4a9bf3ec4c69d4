//! Who is asked through no proxy, as Go reads it: `*.corp` excepts those below `corp`, as `.corp` does. The libraries here take it for
//! the name of one host, which none has.

use reqwest::{ClientBuilder, NoProxy, Proxy};

/// How a proxy is made of its address.
type Kind = fn(String) -> reqwest::Result<Proxy>;

/// Hosts between commas that are asked without a proxy, as the libraries read them.
#[must_use]
pub fn proxy_exceptions(text: &str) -> String {
    text.replace("*.", ".")
}

/// Asks through the proxies of the environment, which `variable` reads. The library does so by itself where it reads the exceptions as
/// they are meant.
pub fn through_environment(
    mut builder: ClientBuilder,
    variable: impl Fn(&str) -> Option<String>,
) -> ClientBuilder {
    const KINDS: [([&str; 2], Kind); 3] = [
        (["HTTP_PROXY", "http_proxy"], Proxy::http::<String>),
        (["HTTPS_PROXY", "https_proxy"], Proxy::https::<String>),
        (["ALL_PROXY", "all_proxy"], Proxy::all::<String>),
    ];
    let first = |names: [&str; 2]| names.into_iter().find_map(&variable);
    let Some(exceptions) = first(["NO_PROXY", "no_proxy"]).filter(|all| all.contains("*.")) else {
        return builder;
    };
    let exceptions = NoProxy::from_string(&proxy_exceptions(&exceptions));
    for (names, kind) in KINDS {
        let Some(proxy) = first(names).filter(|proxy| !proxy.is_empty()) else { continue };
        let proxy = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
        // What is no address of a proxy the library passes over as well.
        if let Ok(proxy) = kind(proxy) {
            builder = builder.proxy(proxy.no_proxy(exceptions.clone()));
        }
    }
    builder
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::Router;
    use tokio::net::TcpListener;

    use super::*;

    /// Answers everything with these words.
    async fn saying(words: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().fallback(async move || words);
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }

    #[tokio::test]
    async fn hosts_below_an_excepted_name_are_asked_without_the_proxy_however_that_is_written() {
        crate::install_crypto();
        let (proxy, server) = (saying("the proxy").await, saying("the server").await);
        let said = async |except: &str, host: &str| {
            let variable = |name: &str| match name {
                "http_proxy" => Some(proxy.to_string()),
                "NO_PROXY" => Some(except.to_owned()),
                _ => None,
            };
            let builder = ClientBuilder::new().resolve(host, server);
            let client = through_environment(builder, variable).build().unwrap();
            let answer = client.get(format!("http://{host}:{}/", server.port())).send().await.unwrap();
            answer.text().await.unwrap()
        };
        for except in ["*.corp.invalid", "a.invalid, *.corp.invalid", ".corp.invalid,*.b.invalid"] {
            assert_eq!(said(except, "git.corp.invalid").await, "the server", "{except}");
            assert_eq!(said(except, "git.else.invalid").await, "the proxy", "{except}");
        }
        assert_eq!(proxy_exceptions("*"), "*");
    }
}
