//! Values of a chart above, which has the other chart as a dependency, or several of it under names of their own.

use serde_json::{Map, Value as Json};

use super::{Converted, at, settle, take, walk};
use crate::tree::{Dependency, Node};

/// Converts what a chart above gives each of these, and leaves what it gives to others.
pub(super) fn convert(root: &Node, below: &[Dependency<'_>]) -> Converted {
    let global = root.get("global");
    let mut all = Converted::of(root);
    for dependency in below {
        let mut one = each(dependency, global, below.len() == 1);
        let own = one.values.as_object_mut().and_then(|own| own.remove("global"));
        match (own, global, below.len()) {
            // What one alone is given stands as well where all are given it.
            (Some(own), Some(_), 1) => all.values["global"] = own,
            (Some(own), Some(global), _) => {
                let shared = of_all(global);
                if let Some(own) = without(&own, &shared) {
                    one.values["global"] = own;
                }
                all.values["global"] = shared;
            }
            (Some(own), None, _) => one.values["global"] = own,
            (None, ..) => {}
        }
        all.values[dependency.key] = one.values;
        all.kept.extend(one.kept.into_iter().filter(|kept| !all.kept.contains(kept)).collect::<Vec<_>>());
        all.notes.extend(one.notes.into_iter().filter(|note| !all.notes.contains(note)).collect::<Vec<_>>());
    }
    for (key, node) in root.entries() {
        if key != "global" && below.iter().all(|dependency| dependency.key != key) {
            all.values[key] = node.json();
            all.kept.push((key.clone(), key.clone()));
        }
    }
    all
}

/// Converts what stands below one key, under what is said for all.
fn each(dependency: &Dependency<'_>, global: Option<&Node>, is_only: bool) -> Converted {
    let mut one = Converted::of(dependency.values);
    one.under = format!("{}.", dependency.key);
    let mut leaves = Vec::new();
    walk(&mut one, &[], dependency.values, &mut leaves);
    one.under.clear();
    if let Some(global) = global {
        walk(&mut one, &["global"], global, &mut leaves);
    }
    take(&mut one, leaves);
    let said = one.notes.len();
    settle::settle(&mut one);
    for note in one.notes.iter_mut().skip(said) {
        if !(is_only && global.is_some() && note.path.starts_with("global.")) {
            note.path = format!("{}.{}", dependency.key, note.path);
        }
    }
    one
}

/// What is said for all, by itself.
fn of_all(global: &Node) -> Json {
    let mut shared = Converted::of(global);
    let mut leaves = Vec::new();
    walk(&mut shared, &["global"], global, &mut leaves);
    take(&mut shared, leaves);
    at(&shared.values, "global").cloned().unwrap_or_else(|| Map::new().into())
}

/// What of some values others do not say as well; `None` where that is nothing.
fn without(own: &Json, others: &Json) -> Option<Json> {
    match (own, others) {
        (Json::Object(own), Json::Object(others)) => {
            let left = own.iter().filter_map(|(key, value)| {
                let left = match others.get(key) {
                    Some(other) => without(value, other)?,
                    None => value.clone(),
                };
                Some((key.clone(), left))
            });
            let left: Map<String, Json> = left.collect();
            (!left.is_empty()).then(|| left.into())
        }
        (own, others) => (own != others).then(|| own.clone()),
    }
}
