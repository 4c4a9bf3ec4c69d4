//! Argo Workflows: objects of the API server, or acts of the server of Argo Workflows where its address is set.
//!
//! takes: a workflow, or a template - gives: what was changed or made, lines of logs - calls: the API server;
//! `{workflows}/api/v1/workflows/...` - fails: to retry, to resume nodes that the controller has put away, and to read logs takes
//! that server: said so where there is none

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use stages_client::{Client, HttpError, Method, Opened, Reply, Token};
use stages_kube::Reader;

use crate::collection::Collection;
use crate::error::ActError;
use crate::kubernetes_name::check_name;

const API: &str = "/apis/argoproj.io/v1alpha1/namespaces";
const PEER: &str = "Argo Workflows";
/// Workflows that are read at a time.
const CONCURRENT_READS: usize = 8;
/// Labels that the controller writes as a workflow runs, and those that say who began it; a workflow that is submitted again is made
/// without them.
const LABELS_OF_A_RUN: [&str; 6] = [
    "workflows.argoproj.io/completed",
    "workflows.argoproj.io/creator",
    "workflows.argoproj.io/creator-email",
    "workflows.argoproj.io/creator-preferred-username",
    "workflows.argoproj.io/phase",
    "workflows.argoproj.io/workflow-archiving-status",
];
const NEEDS_SERVER: &str =
    "this takes the server of Argo Workflows: set appProxy.workflows.url, and appProxy.workflows.tokenFile";

/// The server of Argo Workflows.
#[derive(Debug, Clone)]
pub(crate) struct WorkflowServer {
    pub(crate) client: Client,
    pub(crate) token: Token,
}

/// Reads, makes and changes workflows. Cloning shares.
#[derive(Clone)]
pub(crate) struct Workflows {
    pub(crate) cluster: Arc<Reader>,
    pub(crate) server: Option<WorkflowServer>,
}

/// A change of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkflowChange {
    Retry,
    Terminate,
    Stop,
    Suspend,
    Resume,
}

/// A workflow that is to be made from a template.
pub(crate) struct NewFromTemplate {
    pub(crate) template: String,
    pub(crate) cluster_scope: bool,
    pub(crate) entrypoint: Option<String>,
    pub(crate) generate_name: String,
    pub(crate) parameters: Vec<(String, String)>,
}

impl WorkflowChange {
    /// Its name in the API of the server of Argo Workflows.
    const fn word(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Terminate => "terminate",
            Self::Stop => "stop",
            Self::Suspend => "suspend",
            Self::Resume => "resume",
        }
    }
}

/// The path of a workflow at the API server.
fn workflow_path(namespace: &str, name: &str) -> Result<String, ActError> {
    check_name("a namespace", namespace)?;
    check_name("a workflow", name)?;
    Ok(format!("{API}/{namespace}/workflows/{name}"))
}

fn failed(act: &'static str) -> impl Fn(stages_kube::QuestionError) -> ActError {
    move |source| ActError::Cluster { act, source }
}

/// The query of a list of objects that have all of these labels, each `KEY=VALUE`.
fn selector(labels: &[String]) -> Result<String, ActError> {
    let is_plain =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    let one = |label: &String| match label.split_once('=') {
        Some((key, value)) if !key.is_empty() && is_plain(key) && is_plain(value) => {
            Ok(format!("{key}%3D{value}"))
        }
        _ => Err(ActError::Wrong("a label is KEY=VALUE".to_owned())),
    };
    let all = labels.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(if all.is_empty() { String::new() } else { format!("&labelSelector={}", all.join("%2C")) })
}

fn is_over(workflow: &Value) -> bool {
    let phase = workflow.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Error")
}

impl Workflows {
    /// The `first` newest workflows of a namespace that have these labels.
    pub(crate) async fn list(
        &self,
        namespace: &str,
        labels: &[String],
        first: usize,
    ) -> Result<Vec<Value>, ActError> {
        check_name("a namespace", namespace)?;
        let (act, path) = ("list workflows", format!("{API}/{namespace}/workflows"));
        let query = selector(labels)?;
        // The API server lists objects by their names alone, so that all of them are looked through.
        let mut newest: Vec<(String, String)> = Vec::new();
        let all = Collection { act, path: &path, query: &query, is_whole: false };
        let text = |one: &Value, pointer| one.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let take = |page: Vec<Value>| {
            let one = |one: &Value| {
                Some((
                    text(one, "/metadata/creationTimestamp").unwrap_or_default(),
                    text(one, "/metadata/name")?,
                ))
            };
            newest.extend(page.iter().filter_map(one));
            newest.sort_unstable_by(|a, b| b.cmp(a));
            newest.truncate(first);
        };
        all.read(&self.cluster, take).await?;
        let read = |(_, name): (String, String)| async move {
            self.cluster.get(&workflow_path(namespace, &name)?).await.map_err(failed(act))
        };
        let found: Vec<Option<Value>> =
            futures::stream::iter(newest).map(read).buffered(CONCURRENT_READS).try_collect().await?;
        // A workflow may be deleted meanwhile.
        Ok(found.into_iter().flatten().collect())
    }

    pub(crate) async fn get(&self, namespace: &str, name: &str) -> Result<Value, ActError> {
        let path = workflow_path(namespace, name)?;
        let found = self.cluster.get(&path).await.map_err(failed("read the workflow"))?;
        found.ok_or_else(|| ActError::NotFound(format!("there is no workflow {namespace}/{name}")))
    }

    pub(crate) async fn change(
        &self,
        namespace: &str,
        name: &str,
        change: WorkflowChange,
    ) -> Result<(), ActError> {
        let path = workflow_path(namespace, name)?;
        if let Some(server) = &self.server {
            let body = json!({"namespace": namespace, "name": name});
            let path = ["api", "v1", "workflows", namespace, name, change.word()];
            return server.ask(Method::PUT, &path, &body).await.map(drop);
        }
        let workflow = self.get(namespace, name).await?;
        let over = is_over(&workflow);
        if over && change != WorkflowChange::Retry {
            return Err(ActError::Wrong("the workflow is over".to_owned()));
        }
        let mut patch = match change {
            WorkflowChange::Retry => return Err(ActError::Wrong(NEEDS_SERVER.to_owned())),
            WorkflowChange::Terminate => json!({"spec": {"shutdown": "Terminate"}}),
            WorkflowChange::Stop => json!({"spec": {"shutdown": "Stop"}}),
            WorkflowChange::Suspend => json!({"spec": {"suspend": true}}),
            WorkflowChange::Resume => resumed(&workflow)?,
        };
        let version = workflow.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
        if let Value::Object(fields) = &mut patch {
            fields.insert("metadata".to_owned(), json!({"resourceVersion": version}));
        }
        let changed = self.cluster.merge(&path, &patch, false).await;
        changed.map(drop).map_err(failed("change the workflow"))
    }

    /// Makes a workflow from a template; gives its name.
    pub(crate) async fn create(&self, namespace: &str, new: NewFromTemplate) -> Result<String, ActError> {
        check_name("a namespace", namespace)?;
        check_name("a template", &new.template)?;
        if let Some(server) = &self.server {
            let kind = if new.cluster_scope { "ClusterWorkflowTemplate" } else { "WorkflowTemplate" };
            let parameters: Vec<String> =
                new.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let body = json!({
                "namespace": namespace, "resourceKind": kind, "resourceName": new.template,
                "submitOptions": {
                    "generateName": new.generate_name, "entryPoint": new.entrypoint, "parameters": parameters,
                },
            });
            let path = ["api", "v1", "workflows", namespace, "submit"];
            return name_of(&server.ask(Method::POST, &path, &body).await?);
        }
        let parameters: Vec<Value> =
            new.parameters.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let mut spec = json!({
            "workflowTemplateRef": {"name": new.template, "clusterScope": new.cluster_scope},
            "arguments": {"parameters": parameters},
        });
        if let (Value::Object(spec), Some(entrypoint)) = (&mut spec, new.entrypoint) {
            spec.insert("entrypoint".to_owned(), entrypoint.into());
        }
        let kind = if new.cluster_scope { "cluster-workflow-template" } else { "workflow-template" };
        let label = format!("workflows.argoproj.io/{kind}");
        let labels: Map<String, Value> = [(label, new.template.into())].into_iter().collect();
        self.make(namespace, json!({"generateName": new.generate_name, "labels": labels}), spec).await
    }

    /// Makes the same workflow once more; gives its name.
    pub(crate) async fn resubmit(&self, namespace: &str, name: &str) -> Result<String, ActError> {
        workflow_path(namespace, name)?;
        if let Some(server) = &self.server {
            let body = json!({"namespace": namespace, "name": name});
            let path = ["api", "v1", "workflows", namespace, name, "resubmit"];
            return name_of(&server.ask(Method::PUT, &path, &body).await?);
        }
        let workflow = self.get(namespace, name).await?;
        if !is_over(&workflow) {
            return Err(ActError::Wrong("the workflow is not over yet: stop it first".to_owned()));
        }
        let mut spec = workflow.get("spec").cloned().unwrap_or_default();
        if let Value::Object(spec) = &mut spec {
            spec.remove("shutdown");
            spec.remove("suspend");
        }
        let metadata = workflow.get("metadata");
        let kept =
            |of: &str| metadata.and_then(|metadata| metadata.get(of)).cloned().unwrap_or_else(|| json!({}));
        let mut labels = kept("labels");
        if let Value::Object(labels) = &mut labels {
            labels.retain(|label, _| !LABELS_OF_A_RUN.contains(&label.as_str()));
            labels.insert("workflows.argoproj.io/resubmitted-from-workflow".to_owned(), name.into());
        }
        let prefix = match metadata.and_then(|metadata| metadata.get("generateName")).and_then(Value::as_str)
        {
            Some(prefix) if !prefix.is_empty() => prefix.to_owned(),
            _ => format!("{name}-"),
        };
        // Templates may refer to its annotations.
        let metadata = json!({"generateName": prefix, "labels": labels, "annotations": kept("annotations")});
        self.make(namespace, metadata, spec).await
    }

    /// Lines of the logs of a workflow's pods, for at most so long.
    pub(crate) async fn logs(
        &self,
        namespace: &str,
        name: &str,
        query: &[(&'static str, String)],
        within: Duration,
    ) -> Result<Opened, ActError> {
        workflow_path(namespace, name)?;
        let server = self.server.as_ref().ok_or_else(|| ActError::Wrong(NEEDS_SERVER.to_owned()))?;
        server.logs(&["api", "v1", "workflows", namespace, name, "log"], query, within).await
    }

    async fn make(&self, namespace: &str, metadata: Value, spec: Value) -> Result<String, ActError> {
        let workflow = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec,
        });
        let path = format!("{API}/{namespace}/workflows");
        let made = self.cluster.create(&path, &workflow).await.map_err(failed("make the workflow"))?;
        name_of(&made)
    }
}

/// The patch that resumes a workflow, and its nodes that are suspended.
fn resumed(workflow: &Value) -> Result<Value, ActError> {
    let status = workflow.get("status");
    let put_away = ["compressedNodes", "offloadNodeStatusVersion"].iter().any(|key| {
        status.and_then(|status| status.get(key)).and_then(Value::as_str).is_some_and(|it| !it.is_empty())
    });
    if put_away {
        return Err(ActError::Wrong(NEEDS_SERVER.to_owned()));
    }
    let nodes = status.and_then(|status| status.get("nodes")).and_then(Value::as_object);
    let waits = |node: &&Value| {
        node.get("type") == Some(&json!("Suspend")) && node.get("phase") == Some(&json!("Running"))
    };
    let now = Timestamp::now().strftime("%FT%TZ").to_string();
    let mut ended = Map::new();
    for (id, node) in nodes.into_iter().flatten().filter(|(_, node)| waits(node)) {
        let mut end = json!({"phase": "Succeeded", "finishedAt": now});
        if let Some(parameters) = given(node)? {
            end["outputs"] = json!({"parameters": parameters});
        }
        ended.insert(id.clone(), end);
    }
    let held = workflow.pointer("/spec/suspend") == Some(&Value::Bool(true));
    if !held && ended.is_empty() {
        return Err(ActError::Wrong("the workflow is not suspended".to_owned()));
    }
    let mut patch = json!({"spec": {"suspend": null}});
    if let (Value::Object(patch), false) = (&mut patch, ended.is_empty()) {
        patch.insert("status".to_owned(), json!({"nodes": ended}));
    }
    Ok(patch)
}

/// What a node that waits for somebody gives once it goes on: what somebody was to say is as its template has it where nobody does.
/// Steps that follow would fail for want of it.
fn given(node: &Value) -> Result<Option<Vec<Value>>, ActError> {
    let Some(parameters) = node.pointer("/outputs/parameters").and_then(Value::as_array) else {
        return Ok(None);
    };
    let is_there = |value: &&Value| !value.is_null();
    let one = |parameter: &Value| {
        let is_supplied = |from: &&Value| from.get("supplied").is_some_and(|supplied| !supplied.is_null());
        let Some(from) = parameter.get("valueFrom").filter(is_supplied) else {
            return Ok(parameter.clone());
        };
        let Some(value) = from.get("default").filter(is_there) else {
            let name = parameter.get("name").and_then(Value::as_str).unwrap_or_default();
            return Err(ActError::Wrong(format!(
                "the workflow waits for the value of {name}, which has no default: say it with `argo node set`"
            )));
        };
        let mut said = parameter.clone();
        if let Value::Object(fields) = &mut said {
            fields.remove("valueFrom");
            fields.insert("value".to_owned(), value.clone());
        }
        Ok(said)
    };
    parameters.iter().map(one).collect::<Result<Vec<_>, _>>().map(Some)
}

fn name_of(made: &Value) -> Result<String, ActError> {
    let name = made.pointer("/metadata/name").and_then(Value::as_str).filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or(ActError::Unreadable(PEER))
}

impl WorkflowServer {
    async fn ask(&self, method: Method, path: &[&str], body: &Value) -> Result<Value, ActError> {
        let act = "change the workflow";
        let away = |source: HttpError| ActError::Away { peer: PEER, act, source };
        let request = self.client.request(act, method, path).map_err(away)?.json(body);
        let request = self.client.authorize(act, request, &self.token, "Bearer ").await.map_err(away)?;
        let reply = self.client.send(act, request).await.map_err(away)?;
        if !(200..300).contains(&reply.status()) {
            return Err(refused(act, &reply));
        }
        serde_json::from_slice(reply.body()).map_err(|_| ActError::Unreadable(PEER))
    }

    async fn logs(
        &self,
        path: &[&str],
        query: &[(&'static str, String)],
        within: Duration,
    ) -> Result<Opened, ActError> {
        let act = "read logs";
        let away = |source: HttpError| ActError::Away { peer: PEER, act, source };
        let request = self.client.request(act, Method::GET, path).map_err(away)?.query(query);
        let request = request.header("accept", "application/json").timeout(within);
        let request = self.client.authorize(act, request, &self.token, "Bearer ").await.map_err(away)?;
        match self.client.open(act, request).await.map_err(away)? {
            Ok(opened) => Ok(opened),
            Err(reply) => Err(refused(act, &reply)),
        }
    }
}

/// The error of a refusal. The server's own message is not told, since it may quote parameters of a workflow.
fn refused(act: &'static str, reply: &Reply) -> ActError {
    let status = reply.status();
    let said = match status {
        401 | 403 => "see the token under appProxy.workflows and what its ServiceAccount may",
        404 => "there is no such workflow or template",
        _ => "its log says why",
    };
    ActError::Peer { peer: PEER, act, status, said: said.to_owned() }
}
