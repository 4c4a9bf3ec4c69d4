//! The manifests of an application at another revision than the one that it follows, and what a sync to it would make of live objects.

use std::collections::HashSet;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Manifests of one revision, as Argo CD made them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Rendered {
    #[serde(deserialize_with = "objects")]
    manifests: Vec<Value>,
}

/// A manifest: a text of JSON, which the fork of the incumbent has beside what Git says of it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Manifest {
    Text(String),
    OfFork {
        #[serde(rename = "compiledManifest")]
        compiled: String,
    },
}

/// Reads manifests as Argo CD writes them; null stands for none. Of several manifests of one object a sync takes the last, and so
/// does this; the fork writes some twice.
fn objects<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    let all = Option::<Vec<Manifest>>::deserialize(deserializer)?.unwrap_or_default();
    let read = |manifest: &Manifest| -> Result<Value, D::Error> {
        let (Manifest::Text(text) | Manifest::OfFork { compiled: text }) = manifest;
        serde_json::from_str(text).map_err(serde::de::Error::custom)
    };
    let mut objects = all.iter().rev().map(read).collect::<Result<Vec<Value>, D::Error>>()?;
    let mut seen = HashSet::new();
    objects.retain(|object| {
        let called = names(object);
        // Hooks need not have a name before they are made.
        called.last().is_some_and(String::is_empty) || seen.insert(called)
    });
    objects.reverse();
    Ok(objects)
}

/// An object by its group, kind, namespace and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectName<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> ObjectName<'a> {
    fn of(manifest: &'a Value) -> Self {
        let text = |pointer| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
        Self {
            group,
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        }
    }
}

impl Rendered {
    /// Takes the manifest of an object out, where there is one. One that says no namespace goes where the application does.
    pub(crate) fn take(&mut self, wanted: ObjectName<'_>) -> Option<Value> {
        let place = |wanted| self.manifests.iter().position(|manifest| ObjectName::of(manifest) == wanted);
        let index = place(wanted).or_else(|| place(ObjectName { namespace: "", ..wanted }))?;
        Some(self.manifests.remove(index))
    }

    /// What was not taken out, but hooks, which a sync runs and does not keep.
    pub(crate) fn rest(self) -> impl Iterator<Item = Value> {
        let is_hook = |manifest: &Value| {
            let annotations = manifest.pointer("/metadata/annotations").and_then(Value::as_object);
            annotations.is_some_and(|all| {
                all.contains_key("argocd.argoproj.io/hook") || all.contains_key("helm.sh/hook")
            })
        };
        self.manifests.into_iter().filter(move |manifest| !is_hook(manifest))
    }
}

/// The group, kind, namespace and name of a manifest.
pub(crate) fn names(manifest: &Value) -> [String; 4] {
    let ObjectName { group, kind, namespace, name } = ObjectName::of(manifest);
    [group, kind, namespace, name].map(str::to_owned)
}

/// Changes what a sync to `now` would make of an object into what one to `then` would: what differs between the two is changed, and
/// what the API server adds stays.
pub(crate) fn moved(made: &mut Value, now: &Value, then: &Value) {
    if now == then {
        return;
    }
    match (made, now, then) {
        (Value::Object(made), Value::Object(now), Value::Object(then)) => {
            made.retain(|key, _| then.contains_key(key) || !now.contains_key(key));
            for (key, then) in then {
                match (made.get_mut(key), now.get(key)) {
                    (Some(made), Some(now)) => moved(made, now, then),
                    _ => drop(made.insert(key.clone(), then.clone())),
                }
            }
        }
        (Value::Array(made), Value::Array(now), Value::Array(then)) => all_moved(made, now, then),
        (made, _, then) => *made = then.clone(),
    }
}

/// As [`moved`], of lists. Objects that have names are matched by them, as the API server merges them.
fn all_moved(made: &mut Vec<Value>, now: &[Value], then: &[Value]) {
    let lists = [made.as_slice(), now, then];
    let named = lists.iter().all(|list| list.iter().all(|one| name(one).is_some()));
    if named {
        let by = |list: &[Value], wanted: &Value| list.iter().find(|one| name(one) == name(wanted)).cloned();
        let one = |then: &Value| match (by(made, then), by(now, then)) {
            (Some(mut made), Some(now)) => {
                moved(&mut made, &now, then);
                made
            }
            _ => then.clone(),
        };
        let mut all: Vec<Value> = then.iter().map(one).collect();
        let is_others = |one: &Value| by(now, one).is_none() && by(then, one).is_none();
        all.extend(made.iter().filter(|one| is_others(one)).cloned());
        *made = all;
    } else if made.len() == now.len() && now.len() == then.len() {
        for (made, (now, then)) in made.iter_mut().zip(now.iter().zip(then)) {
            moved(made, now, then);
        }
    } else {
        *made = then.to_vec();
    }
}

fn name(value: &Value) -> Option<&str> {
    value.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_between_two_revisions_is_changed_and_what_the_api_server_added_stays() {
        let of = |mut made: Value, now: &Value, then: &Value| {
            moved(&mut made, now, then);
            made
        };
        let now = json!({"spec": {"replicas": 2, "paused": true, "containers": [{"name": "web", "image": "web:2"}]}});
        let then = json!({"spec": {"replicas": 1, "containers": [{"name": "web", "image": "web:1", "args": ["a"]}]}});
        let added = json!({"name": "added", "image": "mesh:1"});
        let made = json!({
            "metadata": {"uid": "u"},
            "spec": {
                "replicas": 2, "paused": true, "minReadySeconds": 0,
                "containers": [{"name": "web", "image": "web:2", "imagePullPolicy": "Always"}, added],
            },
        });
        let expected = json!({
            "metadata": {"uid": "u"},
            "spec": {
                "replicas": 1, "minReadySeconds": 0,
                "containers": [{"name": "web", "image": "web:1", "imagePullPolicy": "Always", "args": ["a"]}, added],
            },
        });
        assert_eq!(of(made.clone(), &now, &then), expected);
        assert_eq!(of(made.clone(), &now, &now), made, "nothing differs");
        // What somebody changed in the cluster is made as Git says by any sync.
        assert_eq!(of(json!(2), &json!(2), &json!(3)), json!(3));
        assert_eq!(of(json!({"a": 1}), &json!({}), &json!({"a": {"b": 1}})), json!({"a": {"b": 1}}));
    }

    #[test]
    fn lists_without_names_are_changed_in_their_places_or_replaced() {
        let of = |mut made: Value, now: Value, then: Value| {
            moved(&mut made, &now, &then);
            made
        };
        let port = |number: u16| json!({"port": number});
        let served = json!([{"port": 80, "protocol": "TCP"}]);
        assert_eq!(
            of(served.clone(), json!([port(80)]), json!([port(81)])),
            json!([{"port": 81, "protocol": "TCP"}])
        );
        let two = json!([port(80), port(81)]);
        assert_eq!(of(served, json!([port(80)]), two.clone()), two);
        assert_eq!(of(json!(["a", "b"]), json!(["a", "b"]), json!(["b"])), json!(["b"]));
    }

    #[test]
    fn an_object_is_found_by_its_names_also_where_its_manifest_says_no_namespace() {
        let manifest = |kind: &str, namespace: Option<&str>| {
            json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", "namespace": namespace}}).to_string()
        };
        let hook = json!({"kind": "Job", "metadata": {"name": "a", "annotations": {"helm.sh/hook": "post-install"}}});
        let answer = json!({
            "manifests": [manifest("Deployment", None), manifest("StatefulSet", Some("other")), hook.to_string()],
        });
        let mut rendered: Rendered = serde_json::from_value(answer).unwrap();
        let called = |kind, namespace| ObjectName { group: "apps", kind, namespace, name: "web" };
        assert_eq!(rendered.take(called("StatefulSet", "shop")), None);
        assert!(rendered.take(called("Deployment", "shop")).is_some());
        assert_eq!(rendered.take(called("Deployment", "shop")), None, "it was taken");
        let rest: Vec<[String; 4]> = rendered.rest().map(|one| names(&one)).collect();
        assert_eq!(rest, [["apps", "StatefulSet", "other", "web"].map(str::to_owned)]);
        let none: Rendered = serde_json::from_value(json!({"manifests": null})).unwrap();
        assert_eq!(none.rest().count(), 0);
    }

    #[test]
    fn manifests_of_the_fork_are_read_too_and_the_last_of_an_object_counts() {
        let manifest = |image: &str| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "image": image}).to_string()
        };
        let of_fork =
            |compiled: &str| json!({"compiledManifest": compiled, "rawManifest": "a: b", "path": "web.yaml"});
        let nameless = json!({"kind": "Job", "metadata": {"generateName": "job-"}}).to_string();
        let [one, two] = ["web:1", "web:2"].map(manifest);
        for manifests in [
            json!([one, two, nameless, nameless]),
            json!([of_fork(&one), of_fork(&two), of_fork(&nameless), of_fork(&nameless)]),
        ] {
            let mut rendered: Rendered = serde_json::from_value(json!({"manifests": manifests})).unwrap();
            let called = ObjectName { group: "apps", kind: "Deployment", namespace: "shop", name: "web" };
            let found = rendered.take(called).unwrap();
            assert_eq!(found["image"], "web:2");
            assert_eq!(rendered.rest().count(), 2, "those without a name alone");
        }
    }
}
