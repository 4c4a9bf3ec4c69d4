//! Git sources: the applications by which a runtime takes others from a repository.

use async_graphql::SimpleObject;
use stages_platform_store::SeenApplication;

use super::application::{HealthStatus, SyncStatus};
use super::named;
use super::page::SliceInfo;

/// The label of an application that is one, and its value.
pub(crate) const LABEL: (&str, &str) = ("codefresh.io/entity", "git-source");

/// What a Git source is called.
#[derive(SimpleObject)]
struct GitSourceMeta {
    account: String,
    runtime: String,
    group: String,
    version: String,
    kind: String,
    namespace: String,
    name: String,
}

/// A Git source.
#[derive(SimpleObject)]
pub(crate) struct GitSource {
    metadata: GitSourceMeta,
    #[graphql(name = "self")]
    own: GitSourceEntity,
    /// Who may read and write its repository with a token of their own: whoever runs the runtime knows, and here nobody.
    permissions: Vec<GitPermission>,
}

/// Where a Git source takes its applications from.
#[derive(SimpleObject)]
struct GitSourceEntity {
    #[graphql(name = "repoURL")]
    repo_url: String,
    path: String,
    /// The revision that it is at.
    revision: Option<String>,
    status: GitSourceStatus,
}

/// How the application is that a Git source is.
#[derive(SimpleObject)]
struct GitSourceStatus {
    sync_status: Option<SyncStatus>,
    health_status: Option<HealthStatus>,
    revision: Option<String>,
}

/// What somebody may with a repository.
#[derive(SimpleObject)]
struct GitPermission {
    user_id: String,
    read: bool,
    write: bool,
}

/// A page of Git sources.
#[derive(SimpleObject)]
pub(crate) struct GitSourceSlice {
    pub(crate) edges: Vec<GitSourceEdge>,
    pub(crate) page_info: SliceInfo,
}

/// A Git source, and its place in the list.
#[derive(SimpleObject)]
pub(crate) struct GitSourceEdge {
    pub(crate) node: GitSource,
    pub(crate) cursor: String,
}

impl From<SeenApplication> for GitSource {
    fn from(one: SeenApplication) -> Self {
        let (state, (repo_url, path)) = (one.state, one.source);
        Self {
            metadata: GitSourceMeta {
                account: super::ACCOUNT.to_owned(),
                runtime: one.runtime,
                group: "argoproj.io".to_owned(),
                version: "v1alpha1".to_owned(),
                kind: "Application".to_owned(),
                namespace: state.namespace,
                name: state.name,
            },
            own: GitSourceEntity {
                repo_url,
                path,
                revision: state.revision.clone(),
                status: GitSourceStatus {
                    sync_status: state.sync.as_deref().map(named),
                    health_status: state.health.as_deref().map(named),
                    revision: state.revision,
                },
            },
            permissions: Vec::new(),
        }
    }
}
