//! Keys of people for programs: shown once, kept as a digest, with a scope and an end.

use std::sync::Arc;

use pipeline_core::{ExposeSecret as _, SecretString};

use crate::audit::By;
use crate::columns::{Column, Columns, from_columns};
use crate::connection::Arg;
use crate::error::StoreError;
use crate::report::Millis;
use crate::secret;
use crate::statement::Statement;
use crate::store::Store;

const MARK: &str = "goak_";
/// Keys that somebody may have.
pub const API_KEYS: usize = 50;

/// What a key is good for, within what its owner may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// To read.
    Read,
    /// To read and to change.
    Full,
}

/// A key, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its number.
    pub id: i64,
    /// Whose it is.
    pub owner: String,
    /// What it is for.
    pub name: String,
    /// The first characters of it.
    pub prefix: String,
    /// What it is good for.
    pub scope: Scope,
    /// When it was made.
    pub created_at: Millis,
    /// When it ends.
    pub until: Millis,
}

/// A key that somebody comes in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// Its number.
    pub id: i64,
    /// Whose it is.
    pub owner: String,
    /// What it is good for.
    pub scope: Scope,
    /// When it ends.
    pub until: Millis,
}

from_columns! { Key { id, owner, name, prefix, scope, created_at, until } }
from_columns! { KnownKey { id, owner, scope, until } }

/// As it is kept: whatever is not known is good for the least.
impl Column for Scope {
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        Ok(Self::of(&columns.value::<String>()?).unwrap_or(Self::Read))
    }
}

impl Scope {
    /// As it is kept and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Full => "full",
        }
    }

    /// By its name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        [Self::Read, Self::Full].into_iter().find(|scope| scope.name() == name)
    }
}

impl Store {
    /// Makes a key of whoever asks; it is shown this once.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept: [`StoreError::Gone`] where its owner is nobody (any more), [`StoreError::ManyKeys`] where
    /// they have [`API_KEYS`].
    pub async fn add_key(
        &self,
        by: &By,
        name: &str,
        scope: Scope,
        until: Millis,
        now: Millis,
    ) -> Result<SecretString, Arc<StoreError>> {
        self.add_key_with(None, by, name, scope, until, now).await
    }

    /// The same with a key of theirs, by its number: once that is taken back, this one is none either.
    ///
    /// # Errors
    /// As [`Store::add_key`].
    pub async fn add_key_with(
        &self,
        key: Option<i64>,
        by: &By,
        name: &str,
        scope: Scope,
        until: Millis,
        now: Millis,
    ) -> Result<SecretString, Arc<StoreError>> {
        let made = secret::mint(MARK)?;
        let sql = "INSERT INTO keys (user_id, prefix, hash, name, scope, created_at, until, made_with) \
                   SELECT u.id, $2, $3, $4, $5, $6, $7, $8 FROM users u \
                   WHERE u.name = $1 AND (SELECT count(*) FROM keys k WHERE k.user_id = u.id) < $9";
        let most = i64::try_from(API_KEYS).unwrap_or(i64::MAX);
        let owner = (&*by.who).into();
        let values = [
            owner,
            (&*made.prefix).into(),
            made.hash.into(),
            name.into(),
            scope.name().into(),
            now.into(),
            until.into(),
            key.into(),
            most.into(),
        ];
        match self.change(vec![Statement::must(sql, values), by.did("key.add", name, now)]).await {
            Ok(()) => Ok(made.token),
            Err(error) if matches!(*error, StoreError::Gone) => {
                let many = self.keys(Some(&by.who)).await?.len() >= API_KEYS;
                Err(if many { StoreError::ManyKeys(API_KEYS).into() } else { error })
            }
            Err(error) => Err(error),
        }
    }

    /// The keys of somebody, or of all.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn keys(&self, owner: Option<&str>) -> Result<Vec<Key>, StoreError> {
        let sql = "SELECT k.id, u.name, k.name, k.prefix, k.scope, k.created_at, k.until FROM keys k \
                   JOIN users u ON u.id = k.user_id WHERE $1 = '' OR u.name = $1 ORDER BY k.id";
        let mut keys: Vec<Key> = self.read().await?.all(sql, &[Arg::Text(owner.unwrap_or(""))]).await?;
        keys.iter_mut().for_each(|key| key.prefix.insert_str(0, MARK));
        Ok(keys)
    }

    /// Takes a key back and whatever was made with it, one's own or, with `of_anyone`, anybody's; `false`: there is none.
    ///
    /// # Errors
    /// [`StoreError`] when it is still good.
    pub async fn remove_key(
        &self,
        by: &By,
        id: i64,
        of_anyone: bool,
        now: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        let sql =
            "DELETE FROM keys WHERE id = $1 AND ($3 = 1 OR user_id = (SELECT id FROM users WHERE name = $2))";
        let values = [id.into(), (&*by.who).into(), i64::from(of_anyone).into()];
        self.whether(vec![Statement::must(sql, values), by.did("key.remove", &id.to_string(), now)]).await
    }

    /// Whose key it is, what it is good for and until when; `None`: nobody's, or it has ended.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn key(&self, token: &SecretString, now: Millis) -> Result<Option<KnownKey>, StoreError> {
        let token = token.expose_secret();
        let Some(prefix) = secret::prefix(MARK, token) else { return Ok(None) };
        let sql = "SELECT k.id, u.name, k.scope, k.until, k.hash FROM keys k JOIN users u ON u.id = k.user_id \
                   WHERE k.prefix = $1 AND k.until > $2 AND u.disabled = 0";
        let found = self.look_up().await?.one(sql, &[Arg::Text(prefix), Arg::Int(now)]).await?;
        Ok(secret::whose(found, token))
    }
}
