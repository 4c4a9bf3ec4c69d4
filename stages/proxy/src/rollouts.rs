//! Argo Rollouts: objects of the API server, changed as Rollouts' own tools change them.
//!
//! takes: a Rollout that an application is shown to have, by its uid - gives: what was changed - calls: the API server; Argo CD for
//! the application's tree - fails: a Rollout of another application or of another cluster is refused; one that is at another step or
//! revision meanwhile is not changed, and what else its controller says of it does not matter

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use stages_kube::{QuestionError, Reader};

use crate::argocd::{ApplicationName, ArgoCd};
use crate::collection::Collection;
use crate::error::ActError;
use crate::kubernetes_name::check_name;

const GROUP: &str = "argoproj.io";
const API: &str = "/apis/argoproj.io/v1alpha1/namespaces";
/// The annotation of a ReplicaSet with its revision.
const REVISION: &str = "rollout.argoproj.io/revision";
const HASH: &str = "rollouts-pod-template-hash";
/// How often a change is tried while the controller writes to the Rollout at the same moment.
const TRIES: u32 = 5;
/// The fields of a Rollout that a change depends on. Its controller writes others all the time, such as how many pods are ready.
const DECISIVE_FIELDS: [&str; 8] = [
    "/metadata/uid",
    "/metadata/generation",
    "/status/abort",
    "/status/currentPodHash",
    "/status/currentStepIndex",
    "/status/pauseConditions",
    "/status/promoteFull",
    "/status/stableRS",
];

/// Reads and changes Rollouts. Cloning shares.
#[derive(Clone)]
pub(crate) struct Rollouts {
    pub(crate) cluster: Arc<Reader>,
    pub(crate) argocd: Arc<ArgoCd>,
}

/// A change of a Rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RolloutChange {
    Promote,
    PromoteFull,
    Pause,
    Resume,
    Abort,
    Retry,
    Restart,
    SkipStep,
}

/// A revision of a Rollout whose ReplicaSet is still there.
#[derive(Debug, Clone)]
pub(crate) struct Revision {
    pub(crate) number: i64,
    pub(crate) replica_set: Value,
}

fn path(namespace: &str, name: &str) -> String {
    format!("{API}/{namespace}/rollouts/{name}")
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn decisive_fields(rollout: &Value) -> [Option<&Value>; DECISIVE_FIELDS.len()] {
    DECISIVE_FIELDS.map(|pointer| rollout.pointer(pointer))
}

/// Whether the analysis of the step that it stands at could not tell whether it is well.
fn is_inconclusive(rollout: &Value) -> bool {
    text(rollout, "/status/canary/currentStepAnalysisRunStatus/status") == "Inconclusive"
}

/// The step after the one that it stands at; none after the last.
fn next_step(rollout: &Value) -> Option<i64> {
    let steps = rollout.pointer("/spec/strategy/canary/steps").and_then(Value::as_array);
    let steps = i64::try_from(steps.map_or(0, Vec::len)).unwrap_or(0);
    let at = rollout.pointer("/status/currentStepIndex").and_then(Value::as_i64).unwrap_or(0);
    (at < steps).then_some(at + 1)
}

/// The status of one that begins a step. Where it is still said to have paused before, Rollouts takes a pause at that step for one
/// that somebody has ended.
fn at_step(step: i64) -> Value {
    json!({"pauseConditions": null, "controllerPause": false, "currentStepIndex": step})
}

fn wrong(text: &str) -> ActError {
    ActError::Wrong(text.to_owned())
}

/// The patches of a Rollout's spec and of its status that make a change of it, as it was read.
///
/// # Errors
/// If there is nothing to change, as where a Rollout is to be resumed that is not paused.
fn patches(rollout: &Value, change: RolloutChange) -> Result<(Option<Value>, Option<Value>), ActError> {
    let aborted = rollout.pointer("/status/abort") == Some(&Value::Bool(true));
    let held = rollout.pointer("/spec/paused") == Some(&Value::Bool(true));
    let waits = rollout
        .pointer("/status/pauseConditions")
        .and_then(Value::as_array)
        .is_some_and(|conditions| !conditions.is_empty());
    Ok(match change {
        RolloutChange::Pause => (Some(json!({"paused": true})), None),
        RolloutChange::Restart => {
            (Some(json!({"restartAt": Timestamp::now().strftime("%FT%TZ").to_string()})), None)
        }
        RolloutChange::Promote | RolloutChange::Resume if !held && !waits => {
            return Err(wrong("the Rollout is not paused: skip its step, or promote it fully"));
        }
        // Its analysis came to no end: without its pause alone it would only be run once more.
        RolloutChange::Promote if waits && is_inconclusive(rollout) => {
            let status = next_step(rollout).map_or_else(|| json!({"pauseConditions": null}), at_step);
            (held.then(|| json!({"paused": false})), Some(status))
        }
        RolloutChange::Promote | RolloutChange::Resume => {
            (held.then(|| json!({"paused": false})), waits.then(|| json!({"pauseConditions": null})))
        }
        RolloutChange::PromoteFull => {
            if text(rollout, "/status/currentPodHash") == text(rollout, "/status/stableRS") {
                return Err(wrong("the Rollout has nothing to promote: what is there is stable"));
            }
            (None, Some(json!({"promoteFull": true})))
        }
        RolloutChange::Abort => (None, Some(json!({"abort": true}))),
        RolloutChange::Retry if !aborted => {
            return Err(wrong("the Rollout was not aborted: there is nothing to retry"));
        }
        RolloutChange::Retry => (None, Some(json!({"abort": false}))),
        RolloutChange::SkipStep => {
            let next = next_step(rollout).ok_or_else(|| wrong("the Rollout has no step left to skip"))?;
            (None, Some(at_step(next)))
        }
    })
}

impl Rollouts {
    /// The Rollout, if the application has it and it is in the cluster of this runtime.
    pub(crate) async fn find(
        &self,
        app: &ApplicationName,
        namespace: &str,
        name: &str,
    ) -> Result<Value, ActError> {
        check_name("a namespace", namespace)?;
        check_name("a Rollout", name)?;
        let uid = self.argocd.uid(app, (GROUP, "Rollout"), (namespace, name)).await?;
        let elsewhere = || {
            ActError::NotFound(format!(
                "the Rollout {namespace}/{name} of this application is not in the cluster of this runtime: run its action \
                 with runResourceAction"
            ))
        };
        let rollout = self.get("read the rollout", &path(namespace, name)).await?.ok_or_else(elsewhere)?;
        if uid.is_empty() || text(&rollout, "/metadata/uid") != uid {
            return Err(elsewhere());
        }
        Ok(rollout)
    }

    pub(crate) async fn change(
        &self,
        app: &ApplicationName,
        of: (&str, &str),
        change: RolloutChange,
    ) -> Result<(), ActError> {
        self.acted(app, of, |rollout| async move { self.changed(&rollout, of, change).await }).await
    }

    /// Runs `act` on a Rollout as it was read, and again where its controller wrote to it at that moment, unless one of
    /// [`DECISIVE_FIELDS`] has changed.
    async fn acted<T, Act>(
        &self,
        app: &ApplicationName,
        (namespace, name): (&str, &str),
        act: impl Fn(Arc<Value>) -> Act,
    ) -> Result<T, ActError>
    where
        Act: Future<Output = Result<T, ActError>>,
    {
        let mut rollout = Arc::new(self.find(app, namespace, name).await?);
        for _ in 1..TRIES {
            match act(rollout.clone()).await {
                Err(error) if error.is_conflict() => {
                    let now = Arc::new(self.find(app, namespace, name).await?);
                    if decisive_fields(&now) != decisive_fields(&rollout) {
                        return Err(error);
                    }
                    rollout = now;
                }
                done => return done,
            }
        }
        act(rollout).await
    }

    /// Changes a Rollout as it was read.
    async fn changed(
        &self,
        rollout: &Value,
        (namespace, name): (&str, &str),
        change: RolloutChange,
    ) -> Result<(), ActError> {
        let (spec, status) = patches(rollout, change)?;
        let path = path(namespace, name);
        // With the version that was read, the API server refuses the patch where something was written since.
        let mut metadata = json!({"resourceVersion": text(rollout, "/metadata/resourceVersion")});
        if let Some(spec) = spec {
            let patch = json!({"metadata": metadata, "spec": spec});
            self.merge("change the rollout", &path, &patch).await?;
            // The status is patched whatever the controller has made of the new spec already.
            metadata = json!({});
        }
        if let Some(status) = status {
            let patch = json!({"metadata": metadata, "status": status});
            self.merge("change the rollout", &format!("{path}/status"), &patch).await?;
        }
        Ok(())
    }

    /// Revisions that it can be rolled back to, the newest first.
    pub(crate) async fn revisions(&self, rollout: &Value) -> Result<Vec<Revision>, ActError> {
        let (namespace, uid) = (text(rollout, "/metadata/namespace"), text(rollout, "/metadata/uid"));
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
        let revision = |set: &Value| {
            let number = set.pointer("/metadata/annotations")?.get(REVISION)?.as_str()?.parse().ok()?;
            Some(Revision { number, replica_set: set.clone() })
        };
        let all = self.owned("list replica sets", &path, uid).await?;
        let mut found: Vec<Revision> = all.iter().filter_map(revision).collect();
        found.sort_by_key(|revision| std::cmp::Reverse(revision.number));
        Ok(found)
    }

    /// Rolls back to a revision, or to the one before; gives the number that it has from now on.
    pub(crate) async fn rollback(
        &self,
        app: &ApplicationName,
        of: (&str, &str),
        to: Option<i64>,
    ) -> Result<i64, ActError> {
        self.acted(app, of, |rollout| async move { self.rolled_back(&rollout, of, to).await }).await
    }

    /// Rolls a Rollout back as it was read.
    async fn rolled_back(
        &self,
        rollout: &Value,
        (namespace, name): (&str, &str),
        to: Option<i64>,
    ) -> Result<i64, ActError> {
        if rollout.pointer("/spec/workloadRef").is_some_and(|of| !of.is_null()) {
            return Err(wrong(
                "the Rollout takes its pods from another object (workloadRef): roll that back",
            ));
        }
        let revisions = self.revisions(rollout).await?;
        let newest = revisions.first().map_or(0, |revision| revision.number);
        let found = match to {
            Some(number) => revisions.iter().find(|revision| revision.number == number),
            None => revisions.get(1),
        };
        let found = found.ok_or_else(|| match to {
            Some(number) => ActError::NotFound(format!("the Rollout has no revision {number} any more")),
            None => ActError::NotFound("the Rollout has no revision before this one".to_owned()),
        })?;
        if found.number == newest {
            return Err(wrong("the Rollout is at that revision already"));
        }
        let mut template = found.replica_set.pointer("/spec/template").cloned().unwrap_or_default();
        if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.remove(HASH);
        }
        // The whole template: what the newer one has beside the older must go. And only of the version that was looked at.
        let patch = json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": text(rollout, "/metadata/resourceVersion")},
            {"op": "replace", "path": "/spec/template", "value": template},
        ]);
        let act = "roll the rollout back";
        let failed = |source| ActError::Cluster { act, source };
        self.cluster.json_patch(&path(namespace, name), &patch).await.map_err(failed)?;
        Ok(newest + 1)
    }

    /// Runs that analyse it, the newest first.
    pub(crate) async fn analysis_runs(&self, rollout: &Value) -> Result<Vec<Value>, ActError> {
        let (namespace, uid) = (text(rollout, "/metadata/namespace"), text(rollout, "/metadata/uid"));
        let path = format!("{API}/{namespace}/analysisruns");
        let mut found = self.owned("list analysis runs", &path, uid).await?;
        found.sort_by(|a, b| {
            text(b, "/metadata/creationTimestamp").cmp(text(a, "/metadata/creationTimestamp"))
        });
        Ok(found)
    }

    /// What of a collection belongs to an object.
    async fn owned(&self, act: &'static str, path: &str, uid: &str) -> Result<Vec<Value>, ActError> {
        let is_owned = |one: &Value| {
            let owners = one.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            owners.is_some_and(|owners| owners.iter().any(|owner| text(owner, "/uid") == uid))
        };
        let mut found = Vec::new();
        let all = Collection { act, path, query: "", is_whole: true };
        all.read(&self.cluster, |page| found.extend(page.into_iter().filter(is_owned))).await?;
        Ok(found)
    }

    async fn get(&self, act: &'static str, path: &str) -> Result<Option<Value>, ActError> {
        self.cluster.get(path).await.map_err(|source| ActError::Cluster { act, source })
    }

    async fn merge(&self, act: &'static str, path: &str, patch: &Value) -> Result<Value, ActError> {
        let failed = |source: QuestionError| ActError::Cluster { act, source };
        self.cluster.merge(path, patch, false).await.map_err(failed)
    }
}
