//! Keeps a report within its size: the least useful members are cut first, and the path of each is reported.
//!
//! In this order, until the rest fits: `metadata.managedFields`; the manifest that `kubectl` keeps of what it applied; what the
//! table of kinds calls heavy; then the largest members of `status`, `spec` and of the object itself. Its identity and what
//! tells of a phase or a step stay.

use serde_json::Value;

use crate::kind::KnownKind;
use crate::pointer::{self, Pointer};

/// The most members that are cut.
const MAX_CUTS: usize = 64;

/// Cuts `object` until its text has at most `limit` bytes; gives the text, and the paths that were cut. The text may be
/// larger still, where nothing is left to cut.
pub(crate) fn fit(object: &mut Value, kind: &KnownKind, limit: usize) -> (String, Vec<String>) {
    let (mut text, mut cut) = (object.to_string(), Vec::new());
    for pointer in Pointer::first_to_go().iter().chain(kind.heavy()) {
        if text.len() <= limit {
            return (text, cut);
        }
        let mut any = false;
        pointer::each(pointer.parts(), object, &mut |_| any = true);
        if any {
            pointer::remove(pointer.parts(), object);
            cut.push(pointer.to_string());
            text = object.to_string();
        }
    }
    while text.len() > limit && cut.len() < MAX_CUTS {
        let Some(largest) = largest(object, kind) else { break };
        pointer::remove(largest.parts(), object);
        cut.push(largest.to_string());
        text = object.to_string();
    }
    (text, cut)
}

/// The largest member that may be cut.
fn largest(object: &Value, kind: &KnownKind) -> Option<Pointer> {
    let members = object.as_object()?;
    let mut found: Vec<(usize, Pointer)> = Vec::new();
    let mut consider = |parts: &[&str], value: &Value| {
        let pointer = Pointer::of(parts);
        if !kind.tells_of_phase(&pointer) {
            found.push((value.to_string().len(), pointer));
        }
    };
    for (name, value) in members {
        match (name.as_str(), value) {
            ("apiVersion" | "kind", _) => {}
            ("metadata", Value::Object(metadata)) => {
                for name in ["annotations", "labels"] {
                    if let Some(value) = metadata.get(name) {
                        consider(&["metadata", name], value);
                    }
                }
            }
            ("metadata", _) => {}
            (name @ ("status" | "spec"), Value::Object(below)) => {
                below.iter().for_each(|(member, value)| consider(&[name, member], value));
            }
            (name, value) => consider(&[name], value),
        }
    }
    found.into_iter().max_by_key(|(size, _)| *size).map(|(_, pointer)| pointer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::known;

    #[test]
    fn what_is_of_least_use_goes_first_and_phases_and_names_stay() {
        let long = |length: usize| "x".repeat(length);
        let whole = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {
                "name": "build", "uid": "1", "managedFields": [long(500)],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": long(500), "a": "b"},
            },
            "spec": {"templates": [long(500)], "entrypoint": "main"},
            "status": {
                "phase": "Failed", "message": long(700), "storedTemplates": {"a": long(500)},
                "nodes": {"a": {"phase": "Failed", "outputs": {"result": long(500)}}}, "other": long(600),
            },
        });
        let kind = known("workflows.argoproj.io");
        let cut = |limit: usize| {
            let mut object = whole.clone();
            let (text, cut) = fit(&mut object, &kind, limit);
            assert_eq!(text, object.to_string());
            assert_eq!(object["status"]["phase"], "Failed");
            assert_eq!(object["metadata"]["name"], "build");
            (text.len() <= limit, cut.join(" "), object)
        };
        let size = whole.to_string().len();
        assert_eq!(cut(size).1, "");
        assert_eq!(cut(size - 1).1, "/metadata/managedFields");
        let two =
            "/metadata/managedFields /metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
        assert_eq!(cut(size - 600).1, two);
        let (fits, paths, object) = cut(1_300);
        assert!(fits);
        let heavy = "/status/storedTemplates /status/nodes/*/outputs /spec/templates /status/other";
        assert_eq!(paths, format!("{two} {heavy}"));
        assert_eq!(object["status"]["nodes"], json!({"a": {"phase": "Failed"}}));
        let (fits, _, object) = cut(10);
        assert!(!fits, "what identifies it and tells its phase is kept whatever the bound");
        assert_eq!(object["status"]["message"].as_str().map(str::len), Some(700));
    }
}
