//! What a runtime is made of: its roles, as far as they were heard of.

use async_graphql::SimpleObject;
use stages_platform_store::{HeardRole, Millis, SILENT};

use super::application::{HealthStatus, SyncStatus};
use super::page::SliceInfo;
use super::runtime::ErrorLevels;

/// What a component is called.
#[derive(SimpleObject)]
struct ComponentMeta {
    account: String,
    runtime: String,
    name: String,
}

/// A role of a runtime.
#[derive(SimpleObject)]
pub(crate) struct Component {
    metadata: ComponentMeta,
    /// The version that it runs; empty: it did not say.
    version: String,
    #[graphql(name = "self")]
    own: ComponentEntity,
}

/// How a component is.
#[derive(SimpleObject)]
struct ComponentEntity {
    status: ComponentStatus,
    /// Empty: what is wrong stands under `errors` of the runtime.
    errors: Vec<SyncError>,
}

/// Whether a component runs.
#[derive(SimpleObject)]
struct ComponentStatus {
    /// Null: nobody reports whether it is as it was installed.
    sync_status: Option<SyncStatus>,
    /// Healthy, if it was heard of within 20 minutes.
    health_status: HealthStatus,
}

/// What is wrong with a component.
#[derive(SimpleObject)]
struct SyncError {
    level: ErrorLevels,
    title: String,
    message: String,
    suggestion: Option<String>,
}

/// The components of a runtime.
#[derive(SimpleObject)]
pub(crate) struct ComponentSlice {
    edges: Vec<ComponentEdge>,
    page_info: SliceInfo,
}

/// A component, and its place in the list.
#[derive(SimpleObject)]
struct ComponentEdge {
    node: Component,
    cursor: String,
}

impl ComponentSlice {
    pub(crate) fn of(runtime: &str, roles: Vec<HeardRole>, now: Millis) -> Self {
        let edge = |one: HeardRole| {
            let health_status = match now - one.at >= SILENT {
                true => HealthStatus::Unknown,
                false => HealthStatus::Healthy,
            };
            let (account, runtime) = (super::ACCOUNT.to_owned(), runtime.to_owned());
            let cursor = one.role.clone();
            let node = Component {
                metadata: ComponentMeta { account, runtime, name: one.role },
                version: one.version,
                own: ComponentEntity {
                    status: ComponentStatus { sync_status: None, health_status },
                    errors: Vec::new(),
                },
            };
            ComponentEdge { node, cursor }
        };
        let edges: Vec<ComponentEdge> = roles.into_iter().map(edge).collect();
        let place = |edge: Option<&ComponentEdge>| edge.map(|edge| edge.cursor.clone());
        Self { page_info: SliceInfo::whole(place(edges.first()), place(edges.last())), edges }
    }
}
