//! What Argo CD answers about a generated application.

use serde::Deserialize;
use serde_json::{Value, json};

use super::application::health;
use super::template::{Template, put};
use super::{AppState, Fleet, Line, Shape, kind, revision, time, uid};

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Hole {
    App,
    Part,
    Uid,
    Version,
    Tag,
    LiveTag,
    Drift,
    Filler,
}

/// Texts of one kind of resource.
#[derive(Debug)]
struct Kind {
    /// An item of `managed-resources`.
    managed: Template<Hole>,
    /// The whole answer of `resource`.
    resource: Template<Hole>,
    /// An entry of `manifests`.
    manifest: Template<Hole>,
    filler: String,
}

#[derive(Debug)]
pub(super) struct Answers {
    kinds: Vec<Kind>,
}

/// The manifest of a kind, desired or live.
fn manifest(part: usize, live: bool) -> Value {
    let (group, version, kind, _) = kind(part);
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let tracking = format!("@@app@@:{group}/{kind}:@@app@@/@@app@@-r@@part@@");
    let mut object = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "annotations": {"argocd.argoproj.io/tracking-id": tracking},
            "labels": {"app": "@@app@@"},
            "name": "@@app@@-r@@part@@",
            "namespace": "@@app@@",
        },
    });
    let tag = if live { "@@liveTag@@" } else { "@@tag@@" };
    match kind {
        "Deployment" => {
            object["spec"] = json!({
                "replicas": 2, "selector": {"matchLabels": {"app": "@@app@@"}},
                "template": {"metadata": {"labels": {"app": "@@app@@"}}, "spec": {"containers": [{
                    "name": "web", "image": format!("registry.example.com/team/@@app@@:{tag}"),
                    "env": [{"name": "CACHE_TTL", "value": "60"}], "ports": [{"containerPort": 8080}],
                }]}},
            });
        }
        "Service" => {
            object["spec"] =
                json!({"ports": [{"port": 80, "targetPort": 8080}], "selector": {"app": "@@app@@"}});
        }
        "ConfigMap" => object["data"] = json!({"LOG_LEVEL": "info", "tag": tag}),
        "Secret" => {
            object["data"] = json!({"password": "++++++++"});
            object["type"] = json!("Opaque");
        }
        _ => {
            object["spec"] = json!({"rules": [{"host": "@@app@@.example.com", "http": {"paths": [{
                "path": "/", "pathType": "Prefix",
                "backend": {"service": {"name": "@@app@@-r1", "port": {"number": 80}}},
            }]}}]});
        }
    }
    if live {
        let metadata = &mut object["metadata"];
        metadata["annotations"]["example.com/notes"] = json!("@@filler@@");
        metadata["labels"]["drift"] = json!("d@@drift@@");
        metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        metadata["resourceVersion"] = json!("@@version@@");
        metadata["uid"] = json!("@@uid@@");
    }
    object
}

impl Answers {
    pub(super) fn new(shape: &Shape) -> Self {
        let kinds = (0..5).map(|part| Kind::new(shape, part)).collect();
        Self { kinds }
    }

    fn kind(&self, part: usize) -> &Kind {
        &self.kinds[part % self.kinds.len()]
    }

    pub(super) fn managed_resources(&self, shape: &Shape, state: &AppState) -> Vec<u8> {
        self.all(shape, state, "{\"items\":[", "]}", |kind| &kind.managed)
    }

    pub(super) fn manifests(&self, shape: &Shape, state: &AppState) -> Vec<u8> {
        let mut tail = b"],\"namespace\":\"".to_vec();
        put!(&mut tail, "{}\",\"server\":\"https://kubernetes.default.svc\"", Fleet::name(state.index));
        tail.extend_from_slice(b",\"revision\":\"");
        revision(shape, state.index, state.commit, &mut tail);
        tail.extend_from_slice(b"\",\"sourceType\":\"Directory\"}");
        let tail = String::from_utf8_lossy(&tail).into_owned();
        self.all(shape, state, "{\"manifests\":[", &tail, |kind| &kind.manifest)
    }

    fn all(
        &self,
        shape: &Shape,
        state: &AppState,
        head: &str,
        tail: &str,
        which: impl Fn(&Kind) -> &Template<Hole>,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + state.resources.len() * (shape.resource_bytes + 256));
        out.extend_from_slice(head.as_bytes());
        for part in 0..state.resources.len() {
            if part > 0 {
                out.push(b',');
            }
            let kind = self.kind(part);
            which(kind).render(&mut out, |hole, out| kind.fill(shape, state, part, hole, out));
        }
        out.extend_from_slice(tail.as_bytes());
        out
    }

    pub(super) fn resource(
        &self,
        shape: &Shape,
        state: &AppState,
        wanted: &str,
        name: &str,
    ) -> Option<Vec<u8>> {
        let app = Fleet::name(state.index);
        let part: usize = name.strip_prefix(&app)?.strip_prefix("-r")?.parse().ok()?;
        if part >= state.resources.len() || kind(part).2 != wanted {
            return None;
        }
        let kind = self.kind(part);
        let mut out = Vec::new();
        kind.resource.render(&mut out, |hole, out| kind.fill(shape, state, part, hole, out));
        Some(out)
    }

    pub(super) fn resource_tree(&self, shape: &Shape, state: &AppState) -> Vec<u8> {
        let app = Fleet::name(state.index);
        let mut out = Vec::with_capacity(512 + state.resources.len() * 700);
        out.extend_from_slice(b"{\"nodes\":[");
        for (part, resource) in state.resources.iter().enumerate() {
            if part > 0 {
                out.push(b',');
            }
            let (group, version, kind, has_health) = kind(part);
            let head = |out: &mut Vec<u8>, group: &str, kind: &str, suffix: &str, offset: u64| {
                out.push(b'{');
                if !group.is_empty() {
                    put!(out, "\"group\":\"{group}\",");
                }
                put!(out, "\"version\":\"{version}\",\"kind\":\"{kind}\",\"namespace\":\"{app}\",");
                put!(out, "\"name\":\"{app}-r{part}{suffix}\",\"uid\":\"");
                uid(shape, state, part as u64 + 1 + offset, out);
                out.push(b'"');
            };
            let tail = |out: &mut Vec<u8>| {
                put!(out, ",\"resourceVersion\":\"{}\"", 1_000 + resource.changes);
                if has_health {
                    put!(out, ",\"health\":{{\"status\":\"{}\"}}", health(resource.degraded));
                }
                out.extend_from_slice(b",\"createdAt\":\"2026-01-01T00:00:00Z\"}");
            };
            head(&mut out, group, kind, "", 0);
            tail(&mut out);
            if kind == "Deployment" {
                for (own, own_kind, suffix, above_group, above_kind, above) in [
                    ("apps", "ReplicaSet", "-5df55cf98b", "apps", "Deployment", ""),
                    ("", "Pod", "-5df55cf98b-8zlmc", "apps", "ReplicaSet", "-5df55cf98b"),
                ] {
                    out.push(b',');
                    head(&mut out, own, own_kind, suffix, if own.is_empty() { 20_000 } else { 10_000 });
                    out.extend_from_slice(b",\"parentRefs\":[");
                    let offset = if above.is_empty() { 0 } else { 10_000 };
                    head(&mut out, above_group, above_kind, above, offset);
                    out.extend_from_slice(b"}]");
                    tail(&mut out);
                }
            }
        }
        out.extend_from_slice(b"]}");
        out
    }
}

impl Kind {
    fn new(shape: &Shape, part: usize) -> Self {
        let (group, version, kind, _) = kind(part);
        let target = manifest(part, false).to_string();
        let live = manifest(part, true).to_string();
        let mut managed = json!({
            "kind": kind, "namespace": "@@app@@", "name": "@@app@@-r@@part@@", "targetState": target,
            "liveState": live, "normalizedLiveState": live, "predictedLiveState": live,
            "resourceVersion": "@@version@@",
        });
        if !group.is_empty() {
            managed["group"] = json!(group);
        }
        let managed = managed.to_string();
        let entry = match shape.line {
            Line::V3 => Value::String(target),
            Line::V2 => json!({
                "compiledManifest": target,
                "rawManifest": format!("# {version} {kind}\nname: @@app@@-r@@part@@\ntag: @@tag@@\n"),
                "path": "deploy/r@@part@@.yaml",
            }),
        };
        let mut this = Self {
            managed: Template::new(&managed),
            resource: Template::new(&json!({"manifest": live}).to_string()),
            manifest: Template::new(&entry.to_string()),
            filler: String::new(),
        };
        let first = AppState::first(0, shape.resources);
        let mut out = Vec::new();
        this.managed.render(&mut out, |hole, out| this.fill(shape, &first, part, hole, out));
        // The filler stands in three of the item's texts.
        this.filler = filler(shape.resource_bytes.saturating_sub(out.len()).div_ceil(3));
        this
    }

    fn fill(&self, shape: &Shape, state: &AppState, part: usize, hole: Hole, out: &mut Vec<u8>) {
        let resource = state.resources.get(part).copied().unwrap_or_default();
        match hole {
            Hole::App => put!(out, "app-{:05}", state.index),
            Hole::Part => put!(out, "{part}"),
            Hole::Uid => uid(shape, state, part as u64 + 1, out),
            Hole::Version => put!(out, "{}", 1_000 + resource.changes),
            Hole::Tag => put!(out, "1.{}", state.commit),
            Hole::LiveTag => put!(out, "1.{}", state.deployed),
            Hole::Drift => put!(out, "{}", resource.changes),
            Hole::Filler => out.extend_from_slice(self.filler.as_bytes()),
        }
    }
}

/// Text that looks like words and needs no escape.
pub(super) fn filler(bytes: usize) -> String {
    "a note of an operator about this object and its reasons ".chars().cycle().take(bytes).collect()
}

/// The commit of a generated revision.
pub(super) fn revision_metadata(text: &str) -> Vec<u8> {
    let commit = text.get(32..).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or_default();
    let mut out = b"{\"author\":\"Ada L <ada@example.com>\",\"date\":\"".to_vec();
    time(commit.saturating_mul(60), &mut out);
    put!(&mut out, "\",\"message\":\"Change number {commit}\"}}");
    out
}
