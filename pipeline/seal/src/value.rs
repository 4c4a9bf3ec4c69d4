//! Seals one value: the result is the length of the encrypted session key in two bytes, that key, and the encrypted value.
//!
//! The nonce is zero, as the controller expects it: a session key is used once.

use aes_gcm::aead::Aead as _;
use aes_gcm::{Aes256Gcm, KeyInit as _, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rsa::Oaep;
use rsa::rand_core::{OsRng, RngCore as _};
use secrecy::zeroize::Zeroizing;
use sha2_of_rsa::Sha256;

use crate::{Certificate, SealError};

/// How many bytes a session key has.
const KEY: usize = 32;
/// The nonce of AES-GCM.
const NONCE: [u8; 12] = [0; 12];

/// Seals a value, which can be opened under the same label only, and gives the result in base64.
///
/// # Errors
/// [`SealError::Cipher`] when the encryption fails, [`SealError::OtherKey`] when the certificate's key is too long.
pub(crate) fn seal(value: &[u8], label: &str, certificate: &Certificate) -> Result<String, SealError> {
    let mut key = Zeroizing::new([0; KEY]);
    OsRng.try_fill_bytes(&mut *key).map_err(|_| SealError::Cipher)?;
    let padding = Oaep::new_with_label::<Sha256, _>(label);
    let sealed_key = certificate.key.encrypt(&mut OsRng, padding, &*key).map_err(|_| SealError::Cipher)?;
    let length = u16::try_from(sealed_key.len()).map_err(|_| SealError::OtherKey)?;
    let cipher = Aes256Gcm::new_from_slice(&*key).map_err(|_| SealError::Cipher)?;
    let sealed = cipher.encrypt(&Nonce::from(NONCE), value).map_err(|_| SealError::Cipher)?;
    let all = [&length.to_be_bytes()[..], &sealed_key, &sealed].concat();
    Ok(STANDARD.encode(all))
}
