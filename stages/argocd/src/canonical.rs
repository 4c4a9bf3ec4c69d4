//! Canonical JSON: sorted members, so that equal values have equal digests whatever their order was.

use pipeline_core::Digest;
use serde_json::{Map, Value};

use crate::Sections;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Canonical text of a value.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(&mut out, value);
    out
}

/// Canonical text of an object without some of its members.
pub(crate) fn without(object: &Map<String, Value>, left_out: &[&str]) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    members(&mut out, object, |name, _| !left_out.contains(&name), write);
    out
}

/// Digests of what counts as a change of an application, per section.
pub(crate) fn sections(object: &Map<String, Value>) -> Sections {
    Sections {
        spec: section(object.get("spec"), |out, spec| {
            members(out, spec, |name, _| name != "project", write);
        }),
        status: section(object.get("status"), |out, status| {
            members(out, status, |name, _| may_count("status", name) && name != "conditions", write);
            conditions(out, status.get("conditions"));
        }),
        operation: section(object.get("operation"), |out, operation| {
            members(out, operation, |_, _| true, write);
        }),
        metadata: section(object.get("metadata"), metadata),
    }
}

/// Whether a member of `metadata` or `status` can make two objects differ in what counts, whatever its value.
pub(crate) fn may_count(section: &str, member: &str) -> bool {
    match section {
        "metadata" => !matches!(member, "resourceVersion" | "generation" | "generateName" | "managedFields"),
        "status" => member != "reconciledAt",
        _ => true,
    }
}

fn section(value: Option<&Value>, write_object: impl FnOnce(&mut Vec<u8>, &Map<String, Value>)) -> Digest {
    let mut out = Vec::with_capacity(4096);
    match value {
        None => {}
        Some(Value::Object(object)) => write_object(&mut out, object),
        Some(other) => write(&mut out, other),
    }
    Digest::of(&out)
}

fn conditions(out: &mut Vec<u8>, conditions: Option<&Value>) {
    match conditions {
        Some(Value::Array(all)) => {
            for condition in all {
                match condition {
                    Value::Object(condition) => {
                        members(out, condition, |name, _| name != "lastTransitionTime", write);
                    }
                    other => write(out, other),
                }
                out.push(b',');
            }
        }
        Some(other) => write(out, other),
        None => {}
    }
}

fn metadata(out: &mut Vec<u8>, metadata: &Map<String, Value>) {
    let counts = |name: &str, value: &Value| match name {
        // Whether an empty map stands or is absent does not count.
        "annotations" => value.as_object().is_none_or(|all| all.keys().any(|name| name != LAST_APPLIED)),
        _ => may_count("metadata", name),
    };
    members(out, metadata, counts, |out, value| match value {
        Value::Object(inner) if inner.contains_key(LAST_APPLIED) => {
            members(out, inner, |name, _| name != LAST_APPLIED, write);
        }
        other => write(out, other),
    });
}

fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Object(object) => members(out, object, |_, _| true, write),
        Value::Array(list) => {
            out.push(b'[');
            for item in list {
                write(out, item);
                out.push(b',');
            }
            out.push(b']');
        }
        scalar => scalar_text(out, scalar),
    }
}

fn members(
    out: &mut Vec<u8>,
    object: &Map<String, Value>,
    counts: impl Fn(&str, &Value) -> bool,
    write_value: impl Fn(&mut Vec<u8>, &Value),
) {
    let mut names: Vec<&String> = object.keys().collect();
    names.sort_unstable();
    out.push(b'{');
    for name in names {
        let Some(value) = object.get(name).filter(|value| counts(name, value)) else { continue };
        let _ = serde_json::to_writer(&mut *out, name);
        out.push(b':');
        write_value(out, value);
        out.push(b',');
    }
    out.push(b'}');
}

fn scalar_text(out: &mut Vec<u8>, scalar: &Value) {
    // Writing a scalar to memory cannot fail.
    let _ = serde_json::to_writer(out, scalar);
}
