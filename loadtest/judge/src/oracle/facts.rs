//! Facts of Applications, of their resources, and of reports: the same names on both sides.

use serde_json::{Value, json};

use super::Facts;
use crate::report::{Report, text};
use loadtest_sim::platform::ResourceKey;

/// A text at a pointer; `null` when it is empty or not there: both say nothing.
fn fact(object: &Value, pointer: &str) -> Value {
    match object.pointer(pointer).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Value::from(text),
        _ => Value::Null,
    }
}

/// What an Application says of itself.
fn own(object: &Value) -> Facts {
    let of = |entry: &Value| {
        let part = |pointer| fact(entry, pointer);
        json!([
            part("/group"),
            part("/kind"),
            part("/namespace"),
            part("/name"),
            part("/status"),
            part("/health/status")
        ])
    };
    let all = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let history = all("/status/history").next_back();
    let mut conditions: Vec<Value> =
        all("/status/conditions").map(|condition| fact(condition, "/type")).collect();
    conditions.sort_by_key(ToString::to_string);
    let revisions = object.pointer("/status/sync/revisions").cloned().unwrap_or_default();
    Facts::from([
        ("uid", fact(object, "/metadata/uid")),
        ("deleted", Value::from(!fact(object, "/metadata/deletionTimestamp").is_null())),
        ("sync status", fact(object, "/status/sync/status")),
        ("health", fact(object, "/status/health/status")),
        ("revision", fact(object, "/status/sync/revision")),
        ("revisions", revisions),
        ("operation phase", fact(object, "/status/operationState/phase")),
        ("operation start", fact(object, "/status/operationState/startedAt")),
        ("operation end", fact(object, "/status/operationState/finishedAt")),
        ("deployed", history.map_or(Value::Null, |last| json!([last.get("id"), last.get("revision")]))),
        ("conditions", Value::from(conditions)),
        ("resources", Value::from(all("/status/resources").map(of).collect::<Vec<_>>())),
    ])
}

/// What the last report of an application that is there must show.
pub(super) fn of_application(object: &Value) -> Facts {
    let mut facts = own(object);
    let leaving = facts.get("deleted") == Some(&Value::Bool(true));
    facts.insert("live manifest", Value::from(!leaving));
    facts.insert("source sync status", fact(object, "/status/sync/status"));
    facts.insert("source health", fact(object, "/status/health/status"));
    facts
}

/// What the last report of an application that is gone must show.
pub(super) fn of_deleted(object: &Value) -> Facts {
    Facts::from([
        ("uid", fact(object, "/metadata/uid")),
        ("deleted", Value::from(true)),
        ("live manifest", Value::from(false)),
    ])
}

/// Which resource an entry of `status.resources` names, and what its last report must show.
pub(super) fn of_entry(
    app: &Value,
    entry: &Value,
    managed: Option<&Value>,
    tree: Option<&Value>,
) -> (ResourceKey, Facts) {
    let (group, version) = (text(entry.get("group")), text(entry.get("version")));
    let item = managed.and_then(|managed| find(managed, "items", entry));
    let live = item.map(|item| text(item.get("liveState"))).filter(|live| !live.is_empty() && live != "null");
    let object: Value = live.and_then(|live| serde_json::from_str(&live).ok()).unwrap_or_default();
    let namespace = match object.pointer("/metadata/name") {
        // A resource of the whole cluster has none, whatever the entry says.
        Some(_) => text(object.pointer("/metadata/namespace")),
        None => text(entry.get("namespace")),
    };
    let resource = ResourceKey {
        api_version: if group.is_empty() { version } else { format!("{group}/{version}") },
        kind: text(entry.get("kind")),
        namespace,
        name: text(entry.get("name")),
    };
    let history = app.pointer("/status/history").and_then(Value::as_array).and_then(|all| all.last());
    let revision = history.map_or_else(|| fact(app, "/status/sync/revision"), |last| fact(last, "/revision"));
    let mut facts = Facts::from([
        ("sync status", fact(entry, "/status")),
        ("health", health(app, entry, tree)),
        ("revision", revision),
    ]);
    // Hooks are never among the managed resources: whether they live is not known from there.
    if item.is_some() {
        facts.insert("live manifest", Value::from(object.is_object()));
    }
    (resource, facts)
}

/// A `Synced` resource that has no health is healthy. Where health stands in the tree, a resource that is not in
/// the tree is unknown, never healthy.
fn health(app: &Value, entry: &Value, tree: Option<&Value>) -> Value {
    let in_tree = app.pointer("/status/resourceHealthSource").and_then(Value::as_str) == Some("appTree");
    let own = if in_tree {
        match tree.and_then(|tree| find(tree, "nodes", entry)) {
            Some(node) => fact(node, "/health/status"),
            None => Value::from("Unknown"),
        }
    } else {
        fact(entry, "/health/status")
    };
    if own.is_null() && text(entry.get("status")) == "Synced" { Value::from("Healthy") } else { own }
}

/// The member of a list that is about the same resource as an entry.
fn find<'a>(list: &'a Value, name: &str, entry: &Value) -> Option<&'a Value> {
    let same = |item: &&Value| {
        ["group", "kind", "namespace", "name"]
            .iter()
            .all(|part| text(item.get(part)) == text(entry.get(part)))
    };
    list.get(name)?.as_array()?.iter().find(same)
}

/// What a report shows.
pub(super) fn of_report(payload: &[u8]) -> Option<Facts> {
    let Report { data, object } = Report::open(payload)?;
    let is_application = text(object.get("kind")) == "Application"
        && text(object.get("apiVersion")).starts_with("argoproj.io/");
    let mut facts = if is_application {
        let mut facts = own(&object);
        facts.insert("source sync status", fact(&data, "/source/syncStatus"));
        facts.insert("source health", fact(&data, "/source/healthStatus"));
        facts
    } else {
        Facts::from([
            ("sync status", fact(&data, "/source/syncStatus")),
            ("health", fact(&data, "/source/healthStatus")),
            ("revision", fact(&data, "/source/revision")),
        ])
    };
    let lives = if is_application {
        !fact(&data, "/source/actualManifest").is_null()
    } else {
        // Of a resource that is to be pruned the manifests are withheld; the object is not. Only what lives
        // has a uid.
        !fact(&object, "/metadata/uid").is_null()
    };
    facts.insert("live manifest", Value::from(lives));
    Some(facts)
}

/// Uid and resourceVersion of the object that a report holds.
pub(super) fn version(payload: &[u8]) -> Option<(String, u64)> {
    let Report { object, .. } = Report::open(payload)?;
    let version = text(object.pointer("/metadata/resourceVersion")).parse().ok()?;
    Some((text(object.pointer("/metadata/uid")), version))
}
