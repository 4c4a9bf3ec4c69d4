//! The names of objects.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Names an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reference {
    /// E.g. `apps/v1`, or `v1`.
    pub api_version: String,
    /// E.g. `Deployment`.
    pub kind: String,
    /// `None` for kinds without a namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Reference {
    /// Names an object; the texts are as in its YAML.
    #[must_use]
    pub fn new(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    /// The name of `object`; `None` when it has no `apiVersion`, `kind` or name.
    #[must_use]
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let (api_version, kind) = (text("/apiVersion")?, text("/kind")?);
        Some(Self::new(api_version, kind, text("/metadata/namespace"), text("/metadata/name")?))
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_version, kind, namespace, name } = self;
        match namespace {
            Some(namespace) => write!(f, "{api_version} {kind} {namespace}/{name}"),
            None => write!(f, "{api_version} {kind} {name}"),
        }
    }
}
