//! Applications, and what happened to them.

use async_graphql::{ComplexObject, Context, Enum, Result, SimpleObject};
use stages_platform_store as kept;

use super::page::{SliceInfo, rows};
use super::{store, time};
use crate::caller::unread;

/// How an application is.
#[derive(Enum, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HealthStatus {
    Degraded,
    Healthy,
    Missing,
    Progressing,
    Suspended,
    Terminated,
    Unknown,
}

/// Whether an application is as Git says.
#[derive(Enum, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncStatus {
    OutOfSync,
    Synced,
    Syncing,
    Unknown,
}

impl HealthStatus {
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "Degraded" => Self::Degraded,
            "Healthy" => Self::Healthy,
            "Missing" => Self::Missing,
            "Progressing" => Self::Progressing,
            "Suspended" => Self::Suspended,
            "Terminated" => Self::Terminated,
            _ => Self::Unknown,
        }
    }
}

impl SyncStatus {
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "OutOfSync" => Self::OutOfSync,
            "Synced" => Self::Synced,
            "Syncing" => Self::Syncing,
            _ => Self::Unknown,
        }
    }
}

/// What something is called.
#[derive(SimpleObject, Clone)]
pub(crate) struct ObjectMeta {
    pub(crate) runtime: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// An application of a runtime.
#[derive(SimpleObject)]
#[graphql(complex)]
pub(crate) struct Application {
    pub(crate) metadata: ObjectMeta,
    uid: String,
    health_status: Option<HealthStatus>,
    health_message: Option<String>,
    sync_status: Option<SyncStatus>,
    revision: Option<String>,
    deleted: bool,
    last_report_at: String,
}

/// A page of applications.
#[derive(SimpleObject)]
pub(crate) struct ApplicationSlice {
    pub(crate) edges: Vec<ApplicationEdge>,
    pub(crate) page_info: SliceInfo,
}

/// An application, and its place in the list.
#[derive(SimpleObject)]
pub(crate) struct ApplicationEdge {
    pub(crate) node: Application,
    pub(crate) cursor: String,
}

/// A state that an application or one of its resources was reported in.
#[derive(SimpleObject)]
struct Transition {
    id: i64,
    /// Of this resource; null: of the application itself.
    resource: Option<Resource>,
    at: String,
    last_at: String,
    reports: i64,
    current: bool,
    deleted: bool,
    sync_status: Option<SyncStatus>,
    health_status: Option<HealthStatus>,
    health_message: Option<String>,
    revision: Option<String>,
}

/// A resource of an application.
#[derive(SimpleObject)]
struct Resource {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
}

/// An operation that deployed.
#[derive(SimpleObject)]
struct Deployment {
    started_at: String,
    phase: String,
    revision: String,
    initiated_by: String,
    commit_author: String,
    ended: bool,
}

/// A time during which an application was out of sync.
#[derive(SimpleObject)]
struct Drift {
    onset: String,
    ended: bool,
    repeats: i64,
}

impl Application {
    pub(crate) fn of(runtime: String, one: kept::Application) -> Self {
        Self {
            metadata: ObjectMeta { runtime, namespace: one.namespace, name: one.name },
            uid: one.uid,
            health_status: one.health.as_deref().map(HealthStatus::of),
            health_message: one.health_message,
            sync_status: one.sync.as_deref().map(SyncStatus::of),
            revision: one.revision,
            deleted: one.deleted,
            last_report_at: time(one.at),
        }
    }

    async fn runtime(&self, context: &Context<'_>) -> Result<i64> {
        let found = store(context)?.runtime_named(&self.metadata.runtime).await.map_err(unread)?;
        Ok(found.unwrap_or_default())
    }
}

#[ComplexObject]
impl Application {
    /// What happened to it and its resources, the newest first, from before the number `before`.
    #[graphql(complexity = "rows(first) * child_complexity")]
    async fn timeline(
        &self,
        context: &Context<'_>,
        first: Option<i32>,
        before: Option<i64>,
    ) -> Result<Vec<Transition>> {
        let (runtime, limit) = (self.runtime(context).await?, u32::try_from(rows(first)).unwrap_or(1));
        let name = (&*self.metadata.namespace, &*self.metadata.name);
        let before = before.unwrap_or(i64::MAX);
        let found = store(context)?.timeline(runtime, name, before, limit).await.map_err(unread)?;
        let one =
            |one: kept::Transition| Transition {
                id: one.id,
                resource: one.resource.map(|kept::Resource { api_version, kind, namespace, name }| {
                    Resource { api_version, kind, namespace, name }
                }),
                at: time(one.at),
                last_at: time(one.last_at),
                reports: one.reports,
                current: one.current,
                deleted: one.deleted,
                sync_status: one.sync.as_deref().map(SyncStatus::of),
                health_status: one.health.as_deref().map(HealthStatus::of),
                health_message: one.health_message,
                revision: one.revision,
            };
        Ok(found.into_iter().map(one).collect())
    }

    /// Its last hundred deployments, the newest first.
    #[graphql(complexity = "100 * child_complexity")]
    async fn deployments(&self, context: &Context<'_>) -> Result<Vec<Deployment>> {
        let name = (&*self.metadata.namespace, &*self.metadata.name);
        let found = store(context)?.deployments(self.runtime(context).await?, name).await.map_err(unread)?;
        let one = |one: kept::Deployment| Deployment {
            started_at: time(one.started_at),
            phase: one.phase,
            revision: one.revision,
            initiated_by: one.initiated_by,
            commit_author: one.commit_author,
            ended: one.ended,
        };
        Ok(found.into_iter().map(one).collect())
    }

    /// The last hundred times that it was out of sync, the newest first.
    #[graphql(complexity = "100 * child_complexity")]
    async fn drifts(&self, context: &Context<'_>) -> Result<Vec<Drift>> {
        let name = (&*self.metadata.namespace, &*self.metadata.name);
        let found = store(context)?.drifts(self.runtime(context).await?, name).await.map_err(unread)?;
        let one = |one: kept::Drift| Drift { onset: time(one.onset), ended: one.ended, repeats: one.repeats };
        Ok(found.into_iter().map(one).collect())
    }
}
