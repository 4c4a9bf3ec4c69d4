//! Private SSH keys, as Secrets hold them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use russh::keys::ssh_key::encoding::Decode as _;
use russh::keys::ssh_key::private::{EcdsaKeypair, EcdsaPrivateKey, KeypairData};
use russh::keys::ssh_key::{self, sec1};
use russh::keys::{self, PrivateKey, decode_secret_key};
use secrecy::zeroize::Zeroizing;

/// What a file of OpenSSH begins with, once its Base64 is undone: its `PROTOCOL.key` describes the rest.
const MAGIC: &[u8] = b"openssh-key-v1\0";

/// Reads a key without a passphrase, in any of the forms of OpenSSH, OpenSSL and PuTTY.
///
/// # Errors
/// When it is none, or one with a passphrase.
pub(super) fn decode(text: &str) -> Result<PrivateKey, keys::Error> {
    decode_secret_key(text, None).or_else(|error| short_p256(text).ok_or(error))
}

/// A key of P-256 whose number needs less than 32 bytes, which one of 256 does: OpenSSH writes no zeros before a number,
/// and `ssh-key` takes none of less than 32 bytes. (It fills up those of the larger curves.)
fn short_p256(text: &str) -> Option<PrivateKey> {
    let lines = text.lines().map(str::trim).skip_while(|line| *line != "-----BEGIN OPENSSH PRIVATE KEY-----");
    let base64 = lines.skip(1).take_while(|line| !line.starts_with("-----END "));
    let base64 = Zeroizing::new(base64.collect::<String>());
    let file = Zeroizing::new(STANDARD.decode(base64.as_bytes()).ok()?);
    read_short_p256(file.strip_prefix(MAGIC)?).ok().flatten()
}

/// What stands behind the magic: cipher, derivation of its key and options of that, number of keys, the public key, and the
/// private part, which is two equal numbers, the kind, the curve, the point, the number and a comment.
fn read_short_p256(mut file: &[u8]) -> ssh_key::Result<Option<PrivateKey>> {
    let file = &mut file;
    let cipher = String::decode(file)?;
    let (_derivation, _options) = (String::decode(file)?, Vec::<u8>::decode(file)?);
    let count = u32::decode(file)?;
    let _public = Vec::<u8>::decode(file)?;
    if cipher != "none" || count != 1 {
        return Ok(None);
    }
    let private = Zeroizing::new(Vec::<u8>::decode(file)?);
    let private = &mut private.as_slice();
    let checks = (u32::decode(private)?, u32::decode(private)?);
    let kind = (String::decode(private)?, String::decode(private)?);
    let point = Vec::<u8>::decode(private)?;
    let number = Zeroizing::new(Vec::<u8>::decode(private)?);
    let comment = String::decode(private)?;
    if checks.0 != checks.1 || kind.0 != "ecdsa-sha2-nistp256" || kind.1 != "nistp256" {
        return Ok(None);
    }
    let mut bytes = Zeroizing::new([0; 32]);
    let Some(end) = bytes.len().checked_sub(number.len()).and_then(|zeros| bytes.get_mut(zeros..)) else {
        return Ok(None);
    };
    end.copy_from_slice(&number);
    let public = sec1::EncodedPoint::from_bytes(point).map_err(|_| ssh_key::Error::PublicKey)?;
    let pair = EcdsaKeypair::NistP256 { public, private: EcdsaPrivateKey::from(*bytes) };
    PrivateKey::new(KeypairData::Ecdsa(pair), comment).map(Some)
}
