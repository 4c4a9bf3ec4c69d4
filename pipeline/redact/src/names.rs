//! Which names say that their value is secret: object keys, environment variables, Helm parameters, flags.
//!
//! A name is cut into words (`dbPassword`, `DB_PASSWORD`, `db.password`, `db-password` are all `db`,
//! `password`). Doubt counts as secret; what is let through is listed here, with its reason.

use super::shape;
use super::words::{
    ABOUT, CAPTIONS, EXEMPT, KEPT_KEYS, KEY_OWNERS, MARKERS, NOT_KEY_OWNERS, NOT_PASS, PIECES, SETTINGS,
    STEMS, SUFFIXES, VALUE_OWNERS, WEAK, holds_stem,
};

mod class;

pub(super) use class::{Class, is_count};

/// Bytes of a name that are judged, at its end.
const LONGEST: usize = 256;

/// Whether who may come in is told below `name`: `digestAuth`, `basic_auth`.
pub(super) fn is_authentication(name: &str) -> bool {
    let letters = || name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase);
    ["digestauth", "basicauth", "htdigest", "htpasswd", "httpauth"]
        .iter()
        .any(|known| letters().eq(known.chars()))
}

/// Judges `name`.
pub(super) fn classify(name: &str) -> Class {
    if name.eq_ignore_ascii_case("pin") {
        return Class::Scalar;
    }
    if !suspicious(name.as_bytes()) {
        return Class::Plain;
    }
    let mut from = name.len().saturating_sub(LONGEST);
    while !name.is_char_boundary(from) {
        from += 1;
    }
    let given = name.get(from..).unwrap_or_default();
    let name = without_domain(given);
    let package = |(_, range): (&str, &str)| {
        range.starts_with(['^', '~']) || range.starts_with("npm:") || shape::is_version(range)
    };
    let is_path = name.starts_with('/');
    if is_path
        && name.matches('/').count() > 1
        && name.rsplit('/').next().is_some_and(|last| matches!(last, "password" | "passwd" | "pass" | "pw"))
    {
        // Of a store: `key: /db/password`.
        return Class::Scalar;
    }
    if is_path || name.contains("://") || name.rsplit_once('@').is_some_and(package) {
        // A path of an API, a URL, a package.
        return Class::Plain;
    }
    if !suspicious(name.as_bytes()) {
        return Class::Plain;
    }
    if let Some(header) = name.strip_suffix("-Header").or_else(|| name.strip_suffix("-header"))
        && name.get(..2).is_some_and(|head| head.eq_ignore_ascii_case("x-"))
    {
        // A header that is called so: `X-Secret-Header: x`.
        return if classify(header) == Class::Plain { Class::Plain } else { Class::Header };
    }
    let mut words = words(name);
    let compact = words.concat();
    if EXEMPT.contains(compact.as_str()) || words.iter().any(|word| word == "existing") {
        return Class::Plain;
    }
    if ["secretKeyRef.", "k8s_secret_", "resource.customizations."].iter().any(|refers| name.contains(refers))
    {
        // Of Spark and ClickHouse: behind it stand a Secret and its key. Of Argo CD: how it treats a kind.
        return Class::Plain;
    }
    if words.len() > 1
        && matches!(words.as_slice(), [.., from, secret] if from == "from" && secret.starts_with("secret"))
    {
        // `configFromSecret` names one, and `from_secret` too.
        return Class::Plain;
    }
    while words.len() > 1
        && words.last().is_some_and(|last| {
            let digits = last.strip_prefix('v').unwrap_or(last);
            digits.bytes().all(|b| b.is_ascii_digit()) || SUFFIXES.contains(last.as_str())
        })
    {
        words.pop();
    }
    let Some(last) = words.last() else { return Class::Plain };
    let before = words.len().checked_sub(2).and_then(|before| words.get(before)).map_or("", String::as_str);
    let hook = words.iter().any(|word| word.starts_with("webhook") || word == "hook");
    if matches!(last.as_str(), "key" | "keys") && (KEPT_KEYS.contains(before) || before.ends_with("password"))
    {
        return Class::Key;
    }
    if matches!(last.as_str(), "key")
        && [".keystore.key", ".truststore.key"].iter().any(|end| name.ends_with(end))
    {
        // Of Trino: what opens it.
        return Class::Secret;
    }
    if name.starts_with("BUNDLE_") && name.contains("__") {
        // Of Bundler, which names a host so: `BUNDLE_GEMS__EXAMPLE__COM`.
        return Class::Logon;
    }
    if compact == "webhookbitbucketuuid" {
        // Of Argo CD, which takes whoever knows it.
        return Class::Secret;
    }
    if last == "iv" && matches!(before, "creds" | "cipher" | "encryption" | "crypto" | "aes") {
        return Class::Key;
    }
    if compact == "jwtsource" {
        // Of Tyk: where the public keys are, or the shared one.
        return Class::Key;
    }
    if last == "login" && before.ends_with("sonar") {
        // A scanner takes a token there.
        return Class::Key;
    }
    if before == "pull" && last.starts_with("secret") {
        // `global.pullSecrets[0]`.
        return Class::Plain;
    }
    if words.len() > 2 && words.first().is_some_and(|first| first == "can") {
        // What somebody may do: `can_read_secret`.
        return Class::Plain;
    }
    if last == "kek"
        || last == "encryption" && matches!(before, "key" | "cookie" | "session" | "token")
        || last == "hash" && before == "cookie"
    {
        // What encrypts keys; what programs of Go take for their cookies: `cookie_hash`, `cookie_encryption`.
        return Class::Key;
    }
    let third = words.len().checked_sub(3).and_then(|third| words.get(third)).map_or("", String::as_str);
    if last == "key" && words.len() > 2 && words.first().is_some_and(|first| first == "secret") {
        // `secretDatabaseKey`: the key of the database in its Secret. That of AWS is one itself.
        if !KEY_OWNERS.contains(before)
            && STEMS.iter().all(|stem| *stem == "secret" || !compact.contains(stem))
        {
            return Class::Key;
        }
    }
    if last == "key"
        && before == "secret"
        && !name.contains("secret.key")
        && (KEPT_KEYS.contains(third)
            || third.ends_with("password")
            || third == "key" && words.len() > 3
            || STEMS.contains(third))
    {
        // `adminPasswordSecretKey`: the key of the password in its Secret.
        return Class::Key;
    }
    let id = matches!(last.as_str(), "id" | "ids" | "accessor")
        && matches!(before, "token" | "credential" | "credentials" | "password" | "jwt")
        // Vault's `VAULT_DEV_ROOT_TOKEN_ID` is the token itself.
        && third != "root";
    // Which key it is: `GPG_KEY_ID`. That of AWS goes with the key.
    let key_id = matches!(last.as_str(), "id" | "ids")
        && matches!(before, "key" | "keys")
        && !matches!(third, "access" | "application" | "secret" | "private");
    if hook && last == "id" {
        // Of Home Assistant, which takes whoever knows it.
        return Class::Key;
    }
    if id || key_id || is_about(&words, last, &compact) {
        return if hook && matches!(last.as_str(), "url" | "uri" | "webhook" | "endpoint" | "path") {
            Class::Link
        } else {
            Class::Plain
        };
    }
    if matches!(last.as_str(), "logins" | "logons")
        || matches!(last.as_str(), "admin" | "login")
            && words.len() > 1
            && !name.bytes().any(|b| b.is_ascii_lowercase())
        || matches!(last.as_str(), "users" | "user" | "accounts")
            && words.iter().any(|word| {
                matches!(
                    word.as_str(),
                    "auth" | "basicauth" | "htpasswd" | "local" | "sasl" | "sftp" | "bootstrap"
                )
            })
        || last == "info" && before == "user" && words.iter().any(|word| word == "auth")
        || last == "basic" && before == "auth"
        || last == "auth" && before == "basic"
        || last == "basicauth"
    {
        return Class::Logon;
    }
    if last == "secret" && name.len() < given.len() && name.contains("-key-") {
        // An annotation names one: `cert-manager.io/private-key-secret`.
        return Class::Key;
    }
    if holds_stem(&compact) || owned_key(&words) {
        return Class::Secret;
    }
    if WEAK.contains(last.as_str())
        || (last.ends_with("pass") || last.ends_with("pw") || last.ends_with("pwd"))
            && !NOT_PASS.contains(last.as_str())
    {
        return Class::Scalar;
    }
    match last.as_str() {
        "pin" | "pincode" if words.len() > 1 => Class::Scalar,
        "code" if matches!(before, "pin" | "unlock" | "alarm" | "door") => Class::Scalar,
        "encrypt" => Class::Key,
        "code" if matches!(before, "activation" | "invite") => Class::Key,
        "seed" if before == "key" => Class::Scalar,
        "hmac" | "seed" | "hmacencoded" => Class::Key,
        // A personal access token; of a program that takes its key there: `RADARR_API`.
        "pat" | "api" | "oauth" if words.len() > 1 => Class::Key,
        "keystore" | "keyring" => Class::Key,
        // `VAPID_PRIVATE`; of a network it is a part, of which the id stands there: `SUBNET_PRIVATE`.
        "private" | "priv" | "signing" | "sk" if words.len() > 1 && !is_of_network(before) => Class::Key,
        "unseal" | "macaroon" => Class::Key,
        "signature" if before == "access" => Class::Key,
        "preshared" => Class::Scalar,
        // Of MongoDB.
        "keyfile" if words.len() == 1 => Class::Key,
        // Of Telegram: `API_HASH`.
        "hash" if before == "api" => Class::Key,
        // What CloudFront shows the server behind it.
        "verify" if compact == "xoriginverify" => Class::Scalar,
        // Of Joken.
        "signer" if before == "default" => Class::Key,

        // `ACTIVE_RECORD_ENCRYPTION_PRIMARY_KEY`.
        "key" | "keys" if words.iter().any(|word| word == "encryption") => Class::Key,
        "key" | "keys" if words.len() > 1 && !NOT_KEY_OWNERS.contains(before) => Class::Key,
        "base" if before == "key" => Class::Key,
        "salt" | "salts" if words.len() > 1 => Class::Scalar,
        "salt" | "salts" | "license" | "licence" => Class::Key,
        last if last.ends_with("salt")
            || (last.ends_with("key")
                && last.len() > 5
                && !NOT_KEY_OWNERS.iter().any(|owner| last.strip_suffix("key") == Some(owner))) =>
        {
            Class::Key
        }
        "auth" | "authorization" | "cookie" | "cookies" => Class::Header,
        _ if hook => Class::Link,
        "users" | "accounts" => Class::Users,
        _ => Class::Plain,
    }
}

/// Whether what a word names is private or public as networks are, and no key.
fn is_of_network(word: &str) -> bool {
    matches!(
        word,
        "subnet"
            | "subnets"
            | "network"
            | "networks"
            | "vpc"
            | "zone"
            | "zones"
            | "table"
            | "tables"
            | "endpoint"
            | "endpoints"
            | "group"
            | "sg"
            | "lb"
            | "alb"
            | "nlb"
            | "domain"
            | "bucket"
            | "registry"
            | "repo"
            | "repository"
    )
}

/// Whether `name` names a reference to a secret kept elsewhere (`secretKeyRef`, `valueFrom`, `secretName`).
pub(super) fn is_reference(name: &str) -> bool {
    let words = words(name);
    match words.last().map(String::as_str) {
        Some("ref" | "refs" | "reference" | "selector") => true,
        Some("from") => words.len() > 1,
        Some("name") => words.iter().any(|word| word.ends_with("secret") || word == "existing"),
        Some("secret") => words.iter().any(|word| word == "existing"),
        Some("key" | "keys") => words.len() > 1 && classify(name) == Class::Key,
        _ => false,
    }
}

/// Whether `name` ends in `secret` or `secrets`, or is `serviceAccountToken`: names under which Kubernetes
/// keeps references as often as values.
pub(super) fn may_refer(name: &str) -> bool {
    let words = words(name);
    matches!(words.last().map(String::as_str), Some("secret" | "secrets"))
        || matches!(words.concat().as_str(), "serviceaccounttoken" | "credentials")
}

/// Whether a word makes a value of `secret` or `token` that follows it: `webhook`, `JWT`.
pub(super) fn owns_value(word: &str) -> bool {
    let word = word.trim_matches(['"', '\'', '`', '(']).to_ascii_lowercase();
    VALUE_OWNERS.contains(word.as_str()) && !matches!(word.as_str(), "user" | "admin" | "app" | "token")
}

/// Whether `name` names an address with credentials in it, of which only those are secret.
pub(super) fn is_locator(name: &str) -> bool {
    let words = words(name);
    let compact = words.concat();
    words.last().is_some_and(|last| last == "dsn")
        || ["connectionstring", "connstring", "connstr", "connectionstrings"]
            .iter()
            .any(|word| compact.contains(word))
}

/// Whether `name` names variables that are secret: `extraSecretEnv`.
pub(super) fn is_environment(name: &str) -> bool {
    let ends = ["env", "envs", "environment", "vars", "variables"];
    if !ends.iter().any(|end| may_end(name, end)) {
        return false;
    }
    let words = words(name);
    words.last().is_some_and(|last| ends.contains(&last.as_str()))
        && words.iter().any(|word| word == "secret" || word == "secrets")
}

/// Whether `name` says that its value is a checksum: `checksum/secret`, `tokenHash`.
pub(super) fn is_checksum(name: &str) -> bool {
    let words = words(name);
    let says = [
        "checksum",
        "checksums",
        "sha256",
        "sha1",
        "sha",
        "digest",
        "fingerprint",
        "thumbprint",
        "etag",
        "hash",
    ];
    if name.starts_with("STAKATER_") {
        // Of Reloader: by it a workload is begun anew when its Secret changes.
        return true;
    }
    // `password_sha256_hex` is what a password is checked against, and guessed by.
    let password = words.iter().any(|word| word == "password" || word == "passwd");
    words.iter().any(|word| says.contains(&word.as_str()))
        && !(password
            && words.iter().any(|word| word.starts_with("sha") || word == "hash")
            && words.first().is_none_or(|word| word != "checksum"))
}

/// Whether `name`, a member of an object under a secret name, is a setting and no secret: `algorithm`, `size`.
pub(super) fn is_setting(name: &str) -> bool {
    classify(name) == Class::Plain
        && words(name).last().is_some_and(|last| {
            ABOUT.contains(last.as_str())
                && !matches!(last.as_str(), "file" | "files" | "text" | "description")
                || SETTINGS.contains(last.as_str())
        })
}

/// Whether `name` names a text that people see: `label.password`.
pub(super) fn is_caption(name: &str) -> bool {
    words(name)
        .split_last()
        .is_some_and(|(_, owners)| owners.iter().any(|owner| CAPTIONS.contains(owner.as_str())))
}

/// Whether a text is one word of two, of which the second is as short as those that name many things, and the first none
/// that such a word belongs to: `Lapwing-Pw`, and not `API-Pass`, `Client-Jwt`.
pub(super) fn is_joined_by_chance(text: &str) -> bool {
    text.split_once('-').is_some_and(|(owner, word)| {
        let lower = owner.to_ascii_lowercase();
        let owns = [&KEY_OWNERS, &VALUE_OWNERS, &SUFFIXES].iter().any(|owners| owners.contains(&*lower));
        !owns
            && !text.contains(' ')
            && owner.bytes().any(|byte| byte.is_ascii_lowercase())
            && classify(owner) == Class::Plain
            && classify(word) == Class::Scalar
    })
}

/// Whether `name` is a plain word for a password, so that even `name:value` without a space counts.
pub(super) fn is_password(name: &str) -> bool {
    words(name).iter().rfind(|word| !SUFFIXES.contains(word.as_str())).is_some_and(|last| {
        let words = [
            "password",
            "passwd",
            "passwort",
            "kennwort",
            "passphrase",
            "passcode",
            "pwd",
            "pass",
            "pw",
            "psk",
            "wachtwoord",
            "contraseña",
            "contrasena",
            "senha",
            "heslo",
            "haslo",
            "hasło",
            "salasana",
            "adgangskode",
            "adgangskoden",
            "passord",
            "passordet",
            "lösenord",
            "lösenordet",
            "losenord",
            "jelszo",
            "jelszó",
            "parola",
            "parolası",
        ];
        words.iter().any(|word| last.ends_with(word)) && !NOT_PASS.contains(last.as_str())
    })
}

pub(super) use super::scan::suspicious;

/// Drops the DNS prefix of a label's or annotation's key: `argocd.argoproj.io/secret-type` is `secret-type`.
fn without_domain(name: &str) -> &str {
    match name.rsplit_once('/') {
        Some((domain, rest)) if domain.contains('.') && !rest.is_empty() => rest,
        _ => name,
    }
}

fn is_about(words: &[String], last: &str, compact: &str) -> bool {
    if words.len() > 1 && ABOUT.contains(last) {
        return true;
    }
    let counts = words.first().is_some_and(|first| matches!(first.as_str(), "max" | "min" | "num" | "total"));
    let piece = words.iter().rev().nth(1).is_some_and(|owner| PIECES.contains(owner.as_str()));
    let owner = words.iter().rev().nth(1).map(String::as_str).unwrap_or_default();
    if counts && matches!(last, "token" | "tokens")
        || piece && last == "tokens"
        || last == "token" && MARKERS.contains(owner)
        // `costPerToken`.
        || words.len() > 2 && owner == "per"
        // What is set about passwords, among it some that are secret by themselves.
        || owner == "password" && matches!(last, "config" | "configuration" | "settings" | "options")
    {
        return true;
    }
    let ends = |about: &str| {
        compact.strip_suffix(about).is_some_and(|head| STEMS.iter().any(|stem| head.ends_with(stem)))
    };
    ["name", "ref", "type", "path", "url", "file", "from", "policy", "ttl", "length"].into_iter().any(ends)
        // `Passwortrichtlinie: mindestens 14 Zeichen`.
        || ["richtlinie", "richtlinien", "länge", "laenge", "regel", "regeln", "ablauf"].into_iter().any(ends)
}

fn owned_key(words: &[String]) -> bool {
    // Of MongoDB.
    words.ends_with(&["replica".to_owned(), "set".to_owned(), "key".to_owned()])
        || words.windows(2).any(|pair| match pair {
            [owner, key] => {
                matches!(key.as_str(), "key" | "keys") && KEY_OWNERS.contains(owner.as_str())
                    || (owner == "key" && key == "pem")
                    || (owner == "id" && matches!(key.as_str(), "rsa" | "ed25519" | "ecdsa" | "dsa"))
            }
            _ => false,
        })
}

/// Lower-case words of a name: cut at everything that is neither letter nor digit, and where the case
/// rises (`clientSecret`, `APIKey`).
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut letters = name.chars().peekable();
    let mut before: Option<char> = None;
    while let Some(letter) = letters.next() {
        if !letter.is_alphanumeric() {
            take(&mut words, &mut word);
            before = None;
            continue;
        }
        let rises = letter.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase() || letters.peek().is_some_and(|after| after.is_lowercase())
            });
        // A plural of an acronym (`APIs`) would be cut wrongly, which only makes one more word.
        if rises {
            take(&mut words, &mut word);
        }
        word.extend(letter.to_lowercase());
        before = Some(letter);
    }
    take(&mut words, &mut word);
    words
}

/// Whether the letters and digits of a name end so, whatever parts them. Of a name that ends otherwise the last words are others
/// too, and it need not be cut to know that.
pub(super) fn may_end(name: &str, end: &str) -> bool {
    let letters = name.chars().rev().filter(|letter| letter.is_alphanumeric());
    let mut letters = letters.flat_map(|letter| letter.to_lowercase().rev());
    end.chars().rev().all(|letter| letters.next() == Some(letter))
}

fn take(words: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

#[cfg(test)]
mod tests;
