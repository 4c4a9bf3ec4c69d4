//! A report with what stands in it as text opened up, so that it can be compared field by field.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::diff::at;

const ANNOTATION: &str = "app.meta.revisions-metadata";

/// What a report is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// `apiVersion` of the object.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A report: manifests in it are JSON instead of text, and the object is no longer base64.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    data: Value,
}

impl View {
    /// Opens the value under `data`.
    #[must_use]
    pub fn of(data: &Value) -> Self {
        let mut data = data.clone();
        if let Some(object) = data.get_mut("object") {
            let bytes = object.as_str().and_then(|text| STANDARD.decode(text).ok());
            if let Some(mut json) = bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()) {
                open_annotation(&mut json);
                *object = json;
            }
        }
        for name in ["actualManifest", "desiredManifest"] {
            let Some(manifest) = data.pointer_mut(&format!("/source/{name}")) else { continue };
            let json = manifest.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            if let Some(mut json) = json.filter(Value::is_object) {
                open_annotation(&mut json);
                *manifest = json;
            }
        }
        Self { data }
    }

    /// What was opened before.
    #[must_use]
    pub fn opened(data: Value) -> Self {
        Self { data }
    }

    /// All of it.
    #[must_use]
    pub fn data(&self) -> &Value {
        &self.data
    }

    /// The object; `null` when there is none.
    #[must_use]
    pub fn object(&self) -> &Value {
        self.data.get("object").unwrap_or(&Value::Null)
    }

    /// What it is about.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("").to_owned();
        let object = self.object();
        Identity {
            api_version: text(object.get("apiVersion")),
            kind: text(object.get("kind")),
            namespace: text(object.pointer("/metadata/namespace")),
            name: text(object.pointer("/metadata/name")),
        }
    }

    /// Whether it is about an application.
    #[must_use]
    pub fn is_application(&self) -> bool {
        let identity = self.identity();
        identity.kind == "Application" && identity.api_version.starts_with("argoproj.io/")
    }

    /// The value at a path as differences name it.
    #[must_use]
    pub fn at(&self, path: &str) -> Option<&Value> {
        at(&self.data, path)
    }
}

/// The annotation is JSON text: neither its order nor its escapes matter to who parses it.
fn open_annotation(manifest: &mut Value) {
    let annotations = manifest.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    let Some(text) = annotations.and_then(|all: &mut Map<String, Value>| all.get_mut(ANNOTATION)) else {
        return;
    };
    if let Some(json) = text.as_str().and_then(|text| serde_json::from_str(text).ok()) {
        *text = json;
    }
}
