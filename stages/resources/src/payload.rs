//! What stands under `data`: `{"object": <the object>}`, and `"deleted": true` beside the object when it is gone.

use bytes::Bytes;

/// The payload of an object's JSON text.
pub(crate) fn of(object: &str, deleted: bool) -> Bytes {
    let end = if deleted { ",\"deleted\":true}" } else { "}" };
    let mut payload = String::with_capacity(object.len() + 32);
    payload.push_str("{\"object\":");
    payload.push_str(object);
    payload.push_str(end);
    payload.into()
}
