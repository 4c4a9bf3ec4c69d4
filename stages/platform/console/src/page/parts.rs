//! A live manifest beside what Git says: what of it that names, and what it leaves to the cluster, such as the defaults that an
//! API server fills in, a status, or what a controller adds. Items of a list are no fields: one that Git does not have is a change.
//! What Git named when the manifest was last applied, as the live one tells, and does not name any more is a change as well: the
//! next sync takes it away.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use super::diff::clean;

/// Where a live manifest tells what was applied last, as JSON in a text.
const APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// Both manifests, parted; each is JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// What Git says, without fields that it names and leaves open.
    pub(crate) desired: String,
    /// What of the live one stands in a field that Git names, or named when it was last applied.
    pub(crate) named: String,
    /// The rest of it, with the names of the items that it is within.
    pub(crate) unnamed: String,
    /// How many fields the rest has, each with all that is below it.
    pub(crate) fields: u64,
}

impl Parts {
    /// `None` where one of them is no object in JSON.
    pub(crate) fn of(desired: &str, live: &str, is_out_of_sync: bool) -> Option<Self> {
        let read = |text: &str| serde_json::from_str(text).ok().filter(Value::is_object);
        let (mut desired, mut live): (Value, Value) = (read(desired)?, read(live)?);
        // Where nothing differs, it may tell of long ago: whoever went over to applying at the server leaves it there.
        let applied = live.pointer(APPLIED).filter(|_| is_out_of_sync);
        let mut applied = applied.and_then(Value::as_str).and_then(read);
        // Whoever applies writes where, which Git need not say.
        if let Some(metadata) =
            applied.as_mut().and_then(|applied| applied.get_mut("metadata")?.as_object_mut())
        {
            metadata.remove("namespace");
        }
        clean(&mut live);
        close(&mut desired);
        applied.iter_mut().for_each(close);
        let mut fields = 0;
        let (named, unnamed) = part(&desired, applied.as_ref(), live, &mut fields);
        let unnamed = unnamed.unwrap_or_else(|| Map::new().into());
        Some(Self {
            desired: desired.to_string(),
            named: named.to_string(),
            unnamed: unnamed.to_string(),
            fields,
        })
    }
}

/// Takes out what is named and null: it says nothing of what is to be there.
fn close(desired: &mut Value) {
    match desired {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// What of a live value is named, by what is desired or by what was applied last, and the rest of it if there is any.
fn part(desired: &Value, applied: Option<&Value>, live: Value, count: &mut u64) -> (Value, Option<Value>) {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            let (mut named, mut unnamed) = (Map::new(), Map::new());
            for (name, field) in live {
                let applied = applied.and_then(|applied| applied.get(&name));
                let (own, rest) = match (desired.get(&name), applied.filter(|applied| says(applied))) {
                    (Some(desired), _) => part(desired, applied, field, count),
                    (None, Some(applied)) => part(applied, None, field, count),
                    (None, None) => {
                        *count += 1;
                        unnamed.insert(name, field);
                        continue;
                    }
                };
                unnamed.extend(rest.map(|rest| (name.clone(), rest)));
                named.insert(name, own);
            }
            let rest = (!unnamed.is_empty()).then(|| unnamed.into());
            (named.into(), rest)
        }
        (Value::Array(desired), Value::Array(live)) => {
            let mut desired = Items::of(desired);
            let mut applied = applied.and_then(Value::as_array).map(|applied| Items::of(applied));
            let (mut named, mut unnamed) = (Vec::new(), Vec::new());
            for (place, item) in live.into_iter().enumerate() {
                let applied = applied.as_mut().and_then(|applied| applied.take(place, &item));
                let (own, rest) = match desired.take(place, &item) {
                    Some(desired) => {
                        let called = name(&item).map(str::to_owned);
                        let (own, rest) = part(desired, applied, item, count);
                        (own, rest.map(|rest| within(called, rest)))
                    }
                    None => (item, None),
                };
                named.push(own);
                unnamed.extend(rest);
            }
            let rest = (!unnamed.is_empty()).then(|| unnamed.into());
            (named.into(), rest)
        }
        (_, live) => (live, None),
    }
}

/// Whether a field that was applied says anything: whoever applies writes annotations without any of them, too.
fn says(applied: &Value) -> bool {
    applied.as_object().is_none_or(|fields| !fields.is_empty())
}

/// The items of a list, each of which is the pair of one live item at most.
struct Items<'a> {
    all: &'a [Value],
    /// Those that have a name, in their order: several may have the same, such as all mounts of one volume.
    named: HashMap<&'a str, VecDeque<&'a Value>>,
}

impl<'a> Items<'a> {
    fn of(all: &'a [Value]) -> Self {
        let mut named: HashMap<_, VecDeque<_>> = HashMap::new();
        for item in all {
            if let Some(name) = name(item) {
                named.entry(name).or_default().push_back(item);
            }
        }
        Self { all, named }
    }

    /// The pair of a live item, asked for in their order: the first of its name that none before it had; of one without a name, what
    /// stands in its place.
    fn take(&mut self, place: usize, live: &Value) -> Option<&'a Value> {
        match name(live) {
            Some(name) => self.named.get_mut(name)?.pop_front(),
            None => self.all.get(place),
        }
    }
}

/// What tells an item of a list from the others.
fn name(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

/// What is left of an item, with its name.
fn within(called: Option<String>, mut rest: Value) -> Value {
    if let (Some(called), Some(fields)) = (called, rest.as_object_mut()) {
        fields.insert("name".to_owned(), called.into());
    }
    rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is desired, what of the live one that names, the rest, and how many fields that has.
    fn parted(desired: &Value, live: &Value) -> (Value, Value, Value, u64) {
        let Parts { desired, named, unnamed, fields } =
            Parts::of(&desired.to_string(), &live.to_string(), true).unwrap();
        let [desired, named, unnamed] =
            [desired, named, unnamed].map(|text| serde_json::from_str(&text).unwrap());
        (desired, named, unnamed, fields)
    }

    #[test]
    fn defaults_and_what_controllers_add_are_no_part_of_what_git_names() {
        let desired = json!({
            "kind": "Deployment", "metadata": {"name": "web", "creationTimestamp": null},
            "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}},
            "status": {},
        });
        let live = json!({
            "kind": "Deployment",
            "metadata": {
                "name": "web", "creationTimestamp": "2026-11-24T10:00:00Z", "resourceVersion": "7", "generation": 3,
                "managedFields": [], "annotations": {"deployment.kubernetes.io/revision": "3"},
            },
            "spec": {"replicas": 3, "revisionHistoryLimit": 10, "template": {"spec": {
                "containers": [{"name": "web", "image": "web:1", "imagePullPolicy": "IfNotPresent"}], "dnsPolicy": "ClusterFirst",
            }}},
            "status": {"readyReplicas": 3},
        });
        let (desired, named, unnamed, fields) = parted(&desired, &live);
        let own = |replicas: u32| {
            json!({
                "kind": "Deployment", "metadata": {"name": "web"},
                "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}},
                "status": {},
            })
        };
        assert_eq!((desired, named), (own(2), own(3)));
        let rest = json!({
            "metadata": {"creationTimestamp": "2026-11-24T10:00:00Z", "annotations": {"deployment.kubernetes.io/revision": "3"}},
            "spec": {"revisionHistoryLimit": 10, "template": {"spec": {
                "containers": [{"name": "web", "imagePullPolicy": "IfNotPresent"}], "dnsPolicy": "ClusterFirst",
            }}},
            "status": {"readyReplicas": 3},
        });
        assert_eq!((unnamed, fields), (rest, 6));
    }

    #[test]
    fn an_item_that_git_does_not_have_is_a_change_and_one_that_moved_is_found_by_its_name() {
        let desired =
            json!({"all": [{"name": "a", "of": 1}, {"name": "b"}], "ports": [{"port": 80}], "args": ["x"]});
        let live = json!({
            "all": [{"name": "side"}, {"name": "a", "of": 2, "more": true}, {"name": "b"}],
            "ports": [{"port": 80, "protocol": "TCP"}], "args": ["y", "z"],
        });
        let (_, named, unnamed, fields) = parted(&desired, &live);
        let own = json!({
            "all": [{"name": "side"}, {"name": "a", "of": 2}, {"name": "b"}], "ports": [{"port": 80}], "args": ["y", "z"],
        });
        let rest = json!({"all": [{"name": "a", "more": true}], "ports": [{"protocol": "TCP"}]});
        assert_eq!((named, unnamed, fields), (own, rest, 2));
    }

    #[test]
    fn items_of_the_same_name_are_paired_in_their_order() {
        let mount = |path: &str, of: &str| json!({"name": "data", "mountPath": path, "subPath": of});
        let (a, b) = (mount("/a", "a"), mount("/b", "b"));
        let both = json!({"volumeMounts": [a, b]});
        assert_eq!(parted(&both, &both), (both.clone(), both.clone(), json!({}), 0));
        // Something was put before them, and the API server filled in a field of each.
        let defaulted = |mut one: Value| {
            one["readOnly"] = false.into();
            one
        };
        let moved = json!({"volumeMounts": [{"name": "token"}, defaulted(a.clone()), defaulted(b.clone())]});
        let (_, named, unnamed, fields) = parted(&both, &moved);
        let rest = json!({"name": "data", "readOnly": false});
        assert_eq!(named, json!({"volumeMounts": [{"name": "token"}, a, b]}));
        assert_eq!((unnamed, fields), (json!({"volumeMounts": [rest, rest]}), 2));
        // One more of a name than Git has is whole.
        let more = json!({"volumeMounts": [a, b, mount("/c", "c")]});
        assert_eq!(parted(&both, &more), (both, more, json!({}), 0));
    }

    #[test]
    fn each_of_many_items_finds_the_one_of_its_name() {
        let all = |from: usize| {
            let item = |number: usize| json!({"name": format!("item-{}", (number + from) % 80_000)});
            json!({"items": (0..80_000).map(item).collect::<Vec<_>>()})
        };
        let (desired, live) = (all(0), all(40_000));
        let (_, named, unnamed, fields) = parted(&desired, &live);
        assert!(named == live && unnamed == json!({}) && fields == 0);
    }

    #[test]
    fn what_was_applied_last_and_git_does_not_name_any_more_is_a_change() {
        let of = |limits: Option<&str>, data: Value, annotations: Value| {
            let mut container = json!({"name": "web", "image": "web:1"});
            if let Some(memory) = limits {
                container["resources"] = json!({"limits": {"memory": memory}});
            }
            json!({"metadata": {"name": "web", "annotations": annotations}, "data": data, "containers": [container]})
        };
        let mut desired = of(None, json!({"a": "1"}), Value::Null);
        desired["metadata"]["creationTimestamp"] = Value::Null;
        let mut applied = of(Some("1Gi"), json!({"a": "1", "b": "2"}), json!({}));
        applied["metadata"]["creationTimestamp"] = Value::Null;
        let live = |applied: &str| {
            let annotations = json!({
                "kubectl.kubernetes.io/last-applied-configuration": applied, "deployment.kubernetes.io/revision": "3",
            });
            let mut live = of(Some("1Gi"), json!({"a": "1", "b": "2", "c": "3"}), annotations);
            live["metadata"]["creationTimestamp"] = "2026-11-24T10:00:00Z".into();
            live["containers"][0]["resources"]["requests"] = json!({"memory": "1Gi"});
            live
        };
        let rest = json!({
            "metadata": {"creationTimestamp": "2026-11-24T10:00:00Z", "annotations": {"deployment.kubernetes.io/revision": "3"}},
            "data": {"c": "3"}, "containers": [{"name": "web", "resources": {"requests": {"memory": "1Gi"}}}],
        });
        let (_, named, unnamed, fields) = parted(&desired, &live(&applied.to_string()));
        let removed = json!({
            "metadata": {"name": "web"}, "data": {"a": "1", "b": "2"},
            "containers": [{"name": "web", "image": "web:1", "resources": {"limits": {"memory": "1Gi"}}}],
        });
        assert_eq!((named, unnamed, fields), (removed, rest, 4));
        // What cannot be read tells nothing of what was applied.
        for odd in ["", "{", "[]", "redacted:hmac-sha256:9f2c"] {
            let (desired, named, ..) = parted(&desired, &live(odd));
            assert_eq!(named, desired, "{odd}");
        }
    }

    #[test]
    fn what_is_no_object_in_json_is_not_parted() {
        for (desired, live) in [("kind: Deployment\n", "{}"), ("{}", "[]"), ("", "{}")] {
            assert_eq!(Parts::of(desired, live, true), None, "{desired} {live}");
        }
    }
}
