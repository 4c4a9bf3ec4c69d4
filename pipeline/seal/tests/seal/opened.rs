//! A controller's side: opens what was sealed, with its private key.

use aes_gcm::aead::Aead as _;
use aes_gcm::{Aes256Gcm, KeyInit as _, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rsa::pkcs8::DecodePrivateKey as _;
use rsa::{Oaep, RsaPrivateKey};
use sha2_of_rsa::Sha256;

const KEY: &str = include_str!("controller.key");

/// A value under a label; `None`: it does not open there.
pub(crate) fn open(sealed: &str, label: &str) -> Option<Vec<u8>> {
    let body: String = KEY.lines().filter(|line| !line.starts_with("-----")).collect();
    let key = RsaPrivateKey::from_pkcs8_der(&STANDARD.decode(body).unwrap()).unwrap();
    let all = STANDARD.decode(sealed).unwrap();
    let (length, rest) = all.split_at(2);
    let (session, value) = rest.split_at(usize::from(u16::from_be_bytes(length.try_into().unwrap())));
    let session = key.decrypt(Oaep::new_with_label::<Sha256, _>(label), session).ok()?;
    assert_eq!(session.len(), 32);
    Some(Aes256Gcm::new_from_slice(&session).unwrap().decrypt(&Nonce::from([0; 12]), value).unwrap())
}
