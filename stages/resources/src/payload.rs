//! The `data` of a report: `{"object": <the object>}`, and beside the object, each only where there is something to say:
//! `"deleted": true` when it is gone; `"nodes"`, what became of the compressed nodes of a Workflow; `"cut"`, the paths of what
//! was too large; `"application": {"name", "namespace", "project", "revision"}`, the Argo CD application that it belongs to.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::application::Application;
use crate::nodes::Nodes;

/// The payload of an object's JSON text.
pub(crate) fn of(object: &str, deleted: bool, nodes: Option<Nodes>, cut: &[String]) -> Bytes {
    let mut payload = String::with_capacity(object.len() + 64);
    payload.push_str("{\"object\":");
    payload.push_str(object);
    if deleted {
        payload.push_str(",\"deleted\":true");
    }
    if let Some(nodes) = nodes {
        payload.push_str(&format!(",\"nodes\":\"{}\"", nodes.as_str()));
    }
    if !cut.is_empty() {
        payload.push_str(&format!(",\"cut\":{}", Value::from(cut)));
    }
    payload.push('}');
    payload.into()
}

/// The same with the application that the object belongs to.
pub(crate) fn with_application(payload: &Bytes, application: &Application) -> Bytes {
    let Some(open) = payload.strip_suffix(b"}") else { return payload.clone() };
    let application = application.to_json().to_string();
    [open, b",\"application\":", application.as_bytes(), b"}"].concat().into()
}

/// What stands under `data` in every report of an object, as a JSON schema.
#[must_use]
pub fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["object"],
        "properties": {
            "object": {
                "type": ["object", "string"],
                "description": "The object as the API server showed it, secrets replaced; as base64 in reports of \
                                applications.",
            },
            "deleted": {"description": "True when the object is gone."},
            "nodes": {
                "enum": ["decompressed", "offloaded", "too-large", "unreadable"],
                "description": "What became of the compressed nodes of a Workflow.",
            },
            "cut": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Paths of what was cut, as the object was too large.",
            },
            "application": {
                "type": "object",
                "required": ["name", "namespace", "project", "revision"],
                "properties": {
                    "name": {"type": "string"},
                    "namespace": {"type": "string"},
                    "project": {"type": "string"},
                    "revision": {"type": "string"},
                },
                "description": "The Argo CD application that the object belongs to.",
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_to_say_stands_beside_the_object_and_nothing_else() {
        assert_eq!(of("{}", false, None, &[]), "{\"object\":{}}");
        assert_eq!(of("{}", true, None, &[]), "{\"object\":{},\"deleted\":true}");
        let cut = ["/a".to_owned(), "/b\"".to_owned()];
        let all = of("{}", false, Some(Nodes::Offloaded), &cut);
        assert_eq!(all, r#"{"object":{},"nodes":"offloaded","cut":["/a","/b\""]}"#);
        let application = Application {
            namespace: "argocd".to_owned(),
            name: "shop".to_owned(),
            project: "default".to_owned(),
            revision: "abc".to_owned(),
        };
        assert_eq!(
            with_application(&of("{}", false, None, &[]), &application),
            r#"{"object":{},"application":{"name":"shop","namespace":"argocd","project":"default","revision":"abc"}}"#
        );
    }
}
