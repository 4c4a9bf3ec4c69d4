//! Workflows and pipelines, as clients of other platforms ask for them. Of workflows the resources of applications tell; lists of them,
//! and pipelines, are not kept: there is none, in the form that is asked for.

use async_graphql::{Enum, InputObject, SimpleObject};

use super::application::{HealthStatus, SyncStatus};
use super::page::SliceInfo;

/// What a workflow or a pipeline is called.
#[derive(SimpleObject)]
struct WorkflowMeta {
    account: String,
    runtime: String,
    namespace: Option<String>,
    name: String,
    uid: Option<String>,
}

/// A run of steps.
#[derive(SimpleObject)]
pub(crate) struct Workflow {
    metadata: WorkflowMeta,
    projects: Option<Vec<String>>,
    spec: WorkflowSpec,
    status: WorkflowStatus,
    /// What began it.
    pipeline: Option<Pipeline>,
}

/// What a workflow does.
#[derive(SimpleObject)]
struct WorkflowSpec {
    entrypoint: Option<String>,
    templates: Option<Vec<WorkflowSpecTemplate>>,
    workflow_template_ref: Option<WorkflowTemplateRef>,
}

/// A step of a workflow.
#[derive(SimpleObject)]
struct WorkflowSpecTemplate {
    name: String,
}

/// What a workflow was made from.
#[derive(SimpleObject)]
struct WorkflowTemplateRef {
    name: Option<String>,
    namespace: Option<String>,
}

/// How far a workflow is.
#[derive(SimpleObject)]
struct WorkflowStatus {
    phase: WorkflowPhases,
    progress: Option<String>,
    nodes: Option<Vec<NodeStatus>>,
}

/// How far a node of a workflow is.
#[derive(SimpleObject)]
struct NodeStatus {
    r#type: String,
    name: String,
}

/// How a workflow stands, as Argo Workflows says it.
#[derive(Enum, Clone, Copy, PartialEq, Eq)]
#[graphql(rename_items = "PascalCase")]
enum WorkflowPhases {
    Error,
    Failed,
    Pending,
    Running,
    Succeeded,
    Unknown,
}

/// A page of workflows.
#[derive(SimpleObject)]
pub(crate) struct WorkflowSlice {
    edges: Vec<WorkflowEdge>,
    page_info: SliceInfo,
}

/// A workflow, and its place in the list.
#[derive(SimpleObject)]
struct WorkflowEdge {
    node: Workflow,
    cursor: String,
}

/// What begins workflows.
#[derive(SimpleObject)]
pub(crate) struct Pipeline {
    metadata: WorkflowMeta,
    #[graphql(name = "self")]
    own: Option<PipelineEntity>,
    projects: Option<Vec<String>>,
    spec: PipelineSpec,
}

/// How a pipeline is.
#[derive(SimpleObject)]
struct PipelineEntity {
    sync_status: Option<SyncStatus>,
    health_status: Option<HealthStatus>,
    version: Option<i32>,
}

/// What a pipeline does.
#[derive(SimpleObject)]
struct PipelineSpec {
    trigger: String,
}

/// A page of pipelines.
#[derive(SimpleObject)]
pub(crate) struct PipelineSlice {
    edges: Vec<PipelineEdge>,
    page_info: SliceInfo,
}

/// A pipeline, and its place in the list.
#[derive(SimpleObject)]
struct PipelineEdge {
    node: Pipeline,
    cursor: String,
}

/// Which workflows are listed.
#[derive(InputObject)]
pub(crate) struct WorkflowsFilterArgs {
    project: Option<String>,
    runtime: Option<String>,
    namespace: Option<String>,
    groups: Option<Vec<String>>,
    versions: Option<Vec<String>>,
    cluster: Option<String>,
    pipelines: Option<NamespacedFindManyArgs>,
    repositories: Option<Vec<String>>,
    branches: Option<Vec<String>>,
    event_types: Option<Vec<String>>,
    initiators: Option<Vec<String>>,
    statuses: Option<Vec<WorkflowPhases>>,
    start_date_from: Option<String>,
    start_date_to: Option<String>,
    workflow_template: Option<String>,
    originated_from: Option<Vec<String>>,
    workflow_template_cluster_scope: Option<bool>,
    app_names: Option<Vec<Option<String>>>,
    products: Option<Vec<Option<String>>>,
    environments: Option<Vec<Option<String>>>,
}

/// Objects of these names.
#[derive(InputObject)]
struct NamespacedFindManyArgs {
    runtime: String,
    names: Vec<String>,
    namespace: String,
    kind: Option<String>,
    group: Option<String>,
    version: Option<String>,
}

/// Which pipelines are listed.
#[derive(InputObject)]
pub(crate) struct PipelinesFilterArgs {
    project: Option<String>,
    runtime: Option<String>,
    namespace: Option<String>,
    cluster: Option<String>,
    name: Option<String>,
    groups: Option<Vec<Option<String>>>,
    versions: Option<Vec<Option<String>>>,
    workflow_template: Option<String>,
}

impl WorkflowSlice {
    pub(crate) fn none() -> Self {
        Self { edges: Vec::new(), page_info: SliceInfo::whole(None, None) }
    }
}

impl PipelineSlice {
    pub(crate) fn none() -> Self {
        Self { edges: Vec::new(), page_info: SliceInfo::whole(None, None) }
    }
}
