//! Tokens of runtimes: shown once, kept as a digest. How a token is made and found is the same for all of them: see [`secret`].

use pipeline_core::{ExposeSecret as _, SecretString};

use crate::columns::from_columns;
use crate::connection::{Arg, Connection};
use crate::error::StoreError;
use crate::report::Millis;
use crate::runtime_name::runtime_id;
use crate::secret;
use crate::store::Store;

/// What each token begins with, so that scanners of leaked secrets know one.
pub(crate) const MARK: &str = "gort_";
/// Makes a runtime of a name and what it is told by, unless there is one of either.
pub(crate) const NEW_RUNTIME: &str =
    "INSERT INTO runtimes (name, public_id, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

/// Whoever a token is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Runtime {
    /// Its number.
    pub id: i64,
    /// Its name.
    pub name: String,
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

from_columns! { Runtime { id, name } }
from_columns! { Token { name, runtime, created_at } }

/// All of them, by runtime and age.
pub(crate) async fn all(connection: &mut Connection) -> Result<Vec<Token>, StoreError> {
    let sql = "SELECT t.prefix, r.name, t.created_at FROM tokens t JOIN runtimes r ON r.id = t.runtime_id \
               ORDER BY r.name, t.created_at, t.id";
    let mut tokens: Vec<Token> = connection.all(sql, &[]).await?;
    tokens.iter_mut().for_each(|token| token.name.insert_str(0, MARK));
    Ok(tokens)
}

/// Takes a token away, by what it begins with.
pub(crate) async fn revoke(connection: &mut Connection, name: &str) -> Result<(), StoreError> {
    let prefix = secret::shown_prefix(MARK, name).ok_or(StoreError::TokenName)?;
    let gone = connection.execute("DELETE FROM tokens WHERE prefix = $1", &[Arg::Text(prefix)]).await?;
    if gone == 0 { Err(StoreError::NoToken(name.to_owned())) } else { Ok(()) }
}

/// Makes a token for a runtime, and the runtime if there is none of that name, within a transaction of whoever asks.
pub(crate) async fn create(
    connection: &mut Connection,
    name: &str,
    now: Millis,
) -> Result<SecretString, StoreError> {
    let made = secret::mint(MARK)?;
    let id = runtime_id(name);
    connection.execute(NEW_RUNTIME, &[Arg::Text(name), Arg::Text(&id), Arg::Int(now)]).await?;
    let sql = "INSERT INTO tokens (runtime_id, prefix, hash, created_at) \
               SELECT id, $2, $3, $4 FROM runtimes WHERE name = $1";
    let values = [Arg::Text(name), Arg::Text(&made.prefix), Arg::Bytes(&made.hash), Arg::Int(now)];
    if connection.execute(sql, &values).await? == 0 {
        // It was not made, because another has its id.
        let of = of_id(connection, &id).await?.unwrap_or_default();
        return Err(StoreError::SameId { name: name.to_owned(), id: id.into_owned(), of });
    }
    Ok(made.token)
}

/// The name of the runtime that is told by an id.
pub(crate) async fn of_id(connection: &mut Connection, id: &str) -> Result<Option<String>, StoreError> {
    connection.one("SELECT name FROM runtimes WHERE public_id = $1", &[Arg::Text(id)]).await
}

impl Store {
    /// Whose token it is; `None`: nobody's.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn runtime(&self, token: &SecretString) -> Result<Option<Runtime>, StoreError> {
        let mut connection = self.look_up().await?;
        let token = token.expose_secret();
        let Some(prefix) = secret::prefix(MARK, token) else { return Ok(None) };
        let sql = "SELECT r.id, r.name, t.hash FROM tokens t JOIN runtimes r ON r.id = t.runtime_id WHERE t.prefix = $1";
        Ok(secret::whose(connection.one(sql, &[Arg::Text(prefix)]).await?, token))
    }

    /// Whether any token was ever made.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn has_tokens(&self) -> Result<bool, StoreError> {
        Ok(self.read().await?.row("SELECT id FROM tokens LIMIT 1", &[]).await?.is_some())
    }
}
