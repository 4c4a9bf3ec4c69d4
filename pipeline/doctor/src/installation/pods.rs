//! Whether what makes pods has those that it wants, and why one is not ready.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::Installation;
use crate::access::hop::{list, shown, text};
use crate::rules::Cluster;

/// A container that was started again so often is worth a word.
const RESTARTS: u64 = 5;

/// The pods and claims of a namespace.
pub(super) struct Pods<'a> {
    cluster: &'a dyn Cluster,
    namespace: &'a str,
    pods: Json,
    claims: Json,
    /// What happened, by whom it is about: read when somebody does not say by themselves what they lack.
    events: OnceCell<BTreeMap<String, (String, String)>>,
}

/// Why a pod is not ready, and what to do about it.
struct Trouble {
    found: String,
    todo: String,
    /// Whether it stays so until somebody does something.
    is_stuck: bool,
}

impl<'a> Pods<'a> {
    pub(super) fn read(cluster: &'a dyn Cluster, namespace: &'a str) -> Result<Self, String> {
        let all = |plural: &str| cluster.get(&format!("/api/v1/namespaces/{namespace}/{plural}"));
        let (pods, claims) = (all("pods")?, all("persistentvolumeclaims")?);
        let (pods, claims) = (pods.unwrap_or_default(), claims.unwrap_or_default());
        Ok(Self { cluster, namespace, pods, claims, events: OnceCell::new() })
    }

    /// Says how a workload is.
    pub(super) fn judge(&self, kind: &str, workload: &Json, found: &mut Installation) {
        let name = text(workload, "/metadata/name");
        let part = format!("{kind} {}", shown(name));
        let number = |pointer: &str| workload.pointer(pointer).and_then(Json::as_u64);
        let status = |key: &str| number(&format!("/status/{key}")).unwrap_or(0);
        let wanted = number("/spec/replicas").unwrap_or(1);
        let (ready, updated, away) =
            (status("readyReplicas"), status("updatedReplicas"), status("unavailableReplicas"));
        if wanted == 0 {
            let todo = "set its replicaCount in the chart's values, where it is to run";
            return found.doubts(part, "is scaled to none", todo);
        }
        let count = format!("{ready} of {wanted} ready");
        let describe = format!("see kubectl describe {} {name} -n {}", kind.to_lowercase(), self.namespace);
        if status("observedGeneration") < number("/metadata/generation").unwrap_or(0) {
            let why = "Kubernetes has not taken up its newest change";
            return found.fails(part, format!("{count}, but {why}"), describe);
        }
        let own: Vec<&Json> =
            list(&self.pods, "/items").iter().filter(|pod| is_of(pod, workload) && !is_over(pod)).collect();
        let lacks = wanted > own.len() as u64 || updated < wanted;
        if let Some(why) = self.refused(kind, workload).filter(|_| lacks) {
            let todo = "see what refuses them: the namespace's Pod Security or quota, or an account that is not there";
            return found.fails(part, format!("{count}: its pods are not made: {why}"), todo);
        }
        let newest = own.iter().max_by_key(|pod| text(pod, "/metadata/creationTimestamp"));
        let current = newest.map(|pod| template(pod));
        // What an old pod lacks is over when a new one takes its place.
        let troubles = own.iter().filter_map(|pod| {
            let trouble = self.trouble(pod)?;
            Some(Trouble { is_stuck: trouble.is_stuck && Some(template(pod)) == current, ..trouble })
        });
        // The first that is stuck, or else the first.
        let trouble = troubles.min_by_key(|trouble| !trouble.is_stuck);
        let mut conditions = list(workload, "/status/conditions").iter();
        let stopped = conditions.find(|one| one["type"] == "Progressing" && one["status"] == "False");
        let is_updating = updated < wanted || away > 0;
        match (trouble, stopped) {
            (Some(Trouble { found: why, todo, .. }), _) if ready < wanted => {
                found.fails(part, format!("{count}: {why}"), todo);
            }
            (Some(Trouble { found: why, todo, is_stuck }), stopped) => {
                let why = format!("{count}, but {why}");
                match (is_stuck || stopped.is_some(), is_updating) {
                    (true, _) => found.fails(part, why, todo),
                    (false, true) => found.updates(part, why, todo),
                    (false, false) => found.doubts(part, why, todo),
                }
            }
            (None, _) if ready < wanted => {
                let why = if own.is_empty() { "there are no pods" } else { "its pods do not say why" };
                found.fails(part, format!("{count}: {why}"), describe);
            }
            (None, Some(stopped)) => {
                let why = shown(text(stopped, "/message"));
                found.fails(part, format!("{count}, but its update has stopped: {why}"), describe);
            }
            (None, None) if is_updating => {
                let why = match updated < wanted {
                    true => format!("{updated} of them as it is to be now"),
                    false => format!("{away} not available yet"),
                };
                found.updates(part, format!("{count}, {why}"), "wait until it is updated");
            }
            (None, None) => match own.iter().find_map(|pod| self.restarted(pod)) {
                Some(Trouble { found: why, todo, .. }) => {
                    found.doubts(part, format!("{count}, but {why}"), todo);
                }
                None => found.works(part, count),
            },
        }
    }

    /// Why nobody makes the pods of a workload: a Deployment says it itself, of a StatefulSet an event does.
    fn refused(&self, kind: &str, workload: &Json) -> Option<String> {
        let fails = |one: &&Json| one["type"] == "ReplicaFailure" && one["status"] == "True";
        let said = list(workload, "/status/conditions").iter().find(fails);
        let told = || self.happened(text(workload, "/metadata/name")).filter(|_| kind == "StatefulSet");
        said.map(|one| shown(text(one, "/message"))).or_else(told)
    }

    fn trouble(&self, pod: &Json) -> Option<Trouble> {
        let name = text(pod, "/metadata/name");
        let condition = |kind: &str| list(pod, "/status/conditions").iter().find(|one| one["type"] == kind);
        // One that goes is replaced by another.
        let is_ready = condition("Ready").is_some_and(|one| one["status"] == "True");
        if is_ready || pod.pointer("/metadata/deletionTimestamp").is_some() {
            return None;
        }
        if let Some(claim) = self.claim(pod) {
            return Some(claim);
        }
        if let Some(why) = condition("PodScheduled").filter(|one| one["status"] == "False") {
            return Some(Trouble {
                found: format!("no node takes the pod {name}: {}", shown(text(why, "/message"))),
                todo: "see its requests, nodeSelector and tolerations in the chart's values, and kubectl get nodes"
                    .to_owned(),
                is_stuck: false,
            });
        }
        let all =
            list(pod, "/status/initContainerStatuses").iter().chain(list(pod, "/status/containerStatuses"));
        for container in all.filter(|one| one["ready"] != true) {
            if let Some(trouble) = self.waiting(name, container) {
                return Some(trouble);
            }
        }
        let (found, todo) = match self.happened(name) {
            Some(message) if message.contains("not found") => (
                message,
                "make what is missing: helm get notes says which Secrets are yours to give, and how"
                    .to_owned(),
            ),
            Some(message) => {
                (message, format!("see kubectl logs {name} -n {}: it says what it lacks", self.namespace))
            }
            None => {
                let found = format!("the pod {name} is not ready yet");
                (found, format!("wait, or see kubectl describe pod {name} -n {}", self.namespace))
            }
        };
        Some(Trouble { found, todo, is_stuck: false })
    }

    /// Why a container does not run, where that is said.
    fn waiting(&self, pod: &str, container: &Json) -> Option<Trouble> {
        let name = text(container, "/name");
        let (reason, message) =
            (text(container, "/state/waiting/reason"), shown(text(container, "/state/waiting/message")));
        let (found, todo) = match reason {
            "ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull" => (
                format!("the image {} is not pulled: {message}", shown(text(container, "/image"))),
                "see image.registry, image.tag and global.imagePullSecrets in the chart's values".to_owned(),
            ),
            "CreateContainerConfigError" | "CreateContainerError" => (
                format!("the container {name} is not made: {message}"),
                "make what is missing: helm get notes says which Secrets are yours to give, and how"
                    .to_owned(),
            ),
            "CrashLoopBackOff" => self.ended(pod, container),
            _ => return None,
        };
        Some(Trouble { found, todo, is_stuck: true })
    }

    /// How a container ended the last time.
    fn ended(&self, pod: &str, container: &Json) -> (String, String) {
        let last = |key: &str| container.pointer(&format!("/lastState/terminated/{key}"));
        let reason = last("reason").and_then(Json::as_str).unwrap_or("for no reason that is known");
        let code = last("exitCode").and_then(Json::as_i64).unwrap_or_default();
        let found = format!(
            "the container {} ends again and again: {} ({code})",
            text(container, "/name"),
            shown(reason)
        );
        let todo = match reason {
            "OOMKilled" => "raise its resources.limits.memory in the chart's values".to_owned(),
            _ => format!("see kubectl logs {pod} -n {} --previous: its last line says why", self.namespace),
        };
        (found, todo)
    }

    /// A container that runs, and did not always.
    fn restarted(&self, pod: &Json) -> Option<Trouble> {
        let name = text(pod, "/metadata/name");
        let often = |one: &&Json| one["restartCount"].as_u64().is_some_and(|times| times >= RESTARTS);
        let container = list(pod, "/status/containerStatuses").iter().find(often)?;
        let (_, todo) = self.ended(name, container);
        let times = container["restartCount"].as_u64().unwrap_or_default();
        let reason = shown(text(container, "/lastState/terminated/reason"));
        let found = format!("the pod {name} was started {times} times again: {reason}");
        Some(Trouble { found, todo, is_stuck: false })
    }

    /// A claim that a pod waits for.
    fn claim(&self, pod: &Json) -> Option<Trouble> {
        let names =
            list(pod, "/spec/volumes").iter().map(|one| text(one, "/persistentVolumeClaim/claimName"));
        for name in names.filter(|name| !name.is_empty()) {
            let claim = list(&self.claims, "/items").iter().find(|one| text(one, "/metadata/name") == name);
            let phase = claim.map(|claim| text(claim, "/status/phase"));
            let found = match phase {
                Some("Bound") => continue,
                Some(phase) => format!("the claim {} is {}", shown(name), shown(phase)),
                None => format!("there is no claim {}", shown(name)),
            };
            let why = self.happened(name).map(|why| format!(": {why}")).unwrap_or_default();
            let todo = format!(
                "see kubectl describe pvc {name} -n {}, and kubectl get storageclass",
                self.namespace
            );
            return Some(Trouble { found: format!("{found}{why}"), todo, is_stuck: false });
        }
        None
    }

    /// The newest warning about an object.
    fn happened(&self, name: &str) -> Option<String> {
        let events = self.events.get_or_init(|| {
            let at = format!("/api/v1/namespaces/{}/events", self.namespace);
            // Who may not read them is told what the pod says itself.
            let all = self.cluster.get(&at).ok().flatten().unwrap_or_default();
            let mut newest: BTreeMap<String, (String, String)> = BTreeMap::new();
            for one in list(&all, "/items").iter().filter(|one| one["type"] == "Warning") {
                let times = ["/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
                let time =
                    times.iter().map(|at| text(one, at)).find(|time| !time.is_empty()).unwrap_or_default();
                let about = text(one, "/involvedObject/name").to_owned();
                if newest.get(&about).is_none_or(|(known, _)| known.as_str() <= time) {
                    newest.insert(about, (time.to_owned(), shown(text(one, "/message"))));
                }
            }
            newest
        });
        events.get(name).map(|(_, message)| message.clone())
    }
}

/// Whether a pod has all labels that a workload selects by.
fn is_of(pod: &Json, workload: &Json) -> bool {
    let wanted = workload.pointer("/spec/selector/matchLabels").and_then(Json::as_object);
    let labels = &pod["metadata"]["labels"];
    wanted.is_some_and(|wanted| {
        !wanted.is_empty() && wanted.iter().all(|(name, value)| labels.get(name) == Some(value))
    })
}

/// Whether a pod has ended for good: what is wanted is made anew.
fn is_over(pod: &Json) -> bool {
    ["Failed", "Succeeded"].contains(&text(pod, "/status/phase"))
}

/// Which template of its workload a pod is made from.
fn template(pod: &Json) -> &str {
    let label = |name: &str| text(pod, &format!("/metadata/labels/{name}"));
    // A Deployment marks its pods by the one, a StatefulSet by the other.
    let hash = label("pod-template-hash");
    if hash.is_empty() { label("controller-revision-hash") } else { hash }
}
