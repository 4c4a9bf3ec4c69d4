//! Clusters that applications are deployed to, with how these are.

use crate::columns::from_columns;
use crate::connection::Row;
use crate::error::StoreError;
use crate::fleet::selection::Query;
use crate::own_cluster::{OWN_CLUSTER, OWN_CLUSTER_SERVER};
use crate::rule::View;
use crate::store::Store;

/// A cluster, as one runtime names it: what is called `in-cluster` is another for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetCluster {
    /// The runtime whose applications go there.
    pub runtime: String,
    /// By its name, or else by its address; that of Argo CD itself is `in-cluster`, however its applications name it.
    pub name: String,
    /// How many applications go there.
    pub applications: u64,
    /// How many of them are healthy.
    pub healthy: u64,
    /// How many of them are degraded or missing.
    pub unwell: u64,
    /// How many of them are out of sync.
    pub out_of_sync: u64,
}

from_columns! { FleetCluster { runtime, name, applications, healthy, unwell, out_of_sync } }

impl Store {
    /// Clusters that applications which somebody sees go to, those with the most that need attention first, at
    /// most `limit`; and how many there are.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn clusters(&self, view: &View, limit: u32) -> Result<(Vec<FleetCluster>, u64), StoreError> {
        let mut query = Query::default();
        let (limit, seen) = (query.int(limit.into()), query.seen(view));
        query.sql = format!(
            "SELECT r.name, CASE WHEN a.cluster = '{OWN_CLUSTER_SERVER}' THEN '{OWN_CLUSTER}' ELSE a.cluster END, \
             count(*), count(*) FILTER (WHERE a.health = 'Healthy'), \
             count(*) FILTER (WHERE a.health IN ('Degraded', 'Missing')), count(*) FILTER (WHERE a.sync = 'OutOfSync'), \
             count(*) OVER () FROM applications a JOIN runtimes r ON r.id = a.runtime_id \
             WHERE a.name <> '' AND a.deleted = 0 AND a.cluster <> '' AND {seen} GROUP BY 1, 2 \
             ORDER BY 5 DESC, 6 DESC, 2, 1 LIMIT {limit}"
        );
        let rows = query.rows(&mut self.read().await?).await?;
        let all = rows.first().map_or(Ok(0), |row| row.read_from(6))?;
        Ok((rows.iter().map(Row::read).collect::<Result<_, _>>()?, all))
    }
}
