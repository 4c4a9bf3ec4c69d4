//! Does what the story says, as the commands of the controllers do it.

use std::time::Duration;

use anyhow::{Context as _, bail};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::story::{Ends, Named, Patch, Pods, Step, Until};
use crate::objects::{Objects, Reference};
use loadtest_sim::{PATIENCE, until};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// The label that names a pod's Workflow.
const WORKFLOW: &str = "workflows.argoproj.io/workflow";
/// What is known of a run and not of the Workflow.
const OF_A_RUN: [&str; 2] = ["workflows.argoproj.io/completed", "workflows.argoproj.io/phase"];

/// Where the story is played.
pub(super) struct Player {
    client: kube::Client,
    objects: Objects,
    namespace: &'static str,
    check: String,
}

impl Player {
    pub(super) fn new(client: kube::Client, namespace: &'static str, check: String) -> Self {
        Self { objects: Objects::new(client.clone()), client, namespace, check }
    }

    pub(super) async fn play(&self, step: &Step) -> anyhow::Result<()> {
        match step {
            Step::Apply(yaml) => {
                self.objects.apply(&yaml.replace("$CHECK", &self.check), self.namespace).await.map(drop)
            }
            Step::Patch(step) => self.patch(step).await,
            Step::Until(step) => self.until(step).await,
            Step::Pods(step) => self.pods(step).await,
            Step::Retry(name) => self.retry(name).await,
            Step::Resubmit(name) => self.resubmit(name).await,
            Step::Delete(named) => {
                for object in self.found(named).await? {
                    self.objects.delete(&reference(&object)?).await?;
                }
                Ok(())
            }
            Step::Reporter(_) => bail!("it is about the reporter"),
        }
    }

    async fn patch(&self, Patch { named, merge, subresource }: &Patch) -> anyhow::Result<()> {
        let objects = self.found(named).await?;
        if objects.is_empty() {
            bail!("there is no {} {}", named.kind, named.name);
        }
        for object in objects {
            let reference = reference(&object)?;
            self.objects.patch(&reference, merge, subresource.as_deref()).await?;
        }
        Ok(())
    }

    async fn until(&self, Until { named, shows }: &Until) -> anyhow::Result<()> {
        let is_shown = |object: &Value| {
            shows.iter().all(|(pointer, wanted)| object.pointer(pointer).unwrap_or(&Value::Null) == wanted)
        };
        let look = async || self.found(named).await;
        let found = until(PATIENCE, LOOK, look, |found| found.iter().any(is_shown)).await?;
        if !found.iter().any(is_shown) {
            let seen: Vec<&Value> = found.iter().map(|object| &object["status"]["phase"]).collect();
            bail!("waited {PATIENCE:?} for {} {} in vain; phases: {seen:?}", named.kind, named.name);
        }
        Ok(())
    }

    /// Ends so many pods once they run.
    async fn pods(&self, Pods { workflow, count, ends }: &Pods) -> anyhow::Result<()> {
        let of_it = |pod: &Value| {
            let name = pod["metadata"]["labels"][WORKFLOW].as_str().unwrap_or_default();
            is_named(name, workflow) && pod["status"]["phase"] == "Running"
        };
        let all = Named { kind: "Pod".to_owned(), name: "*".to_owned() };
        let look = async || {
            let mut pods = self.found(&all).await?;
            pods.retain(of_it);
            Ok(pods)
        };
        let pods = until(PATIENCE, LOOK, look, |pods| pods.len() >= *count).await?;
        if pods.len() < *count {
            bail!("waited {PATIENCE:?} for {count} pods of {workflow} in vain: {} run", pods.len());
        }
        for pod in pods {
            let patch = ended(&pod, *ends);
            self.objects.patch(&reference(&pod)?, &patch, Some("status")).await?;
        }
        Ok(())
    }

    /// As `argo retry` does it with a Workflow of one pod: its node goes, its pod too, and it runs again.
    async fn retry(&self, name: &str) -> anyhow::Result<()> {
        let workflow = self.one("Workflow", name).await?;
        let pods = Named { kind: "Pod".to_owned(), name: format!("{name}*") };
        for pod in self.found(&pods).await? {
            self.objects.delete(&reference(&pod)?).await?;
        }
        let now = jiff::Timestamp::now().strftime("%FT%TZ").to_string();
        let patch = json!({
            "metadata": {
                "resourceVersion": workflow["metadata"]["resourceVersion"],
                "labels": {OF_A_RUN[0]: null, OF_A_RUN[1]: "Running"},
            },
            "status": {
                "phase": "Running", "message": null, "startedAt": now, "finishedAt": null, "nodes": null,
                "conditions": [{"type": "Completed", "status": "False"}],
            },
        });
        self.objects.patch(&reference(&workflow)?, &patch, None).await.map(drop)
    }

    /// As `argo resubmit` does it, under the name and `-again`.
    async fn resubmit(&self, name: &str) -> anyhow::Result<()> {
        let workflow = self.one("Workflow", name).await?;
        let mut spec = workflow["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("shutdown");
        }
        let again = json!({
            "apiVersion": workflow["apiVersion"], "kind": "Workflow",
            "metadata": {
                "name": format!("{name}-again"),
                "labels": {"workflows.argoproj.io/resubmitted-from-workflow": name},
            },
            "spec": spec,
        });
        self.objects.apply_value(&again, self.namespace).await
    }

    async fn one(&self, kind: &str, name: &str) -> anyhow::Result<Value> {
        let named = Named { kind: kind.to_owned(), name: name.to_owned() };
        self.found(&named).await?.pop().with_context(|| format!("there is no {kind} {name}"))
    }

    async fn found(&self, Named { kind, name }: &Named) -> anyhow::Result<Vec<Value>> {
        let resource = ApiResource::from_gvk(&gvk(kind)?);
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), self.namespace, &resource);
        let list = api.list(&ListParams::default()).await.with_context(|| format!("list {kind}s"))?;
        let found = list
            .items
            .into_iter()
            .filter(|object| object.metadata.name.as_deref().is_some_and(|own| is_named(own, name)));
        let whole = found.map(|mut object| {
            // The items of a list do not repeat what the list says of all.
            object.types = Some(kube::core::TypeMeta {
                api_version: resource.api_version.clone(),
                kind: resource.kind.clone(),
            });
            serde_json::to_value(object).with_context(|| format!("read a {kind}"))
        });
        whole.collect()
    }
}

/// Whether a name is meant by one that may end with `*`.
fn is_named(own: &str, name: &str) -> bool {
    name.strip_suffix('*').map_or(own == name, |prefix| own.starts_with(prefix))
}

pub(super) fn gvk(kind: &str) -> anyhow::Result<GroupVersionKind> {
    Ok(match kind {
        "Pod" => GroupVersionKind::gvk("", "v1", kind),
        "Rollout" | "AnalysisRun" | "Workflow" | "CronWorkflow" => {
            GroupVersionKind::gvk("argoproj.io", "v1alpha1", kind)
        }
        _ => bail!("the story is about no {kind}"),
    })
}

fn reference(object: &Value) -> anyhow::Result<Reference> {
    Reference::of(object).context("an object has no name")
}

/// What a kubelet says when the containers of a pod have ended.
fn ended(pod: &Value, ends: Ends) -> Value {
    let (phase, code) = match ends {
        Ends::Succeeded => ("Succeeded", 0),
        Ends::Failed => ("Failed", 1),
    };
    let containers = pod["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let statuses: Vec<Value> = containers
        .iter()
        .map(|container| {
            let (code, reason) =
                if container["name"] == "main" && code > 0 { (code, "Error") } else { (0, "Completed") };
            json!({
                "name": container["name"], "image": "i", "imageID": "i", "ready": false, "restartCount": 0,
                "state": {"terminated": {"exitCode": code, "reason": reason}},
            })
        })
        .collect();
    json!({"status": {"phase": phase, "containerStatuses": statuses}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_fails_by_its_main_container_alone() {
        let pod = json!({"spec": {"containers": [{"name": "wait"}, {"name": "main"}]}});
        let codes = |ends| {
            let patch = ended(&pod, ends);
            let statuses = patch["status"]["containerStatuses"].as_array().unwrap().clone();
            let code = |status: &Value| status["state"]["terminated"]["exitCode"].as_i64().unwrap();
            (patch["status"]["phase"].clone(), statuses.iter().map(code).collect::<Vec<_>>())
        };
        assert_eq!(codes(Ends::Failed), (json!("Failed"), vec![0, 1]));
        assert_eq!(codes(Ends::Succeeded), (json!("Succeeded"), vec![0, 0]));
    }

    #[test]
    fn a_name_that_ends_with_a_star_is_the_beginning_of_many() {
        assert!(is_named("smoke-again", "smoke*") && is_named("smoke", "smoke"));
        assert!(!is_named("smoke-again", "smoke") && !is_named("a", "b*"));
        assert!(gvk("Secret").is_err());
    }
}
