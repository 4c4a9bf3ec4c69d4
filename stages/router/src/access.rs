//! What the access log shows of a path: no query, and nothing that could be a token.

use crate::route::{Route, route};

/// How many characters of a path are shown.
const MAX_CHARACTERS: usize = 256;
/// A segment of a path that has a digit and so many bytes may be a token.
const TOKEN_LENGTH: usize = 24;
/// How many segments of a webhook's path are shown, the empty one before the first slash included: what follows the names is
/// between the sender and its receiver.
const WEBHOOK_SEGMENTS: usize = 4;

/// Whether a path is that of a probe: those come every few seconds, and are not logged.
pub(crate) fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// A path as the access log shows it.
pub(crate) fn shown(path: &str) -> String {
    let webhook = route(path) == Route::Webhooks;
    let mut text = String::new();
    for (number, segment) in path.split('/').enumerate() {
        if number > 0 {
            text.push('/');
        }
        if webhook && number >= WEBHOOK_SEGMENTS {
            text.push_str("...");
            break;
        }
        match segment.len() >= TOKEN_LENGTH && segment.bytes().any(|byte| byte.is_ascii_digit()) {
            true => text.push_str("..."),
            false => text.push_str(segment),
        }
    }
    if text.chars().count() > MAX_CHARACTERS {
        text = text.chars().take(MAX_CHARACTERS).chain("...".chars()).collect();
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
        assert_eq!(shown(&format!("/workflows/{}", "a/".repeat(200))).len(), MAX_CHARACTERS + 3);
    }
}
