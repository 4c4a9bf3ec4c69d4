//! Compares the last reports of a recording with those of its replay, field by field.
//!
//! What is taken out, and why; anything else that differs is a difference:
//! - `timestamp`: it is the hour of the report itself;
//! - a moment that is that hour in both reports (`syncStartedAt`, `syncFinishedAt`, `errors[].lastSeen`,
//!   `deletionTimestamp`): it was filled in because no fact names one;
//! - a deletion that was recorded as a stub is compared as one. A reporter that learns of a deletion from a 404 has no
//!   object to show, whereas a replay has only watch events, which bring it;
//! - author, date and message of a commit that were not recorded of a resource, because Argo CD did not find the
//!   application through which they were asked for. Whether another application has asked before is a matter of
//!   moments, and in a replay of others.
//!
//! Redacted values are digests under the same key in both, and are compared as they are.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use serde_json::Value;

use loadtest_judge::diff::{self, diff, short};
use loadtest_judge::view::View;
use loadtest_sim::argocd::{Ask, Asked};
use loadtest_sim::platform::{EntityName, parse};
use loadtest_sim::recordings::CallLine;

/// What a report tells of the commit that was synced.
const COMMIT: [&str; 3] = ["source.commitAuthor", "source.commitDate", "source.commitMessage"];

/// An application of one life, or a resource of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entity {
    /// The application or resource.
    pub name: EntityName,
    /// The application's uid.
    pub uid: String,
}

/// One place in which the last reports of one entity differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The application or resource.
    pub entity: Entity,
    /// The field; `report` where one side has none.
    pub path: String,
    /// What was recorded, `None` where there is nothing.
    pub recorded: Option<Value>,
    /// What was reported in the replay, `None` where there is nothing.
    pub replayed: Option<Value>,
}

/// What a comparison found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compared {
    /// Entities that were compared, those of one side included.
    pub entities: usize,
    /// How many of them differ.
    pub different: usize,
    /// Where.
    pub differences: Vec<Difference>,
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EntityName { app_namespace, app_name, resource } = &self.name;
        write!(f, "{app_namespace}/{app_name}")?;
        if let Some(resource) = resource {
            write!(f, " {} {}/{}", resource.kind, resource.namespace, resource.name)?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entity, path, recorded, replayed } = self;
        write!(f, "{entity}: {path}: recorded {}", short(recorded.as_ref()))?;
        write!(f, ", replayed {}", short(replayed.as_ref()))
    }
}

/// The last report of every entity; what is no report is left out.
pub(super) fn last(reports: impl Iterator<Item = Value>) -> BTreeMap<Entity, Value> {
    let mut last = BTreeMap::new();
    for data in reports {
        let Some(report) = parse(&data.to_string()) else { continue };
        let uid = match report.entity.resource {
            None => report.uid,
            Some(_) => data["source"]["appUID"].as_str().unwrap_or_default().to_owned(),
        };
        last.insert(Entity { name: report.entity, uid }, data);
    }
    last
}

/// Names of the applications through which a commit was asked for when Argo CD did not find them.
pub(super) fn not_found(calls: &[CallLine]) -> HashSet<String> {
    let asked = calls.iter().filter(|call| matches!(call.status, 403 | 404)).filter_map(|call| {
        match Asked::read(&call.path.parse().ok()?, "") {
            Asked::About { application, ask: Ask::RevisionMetadata { .. } } => Some(application),
            _ => None,
        }
    });
    asked.collect()
}

/// Compares the last reports of a recording and of its replay. `not_found` are the applications that [`not_found`]
/// gives of the recording.
pub(super) fn compare(
    recorded: &BTreeMap<Entity, Value>,
    replayed: &BTreeMap<Entity, Value>,
    not_found: &HashSet<String>,
) -> Compared {
    let mut compared = Compared::default();
    let all: BTreeSet<&Entity> = recorded.keys().chain(replayed.keys()).collect();
    for entity in all {
        compared.entities += 1;
        let differences = match (recorded.get(entity), replayed.get(entity)) {
            (Some(recorded), Some(replayed)) => {
                let mut differences = of_reports(recorded, replayed);
                let EntityName { app_name, resource, .. } = &entity.name;
                if resource.is_some() && not_found.contains(app_name) {
                    let was_told = |theirs: Option<&Value>| theirs.is_some_and(|theirs| theirs != "");
                    differences.retain(|found| {
                        !COMMIT.contains(&found.path.as_str()) || was_told(found.theirs.as_ref())
                    });
                }
                differences
            }
            (recorded, replayed) => {
                let side = |report: Option<&Value>| report.map(|_| Value::from("one"));
                let (ours, theirs) = (side(replayed), side(recorded));
                vec![diff::Difference { path: "report".to_owned(), ours, theirs }]
            }
        };
        compared.different += usize::from(!differences.is_empty());
        compared.differences.extend(differences.into_iter().map(|found| Difference {
            entity: entity.clone(),
            path: found.path,
            recorded: found.theirs,
            replayed: found.ours,
        }));
    }
    compared
}

fn of_reports(recorded: &Value, replayed: &Value) -> Vec<diff::Difference> {
    let (recorded, replayed) = (View::of(recorded), View::of(replayed));
    let hours = hour(replayed.data()).zip(hour(recorded.data()));
    let mut differences = Vec::new();
    if is_stub(&recorded) && !is_stub(&replayed) {
        for pointer in ["/object/metadata/uid", "/source/actualManifest"] {
            let path = pointer.trim_start_matches('/').replace('/', ".");
            let (ours, theirs) = (replayed.data().pointer(pointer), recorded.data().pointer(pointer));
            diff(&path, ours, theirs, &mut differences);
        }
        let path = "object.metadata.deletionTimestamp".to_owned();
        let [ours, theirs] = [&replayed, &recorded].map(|view| deletion(view).cloned());
        if ours.is_none() {
            differences.push(diff::Difference { path, ours, theirs });
        }
        return differences;
    }
    diff("", Some(replayed.data()), Some(recorded.data()), &mut differences);
    differences.retain(|found| {
        let is = |side: &Option<Value>, hour: &str| side.as_ref().and_then(Value::as_str) == Some(hour);
        let now = |(ours, theirs): &(String, String)| is(&found.ours, ours) && is(&found.theirs, theirs);
        found.path != "timestamp" && !(may_be_now(&found.path) && hours.as_ref().is_some_and(now))
    });
    differences
}

/// The hour of a report as the moments in it are written, in whole seconds.
fn hour(data: &Value) -> Option<String> {
    let (seconds, _) = data.get("timestamp")?.as_str()?.split_once('.')?;
    Some(format!("{seconds}Z"))
}

fn may_be_now(path: &str) -> bool {
    let seen = path.strip_prefix("errors[").and_then(|rest| rest.split_once(']'));
    let places = ["source.syncStartedAt", "source.syncFinishedAt", "object.metadata.deletionTimestamp"];
    places.contains(&path) || seen.is_some_and(|(_, field)| field == ".lastSeen")
}

fn deletion(view: &View) -> Option<&Value> {
    view.object().pointer("/metadata/deletionTimestamp")
}

/// The report of a deletion of which no object is left.
fn is_stub(view: &View) -> bool {
    let object = view.object();
    let is_application = object["kind"] == "Application"
        && object["apiVersion"].as_str().is_some_and(|version| version.starts_with("argoproj.io/"));
    is_application && deletion(view).is_some() && object.pointer("/metadata/resourceVersion").is_none()
}

#[cfg(test)]
mod tests;
