//! A report with what stands in it as text opened up, so that it can be compared field by field.

use loadtest_sim::platform::ResourceKey;
use serde_json::{Map, Value};

use super::diff::at;
use super::report::{object_of, text};

const ANNOTATION: &str = "app.meta.revisions-metadata";

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
        if let Some(mut json) = object_of(&data)
            && let Some(object) = data.get_mut("object")
        {
            open_annotation(&mut json);
            *object = json;
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
    pub fn identity(&self) -> ResourceKey {
        let object = self.object();
        ResourceKey {
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
