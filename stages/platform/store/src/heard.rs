//! What is told of runtimes beside their reports: that they live although nothing changes, and what of theirs was not taken.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::columns::from_columns;
use crate::connection::{Arg, Connection};
use crate::error::StoreError;
use crate::report::{Delivery, Millis, Report};
use crate::statement::Statement;
use crate::store::Store;

/// A runtime whose reporter says nothing for so long is silent: what it said last need not hold any more.
pub const SILENT: Millis = 20 * 60_000;
/// The number under which it is counted what nobody knows whose it is.
const NOBODY: i64 = 0;

/// The role whose silence leaves applications as they were: that another one lives says nothing of them.
const REPORTER: &str = "reporter";
/// When the reporter of the runtime `r` was last heard of; none of one whose reporter sends no digests, as an earlier version's: where
/// nothing changes, nothing tells that it lives, unless it is that another role does.
macro_rules! reporter_at {
    () => {
        "CASE WHEN EXISTS (SELECT 1 FROM roles o WHERE o.runtime_id = r.id AND o.role = 'reporter') THEN r.reporter_at END"
    };
}
pub(crate) use reporter_at;
/// The same in a statement that is made of parts.
pub(crate) const REPORTER_AT: &str = reporter_at!();
const SEEN: &str = "UPDATE runtimes SET seen_at = $2 WHERE id = $1 AND (seen_at IS NULL OR seen_at < $2)";

/// A role of a runtime that was heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardRole {
    /// Such as `reporter`.
    pub role: String,
    /// The version that it runs; empty: it did not say.
    pub version: String,
    /// When it was heard of last.
    pub at: Millis,
}

/// Requests, and reports of batches, that were not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedReports {
    /// Why, such as `malformed`.
    pub reason: String,
    /// How many there were.
    pub number: u64,
    /// When the last was.
    pub at: Millis,
}

from_columns! { HeardRole { role, version, at } }
from_columns! { RefusedReports { reason, number, at } }

/// What is told of a runtime beside its reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Beside {
    pub(crate) roles: Vec<HeardRole>,
    pub(crate) refused: Vec<RefusedReports>,
}

impl Store {
    /// Keeps that a role of a runtime was heard of, and in which version; an empty role is none that is told of, and counts as
    /// the reporter, which senders of an earlier generation are.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn keep_heard(
        &self,
        runtime: i64,
        (role, version): (&str, &str),
        now: Millis,
    ) -> Result<(), Arc<StoreError>> {
        let mut all = vec![Statement::may(SEEN, [runtime.into(), now.into()])];
        if matches!(role, "" | REPORTER) {
            let sql = "UPDATE runtimes SET reporter_at = $2 WHERE id = $1 AND (reporter_at IS NULL OR reporter_at < $2)";
            all.push(Statement::may(sql, [runtime.into(), now.into()]));
        }
        if !role.is_empty() {
            let sql = "INSERT INTO roles (runtime_id, role, version, at) VALUES ($1, $2, $3, $4) \
                       ON CONFLICT (runtime_id, role) DO UPDATE SET version = excluded.version, at = excluded.at";
            all.push(Statement::may(sql, [runtime.into(), role.into(), version.into(), now.into()]));
        }
        self.change(all).await
    }

    /// The roles of a runtime that were heard of, by name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn roles(&self, runtime: &str) -> Result<Vec<HeardRole>, StoreError> {
        let sql = "SELECT o.role, o.version, o.at FROM roles o JOIN runtimes r ON r.id = o.runtime_id WHERE r.name = $1 \
                   ORDER BY o.role";
        self.read().await?.all(sql, &[Arg::Text(runtime)]).await
    }

    /// Counts what was not taken, by why; `None`: nobody knows whose it was.
    ///
    /// # Errors
    /// [`StoreError`] when it was not counted.
    pub async fn count_refused(
        &self,
        runtime: Option<i64>,
        refused: &[(&str, u64)],
        now: Millis,
    ) -> Result<(), Arc<StoreError>> {
        let sql = "INSERT INTO refusals (runtime_id, reason, number, at) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (runtime_id, reason) \
                   DO UPDATE SET number = refusals.number + excluded.number, at = excluded.at";
        let one = |(reason, number): &(&str, u64)| {
            let number = i64::try_from(*number).unwrap_or(i64::MAX);
            Statement::may(
                sql,
                [runtime.unwrap_or(NOBODY).into(), (*reason).into(), number.into(), now.into()],
            )
        };
        self.change(refused.iter().map(one).collect()).await
    }

    /// What was not taken of which nobody knows whose it was.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn refused_of_nobody(&self) -> Result<Vec<RefusedReports>, StoreError> {
        let mut all = read(&mut self.read().await?).await?;
        Ok(all.remove(&NOBODY).unwrap_or_default().refused)
    }
}

/// What is told of each runtime, by its number: the most often refused first, and roles by name.
pub(crate) async fn read(connection: &mut Connection) -> Result<HashMap<i64, Beside>, StoreError> {
    let mut all = HashMap::<i64, Beside>::new();
    let sql = "SELECT runtime_id, reason, number, at FROM refusals ORDER BY number DESC, reason";
    for row in connection.rows(sql, &[]).await? {
        all.entry(row.int(0)?).or_default().refused.push(row.read_from(1)?);
    }
    for row in connection.rows("SELECT runtime_id, role, version, at FROM roles ORDER BY role", &[]).await? {
        all.entry(row.int(0)?).or_default().roles.push(row.read_from(1)?);
    }
    Ok(all)
}

/// Who has reported just now, and how long the newest of it was on the way. What comes from whoever watches resources says nothing of
/// whether the reporter lives.
pub(crate) async fn note_reports(
    connection: &mut Connection,
    all: &[&[Delivery]],
    now: Millis,
) -> Result<(), StoreError> {
    let mut runtimes = BTreeMap::<i64, (Millis, bool)>::new();
    for delivery in all.iter().copied().flatten() {
        let Report { at, from_reporter, .. } = delivery.report;
        let (newest, is_of_reporter) = runtimes.entry(delivery.runtime).or_insert((at, false));
        *newest = at.max(*newest);
        *is_of_reporter |= from_reporter;
    }
    for (runtime, (at, is_of_reporter)) in runtimes {
        let sql = "UPDATE runtimes SET seen_at = $2, reporter_at = COALESCE($5, reporter_at), lag = $3, \
                   reported_at = CASE WHEN reported_at > $4 THEN reported_at ELSE $4 END WHERE id = $1";
        let reporter_at = Arg::IntOrNull(is_of_reporter.then_some(now));
        let lag = Arg::Int((now - at).max(0));
        let arguments = [Arg::Int(runtime), Arg::Int(now), lag, Arg::Int(at), reporter_at];
        connection.execute(sql, &arguments).await?;
    }
    Ok(())
}
