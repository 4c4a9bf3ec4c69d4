//! Walks a manifest and seals what is secret in it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::document::is_manifests;
use super::explain::Notes;
use super::names::{self, Class};
use super::occurrences::Occurrences;
use super::programs::Arguments;
use super::splice::Fragment;
use super::tree::Unreadable;
use super::{Redactor, packed, shape};

mod members;
mod owner;
mod secret_value;

use members::{
    Members, container, generated, is_captions, is_file_about, is_injected, is_keyring, is_list_of_users,
    is_logon_of_two_lines, is_logons, is_named_secret, is_naming, is_odd, is_pair_value, is_roll,
    is_tracking_id, lower, pair_is_secret, redis_command, repeatable,
};
pub(super) use members::{is_bare, is_key_reference, is_schema, stays};
pub(super) use secret_value::is_secret_value;
use secret_value::names_secret;

/// Levels of objects, arrays and texts within texts, together.
pub(super) const DEPTH: usize = 160;

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
    /// Bytes that may still be unpacked.
    pub(super) unpack: usize,
    /// What was replaced in the document that is read, piece by piece.
    pub(super) fragments: Vec<Fragment>,
    /// Bytes of it that are still kept. What is not kept is found by reading the document once more.
    pub(super) keeps: usize,
    /// Documents that are read, each within the one before.
    pub(super) open: usize,
    /// What tags refer to by name, as `!secret wifi_password` does: the tree holds the name alone.
    pub(super) tagged: HashSet<String>,
    /// What names the program that a container's arguments go to.
    program: Option<Arguments>,
    /// A patch is read that changes no Secret.
    configures: bool,
    pub(super) notes: Option<Notes>,
}

impl<'r> Walk<'r> {
    pub(super) fn new(redactor: &'r Redactor) -> Self {
        Self {
            redactor,
            changed: false,
            nested: 0,
            sealed: None,
            fragments: Vec::new(),
            keeps: 0,
            open: 0,
            tagged: HashSet::new(),
            unpack: packed::MOST,
            program: None,
            configures: false,
            notes: None,
        }
    }

    /// Notes what is replaced, for who asks.
    pub(super) fn note(&mut self, rule: &'static str) {
        if let Some(notes) = &mut self.notes {
            notes.add(rule);
        }
    }

    pub(super) fn step(&mut self, name: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.path.push(name());
        }
    }

    pub(super) fn back(&mut self) {
        if let Some(notes) = &mut self.notes {
            notes.path.pop();
        }
    }

    /// Redacts in place; whether anything changed.
    pub(super) fn redact(mut self, value: &mut Value) -> bool {
        self.visit(value, Place::Plain, 0);
        self.changed
    }

    pub(super) fn visit(&mut self, value: &mut Value, place: Place, depth: usize) {
        if depth > DEPTH {
            if !matches!(value, Value::Null | Value::Bool(_)) {
                self.note("nested too deep");
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
                    Place::Schema | Place::SecretSchema => owned(self.marked(text)),
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
        let members = Members::of(map);
        let pair = (members.named || members.patches) && pair_is_secret(map, self.configures);
        let refers = members.refers;
        let target = shape::member(map, "target").and_then(Value::as_object).map(shape::kind);
        let patches_secret = target.as_deref() == Some("secret");
        let configures = self.configures;
        self.configures = configures || target.as_deref() == Some("configmap");
        let program = self.program.take();
        if members.image
            && let Some(Value::String(image)) =
                map.get("image").filter(|_| map.contains_key("args") || map.contains_key("command"))
        {
            self.program = Some(container(image, map));
        } else if members.named && map.contains_key("args") {
            self.program = redis_command(map);
        }
        let web_key = members.web_key;
        for value in generated(map) {
            self.seal(value, Place::Secret, depth + 1);
        }
        let values = if whole { repeatable(map) } else { Vec::new() };
        for (name, value) in map.iter_mut() {
            self.step(|| name.clone());
            let lower = lower(name);
            let class = names::classify(name);
            let child = match (place, &*lower) {
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
                (Place::Annotations, _) if self.annotation(&lower, value, depth + 1) => {
                    self.back();
                    continue;
                }
                (_, "items") if kind == "secretlist" => Place::SecretItem,
                (_, "openapiv3schema") => Place::Schema,
                (Place::Schema | Place::SecretSchema, _) => {
                    self.schema_member(&lower, value, place, depth);
                    self.back();
                    continue;
                }
                (Place::Maker, "encrypteddata") if value.is_object() => Place::Keep,
                (Place::Maker, "template") => Place::Template,
                // Stores that hold values themselves, for tests: `{key, value}`.
                (Place::Maker, "value" | "valuemap") => Place::Clear,
                (_, "secretgenerator") => Place::Generator,
                (Place::Generator, "literals" | "data") => Place::Clear,
                (Place::Generator, "files" | "envs" | "env") => Place::Keep,
                (_, "auths") if is_logons(value) => Place::Clear,
                (_, "secretkey") if refers && !value.as_str().is_some_and(shape::is_key) => Place::Plain,
                // The private members of a JSON Web Key.
                (_, "d" | "p" | "q" | "dp" | "dq" | "qi" | "k") if web_key => Place::Secret,
                _ if pair && is_pair_value(name) => Place::Secret,
                (_, "patch") if patches_secret && self.operations(value, depth + 1) => {
                    self.back();
                    continue;
                }
                (_, "patch") if patches_secret && value.is_string() => Place::Clear,
                _ if class != Class::Plain && value.is_object() && is_schema(value) => Place::SecretSchema,
                _ if class != Class::Plain && is_key_reference(name, value) => Place::Keep,
                _ if value.as_object().is_some_and(is_named_secret) => Place::Keep,
                _ if value.as_str().is_some_and(|text| {
                    is_list_of_users(name, text) || is_logon_of_two_lines(&lower, text)
                }) =>
                {
                    Place::Secret
                }
                _ if is_captions(&lower, value) || is_naming(name, value) => Place::Keep,
                (_, "keys") if is_keyring(value) => Place::Secret,
                (_, "users" | "accounts" | "logins") if is_roll(value) => Place::Secret,
                // The file of a manifest, whatever the file is called.
                _ if class != Class::Plain
                    && (lower.ends_with(".yaml") || lower.ends_with(".yml"))
                    && value.as_str().is_some_and(is_manifests) =>
                {
                    Place::Plain
                }
                _ if class != Class::Plain
                    && value.as_str().is_some_and(|text| is_file_about(&lower, text)) =>
                {
                    Place::Plain
                }
                _ if class != Class::Plain
                    && value.as_str().is_some_and(|text| is_injected(&lower, text)) =>
                {
                    Place::Plain
                }
                _ if is_secret_value(name, class, value) => Place::Secret,
                _ if place == Place::Maker || shape::makes_secrets(&kind) => Place::Maker,
                (Place::Generator, _) => Place::Plain,
                _ => Place::Plain,
            };
            let plain = matches!(child, Place::Plain | Place::Maker);
            if plain && lower.starts_with("webhook") {
                self.hooks(value, depth + 1);
            }
            if plain {
                self.key_of_owner(name, value, depth + 1);
            }
            self.visit(value, child, depth + 1);
            self.back();
        }
        self.program = program;
        self.configures = configures;
        if let Some(annotations) =
            map.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
        {
            self.repeated(annotations, &values);
        }
        if members.odd {
            self.rename(map, |name| match is_odd(name) {
                true => owned(self.redactor.named(name)).map(|_| name.to_owned()),
                false => None,
            });
        }
    }

    /// Replaces the values of a Secret where its annotations repeat them.
    fn repeated(&mut self, annotations: &mut Value, values: &[String]) {
        let Some(values) = (!values.is_empty()).then(|| Occurrences::of(values)).flatten() else { return };
        for text in annotations.as_object_mut().into_iter().flat_map(Map::values_mut) {
            let Some(note) = text.as_str() else { continue };
            let found = |range| super::scan::Found::new(range, "repeated value");
            // Where it stands everywhere, nothing of the text is told.
            let found = values.within(note).map_or_else(
                || vec![found(0..note.len())],
                |hits| hits.iter().map(|hit| found(hit.range())).collect(),
            );
            if let Some(new) = owned(self.replace(note, &found)) {
                self.put(text, new);
            }
        }
    }

    /// Redacts only what is secret by its own shape.
    fn marked<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let found = super::text::secrets(text, false);
        self.replace(text, &found)
    }

    /// Keeps what was replaced, so that it is found again in the text.
    pub(super) fn keep(&mut self, old: &str, new: &str) {
        if self.keeps > 0 {
            self.keeps = self.keeps.saturating_sub(old.len());
            self.fragments.push(Fragment { old: old.to_owned(), new: new.to_owned() });
        }
    }

    pub(super) fn replace<'t>(&mut self, text: &'t str, found: &[super::scan::Found]) -> Cow<'t, str> {
        if let Some(notes) = &mut self.notes {
            notes.lines(text, found);
        }
        if self.keeps > 0 {
            for old in found.iter().filter_map(|found| text.get(found.range.clone())) {
                self.keep(old, &self.redactor.digest(old.as_bytes()));
            }
        }
        self.redactor.replace(text, found)
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
                    let refers = names::is_reference(property) || names::is_setting(property);
                    let secret =
                        place == Place::SecretSchema && !refers || names::classify(property) != Class::Plain;
                    let place = if secret { Place::SecretSchema } else { Place::Schema };
                    self.visit(schema, place, depth + 2);
                }
            }
            // What may be chosen: `enum: [plain, hashed]`.
            ("enum", Value::Array(items)) if items.iter().all(members::is_choice) => {}
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
            Err(Unreadable) => {
                self.note("unreadable");
                Some(self.redactor.withheld(text))
            }
        };
        if let Some(new) = new {
            self.put(value, new);
        }
        true
    }

    /// The operations of a JSON patch on a Secret, of which each says what it sets; whether `value` is one.
    fn operations(&mut self, value: &mut Value, depth: usize) -> bool {
        let Value::String(text) = &*value else { return false };
        let first = text.trim_start().trim_start_matches(['[', '-', '{', ' ', '\n', '"']);
        if !["op:", "op\"", "path:", "path\""].iter().any(|name| first.starts_with(name)) {
            return false;
        }
        let Ok(new) = self.nested_text(text, depth) else { return false };
        if let Some(new) = owned(new) {
            self.put(value, new);
        }
        true
    }

    fn array(&mut self, items: &mut [Value], place: Place, depth: usize) {
        let mut arguments = self.program.clone().unwrap_or_default();
        let mut first = Arguments::default();
        items.first().and_then(Value::as_str).into_iter().for_each(|name| first.program(name));
        let command = self.program.is_some()
            || first.is_known()
            || items.iter().any(|item| item.as_str().is_some_and(|item| item.starts_with(['-', '+'])));
        self.indexed(items, depth);
        for (number, item) in items.iter_mut().enumerate() {
            self.step(|| number.to_string());
            let part = match &*item {
                Value::String(text) if command => arguments.argument(text).map(|part| (part, text.len())),
                _ => None,
            };
            match part {
                Some((part, length)) if part == (0..length) => {
                    self.note("argument");
                    self.digest_leaf(item);
                }
                Some((part, _)) => {
                    let found = [super::scan::Found::new(part, "argument")];
                    if let Some(new) = item.as_str().map(|text| self.replace(text, &found).into_owned()) {
                        self.put(item, new);
                    }
                }
                // `providers: [{secret: saml-config, key: provider}]`.
                None if item
                    .as_object()
                    .is_some_and(|map| map.contains_key("key") && is_named_secret(map)) => {}
                None => self.visit(item, place, depth + 1),
            }
            self.back();
        }
    }

    /// Parameters of Helm of which one names what another holds: `env[1].name: DB_PASSWORD`, `env[1].value: x`.
    fn indexed(&mut self, items: &mut [Value], depth: usize) {
        let named: HashMap<String, String> = items.iter().filter_map(members::names_indexed).collect();
        if named.is_empty() {
            return;
        }
        for item in items {
            let name = item.get("name").and_then(Value::as_str).and_then(|name| named.get(name));
            if let (Some(name), Some(value)) = (name, item.get_mut("value"))
                && names_secret(name, value)
            {
                self.seal(value, Place::Secret, depth + 1);
            }
        }
    }

    fn digest_leaf(&mut self, value: &mut Value) {
        if let Value::String(text) = value {
            let text = std::mem::take(text);
            self.remember(&text);
            let digest = self.redactor.digest(text.as_bytes());
            self.keep(&text, &digest);
            self.put(value, digest);
        }
    }

    /// Replaces every leaf by its digest.
    fn seal(&mut self, value: &mut Value, place: Place, depth: usize) {
        if depth > DEPTH {
            self.note("nested too deep");
            return self.put(value, super::WITHHELD.to_owned());
        }
        let rule = match place {
            Place::Encoded => "data of a Secret",
            Place::Clear => "part of a Secret",
            _ => "value under a name",
        };
        match value {
            Value::Null => {}
            Value::Bool(_) if place == Place::Secret => {}
            Value::Bool(_) | Value::Number(_) => {
                let text = value.to_string();
                self.note(rule);
                self.remember(&text);
                let digest = self.redactor.digest(text.as_bytes());
                self.keep(&text, &digest);
                self.put(value, digest);
            }
            Value::String(text) => {
                if self.tagged.contains(text.as_str())
                    || shape::is_harmless(text)
                    || (place == Place::Secret && shape::is_switch(text))
                {
                    return;
                }
                self.note(rule);
                let digest = match place {
                    Place::Encoded => self.redactor.digest(&packed::decoded(text)),
                    _ => self.redactor.digest(text.as_bytes()),
                };
                let text = std::mem::take(text);
                self.remember(&text);
                self.keep(&text, &digest);
                self.put(value, digest);
            }
            Value::Array(items) => {
                for (number, item) in items.iter_mut().enumerate() {
                    self.step(|| number.to_string());
                    self.seal(item, place, depth + 1);
                    self.back();
                }
            }
            Value::Object(map) => {
                if map.len() == 1 && map.values().all(Value::is_null) {
                    // Of Jenkins, in no quotes: `password: {AQAAABAAAAAQ==}`.
                    self.note(rule);
                    self.rename(map, |name| shape::is_key(name).then(|| name.to_owned()));
                }
                for (name, value) in map.iter_mut() {
                    self.step(|| name.clone());
                    if place == Place::Secret && name == "stringData" {
                        // Of a Secret, of which no member stays.
                        self.seal(value, Place::Clear, depth + 1);
                    } else if place != Place::Secret || !stays(name, value) {
                        self.seal(value, place, depth + 1);
                    } else if value.is_string() {
                        // A logon may stand in it: `credentials: {uri: "postgres://app:x@db"}`.
                        self.visit(value, Place::Plain, depth + 1);
                    }
                    self.back();
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

pub(super) fn owned(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    }
}
