//! Takes away what is older than it is to be kept, in steps that are small beside a commit of reports.
//!
//! What an entity is in now is never taken away, however old, and neither is what it was in when the time that is kept began,
//! nor what its application was last deployed to before;
//! but what ended before that goes whole: applications and resources that were deleted, and resources that their application
//! no longer lists, unless what owns them is there: a ReplicaSet is never listed. So does all
//! of a runtime that was taken away, once it was not heard of for as long.

use std::collections::HashSet;
use std::time::Duration;

use crate::accounts;
use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::report::{Millis, group_of};
use crate::rows::with_rows;

/// How long what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Transitions, deployments that ended with the commits that they brought, but for the last of each application that succeeded, and
    /// drifts that ended.
    pub history: Duration,
    /// Idempotency keys: a report that is sent again later than this counts as new.
    pub keys: Duration,
    /// How often it is looked for what is older.
    pub interval: Duration,
}

/// What is older than these goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) history: Millis,
    pub(crate) keys: Millis,
    /// Sessions and links that ended before it.
    pub(crate) ended: Millis,
}

impl Cut {
    pub(crate) fn at(retention: &Retention, now: Millis) -> Self {
        let before = |age: Duration| now.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        Self { history: before(retention.history), keys: before(retention.keys), ended: now }
    }
}

/// How far a look through what is too old has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    /// The number of the last transition that was looked at.
    transition: i64,
    /// The end and the number of the last deployment that was looked at.
    deployment: (Millis, i64),
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Rows that went.
    pub(crate) gone: u64,
    /// What was looked at: the next step goes on behind it.
    pub(crate) after: Looked,
    /// Nothing more is too old.
    pub(crate) is_done: bool,
}

/// Transitions that a step looks at, and that it takes away.
const LOOKED_AT: usize = 100;
const TRANSITIONS: usize = 200;
/// Deployments that a step looks at.
const DEPLOYMENTS: usize = 200;
/// Of each application the last deployments that succeeded before the time that is kept stay. When Argo CD deploys a revision again, it
/// is no change, and only an earlier deployment of it tells that: without one its commit, which may be years old, would be taken for
/// one that waited until now. What Argo CD deploys again is what runs, or what it can roll back to, and that is as many of the last
/// that succeeded: its `revisionHistoryLimit`. Of those that failed no figure looks back to any.
pub(crate) const DEPLOYED: i64 = 10;

const KEYS: &str = "DELETE FROM reports WHERE (runtime_id, key) IN \
    (SELECT runtime_id, key FROM reports WHERE received_at < $1 ORDER BY received_at LIMIT 500)";
const DRIFTS: &str = "DELETE FROM drifts WHERE id IN (SELECT id FROM drifts WHERE ended < $1 LIMIT 200)";
/// Those that ended, in the order of their ends, each with the end of the one that makes it unneeded: so many that succeeded later.
const ENDED: &str = "SELECT d.id, d.finished_at, d.phase, (SELECT n.finished_at FROM deployments n \
    WHERE n.application_id = d.application_id AND n.started_at > d.started_at AND n.phase = 'Succeeded' \
    ORDER BY n.started_at LIMIT 1 OFFSET $5) FROM deployments d \
    WHERE d.finished_at < $1 AND (d.finished_at, d.id) > ($2, $3) ORDER BY d.finished_at, d.id LIMIT $4";
const UNNEEDED: &str =
    "DELETE FROM deployments WHERE id IN (SELECT column1 FROM (VALUES ROWS) AS named) RETURNING id";
/// Whose end nobody told, and which others followed.
const LOST_DEPLOYMENTS: &str = "DELETE FROM deployments WHERE id IN (SELECT d.id FROM deployments d \
    WHERE d.finished_at IS NULL AND d.started_at < $1 AND EXISTS (SELECT 1 FROM deployments n \
    WHERE n.application_id = d.application_id AND n.started_at > d.started_at) LIMIT 200)";
/// By when the sync began: of one that lasts for as long as history is kept nobody asks any more.
const CHANGES: &str = "DELETE FROM changes WHERE (runtime_id, namespace, name, started_at) IN \
    (SELECT runtime_id, namespace, name, started_at FROM changes WHERE started_at < $1 ORDER BY started_at LIMIT 200)";
const REFUSALS: &str = "DELETE FROM refusals WHERE at < $1";
const LOOK: &str = "SELECT t.id, t.received_at, t.last_at, t.deleted, e.id, e.current, e.latest, e.kind, e.listing, a.id, a.name, t.at, \
    e.owner, e.namespace, a.runtime_id \
    FROM transitions t JOIN entities e ON e.id = t.entity_id JOIN applications a ON a.id = e.application_id \
    WHERE t.id > $1 ORDER BY t.id LIMIT $2";
/// In the order of the index of an entity's states, so that none is read that stays: an entity may have many thousands.
const BEFORE: &str = "SELECT id, object, actual, desired, git, details FROM transitions \
    WHERE entity_id = $1 AND at <= $2 AND id < $3 AND id <> $4 AND id <> $5 ORDER BY at, id LIMIT $6";
const OTHERS: &str = "SELECT id, object, actual, desired, git, details FROM transitions \
    WHERE entity_id = $1 AND id <> $2 ORDER BY at, id LIMIT $3";
const ONE: &str = "SELECT id, object, actual, desired, git, details FROM transitions WHERE id = $1";
const OWNERS: &str = "SELECT api_version FROM entities WHERE application_id = $1 AND kind = $2 AND name = $3 \
    AND (namespace = $4 OR namespace = '') AND gone = 0";
/// Of runtimes those that have neither a token nor a registration, and were not heard of since then.
macro_rules! taken_away {
    () => {
        "COALESCE(r.seen_at, r.created_at) < $1 AND NOT EXISTS (SELECT 1 FROM registrations g WHERE g.runtime_id = r.id) \
         AND NOT EXISTS (SELECT 1 FROM tokens t WHERE t.runtime_id = r.id)"
    };
}
const TAKEN_AWAY: &str = concat!("SELECT r.id FROM runtimes r WHERE ", taken_away!());
/// What is said of those beside their reports.
const PROBLEMS: &str = concat!(
    "DELETE FROM problems WHERE runtime_id IN (SELECT r.id FROM runtimes r WHERE ",
    taken_away!(),
    ")"
);
const THEIR_CHANGES: &str = concat!(
    "DELETE FROM changes WHERE (runtime_id, namespace, name, started_at) IN \
     (SELECT c.runtime_id, c.namespace, c.name, c.started_at FROM changes c WHERE c.runtime_id IN \
     (SELECT r.id FROM runtimes r WHERE ",
    taken_away!(),
    ") LIMIT 200)"
);
/// Those of which nothing is left.
const RUNTIMES: &str = concat!(
    "DELETE FROM runtimes WHERE id IN (SELECT r.id FROM runtimes r WHERE ",
    taken_away!(),
    " AND NOT EXISTS (SELECT 1 FROM applications a WHERE a.runtime_id = r.id) \
     AND NOT EXISTS (SELECT 1 FROM reports k WHERE k.runtime_id = r.id) \
     AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.runtime_id = r.id))"
);
const EMPTIED: &str = "DELETE FROM applications WHERE id = $1 \
    AND NOT EXISTS (SELECT 1 FROM entities e WHERE e.application_id = $1)";
const BESIDE: &str = "SELECT id, current FROM entities WHERE application_id = $1 AND id <> $2 AND at < $3 ORDER BY id LIMIT $4";

/// One step: at most some hundred rows of each table.
pub(crate) async fn step(connection: &mut Connection, cut: Cut, after: Looked) -> Result<Step, StoreError> {
    let mut gone = connection.execute(KEYS, &[Arg::Int(cut.keys)]).await?;
    for sql in [DRIFTS, LOST_DEPLOYMENTS, CHANGES, REFUSALS, PROBLEMS, THEIR_CHANGES, RUNTIMES] {
        gone += connection.execute(sql, &[Arg::Int(cut.history)]).await?;
    }
    gone += accounts::retain(connection, cut.ended, cut.history).await?;
    let (ended, deployment) = deployments(connection, cut.history, after.deployment).await?;
    let all_ended = deployment == after.deployment;
    gone += ended;
    let mut sweep = Sweep { connection, gone: 0, room: TRANSITIONS };
    let (transition, is_done) = sweep.transitions(cut.history, after.transition).await?;
    let gone = gone + sweep.gone;
    Ok(Step { gone, after: Looked { transition, deployment }, is_done: is_done && all_ended && gone == 0 })
}

/// Takes away deployments that ended and that nothing looks back to; how many, and which was looked at last.
async fn deployments(
    connection: &mut Connection,
    cut: Millis,
    after: (Millis, i64),
) -> Result<(u64, (Millis, i64)), StoreError> {
    let (ended, id) = (Arg::Int(after.0), Arg::Int(after.1));
    let arguments = [Arg::Int(cut), ended, id, Arg::Int(DEPLOYMENTS as i64), Arg::Int(DEPLOYED - 1)];
    let rows = connection.rows(ENDED, &arguments).await?;
    let (mut unneeded, mut last) = (Vec::new(), after);
    for row in &rows {
        last = (row.int(1)?, row.int(0)?);
        if row.text(2)? != "Succeeded" || row.int_or_null(3)?.is_some_and(|ended| ended < cut) {
            unneeded.push([Arg::Int(last.1)]);
        }
    }
    Ok((with_rows(connection, UNNEEDED, &unneeded).await?.len() as u64, last))
}

/// A look through transitions from the oldest on: each that is too old ends what was before it.
struct Sweep<'a> {
    connection: &'a mut Connection,
    gone: u64,
    /// Transitions that this step may still take away.
    room: usize,
}

impl Sweep<'_> {
    /// Up to which transition all is well, and whether that is the newest that is too old.
    async fn transitions(&mut self, cut: Millis, mut after: i64) -> Result<(i64, bool), StoreError> {
        let arguments = [Arg::Int(after), Arg::Int(LOOKED_AT as i64)];
        let rows = self.connection.rows(LOOK, &arguments).await?;
        let taken_away = self.connection.rows(TAKEN_AWAY, &[Arg::Int(cut)]).await?;
        let taken_away = taken_away.iter().map(|row| row.int(0)).collect::<Result<HashSet<_>, _>>()?;
        for row in &rows {
            let (id, entity) = (row.int(0)?, row.int(4)?);
            if row.int(1)? >= cut {
                return Ok((after, true));
            }
            let (current, latest) = (row.int_or_null(5)?.unwrap_or(id), row.int_or_null(6)?.unwrap_or(id));
            let at = Arg::Int(row.int(11)?);
            let before = [Arg::Int(entity), at, Arg::Int(id), Arg::Int(current), Arg::Int(latest)];
            if !self.all(BEFORE, &before).await? {
                return Ok((after, false));
            }
            if id == current && row.int(2)? < cut {
                let (is_application, application) = (row.text(7)?.is_empty(), row.int(9)?);
                let is_taken_away = taken_away.contains(&row.int(14)?);
                let is_deleted = row.int(3)? != 0 || is_taken_away;
                let ended = if is_application && is_deleted {
                    self.application(application, entity, id, cut).await?
                } else if !is_application && (is_deleted || self.is_left(application, row).await?) {
                    self.entity(entity, id).await?
                } else {
                    true
                };
                if !ended {
                    return Ok((after, false));
                }
                if is_taken_away {
                    self.gone += self.connection.execute(EMPTIED, &[Arg::Int(application)]).await?;
                }
            }
            after = id;
        }
        Ok((after, rows.len() < LOOKED_AT))
    }

    /// Whether an application no longer lists what was once reported of it, and nothing of it owns that.
    async fn is_left(&mut self, application: i64, row: &Row) -> Result<bool, StoreError> {
        // What belongs to no application is listed by none.
        if row.text(10)?.is_empty() {
            return Ok(false);
        }
        let sql = "SELECT a.listed FROM applications a JOIN entities e ON e.application_id = a.id AND e.kind = '' \
                   WHERE a.id = $1";
        let found = self.connection.row(sql, &[Arg::Int(application)]).await?;
        let Some(listed) = found.map(|row| row.bytes(0)).transpose()? else { return Ok(false) };
        let listing = row.bytes(8)?;
        let is_listed = listed.chunks_exact(8).any(|one| one == listing);
        Ok(!is_listed && !self.is_owned(application, &row.text(12)?, &row.text(13)?).await?)
    }

    /// Whether what owns a resource, as `group/kind/name`, is there: in its namespace, or of the whole cluster.
    async fn is_owned(&mut self, application: i64, owner: &str, namespace: &str) -> Result<bool, StoreError> {
        let mut parts = owner.splitn(3, '/');
        let (Some(group), Some(kind), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            return Ok(false);
        };
        let arguments = [Arg::Int(application), Arg::Text(kind), Arg::Text(name), Arg::Text(namespace)];
        for row in self.connection.rows(OWNERS, &arguments).await? {
            if group_of(&row.text(0)?) == group {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes away an application that ended, with all of it that was not reported since; `false`: some of it is left.
    async fn application(
        &mut self,
        id: i64,
        entity: i64,
        transition: i64,
        cut: Millis,
    ) -> Result<bool, StoreError> {
        let arguments = [Arg::Int(id), Arg::Int(entity), Arg::Int(cut), Arg::Int(LOOKED_AT as i64)];
        let beside = self.connection.rows(BESIDE, &arguments).await?;
        for row in &beside {
            let other = row.int(0)?;
            if !self.entity(other, row.int_or_null(1)?.unwrap_or(0)).await? {
                return Ok(false);
            }
        }
        if beside.len() == LOOKED_AT {
            return Ok(false);
        }
        let sql = "SELECT id FROM entities WHERE application_id = $1 AND id <> $2 LIMIT 1";
        if self.connection.row(sql, &[Arg::Int(id), Arg::Int(entity)]).await?.is_some() {
            return Ok(true);
        }
        if !self.entity(entity, transition).await? {
            return Ok(false);
        }
        for sql in
            ["DELETE FROM deployments WHERE application_id = $1", "DELETE FROM applications WHERE id = $1"]
        {
            self.gone += self.connection.execute(sql, &[Arg::Int(id)]).await?;
        }
        Ok(true)
    }

    /// Takes away an entity; the transition that it is found by goes last. `false`: some of it is left.
    async fn entity(&mut self, id: i64, transition: i64) -> Result<bool, StoreError> {
        if !self.all(OTHERS, &[Arg::Int(id), Arg::Int(transition)]).await? {
            return Ok(false);
        }
        for row in self.connection.rows(ONE, &[Arg::Int(transition)]).await? {
            self.take(&row).await?;
        }
        for sql in ["DELETE FROM drifts WHERE entity_id = $1", "DELETE FROM entities WHERE id = $1"] {
            self.gone += self.connection.execute(sql, &[Arg::Int(id)]).await?;
        }
        Ok(true)
    }

    /// Takes away the transitions that a statement finds; `false`: there may be more.
    async fn all(&mut self, sql: &'static str, arguments: &[Arg<'_>]) -> Result<bool, StoreError> {
        let room = i64::try_from(self.room).unwrap_or(0);
        let rows = self.connection.rows(sql, &[arguments, &[Arg::Int(room)]].concat()).await?;
        for row in &rows {
            self.take(row).await?;
        }
        self.room -= rows.len();
        Ok(self.room > 0)
    }

    async fn take(&mut self, row: &Row) -> Result<(), StoreError> {
        for column in 1..=5 {
            if let Some(digest) = row.bytes_or_null(column)? {
                let digest = [Arg::Bytes(&digest)];
                self.connection
                    .execute("UPDATE blobs SET refs = refs - 1 WHERE digest = $1", &digest)
                    .await?;
                self.connection.execute("DELETE FROM blobs WHERE digest = $1 AND refs <= 0", &digest).await?;
            }
        }
        let sql = "DELETE FROM transitions WHERE id = $1";
        self.gone += self.connection.execute(sql, &[Arg::Int(row.int(0)?)]).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, Place};
    use crate::group;
    use crate::limits::Limits;
    use crate::plan::Plans;

    /// What stays is looked at with a statement for each state, and a few for all of them.
    #[tokio::test]
    async fn who_was_taken_away_is_asked_once_for_however_many_old_states() {
        let folder = tempfile::TempDir::new().unwrap();
        let database = Database::open(&Place::Sqlite(folder.path().join("platform.db")), Limits::default())
            .await
            .unwrap();
        let mut connection = database.to_write().await.unwrap();
        let runtime = "INSERT INTO runtimes (id, name, created_at) VALUES (1, 'prod', 0)";
        let token = "INSERT INTO tokens (runtime_id, prefix, hash, created_at) VALUES (1, 'a', x'00', 0)";
        for sql in [runtime, token] {
            connection.execute(sql, &[]).await.unwrap();
        }
        let mut took = Vec::new();
        for number in 0..60 {
            let one = group::delivery(number, group::report(&format!("shop{number}"), None));
            group::keep(&mut connection, &[&one], 2).await.unwrap();
            let before = connection.statements();
            let cut = Cut { history: 1_000, keys: 0, ended: 0 };
            let step = step(&mut connection, cut, Looked::default()).await.unwrap();
            assert_eq!((step.gone, step.is_done), (0, true), "all of it stays");
            took.push(connection.statements() - before);
        }
        let [first, .., last] = took[..] else { panic!("there were many") };
        assert_eq!(last - first, 59, "{took:?}");
        drop(connection);
        database.close().await;
    }

    #[tokio::test]
    async fn nothing_is_looked_for_through_a_whole_table() {
        let plans = Plans::open().await;
        for sql in [KEYS, DRIFTS, ENDED, LOST_DEPLOYMENTS, CHANGES, LOOK, BEFORE, OTHERS, ONE, OWNERS, BESIDE]
        {
            let lines = plans.of(sql).await;
            assert!(!lines.is_empty());
            assert!(lines.iter().all(|line| !line.starts_with("SCAN ")), "{sql}: {lines:?}");
        }
        // Of an application with many deployments those alone are looked at that succeeded next.
        let lines = plans.of(ENDED).await;
        let next = "SEARCH n USING INDEX deployments_succeeded (application_id=? AND started_at>?)";
        assert!(lines.iter().any(|line| line == next), "{lines:?}");
        assert!(lines.iter().all(|line| !line.contains("B-TREE")), "{lines:?}");
        // Of runtimes, and of their tokens and passes, there are few: all of them are looked at, and what else a runtime has is found
        // by it.
        for sql in [PROBLEMS, THEIR_CHANGES, RUNTIMES, TAKEN_AWAY] {
            let lines = plans.of(sql).await;
            let few = ["SCAN r", "SCAN t", "SCAN tokens", "SCAN passes"];
            let mut through = lines.iter().filter(|line| line.starts_with("SCAN "));
            assert!(through.all(|line| few.contains(&&**line)), "{sql}: {lines:?}");
        }
        // Sorted, all states of an entity would be read for each of them.
        for sql in [BEFORE, OTHERS] {
            let lines = plans.of(sql).await;
            assert!(lines.iter().all(|line| !line.contains("B-TREE")), "{sql}: {lines:?}");
        }
        plans.close().await;
    }
}
