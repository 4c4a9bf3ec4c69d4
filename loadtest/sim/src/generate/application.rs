//! The text of a generated Application.

use serde::Deserialize;
use serde_json::json;

use super::template::{Template, put};
use super::{AppState, Fleet, Line, Shape, kind, revision, time, uid};

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Hole {
    Name,
    Uid,
    Version,
    Generation,
    Filler,
    Sync,
    Health,
    Revision,
    Deployed,
    Phase,
    Finished,
    Started,
    DeployedAt,
    Reconciled,
    History,
    Resources,
    Results,
}

#[derive(Debug)]
pub(super) struct Application {
    template: Template<Hole>,
    filler: String,
}

impl Application {
    pub(super) fn new(shape: &Shape) -> Self {
        let source = json!({
            "repoURL": "https://git.example.com/team/@@name@@.git", "path": "deploy", "targetRevision": "main",
        });
        let destination = json!({"server": "https://kubernetes.default.svc", "namespace": "@@name@@"});
        let mut status = json!({
            "controllerNamespace": shape.namespace,
            "health": {"status": "@@health@@", "lastTransitionTime": "@@deployedAt@@"},
            "history": [{
                "deployStartedAt": "@@deployedAt@@", "deployedAt": "@@deployedAt@@", "id": "@@#history#@@",
                "initiatedBy": {"automated": true}, "revision": "@@deployed@@", "source": source,
            }],
            "operationState": {
                "finishedAt": "@@finished@@", "message": "@@phase@@ by plan",
                "operation": {
                    "initiatedBy": {"automated": true}, "retry": {"limit": 5},
                    "sync": {"revision": "@@revision@@", "source": source},
                },
                "phase": "@@phase@@", "startedAt": "@@started@@",
                "syncResult": {"resources": "@@#results#@@", "revision": "@@revision@@", "source": source},
            },
            "reconciledAt": "@@reconciled@@",
            "resources": "@@#resources#@@",
            "sourceType": "Directory",
            "summary": {"images": ["registry.example.com/team/@@name@@:1.0"]},
            "sync": {
                "comparedTo": {"destination": destination, "source": source},
                "revision": "@@revision@@", "status": "@@sync@@",
            },
        });
        if shape.line == Line::V3 {
            status["resourceHealthSource"] = json!("appTree");
        }
        let text = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {
                "annotations": {"example.com/notes": "@@filler@@"},
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["resources-finalizer.argocd.argoproj.io"],
                "generation": "@@#generation#@@",
                "labels": {"env": "test", "team": "web"},
                "managedFields": [{"manager": "argocd", "time": "@@reconciled@@"}],
                "name": "@@name@@",
                "namespace": shape.namespace,
                "resourceVersion": "@@version@@",
                "uid": "@@uid@@",
            },
            "spec": {
                "destination": destination, "project": "default", "source": source,
                "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
            },
            "status": status,
        })
        .to_string();
        // A running operation has no end; the member goes with its value.
        let text = text.replace("\"finishedAt\":\"@@finished@@\",", "@@finished@@");
        let template = Template::new(&text);
        let mut this = Self { template, filler: String::new() };
        let first = AppState::first(0, shape.resources);
        let mut out = Vec::new();
        this.render(shape, &first, 1_000, &mut out);
        this.filler = super::answers::filler(shape.application_bytes.saturating_sub(out.len()));
        this
    }

    pub(super) fn render(&self, shape: &Shape, state: &AppState, version: u64, out: &mut Vec<u8>) {
        let running = state.commit != state.deployed;
        self.template.render(out, |hole, out| match hole {
            Hole::Name => put!(out, "app-{:05}", state.index),
            Hole::Uid => uid(shape, state, 0, out),
            Hole::Version => put!(out, "{version}"),
            Hole::Generation => put!(out, "{}", state.serial + 1),
            Hole::Filler => out.extend_from_slice(self.filler.as_bytes()),
            Hole::Sync => out.extend_from_slice(if state.synced() { b"Synced" } else { b"OutOfSync" }),
            Hole::Health => out.extend_from_slice(if state.healthy() { b"Healthy" } else { b"Degraded" }),
            Hole::Revision => revision(shape, state.index, state.commit, out),
            Hole::Deployed => revision(shape, state.index, state.deployed, out),
            Hole::Phase => out.extend_from_slice(if running { b"Running" } else { b"Succeeded" }),
            Hole::Finished if running => {}
            Hole::Finished => {
                out.extend_from_slice(b"\"finishedAt\":\"");
                time(state.commit * 60 + 30, out);
                out.extend_from_slice(b"\",");
            }
            Hole::Started => time(state.commit * 60, out),
            Hole::DeployedAt => time(state.deployed * 60 + 30, out),
            Hole::Reconciled => time(state.serial, out),
            Hole::History => put!(out, "{}", state.deployed),
            Hole::Resources => resources(shape, state, out),
            Hole::Results => results(state, out),
        });
    }
}

fn resources(shape: &Shape, state: &AppState, out: &mut Vec<u8>) {
    let app = Fleet::name(state.index);
    out.push(b'[');
    for (part, resource) in state.resources.iter().enumerate() {
        if part > 0 {
            out.push(b',');
        }
        let (group, version, kind, has_health) = kind(part);
        out.push(b'{');
        if !group.is_empty() {
            put!(out, "\"group\":\"{group}\",");
        }
        if shape.line == Line::V2 && has_health {
            put!(out, "\"health\":{{\"status\":\"{}\"}},", health(resource.degraded));
        }
        let status = if resource.drifted() { "OutOfSync" } else { "Synced" };
        put!(
            out,
            "\"kind\":\"{kind}\",\"name\":\"{app}-r{part}\",\"namespace\":\"{app}\",\"status\":\"{status}\",\
             \"version\":\"{version}\"}}"
        );
    }
    out.push(b']');
}

fn results(state: &AppState, out: &mut Vec<u8>) {
    let app = Fleet::name(state.index);
    out.push(b'[');
    for part in 0..state.resources.len() {
        if part > 0 {
            out.push(b',');
        }
        let (group, version, kind, _) = kind(part);
        put!(
            out,
            "{{\"group\":\"{group}\",\"hookPhase\":\"Running\",\"kind\":\"{kind}\",\"message\":\"{app}-r{part} \
             configured\",\"name\":\"{app}-r{part}\",\"namespace\":\"{app}\",\"status\":\"Synced\",\
             \"syncPhase\":\"Sync\",\"version\":\"{version}\"}}"
        );
    }
    out.push(b']');
}

pub(super) fn health(degraded: bool) -> &'static str {
    if degraded { "Degraded" } else { "Healthy" }
}
