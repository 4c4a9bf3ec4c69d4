//! What the access log shows of a path: no query, and nothing that could be a token.

use crate::route::{Route, route};

/// Characters of a path that are shown.
const SHOWN: usize = 256;
/// A part of a path that is as long as this may be a token.
const LONG: usize = 24;
/// Parts of a webhook's path: what follows the names is between the sender and its receiver.
const NAMED: usize = 4;

/// Probes come every few seconds, and say nothing.
pub(crate) fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

pub(crate) fn shown(path: &str) -> String {
    let webhook = route(path) == Route::Webhooks;
    let mut text = String::new();
    for (number, segment) in path.split('/').enumerate() {
        if number > 0 {
            text.push('/');
        }
        if webhook && number >= NAMED {
            text.push_str("...");
            break;
        }
        match segment.len() >= LONG && segment.bytes().any(|byte| byte.is_ascii_digit()) {
            true => text.push_str("..."),
            false => text.push_str(segment),
        }
    }
    if text.chars().count() > SHOWN {
        text = text.chars().take(SHOWN).chain("...".chars()).collect();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_is_shown() {
        let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0";
        for (path, text) in [
            ("/app-proxy/api/graphql".to_owned(), "/app-proxy/api/graphql"),
            (format!("/app-proxy/{token}/x"), "/app-proxy/.../x"),
            (format!("/webhooks/runtime/push/{token}"), "/webhooks/runtime/push/..."),
            ("/webhooks/runtime/push/s3cret/more".to_owned(), "/webhooks/runtime/push/..."),
            ("/webhooks/runtime/push".to_owned(), "/webhooks/runtime/push"),
        ] {
            assert_eq!(shown(&path), text);
        }
        assert_eq!(shown(&format!("/workflows/{}", "a/".repeat(200))).len(), SHOWN + 3);
    }
}
