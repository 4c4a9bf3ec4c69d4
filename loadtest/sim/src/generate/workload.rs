//! Generated ReplicaSets of Rollouts, and Workflows that run: as their controllers write them, see `replica_set.json` and
//! `workflow.json`.
//!
//! One is a few numbers, and is written out when it is asked for. Of the ReplicaSets of a Rollout the first runs pods, and the
//! others are kept for whoever wants to go back: they are idle.

use anyhow::{Context as _, ensure};
use pipeline_core::Key;
use serde::Deserialize;
use serde_json::Value;

use super::Fleet;
use super::template::{Template, put};

/// Pods of a ReplicaSet that is not idle.
const PODS: u32 = 4;
/// Where ReplicaSets are,
const REPLICA_SETS: &str = "shop";
/// and Workflows.
const WORKFLOWS: &str = "ci";

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Hole {
    Application,
    Rollout,
    Owner,
    Hash,
    Name,
    Uid,
    Version,
    Changes,
    Replicas,
    Status,
}

/// What is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkloadKind {
    /// `apps/v1` `ReplicaSet` of a Rollout.
    ReplicaSet,
    /// `argoproj.io/v1alpha1` `Workflow`.
    Workflow,
}

/// The state of one: everything that is not the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// What it is.
    pub kind: WorkloadKind,
    /// Which of its kind.
    pub index: u32,
    /// Changes so far: of how many pods are ready, or of how far it has come.
    pub changes: u32,
}

/// How many there are.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadShape {
    /// ReplicaSets.
    pub replica_sets: u32,
    /// Of those, the ones of a Rollout, of which one is not idle.
    pub of_rollout: u32,
    /// Workflows.
    pub workflows: u32,
    /// Applications that the Rollouts belong to: generated ones, by their [`Fleet::name`].
    pub applications: u32,
}

/// Writes them out.
#[derive(Debug)]
pub struct Workloads {
    shape: WorkloadShape,
    replica_set: Template<Hole>,
    workflow: Template<Hole>,
}

impl Workloads {
    /// Reads what they are written by.
    pub fn new(shape: WorkloadShape) -> anyhow::Result<Self> {
        ensure!(
            shape.of_rollout > 0 && shape.applications > 0,
            "generate 1 ReplicaSet and application or more"
        );
        let template = |text: &str| {
            let object: Value = serde_json::from_str(text).context("read what a workload is written by")?;
            anyhow::Ok(Template::new(&object.to_string()))
        };
        Ok(Self {
            shape,
            replica_set: template(include_str!("replica_set.json"))?,
            workflow: template(include_str!("workflow.json"))?,
        })
    }

    /// All of them, before any change.
    pub fn all(&self) -> impl Iterator<Item = Workload> + use<> {
        let first = |kind: WorkloadKind| move |index: u32| Workload { kind, index, changes: 0 };
        let replica_sets = (0..self.shape.replica_sets).map(first(WorkloadKind::ReplicaSet));
        replica_sets.chain((0..self.shape.workflows).map(first(WorkloadKind::Workflow)))
    }

    /// Whether nothing of it runs, nor is wanted to.
    #[must_use]
    pub fn is_idle(&self, workload: Workload) -> bool {
        workload.kind == WorkloadKind::ReplicaSet && !workload.index.is_multiple_of(self.shape.of_rollout)
    }

    /// Its namespace and name.
    pub fn key(&self, workload: Workload) -> anyhow::Result<Key> {
        let Workload { kind, index, .. } = workload;
        Ok(match kind {
            WorkloadKind::ReplicaSet => {
                Key::new(REPLICA_SETS, &format!("{}-{index:010x}", self.rollout(index)))?
            }
            WorkloadKind::Workflow => Key::new(WORKFLOWS, &workflow(index))?,
        })
    }

    /// Which one has this kind and name; `None` where none is generated so.
    #[must_use]
    pub fn find(kind: &str, name: &str) -> Option<(WorkloadKind, u32)> {
        let (_, number) = name.rsplit_once('-')?;
        match kind {
            "ReplicaSet" => Some((WorkloadKind::ReplicaSet, u32::from_str_radix(number, 16).ok()?)),
            "Workflow" => Some((WorkloadKind::Workflow, number.parse().ok()?)),
            _ => None,
        }
    }

    /// Appends the JSON of one at a resourceVersion.
    pub fn render(&self, workload: &Workload, version: u64, out: &mut Vec<u8>) {
        let Workload { kind, index, changes } = *workload;
        let is_idle = self.is_idle(*workload);
        let template = match kind {
            WorkloadKind::ReplicaSet => &self.replica_set,
            WorkloadKind::Workflow => &self.workflow,
        };
        template.render(out, |hole, out| match hole {
            Hole::Application => {
                let rollout = index / self.shape.of_rollout;
                put!(out, "{}", Fleet::name(rollout % self.shape.applications));
            }
            Hole::Rollout => put!(out, "{}", self.rollout(index)),
            Hole::Owner => uid(2, index / self.shape.of_rollout, out),
            Hole::Hash => put!(out, "{index:010x}"),
            Hole::Name => put!(out, "{}", workflow(index)),
            Hole::Uid => uid(u32::from(kind == WorkloadKind::Workflow), index, out),
            Hole::Version => put!(out, "{version}"),
            Hole::Changes => put!(out, "{changes}"),
            Hole::Replicas => put!(out, "{}", if is_idle { 0 } else { PODS }),
            Hole::Status if is_idle => out.extend_from_slice(br#"{"replicas":0,"observedGeneration":3}"#),
            Hole::Status => {
                let ready = 1 + changes % PODS;
                put!(
                    out,
                    r#"{{"replicas":{PODS},"fullyLabeledReplicas":{PODS},"readyReplicas":{ready},"availableReplicas":{ready},"observedGeneration":2}}"#
                );
            }
        });
    }

    /// The Rollout of a ReplicaSet.
    fn rollout(&self, replica_set: u32) -> String {
        format!("web-{:05}", replica_set / self.shape.of_rollout)
    }
}

fn workflow(index: u32) -> String {
    format!("build-{index:05}")
}

fn uid(kind: u32, index: u32, out: &mut Vec<u8>) {
    put!(out, "0a70ad00-{kind:04x}-4000-8000-{index:012x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: WorkloadShape =
        WorkloadShape { replica_sets: 30, of_rollout: 10, workflows: 5, applications: 2 };

    fn object(workloads: &Workloads, workload: Workload) -> (Value, usize) {
        let mut out = Vec::new();
        workloads.render(&workload, 77, &mut out);
        (serde_json::from_slice(&out).unwrap(), out.len())
    }

    #[test]
    fn they_are_of_a_real_size_and_are_found_by_their_names() {
        let workloads = Workloads::new(SHAPE).unwrap();
        let mut idle = 0;
        for workload in workloads.all() {
            let (object, size) = object(&workloads, workload);
            let expected =
                if workload.kind == WorkloadKind::ReplicaSet { 2_500..2_900 } else { 3_400..3_900 };
            assert!(expected.contains(&size), "{size}: {object}");
            assert!(!object.to_string().contains("@@"), "{object}");
            let text = |pointer: &str| object.pointer(pointer).unwrap().as_str().unwrap().to_owned();
            let key = workloads.key(workload).unwrap();
            assert_eq!(
                (text("/metadata/namespace"), text("/metadata/name")),
                (key.namespace().into(), key.name().into())
            );
            assert_eq!(text("/metadata/resourceVersion"), "77");
            assert_eq!(Workloads::find(&text("/kind"), key.name()), Some((workload.kind, workload.index)));
            idle += u32::from(workloads.is_idle(workload));
            if workload.kind == WorkloadKind::ReplicaSet {
                let (wanted, there) = (&object["spec"]["replicas"], &object["status"]["replicas"]);
                let pods = if workloads.is_idle(workload) { 0 } else { PODS };
                assert_eq!((wanted, there), (&pods.into(), &pods.into()));
            }
        }
        assert_eq!(idle, 27);
        assert_eq!(Workloads::find("Rollout", "web-00001"), None);
    }

    #[test]
    fn each_change_is_one_that_a_person_would_call_so() {
        let workloads = Workloads::new(SHAPE).unwrap();
        for kind in [WorkloadKind::ReplicaSet, WorkloadKind::Workflow] {
            let at = |changes: u32| object(&workloads, Workload { kind, index: 0, changes }).0;
            let mut seen: Vec<Value> = (0..9).map(at).collect();
            seen.dedup();
            assert_eq!(seen.len(), 9);
        }
    }
}
