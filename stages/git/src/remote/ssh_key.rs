//! Private SSH keys, as Secrets hold them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use russh::keys::ssh_key::encoding::Decode as _;
use russh::keys::ssh_key::private::{EcdsaKeypair, EcdsaPrivateKey, KeypairData};
use russh::keys::ssh_key::{self, sec1};
use russh::keys::{self, Algorithm, PrivateKey, decode_secret_key};
use secrecy::zeroize::Zeroizing;

/// What a file of OpenSSH begins with, once its Base64 is undone: its `PROTOCOL.key` describes the rest.
const MAGIC: &[u8] = b"openssh-key-v1\0";

const EMPTY: &str = "its SSH key is empty";
const LOCKED: &str = "its SSH key has a passphrase, which nobody is here to type: give one without";
const PUBLIC: &str =
    "its SSH key is the public one: give the private one, whose file is called the same without .pub";
const CERTIFICATE: &str = "its SSH key is a certificate: give the private key that it was made for";
const ONE_LINE: &str =
    "its SSH key lost its line breaks: give it with these, not with blanks or \\n in their place";
const ENCODED: &str =
    "its SSH key is in Base64 once too often: give it as ssh-keygen wrote it, or under `data` encoded once";
const OF_DEVICE: &str =
    "its SSH key is one of a security key, which nobody is here to touch: give an Ed25519, ECDSA or RSA key";
const KIND: &str =
    "its SSH key is of a kind that is not supported: give an Ed25519, ECDSA (P-256, P-384, P-521) or RSA key";
const DAMAGED: &str = "its SSH key is damaged: give the whole file as ssh-keygen wrote it";
const NONE: &str = "its SSH key is none: give a private key, which begins with a line such as -----BEGIN OPENSSH PRIVATE KEY-----";

/// Reads a key without a passphrase, in any of the forms of OpenSSH, OpenSSL and PuTTY, however its lines end or are indented.
///
/// # Errors
/// What is wrong with it, and what to do.
pub(super) fn decode(text: &str) -> Result<PrivateKey, &'static str> {
    let text = tidy(text);
    let key = match decode_secret_key(&text, None) {
        Ok(key) => key,
        Err(error) => short_p256(&text).ok_or_else(|| why_not(&text, &error))?,
    };
    match key.algorithm() {
        Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256 => Err(OF_DEVICE),
        Algorithm::Ed25519 | Algorithm::Ecdsa { .. } | Algorithm::Rsa { .. } => Ok(key),
        _ => Err(KIND),
    }
}

/// Without what editors and YAML add: a mark of the order of bytes, indentation, blanks at the ends of lines.
pub(super) fn tidy(text: &str) -> Zeroizing<String> {
    let text = text.trim_start_matches('\u{feff}').trim();
    // `Comment: ` may end in a blank that counts.
    let is_putty = is_putty(text);
    let line = |line| if is_putty { str::trim_start(line) } else { str::trim(line) };
    let mut tidied = Zeroizing::new(String::with_capacity(text.len() + 1));
    for of in text.lines().map(line) {
        tidied.push_str(of);
        tidied.push('\n');
    }
    tidied
}

/// Whether a key in PEM has a passphrase, in PKCS#8 or in the older form of OpenSSL.
pub(super) fn has_passphrase(pem: &str) -> bool {
    ["-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED"].iter().any(|line| pem.contains(line))
}

fn is_putty(text: &str) -> bool {
    text.starts_with("PuTTY-User-Key-File-")
}

/// What is wrong with a text that is no usable key.
fn why_not(text: &str, error: &keys::Error) -> &'static str {
    let text = text.trim_end();
    let begins = |of: &[&str]| of.iter().any(|of| text.starts_with(of));
    let holds = |of: &[&str]| of.iter().any(|of| text.contains(of));
    let has_line = |of: &[&str]| text.lines().any(|line| of.contains(&line));
    // The name of a form stands between five dashes, and nothing behind them.
    let mut forms = text.lines().filter_map(|line| line.strip_prefix("-----BEGIN "));
    if text.is_empty() {
        EMPTY
    } else if forms.any(|form| form.split_once("-----").is_some_and(|(_, more)| !more.is_empty())) {
        ONE_LINE
    } else if matches!(error, keys::Error::KeyIsEncrypted)
        || has_passphrase(text)
        || has_line(&["Encryption: aes256-cbc"])
    {
        LOCKED
    } else if holds(&["-cert-v01@openssh.com ", "-----BEGIN CERTIFICATE-----"]) {
        CERTIFICATE
    } else if holds(&["PUBLIC KEY-----", "BEGIN SSH2 PUBLIC KEY"]) || begins(&["ssh-", "ecdsa-sha2-", "sk-"])
    {
        PUBLIC
    } else if is_of_other_kind(error) || has_line(&["-----BEGIN DSA PRIVATE KEY-----"]) {
        KIND
    } else if is_putty(text) || holds(&["PRIVATE KEY-----"]) {
        DAMAGED
    } else if STANDARD.decode(text.replace('\n', "")).is_ok_and(|of| of.starts_with(b"-----BEGIN ")) {
        ENCODED
    } else {
        NONE
    }
}

/// It is whole, and of a kind or curve that nobody here knows.
const fn is_of_other_kind(error: &keys::Error) -> bool {
    use ssh_key::Error::{AlgorithmUnknown, AlgorithmUnsupported};
    matches!(
        error,
        keys::Error::UnknownAlgorithm(_)
            | keys::Error::UnsupportedKeyType { .. }
            | keys::Error::SshKey(AlgorithmUnknown | AlgorithmUnsupported { .. })
    )
}

/// A key of P-256 whose number needs less than 32 bytes, which one of 256 does: OpenSSH writes no zeros before a number,
/// and `ssh-key` takes none of less than 32 bytes. (It fills up those of the larger curves.)
fn short_p256(text: &str) -> Option<PrivateKey> {
    let lines = text.lines().skip_while(|line| *line != "-----BEGIN OPENSSH PRIVATE KEY-----");
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

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::decode;

    const ED25519: &str = include_str!("../../tests/remote/keys/ed25519");
    const PUTTY: &str = include_str!("../../tests/remote/keys/ecdsa_256.ppk");

    #[test]
    fn a_key_is_read_however_its_lines_end_or_are_indented() {
        let whole = decode(ED25519).unwrap();
        let indented: String = ED25519.lines().map(|line| format!("    {line}  \n")).collect();
        for text in [
            ED25519.trim_end().to_owned(),
            format!("\n\n  {ED25519}\n \n"),
            ED25519.replace('\n', "\r\n"),
            format!("\u{feff}{ED25519}"),
            format!("# the key of the build\n{ED25519}"),
            indented,
        ] {
            assert_eq!(decode(&text).unwrap().public_key(), whole.public_key(), "{text:?}");
        }
        for text in [PUTTY.trim_end().to_owned(), PUTTY.replace('\n', "\r\n"), format!("\n {PUTTY}")] {
            decode(&text).unwrap();
        }
    }

    #[test]
    fn what_is_no_usable_key_is_told_apart() {
        let locked = "its SSH key has a passphrase, which nobody is here to type: give one without";
        let public =
            "its SSH key is the public one: give the private one, whose file is called the same without .pub";
        let one_line =
            r"its SSH key lost its line breaks: give it with these, not with blanks or \n in their place";
        let kind = "its SSH key is of a kind that is not supported: give an Ed25519, ECDSA (P-256, P-384, P-521) or RSA key";
        let damaged = "its SSH key is damaged: give the whole file as ssh-keygen wrote it";
        let none = "its SSH key is none: give a private key, which begins with a line such as -----BEGIN OPENSSH PRIVATE KEY-----";
        let certificate = "its SSH key is a certificate: give the private key that it was made for";
        let of_device = "its SSH key is one of a security key, which nobody is here to touch: give an Ed25519, ECDSA or RSA key";
        let encoded = "its SSH key is in Base64 once too often: give it as ssh-keygen wrote it, or under `data` encoded once";
        let point = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
        for (text, why) in [
            (" \n".to_owned(), "its SSH key is empty"),
            (include_str!("../../tests/remote/keys/locked").to_owned(), locked),
            (include_str!("../../tests/remote/keys/locked_pem").to_owned(), locked),
            (include_str!("../../tests/remote/keys/locked_pem").replace("AES-128", "AES-256"), locked),
            (include_str!("../../tests/remote/keys/locked_pkcs8").to_owned(), locked),
            (PUTTY.replace("Encryption: none", "Encryption: aes256-cbc"), locked),
            (format!("ssh-ed25519 {point} ada@example.com"), public),
            ("ecdsa-sha2-nistp256 AAAA".to_owned(), public),
            ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n".to_owned(), public),
            ("---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----".to_owned(), public),
            (format!("ssh-ed25519-cert-v01@openssh.com {point}"), certificate),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(), certificate),
            (ED25519.replace('\n', r"\n"), one_line),
            (ED25519.replace('\n', " "), one_line),
            (include_str!("../../tests/remote/keys/sk_ed25519").to_owned(), of_device),
            (include_str!("../../tests/remote/keys/dsa").to_owned(), kind),
            ("-----BEGIN DSA PRIVATE KEY-----\nAAAA\n-----END DSA PRIVATE KEY-----\n".to_owned(), kind),
            (include_str!("../../tests/remote/keys/secp256k1").to_owned(), kind),
            (ED25519.replacen("AAAA", "", 1), damaged),
            (ED25519.lines().take(3).collect::<Vec<_>>().join("\n"), damaged),
            (PUTTY.replace("Comment: a key", "Comment: another"), damaged),
            (STANDARD.encode(ED25519), encoded),
            ("nonsense".to_owned(), none),
            ("/etc/ssh/key".to_owned(), none),
        ] {
            assert_eq!(decode(&text).unwrap_err(), why, "{text:?}");
        }
    }
}
