//! What the names of an object's members say of it and of each other.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::super::names::{self, Class};
use super::super::programs::Arguments;
use super::super::{prose, shape};

/// Members that carry the value of a pair whose `name` or `key` says secret: environment variables, Helm and
/// plugin parameters, headers, workflow parameters, JSON patches.
pub(super) const PAIR_VALUES: [&str; 14] = [
    "value",
    "Value",
    "values",
    "default",
    "defaultValue",
    "string",
    "stringValue",
    "array",
    "map",
    "enum",
    "literal",
    "plaintext",
    "plainText",
    "text",
];

/// Whether a member of what stands under a secret name is a reference to one, or a setting.
pub(super) fn stays(name: &str, value: &Value) -> bool {
    if names::is_reference(name) && shape::is_reference(value) {
        return !value.as_str().is_some_and(shape::is_key);
    }
    names::is_setting(name)
        && match value {
            Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => text.len() <= 64 && !shape::is_key(text) && !shape::is_password(text),
            _ => false,
        }
}

/// Whether the value under a secret name is the schema of one, as in OpenAPI.
pub(super) fn is_schema(value: &Value) -> bool {
    let Value::Object(map) = value else { return false };
    let types = ["string", "integer", "number", "boolean", "object", "array"];
    map.get("type").and_then(Value::as_str).is_some_and(|name| types.contains(&name))
        && map.keys().all(|name| {
            [
                "type",
                "title",
                "description",
                "format",
                "default",
                "example",
                "examples",
                "enum",
                "const",
                "pattern",
                "minLength",
                "maxLength",
                "minimum",
                "maximum",
                "nullable",
                "writeOnly",
                "readOnly",
                "properties",
                "items",
                "required",
                "additionalProperties",
                "$ref",
                "deprecated",
                "x-kubernetes-preserve-unknown-fields",
                "form",
                "hidden",
                "sensitive",
            ]
            .contains(&name.as_str())
        })
}

/// Which members an object has that say what its others are, in one pass over their names.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// It may be a pair.
    pub(super) named: bool,
    /// It may be a JSON patch.
    pub(super) patches: bool,
    pub(super) refers: bool,
    pub(super) image: bool,
    pub(super) web_key: bool,
    /// A name may be a secret itself.
    pub(super) odd: bool,
}

impl Members {
    pub(super) fn of(map: &Map<String, Value>) -> Self {
        let mut members = Self::default();
        for name in map.keys() {
            match name.as_str() {
                "name" | "key" | "Name" | "Key" => members.named = true,
                "op" => members.patches = true,
                "remoteRef" | "sourceRef" => members.refers = true,
                "image" => members.image = true,
                "kty" => members.web_key = true,
                name => members.odd = members.odd || is_odd(name),
            }
        }
        members
    }
}

/// Whether a name is more than a short word of letters, so that it could be a secret itself: of letters alone, from a
/// small one on, no row of the table is made below 28.
pub(super) fn is_odd(name: &str) -> bool {
    let word = name.len() < 28
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    !word && (name.len() > 16 || names::suspicious(name.as_bytes()))
}

/// A name, trimmed and in lower case.
pub(super) fn lower(name: &str) -> Cow<'_, str> {
    let name = name.trim();
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

/// Whether the value under a secret name says in which object, and under which key of it, one is kept.
pub(super) fn is_key_reference(value: &Value) -> bool {
    let Value::Object(map) = value else { return false };
    let object = ["name", "secret", "secretName", "secretKeyRef", "secretRef"]
        .iter()
        .any(|member| map.contains_key(*member));
    object
        && (map.contains_key("key") || map.contains_key("secretKeyRef") || map.contains_key("secretRef"))
        && shape::is_reference(value)
}

/// Whether the value under `name` is to be sealed.
pub(super) fn names_secret(name: &str, value: &Value) -> bool {
    is_secret_value(name, names::classify(name), value)
}

/// The same, of a name that was judged.
pub(super) fn is_secret_value(name: &str, class: Class, value: &Value) -> bool {
    match class {
        Class::Plain => false,
        Class::Scalar => {
            let locator = |text: &str| names::is_locator(name) && shape::holds_logon(text);
            !value.is_object()
                && !value.is_array()
                && !tells(name, value)
                && !value.as_str().is_some_and(locator)
        }
        Class::Key => match value {
            Value::String(text) => shape::is_key(text),
            Value::Array(items) => items.iter().any(|item| item.as_str().is_some_and(shape::is_key)),
            _ => false,
        },
        Class::Header => value.as_str().is_some_and(shape::is_credential),
        Class::Link => value.as_str().is_some_and(|text| {
            text.contains("://") && !text.contains(char::is_whitespace) && shape::is_secret_link(text)
        }),
        Class::Secret => match value {
            Value::Object(_) | Value::Array(_) => !(names::may_refer(name) && shape::is_reference(value)),
            Value::String(text) => {
                let locator = names::is_locator(name) && shape::holds_logon(text);
                let checksum = names::is_checksum(name) && shape::is_hash(text);
                !(locator || checksum || names::names_object(name, text) || tells(name, value))
            }
            _ => true,
        },
    }
}

/// Whether a text under a secret name is a sentence about it, as documentation has them.
fn tells(name: &str, value: &Value) -> bool {
    value.as_str().is_some_and(|text| {
        prose::is_label(text) || text.split_whitespace().count() >= 5 && prose::follows(name, text)
    })
}

/// What names the program of a container: its image, and its command.
pub(super) fn container(image: &str, map: &Map<String, Value>) -> Arguments {
    let mut program = Arguments::default();
    program.program(image);
    for item in map.get("command").and_then(Value::as_array).into_iter().flatten() {
        item.as_str().into_iter().for_each(|item| program.program(item));
    }
    program
}

/// Whether `map` is a pair whose name says secret, or a patch of a Secret's data.
pub(super) fn pair_is_secret(map: &Map<String, Value>) -> bool {
    let value = || PAIR_VALUES.iter().find_map(|member| map.get(*member));
    let class = |name: &str| match names::classify(name) {
        Class::Plain => false,
        Class::Secret | Class::Scalar => match value() {
            Some(value @ Value::String(_)) => names_secret(name, value),
            _ => true,
        },
        Class::Header => map.get("value").and_then(Value::as_str).is_none_or(shape::is_credential),
        Class::Key | Class::Link => value().is_some_and(|value| names_secret(name, value)),
    };
    if ["name", "key", "Name", "Key"]
        .into_iter()
        .any(|member| map.get(member).and_then(Value::as_str).is_some_and(class))
    {
        return true;
    }
    map.contains_key("op")
        && map.get("path").and_then(Value::as_str).is_some_and(|path| {
            let last =
                path.rsplit('/').find(|part| *part != "-" && !part.bytes().all(|byte| byte.is_ascii_digit()));
            path.starts_with("/data")
                || path.starts_with("/stringData")
                || last.is_some_and(|last| class(&last.replace("~1", "/")))
                || path.contains("/env/") && value().and_then(Value::as_str).is_some_and(shape::is_key)
        })
}

/// `<application>:<group>/<kind>:<namespace>/<name>`: a name, however much it sounds like a secret.
pub(super) fn is_tracking_id(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    matches!(parts.as_slice(), [_, kind, name] if kind.contains('/') && name.contains('/'))
        && !text.contains(char::is_whitespace)
}
