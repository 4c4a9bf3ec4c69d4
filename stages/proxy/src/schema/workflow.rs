//! Workflows, as they are told.

use async_graphql::SimpleObject;
use serde_json::Value;

use super::{ObjectMeta, is_true, meta, text};

/// A workflow.
#[derive(SimpleObject)]
pub(crate) struct Workflow {
    metadata: ObjectMeta,
    uid: String,
    phase: Option<String>,
    message: Option<String>,
    /// Nodes that are done, of all: such as `3/7`.
    progress: Option<String>,
    workflow_template: Option<String>,
    suspended: bool,
    created_at: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
}

/// The workflow that was made.
#[derive(SimpleObject)]
pub(crate) struct NewWorkflow {
    pub(crate) new_workflow_name: String,
}

impl Workflow {
    pub(crate) fn of(workflow: &Value) -> Self {
        let field = |pointer| text(workflow, pointer);
        Self {
            metadata: meta(workflow),
            uid: field("/metadata/uid").unwrap_or_default(),
            phase: field("/status/phase"),
            message: field("/status/message"),
            progress: field("/status/progress"),
            workflow_template: field("/spec/workflowTemplateRef/name"),
            suspended: is_true(workflow, "/spec/suspend"),
            created_at: field("/metadata/creationTimestamp"),
            started_at: field("/status/startedAt"),
            finished_at: field("/status/finishedAt"),
        }
    }
}
