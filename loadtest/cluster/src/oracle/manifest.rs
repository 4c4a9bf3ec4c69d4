//! Whether a reported manifest is the one that it should be, but for what redaction replaced.
//!
//! A digest may stand where a secret may: where the path, the name beside a value (`env`, Helm parameters), or the text
//! itself speaks of one. Anywhere else it is a difference: what redaction takes away without need is missing too.

use serde_json::{Map, Value};

use loadtest_judge::report::text;

/// What a redaction digest begins with, and how many hexadecimal digits follow.
const MARK: (&str, usize) = ("redacted:hmac-sha256:", 32);
/// What a text that cannot be read becomes as a whole.
const WITHHELD: &str = "# withheld: ";
/// Parts of words that speak of secrets,
const SECRET: [&str; 9] =
    ["secret", "token", "passw", "credential", "apikey", "api_key", "api-key", "bearer", "cookie"];
/// and whole words that do, as parts of them stand in others, such as `author`.
const WORDS: [&str; 10] = [
    "auth",
    "oauth",
    "authorization",
    "authentication",
    "private",
    "privatekey",
    "cert",
    "certs",
    "certificate",
    "certificates",
];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// More differences of one manifest are not told.
const TOLD: usize = 4;

/// What differs between an Application as it was reported and as it is.
pub(super) fn of_application(reported: &Value, is: &Value) -> Vec<String> {
    let (mut reported, mut is) = (reported.clone(), is.clone());
    for object in [&mut reported, &mut is] {
        without_bookkeeping(object);
        remove(object, "/metadata", &["generateName"]);
        remove(object, "/metadata/annotations", &[LAST_APPLIED, "app.meta.revisions-metadata"]);
        remove(
            object,
            "/metadata/labels",
            &["app.meta.commit-date", "app.meta.commit-author", "app.meta.commit-message"],
        );
        remove(object, "/status", &["reconciledAt"]);
        if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
            for condition in conditions {
                remove(condition, "", &["lastTransitionTime"]);
            }
        }
        drop_empty(object);
    }
    differences(&reported, &is)
}

/// What differs between a live object as it was reported and as it is now. Of an older state all counts but what may
/// change without a report.
pub(super) fn of_live(reported: &Value, is: &Value) -> Vec<String> {
    if reported.pointer("/metadata/resourceVersion") == is.pointer("/metadata/resourceVersion") {
        return of_state(reported, is);
    }
    let (mut reported, mut is) = (reported.clone(), is.clone());
    for object in [&mut reported, &mut is] {
        without_bookkeeping(object);
        remove(object, "", &["status"]);
        remove(object, "/metadata", &["labels", "annotations", "finalizers"]);
        drop_empty(object);
    }
    of_manifest(&reported, &is)
}

/// What differs between a live object as it was reported and the state that the cluster knows of the same version.
pub(super) fn of_state(reported: &Value, was: &Value) -> Vec<String> {
    let (mut reported, mut was) = (reported.clone(), was.clone());
    for object in [&mut reported, &mut was] {
        remove(object, "/metadata", &["managedFields", "selfLink"]);
    }
    of_manifest(&reported, &was)
}

/// What differs between a manifest as it was reported and as it is; of a Secret every value must be masked.
pub(super) fn of_manifest(reported: &Value, is: &Value) -> Vec<String> {
    if text(is.get("kind")) != "Secret" || text(is.get("apiVersion")) != "v1" {
        return differences(reported, is);
    }
    let (mut reported, mut is) = (reported.clone(), is.clone());
    let mut found = Vec::new();
    for part in ["data", "stringData"] {
        let none = Map::new();
        let keys = |object: &Value| -> Vec<String> {
            object[part].as_object().unwrap_or(&none).keys().cloned().collect()
        };
        if keys(&reported) != keys(&is) {
            found.push(format!("{part} has the keys {:?}, expected {:?}", keys(&reported), keys(&is)));
        }
        for (key, value) in reported[part].as_object().unwrap_or(&none) {
            let reported = value.as_str().unwrap_or_default();
            if !is_masked(reported) {
                found.push(format!("{part}.{key} is not masked"));
            }
            if reported.is_empty() && is[part][key].as_str() != Some("") {
                found.push(format!("{part}.{key} is lost"));
            }
        }
    }
    for object in [&mut reported, &mut is] {
        remove(object, "", &["data", "stringData"]);
        // It repeats the values.
        remove(object, "/metadata/annotations", &[LAST_APPLIED]);
        drop_empty(object);
    }
    found.extend(differences(&reported, &is));
    found
}

/// What the API server counts up by itself.
fn without_bookkeeping(object: &mut Value) {
    remove(object, "/metadata", &["resourceVersion", "generation", "managedFields", "selfLink"]);
}

fn remove(object: &mut Value, pointer: &str, names: &[&str]) {
    if let Some(map) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
        for name in names {
            map.remove(*name);
        }
    }
}

/// Removes members that say nothing, and then those that hold nothing else.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_empty);
            map.retain(|_, value| !is_empty(value));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Each place where two values differ, with what stands there; no more than a few.
pub(super) fn differences(reported: &Value, is: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk("", "", reported, is, &mut found);
    let more = found.len().saturating_sub(TOLD);
    found.truncate(TOLD);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found
}

/// `name` is that of the list's item that is looked at, such as an environment variable's.
fn walk(path: &str, name: &str, reported: &Value, is: &Value, found: &mut Vec<String>) {
    match (reported, is) {
        (Value::Object(left), Value::Object(right)) => {
            let name = right.get("name").and_then(Value::as_str).unwrap_or(name);
            let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let none = Value::Null;
                walk(&path, name, left.get(key).unwrap_or(&none), right.get(key).unwrap_or(&none), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                walk(&format!("{path}[{at}]"), name, left, right, found);
            }
        }
        (Value::String(left), Value::String(right)) if is_same(path, name, left, right) => {}
        (left, right) if left == right => {}
        (left, right) => found.push(format!("{path} is {}, expected {}", short(left), short(right))),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Whether a reported text is the expected one, but for digests where they may stand.
fn is_same(path: &str, name: &str, reported: &str, is: &str) -> bool {
    if reported == is {
        return true;
    }
    if !reported.contains(MARK.0) || !(speaks(path) || speaks(name) || speaks(is)) {
        return false;
    }
    if reported.starts_with(WITHHELD) || fits(reported, is) {
        return true;
    }
    // A text of settings (Helm values, a file in a ConfigMap) is written anew when something in it is replaced.
    let read = |text: &str| serde_saphyr::from_str::<Value>(text).ok().filter(|read| !read.is_string());
    match (read(reported), read(is)) {
        (Some(reported), Some(is)) => differences(&reported, &is).is_empty(),
        _ => false,
    }
}

/// Whether a path, a name or a text speaks of a secret.
fn speaks(text: &str) -> bool {
    let small = text.to_lowercase();
    // An address with a name and a password in it.
    SECRET.iter().any(|part| small.contains(part))
        || small.contains("://") && small.contains('@')
        || words(text).any(|word| WORDS.contains(&word.to_lowercase().as_str()))
}

/// The words of a text; that of `tlsCert` are two.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.flat_map(|part| {
        let letters: Vec<(usize, char)> = part.char_indices().collect();
        let begins = letters.windows(2).filter_map(|pair| match pair {
            [(_, before), (at, letter)] if before.is_lowercase() && letter.is_uppercase() => Some(*at),
            _ => None,
        });
        let bounds: Vec<usize> = [0].into_iter().chain(begins).chain([part.len()]).collect();
        let words: Vec<&str> = bounds
            .windows(2)
            .filter_map(|pair| match pair {
                [from, to] => part.get(*from..*to),
                _ => None,
            })
            .collect();
        words
    })
}

/// Whether a text with digests in place of something comes from another: each stands for one word, or a single one for all of it.
fn fits(reported: &str, is: &str) -> bool {
    if is_digest(reported) {
        return true;
    }
    let mut parts = reported.split(MARK.0);
    let Some(mut rest) = parts.next().and_then(|first| is.strip_prefix(first)) else { return false };
    for part in parts {
        let Some((digits, after)) = part.split_at_checked(MARK.1) else { return false };
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        // What follows a digest is looked for; the last one may have replaced the last word.
        let at = if after.is_empty() { Some(rest.len()) } else { rest.find(after) };
        let Some((gone, kept)) = at.filter(|at| *at > 0).and_then(|at| rest.split_at_checked(at)) else {
            return false;
        };
        if gone.contains(char::is_whitespace) {
            return false;
        }
        rest = kept.get(after.len()..).unwrap_or_default();
    }
    rest.is_empty()
}

/// Whether nothing of a value is left: Argo CD's mask, a digest, or nothing from the start.
fn is_masked(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'+') || is_digest(value)
}

/// Whether a text is a digest and nothing else.
fn is_digest(text: &str) -> bool {
    text.strip_prefix(MARK.0)
        .is_some_and(|digits| digits.len() == MARK.1 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
