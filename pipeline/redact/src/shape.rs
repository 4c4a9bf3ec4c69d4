//! Shapes of values: is it a Secret, a reference, a mask, a placeholder, a key.

use serde_json::{Map, Value};

pub(super) use super::keys::{is_hash, is_key, is_key_id, is_password, is_secret_link, is_share, is_version};
use super::words::{ASKED, ASKS, EXPRESSIONS, FILLERS, MASKS, PLACES, PLEAS, STORES, TYPES};
use super::{names, placeholders};

/// A member by its name, whatever its case; the spelling Kubernetes knows comes first.
pub(super) fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let mut other = None;
    for (key, value) in object {
        if key == name {
            return Some(value);
        }
        if other.is_none() && is_spelling(key, name) {
            other = Some(value);
        }
    }
    other
}

/// Whether `key` is `name` in whatever case, white space around it or not.
fn is_spelling(key: &str, name: &str) -> bool {
    if key.len() == name.len() {
        return key.eq_ignore_ascii_case(name);
    }
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| *byte <= b' ' || !byte.is_ascii());
    key.len() > name.len()
        && (edge(key.as_bytes().first()) || edge(key.as_bytes().last()))
        && key.trim().eq_ignore_ascii_case(name)
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
        || kind == "fake"
            && member(object, "apiVersion").and_then(Value::as_str).is_some_and(|version| {
                // A generator that gives what is written in it.
                version.contains("external-secrets")
            })
        || kind.is_empty()
            && member(object, "data")
                .is_some_and(|data| !(data.is_array() && object.contains_key("secretName")))
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
            !object.is_empty()
                && object.keys().any(|name| name != "key" && name != "path" && name != "version")
                && object.iter().all(|(name, value)| is_reference_member(name, value))
        }
        Value::Array(items) => items.iter().all(|item| item.is_object() && is_reference(item)),
        _ => false,
    }
}

fn is_reference_member(name: &str, value: &Value) -> bool {
    match name {
        "name" | "secretName" | "namespace" | "key" | "kind" | "apiVersion" | "apiGroup" | "group"
        | "version" | "path" | "fieldPath" | "audience" | "uid" | "resourceVersion" | "property"
        | "field" | "parameter" | "mountPath" | "subPath" | "type" | "store" | "engine" | "secret"
        | "secretKey" | "configMap" => {
            value.is_null()
                || value.as_str().is_some_and(|text| {
                    // `key: awsSecretAccessKey`.
                    let field = || {
                        text.len() <= 32
                            && (super::prose::is_name_of_field(text) || name == "version" && is_hash(text))
                    };
                    text.is_empty() || (is_name(text) && (!is_key(text) || field()))
                })
        }
        "optional" | "enabled" | "create" | "readOnly" => value.is_boolean(),
        "defaultMode" | "mode" | "expirationSeconds" => value.is_number(),
        "items" => match value {
            Value::Array(items) => items.iter().all(|item| {
                item.as_object()
                    .is_some_and(|item| item.iter().all(|(name, value)| is_reference_member(name, value)))
            }),
            _ => false,
        },
        _ if names::is_reference(name) => match value {
            Value::String(text) => text.is_empty() || (is_name(text) && !is_key(text)),
            _ => value.is_object() && is_reference(value),
        },
        _ => false,
    }
}

/// Letters, digits and `-._/$(){}` only, at most 253 of them: names, keys and paths, and variables in them.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 253
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/:$(){}".contains(&byte))
}

/// Whether `text` hides nothing: empty, already redacted, a mask, only a reference to a value that is filled in
/// elsewhere, or the place where one is kept.
pub(super) fn is_harmless(text: &str) -> bool {
    let text = text.trim();
    text.is_empty()
        || is_mask(text)
        || is_redacted(text)
        || text.len() <= 4096
            && (placeholders::fill_all(text)
                || is_asked(text)
                || is_place(text)
                || is_sealed(text)
                || is_public_key(text)
                || placeholders::fill_pairs(text)
                || placeholders::fill_members(text)
                || is_filled_url(text)
                || is_schema_of_one(text)
                || is_expression(text))
}

/// The type of a value with its markers, as kro has them: `string | required=true`.
fn is_schema_of_one(text: &str) -> bool {
    text.split_once(" | ").is_some_and(|(kind, markers)| {
        TYPES.contains(kind)
            && ["required=", "default=\"\"", "description="].iter().any(|marker| markers.starts_with(marker))
    })
}

/// What asks for a value: `REPLACE_ME`, `changeme`, `your-api-key-here`.
fn is_asked(text: &str) -> bool {
    let text = text.trim_matches(['<', '>', '[', ']', '"', '\'']);
    // `xoxb-your-token-here`, which keeps how tokens begin.
    let behind = text.split_once(['-', '_']).filter(|(begins, _)| begins.len() <= 5).map(|(_, rest)| rest);
    if is_plea(text)
        || behind.is_some_and(|rest| is_plea(rest) || rest.starts_with("your") && is_filler(rest))
    {
        return true;
    }
    // `AVP_ROOT_PASSWORD_PLACEHOLDER`.
    let named = text.strip_suffix("_PLACEHOLDER").or_else(|| text.strip_suffix("-placeholder"));
    named.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphabetic() || b"_-".contains(&byte)))
        || is_filler(text)
}

/// Words that ask for a value, and those beside them, and no others.
fn is_filler(text: &str) -> bool {
    if text.len() > 64 || !text.bytes().all(|byte| byte.is_ascii_alphabetic() || b" -_.!".contains(&byte)) {
        return false;
    }
    let mut words = names::words(text);
    // `yourpassword`.
    if let [word] = words.as_slice()
        && let Some(rest) = word.strip_prefix("your").filter(|rest| !rest.is_empty())
    {
        words = vec!["your".to_owned(), rest.to_owned()];
    }
    words.iter().all(|word| FILLERS.contains(word.as_str()))
        && words.iter().any(|word| ASKS.contains(word.as_str()))
}

/// A phrase of small words that begins by asking, and says for what: `get_the_secret_of_above_key`.
fn is_plea(text: &str) -> bool {
    let text = text.trim_end_matches(['!', '.']);
    let loud = !text.bytes().any(|byte| byte.is_ascii_lowercase());
    let text = if loud { text.to_ascii_lowercase() } else { text.to_owned() };
    let mut words = text.split(['-', '_', ' ']);
    let small = |word: &str| {
        !word.is_empty()
            && (word.bytes().all(|byte| byte.is_ascii_lowercase())
                || word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit()))
    };
    // `to-be-set-by-ci`.
    if text.len() <= 80 && ["to-be-", "to_be_", "to be "].iter().any(|begin| text.starts_with(begin)) {
        return words.all(|word| small(word) && !word.bytes().any(|byte| byte.is_ascii_digit()));
    }
    text.len() <= 80
        && words.clone().next().is_some_and(|first| PLEAS.contains(first))
        && words.clone().count() >= 3
        && words.clone().all(small)
        && (words.any(|word| ASKED.contains(word)) || text.starts_with("replace_with_"))
}

/// A URL whose password is filled in elsewhere.
fn is_filled_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-:".contains(&byte))
        || rest.contains("://")
    {
        return false;
    }
    let Some((info, address)) = rest.rsplit_once('@') else { return false };
    let Some((_, password)) = info.split_once(':') else { return placeholders::fill_all(info) };
    placeholders::fill_all(password)
        && super::text::secrets(address, false).is_empty()
        && !address.contains("password=")
}

/// A variable of a program, by which it refers to what is given elsewhere.
pub(super) fn is_expression(text: &str) -> bool {
    let text = text.trim_end_matches([',', ';']);
    // Nothing stands in its place, or the program ends: `process.env.X || ''`.
    let text = match text.split_once(" || ") {
        Some((head, rest)) if matches!(rest, "''" | "\"\"") || rest.starts_with("raise ") => head,
        _ => text,
    };
    // `await fetchToken()`.
    let text = text.strip_prefix("await ").unwrap_or(text);
    text == "await"
        || placeholders::is_read(text)
        || is_variable_of_elixir(text)
        || is_variable(text)
        || is_call(text)
        || EXPRESSIONS.iter().any(|begin| text.starts_with(begin))
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-[]()'\"$/ !".contains(&byte))
            && !super::keys::holds_random(text)
}

/// A variable of the environment, as Elixir names one: `{:system, "X"}`, perhaps in a list.
fn is_variable_of_elixir(text: &str) -> bool {
    let Some(rest) = text.trim_start_matches('[').strip_prefix("{:system, \"") else { return false };
    rest.split_once('"').is_some_and(|(name, rest)| {
        name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
            && !rest.contains('"')
    })
}

/// What a program calls for a value, and literals in it that are none: `req.get_headers()["X-Token"]`.
fn is_call(text: &str) -> bool {
    // Of Rust: `env::var("X")?`.
    let text = text.strip_suffix('?').unwrap_or(text);
    let Some((head, arguments)) = text.split_once('(').filter(|_| text.ends_with([')', ']'])) else {
        return false;
    };
    let head = head.strip_prefix("new ").unwrap_or(head);
    // Of a function alone, `substr($dsn, 1)`; of what is read at a path, `del(.headers.token)`.
    let given = arguments.starts_with(['$', '"', '\'', '[']) || arguments.contains(", ") || arguments == ")";
    let path = arguments.strip_prefix('.').map_or("(", |path| path.trim_end_matches(')'));
    let part = |part: &str| {
        part.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let mut literals = arguments.split(['"', '\'']).skip(1).step_by(2);
    (head.contains('.') || given && head.len() > 3 || head.len() > 2 && path.split('.').all(part))
        && head.split(['.', ':']).filter(|word| !word.is_empty()).all(part)
        && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && !literals.any(|text| is_key(text) || is_password(text))
        && !super::keys::holds_random(text)
}

/// A variable of PHP, and what is read of it: `$dsn['password'] ?? null`, `$this->options['x']`. Alone it could be a
/// password that begins with a sign.
fn is_variable(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('$') else { return false };
    let name = rest.bytes().take_while(|byte| byte.is_ascii_lowercase() || *byte == b'_').count();
    rest.get(name..)
        .is_some_and(|rest| rest.starts_with("->") || rest.starts_with('[') || rest.starts_with("::"))
        && name > 1
        && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && !super::keys::holds_random(text)
}

/// A mask: Argo CD's own (`+` signs alone, eight or more), or stars, dots, dashes and the words that stand for one.
pub(super) fn is_mask(text: &str) -> bool {
    let text = text.trim_end_matches('`');
    let Some(first) = text.chars().next() else { return false };
    // `sk-...`.
    if matches!(text, "xx" | "XX" | "?" | "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER")
        || text.len() <= 16 && text.ends_with("...")
    {
        return true;
    }
    // `Secret([REDACTED String])`, as Rust writes one.
    if text.contains("[REDACTED") {
        return true;
    }
    // What a program fills in: `%p`.
    if text.len() == 2 && first == '%' && text.bytes().skip(1).all(|byte| byte.is_ascii_alphabetic()) {
        return true;
    }
    if text.trim_end_matches('.') == "-" {
        // From the standard input.
        return true;
    }
    if "+*•xX.-_#?".contains(first) {
        let signs = text.chars().take_while(|letter| *letter == first).count();
        if signs * first.len_utf8() == text.len() {
            return first == '*' || signs >= if first == '+' { 8 } else { 3 };
        }
    }
    // All but its end, as Datadog shows a key: `**********************2f9ab`.
    let end = text.trim_start_matches('*');
    if text.len() - end.len() >= 16 && end.len() <= 5 && end.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        return true;
    }
    // `XXX/YYY/ZZZ`.
    let same = |part: &str| {
        part.len() >= 3
            && part.bytes().all(|byte| byte.is_ascii_uppercase() && part.starts_with(char::from(byte)))
    };
    if text.contains('/') && text.split('/').all(same) {
        return true;
    }
    if let Some((_, tail)) = text.rsplit_once(['-', '_', ' ', '/'])
        && text.len() <= 64
        && tail.len() >= 4
        && tail.bytes().all(|byte| matches!(byte, b'x' | b'X' | b'*' | b'.'))
    {
        return true;
    }
    if text.len() <= 16
        && let Some(word) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'))
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
        && names::classify(word) != names::Class::Plain
    {
        // `[secret]`, of logs.
        return true;
    }
    let bare = || text.trim_matches(['<', '>', '[', ']', '(', ')', '*']).to_ascii_lowercase();
    // Or a piece that models know.
    let other = matches!(text, "~" | "\"\"" | "''" | "{}" | "[]" | "</s>")
        || text.starts_with("<|") && text.ends_with("|>");
    text.len() <= 32 && (other || MASKS.contains(bare().as_str()))
}

/// Whether credentials stand in `text` where they are found by themselves: in a URL, or behind a name.
pub(super) fn holds_logon(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let url = text.split_once("://").is_some_and(|(_, rest)| {
        rest.split('/')
            .next()
            .and_then(|authority| authority.rsplit_once('@'))
            .is_some_and(|(info, host)| info.contains(':') || host.contains(':') || is_key(info))
    });
    let go = lower.contains("@tcp(") || lower.contains("@unix(");
    url || go
        || ["password=", "pwd=", "password =", "accountkey=", "accesskey=", "instrumentationkey="]
            .iter()
            .any(|name| lower.contains(name))
}

/// A keyed digest as this module writes it.
pub(super) fn is_redacted(text: &str) -> bool {
    text.strip_prefix(super::PREFIX).is_some_and(|hex| {
        hex.len() == super::DIGITS && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Words that say yes or no; they are switches, under whatever name.
pub(super) fn is_switch(text: &str) -> bool {
    "true false yes no on off enabled disabled required optional always never auto include omit same-origin prompt anonymous read write inherit"
        .split(' ')
        .any(|word| text.eq_ignore_ascii_case(word))
}

/// What is encrypted for somebody else: by SOPS, Ansible, Jasypt, Spring.
fn is_sealed(text: &str) -> bool {
    (text.starts_with("ENC[") || text.starts_with("ENC(")) && text.ends_with([']', ')'])
        || text.starts_with("{cipher}")
        || text.starts_with("$ANSIBLE_VAULT;")
}

/// The public half of a key, as OpenSSH and age write it.
fn is_public_key(text: &str) -> bool {
    let text = text.trim_start_matches("no-pty ").trim_start_matches("restrict ");
    let kind = ["ssh-rsa ", "ssh-ed25519 ", "ssh-dss ", "ecdsa-sha2-", "sk-ssh-ed25519@", "sk-ecdsa-sha2-"];
    kind.iter().any(|kind| text.starts_with(kind))
        && text.split_whitespace().nth(1).is_some_and(|key| key.starts_with("AAAA"))
        && !text.contains('\n')
        || text.starts_with("age1") && text.len() == 62 && !text.contains(char::is_whitespace)
}

/// Where a secret is kept: a file, or a reference to a store.
fn is_place(text: &str) -> bool {
    if text.contains(char::is_whitespace) {
        return false;
    }
    // `%kernel.project_dir%/config/private.pem`.
    if let Some(path) = placeholders::one(text, 0).and_then(|end| text.get(end..))
        && path.starts_with('/')
        && path.contains('.')
        && path.bytes().all(|byte| byte.is_ascii_lowercase() || b"-._/".contains(&byte))
    {
        return true;
    }
    // What curl and Vault read: `@pw.txt`.
    if let Some((file, end)) = text.strip_prefix('@').and_then(|file| file.rsplit_once('.'))
        && (2..=4).contains(&end.len())
        && end.bytes().all(|byte| byte.is_ascii_lowercase())
        && !file.is_empty()
        && file.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_".contains(&byte))
    {
        return true;
    }
    let signs =
        |path: &str| path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/#".contains(&byte));
    if (text.starts_with("./") || text.starts_with("../")) && signs(text) {
        return true;
    }
    // `certs/node.key`.
    let kept = [".key", ".pem", ".crt", ".cer", ".p12", ".pfx", ".jks", ".keytab"];
    if text.contains('/')
        && kept.iter().any(|end| text.ends_with(end))
        && text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._/".contains(&byte))
    {
        return true;
    }
    // `$dir/private/ca.key`.
    if let Some((variable, path)) = text.strip_prefix('$').and_then(|text| text.split_once('/'))
        && variable.len() > 1
        && variable.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && path.rsplit('/').next().is_some_and(|file| file.contains('.'))
        && path
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._/".contains(&byte))
    {
        return true;
    }
    let file = |path: &str| {
        let root = path.split('/').nth(1).unwrap_or_default();
        let words = path.bytes().all(|byte| byte.is_ascii_lowercase() || b"-._/".contains(&byte));
        path.starts_with('/')
            && path.len() > root.len() + 2
            && (PLACES.contains(root) || words)
            && signs(path)
    };
    if file(text)
        || file(
            text.trim_start_matches("file://")
                .trim_start_matches("file:")
                .trim_start_matches('@')
                .trim_start_matches('<'),
        )
    {
        return true;
    }
    // A map of Postfix: `hash:/etc/postfix/sasl_passwd`.
    if text.split_once(':').is_some_and(|(kind, path)| {
        kind.len() <= 12
            && kind.bytes().all(|byte| byte.is_ascii_lowercase())
            && !path.starts_with("//")
            && file(path)
    }) {
        return true;
    }
    // `aws-secretsmanager:shop/db#password`.
    let store = |store: &str| {
        ["vault", "secret", "ssm", "keystore"].iter().any(|word| store.contains(word))
            && store.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    if text.split_once(':').is_some_and(|(head, path)| {
        store(head) && path.contains(['/', '#']) && !super::keys::holds_random(path)
    }) {
        return true;
    }
    let lower = text.get(..text.len().min(24)).unwrap_or(text).to_ascii_lowercase();
    STORES.iter().any(|store| lower.starts_with(store))
        && (!lower.starts_with("projects/") || text.contains("/secrets/"))
        && (!lower.starts_with("env:") && !lower.starts_with("env.")
            || text
                .bytes()
                .skip(4)
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'))
}

/// Whether a value under `auth`, `authorization` or `cookie` is a credential: anything but a switch or one
/// lower-case word (`basic`, `oidc`, `rbac`).
pub(super) fn is_credential(text: &str) -> bool {
    let word = text.len() <= 16
        && text.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'))
        && !(text.bytes().any(|byte| byte.is_ascii_uppercase())
            && text.bytes().any(|byte| byte.is_ascii_lowercase()));
    let title = text.len() <= 12
        && text.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    // What a cookie is set with, and not what it holds.
    let lower = text.to_ascii_lowercase();
    let attribute = ["samesite=", "path=", "domain=", "max-age=", "expires=", "secure;", "httponly"]
        .iter()
        .any(|name| lower.starts_with(name));
    let place = text.contains("://") && !text.contains('@');
    // `auth: bearer tokens may end in a sign`: behind a scheme there is one word.
    let small = |word: &str| word.trim_end_matches(',').bytes().all(|byte| byte.is_ascii_lowercase());
    let sentence = text.split_whitespace().nth(3).is_some() && text.split_whitespace().take(3).all(small);
    let number =
        text.len() <= 3 && text.trim_end_matches([',', ';']).bytes().all(|byte| byte.is_ascii_digit());
    !(sentence || number || attribute || is_harmless(text) || is_switch(text) || word || title || place)
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
    // The shortest that does: `kind:Secret data:`.
    let kind = || text.contains("kind") || text.contains("Kind");
    text.len() >= 16
        && text.contains(':')
        && kind()
        && (text.contains("ata\"") || text.contains("ata:") || text.contains("ata\\"))
        && mentions_secret(text)
}

/// Where the desired states of Secrets are kept inside other kinds: `template` of an ExternalSecret, a
/// SealedSecret and their kin.
pub(super) fn makes_secrets(kind: &str) -> bool {
    kind.contains("secret") && kind != "secret" && kind != "secretlist"
}

/// Whether `text` is a length of time: `24h`, `1h30m`, `500ms`.
pub(super) fn is_duration(text: &str) -> bool {
    let units = |byte: u8| b"smhdwn".contains(&byte);
    text.len() <= 12
        && text.starts_with(|letter: char| letter.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || units(byte))
        && text.bytes().last().is_some_and(units)
        && text
            .as_bytes()
            .windows(2)
            .all(|pair| pair.iter().any(|byte| !units(*byte)) || matches!(pair, [b'm' | b'n', b's']))
}

/// Whether `text` is the address of a mailbox.
pub(super) fn is_mail_address(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, domain)| {
        let part = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte))
        };
        part(name) && part(domain) && domain.contains('.')
    })
}

/// Whether `text` is a key that is made for browsers, which everybody reads: of Stripe, PostHog, Langfuse.
pub(super) fn is_publishable(text: &str) -> bool {
    ["pk_live_", "pk_test_", "phc_", "pk-lf-"].iter().any(|begin| text.starts_with(begin))
        && text.len() >= 20
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Whether `text` is a UUID.
pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether `text` is the address of a service, without credentials.
pub(super) fn is_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.trim_end_matches(';').split_once("://") else { return false };
    ["http", "https", "grpc", "grpcs", "unix", "tcp"].contains(&scheme)
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:/$".contains(&byte))
        && !is_secret_link(text)
}

/// Whether a text ends as YAML or JSON does that is written in brackets; `{:host=>"x"}` is Ruby's, `{Host:x}` Go's.
pub(super) fn ends_in_flow(text: &str) -> bool {
    let go = || {
        text.split_once('{').and_then(|(_, inner)| inner.split_once(':')).is_some_and(|(name, rest)| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric())
                && !rest.starts_with(|letter: char| letter.is_whitespace())
        })
    };
    text.ends_with(['}', ']']) && !text.contains("=>") && !go()
}
