//! What the names of an object's members say of it and of each other.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::super::names::{self, Class};
use super::super::programs::Arguments;
use super::super::words::{ABOUT, CAPTIONS, HASHES, PAIR_NAMES, PAIR_VALUES, SCHEMA, TERMS, USER_FILES};
use super::super::{packed, shape};
use super::secret_value::is_secret_value;

/// Whether a member carries the value of a pair whose other member says secret: environment variables, Helm and plugin
/// parameters, headers, workflow parameters, JSON patches.
pub(super) fn is_pair_value(name: &str) -> bool {
    let name = lower(name);
    name.len() <= 16 && PAIR_VALUES.contains(name.trim_start_matches("parameter"))
}

/// Whether a member names what its pair holds: `name`, `key`, `header`, `ParameterKey`.
fn is_pair_name(name: &str) -> bool {
    name.len() <= 13 && PAIR_NAMES.contains(&*lower(name))
}

/// Where the value of a variable stands whose name is a parameter of Helm, and that name: `env[1].name`.
pub(super) fn names_indexed(item: &Value) -> Option<(String, String)> {
    let index = item.get("name")?.as_str()?.strip_suffix("].name")?;
    Some((format!("{index}].value"), item.get("value")?.as_str()?.to_owned()))
}

/// Whether a member of what stands under a secret name is a reference to one, or a setting.
pub(in super::super) fn stays(name: &str, value: &Value) -> bool {
    if is_key_reference(name, value) {
        return true;
    }
    let is_name = names::is_reference(name)
        || matches!(name, "nameOverride" | "fullnameOverride")
        // Of Drone: `password: {from_secret: docker_password}`.
        || names::may_end(name, "fromsecret") && names::words(name) == ["from", "secret"];
    if is_name && shape::is_reference(value) {
        return !value.as_str().is_some_and(shape::is_key);
    }
    if matches!(name, "url" | "repoURL" | "server" | "registry")
        && value.as_str().is_some_and(|text| text.starts_with("git@") || shape::is_address(text))
    {
        return true;
    }
    if matches!(name, "keys" | "secretKeys") && names_keys(value) {
        return true;
    }
    let plain =
        |value: &Value| value.as_str().is_some_and(|text| !shape::is_key(text) && !shape::is_password(text));
    if matches!(name, "annotations" | "labels")
        && value.as_object().is_some_and(|notes| notes.values().all(plain))
    {
        return true;
    }
    // Its other half may be known: `vapid: {private_key: x, public_key: y}`.
    if value.is_string()
        && names::may_end(name, "publickey")
        && names::words(name).ends_with(&["public".to_owned(), "key".to_owned()])
    {
        return true;
    }
    if HASHES.contains(name) && is_hashing(value) {
        return true;
    }
    // What a token says of itself, `jwtTokens: [{iat: 1535390316}]`; which key of GnuPG is meant, `signatureKeys: [{keyID: x}]`.
    if matches!(name, "iat" | "exp" | "nbf") && value.is_number()
        || names::may_end(name, "keyid") && value.as_str().is_some_and(shape::is_key_id)
    {
        return true;
    }
    if name.to_ascii_lowercase().ends_with("hashes")
        && value
            .as_array()
            .is_some_and(|items| items.iter().all(|item| item.as_str().is_some_and(shape::is_hash)))
    {
        return true;
    }
    // Of how long tokens are good: `refreshTokens: {validIfNotUsedFor: 2160h}`.
    if names::classify(name) == names::Class::Plain && value.as_str().is_some_and(shape::is_duration) {
        return true;
    }
    let last = || names::words(name).pop();
    if value.as_str().is_some_and(|text| {
        shape::is_mail_address(text)
            && matches!(last().as_deref(), Some("email" | "mail" | "username" | "user"))
            // Of AppRole one goes with the other: `{roleId: x, secretId: y}`.
            || shape::is_uuid(text)
                && last().as_deref() == Some("id")
                && names::classify(name) == Class::Plain
    }) {
        return true;
    }
    names::is_setting(name)
        && match value {
            Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => text.len() <= 64 && !shape::is_key(text) && !shape::is_password(text),
            _ => false,
        }
}

/// Whether an object says how passwords are hashed: `{variant: argon2id, memory: 65536}`.
fn is_hashing(value: &Value) -> bool {
    let word = |text: &str| {
        TERMS.contains(text.to_ascii_lowercase().as_str())
            || text.len() <= 16 && text.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    value.as_object().is_some_and(|map| {
        map.values().all(|value| match value {
            Value::String(text) => word(text),
            _ => value.is_number() || value.is_boolean(),
        })
    })
}

/// Whether an object says under which keys of a Secret what is kept: `{accessKey: root-user, secretKey: root-password}`.
fn names_keys(value: &Value) -> bool {
    let key = |text: &str| {
        text.contains(['-', '_'])
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_.".contains(&byte))
            && text.split(['-', '_', '.']).all(|word| word.len() >= 2)
            || matches!(text, "password" | "username" | "user" | "token")
    };
    value
        .as_object()
        .is_some_and(|map| !map.is_empty() && map.values().all(|value| value.as_str().is_some_and(key)))
}

/// The same, or nothing in it could be one.
pub(in super::super) fn is_bare(name: &str, value: &Value) -> bool {
    stays(name, value)
        || match value {
            Value::Object(map) => map.iter().all(|(name, value)| is_bare(name, value)),
            Value::String(text) => shape::is_harmless(text) || shape::is_switch(text),
            _ => value.is_null() || value.is_boolean(),
        }
}

/// Whether an item of a schema's `enum` is a word, and nothing that a secret could be.
pub(super) fn is_choice(item: &Value) -> bool {
    item.as_str().is_some_and(|text| {
        text.len() <= 32
            && text.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'))
            && !shape::is_key(text)
            && !shape::is_password(text)
    })
}

/// Whether the value under a secret name is the schema of one, as in OpenAPI.
pub(in super::super) fn is_schema(value: &Value) -> bool {
    let Value::Object(map) = value else { return false };
    let types = ["string", "integer", "number", "boolean", "object", "array"];
    let known = |name: &Value| name.as_str().is_some_and(|name| types.contains(&name) || name == "null");
    map.get("type").is_some_and(|name| match name {
        Value::Array(names) => !names.is_empty() && names.iter().all(known),
        name => known(name),
    }) && map.keys().all(|name| SCHEMA.contains(name.as_str()))
}

/// Whether a name is that of a script, `chpasswd.sh`, or of a file about secrets, `password-policy.json`, and the text of
/// one stands under it, in which what is secret is found by itself.
pub(super) fn is_file_about(name: &str, text: &str) -> bool {
    let Some((stem, end)) = name.rsplit_once('.') else { return false };
    let script = matches!(end, "sh" | "bash" | "py" | "rb" | "pl" | "js" | "ts" | "lua" | "go" | "ps1");
    let told =
        matches!(end, "json" | "yaml" | "yml" | "toml" | "md") && names::classify(stem) == Class::Plain;
    let lines = text.trim_end().contains('\n') || text.starts_with("#!");
    script && lines || told && (lines || text.trim_start().starts_with('{'))
}

/// Whether an annotation says which secret Vault's agent is to inject: a path.
pub(super) fn is_injected(name: &str, text: &str) -> bool {
    name.contains("agent-inject-secret-")
        && text.contains('/')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
        && !shape::is_key(text)
}

/// Whether the logons of registries stand in `value`, as Docker keeps them, and nothing else.
pub(super) fn is_logons(value: &Value) -> bool {
    let known = ["auth", "username", "password", "email", "identitytoken", "registrytoken", "serveraddress"];
    let logon = |entry: &Value| match entry {
        Value::Object(entry) => entry.keys().all(|name| known.contains(&name.as_str())),
        _ => true,
    };
    value.as_object().is_some_and(|registries| registries.values().all(logon))
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
                name if is_pair_name(name) => members.named = true,
                "op" => members.patches = true,
                "remoteRef" | "sourceRef" | "secretName" => members.refers = true,
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
pub(in super::super) fn is_key_reference(name: &str, value: &Value) -> bool {
    let Value::Object(map) = value else { return false };
    let named = |(member, value): (&String, &Value)| {
        member.starts_with("existing") && value.as_str().is_some_and(|text| !shape::is_key(text))
    };
    if !map.is_empty() && map.iter().all(named) {
        // `adminSecret: {existingSecret: x, existingSecretKey: its-key}`.
        return true;
    }
    // `passwordSecret: {secretName: x, password: its-key}`.
    let keys = |(name, value): (&String, &Value)| {
        name == "secretName"
            || value.as_str().is_some_and(|text| {
                names::classify(name) == Class::Plain
                    || names::classify(text) != Class::Plain
                        && !shape::is_key(text)
                        && !shape::is_password(text)
            })
    };
    if name.ends_with("Secret") && map.contains_key("secretName") && map.len() > 1 && map.iter().all(keys) {
        return true;
    }
    if is_named_secret(map) {
        return true;
    }
    if map
        .get("secret")
        .and_then(Value::as_str)
        .is_some_and(|name| name.bytes().any(|byte| byte.is_ascii_uppercase()))
    {
        // No object of Kubernetes is called so: `jwt-auth: {key: x, secret: Y}`.
        return false;
    }
    let object = ["name", "secret", "secretName", "existingSecret", "secretKeyRef", "secretRef"]
        .iter()
        .any(|member| map.contains_key(*member));
    object
        && (map.contains_key("key") || map.contains_key("secretKeyRef") || map.contains_key("secretRef"))
        && shape::is_reference(value)
}

/// Whether an object only names a Secret, and perhaps a key of it: `password: {secret: smtp-pass}`.
pub(super) fn is_named_secret(map: &Map<String, Value>) -> bool {
    let name = map.get("secret").and_then(Value::as_str);
    // `{secret: pg, key: password}`.
    let field = |text: &str| {
        names::classify(text) != Class::Plain && !shape::is_key(text) && !shape::is_password(text)
    };
    let keyed = || map.get("key").and_then(Value::as_str).is_some_and(field);
    name.is_some_and(|name| {
        (name.contains('-') || keyed())
            && name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !shape::is_key(name)
            && (map.contains_key("key") || !shape::is_password(name))
    }) && map.iter().all(|(member, value)| {
        member == "secret"
            || value.is_boolean()
            || matches!(member.as_str(), "key" | "name" | "namespace")
                && value.as_str().is_some_and(|text| !shape::is_key(text))
    })
}

/// The passwords that Terraform made, in the state of a resource.
pub(super) fn generated(map: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    let makes = map.get("type").and_then(Value::as_str) == Some("random_password");
    let instances = map.get_mut("instances").filter(|_| makes).and_then(Value::as_array_mut);
    instances.into_iter().flatten().filter_map(|instance| instance.get_mut("attributes")?.get_mut("result"))
}

/// Whether a file lists users and their passwords: `realm.properties`. One of the same name that holds settings of a program
/// lists none.
pub(super) fn is_list_of_users(name: &str, text: &str) -> bool {
    let ending = |file: &&str| file.rsplit('.').next().is_some_and(|end| names::may_end(name, end));
    if !USER_FILES.iter().any(ending) {
        return false;
    }
    let words = names::words(name);
    let last = words.len().saturating_sub(2);
    words.get(last..).is_some_and(|last| USER_FILES.contains(last.join(".").as_str()))
        && !holds_settings(text)
}

/// Whether every line sets something whose name is written in humps, one of them what is set about secrets or sessions:
/// `passwordPolicy=length(12)`, `accessTokenLifespan=300`.
fn holds_settings(text: &str) -> bool {
    let set = |line: &&str| {
        line.split_once('=').is_some_and(|(name, _)| {
            let name = name.trim_end();
            name.starts_with(|letter: char| letter.is_ascii_lowercase())
                && name.bytes().any(|byte| byte.is_ascii_uppercase())
                && name.bytes().all(|byte| byte.is_ascii_alphabetic())
        })
    };
    let about = |line: &str| {
        let name = line.split('=').next().unwrap_or_default().trim_end();
        let words = names::words(name);
        words.last().is_some_and(|last| ABOUT.contains(last.as_str()))
            && words.iter().any(|word| matches!(word.as_str(), "password" | "token" | "session"))
    };
    let lines =
        || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
    lines().all(|line| set(&line)) && lines().any(about)
}

/// Whether a file is a user in one line and a password in the next, as OpenVPN takes them.
pub(super) fn is_logon_of_two_lines(name: &str, text: &str) -> bool {
    let ends = [
        "auth.txt",
        "auth.conf",
        "auth-user-pass",
        "credentials.txt",
        "creds.txt",
        "login.conf",
        "login.txt",
        "userpass.txt",
    ];
    let word = |line: &str| !line.is_empty() && !line.contains([' ', ':', '=', '{', '<', '[']);
    ends.iter().any(|end| name.ends_with(end))
        && text.trim().lines().count() == 2
        && text.trim().lines().all(|line| word(line.trim()))
}

/// Whether a ring of keys stands in `value`, each by its id, as chance makes them: `keys: {APIq7: x}`.
pub(super) fn is_keyring(value: &Value) -> bool {
    let key = |text: &str| {
        text.len() >= 32
            && shape::is_key(text)
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte))
            && text.bytes().any(|byte| byte.is_ascii_uppercase())
            && text.bytes().any(|byte| byte.is_ascii_lowercase())
            && !["MI", "MC", "MF", "AAAA", "LS0t"].iter().any(|begin| text.starts_with(begin))
    };
    // Of what signs cookies, newest first: `keys: [x, y]`.
    let bare = |text: &str| {
        matches!(text.len(), 32 | 40 | 64)
            && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && shape::is_key(text)
    };
    if let Value::Array(keys) = value {
        return !keys.is_empty() && keys.iter().all(|value| value.as_str().is_some_and(bare));
    }
    value.as_object().is_some_and(|ring| {
        !ring.is_empty()
            && ring.iter().all(|(name, value)| {
                !name.to_ascii_lowercase().contains("pub") && value.as_str().is_some_and(key)
            })
    })
}

/// Whether a roll of users stands in `value`, each with a password: `accounts: {ada: x}`.
pub(super) fn is_roll(value: &Value) -> bool {
    value.as_object().is_some_and(|roll| {
        !roll.is_empty()
            && roll.iter().all(|(name, value)| {
                names::classify(name) == Class::Plain
                    && value
                        .as_str()
                        .is_some_and(|text| shape::is_password(text) && !shape::is_mail_address(text))
            })
    })
}

/// Whether texts that people see stand in `value`, of which some are named for what is asked: `{password: Passwort}`.
pub(super) fn is_captions(name: &str, value: &Value) -> bool {
    let caption = |text: &str| {
        text.starts_with(char::is_uppercase)
            && text
                .chars()
                .all(|letter| letter.is_alphabetic() || matches!(letter, ' ' | '-' | '?' | '!' | '.'))
            && text.chars().skip(1).any(char::is_lowercase)
    };
    value.as_object().is_some_and(|texts| {
        let sentence = |text: &str| text.contains(' ') || !text.is_ascii();
        let sentences = || texts.values().filter(|text| text.as_str().is_some_and(sentence)).count();
        (CAPTIONS.contains(name) && texts.len() > 1 || texts.len() > 2 && sentences() * 2 >= texts.len())
            && texts.values().all(|text| text.as_str().is_some_and(caption))
    })
}

/// Whether an object says how what it names is called elsewhere: `cookieNames: {accessToken: at}`,
/// `keyMapping: {password: db-password}`.
pub(super) fn is_naming(name: &str, value: &Value) -> bool {
    let called = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && !shape::is_key(text)
            && !shape::is_password(text)
    };
    let ends = [
        "Names",
        "_names",
        "-names",
        "cookienames",
        "headernames",
        "KeyMapping",
        "keyMapping",
        "keymapping",
        "existingSecretKeys",
    ];
    ends.iter().any(|end| name.ends_with(end))
        && value.as_object().is_some_and(|map| map.values().all(|value| value.as_str().is_some_and(called)))
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

/// A command of Redis that a client shows, by its name: `{name: config, args: [set, requirepass, x]}`. What is called `auth` may
/// be a container too, unless one of its arguments looks like a password.
pub(super) fn redis_command(map: &Map<String, Value>) -> Option<Arguments> {
    let name = map.get("name")?.as_str()?.to_ascii_lowercase();
    let mut args = map.get("args")?.as_array()?.iter().filter_map(Value::as_str);
    let (first, second) = (args.next()?, args.next());
    let made = |text: &str| shape::is_password(text) || shape::is_key(text);
    let mut logs_on = || args.next().is_none() && (first == "default" || made(second.unwrap_or(first)));
    let mut program = Arguments::default();
    program.program("redis");
    match &*name {
        "auth" if logs_on() => program.argument("auth").is_none().then_some(program),
        "hello" if second.is_some_and(|word| word.eq_ignore_ascii_case("auth")) => Some(program),
        "config" if first.eq_ignore_ascii_case("set") => Some(program),
        _ => None,
    }
}

/// The values of a Secret that are told from other words where they are repeated.
pub(super) fn repeatable(map: &Map<String, Value>) -> Vec<String> {
    let values = |member: &str, encoded: bool| {
        let data = shape::member(map, member).and_then(Value::as_object).into_iter().flatten();
        data.filter_map(move |(name, value)| {
            let value = match encoded {
                true => String::from_utf8(packed::decoded(value.as_str()?)).ok()?,
                false => value.as_str()?.to_owned(),
            };
            let text = value.trim();
            let secret =
                names::classify(name) != Class::Plain || shape::is_key(text) || shape::is_password(text);
            (secret && text.len() >= 6 && !shape::is_harmless(text)).then(|| text.to_owned())
        })
    };
    values("data", true).chain(values("stringData", false)).collect()
}

/// Whether `map` is a pair whose name says secret, or a patch of data that may be those of a Secret: a patch that
/// `configures` changes others.
pub(super) fn pair_is_secret(map: &Map<String, Value>, configures: bool) -> bool {
    // An expression of a selector names what it selects.
    if map.contains_key("operator") {
        return false;
    }
    let any =
        |test: &dyn Fn(&Value) -> bool| map.iter().any(|(name, value)| is_pair_value(name) && test(value));
    let says = |name: &str| {
        let class = names::classify(name);
        class != Class::Plain
            && any(&|value| match class {
                Class::Secret | Class::Scalar if !value.is_string() && !value.is_number() => true,
                _ => is_secret_value(name, class, value),
            })
    };
    if map.iter().any(|(name, value)| is_pair_name(name) && value.as_str().is_some_and(says)) {
        return true;
    }
    map.contains_key("op")
        && map.get("path").and_then(Value::as_str).is_some_and(|path| {
            let last =
                path.rsplit('/').find(|part| *part != "-" && !part.bytes().all(|byte| byte.is_ascii_digit()));
            path.starts_with("/data") && !configures
                || path.starts_with("/stringData")
                || last.is_some_and(|last| says(&last.replace("~1", "/")))
                || ["/env/", "/parameters/"].iter().any(|list| path.contains(list))
                    && any(&|value| value.as_str().is_some_and(shape::is_key))
        })
}

/// `<application>:<group>/<kind>:<namespace>/<name>`: a name, however much it sounds like a secret.
pub(super) fn is_tracking_id(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    matches!(parts.as_slice(), [_, kind, name] if kind.contains('/') && name.contains('/'))
        && !text.contains(char::is_whitespace)
}
