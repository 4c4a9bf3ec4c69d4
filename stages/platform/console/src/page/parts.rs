//! A live manifest beside what Git says: what of it that names, and what it leaves to the cluster, such as the defaults that an
//! API server fills in, a status, or what a controller adds. Items of a list are no fields: one that Git does not have is a change.

use serde_json::{Map, Value};

use super::diff::clean;

/// Both manifests, parted; each is JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// What Git says, without fields that it names and leaves open.
    pub(crate) desired: String,
    /// What of the live one stands in a field that Git names.
    pub(crate) named: String,
    /// The rest of it, with the names of the items that it is within.
    pub(crate) unnamed: String,
    /// How many fields the rest has, each with all that is below it.
    pub(crate) fields: u64,
}

impl Parts {
    /// `None` where one of them is no object in JSON.
    pub(crate) fn of(desired: &str, live: &str) -> Option<Self> {
        let read = |text: &str| serde_json::from_str(text).ok().filter(Value::is_object);
        let (mut desired, mut live): (Value, Value) = (read(desired)?, read(live)?);
        clean(&mut live);
        close(&mut desired);
        let mut fields = 0;
        let (named, unnamed) = part(&desired, live, &mut fields);
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

/// What of a live value is named, and the rest of it if there is any.
fn part(desired: &Value, live: Value, count: &mut u64) -> (Value, Option<Value>) {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            let (mut named, mut unnamed) = (Map::new(), Map::new());
            for (name, field) in live {
                let Some(desired) = desired.get(&name) else {
                    *count += 1;
                    unnamed.insert(name, field);
                    continue;
                };
                let (own, rest) = part(desired, field, count);
                unnamed.extend(rest.map(|rest| (name.clone(), rest)));
                named.insert(name, own);
            }
            let rest = (!unnamed.is_empty()).then(|| unnamed.into());
            (named.into(), rest)
        }
        (Value::Array(desired), Value::Array(live)) => {
            let (mut named, mut unnamed) = (Vec::new(), Vec::new());
            for (place, item) in live.into_iter().enumerate() {
                let called = name(&item).cloned();
                let own = match &called {
                    Some(_) => desired.iter().find(|one| name(one) == called.as_ref()),
                    None => desired.get(place),
                };
                let (own, rest) = match own {
                    Some(desired) => part(desired, item, count),
                    None => (item, None),
                };
                named.push(own);
                unnamed.extend(rest.map(|rest| within(called, rest)));
            }
            let rest = (!unnamed.is_empty()).then(|| unnamed.into());
            (named.into(), rest)
        }
        (_, live) => (live, None),
    }
}

/// What tells an item of a list from the others.
fn name(item: &Value) -> Option<&Value> {
    item.get("name").filter(|name| name.is_string())
}

/// What is left of an item, with its name.
fn within(called: Option<Value>, mut rest: Value) -> Value {
    if let (Some(called), Some(fields)) = (called, rest.as_object_mut()) {
        fields.insert("name".to_owned(), called);
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
            Parts::of(&desired.to_string(), &live.to_string()).unwrap();
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
    fn what_is_no_object_in_json_is_not_parted() {
        for (desired, live) in [("kind: Deployment\n", "{}"), ("{}", "[]"), ("", "{}")] {
            assert_eq!(Parts::of(desired, live), None, "{desired} {live}");
        }
    }
}
