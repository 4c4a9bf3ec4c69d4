//! A report with what stands in it as text opened up, so that it can be compared field by field.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pipeline_redact::Redactor;
use serde_json::{Map, Value};

use super::diff::at;
use super::predicates::is_now;

const ANNOTATION: &str = "app.meta.revisions-metadata";

/// What a report is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A report: manifests in it are JSON instead of text, and the object is no longer base64.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    data: Value,
}

impl View {
    /// Opens the value under `data`.
    pub(crate) fn of(data: &Value) -> Self {
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

    pub(crate) fn data(&self) -> &Value {
        &self.data
    }

    pub(crate) fn object(&self) -> &Value {
        self.data.get("object").unwrap_or(&Value::Null)
    }

    pub(crate) fn identity(&self) -> Identity {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("").to_owned();
        let object = self.object();
        Identity {
            api_version: text(object.get("apiVersion")),
            kind: text(object.get("kind")),
            namespace: text(object.pointer("/metadata/namespace")),
            name: text(object.pointer("/metadata/name")),
        }
    }

    pub(super) fn is_application(&self) -> bool {
        let identity = self.identity();
        identity.kind == "Application" && identity.api_version.starts_with("argoproj.io/")
    }

    /// The value at a path as differences name it.
    pub(super) fn at(&self, path: &str) -> Option<&Value> {
        at(&self.data, path)
    }

    /// The same with every secret replaced, as the product replaces them.
    pub(super) fn redacted(&self, redactor: &Redactor) -> Self {
        let mut data = self.data.clone();
        let of_source = |name: &str| format!("/source/{name}");
        for place in ["/object".to_owned(), of_source("actualManifest"), of_source("desiredManifest")] {
            if let Some(manifest) = data.pointer_mut(&place) {
                redactor.value(manifest);
            }
        }
        if let Some(Value::String(git)) = data.pointer_mut(&of_source("gitManifest")) {
            *git = redactor.raw(git).into_owned();
        }
        let text = |place: &mut Value| {
            if let Value::String(text) = place {
                *text = redactor.text(text).into_owned();
            }
        };
        for name in ["repoURL", "commitMessage", "commitAuthor", "healthMessage"] {
            data.pointer_mut(&of_source(name)).into_iter().for_each(text);
        }
        let errors = data.get_mut("errors").and_then(Value::as_array_mut);
        errors.into_iter().flatten().filter_map(|error| error.get_mut("message")).for_each(text);
        Self { data }
    }

    /// The same without `timestamp`, and with every "now" replaced.
    pub(super) fn timeless(&self, now: (&str, &str)) -> Value {
        let mut data = self.data.clone();
        if let Some(data) = data.as_object_mut() {
            data.remove("timestamp");
        }
        let hide = |value: Option<&mut Value>| {
            if let Some(value) = value.filter(|value| value.as_str().is_some_and(|text| is_now(text, now))) {
                *value = "now".into();
            }
        };
        for name in ["syncStartedAt", "syncFinishedAt"] {
            hide(data.pointer_mut(&format!("/source/{name}")));
        }
        for error in data.get_mut("errors").and_then(Value::as_array_mut).into_iter().flatten() {
            hide(error.get_mut("lastSeen"));
        }
        data
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
