//! Accounts: who signs in, until when, and the one-time link that makes the first of them. Tokens come here as SHA-256
//! digests, passwords as hashes.

use std::sync::Arc;

use crate::audit::By;
use crate::columns::{Column, Columns, from_columns};
use crate::connection::{Arg, Connection};
use crate::error::StoreError;
use crate::report::Millis;
use crate::secret;
use crate::statement::Statement;
use crate::store::Store;

/// Random bytes of a uid.
const UID_BYTES: usize = 16;
/// All sessions of somebody but one.
pub(crate) const END_SESSIONS: &str =
    "DELETE FROM sessions WHERE digest <> $2 AND user_id = (SELECT id FROM users WHERE name = $1)";
/// All sessions of somebody.
pub(crate) const END_EVERY_SESSION: &str =
    "DELETE FROM sessions WHERE user_id = (SELECT id FROM users WHERE name = $1)";

/// What somebody may do whatever the rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything, accounts and rules among it.
    Admin,
    /// What the rules of their teams grant.
    Member,
}

/// Somebody who signs in.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// How they sign in.
    pub name: String,
    /// The Argon2id hash of their password, in PHC form.
    pub password: String,
    /// What they may.
    pub role: Role,
}

from_columns! { Account { name, password, role } }

/// What a one-time link is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// To make the first account.
    FirstAccount,
    /// To set the password of the user of that name.
    PasswordOf(String),
}

impl Role {
    /// As it is kept and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Admin, Self::Member].into_iter().find(|role| role.name() == name)
    }
}

/// As it is kept: whatever is not known may least.
impl Column for Role {
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        Ok(Self::named(&columns.value::<String>()?).unwrap_or(Self::Member))
    }
}

impl Store {
    /// Whether anybody has an account yet.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn has_accounts(&self) -> Result<bool, StoreError> {
        Ok(self.read().await?.row("SELECT id FROM users LIMIT 1", &[]).await?.is_some())
    }

    /// The account of that name, unless it is disabled.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn account(&self, name: &str) -> Result<Option<Account>, StoreError> {
        let sql = "SELECT name, password, role FROM users WHERE name = $1 AND disabled = 0";
        self.read().await?.one(sql, &[Arg::Text(name)]).await
    }

    /// Keeps a one-time link that makes the first account, and forgets any before it.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn keep_link(&self, link: [u8; 32], until: Millis) -> Result<(), Arc<StoreError>> {
        self.change(vec![
            Statement::may("DELETE FROM links WHERE user_id IS NULL", []),
            Statement::must("INSERT INTO links (digest, until) VALUES ($1, $2)", [link.into(), until.into()]),
        ])
        .await
    }

    /// What a one-time link is good for; `None`: for nothing (any more).
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn link(&self, link: [u8; 32], now: Millis) -> Result<Option<Link>, StoreError> {
        let sql = "SELECT u.name FROM links l LEFT JOIN users u ON u.id = l.user_id \
                   WHERE l.digest = $1 AND l.until > $2 AND COALESCE(u.disabled, 0) = 0";
        let whose =
            self.read().await?.one::<Option<String>>(sql, &[Arg::Bytes(&link), Arg::Int(now)]).await?;
        Ok(whose.map(|whose| whose.map_or(Link::FirstAccount, Link::PasswordOf)))
    }

    /// Adds somebody who has no password yet, with a one-time link to set one; `false`: somebody has that name.
    ///
    /// # Errors
    /// [`StoreError`] when nobody was added.
    pub async fn invite(
        &self,
        by: &By,
        account: &Account,
        teams: &[String],
        (link, until): ([u8; 32], Millis),
        now: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        let name = &*account.name;
        let mut all = vec![insert(account, now)?];
        all.extend(joins(name, teams, ""));
        all.push(link_for(name, link, until));
        all.push(by.did(
            "user.invite",
            &format!("{name}: {}, teams: {}", account.role.name(), teams.join(", ")),
            now,
        ));
        self.whether(all).await
    }

    /// Keeps a one-time link by which somebody sets a new password, and forgets any before it; `false`: nobody has that name.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn keep_link_for(
        &self,
        by: &By,
        name: &str,
        (link, until): ([u8; 32], Millis),
        now: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        let before = "DELETE FROM links WHERE user_id = (SELECT id FROM users WHERE name = $1)";
        let forgotten = Statement::may(before, [name.into()]);
        self.whether(vec![forgotten, link_for(name, link, until), by.did("user.link", name, now)]).await
    }

    /// Gives whoever a link is for a password, by its hash, ends their sessions and uses the link up, all or nothing; `false`:
    /// the link is not good (any more).
    ///
    /// # Errors
    /// [`StoreError`] when nothing was changed.
    pub async fn use_link_for(
        &self,
        link: [u8; 32],
        now: Millis,
        name: &str,
        hash: &str,
    ) -> Result<bool, Arc<StoreError>> {
        let used = "DELETE FROM links WHERE digest = $1 AND until > $2 AND user_id = (SELECT id FROM users WHERE name = $3)";
        let set = "UPDATE users SET password = $2 WHERE name = $1 AND disabled = 0";
        let by = By { who: name.to_owned(), how: "link" };
        self.whether(vec![
            Statement::must(used, [link.into(), now.into(), name.into()]),
            Statement::must(set, [name.into(), hash.into()]),
            Statement::may(END_EVERY_SESSION, [name.into()]),
            by.did("user.password", name, now),
        ])
        .await
    }

    /// Makes the first account and uses the link up, both or neither; `false`: the link is not good (any more), or the
    /// name is somebody's.
    ///
    /// # Errors
    /// [`StoreError`] when nothing was kept.
    pub async fn use_link(
        &self,
        link: [u8; 32],
        now: Millis,
        account: &Account,
    ) -> Result<bool, Arc<StoreError>> {
        let sql = "DELETE FROM links WHERE digest = $1 AND until > $2 AND user_id IS NULL";
        let by = By { who: account.name.clone(), how: "link" };
        self.whether(vec![
            Statement::must(sql, [link.into(), now.into()]),
            insert(account, now)?,
            by.did("user.add", &account.name, now),
        ])
        .await
    }

    /// Keeps a session of somebody.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept; [`StoreError::Gone`] where nobody has that name.
    pub async fn keep_session(
        &self,
        session: [u8; 32],
        name: &str,
        now: Millis,
        until: Millis,
    ) -> Result<(), Arc<StoreError>> {
        let sql = "INSERT INTO sessions (digest, user_id, created_at, until) \
                   SELECT $1, id, $3, $4 FROM users WHERE name = $2 AND disabled = 0";
        let begun = Statement::must(sql, [session.into(), name.into(), now.into(), until.into()]);
        let by = By { who: name.to_owned(), how: "session" };
        self.change(vec![begun, by.did("user.sign-in", name, now)]).await
    }

    /// Who a session is of, unless it has ended.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn session(&self, session: [u8; 32], now: Millis) -> Result<Option<String>, StoreError> {
        let sql = "SELECT u.name FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.digest = $1 AND s.until > $2 AND u.disabled = 0";
        self.look_up().await?.one(sql, &[Arg::Bytes(&session), Arg::Int(now)]).await
    }

    /// Ends a session, if there is one.
    ///
    /// # Errors
    /// [`StoreError`] when it goes on.
    pub async fn end_session(&self, session: [u8; 32]) -> Result<(), Arc<StoreError>> {
        self.change(vec![Statement::may("DELETE FROM sessions WHERE digest = $1", [session.into()])]).await
    }

    /// Changes what there is to be changed; `false`: it is not there (any more), and nothing was changed.
    pub(crate) async fn whether(&self, statements: Vec<Statement>) -> Result<bool, Arc<StoreError>> {
        match self.change(statements).await {
            Ok(()) => Ok(true),
            Err(error) if matches!(*error, StoreError::Gone) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Puts somebody into teams, which is a provider's doing, by its issuer, or a person's. Where they are in one already, it is the
/// provider's from now on, and a person changes nothing.
pub(crate) fn joins(name: &str, teams: &[String], given_by: &str) -> Vec<Statement> {
    let sql = "INSERT INTO members (team, user_id, given_by) SELECT $2, id, $3 FROM users WHERE name = $1 \
               ON CONFLICT (user_id, team) DO UPDATE SET given_by = excluded.given_by WHERE excluded.given_by <> ''";
    teams.iter().map(|team| Statement::may(sql, [name.into(), (&**team).into(), given_by.into()])).collect()
}

/// Takes somebody out of teams.
pub(crate) fn leaves(name: &str, teams: impl Iterator<Item = String>) -> impl Iterator<Item = Statement> {
    let sql = "DELETE FROM members WHERE team = $2 AND user_id = (SELECT id FROM users WHERE name = $1)";
    teams.map(move |team| Statement::may(sql, [name.into(), (&*team).into()]))
}

fn link_for(name: &str, link: [u8; 32], until: Millis) -> Statement {
    let sql = "INSERT INTO links (digest, until, user_id) SELECT $1, $2, id FROM users WHERE name = $3";
    Statement::must(sql, [link.into(), until.into(), name.into()])
}

/// Makes an account, which gets a uid that no account had.
pub(crate) fn insert(account: &Account, now: Millis) -> Result<Statement, StoreError> {
    let sql = "INSERT INTO users (name, password, role, created_at, uid) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
    let uid = secret::random_hex::<UID_BYTES>()?;
    let Account { name, password, role } = account;
    let values = [(&**name).into(), (&**password).into(), role.name().into(), now.into(), (&*uid).into()];
    Ok(Statement::must(sql, values))
}

/// Sessions, links and keys that have ended go, and what was done before `history`; how many.
pub(crate) async fn retain(
    connection: &mut Connection,
    now: Millis,
    history: Millis,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE until < $1 LIMIT 500)";
    let mut gone = connection.execute(sql, &[Arg::Int(now)]).await?;
    gone += connection.execute("DELETE FROM keys WHERE until < $1", &[Arg::Int(now)]).await?;
    let sql = "DELETE FROM passes WHERE digest IN (SELECT digest FROM passes WHERE until < $1 LIMIT 500)";
    gone += connection.execute(sql, &[Arg::Int(now)]).await?;
    let sql = "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < $1 LIMIT 500)";
    gone += connection.execute(sql, &[Arg::Int(history)]).await?;
    Ok(gone + connection.execute("DELETE FROM links WHERE until < $1", &[Arg::Int(now)]).await?)
}

/// Without the hash.
impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}
