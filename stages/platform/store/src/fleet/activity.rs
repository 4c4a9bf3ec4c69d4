//! Which applications were deployed most often, against the time as long before.

use crate::columns::from_columns;
use crate::error::StoreError;
use crate::fleet::listing::ApplicationName;
use crate::fleet::selection::Query;
use crate::report::Millis;
use crate::rule::View;
use crate::store::Store;

/// An application, with its deployments of a time and of the one as long before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetMover {
    /// Which one.
    pub application: ApplicationName,
    /// Deployments that began within the time and ended.
    pub deployments: u64,
    /// How many of those failed.
    pub failed: u64,
    /// Deployments that began within the time before.
    pub before: u64,
}

from_columns! { FleetMover { application, deployments, failed, before } }

impl Store {
    /// Applications that somebody sees which were deployed from `begin` on and before `end`, the most often first, and of those
    /// alike the one that was deployed less often before.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn movers(
        &self,
        view: &View,
        (begin, end): (Millis, Millis),
        limit: u32,
    ) -> Result<Vec<FleetMover>, StoreError> {
        let mut query = Query::default();
        let earlier = begin.saturating_sub(end.saturating_sub(begin));
        let (earlier, begin, end) = (query.int(earlier), query.int(begin), query.int(end));
        let (limit, seen) = (query.int(limit.into()), query.seen(view));
        query.sql = format!(
            "WITH counted AS (SELECT application_id, count(*) FILTER (WHERE started_at >= {begin}) AS lately, \
             count(*) FILTER (WHERE started_at >= {begin} AND phase <> 'Succeeded') AS failed, \
             count(*) FILTER (WHERE started_at < {begin}) AS earlier FROM deployments \
             WHERE started_at >= {earlier} AND started_at < {end} AND phase IN ('Succeeded', 'Failed', 'Error') \
             GROUP BY application_id) \
             SELECT r.name, a.namespace, a.name, c.lately, c.failed, c.earlier FROM counted c \
             JOIN applications a ON a.id = c.application_id JOIN runtimes r ON r.id = a.runtime_id \
             WHERE c.lately > 0 AND a.name <> '' AND a.deleted = 0 AND {seen} \
             ORDER BY c.lately DESC, c.earlier, a.name, a.namespace, r.name LIMIT {limit}"
        );
        query.all(&mut self.read().await?).await
    }
}
