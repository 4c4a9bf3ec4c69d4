//! Which watch events the recorded reporter took up.
//!
//! An event that waits while the queue is full, or while the sink is away, is folded into a newer state and brings no
//! report of its own. It is folded in a replay as well, by not being played: what is reported of a resource depends on
//! the state at which it was seen to change. That it was folded shows in the reports: a change that is worth one is
//! reported with its resourceVersion.

use std::collections::HashSet;

use anyhow::Context as _;
use serde_json::Value;

use loadtest_sim::platform::parse;
use loadtest_sim::recordings::{Case, WatchLine};

/// The case without the events that its reporter folded into newer ones, and without applications that came and went
/// before they were ever reported.
pub(super) fn taken_up(case: &Case) -> anyhow::Result<Case> {
    let (mut versions, mut lives) = (HashSet::new(), HashSet::new());
    for line in &case.reports {
        let Some(report) = parse(&line.data.to_string()) else { continue };
        if report.entity.resource.is_none() {
            versions.insert((report.entity.app_name.clone(), report.version));
            lives.insert(report.uid);
        }
    }
    let mut events = Vec::new();
    for line in &case.watch {
        let object: Value = serde_json::from_str(line.object.get())
            .with_context(|| format!("read the watch of {}", case.name))?;
        events.push(Event::of(line, &object));
    }
    let mut kept: Vec<WatchLine> = Vec::new();
    let mut newest: Vec<&Event> = Vec::new();
    for (at, (event, line)) in events.iter().zip(&case.watch).enumerate() {
        let is_last = !events.iter().skip(at + 1).any(|later| later.name == event.name);
        let before = newest.iter().rev().find(|before| before.uid == event.uid);
        let is_taken_up = if event.deleted {
            lives.contains(&event.uid)
        } else {
            is_last
                || versions.contains(&(event.name.clone(), event.version))
                || before.is_some_and(|before| before.matters == event.matters)
        };
        if is_taken_up {
            if event.deleted && before.is_none() {
                kept.extend(birth(&events, &case.watch, &event.uid));
            }
            kept.push(line.clone());
            newest.push(event);
        }
    }
    Ok(Case { watch: kept, ..case.clone() })
}

/// The first event of a life of which only the end was reported. An API server deletes only what was there; of what is
/// reported of it the end is the last. Without a status it has no resources that nobody ever heard of.
fn birth(events: &[Event], watch: &[WatchLine], uid: &str) -> Option<WatchLine> {
    let (_, line) = events.iter().zip(watch).find(|(event, _)| event.uid == uid && !event.deleted)?;
    let mut object: Value = serde_json::from_str(line.object.get()).ok()?;
    object.as_object_mut()?.remove("status");
    Some(WatchLine { object: serde_json::value::to_raw_value(&object).ok()?, ..line.clone() })
}

struct Event {
    name: String,
    uid: String,
    version: Option<u64>,
    deleted: bool,
    /// What a change of is worth a report.
    matters: Value,
}

impl Event {
    fn of(line: &WatchLine, object: &Value) -> Self {
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        Self {
            name: text("name"),
            uid: text("uid"),
            version: text("resourceVersion").parse().ok(),
            deleted: line.kind == "DELETED",
            matters: matters(object),
        }
    }
}

/// The object without what may change without a report.
fn matters(object: &Value) -> Value {
    let mut object = object.clone();
    let places: [(&str, &[&str]); 4] = [
        ("/metadata", &["resourceVersion", "generation", "generateName", "managedFields"]),
        ("/metadata/annotations", &["kubectl.kubernetes.io/last-applied-configuration"]),
        ("/spec", &["project"]),
        ("/status", &["reconciledAt"]),
    ];
    for (place, names) in places {
        if let Some(place) = object.pointer_mut(place).and_then(Value::as_object_mut) {
            names.iter().for_each(|name| drop(place.remove(*name)));
        }
    }
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.remove("lastTransitionTime");
    }
    object
}

#[cfg(test)]
mod tests;
