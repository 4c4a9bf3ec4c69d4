//! Cases without a recorded reporter: the product's reports are compared with what was watched, and with what
//! an observer was answered after each event.

use std::collections::HashMap;

use pipeline_core::{EntityId, Key, Record, Report};
use serde_json::{Map, Value};
use stages_argocd::plan::{Fetch, RawManifests, ResourceRef, Response, Settings};
use stages_argocd::sources::AsksGit;

use super::git::Git;
use super::play::{Watched, enrich, redactor, remember, settings};
use super::recorded::{Target, classify};
use loadtest_judge::view::View;
use loadtest_sim::recordings::{CallLine, Case};

/// What was found in a case.
#[derive(Debug, Default)]
pub(super) struct Check {
    pub(super) events: usize,
    /// Reports of applications.
    pub(super) applications: usize,
    /// Reports of resources.
    pub(super) resources: usize,
    /// Changed entries whose report would have said what the last one said.
    pub(super) unsent: usize,
    pub(super) exceptions: Vec<String>,
    /// Reports of resources whose file Git named, and others.
    pub(super) named: (usize, usize),
}

/// What the check itself remembers of an application: it does not use the product's memory.
#[derive(Debug, Default)]
struct Before {
    sections: Value,
    healthy: bool,
    entries: HashMap<String, Value>,
}

/// Plays every event with the answers nearest after it.
pub(super) fn check(case: &Case, watched: &[Watched], git: Option<&Git>) -> anyhow::Result<Check> {
    let redactor = redactor();
    let sources = if git.is_some() { AsksGit::Always } else { AsksGit::Never };
    let settings = Settings { sources, ..settings(case, RawManifests::Absent) };
    let mut check = Check::default();
    let mut memory: HashMap<Key, Option<Record>> = HashMap::new();
    let mut before: HashMap<(Key, String), Before> = HashMap::new();
    for event in watched {
        check.events += 1;
        let known = memory.remove(&event.event.key).flatten();
        let enriched =
            enrich(event, known.as_ref(), event.t, &settings, &redactor, |fetch| match (git, fetch) {
                (Some(git), Fetch::Manifests { .. }) => git.answer_now(fetch, compiled(case, event)),
                _ => nearest(case, fetch, event.t),
            })?;
        let life = (event.event.key.clone(), event.event.uid.to_string());
        let expected = expect(case, event, before.entry(life).or_default());
        let settled = enriched.settle.as_ref().map(|settle| settle.unsent.as_slice()).unwrap_or_default();
        compare(&mut check, event, &expected, &enriched.reports, |id| {
            settled.iter().any(|(at, ..)| *at == id)
        });
        memory.insert(event.event.key.clone(), remember(known, &enriched));
    }
    Ok(check)
}

/// The answer to the same call that was asked first after the event, else last before it.
fn nearest(case: &Case, fetch: &Fetch, t: f64) -> Response {
    // The observer asked for manifests without a revision.
    let target = Target::of(&fetch.path("")).without("revision");
    match find(case, &target, t) {
        Some(call) => case.answer(call).map_or(Response::NotFound, |body| classify(fetch, call.status, body)),
        None => Response::NotFound,
    }
}

fn find<'a>(case: &'a Case, target: &Target, t: f64) -> Option<&'a CallLine> {
    let same = || case.calls.iter().filter(|call| Target::of(&call.path) == *target);
    let after = same().filter(|call| call.t >= t).min_by(|a, b| a.t.total_cmp(&b.t));
    after.or_else(|| same().max_by(|a, b| a.t.total_cmp(&b.t)))
}

/// What should be reported of an event, found without the product's code.
#[derive(Debug, Default)]
struct Expected {
    application: bool,
    /// Changed entries, each with its health.
    entries: Vec<(Value, Option<Value>)>,
    /// By group, kind, namespace and name.
    managed: HashMap<[String; 4], Value>,
    deleting: bool,
}

fn expect(case: &Case, event: &Watched, before: &mut Before) -> Expected {
    let object = &event.object;
    let deleting = object.pointer("/metadata/deletionTimestamp").is_some();
    if event.event.is_deleted() {
        return Expected { application: true, deleting: true, ..Expected::default() };
    }
    let sections = sections(object);
    let healthy = object.pointer("/status/health/status").and_then(Value::as_str) == Some("Healthy");
    let became_healthy = healthy && !before.healthy && !before.sections.is_null();
    let application = before.sections != sections || became_healthy;
    let tree = body(case, event, "resource-tree");
    let in_tree = object.pointer("/status/resourceHealthSource").and_then(Value::as_str) == Some("appTree");
    let deployed = deployed(object);
    let mut expected = Expected { application, deleting, ..Expected::default() };
    if let Some(Value::Array(items)) =
        body(case, event, "managed-resources").map(|mut body| body["items"].take())
    {
        expected.managed = items.into_iter().map(|item| (place(&item), item)).collect();
    }
    let entries = object.pointer("/status/resources").and_then(Value::as_array);
    let mut now = HashMap::new();
    for entry in entries.into_iter().flatten() {
        if text(entry, "kind") == "Application" && text(entry, "group") == "argoproj.io" {
            continue;
        }
        let health = if in_tree { health(entry, tree.as_ref()) } else { entry.get("health").cloned() };
        let (states, place) = (expected.managed.get(&place(entry)).map(states), place(entry).join("/"));
        // What Argo CD does not tell, of what it is about to delete, is as it was while nothing else changes.
        let before_it =
            || before.entries.get(&place).filter(|_| !application).and_then(|state| state.get(3)).cloned();
        let states = match text(entry, "status") {
            "OutOfSync" => states.or_else(before_it).unwrap_or_default(),
            _ => Value::Null,
        };
        let state =
            Value::from(vec![entry.clone(), health.clone().unwrap_or_default(), deployed.clone(), states]);
        if became_healthy || before.entries.get(&place) != Some(&state) {
            expected.entries.push((entry.clone(), health));
        }
        now.insert(place, state);
    }
    *before = Before { sections, healthy, entries: now };
    expected
}

/// What resources were deployed from.
fn deployed(object: &Value) -> Value {
    let names = ["revision", "revisions", "source", "sources"];
    let part = |of: &Value| Value::from(names.map(|name| of.get(name).cloned().unwrap_or_default()).to_vec());
    let at = |pointer: &str| object.pointer(pointer).map(part).unwrap_or_default();
    let history = object.pointer("/status/history").and_then(Value::as_array).and_then(|all| all.last());
    let deployed = match history {
        Some(last) => part(last),
        None => {
            let (revisions, sources) = (at("/status/sync"), at("/status/sync/comparedTo"));
            let of = |part: &Value, which| part.get(which).cloned().unwrap_or_default();
            Value::from(vec![of(&revisions, 0), of(&revisions, 1), of(&sources, 2), of(&sources, 3)])
        }
    };
    let succeeded =
        object.pointer("/status/operationState/phase").and_then(Value::as_str) == Some("Succeeded");
    let revisions = |of: &Value| match of.get("revisions").and_then(Value::as_array) {
        Some(several) if !several.is_empty() => several.clone(),
        _ => vec![Value::from(text(of, "revision"))],
    };
    let result = object.pointer("/status/operationState/syncResult").filter(|_| succeeded).map(revisions);
    let aside = result.filter(|result| history.is_some_and(|last| revisions(last) != *result));
    Value::from(vec![deployed, Value::from(aside.unwrap_or_default())])
}

/// Live and wanted, but for what the cluster counts and tells by itself.
fn states(item: &Value) -> Value {
    let state = |name: &str| {
        let mut state: Value = serde_json::from_str(text(item, name)).unwrap_or_default();
        if let Some(object) = state.as_object_mut() {
            object.remove("status");
        }
        for name in ["resourceVersion", "generation", "managedFields"] {
            let metadata = state.get_mut("metadata").and_then(Value::as_object_mut);
            metadata.map(|metadata| metadata.remove(name));
        }
        state
    };
    Value::from(vec![state("liveState"), state("targetState")])
}

/// The compiled manifests, which the observer asked for as target states alone.
fn compiled(case: &Case, event: &Watched) -> Response {
    let Some(body) = body(case, event, "managed-resources") else { return Response::NotFound };
    let items = body["items"].as_array().into_iter().flatten();
    let targets: Vec<&str> =
        items.map(|item| text(item, "targetState")).filter(|text| *text != "null").collect();
    Response::Body(serde_json::json!({"manifests": targets}).to_string().into())
}

fn body(case: &Case, event: &Watched, call: &str) -> Option<Value> {
    let object = &event.object;
    let project =
        object.pointer("/spec/project").and_then(Value::as_str).filter(|project| !project.is_empty());
    let project = project.unwrap_or("default");
    let key = &event.event.key;
    let path = format!(
        "/api/v1/applications/{}/{call}?appNamespace={}&project={project}",
        key.name(),
        key.namespace()
    );
    let line = find(case, &Target::of(&path), event.t).filter(|line| line.status == 200)?;
    serde_json::from_str(case.answer(line)?.get()).ok()
}

/// What counts as a change of an application.
pub(super) fn sections(object: &Value) -> Value {
    let mut object = object.clone();
    let mut drop = |place: &str, names: &[&str]| {
        if let Some(at) = object.pointer_mut(place).and_then(Value::as_object_mut) {
            names.iter().for_each(|name| {
                at.remove(*name);
            });
        }
    };
    drop("", &["kind", "apiVersion"]);
    drop("/spec", &["project"]);
    drop("/status", &["reconciledAt"]);
    drop("/metadata", &["resourceVersion", "generation", "generateName", "managedFields"]);
    drop("/metadata/annotations", &["kubectl.kubernetes.io/last-applied-configuration"]);
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.remove("lastTransitionTime");
    }
    object
}

fn health(entry: &Value, tree: Option<&Value>) -> Option<Value> {
    let unknown = serde_json::json!({"status": "Unknown"});
    let nodes = tree.and_then(|tree| tree.get("nodes")).and_then(Value::as_array);
    let Some(node) = nodes.into_iter().flatten().find(|node| place(node) == place(entry)) else {
        return Some(unknown);
    };
    let healthy = || (text(entry, "status") == "Synced").then(|| serde_json::json!({"status": "Healthy"}));
    let is_missing = ["uid", "createdAt"].iter().all(|name| text(node, name).is_empty());
    let is_missing = is_missing && entry.get("hook") != Some(&Value::Bool(true));
    let missing = || is_missing.then(|| serde_json::json!({"status": "Missing"}));
    node.get("health")
        .filter(|health| !text(health, "status").is_empty())
        .cloned()
        .or_else(healthy)
        .or_else(missing)
}

fn place(of: &Value) -> [String; 4] {
    ["group", "kind", "namespace", "name"].map(|name| text(of, name).to_owned())
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or("")
}

fn compare(
    check: &mut Check,
    event: &Watched,
    expected: &Expected,
    reports: &[Report],
    is_unsent: impl Fn(pipeline_core::EntityId) -> bool,
) {
    let version = event.event.version.0;
    let mut exception = |what: String| check.exceptions.push(format!("event {version}: {what}"));
    let of_application = reports.iter().filter(|report| report.entity == EntityId::OBJECT).count();
    if of_application != usize::from(expected.application) {
        exception(format!(
            "{of_application} application reports instead of {}",
            usize::from(expected.application)
        ));
    }
    let mut left: Vec<&Report> = reports.iter().filter(|report| report.entity != EntityId::OBJECT).collect();
    let mut counts = (of_application, left.len(), 0);
    for (entry, health) in &expected.entries {
        let [group, kind, namespace, name] = place(entry);
        let id =
            ResourceRef { group, version: text(entry, "version").to_owned(), kind, namespace, name }.id();
        let Some(at) = left.iter().position(|report| report.entity == id) else {
            if is_unsent(id) {
                counts.2 += 1;
            } else {
                exception(format!("{} was not reported", place(entry).join("/")));
            }
            continue;
        };
        let report = left.remove(at);
        let data = serde_json::from_slice::<Value>(&report.body).unwrap_or_default();
        let is_named =
            data.pointer("/source/path").and_then(Value::as_str).is_some_and(|path| !path.is_empty());
        *if is_named { &mut check.named.0 } else { &mut check.named.1 } += 1;
        for wrong in wrong_fields(&View::of(&data), entry, health.as_ref(), expected) {
            exception(format!("{}: {wrong}", place(entry).join("/")));
        }
    }
    if !left.is_empty() {
        exception(format!("{} resources were reported though their entry did not change", left.len()));
    }
    check.applications += counts.0;
    check.resources += counts.1;
    check.unsent += std::mem::take(&mut counts.2);
}

/// The fields of a resource's report that are not what was watched and answered.
fn wrong_fields(
    view: &View,
    entry: &Value,
    health: Option<&Value>,
    expected: &Expected,
) -> Vec<&'static str> {
    let none = Value::Object(Map::new());
    let source = view.at("source").unwrap_or(&none);
    let mut wrong = Vec::new();
    if source.get("healthStatus") != health.and_then(|health| health.get("status")) {
        wrong.push("source.healthStatus is not the node's");
    }
    if text(source, "syncStatus") != text(entry, "status") {
        wrong.push("source.syncStatus is not the entry's");
    }
    let state = |name: &str| {
        let text = expected.managed.get(&place(entry))?.get(name)?.as_str()?;
        serde_json::from_str::<Value>(text).ok().filter(Value::is_object)
    };
    let live = state("liveState");
    let pruned = entry.get("requiresPruning").and_then(Value::as_bool) == Some(true) && live.is_some();
    let is = |name: &str, state: &Option<Value>| {
        let ours = source.get(name).filter(|ours| ours.is_object());
        if pruned || expected.deleting { ours.is_none() } else { ours == state.as_ref() }
    };
    // Hooks are never listed.
    if expected.managed.contains_key(&place(entry)) {
        if !is("actualManifest", &live) {
            wrong.push("source.actualManifest is not the live state");
        }
        if !is("desiredManifest", &state("targetState")) {
            wrong.push("source.desiredManifest is not the target state");
        }
    }
    wrong
}
