//! `Status` objects and the other fixed texts of an API server.

use bytes::Bytes;
use serde_json::json;

use super::store::Collection;

/// The reason the API server gives for a status code.
fn reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    }
}

/// A failure `Status`.
pub(crate) fn status(code: u16, message: &str) -> Bytes {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason(code), "code": code,
    })
    .to_string()
    .into()
}

/// 410 for a continue token whose snapshot is compacted, with a token to go on inconsistently.
pub(crate) fn expired_token(token: &str) -> Bytes {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {"continue": token}, "status": "Failure",
        "message": "The provided continue parameter is too old to display a consistent list result. You can \
                    start a new list without the continue parameter.",
        "reason": "Expired", "code": 410,
    })
    .to_string()
    .into()
}

/// 410 for a watch or a list whose resourceVersion is compacted.
pub(crate) fn too_old(wanted: u64, oldest: u64) -> Bytes {
    status(410, &format!("too old resource version: {wanted} ({oldest})"))
}

/// 504 for a resourceVersion that is not there yet.
pub(crate) fn too_large(wanted: u64, newest: u64) -> Bytes {
    let message = format!("Timeout: Too large resource version: {wanted}, current: {newest}");
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "Timeout", "code": 504,
        "details": {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
    })
    .to_string()
    .into()
}

/// 404 for one object.
pub(crate) fn not_found(collection: Collection, name: &str) -> Bytes {
    let resource = collection.resource();
    let (group, plural) = match resource.split_once('.') {
        Some((plural, group)) => (group, plural),
        None => ("", resource),
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("{resource} \"{name}\" not found"), "reason": "NotFound", "code": 404,
        "details": {"name": name, "group": group, "kind": plural},
    })
    .to_string()
    .into()
}

/// One watch event's line.
pub(crate) fn event(kind: &str, object: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
}

/// A bookmark's line; `initial` ends the initial events of a streaming list.
pub(crate) fn bookmark(collection: Collection, version: u64, initial: bool, out: &mut Vec<u8>) {
    let mut metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
    if initial {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    let object =
        json!({"kind": collection.kind(), "apiVersion": collection.api_version(), "metadata": metadata});
    event("BOOKMARK", object.to_string().as_bytes(), out);
}
