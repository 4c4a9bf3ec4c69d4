//! Reads an Application out of JSON.

use std::collections::HashSet;

use pipeline_core::Digest;
use pipeline_redact::Redactor;
use serde_json::{Map, Value};
use stages_client::{SyncedSources, has_commits, synced_sources};

use super::{
    Application, Condition, Entry, Health, Operation, REFRESH_ANNOTATION, Revisions, Source, SyncedResource,
    list, map, text,
};
use crate::canonical;
use crate::plan::ResourceRef;

/// Why a text is no Application; there is nothing to report of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// The text ends early, nests too deeply, or never was JSON.
    #[error("read application: not json")]
    NotJson,
    /// An Application is a JSON object.
    #[error("read application: not an object")]
    NotAnObject,
    /// Without a name it belongs to no key.
    #[error("read application: no metadata.name")]
    NoName,
}

impl Application {
    /// Reads the JSON text of an Application and redacts it.
    pub(crate) fn read(json: &[u8], redactor: &Redactor) -> Result<Self, Malformed> {
        let mut value: Value = serde_json::from_slice(json).map_err(|_| Malformed::NotJson)?;
        redactor.value(&mut value);
        Self::of_value(value)
    }

    /// Reads an Application that holds no secret.
    pub(crate) fn of_value(value: Value) -> Result<Self, Malformed> {
        match value {
            Value::Object(object) => Self::of(object),
            _ => Err(Malformed::NotAnObject),
        }
    }

    pub(super) fn of(object: Map<String, Value>) -> Result<Self, Malformed> {
        let none = Map::new();
        let metadata = map(object.get("metadata")).unwrap_or(&none);
        let spec = map(object.get("spec")).unwrap_or(&none);
        let status = map(object.get("status")).unwrap_or(&none);
        let name = text(metadata.get("name"));
        if name.is_empty() {
            return Err(Malformed::NoName);
        }
        let (sources, multi_source) = sources(object.get("spec").unwrap_or(&Value::Null));
        let sync = map(status.get("sync"));
        let compared = sync.and_then(|sync| map(sync.get("comparedTo")));
        let health = map(status.get("health"));
        let refresh = map(metadata.get("annotations")).map_or("", |all| text(all.get(REFRESH_ANNOTATION)));
        Ok(Self {
            name: name.to_owned(),
            namespace: text(metadata.get("namespace")).to_owned(),
            uid: text(metadata.get("uid")).to_owned(),
            project: match text(spec.get("project")) {
                "" => "default".to_owned(),
                project => project.to_owned(),
            },
            labels: map(metadata.get("labels")).filter(|labels| !labels.is_empty()).cloned(),
            deleting: !text(metadata.get("deletionTimestamp")).is_empty(),
            refresh_hard: refresh == "hard",
            server: map(spec.get("destination")).map_or("", |to| text(to.get("server"))).to_owned(),
            sources,
            multi_source,
            sync_status: sync.map_or("", |sync| text(sync.get("status"))).to_owned(),
            synced: sync.map(Revisions::of),
            compared_repo_url: compared
                .and_then(|compared| map(compared.get("source")))
                .map_or("", |source| text(source.get("repoURL")))
                .to_owned(),
            health: health.map_or_else(|| Health::of(""), read_health),
            entries: entries(status),
            health_in_tree: text(status.get("resourceHealthSource")) == "appTree",
            conditions: list(status.get("conditions")).filter_map(condition).collect(),
            operation: map(status.get("operationState")).map(operation),
            requested: map(object.get("operation"))
                .and_then(|operation| map(operation.get("sync")))
                .map(Revisions::of),
            last_history: list(status.get("history")).last().and_then(Value::as_object).map(|last| {
                let id = last.get("id").and_then(Value::as_i64).unwrap_or(0);
                (text(last.get("revision")).to_owned(), id)
            }),
            object,
        })
    }
}

impl Revisions {
    fn of(sync: &Map<String, Value>) -> Self {
        Self {
            revision: text(sync.get("revision")).to_owned(),
            revisions: texts(sync.get("revisions")),
            change_revision: text(sync.get("changeRevision")).to_owned(),
            change_revisions: texts(sync.get("changeRevisions")),
        }
    }
}

fn sources(spec: &Value) -> (Vec<Source>, bool) {
    let read = |source: &Map<String, Value>| Source {
        repo_url: text(source.get("repoURL")).to_owned(),
        is_ref: !text(source.get("ref")).is_empty(),
        has_commits: has_commits(text(source.get("repoURL")), text(source.get("chart"))),
    };
    let SyncedSources { all, are_several, .. } = synced_sources(spec);
    (all.iter().filter_map(|source| source.as_object()).map(read).collect(), are_several)
}

/// Of an entry: its health, and what its id is of. Entries that differ in nothing else have one digest, and a record
/// holds it once.
const APART: [&str; 6] = ["health", "group", "version", "kind", "namespace", "name"];

fn entries(status: &Map<String, Value>) -> Vec<Entry> {
    let mut seen = HashSet::new();
    list(status.get("resources"))
        .filter_map(Value::as_object)
        .map(|entry| {
            let field = |name: &str| text(entry.get(name)).to_owned();
            let resource = ResourceRef {
                group: field("group"),
                version: field("version"),
                kind: field("kind"),
                namespace: field("namespace"),
                name: field("name"),
            };
            Entry {
                id: resource.id(),
                resource,
                status: field("status"),
                health: map(entry.get("health")).map(read_health).filter(|health| !health.status.is_empty()),
                hook: entry.get("hook").and_then(Value::as_bool).unwrap_or(false),
                requires_pruning: entry.get("requiresPruning").and_then(Value::as_bool).unwrap_or(false),
                digest: Digest::of(&canonical::without(entry, &APART)),
            }
        })
        .filter(|entry| !entry.resource.kind.is_empty() && seen.insert(entry.id))
        .collect()
}

fn read_health(health: &Map<String, Value>) -> Health {
    Health { status: text(health.get("status")).to_owned(), message: text(health.get("message")).to_owned() }
}

fn condition(condition: &Value) -> Option<Condition> {
    let condition = condition.as_object()?;
    let field = |name: &str| text(condition.get(name)).to_owned();
    Some(Condition {
        kind: field("type"),
        message: field("message"),
        last_transition_time: field("lastTransitionTime"),
    })
}

fn operation(state: &Map<String, Value>) -> Operation {
    let field = |name: &str| text(state.get(name)).to_owned();
    let result = map(state.get("syncResult"));
    Operation {
        phase: field("phase"),
        message: field("message"),
        started_at: field("startedAt"),
        finished_at: field("finishedAt"),
        sync: map(state.get("operation")).and_then(|of| map(of.get("sync"))).map(Revisions::of),
        result_revision: result.map(|result| text(result.get("revision")).to_owned()),
        result_revisions: result.map(revisions),
        results: result
            .and_then(|result| result.get("resources"))
            .filter(|resources| resources.is_array())
            .map(|resources| list(Some(resources)).filter_map(synced_resource).collect()),
    }
}

fn synced_resource(result: &Value) -> Option<SyncedResource> {
    let result = result.as_object()?;
    let field = |name: &str| text(result.get(name)).to_owned();
    Some(SyncedResource {
        group: field("group"),
        kind: field("kind"),
        namespace: field("namespace"),
        name: field("name"),
        status: field("status"),
        message: field("message"),
        hook_phase: field("hookPhase"),
        sync_phase: field("syncPhase"),
    })
}

/// One per source.
pub(super) fn revisions(of: &Map<String, Value>) -> Vec<String> {
    match texts(of.get("revisions")) {
        several if several.is_empty() => vec![text(of.get("revision")).to_owned()],
        several => several,
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    list(value).map(|text| text.as_str().unwrap_or("").to_owned()).collect()
}
