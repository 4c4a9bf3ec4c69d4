//! Who may ask over TCP: whoever has the token; where there is none, only programs on this host.
//!
//! A page that a browser on this host shows could send requests to a loopback address too. Where no token keeps it
//! out, a request must name the host as a loopback address (the page's own name, made to resolve to this host, does
//! not) and must not come from a page.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures::future::BoxFuture;
use pipeline_core::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::answer::failed;

/// Reads the token as it is now; `None` when it cannot be read, which the reader itself has logged.
pub type Secret = Arc<dyn Fn() -> BoxFuture<'static, Option<SecretString>> + Send + Sync>;

/// Passes on requests that may be answered. `None` means that no token is needed, so that only programs on this host are answered.
pub(super) async fn guard(State(secret): State<Option<Secret>>, request: Request, next: Next) -> Response {
    let refused = match secret {
        Some(secret) => with_token(&secret, request.headers()).await,
        None => of_this_host(request.headers()),
    };
    match refused {
        Ok(()) => next.run(request).await,
        Err(response) => *response,
    }
}

async fn with_token(secret: &Secret, headers: &HeaderMap) -> Result<(), Box<Response>> {
    let refused = |status, why| {
        let mut response = failed(status, why).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        Box::new(response)
    };
    let Some(given) = headers.get(header::AUTHORIZATION) else {
        let why = "the request needs the admin token, as `Authorization: Bearer TOKEN`";
        return Err(refused(StatusCode::UNAUTHORIZED, why));
    };
    let Some(right) = secret().await else {
        let why = "the admin token cannot be read: the log of the reporter tells why";
        return Err(refused(StatusCode::SERVICE_UNAVAILABLE, why));
    };
    let given = given.as_bytes();
    let given = given.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    let given = given.map(|(_, token)| token.trim_ascii()).unwrap_or_default();
    match is_same(given, right.expose_secret().as_bytes()) {
        true => Ok(()),
        false => Err(refused(StatusCode::UNAUTHORIZED, "this is not the admin token")),
    }
}

/// Whether two tokens are the same; an empty one never is. The comparison takes a time that tells nothing of either, as all bytes of
/// digests of one length are compared.
fn is_same(given: &[u8], right: &[u8]) -> bool {
    let equal = Sha256::digest(given).ct_eq(&Sha256::digest(right));
    bool::from(equal) && !right.is_empty()
}

fn of_this_host(headers: &HeaderMap) -> Result<(), Box<Response>> {
    let refused = |why| Box::new(failed(StatusCode::FORBIDDEN, why).into_response());
    if headers.contains_key(header::ORIGIN) {
        return Err(refused("pages of a browser are not answered without a token: set admin.tokenFile"));
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match is_loopback(host) {
        true => Ok(()),
        false => Err(refused(
            "without a token only loopback addresses are answered: set admin.tokenFile, or ask 127.0.0.1",
        )),
    }
}

/// Whether a `Host` header, with a port or without, names this host.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_same_or_not() {
        assert!(is_same(b"one", b"one"));
        for (given, right) in [("one", "two"), ("on", "one"), ("onee", "one"), ("", "one"), ("", "")] {
            assert!(!is_same(given.as_bytes(), right.as_bytes()), "{given} for {right}");
        }
    }

    #[test]
    fn hosts_are_this_one_or_not() {
        for own in ["127.0.0.1:80", "127.0.0.1", "[::1]:80", "[::1]", "localhost:9", "LOCALHOST", "127.9.9.9"]
        {
            assert!(is_loopback(own), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "evil.example:80",
            "10.0.0.1:80",
            "127.0.0.1.evil.example",
            "localhost.evil:1",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }
}
