//! Tokens of runtimes: shown once, kept as a digest. Accounts and their keys will join them here.

use pipeline_core::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::report::Millis;
use crate::runtime_name::runtime_id;

/// What each token begins with, so that scanners of leaked secrets know one.
pub(crate) const MARK: &str = "gort_";
/// Of the digits behind it so many find the row; what is compared is the digest of the whole.
const PREFIX: usize = 8;
/// Makes a runtime of a name and what it is told by, unless there is one of either.
pub(crate) const NEW_RUNTIME: &str =
    "INSERT INTO runtimes (name, public_id, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
/// Random bytes.
const BYTES: usize = 32;

/// Whoever a token is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Runtime {
    /// Its number.
    pub id: i64,
    /// Its name.
    pub name: String,
}

/// The row that a token would have: the digits that find it; `None` for what is no token.
fn prefix(token: &str) -> Option<&str> {
    let digits = token.strip_prefix(MARK)?;
    let well = digits.len() == 2 * BYTES && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    well.then(|| digits.get(..PREFIX)).flatten()
}

/// A token, as it is told: it cannot be shown again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it begins with, which names it.
    pub name: String,
    /// The name of its runtime.
    pub runtime: String,
    /// When it was made.
    pub created_at: Millis,
}

/// All of them, by runtime and age.
pub(crate) async fn all(connection: &mut Connection) -> Result<Vec<Token>, StoreError> {
    let sql = "SELECT t.prefix, r.name, t.created_at FROM tokens t JOIN runtimes r ON r.id = t.runtime_id \
               ORDER BY r.name, t.created_at, t.id";
    let one = |row: Row| {
        let name = format!("{MARK}{}", row.text(0)?);
        Ok(Token { name, runtime: row.text(1)?, created_at: row.int(2)? })
    };
    connection.rows(sql, &[]).await?.into_iter().map(one).collect()
}

/// Takes a token away, by what it begins with.
pub(crate) async fn revoke(connection: &mut Connection, name: &str) -> Result<(), StoreError> {
    let well = |digits: &&str| digits.len() == PREFIX && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let prefix = name.strip_prefix(MARK).filter(well).ok_or(StoreError::TokenName)?;
    let gone = connection.execute("DELETE FROM tokens WHERE prefix = $1", &[Arg::Text(prefix)]).await?;
    if gone == 0 { Err(StoreError::NoToken(name.to_owned())) } else { Ok(()) }
}

/// Makes a token for a runtime, and the runtime if there is none of that name, within a transaction of whoever asks.
pub(crate) async fn create(
    connection: &mut Connection,
    name: &str,
    now: Millis,
) -> Result<SecretString, StoreError> {
    let mut bytes = [0; BYTES];
    random(&mut bytes)?;
    let digits = hex::encode(bytes);
    let token = format!("{MARK}{digits}");
    let id = runtime_id(name);
    connection.execute(NEW_RUNTIME, &[Arg::Text(name), Arg::Text(&id), Arg::Int(now)]).await?;
    let sql = "INSERT INTO tokens (runtime_id, prefix, hash, created_at) \
               SELECT id, $2, $3, $4 FROM runtimes WHERE name = $1";
    let hash = Sha256::digest(token.as_bytes());
    let found = digits.get(..PREFIX).unwrap_or_default();
    let values = [Arg::Text(name), Arg::Text(found), Arg::Bytes(&hash), Arg::Int(now)];
    if connection.execute(sql, &values).await? == 0 {
        // It was not made, because another has its id.
        let of = of_id(connection, &id).await?.unwrap_or_default();
        return Err(StoreError::SameId { name: name.to_owned(), id: id.into_owned(), of });
    }
    Ok(token.into())
}

/// The name of the runtime that is told by an id.
pub(crate) async fn of_id(connection: &mut Connection, id: &str) -> Result<Option<String>, StoreError> {
    let row = connection.row("SELECT name FROM runtimes WHERE public_id = $1", &[Arg::Text(id)]).await?;
    row.map(|row| row.text(0)).transpose()
}

/// Whose token it is.
pub(crate) async fn runtime(
    connection: &mut Connection,
    token: &SecretString,
) -> Result<Option<Runtime>, StoreError> {
    let token = token.expose_secret();
    let Some(prefix) = prefix(token) else { return Ok(None) };
    let sql = "SELECT r.id, r.name, t.hash FROM tokens t JOIN runtimes r ON r.id = t.runtime_id WHERE t.prefix = $1";
    let Some(row) = connection.row(sql, &[Arg::Text(prefix)]).await? else { return Ok(None) };
    let same = row.bytes(2)?.ct_eq(&Sha256::digest(token.as_bytes())[..]);
    Ok(if bool::from(same) { Some(Runtime { id: row.int(0)?, name: row.text(1)? }) } else { None })
}

/// Whether there is any token.
pub(crate) async fn any(connection: &mut Connection) -> Result<bool, StoreError> {
    Ok(connection.row("SELECT id FROM tokens LIMIT 1", &[]).await?.is_some())
}

/// Of the operating system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), StoreError> {
    getrandom::fill(bytes).map_err(StoreError::Random)
}
