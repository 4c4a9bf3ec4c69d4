//! Tokens that are shown once: a mark that scanners of leaked secrets know, then random digits. The first of them find the
//! row, the digest of the whole is what is compared.

use pipeline_core::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::error::StoreError;

/// Of the digits so many find the row.
const PREFIX: usize = 8;
/// Random bytes.
const BYTES: usize = 32;

/// A token that was just made.
pub(crate) struct Minted {
    pub(crate) token: SecretString,
    pub(crate) prefix: String,
    pub(crate) hash: [u8; 32],
}

/// As many random hexadecimal digits as a token has.
pub(crate) fn digits() -> Result<String, StoreError> {
    random_hex::<BYTES>()
}

/// So many random bytes of the operating system, in hexadecimal.
pub(crate) fn random_hex<const N: usize>() -> Result<String, StoreError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(StoreError::Random)?;
    Ok(hex::encode(bytes))
}

pub(crate) fn mint(mark: &str) -> Result<Minted, StoreError> {
    Ok(Minted::of(mark, &digits()?))
}

impl Minted {
    fn of(mark: &str, digits: &str) -> Self {
        let token = format!("{mark}{digits}");
        let hash = Sha256::digest(token.as_bytes()).into();
        let prefix = digits.get(..PREFIX).unwrap_or_default().to_owned();
        Self { token: token.into(), prefix, hash }
    }
}

/// The token of a secret of 64 random digits, which whoever has the secret is given as often as they ask.
pub(crate) fn derived(mark: &str, secret: &SecretString) -> Minted {
    let of =
        Sha256::new_with_prefix("gitops-runtime/token/1/").chain_update(secret.expose_secret()).finalize();
    Minted::of(mark, &hex::encode(of))
}

/// What finds the row that a token would have; `None` for what is no token of that mark.
pub(crate) fn prefix<'t>(mark: &str, token: &'t str) -> Option<&'t str> {
    let digits = token.strip_prefix(mark)?;
    let well = digits.len() == 2 * BYTES && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    well.then(|| digits.get(..PREFIX)).flatten()
}

/// What finds the row of a token that is named as lists show it: its mark, and the digits that find it.
pub(crate) fn shown_prefix<'t>(mark: &str, name: &'t str) -> Option<&'t str> {
    let well = |digits: &&str| digits.len() == PREFIX && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.strip_prefix(mark).filter(well)
}

/// Whose a token is, of what its prefix finds with the digest that is kept; `None`: nobody's.
pub(crate) fn whose<T>(found: Option<(T, Vec<u8>)>, token: &str) -> Option<T> {
    let digest = Sha256::digest(token.as_bytes());
    found.filter(|(_, hash)| bool::from(hash.ct_eq(&digest[..]))).map(|(whose, _)| whose)
}
