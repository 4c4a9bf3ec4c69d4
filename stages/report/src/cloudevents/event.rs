//! One event: its attributes as JSON or as headers, and what a receiver may rely on as a JSON schema.

use bytes::Bytes;
use pipeline_core::Shipment;
use serde_json::{Value, json};

use crate::envelope;

/// The attributes of an event, in the order in which they are written.
fn attributes(shipment: &Shipment, source: &str) -> Vec<(&'static str, String)> {
    let report = &shipment.report;
    let what = if report.ends { "ended" } else { "reported" };
    let mut all = vec![
        ("specversion", "1.0".to_owned()),
        ("id", shipment.idempotency_key.to_string()),
        ("source", source.to_owned()),
        ("type", format!("gitops-runtime.{}.{what}", report.kind.as_str())),
        ("subject", report.key.as_str().to_owned()),
    ];
    all.extend(envelope::traceparent(shipment).map(|trace| ("traceparent", trace)));
    all
}

/// The event as JSON: its payload is copied as it is.
pub(crate) fn structured(shipment: &Shipment, source: &str) -> Bytes {
    let mut text = String::from("{");
    for (name, value) in attributes(shipment, source) {
        text.push_str(&format!("\"{name}\":{},", Value::from(value)));
    }
    text.push_str("\"datacontenttype\":\"application/json\",\"data\":");
    [text.as_bytes(), &shipment.report.body, b"}"].concat().into()
}

/// The attributes as headers, in the way that the HTTP protocol binding escapes them.
pub(super) fn headers(shipment: &Shipment, source: &str) -> Vec<(&'static str, String)> {
    let named = |(name, value): (&'static str, String)| {
        let name = match name {
            "specversion" => "ce-specversion",
            "id" => "ce-id",
            "source" => "ce-source",
            "type" => "ce-type",
            "subject" => "ce-subject",
            _ => "ce-traceparent",
        };
        (name, escaped(&value))
    };
    attributes(shipment, source).into_iter().map(named).collect()
}

/// Printable ASCII but space, quotes and percent signs stays; all else is escaped, byte by byte.
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'"' | b'%' => out.push_str(&format!("%{byte:02X}")),
            byte if byte.is_ascii_graphic() => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// What every event is, as a JSON schema of the structured form, where `data` is that of its payload; a batch is a list of
/// these.
#[must_use]
pub fn schema(data: &Value) -> Value {
    let text = |about: &str| json!({"type": "string", "minLength": 1, "description": about});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A report of gitops-runtime as a CloudEvent 1.0",
        "description": "The structured form; in the binary form the attributes are `ce-` headers and `data` is the body, a batch \
                        is a list of these.",
        "type": "object",
        "required": ["specversion", "id", "source", "type", "subject", "datacontenttype", "data"],
        "properties": {
            "specversion": {"const": "1.0"},
            "id": text("The idempotency key of the report: with `source` it identifies the event, and a retry repeats both."),
            "source": text("This runtime, as it is configured."),
            "type": {
                "type": "string",
                "pattern": "^gitops-runtime\\.[a-z-]+\\.(reported|ended)$",
                "description": "What is reported, and whether it is the last report of its object.",
            },
            "subject": text("The key of the object: kind, namespace and name, such as rollout/shop/web."),
            "traceparent": text("W3C trace context."),
            "datacontenttype": {"const": "application/json"},
            "data": data,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_cannot_hold_is_escaped() {
        assert_eq!(escaped("rollout/shop/web"), "rollout/shop/web");
        assert_eq!(escaped("a \"b\" 100%\u{fc}"), "a%20%22b%22%20100%25%C3%BC");
    }
}
