//! What runtimes tell of the clusters that they manage.

use std::collections::HashMap;
use std::sync::Arc;

use crate::columns::from_columns;
use crate::connection::Arg;
use crate::error::StoreError;
use crate::report::Millis;
use crate::statement::Statement;
use crate::store::Store;

/// Clusters of one runtime that are kept: those that were told of last.
pub const TOLD_CLUSTERS: usize = 1_000;
/// Lists that name a cluster no more, one after the other, by which it is gone: one alone may have been broken off, or have begun
/// twice because an answer was lost.
const WITHOUT_IT: i64 = 2;

/// What a runtime told of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToldCluster {
    /// The runtime.
    pub runtime: String,
    /// What the cluster is called there.
    pub name: String,
    /// Its address.
    pub server: String,
    /// Whether it was reached, such as `Successful`.
    pub status: String,
    /// What was said of its connection.
    pub message: Option<String>,
    /// When it was tried, as it was written.
    pub attempted_at: Option<String>,
    /// The version of its Kubernetes.
    pub server_version: Option<String>,
    /// Resources that Argo CD holds of it.
    pub resources: Option<i64>,
    /// Kinds of its resources.
    pub apis: Option<i64>,
    /// When Argo CD read them last, as it was written.
    pub cached_at: Option<String>,
    /// Versions of the kinds that it has; where many clusters are listed, none.
    pub api_versions: Vec<String>,
}

from_columns! {
    ToldCluster {
        runtime, name, server, status, message, attempted_at, server_version, resources, apis, cached_at;
        api_versions: Vec::new()
    }
}

impl Store {
    /// Keeps what a runtime told of clusters of its, instead of what it told of them before; those that two whole lists in a row did
    /// not name are gone. A runtime lists all its clusters time and again, in parts and in no order, and says of no part that it is the
    /// last: a list has ended where a cluster of it is named again.
    ///
    /// # Errors
    /// [`StoreError`] when nothing of it was kept.
    pub async fn keep_clusters(
        &self,
        runtime: i64,
        clusters: Vec<ToldCluster>,
        now: Millis,
    ) -> Result<(), Arc<StoreError>> {
        let lists = "SELECT name, list FROM clusters WHERE runtime_id = $1";
        let lists: Vec<(String, i64)> = self.read().await?.all(lists, &[Arg::Int(runtime)]).await?;
        let lists: HashMap<_, _> = lists.into_iter().collect();
        let newest = lists.values().copied().max().unwrap_or_default();
        let list = newest + i64::from(clusters.iter().any(|one| lists.get(&one.name) == Some(&newest)));
        let sql = "INSERT INTO clusters (runtime_id, name, server, status, message, attempted_at, server_version, resources, \
                   apis, cached_at, api_versions, at, list) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
                   ON CONFLICT (runtime_id, name) DO UPDATE SET server = excluded.server, status = excluded.status, \
                   message = excluded.message, attempted_at = excluded.attempted_at, \
                   server_version = excluded.server_version, resources = excluded.resources, apis = excluded.apis, \
                   cached_at = excluded.cached_at, api_versions = excluded.api_versions, at = excluded.at, list = excluded.list";
        let one = |one: ToldCluster| {
            let values = [
                runtime.into(),
                (&*one.name).into(),
                (&*one.server).into(),
                (&*one.status).into(),
                one.message.as_deref().into(),
                one.attempted_at.as_deref().into(),
                one.server_version.as_deref().into(),
                one.resources.into(),
                one.apis.into(),
                one.cached_at.as_deref().into(),
                (&*one.api_versions.join("\n")).into(),
                now.into(),
                list.into(),
            ];
            Statement::may(sql, values)
        };
        let mut all: Vec<Statement> = clusters.into_iter().map(one).collect();
        let gone = "DELETE FROM clusters WHERE runtime_id = $1 AND (list < $3 OR name NOT IN (\
                    SELECT name FROM clusters WHERE runtime_id = $1 ORDER BY at DESC, name LIMIT $2))";
        let most = i64::try_from(TOLD_CLUSTERS).unwrap_or(i64::MAX);
        all.push(Statement::may(gone, [runtime.into(), most.into(), (list - WITHOUT_IT).into()]));
        self.change(all).await
    }

    /// What runtimes, or the one of a name, told of their clusters, by runtime and name: `limit` at most, without versions of kinds.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn told_clusters(
        &self,
        only: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ToldCluster>, StoreError> {
        let sql = "SELECT r.name, c.name, c.server, c.status, c.message, c.attempted_at, c.server_version, c.resources, c.apis, \
                   c.cached_at FROM clusters c JOIN runtimes r ON r.id = c.runtime_id WHERE ($1 = '' OR r.name = $1) \
                   ORDER BY r.name, c.name LIMIT $2";
        let arguments = [Arg::Text(only.unwrap_or("")), Arg::Int(limit.into())];
        self.read().await?.all(sql, &arguments).await
    }

    /// The versions of kinds that a runtime told of a cluster.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn api_versions(&self, runtime: &str, cluster: &str) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT c.api_versions FROM clusters c JOIN runtimes r ON r.id = c.runtime_id \
                   WHERE r.name = $1 AND c.name = $2";
        let text: Option<String> =
            self.read().await?.one(sql, &[Arg::Text(runtime), Arg::Text(cluster)]).await?;
        Ok(text.unwrap_or_default().lines().map(str::to_owned).collect())
    }
}
