//! A token that a peer is asked with. Never shown.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value as Json;

use crate::finding::MASKED;

/// A token.
pub(super) struct Token(String);

impl Token {
    /// One that stands in values; `None` where they were masked.
    pub(super) fn given(text: &str) -> Option<Self> {
        (text != MASKED).then(|| Self(text.to_owned()))
    }

    /// One that a Secret holds.
    pub(super) fn decoded(data: &str) -> Option<Self> {
        let text = String::from_utf8(STANDARD.decode(data).ok()?).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The token itself.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// When it ends, in seconds since 1970, where it is a JSON web token that says so.
    pub(super) fn ends(&self) -> Option<i64> {
        let claims = URL_SAFE_NO_PAD.decode(self.0.split('.').nth(1)?).ok()?;
        serde_json::from_slice::<Json>(&claims).ok()?["exp"].as_i64()
    }
}
