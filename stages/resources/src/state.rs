//! The state that this stage keeps of an object in its record.

use bytes::Bytes;
use pipeline_core::Record;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// `apiVersion`: a deletion that nobody watched is reported with it.
    #[serde(default)]
    pub(crate) api_version: String,
    /// `kind`, for the same.
    #[serde(default)]
    pub(crate) kind: String,
    /// Whether it was not reported on its own, since nothing of it ran or the filter did not take it.
    #[serde(default, rename = "idle")]
    pub(crate) unused: bool,
}

impl State {
    pub(crate) fn new(object: &Value, unused: bool) -> Self {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { api_version: text("apiVersion"), kind: text("kind"), unused }
    }

    /// The bytes of the state in a record.
    pub(crate) fn encode(&self) -> Bytes {
        // Strings and booleans can always be written as JSON.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// The state in a record; the default for one that cannot be read.
    pub(crate) fn of(record: &Record) -> Self {
        serde_json::from_slice(&record.state).unwrap_or_default()
    }
}
