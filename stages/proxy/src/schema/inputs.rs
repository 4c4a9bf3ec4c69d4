//! What is said of what is asked for: names and shapes are those of Argo CD's own requests, where there is one.

use async_graphql::{Enum, InputObject};
use serde::Serialize;

use crate::argocd::ApplicationName;
use crate::error::ActError;
use crate::gate::Subject;

/// An application of Argo CD.
#[derive(InputObject, Clone)]
pub(crate) struct ApplicationId {
    /// The runtime that it is of: that of this app proxy, which another is refused.
    runtime: Option<String>,
    /// The namespace that its Application is in.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// An object by its name, without its kind.
#[derive(InputObject, Clone)]
pub(crate) struct ObjectId {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// An object that an application has.
#[derive(InputObject, Clone)]
pub(crate) struct ResourceId {
    /// Empty for the core group.
    #[graphql(default)]
    pub(crate) group: String,
    /// Such as `v1`.
    #[graphql(default)]
    pub(crate) version: String,
    pub(crate) kind: String,
    /// Empty for one of the cluster.
    #[graphql(default)]
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What is kept with a sync.
#[derive(InputObject, Serialize)]
pub(crate) struct SyncInfo {
    name: String,
    value: String,
}

/// A resource that is synced alone.
#[derive(InputObject, Serialize)]
pub(crate) struct SyncResource {
    name: String,
    group: Option<String>,
    kind: String,
    namespace: Option<String>,
}

/// How long is waited between tries.
#[derive(InputObject, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryBackoff {
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_duration: Option<String>,
}

/// How often a sync is tried.
#[derive(InputObject, Serialize)]
pub(crate) struct RetryStrategy {
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<RetryBackoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<i64>,
}

/// Whether what cannot be changed is replaced.
#[derive(InputObject, Serialize)]
pub(crate) struct SyncStrategyForce {
    #[serde(skip_serializing_if = "Option::is_none")]
    force: Option<bool>,
}

/// How resources are applied.
#[derive(InputObject, Serialize)]
pub(crate) struct SyncStrategy {
    #[serde(skip_serializing_if = "Option::is_none")]
    apply: Option<SyncStrategyForce>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<SyncStrategyForce>,
}

/// Such as `CreateNamespace=true`.
#[derive(InputObject, Serialize)]
pub(crate) struct SyncOptionItems {
    items: Vec<String>,
}

/// How an application is synced.
#[derive(InputObject, Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SyncOptions {
    dry_run: Option<bool>,
    infos: Option<Vec<SyncInfo>>,
    /// Instead of what Git says: for admins alone.
    pub(crate) manifests: Option<Vec<String>>,
    /// The application's own name, or nothing.
    #[serde(skip)]
    pub(crate) name: Option<String>,
    prune: Option<bool>,
    /// These alone; none: all.
    resources: Option<Vec<SyncResource>>,
    retry_strategy: Option<RetryStrategy>,
    revision: Option<String>,
    strategy: Option<SyncStrategy>,
    sync_options: Option<SyncOptionItems>,
}

/// To which deployment, and how.
#[derive(InputObject, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RollbackOptions {
    /// The number of the deployment in the history.
    id: i64,
    prune: Option<bool>,
    dry_run: Option<bool>,
}

/// How a resource is deleted.
#[derive(InputObject, Default)]
pub(crate) struct DeleteResourceOptions {
    pub(crate) force: Option<bool>,
    /// Leaves what the resource owns.
    pub(crate) orphan: Option<bool>,
}

/// Whose lines, and which.
#[derive(InputObject, Default)]
pub(crate) struct ApplicationLogsOptionsInput {
    pub(crate) follow: Option<bool>,
    /// A text that lines hold.
    pub(crate) filter: Option<String>,
    pub(crate) since_seconds: Option<i64>,
    /// As RFC 3339.
    pub(crate) since_time: Option<String>,
    /// As RFC 3339.
    pub(crate) until_time: Option<String>,
    /// So many of the last lines; none: 1,000.
    pub(crate) tail_lines: Option<i64>,
}

/// Which lines of a workflow's pods.
#[derive(InputObject, Default)]
pub(crate) struct WorkflowLogsOptionsInput {
    pub(crate) follow: Option<bool>,
    /// A regular expression that lines match.
    pub(crate) grep: Option<String>,
    pub(crate) since_seconds: Option<i64>,
    /// As RFC 3339.
    pub(crate) since_time: Option<String>,
    /// So many of the last lines of each pod; none: 1,000.
    pub(crate) tail_lines: Option<i64>,
}

/// Which lines of the runtime's own logs.
#[derive(InputObject, Default)]
pub(crate) struct ComponentLogsOptionsInput {
    pub(crate) follow: Option<bool>,
    pub(crate) since_seconds: Option<i64>,
    /// As RFC 3339.
    pub(crate) since_time: Option<String>,
    /// So many of the last lines of each container; none: 1,000.
    pub(crate) tail_lines: Option<i64>,
}

/// A parameter of a workflow.
#[derive(InputObject)]
pub(crate) struct WorkflowParameter {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A workflow that is to be, of a template.
#[derive(InputObject)]
pub(crate) struct CreateWorkflowFromTemplateArgs {
    pub(crate) namespace: String,
    pub(crate) workflow_template_name: String,
    /// Whether it is a ClusterWorkflowTemplate.
    pub(crate) cluster_scope: Option<bool>,
    pub(crate) entrypoint: Option<String>,
    /// What its name begins with; none: the template's name.
    pub(crate) generate_name: Option<String>,
    pub(crate) parameters: Option<Vec<WorkflowParameter>>,
}

/// How an application is refreshed.
#[derive(Enum, Clone, Copy, PartialEq, Eq)]
#[graphql(rename_items = "lowercase")]
pub(crate) enum RefreshType {
    /// Against what Git says now.
    Normal,
    /// Without what was kept of manifests, too.
    Hard,
}

impl RefreshType {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Hard => "hard",
        }
    }
}

impl ApplicationId {
    pub(crate) fn subject(&self) -> Subject {
        let Self { runtime, namespace, name } = self.clone();
        Subject { runtime, namespace, name: Some(name) }
    }

    pub(crate) fn name(&self) -> ApplicationName {
        ApplicationName { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

impl ResourceId {
    /// As Argo CD is asked about it.
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        vec![
            ("group", self.group.clone()),
            ("version", self.version.clone()),
            ("kind", self.kind.clone()),
            ("namespace", self.namespace.clone()),
            ("resourceName", self.name.clone()),
        ]
    }

    /// For the audit log.
    pub(crate) fn place(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }
}

impl SyncOptions {
    /// Whether they are of this application.
    pub(crate) fn check(&self, application: &ApplicationId) -> Result<(), ActError> {
        match &self.name {
            Some(name) if *name != application.name => Err(ActError::Wrong(
                "options.name is to be the application's own name, or left out".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}
