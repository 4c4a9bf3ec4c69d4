//! How tokens are sealed: AES-256-GCM, under a key that HKDF-SHA-256 derives of the runtime's store key and its `encryptionIV`.
//!
//! Whose token it is, and of which integration, is sealed along: a text that is moved to another place does not open there. Which
//! key it was stands beside it, so that a token under a key that was changed is told from one that somebody spoiled.

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hkdf::Hkdf;
use pipeline_core::{ExposeSecret as _, SecretString};
use sha2::Sha256;

use crate::error::ActError;

/// The info of HKDF for the key.
const KEY_INFO: &[u8] = b"gitops-runtime/git-token/1";
/// The info of HKDF for the name of the key.
const NAME_INFO: &[u8] = b"gitops-runtime/git-token/1/name";
const VERSION: &str = "1";
const NONCE: usize = 12;

/// The secrets that a key is derived from.
pub(super) struct KeyMaterial {
    /// The platform's store key for the runtime.
    pub(super) store_key: SecretString,
    /// The runtime's own `encryptionIV`.
    pub(super) iv: SecretString,
}

/// Seals and opens tokens with one key.
pub(super) struct Sealer {
    cipher: Aes256Gcm,
    /// The name of the key, in hexadecimal.
    name: String,
}

/// Why a sealed token cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnsealError {
    /// It was sealed with another key.
    OtherKey,
    /// It was changed, or was sealed for another place.
    Spoiled,
}

impl KeyMaterial {
    pub(super) fn sealer(&self) -> Result<Sealer, ActError> {
        let failed = || ActError::Wrong("the store key gives no key to seal with".to_owned());
        let salt = self.iv.expose_secret().as_bytes();
        let kdf = Hkdf::<Sha256>::new(Some(salt), self.store_key.expose_secret().as_bytes());
        let (mut key, mut name) = ([0; 32], [0; 4]);
        kdf.expand(KEY_INFO, &mut key).map_err(|_| failed())?;
        kdf.expand(NAME_INFO, &mut name).map_err(|_| failed())?;
        let cipher = Aes256Gcm::new_from_slice(&key).map_err(|_| failed())?;
        Ok(Sealer { cipher, name: hex::encode(name) })
    }
}

impl Sealer {
    pub(super) fn seal(&self, place: &str, token: &SecretString) -> Result<String, ActError> {
        let failed = || ActError::Wrong("the token cannot be sealed".to_owned());
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|_| failed())?;
        let payload = Payload { msg: token.expose_secret().as_bytes(), aad: place.as_bytes() };
        let sealed = self.cipher.encrypt(&nonce.into(), payload).map_err(|_| failed())?;
        let text = STANDARD.encode([&nonce[..], &sealed].concat());
        Ok(format!("{VERSION}.{}.{text}", self.name))
    }

    pub(super) fn open(&self, place: &str, sealed: &str) -> Result<SecretString, UnsealError> {
        let mut parts = sealed.splitn(3, '.');
        let (version, name, text) = (parts.next(), parts.next(), parts.next());
        if version != Some(VERSION) {
            return Err(UnsealError::Spoiled);
        }
        if name != Some(&*self.name) {
            return Err(UnsealError::OtherKey);
        }
        let bytes = STANDARD.decode(text.unwrap_or_default()).map_err(|_| UnsealError::Spoiled)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE).ok_or(UnsealError::Spoiled)?;
        let nonce: [u8; NONCE] = nonce.try_into().map_err(|_| UnsealError::Spoiled)?;
        let payload = Payload { msg: sealed, aad: place.as_bytes() };
        let token = self.cipher.decrypt(&nonce.into(), payload).map_err(|_| UnsealError::Spoiled)?;
        String::from_utf8(token).map(SecretString::from).map_err(|_| UnsealError::Spoiled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(store_key: &str, iv: &str) -> Sealer {
        KeyMaterial { store_key: store_key.into(), iv: iv.into() }.sealer().unwrap()
    }

    #[test]
    fn a_token_opens_where_it_was_sealed_for_and_nowhere_else() {
        let (one, token) = (sealer("key", "iv"), SecretString::from("canary-token"));
        let sealed = one.seal("default/ada", &token).unwrap();
        assert!(!sealed.contains("canary"));
        assert_eq!(one.open("default/ada", &sealed).unwrap().expose_secret(), "canary-token");
        assert_eq!(one.open("default/lin", &sealed).unwrap_err(), UnsealError::Spoiled);
        assert_ne!(
            one.seal("default/ada", &token).unwrap(),
            sealed,
            "each is sealed under a nonce of its own"
        );
    }

    #[test]
    fn a_token_under_a_key_that_was_changed_is_told_from_one_that_was_spoiled() {
        let one = sealer("key", "iv");
        let sealed = one.seal("default/ada", &"canary-token".into()).unwrap();
        for other in [sealer("another", "iv"), sealer("key", "another")] {
            assert_eq!(other.open("default/ada", &sealed).unwrap_err(), UnsealError::OtherKey);
        }
        let (head, text) = sealed.rsplit_once('.').unwrap();
        let mut bytes = STANDARD.decode(text).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        let spoiled = format!("{head}.{}", STANDARD.encode(bytes));
        for spoiled in [&*spoiled, head, "", "2.aaaa.bbbb", &format!("{head}.AAAA")] {
            assert!(one.open("default/ada", spoiled).is_err(), "{spoiled}");
        }
        assert_eq!(one.open("default/ada", &spoiled).unwrap_err(), UnsealError::Spoiled);
    }
}
