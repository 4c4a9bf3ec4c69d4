//! How well changes reach users: deployments that ended, with what each of them led to, and the four figures of them.

use jiff::Timestamp;
use jiff::fmt::rfc2822;

use crate::connection::Row;
use crate::error::StoreError;
use crate::fleet::listing::ApplicationName;
use crate::fleet::selection::{Query, Selection};
use crate::report::Millis;
use crate::rule::View;
use crate::store::Store;

/// An application that is degraded within this time of a deployment's end is so by it.
pub const BLAMED_FOR: Millis = 3_600_000;
/// Deployments that figures are made of at most, the newest.
pub const MOST_SHIPPED: u32 = 20_000;

/// A deployment that ended, and what it led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shipped {
    /// Of which application.
    pub application: ApplicationName,
    /// When it began.
    pub started_at: Millis,
    /// When it ended.
    pub finished_at: Millis,
    /// Whether its operation succeeded.
    pub succeeded: bool,
    /// What it deployed.
    pub revision: String,
    /// When its commit was made; `None`: that was not told, or the same revision was deployed there before.
    pub committed_at: Option<Millis>,
    /// Since when it failed: its operation did, or the application became degraded within an hour and before the next one.
    pub failed_at: Option<Millis>,
    /// When that was over: a later operation succeeded, or the application was healthy again. `None`: it did not fail, or is not over.
    pub restored_at: Option<Millis>,
}

/// The four figures of deployments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Deployments that ended.
    pub ended: u64,
    /// How many of those ended well.
    pub succeeded: u64,
    /// Median from commit to the end of the deployment that brought it first.
    pub lead_time: Option<Millis>,
    /// How many deployments failed.
    pub failed: u64,
    /// Median from failure to its end.
    pub time_to_restore: Option<Millis>,
    /// Failures that are not over.
    pub open: u64,
}

impl Shipped {
    /// From its commit to its end, where it succeeded and was the first to bring it.
    #[must_use]
    pub fn lead_time(&self) -> Option<Millis> {
        let lead = self.finished_at - self.committed_at?;
        (self.succeeded && lead >= 0).then_some(lead)
    }

    /// From its failure to the end of that.
    #[must_use]
    pub fn time_to_restore(&self) -> Option<Millis> {
        Some((self.restored_at? - self.failed_at?).max(0))
    }
}

impl Figures {
    /// Of deployments.
    #[must_use]
    pub fn of(all: &[Shipped]) -> Self {
        let count = |is: fn(&Shipped) -> bool| all.iter().filter(|one| is(one)).count() as u64;
        Self {
            ended: all.len() as u64,
            succeeded: count(|one| one.succeeded),
            lead_time: median(all.iter().filter_map(Shipped::lead_time).collect()),
            failed: count(|one| one.failed_at.is_some()),
            time_to_restore: median(all.iter().filter_map(Shipped::time_to_restore).collect()),
            open: count(|one| one.failed_at.is_some() && one.restored_at.is_none()),
        }
    }
}

/// The one in the middle; of two the mean.
fn median(mut all: Vec<Millis>) -> Option<Millis> {
    all.sort_unstable();
    let upper = *all.get(all.len() / 2)?;
    let lower = if all.len().is_multiple_of(2) { *all.get(all.len() / 2 - 1)? } else { upper };
    Some(lower + (upper - lower) / 2)
}

/// As Git and Argo CD write it.
fn moment(text: &str) -> Option<Millis> {
    let text = text.trim();
    let parsed = text.parse::<Timestamp>().ok();
    let parsed = parsed.or_else(|| rfc2822::DateTimeParser::new().parse_timestamp(text).ok());
    parsed.map(Timestamp::as_millisecond)
}

impl Store {
    /// Deployments of a selection that ended from `begin` on and before `end`, the newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn shipped(
        &self,
        view: &View,
        selection: &Selection,
        (begin, end): (Millis, Millis),
    ) -> Result<Vec<Shipped>, StoreError> {
        let query = shipped(view, selection, (begin, end));
        let one = |row: Row| {
            Ok(Shipped {
                application: row.read()?,
                started_at: row.int(3)?,
                finished_at: row.int(4)?,
                succeeded: row.text(5)? == "Succeeded",
                revision: row.text(6)?,
                committed_at: if row.int(10)? == 0 { moment(&row.text(7)?) } else { None },
                failed_at: row.int_or_null(8)?,
                restored_at: row.int_or_null(9)?,
            })
        };
        query.rows(&mut self.read().await?).await?.into_iter().map(one).collect()
    }
}

/// Deployments with what each of them led to, a row of which [`Store::shipped`] reads.
fn shipped(view: &View, selection: &Selection, (begin, end): (Millis, Millis)) -> Query {
    let mut query = Query::matching(view, selection);
    let (begin, end) = (query.int(begin), query.int(end));
    query.sql.push_str(&format!(
        ", ended AS (SELECT d.*, e.id AS entity, (SELECT min(n.started_at) FROM deployments n \
         WHERE n.application_id = d.application_id AND n.started_at > d.started_at) AS next_at \
         FROM deployments d JOIN matching m ON m.id = d.application_id \
         JOIN entities e ON e.application_id = d.application_id AND e.kind = '' \
         WHERE d.finished_at >= {begin} AND d.finished_at < {end} AND d.phase IN ('Succeeded', 'Failed', 'Error') \
         ORDER BY d.finished_at DESC, d.id DESC LIMIT {MOST_SHIPPED}), \
         hurt AS MATERIALIZED (SELECT ended.*, CASE WHEN phase <> 'Succeeded' THEN finished_at ELSE (SELECT min(t.at) FROM transitions t \
         WHERE t.entity_id = ended.entity AND t.health = 'Degraded' AND t.at > ended.started_at \
         AND t.at <= ended.finished_at + {BLAMED_FOR} AND (ended.next_at IS NULL OR t.at < ended.next_at) \
         AND COALESCE((SELECT p.health FROM transitions p WHERE p.entity_id = t.entity_id \
         AND (p.at, p.id) < (t.at, t.id) ORDER BY p.at DESC, p.id DESC LIMIT 1), '') <> 'Degraded') END AS hurt_at FROM ended) \
         SELECT r.name, a.namespace, a.name, h.started_at, h.finished_at, h.phase, h.revision, h.commit_date, h.hurt_at, \
         CASE WHEN h.hurt_at IS NULL THEN NULL WHEN h.phase = 'Succeeded' THEN (SELECT min(t.at) FROM transitions t \
         WHERE t.entity_id = h.entity AND t.health = 'Healthy' AND t.at > h.hurt_at) \
         ELSE (SELECT min(n.finished_at) FROM deployments n WHERE n.application_id = h.application_id \
         AND n.started_at > h.started_at AND n.phase = 'Succeeded') END, \
         (SELECT count(*) FROM deployments b WHERE b.application_id = h.application_id \
         AND b.started_at < h.started_at AND b.revision = h.revision AND b.phase = 'Succeeded') AS again \
         FROM hurt h JOIN applications a ON a.id = h.application_id JOIN runtimes r ON r.id = a.runtime_id \
         ORDER BY h.finished_at DESC, h.id DESC"
    ));
    query
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plans;

    #[tokio::test]
    async fn what_failed_is_looked_for_once_and_what_was_deployed_before_in_an_index() {
        let plans = Plans::open().await;
        let lines = plans.of(&shipped(&View::ALL, &Selection::default(), (0, 1)).sql).await;
        let before: Vec<_> = lines.iter().filter(|line| line.starts_with("SEARCH b ")).collect();
        let found = "deployments_revision (application_id=? AND revision=? AND started_at<?)";
        assert!(before.len() == 1 && before[0].ends_with(found), "{lines:#?}");
        let hurt = "SEARCH t USING INDEX transitions_at (entity_id=? AND at>? AND at<?)";
        assert_eq!(lines.iter().filter(|line| *line == hurt).count(), 1, "{lines:#?}");
        plans.close().await;
    }

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        let cases: [(&[i64], Option<i64>); 5] = [
            (&[], None),
            (&[3], Some(3)),
            (&[9, 1], Some(5)),
            (&[5, 1, 100], Some(5)),
            (&[4, 1, 2, 3], Some(2)),
        ];
        for (all, middle) in cases {
            assert_eq!(median(all.to_vec()), middle, "{all:?}");
        }
    }

    #[test]
    fn moments_of_commits_are_read_as_they_come() {
        assert_eq!(moment("2026-11-20T10:00:00Z"), Some(1_795_168_800_000));
        assert_eq!(moment("2026-11-20T12:00:00+02:00"), Some(1_795_168_800_000));
        assert_eq!(moment("Fri, 20 Nov 2026 10:00:00 +0000"), Some(1_795_168_800_000));
        assert_eq!((moment(""), moment("yesterday")), (None, None));
    }
}
