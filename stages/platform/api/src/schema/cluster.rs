//! Clusters that applications are deployed to, as those list them who manage clusters by a runtime.

use std::collections::BTreeMap;

use async_graphql::SimpleObject;
use stages_platform_store::FleetCluster;

use super::page::SliceInfo;

/// Where Argo CD runs is told by this name,
const OWN_NAME: &str = "in-cluster";
/// and has this address there.
pub(super) const OWN_SERVER: &str = "https://kubernetes.default.svc";

/// What a cluster is called.
#[derive(SimpleObject)]
struct ClusterMeta {
    account: String,
    runtime: String,
    name: String,
}

/// A cluster, as the applications of a runtime name it.
#[derive(SimpleObject)]
pub(crate) struct Cluster {
    metadata: ClusterMeta,
    /// Its address; null where applications name it otherwise.
    server: Option<String>,
    info: ClusterInfo,
}

/// What is known of a cluster: of its connection and its version nobody reports.
#[derive(SimpleObject)]
struct ClusterInfo {
    connection_state: ConnectionState,
    server_version: Option<String>,
    cache_info: CacheInfo,
    /// How many applications go there,
    applications_count: u64,
    /// of them those that are healthy,
    healthy_count: u64,
    /// those that are degraded or missing,
    unwell_count: u64,
    /// and those that are out of sync.
    out_of_sync_count: u64,
}

/// Whether Argo CD reaches a cluster.
#[derive(SimpleObject)]
struct ConnectionState {
    /// `Unknown`: it is not reported.
    status: String,
    message: Option<String>,
}

/// What Argo CD holds of a cluster.
#[derive(SimpleObject, Default)]
struct CacheInfo {
    resources_count: Option<u64>,
    apis_count: Option<u64>,
}

/// A page of clusters.
#[derive(SimpleObject)]
pub(crate) struct ClusterSlice {
    pub(crate) edges: Vec<ClusterEdge>,
    pub(crate) page_info: SliceInfo,
}

/// A cluster, and its place in the list.
#[derive(SimpleObject)]
pub(crate) struct ClusterEdge {
    pub(crate) node: Cluster,
    pub(crate) cursor: String,
}

/// How many clusters each runtime manages, by its name.
#[derive(Default)]
pub(crate) struct Managed(BTreeMap<String, usize>);

impl Managed {
    pub(crate) fn of(clusters: &[FleetCluster]) -> Self {
        let mut all = BTreeMap::new();
        for one in clusters {
            *all.entry(one.runtime.clone()).or_default() += 1;
        }
        Self(all)
    }

    /// Those of one runtime; `None`: nothing is known of any.
    pub(crate) fn number(&self, runtime: &str) -> Option<usize> {
        self.0.get(runtime).copied()
    }
}

/// Its place in the list: the runtime, which has no slash, and then its name.
pub(crate) fn cursor(one: &FleetCluster) -> String {
    format!("{}/{}", one.runtime, one.name)
}

impl From<FleetCluster> for Cluster {
    fn from(one: FleetCluster) -> Self {
        let server = match &*one.name {
            OWN_NAME => Some(OWN_SERVER.to_owned()),
            name => Some(name.to_owned()).filter(|name| name.contains("://")),
        };
        Self {
            metadata: ClusterMeta {
                account: super::ACCOUNT.to_owned(),
                runtime: one.runtime,
                name: one.name,
            },
            server,
            info: ClusterInfo {
                connection_state: ConnectionState { status: "Unknown".to_owned(), message: None },
                server_version: None,
                cache_info: CacheInfo::default(),
                applications_count: one.applications,
                healthy_count: one.healthy,
                unwell_count: one.unwell,
                out_of_sync_count: one.out_of_sync,
            },
        }
    }
}
