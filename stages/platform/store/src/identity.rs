//! People by who they are at a provider of OpenID Connect: issuer and subject, which are theirs for good. A name or an address
//! that a provider tells finds nobody: whoever may choose it there would come in as somebody else here.

use std::sync::Arc;

use crate::accounts::{Account, END_SESSIONS, Role, insert, joins, leaves};
use crate::audit::By;
use crate::columns::from_columns;
use crate::connection::Arg;
use crate::error::StoreError;
use crate::report::{DAY, Millis};
use crate::statement::Statement;
use crate::store::Store;

/// How somebody came in who was sent by a provider.
const HOW: &str = "oidc";

/// What a provider gave somebody counts for so long after they last came in by it: nobody asks it in between.
pub const PROVIDED_LASTS: Millis = 30 * DAY;

/// Who somebody is at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The provider, by its issuer.
    pub issuer: String,
    /// Who they are there.
    pub subject: String,
}

/// Whose an identity is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identified {
    /// Their name here.
    pub name: String,
    /// Whether they may not come in.
    pub disabled: bool,
}

from_columns! { Identified { name, disabled } }

/// What a provider decides of somebody here: of some teams whether they are in them, and whether they are an admin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provided {
    /// Every team that it decides about; in all others people stay as they are.
    pub decided: Vec<String>,
    /// Those that somebody is in.
    pub joined: Vec<String>,
    /// The group that makes them an admin, where they are in it.
    pub admin: Option<String>,
}

const MAKE_ADMIN: &str =
    "UPDATE users SET role = 'admin', admin_by = $2 WHERE name = $1 AND role <> 'admin' AND disabled = 0";
/// Also the last of them: whoever is put into the group is one, and what a person gave is not taken.
const NO_ADMIN: &str = "UPDATE users SET role = 'member', admin_by = '' WHERE name = $1 AND admin_by = $2";

impl Store {
    /// Whose an identity is; `None`: nobody's.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn identified(&self, identity: &Identity) -> Result<Option<Identified>, StoreError> {
        let sql = "SELECT u.name, u.disabled FROM identities i JOIN users u ON u.id = i.user_id \
                   WHERE i.issuer = $1 AND i.subject = $2";
        let values = [Arg::Text(&identity.issuer), Arg::Text(&identity.subject)];
        self.read().await?.one(sql, &values).await
    }

    /// The subject that somebody is at a provider; `None`: none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn subject_of(&self, name: &str, issuer: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT i.subject FROM identities i JOIN users u ON u.id = i.user_id WHERE u.name = $1 AND i.issuer = $2";
        self.read().await?.one(sql, &[Arg::Text(name), Arg::Text(issuer)]).await
    }

    /// Adds somebody whom a provider sent; `false`: somebody has that name, or that identity.
    ///
    /// # Errors
    /// [`StoreError`] when nobody was added.
    pub async fn add_identified(
        &self,
        account: &Account,
        identity: &Identity,
        now: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        let by = By { who: account.name.clone(), how: HOW };
        self.whether(vec![
            insert(account, now)?,
            belongs(&account.name, identity, now),
            by.did("user.add", &account.name, now),
        ])
        .await
    }

    /// Lets somebody sign in by an identity; `false`: nobody has that name, the identity is somebody's, or they have one of that
    /// provider.
    ///
    /// # Errors
    /// [`StoreError`] when it is as it was.
    pub async fn link_identity(
        &self,
        by: &By,
        name: &str,
        identity: &Identity,
        now: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        let said = format!("{name}: {} of {}", identity.subject, identity.issuer);
        self.whether(vec![belongs(name, identity, now), by.did("user.link-identity", &said, now)]).await
    }

    /// Lets somebody sign in by their identity of a provider no more, ends their sessions but `keep`, and takes what the provider
    /// gave them; `false`: they have none.
    ///
    /// # Errors
    /// [`StoreError`] when it is as it was.
    pub async fn unlink_identity(
        &self,
        by: &By,
        name: &str,
        issuer: &str,
        keep: [u8; 32],
        now: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        let sql =
            "DELETE FROM identities WHERE issuer = $2 AND user_id = (SELECT id FROM users WHERE name = $1)";
        let said = format!("{name}: of {issuer}");
        let mut all = vec![
            Statement::must(sql, [name.into(), issuer.into()]),
            Statement::may(END_SESSIONS, [name.into(), keep.into()]),
            by.did("user.unlink-identity", &said, now),
        ];
        let (given, others): (Vec<_>, Vec<_>) =
            self.members_of(name).await?.into_iter().partition(|(_, given_by)| given_by == issuer);
        if !given.is_empty() {
            let others: Vec<String> = others.into_iter().map(|(team, _)| team).collect();
            all.extend(leaves(name, given.into_iter().map(|(team, _)| team)));
            all.push(by.did("user.teams", &format!("{name}: {}", others.join(", ")), now));
        }
        if self.is_admin_by(name, issuer).await? {
            all.push(Statement::must(NO_ADMIN, [name.into(), issuer.into()]));
            all.push(by.did("user.member", name, now));
        }
        self.whether(all).await
    }

    /// Those who are admins by a group of a provider are none any more, but by this one's; empty for no provider's.
    ///
    /// # Errors
    /// [`StoreError`] when they are what they were.
    pub async fn keep_admins_of(&self, issuer: &str, now: Millis) -> Result<(), Arc<StoreError>> {
        let sql = "SELECT name, admin_by FROM users WHERE admin_by <> '' AND admin_by <> $1";
        let by = By { who: "platform".to_owned(), how: "settings" };
        let mut all = Vec::new();
        for (name, other) in self.read().await?.all::<(String, String)>(sql, &[Arg::Text(issuer)]).await? {
            all.push(Statement::may(NO_ADMIN, [(&*name).into(), (&*other).into()]));
            all.push(by.did("user.member", &format!("{name}: no group of {other} makes an admin"), now));
        }
        if all.is_empty() { Ok(()) } else { self.change(all).await }
    }

    /// Nobody stays in a team that a provider put them into, but in these where it was this one; an empty issuer is no provider's.
    ///
    /// Whoever put people into these teams before that was kept, it was the provider of those who come in by nothing else: what a person
    /// gives them there lasts until they come in the next time.
    ///
    /// # Errors
    /// [`StoreError`] when they are in those they were in.
    pub async fn keep_teams_of(
        &self,
        issuer: &str,
        teams: &[String],
        now: Millis,
    ) -> Result<(), Arc<StoreError>> {
        let sql = "SELECT u.name, m.team, m.given_by FROM members m JOIN users u ON u.id = m.user_id \
                   WHERE m.given_by <> '' ORDER BY u.name, m.team";
        let by = By { who: "platform".to_owned(), how: "settings" };
        let own = "UPDATE members SET given_by = $1 WHERE given_by = '' AND team = $2 AND user_id IN \
                   (SELECT u.id FROM users u JOIN identities i ON i.user_id = u.id WHERE i.issuer = $1 AND u.password = '')";
        let own = |team: &String| Statement::may(own, [issuer.into(), (&**team).into()]);
        let mut all: Vec<Statement> = teams.iter().map(own).collect();
        for (name, (team, given_by)) in self.read().await?.all::<(String, (String, String))>(sql, &[]).await?
        {
            if given_by == issuer && teams.contains(&team) {
                continue;
            }
            let said = format!("{name}: not in {team} any more, as no group of {given_by} leads there");
            all.extend(leaves(&name, std::iter::once(team)));
            all.push(by.did("user.teams", &said, now));
        }
        if all.is_empty() { Ok(()) } else { self.change(all).await }
    }

    /// Keeps a session of whoever has an identity, puts them into the teams that the provider says, and makes them an admin as it
    /// says, all or nothing; `false`: it is nobody's, or they are disabled.
    ///
    /// # Errors
    /// [`StoreError`] when nothing was kept.
    pub async fn sign_in_identified(
        &self,
        session: [u8; 32],
        identity: &Identity,
        provided: &Provided,
        now: Millis,
        until: Millis,
    ) -> Result<bool, Arc<StoreError>> {
        let Some(Identified { name, .. }) = self.identified(identity).await? else { return Ok(false) };
        let sql = "INSERT INTO sessions (digest, user_id, created_at, until) \
                   SELECT $1, u.id, $4, $5 FROM users u JOIN identities i ON i.user_id = u.id \
                   WHERE i.issuer = $2 AND i.subject = $3 AND u.disabled = 0";
        let issuer = (&*identity.issuer).into();
        let values = [session.into(), issuer, (&*identity.subject).into(), now.into(), until.into()];
        let by = By { who: name.clone(), how: HOW };
        let seen = "UPDATE identities SET signed_in_at = $3 WHERE issuer = $1 AND subject = $2";
        let seen_values = [(&*identity.issuer).into(), (&*identity.subject).into(), now.into()];
        let mut all = vec![Statement::must(sql, values), Statement::may(seen, seen_values)];
        let before = self.teams_of(&name).await?;
        let is_left = |team: &&String| !provided.joined.contains(team) && before.contains(team);
        let left: Vec<&String> = provided.decided.iter().filter(is_left).collect();
        // Also where they are in all of them: a person may have put them there, or a version that did not keep who did.
        all.extend(joins(&name, &provided.joined, &identity.issuer));
        if !left.is_empty() || provided.joined.iter().any(|team| !before.contains(team)) {
            all.extend(leaves(&name, left.iter().map(|team| (*team).clone())));
            let mut after: Vec<&str> =
                before.iter().filter(|team| !left.contains(team)).map(|team| &**team).collect();
            after.extend(provided.joined.iter().map(|team| &**team));
            after.sort_unstable();
            after.dedup();
            all.push(by.did("user.teams", &format!("{name}: {}", after.join(", ")), now));
        }
        all.extend(self.admin(&name, identity, provided.admin.as_deref(), now).await?);
        all.push(by.did("user.sign-in", &name, now));
        self.whether(all).await
    }

    /// What makes somebody an admin by a group, or none any more: nothing where they are what they are to be.
    async fn admin(
        &self,
        name: &str,
        identity: &Identity,
        group: Option<&str>,
        now: Millis,
    ) -> Result<Vec<Statement>, StoreError> {
        let (by, issuer) = (By { who: name.to_owned(), how: HOW }, &*identity.issuer);
        let sql = "SELECT role FROM users WHERE name = $1";
        let role: Option<Role> = self.read().await?.one(sql, &[Arg::Text(name)]).await?;
        let changed = |sql, act, said: String| {
            vec![Statement::must(sql, [name.into(), issuer.into()]), by.did(act, &said, now)]
        };
        Ok(match group {
            Some(group) if role != Some(Role::Admin) => {
                changed(MAKE_ADMIN, "user.admin", format!("{name}: by the group {group} of {issuer}"))
            }
            None if self.is_admin_by(name, issuer).await? => changed(
                NO_ADMIN,
                "user.member",
                format!("{name}: in no group of {issuer} that makes an admin"),
            ),
            _ => Vec::new(),
        })
    }

    async fn is_admin_by(&self, name: &str, issuer: &str) -> Result<bool, StoreError> {
        let sql = "SELECT id FROM users WHERE name = $1 AND admin_by = $2";
        Ok(self.read().await?.row(sql, &[Arg::Text(name), Arg::Text(issuer)]).await?.is_some())
    }

    /// Keeps that somebody whom a provider vouches for was not let in.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn refuse_identified(
        &self,
        identity: &Identity,
        why: &str,
        now: Millis,
    ) -> Result<(), Arc<StoreError>> {
        let known = self.identified(identity).await?;
        let who = known.map_or_else(|| identity.subject.clone(), |known| known.name);
        let by = By { who, how: HOW };
        self.change(vec![by.did(
            "user.refuse",
            &format!("{} of {}: {why}", identity.subject, identity.issuer),
            now,
        )])
        .await
    }

    pub(crate) async fn teams_of(&self, name: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.members_of(name).await?.into_iter().map(|(team, _)| team).collect())
    }

    /// The teams of somebody, each with the issuer of the provider that put them there.
    async fn members_of(&self, name: &str) -> Result<Vec<(String, String)>, StoreError> {
        let sql = "SELECT m.team, m.given_by FROM members m JOIN users u ON u.id = m.user_id \
                   WHERE u.name = $1 ORDER BY m.team";
        self.read().await?.all(sql, &[Arg::Text(name)]).await
    }
}

fn belongs(name: &str, identity: &Identity, now: Millis) -> Statement {
    let sql = "INSERT INTO identities (issuer, subject, user_id, created_at) \
               SELECT $2, $3, id, $4 FROM users WHERE name = $1 ON CONFLICT DO NOTHING";
    let values = [name.into(), (&*identity.issuer).into(), (&*identity.subject).into(), now.into()];
    Statement::must(sql, values)
}
