//! Walks a manifest and seals what is secret in it.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Map, Value};

use super::names::{self, Class};
use super::tree::Unreadable;
use super::{Redactor, arguments, shape};

/// Levels of objects, arrays and texts within texts, together.
pub(super) const DEPTH: usize = 160;
/// Members that carry the value of a pair whose `name` or `key` says secret: environment variables, Helm and
/// plugin parameters, headers, workflow parameters, JSON patches.
const PAIR_VALUES: [&str; 14] = [
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

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Anywhere.
    Plain,
    /// A member of `metadata`.
    Metadata,
    /// An annotation.
    Annotations,
    /// An item of a SecretList, which need not say its kind.
    SecretItem,
    /// Below a kind that makes Secrets from a template.
    Maker,
    /// The `template` of such a kind.
    Template,
    /// A schema: its `properties` are names, not values.
    Schema,
    /// The schema of one property whose name says secret.
    SecretSchema,
    /// Below a name that says secret.
    Secret,
    /// The `data` of a Secret: base64 where it decodes.
    Encoded,
    /// The `stringData` of a Secret, or any other part that is secret without exception.
    Clear,
    /// An item of Kustomize's `secretGenerator`.
    Generator,
    /// What is encrypted for somebody else, or written by the API server without values.
    Keep,
}

pub(super) struct Walk<'r> {
    pub(super) redactor: &'r Redactor,
    pub(super) changed: bool,
    pub(super) nested: usize,
    /// Texts that were sealed, kept where an alias may carry one of them elsewhere.
    pub(super) sealed: Option<HashSet<String>>,
}

impl<'r> Walk<'r> {
    pub(super) fn new(redactor: &'r Redactor) -> Self {
        Self { redactor, changed: false, nested: 0, sealed: None }
    }

    /// Redacts in place; whether anything changed.
    pub(super) fn redact(mut self, value: &mut Value) -> bool {
        self.visit(value, Place::Plain, 0);
        self.changed
    }

    pub(super) fn visit(&mut self, value: &mut Value, place: Place, depth: usize) {
        if depth > DEPTH {
            if !matches!(value, Value::Null | Value::Bool(_)) {
                self.put(value, super::WITHHELD.to_owned());
            }
            return;
        }
        match (place, &mut *value) {
            (Place::Keep, _) => {}
            (Place::Secret | Place::Encoded | Place::Clear, _) => self.seal(value, place, depth),
            (_, Value::Object(map)) => self.object(map, place, depth),
            (_, Value::Array(items)) => self.array(items, place, depth),
            (_, Value::String(text)) => {
                let new = match place {
                    Place::Schema | Place::SecretSchema => owned(self.redactor.marked(text)),
                    _ => self.string(text, depth),
                };
                if let Some(new) = new {
                    self.put(value, new);
                }
            }
            _ => {}
        }
    }

    fn put(&mut self, value: &mut Value, new: String) {
        *value = Value::String(new);
        self.changed = true;
    }

    fn object(&mut self, map: &mut Map<String, Value>, place: Place, depth: usize) {
        let kind = shape::kind(map);
        let secret = place == Place::SecretItem || shape::is_secret(map, &kind);
        let whole = secret && shape::member(map, "metadata").is_some();
        let pair = pair_is_secret(map);
        let refers = map.contains_key("remoteRef") || map.contains_key("sourceRef");
        let patches_secret = shape::member(map, "target")
            .and_then(Value::as_object)
            .is_some_and(|target| shape::kind(target) == "secret");
        for (name, value) in map.iter_mut() {
            let lower = name.trim().to_ascii_lowercase();
            let child = match (place, lower.as_str()) {
                (_, "data") if secret || place == Place::Template => {
                    if place == Place::Template {
                        Place::Clear
                    } else {
                        Place::Encoded
                    }
                }
                (_, "stringdata") => Place::Clear,
                _ if whole && !shape::is_secret_frame(name) => Place::Clear,
                (Place::Metadata, "managedfields") if value.is_array() => Place::Keep,
                (_, "metadata") if value.is_object() => Place::Metadata,
                (Place::Metadata, "annotations") => Place::Annotations,
                (Place::Annotations, _) if self.annotation(&lower, value, depth + 1) => continue,
                (_, "items") if kind == "secretlist" => Place::SecretItem,
                (_, "openapiv3schema") => Place::Schema,
                (Place::Schema | Place::SecretSchema, _) => {
                    self.schema_member(&lower, value, place, depth);
                    continue;
                }
                (Place::Maker, "encrypteddata") if value.is_object() => Place::Keep,
                (Place::Maker, "template") => Place::Template,
                // Stores that hold values themselves, for tests: `{key, value}`.
                (Place::Maker, "value" | "valuemap") => Place::Clear,
                (_, "secretgenerator") => Place::Generator,
                (Place::Generator, "literals" | "data") => Place::Clear,
                (_, "auths") if value.is_object() => Place::Clear,
                (_, "secretkey") if refers => Place::Plain,
                _ if pair && PAIR_VALUES.contains(&name.as_str()) => Place::Secret,
                (_, "patch") if patches_secret && value.is_string() => Place::Clear,
                _ if names_secret(name, value) => Place::Secret,
                _ if place == Place::Maker || shape::makes_secrets(&kind) => Place::Maker,
                (Place::Generator, _) => Place::Plain,
                _ => Place::Plain,
            };
            self.visit(value, child, depth + 1);
        }
        self.rename(map, |name| match names::suspicious(name.as_bytes()) || name.len() > 16 {
            true => owned(self.redactor.marked(name)).map(|_| name.to_owned()),
            false => None,
        });
    }

    /// Seals names that are secrets themselves: `secret` gives the text to seal.
    pub(super) fn rename(&mut self, map: &mut Map<String, Value>, secret: impl Fn(&str) -> Option<String>) {
        let found: Vec<(String, String)> =
            map.keys().filter_map(|name| Some((name.clone(), secret(name)?))).collect();
        for (name, text) in found {
            if let Some(value) = map.remove(&name) {
                map.insert(self.redactor.digest(text.as_bytes()), value);
                self.changed = true;
            }
        }
    }

    fn schema_member(&mut self, name: &str, value: &mut Value, place: Place, depth: usize) {
        let secret = names_secret(name, value);
        match (name, &mut *value) {
            ("properties" | "patternproperties" | "definitions" | "$defs", Value::Object(properties)) => {
                for (property, schema) in properties.iter_mut() {
                    let secret = place == Place::SecretSchema || names::classify(property) != Class::Plain;
                    let place = if secret { Place::SecretSchema } else { Place::Schema };
                    self.visit(schema, place, depth + 2);
                }
            }
            ("default" | "example" | "examples" | "enum" | "const", _) => {
                let place = if place == Place::SecretSchema { Place::Secret } else { Place::Plain };
                self.visit(value, place, depth + 1);
            }
            // No keyword of schemas sounds secret: this is something else.
            _ if secret => self.visit(value, Place::Secret, depth + 1),
            _ => self.visit(value, place, depth + 1),
        }
    }

    /// Annotations with a meaning of their own; whether `value` is one.
    fn annotation(&mut self, name: &str, value: &mut Value, depth: usize) -> bool {
        let Value::String(text) = &*value else { return false };
        if name.ends_with("/tracking-id") && is_tracking_id(text) {
            return true;
        }
        if !name.contains("last-applied") {
            return false;
        }
        let new = match self.nested_text(text, depth) {
            Ok(new) => owned(new),
            Err(Unreadable) => Some(self.redactor.withheld(text)),
        };
        if let Some(new) = new {
            self.put(value, new);
        }
        true
    }

    fn array(&mut self, items: &mut [Value], place: Place, depth: usize) {
        let mut flag: Option<String> = None;
        for item in items {
            let passed = flag.take();
            match item {
                Value::String(text)
                    if passed.as_ref().is_some_and(|flag| arguments::takes_secret(flag, text)) =>
                {
                    self.seal(item, Place::Secret, depth + 1);
                }
                _ => {
                    if let Value::String(text) = &*item
                        && arguments::is_flag(text)
                    {
                        flag = Some(text.clone());
                    }
                    self.visit(item, place, depth + 1);
                }
            }
        }
    }

    /// Replaces every leaf by its digest.
    fn seal(&mut self, value: &mut Value, place: Place, depth: usize) {
        if depth > DEPTH {
            return self.put(value, super::WITHHELD.to_owned());
        }
        match value {
            Value::Null => {}
            Value::Bool(_) if place == Place::Secret => {}
            Value::Bool(_) | Value::Number(_) => {
                let text = value.to_string();
                self.remember(&text);
                self.put(value, self.redactor.digest(text.as_bytes()));
            }
            Value::String(text) => {
                if shape::is_harmless(text) || (place == Place::Secret && shape::is_switch(text)) {
                    return;
                }
                let digest = match place {
                    Place::Encoded => self.redactor.digest(&decoded(text)),
                    _ => self.redactor.digest(text.as_bytes()),
                };
                let text = std::mem::take(text);
                self.remember(&text);
                self.put(value, digest);
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.seal(item, place, depth + 1)),
            Value::Object(map) => {
                for (name, value) in map.iter_mut() {
                    if !(place == Place::Secret && names::is_reference(name) && shape::is_reference(value)) {
                        self.seal(value, place, depth + 1);
                    }
                }
            }
        }
    }

    fn remember(&mut self, text: &str) {
        if let Some(sealed) = &mut self.sealed
            && !text.is_empty()
        {
            sealed.insert(text.to_owned());
        }
    }
}

/// Whether the value under `name` is to be sealed.
fn names_secret(name: &str, value: &Value) -> bool {
    match names::classify(name) {
        Class::Plain => false,
        Class::Scalar => !value.is_object() && !value.is_array(),
        Class::Header => value.as_str().is_some_and(shape::is_credential),
        Class::Secret => match value {
            Value::Object(_) | Value::Array(_) => !(names::may_refer(name) && shape::is_reference(value)),
            _ => true,
        },
    }
}

/// Whether `map` is a pair whose name says secret, or a patch of a Secret's data.
fn pair_is_secret(map: &Map<String, Value>) -> bool {
    let says = |member: &str| {
        map.get(member).and_then(Value::as_str).is_some_and(|name| match names::classify(name) {
            Class::Plain => false,
            Class::Secret | Class::Scalar => true,
            Class::Header => map.get("value").and_then(Value::as_str).is_none_or(shape::is_credential),
        })
    };
    if ["name", "key", "Name", "Key"].into_iter().any(says) {
        return true;
    }
    map.contains_key("op")
        && map.get("path").and_then(Value::as_str).is_some_and(|path| {
            path.starts_with("/data")
                || path.starts_with("/stringData")
                || names::classify(path) != Class::Plain
        })
}

/// `<application>:<group>/<kind>:<namespace>/<name>`: a name, however much it sounds like a secret.
fn is_tracking_id(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    matches!(parts.as_slice(), [_, kind, name] if kind.contains('/') && name.contains('/'))
        && !text.contains(char::is_whitespace)
}

fn decoded(text: &str) -> Vec<u8> {
    let packed: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD
        .decode(&packed)
        .or_else(|_| STANDARD_NO_PAD.decode(&packed))
        .unwrap_or_else(|_| text.as_bytes().to_vec())
}

pub(super) fn owned(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    }
}
