//! The body of a fact: the members of a `status` that tell of a phase or a step, as a patch of a later state.

use bytes::Bytes;
use pipeline_redact::Redactor;
use serde_json::{Map, Value};

/// The most bytes of one text.
const MAX_TEXT: usize = 1024;
/// The most bytes of all members; further ones are left out.
const MAX_BODY: usize = 4096;

/// The members that `pointers` name, as a merge patch (RFC 7386): a member that is not there is null.
pub(crate) fn of<'p>(
    pointers: impl Iterator<Item = &'p [String]>,
    status: &Value,
    redactor: &Redactor,
) -> Bytes {
    let (mut patch, mut size) = (Map::new(), 0);
    for parts in pointers {
        // Facts are members of the status itself.
        let [name] = parts else { continue };
        let mut value = status.get(name).cloned().unwrap_or(Value::Null);
        shorten(&mut value, redactor);
        size += value.to_string().len();
        if size <= MAX_BODY {
            patch.insert(name.clone(), value);
        }
    }
    Value::Object(patch).to_string().into()
}

/// Redacts texts, and then cuts those that are long: a secret that was cut would not be recognised.
fn shorten(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            let mut redacted = redactor.text(text).into_owned();
            redacted.truncate(redacted.floor_char_boundary(MAX_TEXT));
            *text = redacted;
        }
        Value::Array(items) => items.iter_mut().for_each(|value| shorten(value, redactor)),
        Value::Object(members) => members.values_mut().for_each(|value| shorten(value, redactor)),
        _ => {}
    }
}

/// Applies the body of a fact to the `status` of an object; `false` if this version cannot read it.
pub(crate) fn apply(fact: &[u8], object: &mut Value) -> bool {
    let Ok(patch) = serde_json::from_slice::<Map<String, Value>>(fact) else { return false };
    let Some(object) = object.as_object_mut() else { return false };
    let status = object.entry("status").or_insert_with(|| Value::Object(Map::new()));
    let Some(status) = status.as_object_mut() else { return false };
    for (name, value) in patch {
        if value.is_null() { drop(status.remove(&name)) } else { drop(status.insert(name, value)) }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_former_phase_is_laid_over_a_later_state_and_what_was_not_there_goes() {
        let [phase, abort] = ["phase", "abort"].map(|name| [name.to_owned()]);
        let redactor = Redactor::new(b"k");
        let fact =
            of([&phase[..], &abort[..]].into_iter(), &json!({"phase": "Paused", "other": 1}), &redactor);
        let mut object = json!({"status": {"phase": "Degraded", "abort": true, "other": 2}});
        assert!(apply(&fact, &mut object));
        assert_eq!(object, json!({"status": {"phase": "Paused", "other": 2}}));
        assert!(!apply(b"no json", &mut object));
    }

    #[test]
    fn a_text_is_redacted_before_it_is_cut() {
        let secret = format!("{} password=hunter2-hunter2", "x".repeat(1_000));
        let message = ["message".to_owned()];
        let fact = of([&message[..]].into_iter(), &json!({"message": secret}), &Redactor::new(b"k"));
        let text = String::from_utf8(fact.to_vec()).unwrap();
        assert!(!text.contains("hunter2") && text.len() < 1_100, "{text}");
    }
}
