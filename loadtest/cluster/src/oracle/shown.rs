//! What the real platform shows of an application, against what it acknowledged and what the cluster holds.
//!
//! - Of each entity its timeline tells as many reports as were acknowledged, as many states as differ from the one before in more
//!   than their time, and the last of them as its state now.
//! - The application is shown as it is in the cluster: its incarnation, health, status of sync, revision, project, how its last
//!   operation stands, and whether it is gone.
//! - What it lists in the cluster is shown, and nothing else, each with the health, the status of sync and the manifests that were
//!   acknowledged last. Those are compared with the cluster's beside this.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::told::Told;
use super::truth::Application;
use crate::platform::Shown;
use loadtest_judge::report::{Report, text};
use loadtest_sim::platform::{EntityName, ResourceKey};

/// Health as the API names it; it says `UNKNOWN` of everything else.
const HEALTH: [&str; 6] = ["DEGRADED", "HEALTHY", "MISSING", "PROGRESSING", "SUSPENDED", "TERMINATED"];
/// The status of sync, in the same way.
const SYNC: [&str; 3] = ["OUTOFSYNC", "SYNCED", "SYNCING"];

/// The resources that an application lists in the cluster, by the names that they were reported under.
pub(super) fn listed(application: &Application, told: &Told) -> Vec<ResourceKey> {
    let of_entry = |key: &ResourceKey| {
        let (entity, _) = told.entity_of(key, application.live.get(key))?;
        entity.resource.clone()
    };
    application.entries().filter_map(|(key, _)| of_entry(&key)).collect()
}

/// Everything that differs, a line each.
pub(super) fn differences(shown: &Shown, application: &Application, told: &Told) -> Vec<String> {
    let mut found = of_timeline(shown, told);
    match &application.object {
        Some(object) => {
            found.extend(of_itself(shown, object, told));
            found.extend(of_resources(shown, application, told));
        }
        None if shown.application["deleted"] == true => {}
        None => found.push("is gone, and is not shown so".to_owned()),
    }
    let name = format!("{}/{}", application.namespace, application.name);
    found.into_iter().map(|what| format!("{name} at the platform: {what}")).collect()
}

/// What a timeline tells of an entity.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entity {
    reports: u64,
    states: u64,
    /// Incarnation and version of its state now.
    now: Option<(String, Option<u64>)>,
}

fn of_timeline(shown: &Shown, told: &Told) -> Vec<String> {
    let mut kept: BTreeMap<Option<ResourceKey>, Entity> = BTreeMap::new();
    for state in &shown.timeline {
        let entity = kept.entry(state.get("resource").and_then(resource)).or_default();
        entity.reports += state["reports"].as_u64().unwrap_or_default();
        entity.states += 1;
        if state["current"] == true {
            entity.now = Some((text(state.get("uid")), state["version"].as_u64()));
        }
    }
    let acknowledged: BTreeMap<Option<ResourceKey>, Entity> = told
        .last
        .iter()
        .map(|(entity, last)| {
            let now = Some((last.uid.clone(), last.version));
            (entity.resource.clone(), Entity { reports: last.reports, states: states(told, entity), now })
        })
        .collect();
    let mut found = Vec::new();
    for (entity, acknowledged) in &acknowledged {
        let kept = kept.remove(entity).unwrap_or_default();
        if kept != *acknowledged {
            found.push(format!(
                "{} is kept as {kept:?}, acknowledged as {acknowledged:?}",
                named(entity.as_ref())
            ));
        }
    }
    found.extend(kept.keys().map(|entity| format!("{} was never acknowledged", named(entity.as_ref()))));
    found
}

/// Reports of an entity that differ from the one before in more than their time.
fn states(told: &Told, entity: &EntityName) -> u64 {
    let own = told.kept.iter().filter(|kept| kept.entity == *entity);
    let said = own.map(|kept| {
        let mut said: Map<String, Value> = serde_json::from_slice(&kept.payload).unwrap_or_default();
        said.remove("timestamp");
        said
    });
    let mut states = 0;
    let mut before = None;
    for said in said {
        states += u64::from(before.as_ref() != Some(&said));
        before = Some(said);
    }
    states
}

fn of_itself(shown: &Shown, object: &Value, told: &Told) -> Vec<String> {
    let is = |pointer: &str| text(object.pointer(pointer));
    let of = |field: &str| text(shown.application.get(field));
    let revision = told.of_itself().map(|report| report.source("revision").to_owned()).unwrap_or_default();
    let revision = if revision.is_empty() { is("/status/sync/revision") } else { revision };
    let deleted = object.pointer("/metadata/deletionTimestamp").is_some();
    let facts = [
        ("uid", of("uid"), is("/metadata/uid")),
        ("health", one_of(&HEALTH, &of("healthStatus")), one_of(&HEALTH, &is("/status/health/status"))),
        ("sync status", one_of(&SYNC, &of("syncStatus")), one_of(&SYNC, &is("/status/sync/status"))),
        ("revision", of("revision"), revision),
        ("operation phase", of("operationPhase"), is("/status/operationState/phase")),
        ("project", of("project"), is("/spec/project")),
        ("deleted", shown.application["deleted"].to_string(), deleted.to_string()),
    ];
    let differ = facts.into_iter().filter(|(_, shown, is)| shown != is);
    differ.map(|(what, shown, is)| format!("{what} is shown as {shown:?}, expected {is:?}")).collect()
}

fn of_resources(shown: &Shown, application: &Application, told: &Told) -> Vec<String> {
    let states = shown.application["resources"].as_array().cloned().unwrap_or_default();
    let mut states: BTreeMap<ResourceKey, Value> =
        states.into_iter().filter_map(|state| Some((resource(&state["resource"])?, state))).collect();
    let mut found = Vec::new();
    for key in listed(application, told) {
        let Some(report) = told.report_of(&key) else { continue };
        match states.remove(&key) {
            None => found.push(format!("{} is listed, and not shown", named(Some(&key)))),
            Some(state) => found.extend(of_resource(&key, &state, &report)),
        }
        let manifests = shown.manifests.iter().find(|(other, _)| *other == key);
        let manifests = manifests.map(|(_, manifests)| manifests.clone()).unwrap_or_default();
        found.extend(of_manifests(&key, &manifests, &report));
    }
    found.extend(states.keys().map(|key| format!("{} is shown, and not listed", named(Some(key)))));
    found
}

fn of_resource(key: &ResourceKey, state: &Value, report: &Report) -> Option<String> {
    let of = |all: &[&str], field: &str| one_of(all, &text(state.get(field)));
    let shown = (of(&HEALTH, "healthStatus"), of(&SYNC, "syncStatus"));
    let acknowledged =
        (one_of(&HEALTH, report.source("healthStatus")), one_of(&SYNC, report.source("syncStatus")));
    let name = named(Some(key));
    (shown != acknowledged).then(|| format!("{name} is shown as {shown:?}, acknowledged as {acknowledged:?}"))
}

/// Manifests are never told here: they may be a Secret's.
fn of_manifests(key: &ResourceKey, manifests: &Value, report: &Report) -> Vec<String> {
    let fields = [("live", "actualManifest"), ("desired", "desiredManifest"), ("git", "gitManifest")];
    let differs = |(shown, field): &(&str, &str)| {
        let (shown, acknowledged) = (text(manifests.get(shown)), report.source(field));
        // Where the live one is withheld the object is shown in its place.
        shown != acknowledged && !(*field == "actualManifest" && acknowledged.is_empty())
    };
    let differ = fields.iter().filter(|field| differs(field));
    differ
        .map(|(shown, _)| format!("the {shown} manifest of {} is not as acknowledged", named(Some(key))))
        .collect()
}

/// A name without its separators, in capitals, or that of what is none of these.
fn one_of(all: &[&str], name: &str) -> String {
    let name = name.replace('_', "").to_uppercase();
    if all.contains(&&*name) { name } else { "UNKNOWN".to_owned() }
}

fn resource(value: &Value) -> Option<ResourceKey> {
    let part = |name: &str| text(value.get(name));
    value.is_object().then(|| ResourceKey {
        api_version: part("apiVersion"),
        kind: part("kind"),
        namespace: part("namespace"),
        name: part("name"),
    })
}

fn named(resource: Option<&ResourceKey>) -> String {
    match resource {
        None => "the application".to_owned(),
        Some(ResourceKey { kind, namespace, name, .. }) => format!("{kind} {namespace}/{name}"),
    }
}
