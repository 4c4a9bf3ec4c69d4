//! What the reports of a run must be, whatever was killed.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::argocd::ArgoCd;
use loadtest_judge::oracle::shown;
use loadtest_judge::report::object_of;
use loadtest_sim::platform::{EntityName, KeptReport, PlatformSim, ResourceKey, parse};

/// Letters of a time up to its second.
const SECOND: usize = "2026-01-01T00:00:00".len();

/// Whether a report says that this life of the application ended.
pub(super) fn tell_end(platform: &PlatformSim, name: &str, uid: &str) -> bool {
    let is_own = |kept: &KeptReport| kept.entity.app_name == name && kept.entity.resource.is_none();
    platform.kept().iter().filter(|kept| is_own(kept)).any(|kept| is_end(&kept.payload, uid))
}

/// Whether the last report of the application is of this life, and Argo CD has compared it.
pub(super) fn show_compared(platform: &PlatformSim, name: &str, uid: &str) -> bool {
    let last = platform.last_of_application(ArgoCd::NAMESPACE, name);
    last.filter(|last| last.uid == uid)
        .and_then(|last| last.payload)
        .is_some_and(|payload| is_compared(&payload))
}

fn is_end(payload: &[u8], uid: &str) -> bool {
    let of_uid = std::str::from_utf8(payload).ok().and_then(parse).is_some_and(|report| report.uid == uid);
    of_uid && shown(payload).is_some_and(|facts| facts.get("live manifest") == Some(&Value::Bool(false)))
}

fn is_compared(payload: &[u8]) -> bool {
    shown(payload).is_some_and(|facts| {
        let sync = facts.get("source sync status").and_then(Value::as_str);
        matches!(sync, Some("Synced" | "OutOfSync")) && facts.get("live manifest") == Some(&Value::Bool(true))
    })
}

/// Reports that say what the one before of the same entity said, under another key: what is sent again has to be known
/// by its key. A report holds the time at which it was made, which is no part of what it says. A resource that its
/// application did not list in between is reported anew, and where there is no operation yet the time of the report
/// stands for its start, which says nothing: the operation may begin in that same second.
pub(super) fn repeated(kept: &[KeptReport]) -> Vec<String> {
    let mut before: HashMap<&EntityName, Value> = HashMap::new();
    let mut repeated: HashMap<&EntityName, usize> = HashMap::new();
    for report in kept {
        let Ok(mut said) = serde_json::from_slice::<Value>(&report.payload) else { continue };
        let timestamp = said.as_object_mut().and_then(|said| said.remove("timestamp")).unwrap_or_default();
        if report.entity.resource.is_none() {
            let listed = listed(&said);
            before.retain(|entity, _| {
                let is_own = entity.app_name == report.entity.app_name;
                !is_own || entity.resource.as_ref().is_none_or(|resource| listed.contains(&named(resource)))
            });
        }
        if stands_for_start(&timestamp, &said) {
            before.remove(&report.entity);
            continue;
        }
        if before.get(&report.entity) == Some(&said) {
            *repeated.entry(&report.entity).or_default() += 1;
        }
        before.insert(&report.entity, said);
    }
    let line = |(entity, count): (&EntityName, usize)| {
        let EntityName { app_name, resource, .. } = entity;
        let resource = resource.as_ref().map(|resource| format!(" {} {}", resource.kind, resource.name));
        format!("{app_name}{}: said again {count} times under another key", resource.unwrap_or_default())
    };
    let mut lines: Vec<String> = repeated.into_iter().map(line).collect();
    lines.sort();
    lines
}

/// Whether an operation is said to have started in the second in which the report was made.
fn stands_for_start(timestamp: &Value, said: &Value) -> bool {
    let second = |time: &Value| time.as_str().and_then(|time| time.get(..SECOND)).map(str::to_owned);
    second(timestamp).is_some_and(|made| second(&said["source"]["syncStartedAt"]) == Some(made))
}

/// The names of what the application in a payload lists.
fn listed(said: &Value) -> HashSet<Name> {
    let object = object_of(said).unwrap_or_default();
    let text = |entry: &Value, part: &str| entry[part].as_str().unwrap_or_default().to_owned();
    let entries = object.pointer("/status/resources").and_then(Value::as_array).into_iter().flatten();
    let name =
        |entry| Name { group: text(entry, "group"), kind: text(entry, "kind"), name: text(entry, "name") };
    entries.map(name).collect()
}

fn named(resource: &ResourceKey) -> Name {
    let group = resource.api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
    Name { group, kind: resource.kind.clone(), name: resource.name.clone() }
}

/// A resource of an application, as far as an entry and a report name it in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Name {
    group: String,
    kind: String,
    name: String,
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    fn report(key: &str, timestamp: &str, sync: &str, deleted: bool) -> KeptReport {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "web", "namespace": "argocd", "uid": "u1"},
            "status": {"sync": {"status": sync}, "health": {"status": "Healthy"}},
        });
        if deleted {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let actual = if deleted { String::new() } else { object.to_string() };
        let payload = json!({
            "timestamp": timestamp, "object": STANDARD.encode(object.to_string()),
            "source": {"syncStatus": sync, "healthStatus": "Healthy", "actualManifest": actual},
        })
        .to_string();
        let entity = parse(&payload).unwrap().entity;
        KeptReport { key: Some(key.to_owned()), entity, payload: payload.into_bytes().into() }
    }

    #[test]
    fn an_end_and_a_compared_state_are_told_apart() {
        let (compared, unknown, end) = (
            report("a", "1", "OutOfSync", false),
            report("b", "1", "Unknown", false),
            report("c", "1", "Synced", true),
        );
        assert!(is_compared(&compared.payload));
        assert!(!is_compared(&unknown.payload) && !is_compared(&end.payload));
        assert!(
            is_end(&end.payload, "u1") && !is_end(&end.payload, "u2") && !is_end(&compared.payload, "u1")
        );
    }

    #[test]
    fn the_same_under_another_key_is_told_and_a_return_to_a_state_is_not() {
        let (one, again) = (report("a", "1", "Synced", false), report("b", "2", "Synced", false));
        let other = report("c", "3", "OutOfSync", false);
        assert_eq!(repeated(&[one.clone(), other.clone(), again.clone()]), [""; 0]);
        assert_eq!(repeated(&[one, again, other]), ["web: said again 1 times under another key"]);
    }

    fn other(key: &str, object: &Value) -> KeptReport {
        let source = json!({"appName": "web", "appNamespace": "argocd"});
        let payload = json!({"object": STANDARD.encode(object.to_string()), "source": source}).to_string();
        let entity = parse(&payload).unwrap().entity;
        KeptReport { key: Some(key.to_owned()), entity, payload: payload.into_bytes().into() }
    }

    #[test]
    fn a_resource_that_came_back_may_be_said_again_and_one_that_stayed_may_not() {
        let lists = |key, entries: Value| {
            let metadata = json!({"name": "web", "namespace": "argocd", "uid": "u1", "labels": {"key": key}});
            let status = json!({"resources": entries});
            let kind = "Application";
            other(
                key,
                &json!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": metadata, "status": status}),
            )
        };
        let resource = |key| {
            let metadata = json!({"name": "api", "namespace": "web"});
            other(key, &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}))
        };
        let there = json!([{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "web", "name": "api"}]);
        let stayed = [lists("a", there.clone()), resource("b"), lists("c", there.clone()), resource("d")];
        assert_eq!(repeated(&stayed), ["web Deployment api: said again 1 times under another key"]);
        let came_back = [
            lists("a", there.clone()),
            resource("b"),
            lists("c", json!([])),
            lists("d", there),
            resource("e"),
        ];
        assert_eq!(repeated(&came_back), [""; 0]);
    }

    #[test]
    fn a_start_that_is_only_the_time_of_the_report_says_nothing() {
        let made = |key: &str, timestamp: &str| {
            let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "api", "namespace": "web"}});
            let source =
                json!({"appName": "web", "appNamespace": "argocd", "syncStartedAt": "2026-01-01T00:00:07Z"});
            let payload = json!({"timestamp": timestamp, "object": STANDARD.encode(object.to_string()), "source": source});
            let payload = payload.to_string();
            let entity = parse(&payload).unwrap().entity;
            KeptReport { key: Some(key.to_owned()), entity, payload: payload.into_bytes().into() }
        };
        let (first, second) = (made("a", "2026-01-01T00:00:07.123Z"), made("b", "2026-01-01T00:00:09.456Z"));
        assert_eq!(repeated(&[first, second.clone()]), [""; 0]);
        let third = made("c", "2026-01-01T00:00:11.789Z");
        assert_eq!(repeated(&[second, third]), ["web Service api: said again 1 times under another key"]);
    }
}
