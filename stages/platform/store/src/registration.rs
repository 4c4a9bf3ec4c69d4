//! Runtimes as people and their programs know them: registered, listed, taken away; and what they say is wrong with them.

use std::sync::Arc;

use pipeline_core::SecretString;

use crate::audit::By;
use crate::columns::from_columns;
use crate::connection::Arg;
use crate::error::StoreError;
use crate::heard::{self, RefusedReports, reporter_at};
use crate::report::Millis;
use crate::runtime_name::{self, runtime_id};
use crate::secret;
use crate::statement::Statement;
use crate::store::Store;
use crate::token::{self, Token};
use crate::version_source::drop_version_sources;

/// A runtime that has a token, or had one and was registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Its name.
    pub name: String,
    /// What it said of itself when it was registered, as JSON; `{}` where it was not.
    pub body: String,
    /// What it last said is wrong with it, as JSON; `[]`: nothing.
    pub problems: String,
    /// The version that it runs, as it said last; empty: it never did.
    pub version: String,
    /// When it was added.
    pub created_at: Millis,
    /// When it last reported of anything, if it did.
    pub last_report: Option<Millis>,
    /// When it was last heard of, if only that it lives.
    pub heard_at: Option<Millis>,
    /// When its reporter was last heard of, if only that it lives; `None` as well of one that sends no digests.
    pub reporter_at: Option<Millis>,
    /// What of its requests was not taken, the most often first.
    pub refused: Vec<RefusedReports>,
}

from_columns! {
    Registration {
        name, body, problems, version, created_at, last_report, heard_at, reporter_at; refused: Vec::new()
    }
}

impl Store {
    /// Every runtime, by name; or the one of a name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn registrations(&self, only: Option<&str>) -> Result<Vec<Registration>, StoreError> {
        // No runtime has an empty name, and below it stands for all of them.
        if only == Some("") {
            return Ok(Vec::new());
        }
        let sql = concat!(
            "SELECT r.name, COALESCE(g.body, '{}'), COALESCE(p.body, '[]'), r.version, r.created_at, r.reported_at, r.seen_at, ",
            reporter_at!(),
            ", r.id FROM runtimes r \
             LEFT JOIN registrations g ON g.runtime_id = r.id LEFT JOIN problems p ON p.runtime_id = r.id \
             WHERE ($1 = '' OR r.name = $1) \
             AND (g.runtime_id IS NOT NULL OR EXISTS (SELECT 1 FROM tokens t WHERE t.runtime_id = r.id))"
        );
        let mut connection = self.read().await?;
        let rows = connection.all(sql, &[Arg::Text(only.unwrap_or(""))]).await?;
        let mut beside = heard::read(&mut connection).await?;
        let one = |(one, id): (Registration, i64)| Registration {
            refused: beside.remove(&id).unwrap_or_default().refused,
            ..one
        };
        let mut all: Vec<Registration> = rows.into_iter().map(one).collect();
        // By its bytes, as places in the list are compared: Postgres orders texts by the language of its database.
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// The runtime that was added first of those that there are; `None`: there is none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn first_runtime(&self) -> Result<Option<String>, StoreError> {
        let sql = "SELECT r.name FROM runtimes r WHERE EXISTS (SELECT 1 FROM registrations g WHERE g.runtime_id = r.id) \
                   OR EXISTS (SELECT 1 FROM tokens t WHERE t.runtime_id = r.id) ORDER BY r.id LIMIT 1";
        self.read().await?.one(sql, &[]).await
    }

    /// Registers a runtime and makes its token; `None`: there is one of that name, and it is not to be recovered. The runtime may be
    /// an adopter's: whether a new one may be called so says
    /// [`is_new_runtime_name`](crate::is_new_runtime_name).
    ///
    /// # Errors
    /// [`StoreError`] when the name is none, another has its id, or nothing was kept.
    pub async fn register(
        &self,
        by: &By,
        name: &str,
        body: &str,
        recover: bool,
        now: Millis,
    ) -> Result<Option<SecretString>, Arc<StoreError>> {
        self.register_with(by, (name, body), recover, secret::mint(token::MARK)?, now).await
    }

    /// The same for whoever has a secret of the registration, of 64 random digits: as often as they ask, because an answer was lost,
    /// they are given the same token, until it is taken back.
    ///
    /// # Errors
    /// As [`Store::register`].
    pub async fn register_installation(
        &self,
        by: &By,
        (name, body): (&str, &str),
        installation: &SecretString,
        now: Millis,
    ) -> Result<Option<SecretString>, Arc<StoreError>> {
        let made = secret::derived(token::MARK, installation);
        self.register_with(by, (name, body), false, made, now).await
    }

    async fn register_with(
        &self,
        by: &By,
        (name, body): (&str, &str),
        recover: bool,
        made: secret::Minted,
        now: Millis,
    ) -> Result<Option<SecretString>, Arc<StoreError>> {
        runtime_name::check_adopted(name)?;
        let id = runtime_id(name);
        let store_key = secret::digits()?;
        // A name is free where nobody has a token or a registration of it. Whoever has this very token asks again.
        let registered = "INSERT INTO registrations (runtime_id, body, store_key, created_at) \
                          SELECT r.id, $2, $3, $4 FROM runtimes r WHERE r.name = $1 AND ($5 = 1 OR EXISTS (\
                          SELECT 1 FROM tokens t WHERE t.runtime_id = r.id AND t.hash = $6) OR (\
                          NOT EXISTS (SELECT 1 FROM registrations g WHERE g.runtime_id = r.id) \
                          AND NOT EXISTS (SELECT 1 FROM tokens t WHERE t.runtime_id = r.id))) \
                          ON CONFLICT (runtime_id) DO UPDATE SET body = excluded.body";
        let recovers = i64::from(recover).into();
        let values = [name.into(), body.into(), (&*store_key).into(), now.into(), recovers, made.hash.into()];
        let token = "INSERT INTO tokens (runtime_id, prefix, hash, created_at) SELECT r.id, $2, $3, $4 FROM runtimes r \
                     WHERE r.name = $1 AND NOT EXISTS (SELECT 1 FROM tokens t WHERE t.runtime_id = r.id AND t.hash = $3)";
        let done = self.whether(vec![
            Statement::may(token::NEW_RUNTIME, [name.into(), (&*id).into(), now.into()]),
            Statement::must(registered, values),
            Statement::may(token, [name.into(), (&*made.prefix).into(), made.hash.into(), now.into()]),
            Statement::may(VERSION, [name.into(), (&*version_of(body)).into()]),
            by.did("runtime.add", name, now),
        ]);
        if done.await? {
            return Ok(Some(made.token));
        }
        match token::of_id(&mut self.read().await?, &id).await? {
            Some(of) if of != name => {
                Err(StoreError::SameId { name: name.to_owned(), id: id.into_owned(), of }.into())
            }
            _ => Ok(None),
        }
    }

    /// The name of the runtime that is called so, or told by that id; `None`: there is none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn runtime_called(&self, name_or_id: &str) -> Result<Option<String>, StoreError> {
        // No name is the id of another: a name that could be is its own.
        let sql = "SELECT name FROM runtimes WHERE name = $1 OR (public_id = $1 AND public_id <> '')";
        self.read().await?.one(sql, &[Arg::Text(name_or_id)]).await
    }

    /// Makes another token of a runtime that there is; `None`: there is none of that name.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn add_token(
        &self,
        by: &By,
        name: &str,
        now: Millis,
    ) -> Result<Option<SecretString>, Arc<StoreError>> {
        let made = secret::mint(token::MARK)?;
        let done = self.whether(vec![token_of(name, &made, now), by.did("token.add", name, now)]);
        Ok(done.await?.then_some(made.token))
    }

    /// The tokens of every runtime.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        token::all(&mut self.read().await?).await
    }

    /// Takes a token back, by what it begins with, as it is listed; `false`: there is none.
    ///
    /// # Errors
    /// [`StoreError`] when it is still good.
    pub async fn remove_token(&self, by: &By, name: &str, now: Millis) -> Result<bool, Arc<StoreError>> {
        let prefix = name.strip_prefix(token::MARK).unwrap_or_default();
        let removed = Statement::must("DELETE FROM tokens WHERE prefix = $1", [prefix.into()]);
        self.whether(vec![removed, by.did("token.remove", name, now)]).await
    }

    /// Takes a runtime's tokens and registration; what it reported stays until it is too old. `false`: it has none.
    ///
    /// # Errors
    /// [`StoreError`] when they are still there.
    pub async fn unregister(&self, by: &By, name: &str, now: Millis) -> Result<bool, Arc<StoreError>> {
        if self.registrations(Some(name)).await?.is_empty() {
            return Ok(false);
        }
        let of = |sql| Statement::may(sql, [name.into()]);
        self.whether(vec![
            of("DELETE FROM tokens WHERE runtime_id = (SELECT id FROM runtimes WHERE name = $1)"),
            of("DELETE FROM problems WHERE runtime_id = (SELECT id FROM runtimes WHERE name = $1)"),
            of("DELETE FROM roles WHERE runtime_id = (SELECT id FROM runtimes WHERE name = $1)"),
            of("DELETE FROM clusters WHERE runtime_id = (SELECT id FROM runtimes WHERE name = $1)"),
            of("DELETE FROM sealing_keys WHERE runtime_id = (SELECT id FROM runtimes WHERE name = $1)"),
            of("DELETE FROM registrations WHERE runtime_id = (SELECT id FROM runtimes WHERE name = $1)"),
            of("UPDATE runtimes SET version = '' WHERE name = $1"),
            drop_version_sources(name),
            by.did("runtime.remove", name, now),
        ])
        .await
    }

    /// The key that a runtime's own secrets are kept under; `None`: it is not registered.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn store_key(&self, name: &str) -> Result<Option<SecretString>, StoreError> {
        let sql = "SELECT g.store_key FROM registrations g JOIN runtimes r ON r.id = g.runtime_id WHERE r.name = $1";
        self.read().await?.one(sql, &[Arg::Text(name)]).await
    }

    /// Keeps what a runtime says is wrong with it, instead of what it said before; `false`: there is none of that name that has a
    /// token or is registered.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn keep_problems(
        &self,
        name: &str,
        problems: &str,
        now: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        let sql = "INSERT INTO problems (runtime_id, body, at) SELECT id, $2, $3 FROM runtimes WHERE name = $1 \
                   ON CONFLICT (runtime_id) DO UPDATE SET body = excluded.body, at = excluded.at";
        // It is the app proxy that says so.
        let role = "INSERT INTO roles (runtime_id, role, version, at) SELECT id, 'app-proxy', version, $2 FROM runtimes \
                    WHERE name = $1 ON CONFLICT (runtime_id, role) DO UPDATE SET version = excluded.version, at = excluded.at";
        let seen = "UPDATE runtimes SET seen_at = $2 WHERE name = $1 AND (seen_at IS NULL OR seen_at < $2)";
        self.whether(vec![
            Statement::must(IS_THERE, [name.into()]),
            Statement::must(sql, [name.into(), problems.into(), now.into()]),
            Statement::may(role, [name.into(), now.into()]),
            Statement::may(seen, [name.into(), now.into()]),
        ])
        .await
    }

    /// Keeps the version that a runtime runs, as it says itself; `false`: there is none of that name that has a token or is
    /// registered.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn keep_version(&self, name: &str, version: &str) -> Result<bool, Arc<StoreError>> {
        let kept = Statement::must(VERSION, [name.into(), version.into()]);
        self.whether(vec![Statement::must(IS_THERE, [name.into()]), kept]).await
    }
}

/// Changes nothing, and finds the runtime of a name that has a token or is registered: of others what they reported is left.
const IS_THERE: &str = "UPDATE runtimes SET name = name WHERE name = $1 AND (\
                        EXISTS (SELECT 1 FROM registrations g WHERE g.runtime_id = runtimes.id) \
                        OR EXISTS (SELECT 1 FROM tokens t WHERE t.runtime_id = runtimes.id))";

/// Keeps the version that a runtime runs.
const VERSION: &str = "UPDATE runtimes SET version = $2 WHERE name = $1";

/// The version in what a runtime said of itself when it was registered; empty: there is none.
fn version_of(body: &str) -> String {
    let said: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    said.get("runtimeVersion").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

fn token_of(name: &str, made: &secret::Minted, now: Millis) -> Statement {
    let sql = "INSERT INTO tokens (runtime_id, prefix, hash, created_at) SELECT id, $2, $3, $4 FROM runtimes WHERE name = $1";
    Statement::must(sql, [name.into(), (&*made.prefix).into(), made.hash.into(), now.into()])
}
