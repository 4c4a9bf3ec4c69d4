//! A report as it was posted, opened.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A report, opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The payload.
    pub data: Value,
    /// The object in it.
    pub object: Value,
}

impl Report {
    /// Opens a payload; `None` when it is no report.
    #[must_use]
    pub fn open(payload: &[u8]) -> Option<Self> {
        let data: Value = serde_json::from_slice(payload).ok()?;
        Some(Self { object: object_of(&data)?, data })
    }

    /// A field of `source`; empty when it is not there.
    #[must_use]
    pub fn source(&self, field: &str) -> &str {
        self.data["source"][field].as_str().unwrap_or_default()
    }
}

/// The object that a payload holds as text.
#[must_use]
pub fn object_of(data: &Value) -> Option<Value> {
    let object = STANDARD.decode(data["object"].as_str()?).ok()?;
    serde_json::from_slice(&object).ok()
}

/// A text; empty when there is none.
#[must_use]
pub fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}
