//! An API server: real HTTP on a free port; objects by their path, which change as patches say and keep a version.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

/// The token that it wants: never to be seen elsewhere.
pub(crate) const TOKEN: &str = "canary-of-the-cluster";
pub(crate) const WEB: &str = "/apis/argoproj.io/v1alpha1/namespaces/default/rollouts/web";
pub(crate) const BUILD: &str = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows/build";
/// The Secret of Git integrations, and that of the runtime's own token.
pub(crate) const GIT: &str = "/api/v1/namespaces/argocd/secrets/git-default-default";
pub(crate) const RUNTIME_TOKEN: &str = "/api/v1/namespaces/argocd/secrets/codefresh-token";
pub(crate) const DONE: &str = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows/done";

#[derive(Clone, Default)]
pub(crate) struct Cluster {
    pub(crate) objects: Arc<Mutex<BTreeMap<String, Value>>>,
    changes: Arc<Mutex<Vec<String>>>,
    /// What a controller writes to the Rollout after each time that it is read or changed, one after the other; `None`: nothing.
    pub(crate) moves: Arc<Mutex<VecDeque<Option<Value>>>>,
    /// Logs that were read.
    pub(crate) logs: Arc<Mutex<Vec<String>>>,
    /// Where the provider of the Git integration is.
    provider: String,
    /// Who is registered with that integration, by name and uid.
    registered: Vec<(String, String)>,
}

impl Cluster {
    /// With those who are registered with a Git integration, by name and uid.
    pub(crate) async fn start(provider: &str, registered: Vec<(String, String)>) -> (Self, String) {
        let cluster = Self { provider: provider.to_owned(), registered, ..Self::default() };
        cluster.fill();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(cluster.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (cluster, url)
    }

    /// A Git integration with which some are registered, and one whom nobody needs; none of the tokens opens.
    fn integrations(&self) -> Value {
        let encoded = |value: Value| Value::from(STANDARD.encode(value.to_string()));
        let integration = encoded(json!({
            "provider": "GITHUB", "apiUrl": format!("{}/api/v3", self.provider), "sharingPolicy": "ALL_USERS_IN_ACCOUNT",
        }));
        let mut data = json!({
            "integration.default": integration, "integration.spare": integration, "of-somebody-else": "AAAA",
        });
        for (user, uid) in &self.registered {
            let digest: String = Sha256::digest(uid).iter().map(|byte| format!("{byte:02x}")).collect();
            data[format!("token.default.{digest}")] =
                encoded(json!({"uid": uid, "user": user, "username": user, "sealed": "1.0.0"}));
        }
        json!({
            "metadata": {"name": "git-default-default", "namespace": "argocd", "resourceVersion": "1"},
            "data": data,
        })
    }

    pub(crate) fn remove(&self, path: &str) {
        self.objects.lock().unwrap().remove(path);
    }

    /// A Rollout that waits at a step, with two revisions, and two workflows: one waits for somebody, one is over.
    pub(crate) fn fill(&self) {
        let set = |name: &str, revision: &str| {
            json!({
                "metadata": {"name": name, "namespace": "default", "annotations": {"rollout.argoproj.io/revision": revision},
                             "ownerReferences": [{"uid": "uid-web"}], "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"template": {
                    "metadata": {"labels": {"app": "web", "rollouts-pod-template-hash": name}},
                    "spec": {"containers": [{"name": "web", "image": format!("web:{revision}")}]},
                }},
                "status": {"replicas": 1},
            })
        };
        let sets = "/apis/apps/v1/namespaces/default/replicasets";
        let runs = "/apis/argoproj.io/v1alpha1/namespaces/default/analysisruns";
        let workflow = |name: &str, phase: &str| {
            json!({
                "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "generateName": "build-",
                             "labels": {"team": "shop", "workflows.argoproj.io/completed": "true"}},
                "spec": {"suspend": true, "workflowTemplateRef": {"name": "build"}},
                "status": {"phase": phase, "nodes": {
                    "n1": {"type": "Suspend", "phase": "Running", "displayName": "approve"},
                    "n2": {"type": "Pod", "phase": "Running"},
                }},
            })
        };
        let objects = [
            (
                WEB.to_owned(),
                json!({
                    "metadata": {"name": "web", "namespace": "default", "uid": "uid-web", "resourceVersion": "1"},
                    "spec": {"strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}]}},
                             "template": {"spec": {"containers": [{"name": "web", "image": "web:2", "env": [{"name": "NEW"}]}]}}},
                    "status": {"phase": "Paused", "currentStepIndex": 1, "pauseConditions": [{"reason": "CanaryPauseStep"}],
                               "currentPodHash": "b", "stableRS": "a", "abort": true},
                }),
            ),
            (format!("{sets}/a"), set("a", "1")),
            (format!("{sets}/b"), set("b", "2")),
            (
                format!("{sets}/other"),
                json!({"metadata": {"name": "other", "ownerReferences": [{"uid": "another"}]}}),
            ),
            (
                format!("{runs}/web-1"),
                json!({
                    "metadata": {"name": "web-1", "namespace": "default", "ownerReferences": [{"uid": "uid-web"}]},
                    "status": {"phase": "Running"},
                }),
            ),
            (
                WEB.replace("/web", "/far"),
                json!({"metadata": {"name": "far", "namespace": "default", "uid": "uid-here"}}),
            ),
            (BUILD.to_owned(), workflow("build", "Running")),
            (DONE.to_owned(), workflow("done", "Failed")),
            (GIT.to_owned(), self.integrations()),
        ];
        *self.objects.lock().unwrap() = objects.into_iter().collect();
    }

    pub(crate) fn object(&self, path: &str) -> Value {
        self.objects.lock().unwrap().get(path).cloned().unwrap_or_default()
    }

    /// Has the controller of the Rollout write to it, if it is to.
    fn moves_on(&self, path: &str, object: &mut Value) {
        if path == WEB
            && let Some(Some(patch)) = self.moves.lock().unwrap().pop_front()
        {
            change(object, &patch);
        }
    }

    /// What it was told since the last look: methods and paths.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.changes.lock().unwrap())
    }
}

/// A page of a list, with a token that leads on, as the API server has it.
fn page(all: &[&Value], (path, query): (&str, &str)) -> Value {
    let given = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    // Of workflows alone: what else is asked for here by labels is all there is.
    let selector = given("labelSelector").filter(|_| path.ends_with("/workflows"));
    let selector = selector.unwrap_or_default().replace("%3D", "=").replace("%2C", ",");
    let has = |one: &&&Value| {
        let mut wanted = selector.split(',').filter_map(|label| label.split_once('='));
        wanted.all(|(key, value)| one["metadata"]["labels"][key] == value)
    };
    let chosen: Vec<&&Value> = all.iter().filter(has).collect();
    let from: usize = given("continue").map_or(0, |token| token.parse().unwrap());
    let to =
        given("limit").map_or(chosen.len(), |limit| chosen.len().min(from + limit.parse::<usize>().unwrap()));
    let next = if to < chosen.len() { json!(to.to_string()) } else { Value::Null };
    json!({"metadata": {"continue": next}, "items": chosen[from..to]})
}

fn status(code: u16) -> Response {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}).to_string();
    (StatusCode::from_u16(code).unwrap(), body).into_response()
}

fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else { return into.clone_from(patch) };
    if !into.is_object() {
        *into = json!({});
    }
    let into = into.as_object_mut().unwrap();
    for (name, value) in fields {
        match value {
            Value::Null => drop(into.remove(name)),
            value => merge(into.entry(name.clone()).or_insert(Value::Null), value),
        }
    }
}

async fn answer(
    State(cluster): State<Cluster>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    if headers.get("authorization").is_none_or(|value| value != format!("Bearer {TOKEN}").as_str()) {
        return status(401);
    }
    let path = uri.path().to_owned();
    let mut objects = cluster.objects.lock().unwrap();
    if method == Method::GET {
        if path.ends_with("/log") {
            cluster.logs.lock().unwrap().push(uri.to_string());
            return objects
                .get(&format!("{uri}"))
                .map_or_else(|| status(400), |log| log.as_str().unwrap().to_owned().into_response());
        }
        if let Some(object) = objects.get_mut(&path) {
            let found = object.to_string();
            cluster.moves_on(&path, object);
            return found.into_response();
        }
        let below = format!("{path}/");
        let items: Vec<&Value> =
            objects.iter().filter(|(at, _)| at.starts_with(&below)).map(|(_, it)| it).collect();
        if items.is_empty() {
            return status(404);
        }
        return page(&items, (&path, uri.query().unwrap_or_default())).to_string().into_response();
    }
    cluster.changes.lock().unwrap().push(format!("{method} {path}"));
    let body: Value = serde_json::from_str(&body).unwrap();
    if method == Method::POST {
        let mut made = body;
        let name = format!("{}x7k2p", made["metadata"]["generateName"].as_str().unwrap());
        made["metadata"]["name"] = name.as_str().into();
        objects.insert(format!("{path}/{name}"), made.clone());
        return (StatusCode::CREATED, made.to_string()).into_response();
    }
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind == "application/apply-patch+yaml" && !objects.contains_key(&path) {
        let mut made = body;
        made["metadata"]["resourceVersion"] = "1".into();
        objects.insert(path, made.clone());
        return (StatusCode::CREATED, made.to_string()).into_response();
    }
    // What stands in the status of a Rollout changes through its subresource alone, and nothing else does there.
    let of_status = path.ends_with("/status");
    let Some(object) = objects.get_mut(path.trim_end_matches("/status")) else { return status(404) };
    let mut patch = match kind {
        "application/merge-patch+json" | "application/apply-patch+yaml" => body,
        "application/json-patch+json" => {
            let mut patch = json!({});
            for one in body.as_array().unwrap() {
                assert_eq!(one["op"], "replace");
                match one["path"].as_str().unwrap() {
                    "/metadata/resourceVersion" => {
                        patch["metadata"] = json!({"resourceVersion": one["value"]});
                    }
                    "/spec/template" => patch["spec"] = json!({"template": one["value"]}),
                    other => panic!("{other}"),
                }
            }
            patch
        }
        other => panic!("{other}"),
    };
    let version = &object["metadata"]["resourceVersion"];
    if patch["metadata"]["resourceVersion"].is_string() && patch["metadata"]["resourceVersion"] != *version {
        return status(409);
    }
    if kind == "application/json-patch+json" {
        // A replacement is none that is merged.
        object["spec"]["template"] = Value::Null;
    }
    if path.contains("/rollouts/") {
        patch.as_object_mut().unwrap().remove(if of_status { "spec" } else { "status" });
    }
    change(object, &patch);
    let changed = object.to_string();
    cluster.moves_on(path.trim_end_matches("/status"), object);
    changed.into_response()
}

/// Merges a patch, and gives the object the version that is next.
fn change(object: &mut Value, patch: &Value) {
    let next = object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() + 1;
    merge(object, patch);
    object["metadata"]["resourceVersion"] = next.to_string().into();
}
