//! What needs somebody now, how runtimes are, and deployments by day.

use crate::columns::from_columns;
use crate::connection::Row;
use crate::error::StoreError;
use crate::fleet::listing::{COLUMNS, ListedApplication, count};
use crate::fleet::selection::Query;
use crate::heard::{self, HeardRole, REPORTER_AT, RefusedReports};
use crate::report::{DAY, Millis};
use crate::rule::View;
use crate::store::Store;

/// An application that needs somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetNeed {
    /// Its number.
    pub id: i64,
    /// Which one it is, and how.
    pub application: ListedApplication,
    /// What is said of its health.
    pub health_message: String,
    /// Since when its health is so.
    pub health_since: Millis,
    /// Since when its sync is as it is.
    pub sync_since: Millis,
    /// How its last operation stands.
    pub phase: String,
    /// Since when its last operation stands so.
    pub phase_at: Millis,
    /// What was said of its last operation.
    pub phase_message: String,
}

/// A runtime, with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetRuntime {
    /// Its name.
    pub name: String,
    /// The version that it runs, as it said last; empty: it never did.
    pub version: String,
    /// When its reporter was last heard of, if only that it lives; of one that sends no digests, when any role of it was.
    pub heard_at: Option<Millis>,
    /// Of when its last report is.
    pub reported_at: Option<Millis>,
    /// How long its last report was on the way.
    pub lag: Option<Millis>,
    /// How many applications it has.
    pub applications: u64,
    /// How many of its applications are healthy.
    pub healthy: u64,
    /// What it last said is wrong with it, as JSON; `[]`: nothing.
    pub problems: String,
    /// Its roles that were heard of, by name.
    pub roles: Vec<HeardRole>,
    /// What of its requests was not taken, the most often first.
    pub refused: Vec<RefusedReports>,
}

from_columns! {
    FleetNeed {
        application, health_message, health_since, sync_since, phase, phase_at, phase_message, id
    }
}

/// Deployments of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayOfDeployments {
    /// How many ended well.
    pub succeeded: u64,
    /// How many did not end well.
    pub failed: u64,
}

impl Store {
    /// Applications that somebody sees and that need them, the most urgent first, and how many they are in all.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn needs(&self, view: &View, limit: u32) -> Result<(Vec<FleetNeed>, u64), StoreError> {
        let mut query = Query::default();
        let (limit, seen) = (query.int(limit.into()), query.seen(view));
        query.sql = format!(
            "SELECT {COLUMNS}, a.health_message, a.health_since, a.sync_since, a.phase, a.phase_at, a.phase_message, \
             a.id, count(*) OVER () FROM applications a JOIN runtimes r ON r.id = a.runtime_id \
             WHERE a.name <> '' AND a.deleted = 0 AND {seen} \
             AND (a.health IN ('Degraded', 'Missing') OR a.phase IN ('Failed', 'Error') OR a.sync = 'OutOfSync' \
             OR (a.reported_at > 0 AND (a.sync = 'Unknown' OR a.health = 'Unknown'))) \
             ORDER BY CASE WHEN a.health = 'Degraded' THEN 0 WHEN a.phase IN ('Failed', 'Error') THEN 1 \
             WHEN a.health = 'Missing' THEN 2 WHEN a.sync = 'OutOfSync' THEN 3 ELSE 4 END, \
             CASE WHEN a.health IN ('Degraded', 'Missing', 'Unknown') THEN a.health_since ELSE a.sync_since END DESC, a.id LIMIT {limit}"
        );
        let rows = query.rows(&mut self.read().await?).await?;
        let all = rows.first().map_or(Ok(0), |row| row.read_from(19))?;
        Ok((rows.iter().map(Row::read).collect::<Result<_, _>>()?, all))
    }

    /// Every runtime of which somebody sees anything, by name, with the applications that they see.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn runtimes(&self, view: &View) -> Result<Vec<FleetRuntime>, StoreError> {
        let mut query = Query::default();
        let (seen, runtimes) = (query.seen(view), query.seen_runtimes(view));
        query.sql = format!(
            "SELECT r.name, COALESCE({REPORTER_AT}, r.seen_at), r.lag, count(a.id), count(a.id) FILTER (WHERE a.health = 'Healthy'), r.version, \
             COALESCE((SELECT p.body FROM problems p WHERE p.runtime_id = r.id), '[]'), r.id, r.reported_at \
             FROM runtimes r LEFT JOIN applications a ON a.runtime_id = r.id AND a.name <> '' AND a.deleted = 0 \
             AND {seen} WHERE {runtimes} GROUP BY r.id, r.name, r.seen_at, r.reporter_at, r.lag, r.version, r.reported_at ORDER BY r.name"
        );
        let mut connection = self.read().await?;
        let mut beside = heard::read(&mut connection).await?;
        let one = |row: Row| {
            let heard = beside.remove(&row.int(7)?).unwrap_or_default();
            Ok(FleetRuntime {
                name: row.text(0)?,
                heard_at: row.int_or_null(1)?,
                lag: row.int_or_null(2)?,
                applications: count(row.int(3)?),
                healthy: count(row.int(4)?),
                version: row.text(5)?,
                problems: row.text(6)?,
                reported_at: row.int_or_null(8)?,
                roles: heard.roles,
                refused: heard.refused,
            })
        };
        query.rows(&mut connection).await?.into_iter().map(one).collect()
    }

    /// Deployments that ended of applications that somebody sees, for each of so many days from `begin` on: also of those that were
    /// deleted since, so that the number of a day that is over stays what it was. Lists of deployments are of applications that are
    /// there.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn deployments_by_day(
        &self,
        view: &View,
        begin: Millis,
        days: u32,
    ) -> Result<Vec<DayOfDeployments>, StoreError> {
        let end = begin.saturating_add(i64::from(days) * DAY);
        let mut query = Query::default();
        let (begin, end) = (query.int(begin), query.int(end));
        // Whoever sees everything needs no look at each application.
        let of = match view.is_all() {
            true => "1 = 1".to_owned(),
            false => format!(
                "application_id IN (SELECT a.id FROM applications a JOIN runtimes r ON r.id = a.runtime_id WHERE {})",
                query.seen(view)
            ),
        };
        query.sql = format!(
            "SELECT (started_at - {begin}) / 86400000, count(*) FILTER (WHERE phase = 'Succeeded'), \
                   count(*) FILTER (WHERE phase IN ('Failed', 'Error')) FROM deployments \
             WHERE started_at >= {begin} AND started_at < {end} AND {of} GROUP BY 1"
        );
        let mut all =
            vec![DayOfDeployments { succeeded: 0, failed: 0 }; usize::try_from(days).unwrap_or_default()];
        for row in query.rows(&mut self.read().await?).await? {
            if let Some(day) = usize::try_from(row.int(0)?).ok().and_then(|day| all.get_mut(day)) {
                *day = DayOfDeployments { succeeded: count(row.int(1)?), failed: count(row.int(2)?) };
            }
        }
        Ok(all)
    }
}
