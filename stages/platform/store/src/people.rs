//! People and their teams, and the rules that say what those may: read and changed. Each change stands in the audit log.

use std::sync::Arc;

use crate::accounts::{Account, END_EVERY_SESSION, END_SESSIONS, Role, insert, joins};
use crate::audit::By;
use crate::columns::from_columns;
use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::identity::PROVIDED_LASTS;
use crate::report::Millis;
use crate::rule::{Access, Rule};
use crate::statement::Statement;
use crate::store::Store;

/// The most rules that there may be.
pub const RULES: usize = 500;

/// Somebody, as they are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// How they sign in.
    pub name: String,
    /// What they may.
    pub role: Role,
    /// The issuer of the provider by whose group they are an admin; empty: a person made them one, or they are none.
    pub admin_by: String,
    /// The teams that they are in, by name.
    pub teams: Vec<String>,
    /// When they were added.
    pub created_at: Millis,
    /// Whether they may not come in.
    pub disabled: bool,
    /// From then on what a provider gave them does not count, unless they come in by it before; `None`: they have nothing of a provider
    /// that could lapse.
    pub lapses_at: Option<Millis>,
}

/// A session, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its number.
    pub id: i64,
    /// When somebody signed in.
    pub created_at: Millis,
    /// When it ends.
    pub until: Millis,
}

from_columns! { Session { id, created_at, until } }

/// The last that may manage accounts stays: a condition on `users`, of whom `$1` is the name. Whom a person made one is the last where
/// only groups made the others: a provider may take what its group gives at any time.
macro_rules! is_not_the_last {
    () => {
        "(role <> 'admin' OR disabled = 1 OR EXISTS (SELECT 1 FROM users u WHERE u.name <> $1 AND u.role = 'admin' \
         AND u.disabled = 0 AND (u.admin_by = '' OR users.admin_by <> '')))"
    };
}
const REMOVED: &str = concat!("DELETE FROM users WHERE name = $1 AND ", is_not_the_last!());
const DISABLED: &str =
    concat!("UPDATE users SET disabled = $2 WHERE name = $1 AND ($2 = 0 OR ", is_not_the_last!(), ")");
/// What a person gives or takes is no group's any more, also where it is what the group gave.
const ROLE: &str = concat!(
    "UPDATE users SET admin_by = '', role = $2 WHERE name = $1 AND ($2 = 'admin' OR ",
    is_not_the_last!(),
    ")"
);

/// A person keeps whom a group made an admin; not whose role has lapsed, who would have one for good again that nobody vouches for:
/// `$2` is when they had to come in last.
const KEEP_ADMIN: &str = "UPDATE users SET admin_by = '' WHERE name = $1 AND role = 'admin' AND EXISTS (SELECT 1 FROM identities i \
    WHERE i.user_id = users.id AND i.issuer = users.admin_by AND (i.signed_in_at > $2 OR i.created_at > $2))";

impl Person {
    /// Whether something of what a provider gave them does not count, as they have not come in by it for too long.
    #[must_use]
    pub fn has_lapsed(&self, now: Millis) -> bool {
        self.lapses_at.is_some_and(|at| now >= at)
    }
}

impl Store {
    /// Everybody, by name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn people(&self) -> Result<Vec<Person>, StoreError> {
        let sql = "SELECT u.name, u.role, u.created_at, m.team, u.disabled, u.admin_by, a.signed_in_at, a.created_at, \
                   m.given_by, i.signed_in_at, i.created_at FROM users u \
                   LEFT JOIN identities a ON a.user_id = u.id AND a.issuer = u.admin_by \
                   LEFT JOIN members m ON m.user_id = u.id LEFT JOIN identities i ON i.user_id = u.id AND i.issuer = m.given_by \
                   ORDER BY u.name, m.team";
        let mut people: Vec<Person> = Vec::new();
        for row in self.read().await?.rows(sql, &[]).await? {
            let (name, team, role) = (row.text(0)?, row.text_or_null(3)?, row.read_from::<Role>(1)?);
            // An admin has everything, whatever teams a provider put them into.
            let of_teams = if role == Role::Admin { None } else { lapses(&row, 8)? };
            match people.last_mut().filter(|last| last.name == name) {
                Some(last) => {
                    last.teams.extend(team);
                    last.lapses_at = last.lapses_at.into_iter().chain(of_teams.map(|(_, at)| at)).min();
                }
                None => people.push(Person {
                    name,
                    role,
                    admin_by: row.text_or_null(5)?.unwrap_or_default(),
                    teams: team.into_iter().collect(),
                    created_at: row.int(2)?,
                    disabled: row.int(4)? != 0,
                    lapses_at: lapses(&row, 5)?.or(of_teams).map(|(_, at)| at),
                }),
            }
        }
        Ok(people)
    }

    /// What somebody may; `None`: nobody has that name, or they are disabled. What a provider gave them counts for [`PROVIDED_LASTS`]
    /// after they last came in by it.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn access(&self, name: &str, now: Millis) -> Result<Option<Access>, StoreError> {
        let sql = "SELECT u.role, u.uid, u.admin_by, a.signed_in_at, a.created_at, m.team, m.given_by, i.signed_in_at, i.created_at \
                   FROM users u LEFT JOIN identities a ON a.user_id = u.id AND a.issuer = u.admin_by \
                   LEFT JOIN members m ON m.user_id = u.id LEFT JOIN identities i ON i.user_id = u.id AND i.issuer = m.given_by \
                   WHERE u.name = $1 AND u.disabled = 0";
        let mut connection = self.look_up().await?;
        let rows = connection.rows(sql, &[Arg::Text(name)]).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let (who, uid, mut lapsed) = (name.to_owned(), first.text(1)?, lapsed_at(first, 2, now)?);
        if lapsed.is_none() && first.read::<Role>()? == Role::Admin {
            return Ok(Some(Access { who, uid, role: Role::Admin, rules: Vec::new(), lapsed }));
        }
        let mut teams = Vec::new();
        for row in &rows {
            match lapsed_at(row, 6, now)? {
                Some(issuer) => lapsed = lapsed.or(Some(issuer)),
                None => teams.extend(row.text_or_null(5)?),
            }
        }
        let mut rules = all_rules(&mut connection).await?;
        rules.retain(|rule| teams.iter().any(|team| rule.teams.contains(team)));
        Ok(Some(Access { who, uid, role: Role::Member, rules, lapsed }))
    }

    /// Adds somebody; `false`: somebody has that name.
    ///
    /// # Errors
    /// [`StoreError`] when nobody was added.
    pub async fn add_person(&self, by: &By, account: &Account, now: Millis) -> Result<bool, Arc<StoreError>> {
        self.whether(vec![insert(account, now)?, by.did("user.add", &account.name, now)]).await
    }

    /// Takes somebody away, with their sessions and keys; `false`: nobody has that name, or it is the last admin whom a person made one.
    ///
    /// # Errors
    /// [`StoreError`] when they are still there.
    pub async fn remove_person(&self, by: &By, name: &str, now: Millis) -> Result<bool, Arc<StoreError>> {
        let removed = Statement::must(REMOVED, [name.into()]);
        self.whether(vec![removed, by.did("user.remove", name, now)]).await
    }

    /// Keeps somebody out, whose sessions and links end, or lets them in again; `false`: nobody has that name, or it is the last
    /// admin whom a person made one.
    ///
    /// # Errors
    /// [`StoreError`] when it is as it was.
    pub async fn set_disabled(
        &self,
        by: &By,
        name: &str,
        disabled: bool,
        now: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        let mut all = vec![Statement::must(DISABLED, [name.into(), i64::from(disabled).into()])];
        if disabled {
            let links = "DELETE FROM links WHERE user_id = (SELECT id FROM users WHERE name = $1)";
            all.extend([
                Statement::may(END_EVERY_SESSION, [name.into()]),
                Statement::may(links, [name.into()]),
            ]);
        }
        all.push(by.did(if disabled { "user.disable" } else { "user.enable" }, name, now));
        self.whether(all).await
    }

    /// Gives somebody a role; `false`: nobody has that name, or it is the last admin whom a person made one.
    ///
    /// # Errors
    /// [`StoreError`] when they have the one they had.
    pub async fn set_role(
        &self,
        by: &By,
        name: &str,
        role: Role,
        now: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        let set = Statement::must(ROLE, [name.into(), role.name().into()]);
        let act = if role == Role::Admin { "user.admin" } else { "user.member" };
        self.whether(vec![set, by.did(act, name, now)]).await
    }

    /// Keeps somebody as an admin whom a group of a provider made one: a person gave it from now on; `false`: nobody of that name is one
    /// by a group, or they have not come in by it for [`PROVIDED_LASTS`].
    ///
    /// # Errors
    /// [`StoreError`] when they are one by the group.
    pub async fn keep_admin(&self, by: &By, name: &str, now: Millis) -> Result<bool, Arc<StoreError>> {
        let came_in = now.saturating_sub(PROVIDED_LASTS);
        let kept = Statement::must(KEEP_ADMIN, [name.into(), came_in.into()]);
        self.whether(vec![kept, by.did("user.admin", name, now)]).await
    }

    /// Gives somebody a password, by its hash, and ends their sessions but `keep`; `false`: nobody has that name.
    ///
    /// # Errors
    /// [`StoreError`] when they have the one they had.
    pub async fn set_password(
        &self,
        by: &By,
        name: &str,
        hash: &str,
        keep: [u8; 32],
        now: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        let set = "UPDATE users SET password = $2 WHERE name = $1";
        self.whether(vec![
            Statement::must(set, [name.into(), hash.into()]),
            Statement::may(END_SESSIONS, [name.into(), keep.into()]),
            by.did("user.password", name, now),
        ])
        .await
    }

    /// Puts somebody into these teams and no others; `false`: nobody has that name.
    ///
    /// # Errors
    /// [`StoreError`] when they are in those they were in.
    pub async fn set_teams(
        &self,
        by: &By,
        name: &str,
        teams: &[String],
        now: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        // Where they stay, whoever put them there is the same. No name of a team has a comma.
        let leave = "DELETE FROM members WHERE user_id = (SELECT id FROM users WHERE name = $1) \
                     AND replace($2, ',' || team || ',', '') = $2";
        let stay: String = teams.iter().flat_map(|team| [",", team, ","]).collect();
        let there = "UPDATE users SET name = name WHERE name = $1";
        let mut all = vec![Statement::must(there, [name.into()])];
        all.push(Statement::may(leave, [name.into(), (&*stay).into()]));
        all.extend(joins(name, teams, ""));
        all.push(by.did("user.teams", &format!("{name}: {}", teams.join(", ")), now));
        self.whether(all).await
    }

    /// The sessions of somebody that have not ended, the newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn sessions(&self, name: &str, now: Millis) -> Result<Vec<Session>, StoreError> {
        let sql = "SELECT s.id, s.created_at, s.until FROM sessions s JOIN users u ON u.id = s.user_id \
                   WHERE u.name = $1 AND s.until > $2 ORDER BY s.id DESC LIMIT 100";
        self.read().await?.all(sql, &[Arg::Text(name), Arg::Int(now)]).await
    }

    /// Ends every session of somebody; `false`: there was none.
    ///
    /// # Errors
    /// [`StoreError`] when they go on.
    pub async fn end_sessions(&self, by: &By, name: &str, now: Millis) -> Result<bool, Arc<StoreError>> {
        self.whether(vec![
            Statement::must(END_EVERY_SESSION, [name.into()]),
            by.did("user.sign-out", name, now),
        ])
        .await
    }

    /// Every rule, by its number.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn rules(&self) -> Result<Vec<Rule>, StoreError> {
        all_rules(&mut self.read().await?).await
    }

    /// Keeps a rule that [`Rule::check`] takes; `false`: there are as many as there may be.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn add_rule(&self, by: &By, rule: &Rule, now: Millis) -> Result<bool, Arc<StoreError>> {
        let body = serde_json::to_string(rule).map_err(StoreError::from)?;
        let sql =
            "INSERT INTO rules (body, created_at) SELECT $1, $2 WHERE (SELECT count(*) FROM rules) < $3";
        let most = i64::try_from(RULES).unwrap_or(i64::MAX);
        let added = Statement::must(sql, [(&*body).into(), now.into(), most.into()]);
        self.whether(vec![added, by.did("rule.add", &body, now)]).await
    }

    /// Keeps a rule that [`Rule::check`] takes instead of the one of its number; `false`: there is none.
    ///
    /// # Errors
    /// [`StoreError`] when the one before it still holds.
    pub async fn change_rule(&self, by: &By, rule: &Rule, now: Millis) -> Result<bool, Arc<StoreError>> {
        let body = serde_json::to_string(rule).map_err(StoreError::from)?;
        let changed =
            Statement::must("UPDATE rules SET body = $2 WHERE id = $1", [rule.id.into(), (&*body).into()]);
        self.whether(vec![changed, by.did("rule.change", &format!("{}: {body}", rule.id), now)]).await
    }

    /// Takes a rule away; `false`: there is none of that number.
    ///
    /// # Errors
    /// [`StoreError`] when it still holds.
    pub async fn remove_rule(&self, by: &By, id: i64, now: Millis) -> Result<bool, Arc<StoreError>> {
        let removed = Statement::must("DELETE FROM rules WHERE id = $1", [id.into()]);
        self.whether(vec![removed, by.did("rule.remove", &id.to_string(), now)]).await
    }
}

/// The provider, by its issuer, that does not count any more for what it gave, by three columns of a row: see [`lapses`].
fn lapsed_at(row: &Row, column: usize, now: Millis) -> Result<Option<String>, StoreError> {
    Ok(lapses(row, column)?.filter(|(_, at)| now >= *at).map(|(issuer, _)| issuer))
}

/// The provider that gave something, by its issuer, and from when on that does not count; by three columns of a row: that issuer, when
/// somebody last came in by it, and since when they are known there, which a version says that keeps no sign-ins. `None`: no provider
/// gave it.
fn lapses(row: &Row, column: usize) -> Result<Option<(String, Millis)>, StoreError> {
    let issuer = row.text_or_null(column)?.filter(|issuer| !issuer.is_empty());
    let last = row.int_or_null(column + 1)?.max(row.int_or_null(column + 2)?);
    let at = last.map_or(Millis::MIN, |last| last.saturating_add(PROVIDED_LASTS));
    Ok(issuer.map(|issuer| (issuer, at)))
}

async fn all_rules(connection: &mut Connection) -> Result<Vec<Rule>, StoreError> {
    let rows: Vec<(i64, String)> = connection.all("SELECT id, body FROM rules ORDER BY id", &[]).await?;
    rows.iter().map(|(id, body)| Ok(Rule { id: *id, ..serde_json::from_str(body)? })).collect()
}
