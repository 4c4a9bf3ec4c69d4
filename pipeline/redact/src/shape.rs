//! Shapes of values: is it a Secret, a reference, a mask, a placeholder.

use serde_json::{Map, Value};

/// A member by its name, whatever its case; the spelling Kubernetes knows comes first.
pub(super) fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object.get(name).or_else(|| {
        object.iter().find(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value)
    })
}

/// The `kind` of an object, trimmed and in lower case; empty when it has none.
pub(super) fn kind(object: &Map<String, Value>) -> String {
    member(object, "kind")
        .and_then(Value::as_str)
        .map(|kind| kind.trim().to_ascii_lowercase())
        .unwrap_or_default()
}

/// Whether `object` carries the data of a Secret: by its kind, or by the type and the data that only
/// Secrets have.
pub(super) fn is_secret(object: &Map<String, Value>, kind: &str) -> bool {
    kind == "secret"
        || kind.is_empty()
            && member(object, "data").is_some()
            && member(object, "type").and_then(Value::as_str).is_some_and(|kind| {
                kind == "Opaque" || kind.starts_with("kubernetes.io/") || kind.starts_with("helm.sh/release")
            })
}

/// Members of a Secret that are no data.
pub(super) fn is_secret_frame(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "Kind" | "metadata" | "type" | "immutable" | "status")
}

/// Whether `value` only says where a secret is kept: names and keys, no values.
pub(super) fn is_reference(value: &Value) -> bool {
    match value {
        Value::String(text) => is_name(text),
        Value::Object(object) => {
            !object.is_empty() && object.iter().all(|(name, value)| is_reference_member(name, value))
        }
        Value::Array(items) => items.iter().all(|item| item.is_object() && is_reference(item)),
        _ => false,
    }
}

fn is_reference_member(name: &str, value: &Value) -> bool {
    match name {
        "name" | "secretName" | "namespace" | "key" | "kind" | "apiVersion" | "apiGroup" | "group"
        | "version" | "path" | "fieldPath" | "audience" | "uid" | "resourceVersion" => {
            value.is_null() || value.as_str().is_some_and(|text| text.is_empty() || is_name(text))
        }
        "optional" | "enabled" | "create" => value.is_boolean(),
        "defaultMode" | "mode" | "expirationSeconds" => value.is_number(),
        "items" => is_reference(value),
        _ if super::names::is_reference(name) => value.is_object() && is_reference(value),
        _ => false,
    }
}

/// Letters, digits and `-._/$(){}` only, at most 253 of them: names, keys and paths, and variables in them.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 253
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/:$(){}".contains(&byte))
}

/// Whether `text` hides nothing: empty, already redacted, Argo CD's mask, or only a reference to a value
/// that is filled in elsewhere (`$(NAME)`, `${NAME}`, `{{workflow.parameters.name}}`).
pub(super) fn is_harmless(text: &str) -> bool {
    text.is_empty() || is_mask(text) || is_redacted(text) || is_placeholder(text)
}

/// Argo CD's own mask: `+` signs alone, eight or more.
pub(super) fn is_mask(text: &str) -> bool {
    text.len() >= 8 && text.bytes().all(|byte| byte == b'+')
}

/// A keyed digest as this module writes it.
pub(super) fn is_redacted(text: &str) -> bool {
    text.strip_prefix(super::PREFIX).is_some_and(|hex| {
        hex.len() == super::DIGITS && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Words that say yes or no; they are switches, under whatever name.
pub(super) fn is_switch(text: &str) -> bool {
    ["true", "false", "yes", "no", "on", "off"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn is_placeholder(text: &str) -> bool {
    let variable = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    if let Some(name) = text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')')) {
        return variable(name);
    }
    if let Some(name) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
        return variable(name);
    }
    let Some(path) = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) else {
        return false;
    };
    let path = path.trim();
    path.contains('.')
        && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Whether a value under `auth`, `authorization` or `cookie` is a credential: anything but a switch or one
/// lower-case word (`basic`, `oidc`, `rbac`).
pub(super) fn is_credential(text: &str) -> bool {
    let word = text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_lowercase());
    let place = text.contains("://") && !text.contains('@');
    !(is_harmless(text) || is_switch(text) || word || place)
}

/// Whether a text speaks of a manifest of kind Secret, in YAML or JSON, however spaced and quoted.
pub(super) fn mentions_secret(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let quote = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '\\' | '!' | '&');
    lower.match_indices("kind").any(|(at, word)| {
        let rest = lower.get(at + word.len()..).unwrap_or_default().trim_start_matches(quote);
        rest.strip_prefix(':').is_some_and(|rest| {
            let value = rest.trim_start_matches(quote);
            value.strip_prefix("secret").is_some_and(|after| {
                after.starts_with("list") || !after.starts_with(|letter: char| letter.is_ascii_alphanumeric())
            })
        })
    })
}

/// Whether a text quotes a manifest of kind Secret together with data.
pub(super) fn dumps_secret(text: &str) -> bool {
    let kind = text.contains("kind") || text.contains("Kind");
    kind && (text.contains("ata\"") || text.contains("ata:") || text.contains("ata\\"))
        && mentions_secret(text)
}

/// Where the desired states of Secrets are kept inside other kinds: `template` of an ExternalSecret, a
/// SealedSecret and their kin.
pub(super) fn makes_secrets(kind: &str) -> bool {
    kind.contains("secret") && kind != "secret" && kind != "secretlist"
}
