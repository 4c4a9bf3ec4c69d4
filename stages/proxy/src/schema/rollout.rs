//! Rollouts and what analyses them, as they are told.

use async_graphql::SimpleObject;
use serde_json::Value;

use super::{ObjectMeta, is_true, meta, number, text};
use crate::rollouts::Revision;

/// A Rollout.
#[derive(SimpleObject)]
pub(crate) struct Rollout {
    metadata: ObjectMeta,
    uid: String,
    phase: Option<String>,
    message: Option<String>,
    paused: bool,
    aborted: bool,
    /// `canary` or `blueGreen`.
    strategy: Option<String>,
    /// The step that it is at, counted from 0.
    current_step_index: Option<i64>,
    steps: i64,
    revision: Option<i64>,
    stable_revision: Option<String>,
    replicas: Option<i64>,
    ready_replicas: Option<i64>,
    updated_replicas: Option<i64>,
    available_replicas: Option<i64>,
    /// Whether a restart was asked for that is not through.
    restarting: Option<bool>,
    /// Revisions that it can be rolled back to, the newest first.
    revisions: Vec<RolloutRevision>,
}

/// A revision that is still there.
#[derive(SimpleObject)]
pub(crate) struct RolloutRevision {
    revision: i64,
    replica_set: String,
    images: Vec<String>,
    created_at: Option<String>,
    replicas: Option<i64>,
}

/// What a Rollout was rolled back to.
#[derive(SimpleObject)]
pub(crate) struct RolloutRollbackResponse {
    pub(crate) rollout: String,
    pub(crate) new_revision: i64,
}

/// A run that analyses a Rollout.
#[derive(SimpleObject)]
pub(crate) struct AnalysisRun {
    metadata: ObjectMeta,
    phase: Option<String>,
    message: Option<String>,
    started_at: Option<String>,
}

impl Rollout {
    pub(crate) fn of(rollout: &Value, revisions: &[Revision]) -> Self {
        let strategy = rollout.pointer("/spec/strategy").and_then(Value::as_object);
        let waits = rollout.pointer("/status/pauseConditions").and_then(Value::as_array);
        let steps = rollout.pointer("/spec/strategy/canary/steps").and_then(Value::as_array);
        Self {
            metadata: meta(rollout),
            uid: text(rollout, "/metadata/uid").unwrap_or_default(),
            phase: text(rollout, "/status/phase"),
            message: text(rollout, "/status/message"),
            paused: is_true(rollout, "/spec/paused") || waits.is_some_and(|waits| !waits.is_empty()),
            aborted: is_true(rollout, "/status/abort"),
            strategy: strategy.and_then(|strategy| strategy.keys().next().cloned()),
            current_step_index: number(rollout, "/status/currentStepIndex"),
            steps: i64::try_from(steps.map_or(0, Vec::len)).unwrap_or(0),
            revision: revisions.first().map(|revision| revision.number),
            stable_revision: text(rollout, "/status/stableRS"),
            replicas: number(rollout, "/status/replicas"),
            ready_replicas: number(rollout, "/status/readyReplicas"),
            updated_replicas: number(rollout, "/status/updatedReplicas"),
            available_replicas: number(rollout, "/status/availableReplicas"),
            restarting: Some(
                rollout
                    .pointer("/spec/restartAt")
                    .filter(|at| !at.is_null())
                    .is_some_and(|at| rollout.pointer("/status/restartedAt") != Some(at)),
            ),
            revisions: revisions.iter().map(RolloutRevision::of).collect(),
        }
    }
}

impl RolloutRevision {
    fn of(revision: &Revision) -> Self {
        let set = &revision.replica_set;
        let containers = set.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        Self {
            revision: revision.number,
            replica_set: text(set, "/metadata/name").unwrap_or_default(),
            images: containers.into_iter().flatten().filter_map(|one| text(one, "/image")).collect(),
            created_at: text(set, "/metadata/creationTimestamp"),
            replicas: number(set, "/status/replicas"),
        }
    }
}

impl AnalysisRun {
    pub(crate) fn of(run: &Value) -> Self {
        Self {
            metadata: meta(run),
            phase: text(run, "/status/phase"),
            message: text(run, "/status/message"),
            started_at: text(run, "/status/startedAt").or_else(|| text(run, "/metadata/creationTimestamp")),
        }
    }
}
