//! Clusters that applications are deployed to, and what runtimes tell of those that they manage.

use std::collections::{BTreeMap, BTreeSet};

use async_graphql::{ComplexObject, Context, Enum, InputObject, Result, SimpleObject};
use stages_platform_store::{FleetCluster, OWN_CLUSTER, OWN_CLUSTER_SERVER, ToldCluster};

use super::page::SliceInfo;
use super::{caller, store};
use crate::caller::{Refusal, unread};

/// Clusters that are looked through for a page.
const CLUSTERS: u32 = 10_000;
/// The longest name or address of a cluster, which are not cut.
const NAME: usize = 500;
/// The most of a message, of a time and of a version that is kept.
const MESSAGE: usize = 1_024;
const SHORT: usize = 100;
/// The most of the versions of kinds of one cluster that is kept.
const VERSIONS: usize = 8 * 1_024;

/// What a cluster is called.
#[derive(SimpleObject)]
struct ClusterMeta {
    account: String,
    runtime: String,
    name: String,
}

/// A cluster, as a runtime told of it, or as its applications name it.
#[derive(SimpleObject)]
pub(crate) struct Cluster {
    metadata: ClusterMeta,
    /// Its address; null where applications name it otherwise, and its runtime told nothing of it.
    server: Option<String>,
    info: ClusterInfo,
}

/// What is known of a cluster: how Argo CD reaches it is what its runtime told.
#[derive(SimpleObject)]
#[graphql(complex)]
struct ClusterInfo {
    #[graphql(skip)]
    told: Option<(String, String)>,
    connection_state: ConnectionState,
    server_version: Option<String>,
    cache_info: CacheInfo,
    /// How many applications go there.
    applications_count: u64,
    /// How many of them are healthy.
    healthy_count: u64,
    /// How many of them are degraded or missing.
    unwell_count: u64,
    /// How many of them are out of sync.
    out_of_sync_count: u64,
}

/// Whether Argo CD reaches a cluster.
#[derive(SimpleObject)]
struct ConnectionState {
    /// `Unknown`: it could not be seen, or was not told.
    status: ClusterConnectionStatus,
    message: Option<String>,
    attempted_at: Option<String>,
}

/// Whether a cluster is reached, as Argo CD says it.
#[derive(Enum, Clone, Copy, PartialEq, Eq)]
#[graphql(rename_items = "PascalCase")]
enum ClusterConnectionStatus {
    Failed,
    Successful,
    Unknown,
}

/// The same as it is told.
#[derive(Enum, Clone, Copy, PartialEq, Eq)]
#[graphql(rename_items = "PascalCase")]
enum ClusterConnectionStatusInput {
    Failed,
    Successful,
    Unknown,
}

/// The name of a status, as it is kept.
const REACHED: &str = "Successful";

/// What Argo CD holds of a cluster.
#[derive(SimpleObject)]
struct CacheInfo {
    resources_count: Option<i64>,
    apis_count: Option<i64>,
    last_cache_sync_time: Option<String>,
}

/// What a runtime tells of a cluster of its.
#[derive(InputObject)]
pub(crate) struct ClusterUpsertArgs {
    name: String,
    pub(crate) runtime: String,
    server: String,
    info: ClusterInfoInput,
}

/// What Argo CD knows of a cluster.
#[derive(InputObject)]
struct ClusterInfoInput {
    connection_state: ConnectionStateInput,
    server_version: Option<String>,
    cache_info: Option<CacheInfoInput>,
    /// It is counted here, of the applications that are reported.
    applications_count: i64,
    api_versions: Option<Vec<Option<String>>>,
}

/// Whether Argo CD reaches a cluster.
#[derive(InputObject)]
struct ConnectionStateInput {
    status: ClusterConnectionStatusInput,
    message: Option<String>,
    attempted_at: Option<String>,
}

/// What Argo CD holds of a cluster.
#[derive(InputObject, Default)]
struct CacheInfoInput {
    resources_count: Option<i64>,
    apis_count: Option<i64>,
    last_cache_sync_time: Option<String>,
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

/// A cluster that is known: what was told of it beside what its applications come to.
pub(crate) struct KnownCluster {
    of: FleetCluster,
    told: Option<ToldCluster>,
}

impl ClusterUpsertArgs {
    /// As it is kept.
    pub(crate) fn told(self) -> Result<ToldCluster, Refusal> {
        for (what, text) in [("name", &self.name), ("server", &self.server)] {
            let is_well = !text.is_empty() && text.len() <= NAME && !text.chars().any(char::is_control);
            if !is_well {
                return Err(Refusal::Wrong(format!("the {what} of a cluster has 1 to {NAME} bytes")));
            }
        }
        let begin = |text: Option<String>, most: usize| text.map(|text| text.chars().take(most).collect());
        let (state, cache) = (self.info.connection_state, self.info.cache_info.unwrap_or_default());
        let status = match state.status {
            ClusterConnectionStatusInput::Failed => "Failed",
            ClusterConnectionStatusInput::Successful => REACHED,
            ClusterConnectionStatusInput::Unknown => "Unknown",
        };
        let mut room = VERSIONS;
        let fits = |version: &String| {
            let left = room.checked_sub(version.len() + 1);
            room = left.unwrap_or(0);
            left.is_some() && !version.contains('\n')
        };
        let versions = self.info.api_versions.unwrap_or_default().into_iter().flatten();
        Ok(ToldCluster {
            runtime: self.runtime,
            name: self.name,
            server: self.server,
            status: status.to_owned(),
            message: begin(state.message, MESSAGE),
            attempted_at: begin(state.attempted_at, SHORT),
            server_version: begin(self.info.server_version, SHORT),
            resources: cache.resources_count,
            apis: cache.apis_count,
            cached_at: begin(cache.last_cache_sync_time, SHORT),
            api_versions: versions.filter(fits).collect(),
        })
    }
}

/// The clusters that whoever asks sees, of one runtime or of all, by runtime and name: those that applications go to which they see,
/// and those that no application goes to of a runtime of which they see everything.
pub(crate) async fn known(context: &Context<'_>, runtime: Option<&str>) -> Result<Vec<KnownCluster>> {
    let (caller, store) = (caller(context)?, store(context)?);
    let (mut fleet, _) = store.clusters(&caller.view(), CLUSTERS).await.map_err(unread)?;
    fleet.retain(|one| runtime.is_none_or(|name| one.runtime == name));
    let mut told = BTreeMap::<String, Vec<ToldCluster>>::new();
    for one in store.told_clusters(runtime, CLUSTERS).await.map_err(unread)? {
        told.entry(one.runtime.clone()).or_default().push(one);
    }
    // Applications name a cluster by its name or by its address: those that were told of as one are one.
    let mut all: Vec<KnownCluster> = Vec::new();
    let mut places = BTreeMap::<(String, String), usize>::new();
    for of in fleet {
        let of_runtime = told.get(&of.runtime).into_iter().flatten();
        let server = if of.name == OWN_CLUSTER { OWN_CLUSTER_SERVER } else { of.name.as_str() };
        let told = of_runtime.clone().find(|told| told.name == of.name);
        let told = told.or_else(|| of_runtime.clone().find(|told| told.server == server)).cloned();
        let place = told.as_ref().map(|told| (told.runtime.clone(), told.name.clone()));
        let known = place.as_ref().and_then(|place| places.get(place)).and_then(|at| all.get_mut(*at));
        if let Some(known) = known {
            known.join(of);
            continue;
        }
        if let Some(place) = place {
            places.insert(place, all.len());
        }
        all.push(KnownCluster { of, told });
    }
    for (runtime, told) in told.into_iter().filter(|(runtime, _)| caller.sees_all_of(runtime)) {
        let goes_to = |told: &ToldCluster| places.contains_key(&(runtime.clone(), told.name.clone()));
        for told in told.into_iter().filter(|told| !goes_to(told)) {
            let (runtime, name) = (runtime.clone(), told.name.clone());
            let of = FleetCluster { runtime, name, applications: 0, healthy: 0, unwell: 0, out_of_sync: 0 };
            all.push(KnownCluster { of, told: Some(told) });
        }
    }
    all.sort_by(|one, other| one.place().cmp(&other.place()));
    Ok(all)
}

/// The clusters that runtimes manage, by the runtime's name.
#[derive(Default)]
pub(crate) struct Managed(BTreeMap<String, Clusters>);

/// Those of one runtime.
#[derive(Default)]
struct Clusters {
    names: BTreeSet<String>,
    /// Whether one beside its own is reached; `None`: nothing was told.
    is_remote_connected: Option<bool>,
}

impl Managed {
    pub(crate) fn of(clusters: Vec<KnownCluster>) -> Self {
        let mut all = BTreeMap::<String, Clusters>::new();
        for KnownCluster { of, told } in clusters {
            let known = all.entry(of.runtime).or_default();
            if let Some(told) = &told {
                let is_remote = told.name != OWN_CLUSTER && told.server != OWN_CLUSTER_SERVER;
                let is_connected = is_remote && told.status == REACHED;
                known.is_remote_connected = Some(known.is_remote_connected == Some(true) || is_connected);
            }
            // What is named by its name and by its address is one.
            known.names.insert(told.map_or(of.name, |told| told.name));
        }
        Self(all)
    }

    /// How many one runtime has; `None`: nothing is known of any.
    pub(crate) fn number(&self, runtime: &str) -> Option<usize> {
        self.0.get(runtime).map(|known| known.names.len())
    }

    /// Whether Argo CD reaches one beside its own; `None`: nothing was told.
    pub(crate) fn is_remote_connected(&self, runtime: &str) -> Option<bool> {
        self.0.get(runtime).and_then(|known| known.is_remote_connected)
    }
}

impl KnownCluster {
    /// With the applications that name it otherwise.
    fn join(&mut self, other: FleetCluster) {
        let FleetCluster { name, applications, healthy, unwell, out_of_sync, .. } = other;
        if self.told.as_ref().is_some_and(|told| told.name == name) {
            self.of.name = name;
        }
        self.of.applications += applications;
        self.of.healthy += healthy;
        self.of.unwell += unwell;
        self.of.out_of_sync += out_of_sync;
    }

    /// The runtime and the name.
    pub(crate) fn place(&self) -> (&str, &str) {
        (&self.of.runtime, &self.of.name)
    }
}

#[ComplexObject]
impl ClusterInfo {
    /// The versions of kinds that it has, as its runtime told them; null: it told nothing of it.
    #[graphql(complexity = 100)]
    async fn api_versions(&self, context: &Context<'_>) -> Result<Option<Vec<String>>> {
        let Some((runtime, name)) = &self.told else { return Ok(None) };
        Ok(Some(store(context)?.api_versions(runtime, name).await.map_err(unread)?))
    }
}

/// Its place in the list: the runtime, which has no slash, and then its name.
pub(crate) fn cursor(one: &KnownCluster) -> String {
    format!("{}/{}", one.of.runtime, one.of.name)
}

impl From<KnownCluster> for Cluster {
    fn from(KnownCluster { of: one, told }: KnownCluster) -> Self {
        let server = match (&told, &*one.name) {
            (Some(told), _) => Some(told.server.clone()),
            (None, OWN_CLUSTER) => Some(OWN_CLUSTER_SERVER.to_owned()),
            (None, name) => Some(name.to_owned()).filter(|name| name.contains("://")),
        };
        let id = told.as_ref().map(|told| (told.runtime.clone(), told.name.clone()));
        let told = told.unwrap_or_default();
        let status = match &*told.status {
            REACHED => ClusterConnectionStatus::Successful,
            "Failed" => ClusterConnectionStatus::Failed,
            _ => ClusterConnectionStatus::Unknown,
        };
        Self {
            metadata: ClusterMeta {
                account: super::ACCOUNT.to_owned(),
                runtime: one.runtime,
                name: one.name,
            },
            server,
            info: ClusterInfo {
                told: id,
                connection_state: ConnectionState {
                    status,
                    message: told.message,
                    attempted_at: told.attempted_at,
                },
                server_version: told.server_version,
                cache_info: CacheInfo {
                    resources_count: told.resources,
                    apis_count: told.apis,
                    last_cache_sync_time: told.cached_at,
                },
                applications_count: one.applications,
                healthy_count: one.healthy,
                unwell_count: one.unwell,
                out_of_sync_count: one.out_of_sync,
            },
        }
    }
}
