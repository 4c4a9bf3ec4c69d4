//! Errors that reporters tell beside an application: of its sync, and of the health of its resources and of what those made, such as a
//! pod that nobody reports by itself.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use stages_platform_store::ObjectAt;

use crate::view::application::Problem;

/// What is said beside an object.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    errors: Vec<Value>,
}

/// One of the errors.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Reported {
    r#type: String,
    level: String,
    message: String,
    last_seen: String,
    source_reference: Option<Reference>,
}

/// What it is of.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Reference {
    kind: String,
    name: String,
}

/// Those that were reported with an object; one that does not say when is of when that was. What cannot be read says nothing.
pub(super) fn reported(at: Option<&ObjectAt>, seen: Timestamp) -> Vec<Problem> {
    let details = at.and_then(|object| object.details.as_deref());
    let details: Details = details.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let one = |error: Value| {
        let Reported { r#type, level, message, last_seen, source_reference: of } =
            serde_json::from_value(error).ok()?;
        let of = of.unwrap_or_default();
        let resource = match (of.kind.is_empty(), &*r#type) {
            (false, _) => format!("{}/{}", of.kind, of.name),
            (true, "health") => "Health".to_owned(),
            (true, _) => "Sync".to_owned(),
        };
        let at = last_seen.parse().unwrap_or(seen);
        Some(Problem { at, error: level != "warning", message, resource: Some(resource) })
    };
    details.errors.into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_reported_beside_an_application_is_told_with_what_it_is_of() {
        let of = json!({"group": "", "version": "v1", "kind": "Pod", "name": "web-1", "namespace": "shop"});
        let details = json!({"appVersions": {}, "errors": [
            {"type": "health", "level": "error", "message": "Back-off", "lastSeen": "2026-11-26T10:00:00Z", "sourceReference": of},
            {"type": "sync", "level": "warning", "message": "appeared 2 times"},
            {"type": "health", "level": "error", "message": "late", "lastSeen": "odd", "sourceReference": null},
            7,
        ]});
        let seen: Timestamp = "2026-11-26T11:00:00Z".parse().unwrap();
        let object = |details: Option<String>| ObjectAt { details, ..ObjectAt::default() };
        let all = reported(Some(&object(Some(details.to_string()))), seen);
        let told: Vec<_> = all
            .iter()
            .map(|one| (one.resource.as_deref().unwrap(), one.error, &*one.message, one.at == seen))
            .collect();
        let expected = [
            ("Pod/web-1", true, "Back-off", false),
            ("Sync", false, "appeared 2 times", true),
            ("Health", true, "late", true),
        ];
        assert_eq!(told, expected);
        assert_eq!(reported(Some(&object(Some("[]".to_owned()))), seen).len(), 0);
        assert_eq!(reported(Some(&object(None)), seen).len() + reported(None, seen).len(), 0);
    }
}
