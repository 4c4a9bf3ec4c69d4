//! Tests of the fetch plan: one file per group of rules.

mod application;
mod child;
mod decide;
mod drift;
mod failures;
mod in_doubt;
mod merged;
mod resource;
mod robust;
mod sources;
mod tree;
mod unchanged;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pipeline_core::{
    Attempt, Cause, Change, Enriched, EntityId, Event, Key, Record, Refetch, StageError, Timestamp, Version,
};
use pipeline_redact::Redactor;
use serde_json::{Value, json};

use super::{Begun, Fetch, FetchPlan, RawManifests, Response, Settings};

pub(super) const NOW: &str = "2026-11-21T12:00:00Z";
pub(super) const REVISION: &str = "1111111111111111111111111111111111111111";

pub(super) fn settings(raw_manifests: RawManifests) -> Settings {
    Settings { raw_manifests, ..Settings::default() }
}

pub(super) fn attempt(trying_for: Duration) -> Attempt {
    Attempt { trying_for, ..Attempt::at("2026-11-21T12:00:00.250Z".parse::<Timestamp>().unwrap()) }
}

/// An application of one source with a Service and a Deployment, synced at [`REVISION`].
pub(super) fn store() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": "store", "namespace": "argocd", "uid": "u1", "resourceVersion": "10",
            "labels": {"team": "web"},
        },
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://git.example.com/mono.git", "path": "store"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "store"},
        },
        "status": {
            "resources": [
                {"version": "v1", "kind": "Service", "namespace": "store", "name": "web", "status": "Synced",
                    "health": {"status": "Healthy"}},
                {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "store", "name": "web",
                    "status": "Synced", "health": {"status": "Progressing", "message": "1 of 2"}},
            ],
            "sync": {
                "status": "Synced", "revision": REVISION,
                "comparedTo": {"source": {"repoURL": "https://git.example.com/mono.git"}},
            },
            "health": {"status": "Progressing"},
            "reconciledAt": "2026-11-21T11:59:00Z",
            "history": [{"id": 3, "revision": REVISION}],
            "operationState": {
                "phase": "Succeeded", "startedAt": "2026-11-21T11:00:00Z",
                "finishedAt": "2026-11-21T11:00:05Z", "message": "ok",
                "operation": {"sync": {"revision": REVISION}},
                "syncResult": {"revision": REVISION, "resources": []},
            },
        },
    })
}

pub(super) fn event(object: &Value) -> Event {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or("").to_owned();
    let (key, uid) = (Key::new("argocd", "store").unwrap(), text("uid").into());
    let version = Version(text("resourceVersion").parse().unwrap_or(0));
    let change = Change::Applied { body: object.to_string().into() };
    Event { trace: 7, ..Event::watched(key, uid, version, change, attempt(Duration::ZERO).now) }
}

pub(super) fn deleted(object: &Value) -> Event {
    Event { change: Change::Deleted { body: Some(object.to_string().into()) }, ..event(object) }
}

/// What a healthy Argo CD answers about [`store`], in upstream's shape.
pub(super) fn healthy(fetch: &Fetch) -> Response {
    body(match fetch {
        Fetch::ManagedResources { .. } => json!({"items": [
            managed("", "Service", "web", &manifest("v1", "Service", "web", "live")),
            managed("apps", "Deployment", "web", &manifest("apps/v1", "Deployment", "web", "live")),
        ]}),
        Fetch::ResourceTree { .. } => json!({"nodes": [
            {"version": "v1", "kind": "Service", "namespace": "store", "name": "web",
                "health": {"status": "Healthy"}},
            {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "store", "name": "web",
                "health": {"status": "Progressing", "message": "1 of 2"}},
        ]}),
        Fetch::Manifests { .. } => {
            json!({"manifests": [manifest("v1", "Service", "web", "desired").to_string()]})
        }
        Fetch::Resource { .. } => {
            json!({"manifest": manifest("batch/v1", "Job", "hook", "live").to_string()})
        }
        Fetch::RevisionMetadata { .. } => json!({
            "author": "Ada <ada@example.com>", "date": "2026-11-20T10:00:00Z", "message": "Add web",
        }),
        Fetch::Parent { .. } => return Response::NotFound,
    })
}

pub(super) fn managed(group: &str, kind: &str, name: &str, live: &Value) -> Value {
    let mut target = live.clone();
    target["spec"] = json!({"state": "desired"});
    json!({
        "group": group, "kind": kind, "namespace": "store", "name": name,
        "liveState": live.to_string(), "targetState": target.to_string(),
    })
}

pub(super) fn manifest(api_version: &str, kind: &str, name: &str, state: &str) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "store"},
        "spec": {"state": state},
    })
}

pub(super) fn body(value: impl Into<Value>) -> Response {
    Response::Body(value.into().to_string().into())
}

/// Runs one event; gives what came of it, and what was asked, in order.
pub(super) fn run_with(
    event: &Event,
    known: Option<&Record>,
    settings: &Settings,
    trying_for: Duration,
    mut response: impl FnMut(&Fetch) -> Response,
) -> (Result<Enriched, StageError>, Vec<Fetch>) {
    let (attempt, redactor) = (attempt(trying_for), Redactor::new(b"test"));
    let mut asked = Vec::new();
    let result =
        FetchPlan::begin(event, known, &attempt, settings, &redactor).and_then(|begun| match begun {
            Begun::Done(enriched) => Ok(enriched),
            Begun::Go(mut plan) => {
                for _ in 0..20 {
                    for fetch in plan.fetches() {
                        plan.respond(&fetch, response(&fetch));
                        asked.push(fetch);
                    }
                }
                assert!(plan.fetches().is_empty(), "a plan comes to an end");
                plan.finish()
            }
        });
    (result, asked)
}

/// Runs one event against upstream's shape.
pub(super) fn run(
    event: &Event,
    known: Option<&Record>,
    response: impl FnMut(&Fetch) -> Response,
) -> (Enriched, Vec<Fetch>) {
    let (result, asked) = run_with(event, known, &settings(RawManifests::Absent), Duration::ZERO, response);
    (result.unwrap(), asked)
}

/// What is remembered once everything is acknowledged.
pub(super) fn remember(known: Option<Record>, enriched: &Enriched) -> Option<Record> {
    let record = enriched.reports.iter().fold(known, Record::acknowledge);
    match &enriched.settle {
        Some(settle) => Some(Record::checkpoint(record, settle)),
        None => record,
    }
}

/// The record after [`store`] was reported.
pub(super) fn known_store() -> Record {
    let store = store();
    let event = event(&store);
    let (enriched, _) = run(&event, None, healthy);
    remember(None, &enriched).unwrap()
}

/// The payloads: that of the application, and those of resources, each by its kind.
pub(super) fn payloads(enriched: &Enriched) -> Vec<(String, Value)> {
    let name = |payload: &Value| object(payload)["kind"].as_str().unwrap_or("").to_owned();
    enriched
        .reports
        .iter()
        .map(|report| {
            let payload: Value = serde_json::from_slice(&report.body).unwrap();
            let is_application = report.entity == EntityId::OBJECT;
            assert_eq!(is_application, name(&payload) == "Application");
            (name(&payload), payload)
        })
        .collect()
}

pub(super) fn payload(enriched: &Enriched, kind: &str) -> Value {
    let found = payloads(enriched).into_iter().find(|(name, _)| name == kind);
    found.unwrap_or_else(|| panic!("no report of a {kind}")).1
}

pub(super) fn kinds(enriched: &Enriched) -> Vec<String> {
    payloads(enriched).into_iter().map(|(name, _)| name).collect()
}

pub(super) fn object(payload: &Value) -> Value {
    serde_json::from_slice(&STANDARD.decode(payload["object"].as_str().unwrap()).unwrap()).unwrap()
}

pub(super) fn calls(asked: &[Fetch]) -> Vec<&'static str> {
    asked.iter().map(|fetch| fetch.call().as_str()).collect()
}

/// An Argo CD 3 keeps health in the tree.
pub(super) fn store_with_health_in_tree() -> Value {
    let mut store = store();
    store["status"]["resourceHealthSource"] = json!("appTree");
    for entry in store["status"]["resources"].as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("health");
    }
    store
}
