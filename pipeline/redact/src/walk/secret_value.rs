//! Whether what stands under a name that says secret is one: a value, or what refers to it, asks for it or tells of it.

use serde_json::{Map, Value};

use super::super::names::{self, Class};
use super::super::words::{COMPONENT, OBJECTS};
use super::super::{prose, shape, tree};
use super::members::is_bare;

/// Whether a text under a secret name is a document that only says where secrets are kept.
fn only_refers(text: &str) -> bool {
    let bare = |map: &Map<String, Value>| map.iter().all(|(name, value)| is_bare(name, value));
    let refers = |one: &Value| match one {
        Value::Array(items) => items.iter().all(|item| item.as_object().is_some_and(bare)),
        one => one.as_object().is_some_and(bare),
    };
    text.trim_end().contains('\n')
        && tree::yaml(text).is_ok_and(|all| !all.is_empty() && all.iter().all(refers))
}

/// Whether a text is the settings of a program in Python, one in each line: `ROW_LIMIT = 5000`.
fn is_settings(text: &str) -> bool {
    let setting = |line: &str| {
        line.is_empty()
            || ["#", "from ", "import "].iter().any(|begin| line.starts_with(begin))
            || line.split_once(" = ").is_some_and(|(name, _)| {
                name.len() > 2
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'0'..=b'9'))
            })
    };
    text.trim_end().contains('\n') && text.lines().all(|line| setting(line.trim_end()))
}

/// Whether a text is a password file of PostgreSQL, in each line of which the table finds the password: `host:5432:db:user:x`.
fn lists_logons(name: &str, text: &str) -> bool {
    let found = |line: &str| {
        let fields: Vec<&str> = line.splitn(5, ':').collect();
        let plain = |field: &&str| !field.is_empty() && !field.contains('/');
        let whole = |byte: u8| byte.is_ascii_graphic() && !b"\"'`<>".contains(&byte);
        matches!(fields.as_slice(), [_, "5432" | "5433" | "6432" | "*", _, _, password] if !password.is_empty())
            && fields.iter().take(4).all(plain)
            && line.bytes().all(whole)
            && !line.contains("://")
    };
    names::may_end(name, "pgpass") && !text.trim().is_empty() && text.lines().all(found)
}

/// Whether the value under `name` is to be sealed.
pub(super) fn names_secret(name: &str, value: &Value) -> bool {
    is_secret_value(name, names::classify(name), value)
}

/// The same, of a name that was judged.
pub(in super::super) fn is_secret_value(name: &str, class: Class, value: &Value) -> bool {
    let holds = |value: &Value| value.as_str().is_some_and(|text| class.holds(name, text));
    // A command that reads as a pair: `curl -H "X-Token: $TOKEN" "$URL"`.
    let filled = || {
        let quoted = value.as_str().and_then(|text| text.split_once('"'));
        name.matches('"').count() % 2 == 1 && quoted.is_some_and(|(text, _)| shape::is_harmless(text))
    };
    match (class, value) {
        (Class::Plain, _) => false,
        (_, Value::String(_)) if filled() => false,
        // `secrets: [db_password, web-tls]` lists names.
        (Class::Secret, Value::Array(items))
            if items.iter().all(labels_one)
                && (lists_secrets(name) && items.iter().any(names_one) || name.contains("FromSecret")) =>
        {
            false
        }
        // `secret: [RAILS_MASTER_KEY, DB_PASSWORD]`, of a program that takes them from its environment.
        (Class::Secret, Value::Array(items)) if !items.is_empty() && items.iter().all(names_variable) => {
            false
        }
        // What refers to its secrets: `apikey: {account: x, apiKeyRef: {name: y, key: z}}`.
        (Class::Secret, Value::Object(map)) if only_refers_beside_words(map) => false,
        (Class::Secret, Value::Object(map))
            if names::is_locator(name)
                && map.values().all(|value| value.as_str().is_some_and(shape::holds_logon)) =>
        {
            false
        }
        // The settings of a component that is called so: `redisSecretInit: {image, resources, ...}`.
        (Class::Secret, Value::Object(map))
            if map.keys().filter(|member| COMPONENT.contains(member.as_str())).take(2).count() == 2 =>
        {
            false
        }
        // Where a program takes its secrets from: `secrets: {db: {file: ./db.txt}}`.
        (Class::Secret, Value::Object(map))
            if name == "secrets" && !map.is_empty() && map.values().all(is_mounted) =>
        {
            false
        }
        // A package in a lock.
        (Class::Secret, Value::Object(map))
            if ["version", "resolution"].iter().any(|member| map.contains_key(*member))
                && ["resolved", "integrity", "resolution", "requires", "engines"]
                    .iter()
                    .any(|member| map.contains_key(*member)) =>
        {
            false
        }
        (Class::Secret, Value::Object(_) | Value::Array(_)) => {
            !(names::may_refer(name) && shape::is_reference(value))
        }
        (Class::Secret, Value::String(text)) if is_settings(text) || only_refers(text) => false,
        (Class::Scalar, Value::String(text)) if lists_logons(name, text) => false,
        (Class::Secret | Class::Scalar, Value::String(text)) => {
            shape::is_harmless(text)
                || holds(value) && !(names::is_locator(name) && shape::holds_logon(text) || tells(name, text))
        }
        (Class::Secret | Class::Scalar, Value::Number(number)) => {
            let text = number.to_string();
            // `pin: 13` is one of a board, `alarm_code: 4` a state.
            let state = || names::words(name).last().is_some_and(|last| last == "code");
            let of_board = text.len() < 4 && (name.eq_ignore_ascii_case("pin") || state());
            !is_share(&text) && !of_board && !names::is_count(name, &text)
        }
        (Class::Secret, _) => true,
        // `encrypt_salt: [x, y]`.
        (Class::Scalar, Value::Array(items)) => {
            items.iter().any(|item| holds(item) && item.as_str().is_some_and(shape::is_key))
        }
        (Class::Scalar, _) => !value.is_object(),
        (Class::Link, Value::String(text)) => {
            (text.contains("://") || text.starts_with('/'))
                && !text.contains(char::is_whitespace)
                && holds(value)
        }
        // The bytes of a key.
        (Class::Key, Value::Array(items)) if items.len() >= 8 && items.iter().all(is_byte) => true,
        (Class::Key | Class::Logon | Class::Users, Value::Array(items)) => items.iter().any(holds),
        _ => holds(value),
    }
}

/// Whether a number is a share of something: `token_create: 0.25`. One of more digits, or with a power, may be a secret all the
/// same: `password: 71e48` is a number in YAML, and so are thirty digits.
fn is_share(number: &str) -> bool {
    number.starts_with("0.") && number.len() <= 6
}

/// Whether an item is the name of a variable that holds a secret.
fn names_variable(item: &Value) -> bool {
    item.as_str().is_some_and(|text| {
        text.contains('_')
            && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
            && names::classify(text) != Class::Plain
    })
}

/// Whether an object refers to secrets, and what else stands in it are words under names that say nothing.
fn only_refers_beside_words(map: &Map<String, Value>) -> bool {
    let refers = |name: &String, value: &Value| {
        name.ends_with("Ref") && value.is_object() && shape::is_reference(value)
    };
    map.iter().any(|(name, value)| refers(name, value))
        && map.iter().all(|(name, value)| {
            refers(name, value)
                || names::classify(name) == Class::Plain
                    && value.as_str().is_some_and(|text| !shape::is_key(text) && !shape::is_password(text))
        })
}

/// Whether a list under `name` may be one of names: `secrets`, `extraSecrets`.
fn lists_secrets(name: &str) -> bool {
    matches!(name, "secrets" | "credentials") || name.ends_with("Secrets")
}

fn is_byte(item: &Value) -> bool {
    item.as_u64().is_some_and(|number| number <= 255)
}

/// Whether a secret of Docker is defined by where it is kept.
fn is_mounted(definition: &Value) -> bool {
    let places = ["file", "external", "environment", "driver"];
    let other = ["name", "labels", "driver_opts", "template_driver"];
    definition.as_object().is_some_and(|map| {
        map.keys().any(|member| places.contains(&member.as_str()))
            && map.keys().all(|member| {
                places.contains(&member.as_str())
                    || other.contains(&member.as_str())
                    || member.starts_with("x-")
            })
    })
}

/// Whether an item could be the name of a Secret, or says where one is mounted.
fn labels_one(item: &Value) -> bool {
    let known = ["source", "target", "uid", "gid", "mode", "external", "file"];
    match item {
        Value::Object(map) => map.keys().all(|name| known.contains(&name.as_str())),
        Value::String(text) => {
            names_one(item)
                || text.contains(['-', '_'])
                    && text.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_'))
        }
        _ => false,
    }
}

/// Whether an item is the name of a Secret.
fn names_one(item: &Value) -> bool {
    item.as_str().is_some_and(|text| {
        let mut words = text.split(['-', '_', '.']);
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && !shape::is_key(text)
            && words
                .any(|word| OBJECTS.contains(word.trim_end_matches(|letter: char| letter.is_ascii_digit())))
    })
}

/// Whether a text under a secret name is a sentence about it, as documentation has them.
fn tells(name: &str, text: &str) -> bool {
    let phrase = name.to_ascii_lowercase();
    if phrase.ends_with("phrase") || phrase.ends_with("mnemonic") {
        return false;
    }
    // A sentence before the colon goes on behind it: `secretKey is deprecated: use existingSecret`.
    let words = text.split_whitespace().count();
    let ends = words >= 3 && text.ends_with('.') && text.starts_with(char::is_uppercase);
    let saying = !names::is_password(name) && prose::is_saying(text);
    let sentence = name.split_whitespace().count() >= 3 || words >= 5 || ends || saying;
    prose::is_label(text) || prose::is_subject(name, text) || sentence && prose::follows(name, text)
}
