//! What operations do: how each is made possible, and what in the cluster tells whether it was done.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::operations::Operation;
use super::world::{APPLICATION, LOOK, NAMESPACE, World};
use crate::argocd::{ArgoCd, SyncRequest};
use crate::git::{BRANCH, Commit};
use crate::objects::Reference;
use loadtest_sim::{PATIENCE, until};

const ARGO: &str = "argoproj.io/v1alpha1";
/// The application with a hook that does not end by itself.
const SLOW: &str = "slow";
/// The workflow that is there from the beginning.
const FIRST: &str = "first";
/// Seconds of a workflow that does not end by itself.
const LONG: u32 = 1_000_000;
/// Where a restart is written down.
const RESTARTED: &str = "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt";
/// Told apart by this annotation, each state of the Rollout's pods is a revision of its own.
const TURN: &str = "/spec/template/metadata/annotations/turn";
/// What is done is seen within this time.
const DONE_WITHIN: Duration = Duration::from_secs(120);

const FILES: [(&str, &str); 4] = [
    ("shop/extra.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {a: b}\n"),
    (
        "shop/web.yaml",
        r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - {name: web, image: "localhost/busybox:1", command: [sh, -c, "echo serving; exec sleep 1000000"]}
"#,
    ),
    (
        "shop/rollout.yaml",
        r#"apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary}
spec:
  replicas: 2
  selector: {matchLabels: {app: canary}}
  strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}, {setWeight: 80}, {pause: {}}]}}
  template:
    metadata: {labels: {app: canary}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - {name: canary, image: "localhost/busybox:1", command: [sleep, "1000000"]}
"#,
    ),
    (
        "slow/hook.yaml",
        r#"apiVersion: batch/v1
kind: Job
metadata:
  name: hold
  annotations: {argocd.argoproj.io/hook: PreSync}
spec:
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers:
        - {name: hold, image: "localhost/busybox:1", command: [sleep, "1000000"]}
"#,
    ),
];

/// Links beside applications.
const LINKS: &str = "- {title: Runbook, url: 'https://wiki.example.com/{{.app.metadata.name}}'}\n";

/// Says hello, lasts, and ends as it is told to.
const TEMPLATE: &str = r#"
apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: greet}
spec:
  entrypoint: greet
  serviceAccountName: workflow
  arguments: {parameters: [{name: who, value: somebody}, {name: seconds, value: "0"}, {name: code, value: "0"}]}
  podSpecPatch: '{"terminationGracePeriodSeconds": 1}'
  templates:
    - name: greet
      container:
        image: localhost/busybox:1
        command: [sh, -c]
        args:
          - "echo hello from {{workflow.parameters.who}}; sleep {{workflow.parameters.seconds}}; exit {{workflow.parameters.code}}"
"#;

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Whether the controller of a Rollout has seen what it is to be.
fn is_seen(rollout: &Value) -> bool {
    let seen = text(rollout, "/status/observedGeneration").parse().ok();
    seen.is_some() && seen == rollout.pointer("/metadata/generation").and_then(Value::as_i64)
}

fn at(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).cloned().unwrap_or_default()
}

impl World {
    /// Makes what is acted on.
    pub(super) async fn begin(&mut self) -> anyhow::Result<()> {
        let files = FILES.map(|(path, text)| (path.to_owned(), Some(text.to_owned())));
        self.commit(BTreeMap::from(files)).await?;
        self.change().await?;
        for name in [APPLICATION, SLOW] {
            let object = json!({
                "apiVersion": ARGO, "kind": "Application", "metadata": {"name": name},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": self.repository.url(), "path": name, "targetRevision": BRANCH},
                    "destination": {"server": ArgoCd::DESTINATION, "namespace": NAMESPACE},
                },
            });
            self.objects.apply_value(&object, ArgoCd::NAMESPACE).await?;
        }
        self.sync().await?;
        self.objects.apply(TEMPLATE, NAMESPACE).await?;
        self.workflow(FIRST, FIRST, 0, 0).await?;
        self.phase(FIRST, "Succeeded").await?;
        self.rollout_stable().await.map(drop)
    }

    /// Makes an operation possible, and gives what its query names as `PLACE`.
    pub(super) async fn prepare(&mut self, operation: &Operation) -> anyhow::Result<String> {
        let client = self.cluster.argocd.client();
        // What was done before has its effect a moment before it has ended.
        self.ended(APPLICATION).await?;
        match (operation.name, operation.way) {
            ("applicationDiff" | "syncApplication", way) => {
                if way == "dry run" {
                    self.sync().await?;
                }
                let revision = self.change().await?;
                client.refreshed(APPLICATION, "normal").await?;
                return Ok(if way == "manifests" { format!("local-{}", self.number) } else { revision });
            }
            ("applicationHistory", _) => {
                let revision = self.change().await?;
                self.sync().await?;
                return Ok(revision);
            }
            ("refreshApplication", _) => {
                // After manifests that were given with a sync it is compared with them, and not with Git.
                self.sync().await?;
                return self.change().await;
            }
            ("rollbackApplication", _) => {
                self.change().await?;
                self.sync().await?;
                let application = self.application(APPLICATION).await?;
                let history = application.pointer("/status/history").and_then(Value::as_array);
                let before =
                    history.and_then(|all| all.iter().rev().nth(1)).context("find a deployment before")?;
                return Ok(before["id"].to_string());
            }
            ("terminateOperation", _) => {
                self.ended(SLOW).await?;
                client.sync(SLOW, &SyncRequest::default()).await?;
                let hook = Reference::new("batch/v1", "Job", Some(NAMESPACE), "hold");
                self.until("a hook that runs", async |world: &Self| {
                    let runs =
                        text(&world.application(SLOW).await?, "/status/operationState/phase") == "Running";
                    let hook = world.objects.get(&hook).await?;
                    Ok(runs && hook.is_some_and(|hook| hook.pointer("/status/active") == Some(&json!(1))))
                })
                .await?;
            }
            ("deleteResource", _) => {
                self.sync().await?;
                self.until("a ConfigMap that Argo CD shows", async |world: &Self| {
                    let tree = world.cluster.argocd.client().resource_tree(APPLICATION).await?;
                    let nodes = tree["nodes"].as_array().cloned().unwrap_or_default();
                    Ok(nodes.iter().any(|node| node["name"] == "extra"))
                })
                .await?;
            }
            ("applicationLinks", _) => self.link().await?,
            ("analysisRuns", _) => self.analyse().await?,
            ("restartResource" | "runResourceAction", way) => {
                let none = json!({"spec": {"paused": way == "resume", "template": {"metadata": {"annotations": {
                    "kubectl.kubernetes.io/restartedAt": null,
                }}}}});
                self.objects.patch(&deployment(), &none, None).await?;
            }
            (name, _) if name.ends_with("Rollout") || name == "skipCurrentStep" => {
                self.rollout_for(name).await?;
            }
            ("createWorkflowFromTemplate", _) => return Ok(format!("turn-{}", self.next())),
            ("resubmitWorkflow", _) => return Ok(FIRST.to_owned()),
            ("retryWorkflow", _) => {
                let name = format!("failing-{}", self.next());
                self.workflow(&name, "nobody", 0, 1).await?;
                self.phase(&name, "Failed").await?;
                return Ok(name);
            }
            ("suspendWorkflow" | "resumeWorkflow" | "stopWorkflow" | "terminateWorkflow", _) => {
                let name = format!("lasting-{}", self.next());
                self.workflow(&name, "nobody", LONG, 0).await?;
                self.phase(&name, "Running").await?;
                if operation.name == "resumeWorkflow" {
                    let held = json!({"spec": {"suspend": true}});
                    self.objects.patch(&workflow(&name), &held, None).await?;
                }
                return Ok(name);
            }
            _ => {}
        }
        Ok(String::new())
    }

    /// What of the cluster an operation changes.
    pub(super) async fn state(&self, operation: &Operation, place: &str) -> anyhow::Result<Value> {
        let number = async || {
            let config = Reference::new("v1", "ConfigMap", Some(NAMESPACE), "shop");
            let found = self.objects.get(&config).await?;
            anyhow::Ok(found.map(|config| at(&config, "/data/number")).unwrap_or_default())
        };
        Ok(match (operation.name, operation.way) {
            ("syncApplication", "options") => {
                at(&self.application(APPLICATION).await?, "/status/operationState/operation")
            }
            ("syncApplication", "dry run") => {
                let application = self.application(APPLICATION).await?;
                let state = at(&application, "/status/operationState");
                let phase = if state["operation"]["sync"]["dryRun"] == true {
                    at(&state, "/phase")
                } else {
                    json!("")
                };
                json!({"phase": phase, "number": number().await?})
            }
            ("syncApplication" | "rollbackApplication", _) => number().await?,
            ("terminateOperation", _) => at(&self.application(SLOW).await?, "/status/operationState/phase"),
            ("deleteResource", _) => {
                let config = Reference::new("v1", "ConfigMap", Some(NAMESPACE), "extra");
                let found = self.objects.get(&config).await?;
                found.is_some_and(|found| found.pointer("/metadata/deletionTimestamp").is_none()).into()
            }
            ("runResourceAction", "resume") => {
                json!(at(&self.object(&deployment()).await?, "/spec/paused") == true)
            }
            ("restartResource" | "runResourceAction", _) => at(&self.object(&deployment()).await?, RESTARTED),
            (name, _) if name.ends_with("Rollout") || name == "skipCurrentStep" => {
                let rollout = self.object(&rollout()).await?;
                match (name, operation.way) {
                    ("promoteRollout", "full") => {
                        json!(text(&rollout, "/status/stableRS") == text(&rollout, "/status/currentPodHash"))
                    }
                    ("promoteRollout" | "skipCurrentStep", _) => at(&rollout, "/status/currentStepIndex"),
                    ("pauseRollout" | "resumeRollout", _) => {
                        json!(rollout.pointer("/spec/paused") == Some(&json!(true)))
                    }
                    ("abortRollout" | "retryRollout", _) => {
                        json!(rollout.pointer("/status/abort") == Some(&json!(true)))
                    }
                    ("restartRollout", _) => at(&rollout, "/spec/restartAt"),
                    _ => at(&rollout, TURN),
                }
            }
            ("createWorkflowFromTemplate" | "resubmitWorkflow", _) => {
                let one = |one: &Value| (text(one, "/metadata/name").to_owned(), at(one, "/status/phase"));
                Value::Object(self.workflows().await?.iter().map(one).collect())
            }
            ("retryWorkflow", _) => {
                let found = self.object(&workflow(place)).await?;
                json!([at(&found, "/status/phase"), at(&found, "/status/finishedAt")])
            }
            ("suspendWorkflow" | "resumeWorkflow", _) => {
                json!(self.object(&workflow(place)).await?.pointer("/spec/suspend") == Some(&json!(true)))
            }
            ("stopWorkflow" | "terminateWorkflow", _) => {
                let found = self.object(&workflow(place)).await?;
                json!([at(&found, "/spec/shutdown"), at(&found, "/status/phase")])
            }
            // What Argo CD shows of Git moves on by itself, so that it tells nothing of who was refused.
            _ => Value::Null,
        })
    }

    /// Whether an operation has its effect in time; else what there is instead.
    pub(super) async fn becomes(
        &self,
        operation: &Operation,
        place: &str,
        before: &Value,
    ) -> anyhow::Result<Result<(), Value>> {
        // By itself Argo CD looks at Git after a while: what it was asked for it has done before it answers.
        if operation.name == "refreshApplication" {
            let now = at(&self.application(APPLICATION).await?, "/status/sync/revision");
            return Ok(if now == place { Ok(()) } else { Err(now) });
        }
        let is_done = |now: &Value| self.is_done(operation, place, before, now);
        let now = until(DONE_WITHIN, LOOK, async || self.state(operation, place).await, is_done).await?;
        Ok(if is_done(&now) { Ok(()) } else { Err(now) })
    }

    fn is_done(&self, operation: &Operation, place: &str, before: &Value, now: &Value) -> bool {
        let expected = match (operation.name, operation.way) {
            ("syncApplication", "options") => {
                let sync = &now["sync"];
                return sync["prune"] == true
                    && sync["revision"] == place
                    && sync["resources"][0]["name"] == "shop"
                    && sync["syncOptions"] == json!(["CreateNamespace=true"])
                    && sync["syncStrategy"]["apply"]["force"] == true
                    && now["retry"]["limit"] == 2
                    && now["retry"]["backoff"]
                        == json!({"duration": "5s", "factor": 2, "maxDuration": "1m"})
                    && now["info"] == json!([{"name": "why", "value": "a proof"}]);
            }
            ("syncApplication", "dry run") => {
                return now["phase"] == "Succeeded" && now["number"] == before["number"];
            }
            ("syncApplication", "") => json!(self.number.to_string()),
            ("syncApplication", _) => json!(place),
            ("terminateOperation", _) => return now == "Failed" || now == "Error",
            ("runResourceAction", "resume")
            | ("deleteResource" | "resumeRollout" | "retryRollout" | "resumeWorkflow", _) => json!(false),
            ("promoteRollout", "full") | ("pauseRollout" | "abortRollout" | "suspendWorkflow", _) => {
                json!(true)
            }
            ("promoteRollout" | "skipCurrentStep", _) => return now.as_i64() > before.as_i64(),
            ("createWorkflowFromTemplate" | "resubmitWorkflow", _) => {
                let new =
                    now.as_object().into_iter().flatten().filter(|(name, _)| before.get(*name).is_none());
                let new: Vec<_> = new.map(|(_, phase)| phase).collect();
                return new == [&json!("Succeeded")];
            }
            ("retryWorkflow", _) => return now[0] == "Failed" && now[1] != before[1],
            ("stopWorkflow", _) => json!(["Stop", "Failed"]),
            ("terminateWorkflow", _) => json!(["Terminate", "Failed"]),
            // A rollback, a restart: something else than before.
            _ => return !now.is_null() && now != before,
        };
        *now == expected
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Commits another number, and gives the revision.
    async fn change(&mut self) -> anyhow::Result<String> {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shop}}\ndata: {{number: \"{}\"}}\n",
            self.next()
        );
        self.commit(BTreeMap::from([("shop/config.yaml".to_owned(), Some(text))])).await
    }

    async fn commit(&self, files: BTreeMap<String, Option<String>>) -> anyhow::Result<String> {
        self.repository.commit(&Commit::of_ada(format!("Number {}", self.number), files)).await
    }

    /// Has the application synced to what Git says now.
    async fn sync(&self) -> anyhow::Result<()> {
        let client = self.cluster.argocd.client();
        client.refreshed(APPLICATION, "normal").await?;
        self.ended(APPLICATION).await?;
        client.sync(APPLICATION, &SyncRequest::default()).await?;
        self.ended(APPLICATION).await
    }

    /// Waits until no operation of an application is under way.
    async fn ended(&self, name: &str) -> anyhow::Result<()> {
        self.until("the end of an operation", async |world: &Self| {
            let application = world.application(name).await?;
            let phase = text(&application, "/status/operationState/phase");
            Ok(application.get("operation").is_none() && !matches!(phase, "Running" | "Terminating"))
        })
        .await
    }

    /// A workflow of the template, under this name.
    async fn workflow(&self, name: &str, who: &str, seconds: u32, code: u32) -> anyhow::Result<()> {
        let parameter = |name: &str, value: String| json!({"name": name, "value": value});
        let object = json!({
            "apiVersion": ARGO, "kind": "Workflow", "metadata": {"name": name},
            "spec": {
                "workflowTemplateRef": {"name": "greet"},
                "arguments": {"parameters": [
                    parameter("who", who.to_owned()), parameter("seconds", seconds.to_string()),
                    parameter("code", code.to_string()),
                ]},
            },
        });
        self.objects.apply_value(&object, NAMESPACE).await
    }

    async fn phase(&self, name: &str, phase: &str) -> anyhow::Result<()> {
        let what = format!("a workflow that is {phase}");
        let found = self.until(&what, async |world: &Self| {
            Ok(text(&world.object(&workflow(name)).await?, "/status/phase") == phase)
        });
        found.await.with_context(|| format!("wait for the workflow {name}"))
    }

    /// Has Argo CD show a link beside applications.
    async fn link(&self) -> anyhow::Result<()> {
        let settings = Reference::new("v1", "ConfigMap", Some(ArgoCd::NAMESPACE), "argocd-cm");
        let links = json!({"data": {"application.links": LINKS}});
        self.objects.patch(&settings, &links, None).await?;
        self.until("a link that Argo CD shows", async |world: &Self| {
            let path = format!("/api/v1/applications/{APPLICATION}/links?namespace={}", ArgoCd::NAMESPACE);
            let links = world.cluster.argocd.client().get(&path).await?;
            Ok(links["items"].as_array().is_some_and(|items| !items.is_empty()))
        })
        .await
    }

    /// Has the Rollout analysed by a Job.
    async fn analyse(&self) -> anyhow::Result<()> {
        let owner = json!({
            "apiVersion": ARGO, "kind": "Rollout", "name": "canary",
            "uid": at(&self.object(&rollout()).await?, "/metadata/uid"),
        });
        let job = json!({"backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "look", "image": "localhost/busybox:1", "command": ["true"]}],
        }}});
        let run = json!({
            "apiVersion": ARGO, "kind": "AnalysisRun",
            "metadata": {"name": "look", "ownerReferences": [owner]},
            "spec": {"metrics": [{"name": "look", "provider": {"job": {"spec": job}}}]},
        });
        self.objects.apply_value(&run, NAMESPACE).await?;
        let run = Reference::new(ARGO, "AnalysisRun", Some(NAMESPACE), "look");
        self.until("the end of an analysis", async |world: &Self| {
            Ok(text(&world.object(&run).await?, "/status/phase") == "Successful")
        })
        .await
    }

    /// Brings the Rollout to where an operation has something to do.
    async fn rollout_for(&mut self, name: &str) -> anyhow::Result<()> {
        self.rollout_stable().await?;
        if matches!(name, "pauseRollout" | "resumeRollout" | "restartRollout" | "rollbackRollout") {
            let paused = json!({"spec": {"paused": name == "resumeRollout", "restartAt": null}});
            self.objects.patch(&rollout(), &paused, None).await?;
            return self
                .until("a Rollout that is seen as it is", async |world: &Self| {
                    Ok(is_seen(&world.object(&rollout()).await?))
                })
                .await;
        }
        let turn = self.next().to_string();
        let next = json!({"spec": {"template": {"metadata": {"annotations": {"turn": turn}}}}});
        self.objects.patch(&rollout(), &next, None).await?;
        self.until("a Rollout that waits at its first pause", async |world: &Self| {
            let found = world.object(&rollout()).await?;
            let waits = found.pointer("/status/pauseConditions").and_then(Value::as_array);
            let is_new = text(&found, "/status/stableRS") != text(&found, "/status/currentPodHash");
            Ok(is_new
                && waits.is_some_and(|all| !all.is_empty())
                && at(&found, "/status/currentStepIndex") == 1)
        })
        .await?;
        if name == "retryRollout" {
            let aborted = json!({"status": {"abort": true}});
            self.objects.patch(&rollout(), &aborted, Some("status")).await?;
            self.until("a Rollout that was aborted", async |world: &Self| {
                Ok(text(&world.object(&rollout()).await?, "/status/phase") == "Degraded")
            })
            .await?;
        }
        Ok(())
    }

    /// Has the Rollout promoted fully, with two revisions at the least.
    async fn rollout_stable(&mut self) -> anyhow::Result<()> {
        if text(&self.object(&rollout()).await?, TURN).is_empty() {
            self.stable().await?;
            let first = json!({"spec": {"template": {"metadata": {"annotations": {"turn": "0"}}}}});
            self.objects.patch(&rollout(), &first, None).await?;
        }
        self.stable().await
    }

    async fn stable(&self) -> anyhow::Result<()> {
        let free = json!({"spec": {"paused": false}});
        self.objects.patch(&rollout(), &free, None).await?;
        self.until("a Rollout that is stable", async |world: &Self| {
            let found = world.object(&rollout()).await?;
            let is_seen = is_seen(&found);
            let (stable, now) = (text(&found, "/status/stableRS"), text(&found, "/status/currentPodHash"));
            let is_asked = found.pointer("/status/promoteFull") == Some(&json!(true));
            if is_seen && !is_asked && !stable.is_empty() && stable != now {
                // As Rollouts' own command promotes fully.
                let full = json!({"status": {"promoteFull": true, "abort": false}});
                world.objects.patch(&rollout(), &full, Some("status")).await?;
            }
            Ok(is_seen && stable == now && text(&found, "/status/phase") == "Healthy")
        })
        .await
    }

    async fn application(&self, name: &str) -> anyhow::Result<Value> {
        self.object(&Reference::new(ARGO, "Application", Some(ArgoCd::NAMESPACE), name)).await
    }

    async fn object(&self, reference: &Reference) -> anyhow::Result<Value> {
        self.objects.get(reference).await?.with_context(|| format!("find {reference}"))
    }

    async fn until(
        &self,
        what: &str,
        is_so: impl AsyncFn(&Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let is_so = until(PATIENCE, LOOK, async || is_so(self).await, |is_so| *is_so).await?;
        ensure!(is_so, "there is not {what} in time");
        Ok(())
    }
}

fn deployment() -> Reference {
    Reference::new("apps/v1", "Deployment", Some(NAMESPACE), "web")
}

fn rollout() -> Reference {
    Reference::new(ARGO, "Rollout", Some(NAMESPACE), "canary")
}

fn workflow(name: &str) -> Reference {
    Reference::new(ARGO, "Workflow", Some(NAMESPACE), name)
}
