//! `PATCH` of one object: a JSON merge patch (RFC 7386), as the API server takes it.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use pipeline_core::Key;
use serde_json::{Map, Value};

use super::store::{Collection, Object};
use super::{Shared, status};
use crate::fault::PeerResponse;

/// Merges the patch, unless it is of another incarnation. What changes nothing makes no new version.
pub(super) fn patch(
    shared: &Shared,
    collection: Collection,
    key: &Key,
    headers: &HeaderMap,
    body: &[u8],
) -> PeerResponse {
    if headers.get(CONTENT_TYPE).is_none_or(|kind| kind != "application/merge-patch+json") {
        return PeerResponse::new(
            415,
            status::status(415, "the body of the request was in an unknown format"),
        );
    }
    let Ok(patch) = serde_json::from_slice::<Value>(body) else {
        return PeerResponse::new(400, status::status(400, "the patch is no JSON"));
    };
    let mut store = shared.store();
    let Some(entry) = store.get(collection, key) else {
        return PeerResponse::new(404, status::not_found(collection, key.name()));
    };
    let mut text = Vec::new();
    entry.render(shared.fleet(), &mut text);
    let before: Value = serde_json::from_slice(&text).unwrap_or_default();
    let wanted = &patch["metadata"]["uid"];
    if !wanted.is_null() && *wanted != before["metadata"]["uid"] {
        return PeerResponse::new(409, status::status(409, "Precondition failed: UID in precondition"));
    }
    let mut after = before.clone();
    merge(&mut after, &patch);
    if after == before {
        return PeerResponse::ok(text);
    }
    let version = store.version() + 1;
    after["metadata"]["resourceVersion"] = version.to_string().into();
    let text = Bytes::from(after.to_string());
    store.put((collection, key.clone()), version, Object::Text(text.clone()));
    drop(store);
    shared.signals.send_modify(|signal| signal.version = signal.version.max(version));
    PeerResponse::ok(text)
}

fn merge(base: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *base = patch.clone();
        return;
    };
    if !base.is_object() {
        *base = Map::new().into();
    }
    for (name, value) in patch {
        match (value, base.as_object_mut()) {
            (Value::Null, Some(base)) => drop(base.remove(name)),
            (value, Some(base)) => merge(base.entry(name.clone()).or_insert(Value::Null), value),
            (_, None) => {}
        }
    }
}
