//! Heads of requests and answers: what is refused, and what is passed on.
//!
//! takes: a head as it was read - gives: the same for the next hop, without what is between two neighbours alone
//! fails: with a refusal for a head that the next hop could read in another way

use http::header::{CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderName, TE, UPGRADE};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Version};
use stages_client::{HOP_BY_HOP, has_other_coding, says_who_asked, speaks_http};

use crate::refusal::Refusal;

/// The headers that `Connection` cannot take away, beside those that say who asked: they say how long the body is and which
/// host the request is for.
const PROTECTED: [HeaderName; 2] = [CONTENT_LENGTH, HOST];
/// A header that is never passed on: CGI programs get it as the variable `HTTP_PROXY`, and take it for the proxy that they are
/// to use.
const PROXY_HEADER: HeaderName = HeaderName::from_static("proxy");

/// Refuses a head that another server could read differently.
pub(crate) fn check(head: &Parts) -> Result<(), Refusal> {
    if matches!(head.method, Method::CONNECT | Method::TRACE) {
        return Err(Refusal::Method);
    }
    if has_other_coding(&head.headers) {
        return Err(Refusal::TransferCoding);
    }
    match head.headers.get(EXPECT) {
        Some(value) if !value.as_bytes().eq_ignore_ascii_case(b"100-continue") => Err(Refusal::Expectation),
        _ => Ok(()),
    }
}

/// The host that a request is for, with its port when there is one; `None` where HTTP/1.0 leaves it out.
pub(crate) fn host(head: &Parts) -> Result<Option<String>, Refusal> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let said = match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => return Err(Refusal::Host),
        (Some(host), None) => Some(authority(host)?),
        (None, _) => None,
    };
    let target = head.uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
    match (target, said) {
        (Some(target), Some(said)) if target != said => Err(Refusal::Host),
        (Some(target), _) if target.contains('@') => Err(Refusal::Host),
        (None, None) if head.version != Version::HTTP_10 => Err(Refusal::Host),
        (target, said) => Ok(target.or(said)),
    }
}

fn authority(host: &HeaderValue) -> Result<String, Refusal> {
    let text = host.to_str().map_err(|_| Refusal::Host)?;
    let parsed: Authority = text.parse().map_err(|_| Refusal::Host)?;
    let usual = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    let port = parsed.as_str().len() > parsed.host().len() && parsed.port_u16().is_none();
    match parsed.host().is_empty() || port || !text.chars().all(usual) {
        true => Err(Refusal::Host),
        false => Ok(text.to_ascii_lowercase()),
    }
}

/// The protocol that the client wants to upgrade to, where that may be passed on. Another version of HTTP may not, as nobody
/// would check the requests in it.
pub(crate) fn upgrade(head: &Parts, has_body: bool) -> Result<Option<HeaderValue>, Refusal> {
    let mut wanted = head.headers.get_all(UPGRADE).iter();
    let (Some(protocol), more) = (wanted.next(), wanted.next().is_some()) else { return Ok(None) };
    let is_http = speaks_http(protocol.to_str().unwrap_or_default());
    if more || is_http || !tokens(&head.headers, &CONNECTION).any(|token| token == "upgrade") {
        return Ok(None);
    }
    if head.method != Method::GET || head.version != Version::HTTP_11 || has_body {
        return Err(Refusal::Upgrade);
    }
    Ok(Some(protocol.clone()))
}

/// How many bytes the names and values of headers have together.
pub(crate) fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// Leaves of the headers of a request what a service is sent.
pub(crate) fn pass_on(headers: &mut HeaderMap) {
    let trailers = tokens(headers, &TE).any(|token| token == "trailers");
    strip(headers);
    // Some servers read `_` as `-`: an X_Forwarded_For would stand beside ours.
    let odd: Vec<HeaderName> = headers.keys().filter(|name| name.as_str().contains('_')).cloned().collect();
    for name in odd.into_iter().chain([HOST, EXPECT, PROXY_HEADER]) {
        headers.remove(name);
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    // HTTP/2 sends a header for each of them, and HTTP/1.1 knows one.
    let cookies: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(all) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        headers.insert(COOKIE, all);
    }
}

/// Removes the headers that are between two neighbours alone.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = tokens(headers, &CONNECTION)
        .filter_map(|token| HeaderName::from_bytes(token.as_bytes()).ok())
        .filter(|name| !PROTECTED.contains(name) && !says_who_asked(name))
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> + 'a {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|token| token.trim().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri("/");
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn one_host_is_named_and_a_valid_one() {
        let is = |lines: &[(&str, &str)]| host(&head(lines));
        assert_eq!(is(&[("host", "Runtime.Example:8080")]), Ok(Some("runtime.example:8080".to_owned())));
        assert_eq!(is(&[("host", "[::1]:80")]), Ok(Some("[::1]:80".to_owned())));
        for lines in [
            &[][..],
            &[("host", "a"), ("host", "a")],
            &[("host", "a, b")],
            &[("host", "")],
            &[("host", "user@a")],
            &[("host", "a:port")],
            &[("host", "a/b")],
            &[("host", "a\"b")],
        ] {
            assert_eq!(is(lines), Err(Refusal::Host), "{lines:?}");
        }
    }

    #[test]
    fn what_is_between_neighbours_does_not_go_on() {
        let mut head = head(&[
            ("connection", "close, X-Secret, content-length"),
            ("keep-alive", "5"),
            ("te", "trailers, deflate"),
            ("upgrade", "h2c"),
            ("http2-settings", "x"),
            ("proxy-authorization", "x"),
            ("proxy", "http://evil"),
            ("x_forwarded_for", "1.1.1.1"),
            ("x-secret", "1"),
            ("host", "a"),
            ("content-length", "5"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("authorization", "kept"),
        ]);
        pass_on(&mut head.headers);
        let mut left: Vec<String> =
            head.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        left.sort();
        assert_eq!(left, ["authorization: kept", "content-length: 5", "cookie: a=1; b=2", "te: trailers"]);
    }

    #[test]
    fn an_upgrade_to_another_http_is_not_passed_on() {
        let wants = |protocol| head(&[("connection", "keep-alive, Upgrade"), ("upgrade", protocol)]);
        assert_eq!(upgrade(&wants("websocket"), false).unwrap().unwrap(), "websocket");
        for protocol in ["h2c", "HTTP/2.0", "websocket, h2c", "TLS/1.2", ""] {
            assert_eq!(upgrade(&wants(protocol), false), Ok(None), "{protocol}");
        }
        assert_eq!(upgrade(&head(&[("upgrade", "websocket")]), false), Ok(None));
        assert_eq!(upgrade(&wants("websocket"), true), Err(Refusal::Upgrade));
    }
}
