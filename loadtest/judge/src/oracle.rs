//! What the platform must have been told in the end, found without the product's code.
//!
//! takes: a recording, or the last state of a cluster and of Argo CD - gives: the facts that the last report of
//! every application and resource must show ([`expected`]), and those that it does not ([`check`]); whether an
//! application's reports came in order ([`order`])
//! calls: nothing - fails: [`expected`] when a recording cannot be read
//!
//! Facts are those that no redaction touches: health, sync status, revisions, the operation, whether there is a
//! live manifest, whether it was deleted. What stands between the last change of an entry and the end of a
//! recording without a report of its own (a live object's new `resourceVersion`) is not a fact.

mod facts;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use anyhow::Context as _;
use serde_json::Value;

use crate::report::text;
use loadtest_sim::platform::{EntityName, KeptReport, Last};
use loadtest_sim::recordings::{CallLine, Case};

/// Facts by name; what is not there is `null`.
pub type Facts = BTreeMap<&'static str, Value>;

/// What the last report of one entity must show.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// The application or resource.
    pub entity: EntityName,
    /// What its last report must show; it may show more.
    pub facts: Facts,
}

/// One fact that is not as expected.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The application or resource.
    pub entity: EntityName,
    /// Which fact.
    pub fact: &'static str,
    /// What it should be.
    pub expected: Value,
    /// What was reported; `null` where there is no report.
    pub reported: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EntityName { app_namespace, app_name, resource } = &self.entity;
        write!(f, "{app_namespace}/{app_name}")?;
        if let Some(resource) = resource {
            write!(f, " {} {}/{}", resource.kind, resource.namespace, resource.name)?;
        }
        write!(f, ": {} is {}, expected {}", self.fact, self.reported, self.expected)
    }
}

/// The last state of one application, as the cluster and Argo CD tell it.
#[derive(Debug, Clone, Copy, Default)]
pub struct LastState<'a> {
    /// The Application as the watch delivered it last.
    pub object: Option<&'a Value>,
    /// Whether the watch delivered it as deleted.
    pub deleted: bool,
    /// Argo CD's last answer of `managed-resources`.
    pub managed: Option<&'a Value>,
    /// Argo CD's last answer of `resource-tree`.
    pub tree: Option<&'a Value>,
}

/// What must be known at the end of a recording: one entry for every application that was seen, and for every
/// resource that an application lists in its last state.
pub fn expected(case: &Case) -> anyhow::Result<Vec<Expected>> {
    let mut last: BTreeMap<(String, String), (bool, Value)> = BTreeMap::new();
    for line in &case.watch {
        let object: Value = serde_json::from_str(line.object.get())
            .with_context(|| format!("read the watch of {}", case.name))?;
        let part = |pointer: &str| text(object.pointer(pointer));
        let key = (part("/metadata/namespace"), part("/metadata/name"));
        last.insert(key, (line.kind == "DELETED", object));
    }
    let mut all = Vec::new();
    for ((_, name), (deleted, object)) in &last {
        let managed = answer(case, name, "managed-resources")?;
        let tree = answer(case, name, "resource-tree")?;
        let state = LastState {
            object: Some(object),
            deleted: *deleted,
            managed: managed.as_ref(),
            tree: tree.as_ref(),
        };
        all.extend(expected_of(&state));
    }
    Ok(all)
}

/// The last answer to a call about an application that was an answer.
fn answer(case: &Case, application: &str, call: &str) -> anyhow::Result<Option<Value>> {
    let wanted = format!("/api/v1/applications/{application}/{call}");
    let about = |line: &&CallLine| {
        line.status == 200 && line.path.split('?').next().is_some_and(|path| path == wanted)
    };
    let last = case.calls.iter().filter(about).max_by(|left, right| left.t.total_cmp(&right.t));
    let body = last.and_then(|line| case.answer(line));
    body.map(|body| serde_json::from_str(body.get()))
        .transpose()
        .with_context(|| format!("read an answer of {call} in {}", case.name))
}

/// What must be known of one application in its last state, and of each resource that it lists.
#[must_use]
pub fn expected_of(state: &LastState<'_>) -> Vec<Expected> {
    let Some(object) = state.object else { return Vec::new() };
    let entity = EntityName {
        app_namespace: text(object.pointer("/metadata/namespace")),
        app_name: text(object.pointer("/metadata/name")),
        resource: None,
    };
    if state.deleted {
        return vec![Expected { entity, facts: facts::of_deleted(object) }];
    }
    let mut all = vec![Expected { entity: entity.clone(), facts: facts::of_application(object) }];
    let entries = object.pointer("/status/resources").and_then(Value::as_array);
    for entry in entries.into_iter().flatten() {
        // Nested applications are left to their own events.
        if text(entry.get("kind")) == "Application" && text(entry.get("group")) == "argoproj.io" {
            continue;
        }
        let (resource, facts) = facts::of_entry(object, entry, state.managed, state.tree);
        all.push(Expected { entity: EntityName { resource: Some(resource), ..entity.clone() }, facts });
    }
    all
}

/// Compares the last report of every expected entity with its facts. The payloads of last reports must have been
/// kept ([`loadtest_sim::platform::Keep::last`]).
#[must_use]
pub fn check(expected: &[Expected], last: &[(EntityName, Last)]) -> Vec<Difference> {
    let last: HashMap<&EntityName, &Last> = last.iter().map(|(entity, last)| (entity, last)).collect();
    let mut differences = Vec::new();
    for Expected { entity, facts } in expected {
        let differ = |fact, expected: &Value, reported: Value| Difference {
            entity: entity.clone(),
            fact,
            expected: expected.clone(),
            reported,
        };
        let Some(report) = last.get(entity) else {
            differences.push(differ("report", &Value::from("one"), Value::Null));
            continue;
        };
        let Some(shown) = report.payload.as_ref().and_then(|payload| facts::of_report(payload)) else {
            differences.push(differ("payload", &Value::from("a report"), Value::Null));
            continue;
        };
        for (fact, value) in facts {
            let reported = shown.get(fact).cloned().unwrap_or_default();
            if reported != *value {
                differences.push(differ(fact, value, reported));
            }
        }
    }
    differences
}

/// What a report of an application or a resource shows; `None` when it is no report.
#[must_use]
pub fn shown(payload: &[u8]) -> Option<Facts> {
    facts::of_report(payload)
}

/// Whether the reports of each application came in the order of its states: a report of an older state of the
/// same life after a newer one is a difference.
#[must_use]
pub fn order(kept: &[KeptReport]) -> Vec<Difference> {
    let mut newest: HashMap<(&EntityName, String), u64> = HashMap::new();
    let mut differences = Vec::new();
    for report in kept {
        let Some((uid, version)) = facts::version(&report.payload) else { continue };
        let before = newest.entry((&report.entity, uid)).or_insert(version);
        if version < *before {
            differences.push(Difference {
                entity: report.entity.clone(),
                fact: "order",
                expected: Value::from(*before),
                reported: Value::from(version),
            });
        }
        *before = version.max(*before);
    }
    differences
}
