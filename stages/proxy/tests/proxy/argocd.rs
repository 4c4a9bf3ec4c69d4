//! An Argo CD: real HTTP on a free port, of one application, which keeps every change that it is told.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// The token that it wants: never to be seen elsewhere.
pub(crate) const TOKEN: &str = "canary-of-argo-cd";

/// What it was told: method, path with query, body.
pub(crate) type Change = (String, String, Value);

#[derive(Clone, Default)]
pub(crate) struct ArgoCd {
    changes: Arc<Mutex<Vec<Change>>>,
    /// Answers every call so from now on.
    pub(crate) broken: Arc<Mutex<Option<(u16, String)>>>,
    /// So often the end of an operation meets other writers of the application.
    pub(crate) conflicts: Arc<AtomicUsize>,
    /// What the next looks see of the application's operation: its phase, and when it began.
    pub(crate) operations: Arc<Mutex<VecDeque<(&'static str, &'static str)>>>,
    /// Logs do not end.
    holds: Arc<AtomicBool>,
    /// A change is taken, and not answered before it is told to go on.
    pub(crate) silent: Arc<AtomicBool>,
    pub(crate) go_on: Arc<Notify>,
    /// What it was asked of sources.
    pub(crate) details: Arc<Mutex<Vec<Value>>>,
}

impl ArgoCd {
    pub(crate) async fn start() -> (Self, String) {
        let argocd = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(argocd.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (argocd, url)
    }

    /// Logs do not end from now on.
    pub(crate) fn holds(&self) {
        self.holds.store(true, Ordering::SeqCst);
    }

    /// What it was told since the last look.
    pub(crate) fn take(&self) -> Vec<Change> {
        std::mem::take(&mut self.changes.lock().unwrap())
    }
}

fn refused(status: u16, said: &str) -> Response {
    let body = json!({"error": said, "code": 7, "message": said}).to_string();
    (StatusCode::from_u16(status).unwrap(), body).into_response()
}

/// What it says of the only application that it has.
fn read((path, query): (&str, &str)) -> Option<Value> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": {"a": "c2VjcmV0LWNhbmFyeQ=="}});
    let map = |replicas: i32| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": replicas}}).to_string()
    };
    Some(match path {
        "/api/v1/session/userinfo" => json!({"loggedIn": true, "username": "admin"}),
        "/api/v1/applications/shop" => json!({
            "metadata": {"name": "shop", "namespace": "argocd"},
            "status": {"history": [
                {"id": 1, "revision": "aaa", "deployedAt": "2026-01-01T00:00:00Z", "initiatedBy": {"username": "ada"}},
                {"id": 2, "revision": "bbb", "deployedAt": "2026-01-02T00:00:00Z", "initiatedBy": {"automated": true}},
            ]},
        }),
        // One of two sources.
        "/api/v1/applications/pair" => json!({
            "metadata": {"name": "pair", "namespace": "argocd"},
            "spec": {"sources": [{"repoURL": "https://git.example/pair", "path": "a"}, {"repoURL": "https://charts.example", "chart": "b"}]},
        }),
        // One whose manifests it writes to a branch, which had two sources once.
        "/api/v1/applications/wet" => json!({
            "metadata": {"name": "wet", "namespace": "argocd"},
            "spec": {
                "sources": [{"repoURL": "https://git.example/old", "path": "a"}, {"repoURL": "https://git.example/old", "path": "b"}],
                "sourceHydrator": {
                    "drySource": {"repoURL": "https://git.example/dry", "path": "charts/wet", "targetRevision": "main"},
                    "syncSource": {"targetBranch": "environments/dev", "path": "wet"},
                },
            },
        }),
        "/api/v1/applications/wet/managed-resources" => json!({"items": null}),
        "/api/v1/applications/wet/manifests" if query == "appNamespace=argocd&revision=v1" => {
            json!({"manifests": [json!({"kind": "Deployment", "metadata": {"name": "wet"}}).to_string()]})
        }
        "/api/v1/applications/pair/managed-resources" => json!({"items": null}),
        "/api/v1/applications/pair/manifests" => match query {
            "appNamespace=argocd&sourcePositions=1&revisions=v1&sourcePositions=2&revisions=1.2.3" => {
                json!({"manifests": [
                    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "pair"}}).to_string(),
                ]})
            }
            _ => return None,
        },
        "/api/v1/applications/shop/resource-tree" => json!({
            "nodes": [
                {"group": "argoproj.io", "version": "v1alpha1", "kind": "Rollout", "namespace": "default", "name": "web", "uid": "uid-web",
                 "health": {"status": "Suspended"}, "info": [{"name": "Revision", "value": "Rev:2"}], "images": ["web:2"]},
                {"group": "argoproj.io", "version": "v1alpha1", "kind": "Rollout", "namespace": "default", "name": "far", "uid": "uid-elsewhere"},
                {"version": "v1", "kind": "Pod", "namespace": "default", "name": "web-1", "uid": "p", "parentRefs": [{"kind": "ReplicaSet", "name": "web"}]},
            ],
            "orphanedNodes": null,
        }),
        "/api/v1/applications/shop/managed-resources" => json!({"items": [
            {"kind": "Secret", "name": "keys", "namespace": "default", "targetState": secret.to_string(), "liveState": secret.to_string(),
             "normalizedLiveState": secret.to_string(), "predictedLiveState": secret.to_string()},
            {"group": "apps", "kind": "Deployment", "name": "web", "namespace": "default", "targetState": map(2), "liveState": map(1),
             "normalizedLiveState": map(1), "predictedLiveState": map(2), "modified": true},
            {"kind": "ConfigMap", "name": "old", "namespace": "default", "targetState": "null", "liveState": map(0)},
        ]}),
        "/api/v1/applications/shop/manifests" => match query {
            "appNamespace=argocd&revision=v1" => json!({"revision": "aaa", "manifests": [
                secret.to_string(),
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}}).to_string(),
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "more"}, "data": {"a": "c2VjcmV0LWNhbmFyeQ=="}}).to_string(),
                json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "hook", "annotations": {"argocd.argoproj.io/hook": "PreSync"}}}).to_string(),
            ]}),
            _ => return None,
        },
        "/api/v1/applications/shop/events" => json!({"metadata": {}, "items": [
            {"type": "Normal", "reason": "OperationStarted", "message": "ada began", "count": 1,
             "lastTimestamp": "2026-01-02T00:00:00Z", "involvedObject": {"kind": "Application", "name": "shop"}},
            {"type": "Warning", "reason": "OperationFailed", "message": "it failed", "eventTime": "2026-01-02T00:00:00.250000Z"},
        ]}),
        "/api/v1/applications/shop/links" => json!({"items": [
            {"title": "Runbook", "url": "https://ada:canary-of-a-link@wiki.example/shop", "description": "What to do", "iconClass": "fa-book"},
            {"title": "Trap", "url": "javascript:alert(1)"},
        ]}),
        "/api/v1/applications/shop/resource/links" => {
            json!({"items": [{"title": "Graphs", "url": "https://graphs.example/web"}]})
        }
        "/api/v1/projects/default" => json!({
            "metadata": {"name": "default"},
            "spec": {"destinations": [{"server": "*", "namespace": "*"}, {"server": "*", "namespace": "!kube-system"}]},
        }),
        "/api/v1/clusters/https:%2F%2Fkubernetes.default.svc" | "/api/v1/clusters/in-cluster" => {
            json!({"name": "in-cluster", "server": "https://kubernetes.default.svc"})
        }
        "/api/v1/clusters" => clusters(),
        "/api/v1/applications/shop/resource/actions" => {
            json!({"actions": [{"name": "restart"}, {"name": "scale", "disabled": true}]})
        }
        _ => return None,
    })
}

/// Clusters beside its own.
pub(crate) const CLUSTERS: usize = 120;

/// What it says of all its clusters: a name may be that of two, and of one nothing is known.
fn clusters() -> Value {
    let own = json!({
        "name": "in-cluster", "server": "https://kubernetes.default.svc", "config": {"tlsClientConfig": {"insecure": false}},
        "connectionState": {"status": "Failed", "message": "of an older version"},
        "info": {
            "connectionState": {"status": "Successful", "message": "", "attemptedAt": "2026-01-01T00:00:00Z"},
            "serverVersion": "1.31", "applicationsCount": 3, "apiVersions": ["v1", "apps/v1/Deployment"],
            "cacheInfo": {"resourcesCount": 12, "apisCount": 3, "lastCacheSyncTime": "2026-01-01T00:00:01Z"},
        },
    });
    let lost = json!({
        "name": "east", "server": "https://10.0.0.1:6443", "info": {"connectionState": {
            "status": "Failed", "message": "dial https://ada:canary-of-a-cluster@10.0.0.1:6443: refused", "attemptedAt": null,
        }},
    });
    let unknown = json!({"name": "", "server": "https://10.0.0.2:6443"});
    let twice = json!({"name": "east", "server": "https://10.0.0.3:6443"});
    let more = (4..=CLUSTERS)
        .map(|n| json!({"name": format!("c{n}"), "server": format!("https://10.0.1.{n}:6443")}));
    let items: Vec<Value> = [own, lost, unknown, twice].into_iter().chain(more).collect();
    json!({"metadata": {}, "items": items})
}

/// What it says of a source in the only repository that it knows.
fn details(path: &str, asked: &Value) -> Option<Response> {
    let repository = path.strip_prefix("/api/v1/repositories/")?.strip_suffix("/appdetails")?;
    if repository != "https:%2F%2Fgit.example%2Fshop"
        || asked["source"]["repoURL"] != "https://git.example/shop"
    {
        return Some(refused(403, "permission denied"));
    }
    let details = match asked["source"]["path"].as_str().unwrap_or_default() {
        "chart" => json!({"type": "Helm", "helm": {
            "name": "shop", "valueFiles": ["values.yaml"], "values": "replicas: 1\npassword: canary-of-a-chart\n",
            "parameters": [{"name": "replicas", "value": "1"}, {"name": "auth.password", "value": "canary-of-a-chart"}],
            "fileParameters": null,
        }}),
        "base" => json!({"type": "Kustomize", "kustomize": {"images": ["web:1"]}}),
        "shop" => json!({"type": "Directory", "directory": {}}),
        other => return Some(refused(500, &format!("{other}: app path does not exist"))),
    };
    Some(details.to_string().into_response())
}

async fn answer(
    State(argocd): State<ArgoCd>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    if headers.get("authorization").is_none_or(|value| value != format!("Bearer {TOKEN}").as_str()) {
        return refused(401, "no session information");
    }
    if method != Method::GET && headers.get("content-type").is_none_or(|value| value != "application/json") {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "Invalid content type").into_response();
    }
    let broken = argocd.broken.lock().unwrap().clone();
    if let Some((status, said)) = broken {
        return refused(status, &said);
    }
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let met = |left: usize| left.checked_sub(1);
    if method == Method::DELETE
        && path.ends_with("/operation")
        && argocd.conflicts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, met).is_ok()
    {
        return refused(500, "Failed to terminate app. Too many conflicts");
    }
    if path == "/api/v1/applications/shop/operation"
        && argocd.operations.lock().unwrap().front().is_some_and(|(phase, _)| *phase == "Failed")
    {
        return refused(400, "Unable to terminate operation. No operation is in progress");
    }
    if method == Method::GET
        && path == "/api/v1/applications/shop"
        && let Some((phase, started)) = argocd.operations.lock().unwrap().pop_front()
    {
        let state = json!({"operationState": {"phase": phase, "startedAt": started}});
        return json!({"metadata": {"name": "shop", "namespace": "argocd"}, "status": state})
            .to_string()
            .into_response();
    }
    let about = path.starts_with("/api/v1/applications/");
    // Applications of one name stand in several namespaces.
    if about && method != Method::POST && !query.contains("appNamespace=argocd") {
        return refused(403, "permission denied");
    }
    if path.ends_with("/logs") {
        let lines = [
            r#"{"result":{"content":"first","timeStampStr":"2026-01-01T00:00:00Z","podName":"web-1"}}"#,
            "\n",
            r#"{"result":{"content":"second","podName":"web-1"}}"#,
            "\n",
            r#"{"result":{"content":"","last":true}}"#,
            "\n",
        ];
        // In pieces that end within a line.
        let text = lines.concat();
        let pieces: Vec<Result<Vec<u8>, std::io::Error>> =
            text.as_bytes().chunks(37).map(|piece| Ok(piece.to_vec())).collect();
        let told = (method.to_string(), uri.to_string(), Value::Null);
        argocd.changes.lock().unwrap().push(told);
        if argocd.holds.load(Ordering::SeqCst) {
            let first = futures::stream::iter(pieces.into_iter().take(3));
            return Body::from_stream(first.chain(futures::stream::pending()).boxed()).into_response();
        }
        return Body::from_stream(futures::stream::iter(pieces).boxed()).into_response();
    }
    if let Some(said) = details(path, &serde_json::from_str(&body).unwrap_or(Value::Null)) {
        argocd.details.lock().unwrap().push(serde_json::from_str(&body).unwrap());
        return said;
    }
    let changes = method != Method::GET || query.contains("refresh=");
    if changes {
        let body = serde_json::from_str(&body).unwrap_or(Value::Null);
        argocd.changes.lock().unwrap().push((method.to_string(), uri.to_string(), body));
        if argocd.silent.load(Ordering::SeqCst) {
            argocd.go_on.notified().await;
        }
        return match about {
            true => json!({}).to_string().into_response(),
            false => refused(404, "Not Found"),
        };
    }
    if path.ends_with("/events") && query.contains("resourceName=") {
        // Of a resource they are selected by its uid, too: without it there are none.
        let items = query.contains("resourceUID=uid-web").then(|| {
            json!([{"type": "Normal", "reason": "RolloutPaused", "message": "it waits", "involvedObject": {"name": "web"}}])
        });
        return json!({"metadata": {}, "items": items}).to_string().into_response();
    }
    read((path, query)).map_or_else(|| refused(404, "not found"), |answer| answer.to_string().into_response())
}
