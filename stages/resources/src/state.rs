//! What is remembered of an object, beside what was acknowledged: this stage's own part of a record.

use bytes::Bytes;
use pipeline_core::Record;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is remembered of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// `apiVersion`: a deletion that nobody watched is reported with it.
    #[serde(default)]
    pub(crate) api_version: String,
    /// `kind`, for the same.
    #[serde(default)]
    pub(crate) kind: String,
    /// It was of no use.
    #[serde(default, rename = "idle")]
    pub(crate) unused: bool,
}

impl State {
    pub(crate) fn new(object: &Value, unused: bool) -> Self {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { api_version: text("apiVersion"), kind: text("kind"), unused }
    }

    /// As it stands in a record.
    pub(crate) fn encode(&self) -> Bytes {
        // Texts alone: nothing of it can fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// What a record holds; of one that cannot be read, nothing.
    pub(crate) fn of(record: &Record) -> Self {
        serde_json::from_slice(&record.state).unwrap_or_default()
    }
}
