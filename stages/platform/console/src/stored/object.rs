//! What an application's object says of its resources and of what is wrong.
//!
//! takes: an object, as it was reported - gives: what pages show of it - fails: never; what is null or odd of it is as good as not
//! there, and takes nothing else away: it is taken in as it stands

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use stages_platform_store::ObjectAt;

/// Of an application's object.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Object {
    pub(super) spec: Value,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Status,
}

/// How it is.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    #[serde(deserialize_with = "each")]
    pub(super) resources: Vec<Entry>,
    #[serde(deserialize_with = "each")]
    pub(super) conditions: Vec<Condition>,
    #[serde(deserialize_with = "lenient")]
    pub(super) operation_state: Operation,
}

/// A resource that it lists.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Entry {
    #[serde(deserialize_with = "lenient")]
    pub(super) group: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) namespace: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) health: EntryHealth,
}

/// How a resource is.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct EntryHealth {
    #[serde(deserialize_with = "lenient")]
    pub(super) status: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: String,
}

/// What is wrong with it, or is to be known.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(deserialize_with = "lenient")]
    pub(super) r#type: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) last_transition_time: Option<Timestamp>,
}

/// Its last operation.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Operation {
    #[serde(deserialize_with = "lenient")]
    pub(super) phase: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) finished_at: Option<Timestamp>,
    #[serde(deserialize_with = "lenient")]
    pub(super) sync_result: SyncResult,
}

/// What that came to.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct SyncResult {
    #[serde(deserialize_with = "each")]
    pub(super) resources: Vec<Synced>,
}

/// What it came to of one resource.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Synced {
    #[serde(deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) hook_phase: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: String,
}

impl Object {
    /// What cannot be read of it says nothing.
    pub(super) fn of(object: &ObjectAt) -> Self {
        object.object.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

/// For what is null or of another kind, in a type of which the rest counts all the same.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// The same of a list, without what is none of its entries.
fn each<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let Value::Array(all) = Value::deserialize(deserializer)? else { return Ok(Vec::new()) };
    Ok(all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_null_or_odd_of_an_object_takes_nothing_else_away() {
        let of = |status: Value| {
            let object = json!({"spec": {"project": "shop"}, "status": status}).to_string();
            Object::of(&ObjectAt { object: Some(object), ..ObjectAt::default() })
        };
        let read = of(json!({
            "resources": [
                {"kind": "ClusterRole", "name": "web", "namespace": null, "health": null, "status": "Synced"},
                {"kind": "Service", "name": "web", "namespace": "shop", "status": 7},
                "odd",
            ],
            "conditions": [{"type": "SyncError", "message": "late", "lastTransitionTime": "yesterday"}, null],
            "operationState": {"phase": "Failed", "message": null, "finishedAt": null, "syncResult": {"resources": null}},
        }));
        let names: Vec<_> = read.status.resources.iter().map(|one| (&*one.kind, &*one.namespace)).collect();
        assert_eq!(names, [("ClusterRole", ""), ("Service", "shop")]);
        assert_eq!(read.status.resources[0].status, "Synced");
        let [condition] = &read.status.conditions[..] else { panic!("one condition") };
        assert_eq!((&*condition.message, condition.last_transition_time), ("late", None));
        let operation = &read.status.operation_state;
        assert_eq!((&*operation.phase, operation.sync_result.resources.len()), ("Failed", 0));
        assert_eq!(read.spec["project"], "shop");
        for status in [Value::Null, json!([]), json!({"resources": null, "operationState": null})] {
            let read = of(status);
            assert_eq!((read.status.resources.len(), &read.spec["project"]), (0, &json!("shop")));
        }
    }
}
