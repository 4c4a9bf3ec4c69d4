//! An attempt to sign in, as the browser keeps it meanwhile: sealed, so that nobody reads or changes it on the way.
//!
//! The key comes of the client's secret: every replica opens what another sealed, nothing has to be kept, and whoever changes the
//! secret ends the attempts that are under way.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use pipeline_core::{ExposeSecret as _, SecretString};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

/// An attempt is over after so long.
pub const ATTEMPT_LASTS: SignedDuration = SignedDuration::from_mins(10);

const PURPOSE: &[u8] = b"gitops-runtime: an attempt to sign in";

/// What has to be known of an attempt when the browser comes back. `Debug` shows nothing of it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Attempt {
    pub(crate) state: String,
    pub(crate) nonce: String,
    pub(crate) verifier: String,
    until: i64,
    /// Where the browser goes in the end.
    pub next: String,
    /// Who began it to have their identity linked; `None`: somebody who wants to come in.
    pub links: Option<String>,
}

impl Attempt {
    pub(crate) fn new(
        (state, nonce, verifier): (String, String, String),
        next: &str,
        links: Option<&str>,
        now: Timestamp,
    ) -> Self {
        let until = (now + ATTEMPT_LASTS).as_second();
        Self { state, nonce, verifier, until, next: next.to_owned(), links: links.map(str::to_owned) }
    }

    /// Whether the browser came back with the state that it was sent with.
    #[must_use]
    pub fn is_of(&self, state: &str) -> bool {
        self.state.as_bytes().ct_eq(state.as_bytes()).into()
    }

    /// Sealed by the client's secret; `None`: this machine gives no random bytes.
    pub(crate) fn seal(&self, secret: &SecretString) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut text = serde_json::to_vec(self).ok()?;
        let sealing = Nonce::assume_unique_for_key(nonce);
        key(secret)?.seal_in_place_append_tag(sealing, Aad::from(PURPOSE), &mut text).ok()?;
        let whole = [&nonce[..], &text].concat();
        Some(URL_SAFE_NO_PAD.encode(whole))
    }

    /// What was sealed by the client's secret; `None` for anything else, and for what is over.
    pub(crate) fn open(sealed: &str, secret: &SecretString, now: Timestamp) -> Option<Self> {
        let whole = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = whole.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let opening = Nonce::assume_unique_for_key(*nonce);
        let text = key(secret)?.open_in_place(opening, Aad::from(PURPOSE), &mut text).ok()?;
        let attempt: Self = serde_json::from_slice(text).ok()?;
        (now.as_second() < attempt.until).then_some(attempt)
    }
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Attempt(…)")
    }
}

fn key(secret: &SecretString) -> Option<LessSafeKey> {
    let secret = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
    let key = hmac::sign(&secret, PURPOSE);
    UnboundKey::new(&AES_256_GCM, key.as_ref()).ok().map(LessSafeKey::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_opened_by_the_same_secret_unchanged_and_in_time_alone() {
        let now = Timestamp::from_second(1_900_000_000).unwrap();
        let secret = SecretString::from("a secret");
        let words = ("state-1".to_owned(), "nonce-1".to_owned(), "verifier-1".to_owned());
        let attempt = Attempt::new(words, "/applications?q=pay", Some("ada"), now);
        assert_eq!(format!("{attempt:?}"), "Attempt(…)");
        let sealed = attempt.seal(&secret).unwrap();
        assert_ne!(sealed, attempt.seal(&secret).unwrap(), "each is sealed with bytes of its own");
        let plain = String::from_utf8_lossy(&URL_SAFE_NO_PAD.decode(&sealed).unwrap()).into_owned();
        assert!(!plain.contains("nonce-1") && !plain.contains("verifier-1"));

        let opened = Attempt::open(&sealed, &secret, now).unwrap();
        assert_eq!(
            (&*opened.nonce, &*opened.verifier, &*opened.next),
            ("nonce-1", "verifier-1", "/applications?q=pay")
        );
        assert_eq!(opened.links.as_deref(), Some("ada"));
        assert!(opened.is_of("state-1") && !opened.is_of("state-2") && !opened.is_of(""));

        let last = now + ATTEMPT_LASTS - SignedDuration::from_secs(1);
        assert!(Attempt::open(&sealed, &secret, last).is_some());
        assert!(Attempt::open(&sealed, &secret, now + ATTEMPT_LASTS).is_none(), "it is over");
        assert!(Attempt::open(&sealed, &SecretString::from("another"), now).is_none());
        for (index, _) in sealed.char_indices() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            // The last character holds bits that stand for nothing.
            assert!(Attempt::open(&changed, &secret, now).is_none() || index + 1 == sealed.len(), "{index}");
        }
        for nothing in ["", "A", "not base64!", "AAAAAAAAAAAAAAAAAAAAAAAA"] {
            assert!(Attempt::open(nothing, &secret, now).is_none(), "{nothing}");
        }
    }
}
