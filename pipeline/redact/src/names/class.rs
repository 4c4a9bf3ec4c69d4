//! What a name says of its value, and which values are secret under a name that says so.

use super::super::words::{OBJECTS, REFERRERS, STAGES, SUFFIXES, TERMS, VALUE_OWNERS};
use super::super::{keys, packed, shape};
use super::{classify, is_checksum, is_locator, is_password, words};

/// What a name says of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Class {
    /// Nothing.
    Plain,
    /// Secret when it is a scalar: short words that name many other things too (`pass`, `jwt`).
    Scalar,
    /// Secret when it looks like a key: names that end in `key`, `salt`.
    Key,
    /// Secret when it looks like a credential: `auth`, `authorization`, `cookie`.
    Header,
    /// Secret when it is a link with a random part: webhooks.
    Link,
    /// Secret when it holds a password behind a user: `AUTH_USERS`.
    Logon,
    /// Secret when it lists users, each with a password that somebody made up behind it: `USERS`.
    Users,
    /// Secret, whatever it is.
    Secret,
}

impl Class {
    /// Whether `text` is secret under `name`, which is of this class.
    pub(in super::super) fn holds(self, name: &str, text: &str) -> bool {
        if shape::is_harmless(text)
            || shape::is_switch(text)
            || names_key(name, text)
            || shape::is_publishable(text)
        {
            return false;
        }
        match self {
            Self::Plain => false,
            // Several, each behind its id: `APIx: y`.
            Self::Key if text.contains(": ") && name.to_ascii_lowercase().ends_with("keys") => {
                text.split([':', ' ', ',', '\n']).any(shape::is_key)
            }
            // Which hook it is.
            Self::Key if shape::is_uuid(text) && name.to_ascii_lowercase().ends_with("id") => false,
            Self::Key => (shape::is_key(text) || is_licence(name, text)) && !packed::is_public(text),
            Self::Header => shape::is_credential(text),
            Self::Link => shape::is_secret_link(text),
            Self::Logon => {
                let told =
                    text.split_once(':').is_some_and(|(_, rest)| rest.bytes().any(|b| !b.is_ascii_digit()));
                told && !text.contains("://") && !text.starts_with("arn:")
            }
            Self::Users => lists_users(text),
            Self::Scalar | Self::Secret => {
                let short = || text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
                let checksum = is_checksum(name) && (shape::is_hash(text) || short());
                // The name of a variable, or of an algorithm; several of them.
                let variable = text.contains('_')
                    && text.bytes().all(|byte| {
                        byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"_,".contains(&byte)
                    })
                    && classify(text) != Self::Plain;
                // Another attribute: `&User-Password`.
                let attribute = text.strip_prefix('&').is_some_and(|rest| {
                    rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-:".contains(&byte))
                        && (rest.contains(':') || classify(rest) != Self::Plain)
                });
                let kind = ["application/", "text/", "image/", "audio/", "video/"]
                    .iter()
                    .any(|kind| text.starts_with(kind));
                let file = names_file(name, text);
                // The id of a key of GnuPG: `--encrypt-key D34DB33F`.
                let id = matches!(text.len(), 8 | 16)
                    && text.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte))
                    && text.bytes().any(|byte| byte.is_ascii_uppercase())
                    && words(name).last().is_some_and(|last| last == "key");
                // `jsonwebtoken: ^9.0.2`, of a package; `ADMIN_PIN=1234`, not `LED_PIN=13`.
                let version = !is_password(name) && shape::is_version(text);
                let other = is_pin(&words(name))
                    && !(text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_digit()));
                // A state, and no code that somebody enters: `alarm_code: 4`.
                let state = text.len() < 4 && words(name).last().is_some_and(|last| last == "code");
                let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
                // How OpenSSH shows the key of a host.
                let fingerprint = text
                    .strip_prefix("SHA256:")
                    .is_some_and(|hash| hash.len() == 43 && hash.bytes().all(base64));
                let sum = text
                    .split_once(':')
                    .is_some_and(|(kind, hex)| kind.starts_with("sha") && shape::is_hash(hex));
                let digest = !is_password(name) && (sum || fingerprint);
                let duration = !is_password(name) && (shape::is_duration(text) || shape::is_share(text));
                let stage = STAGES.contains(text)
                    && words(name).last().is_some_and(|last| last.ends_with('s') && !last.ends_with("ss"));
                let bare = is_locator(name) && names_no_logon(text);
                // `proxy_pass http://backend`.
                let address = is_password(name) && shape::is_address(text);
                let folder = ["pwd", "oldpwd"].iter().any(|known| name.eq_ignore_ascii_case(known))
                    && text.starts_with('/');
                // `community: https://discord.example`, and what every agent of SNMP is delivered with.
                let community = words(name).last().is_some_and(|last| last == "community")
                    && (text.contains([' ', ':'])
                        || text.matches('.').count() >= 2 && !shape::is_password(text)
                        || matches!(text, "public" | "enterprise"));
                // Of AWS it is the name of a secret, of Vault's AppRole the secret.
                let place = words(name).ends_with(&["secret".to_owned(), "id".to_owned()])
                    && (text.contains('/')
                        || text.contains('-')
                            && !shape::is_key(text)
                            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
                let term = TERMS.contains(text.to_ascii_lowercase().as_str());
                // A short word is the name of who asks: `accessKey: loki`.
                let user =
                    text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_lowercase()) && names_user(name);
                !(checksum
                    || user
                    || version
                    || other
                    || folder
                    || state
                    || digest
                    || community
                    || place
                    || bare
                    || duration
                    || stage
                    || address
                    || variable
                    || attribute
                    || id
                    || kind
                    || file
                    || term
                    || is_count(name, text)
                    || names_object(name, text))
            }
        }
    }
}

/// Whether `text` lists users and passwords, of which one at least was made up: `ada:th1stle,bob:x`.
fn lists_users(text: &str) -> bool {
    let mut made = false;
    text.split([',', ';', ' ', '\n']).filter(|entry| !entry.trim().is_empty()).all(|entry| {
        let Some((user, password)) = entry.trim().split_once(':') else { return false };
        made = made || shape::is_password(password) || shape::is_key(password);
        user.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._@-".contains(&byte))
            && !matches!(
                user,
                "user"
                    | "group"
                    | "team"
                    | "role"
                    | "arn"
                    | "oidc"
                    | "ldap"
                    | "saml"
                    | "github"
                    | "gitlab"
                    | "google"
                    | "http"
                    | "https"
            )
            && !password.is_empty()
            && !password.contains(['/', ':'])
            && !shape::is_harmless(password)
            && !shape::is_mail_address(password)
    }) && made
}

/// Whether `text` is the serial number of a licence, in groups that need not be of one length: `XK2P-FGAGZ-WKJIS-99`.
fn is_licence(name: &str, text: &str) -> bool {
    let loud = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let mixed = |group: &str| {
        group.bytes().any(|byte| byte.is_ascii_digit()) && group.bytes().any(|byte| byte.is_ascii_uppercase())
    };
    words(name).last().is_some_and(|last| matches!(last.as_str(), "license" | "licence"))
        && text.len() >= 14
        && text.split('-').count() >= 3
        && text.split('-').all(|group| group.len() >= 2 && group.bytes().all(loud))
        && text.split('-').any(mixed)
}

/// Whether a number under `name` counts: `tokens: 1024`, `pass: 12`.
pub(in super::super) fn is_count(name: &str, text: &str) -> bool {
    let first = text.split([' ', ',']).next().unwrap_or_default().trim_end_matches(['k', 'K', 'm', 'M']);
    let digits = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let words = words(name);
    // `maxFailedPasswords: 5`.
    let most = words
        .first()
        .is_some_and(|first| matches!(first.as_str(), "max" | "min" | "num" | "total" | "count"));
    if digits && most && words.len() > 1 && first.len() <= 9 {
        return true;
    }
    digits
        && match words.last().map(String::as_str) {
            Some("tokens") => first.len() <= 9,
            Some("pass") => first.len() <= 3 && words.len() == 1,
            Some("sig" | "dsn" | "cred") => first.len() <= 1,
            // Of a quota.
            Some("secrets") => first.len() <= 6 && (words.len() == 1 || words.concat() == "countsecrets"),
            Some("passwords" | "credentials") => first.len() <= 3 && words.len() == 1,
            // What a longer name counts of secrets: `tokensPerFill: 100`.
            Some(last) => {
                let counts = words.len() > 2 && !matches!(last, "key" | "keys" | "pin" | "pincode" | "code");
                counts
                    && first.len() <= 6
                    && first == text
                    && !SUFFIXES.contains(last)
                    && !last.bytes().all(|byte| byte.is_ascii_digit())
                    && classify(last) == Class::Plain
            }
            None => false,
        }
}

/// Whether a name ends in that of a PIN: `ADMIN_PIN`, `PIN_CODE`.
fn is_pin(words: &[String]) -> bool {
    match words {
        [.., pin, code] if code == "code" => pin == "pin",
        [.., last] => last == "pin" || last == "pincode",
        [] => false,
    }
}

/// Whether `text` is the name of a file with what `name` says in it: `kafka1_sslkey_creds` under `KEY_CREDENTIALS`.
fn names_file(name: &str, text: &str) -> bool {
    let kind = |word: &str| matches!(word, "creds" | "credentials");
    words(name).last().is_some_and(|last| kind(last))
        && text.rsplit(['_', '-']).next().is_some_and(kind)
        && text.contains(['_', '-'])
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte))
        && !shape::is_key(text)
}

/// Whether `text` is the name of the key in a Secret under which `name` is kept: `clientSecretKey: client-secret`.
fn names_key(name: &str, text: &str) -> bool {
    name.ends_with("Key")
        && (text.contains(['-', '_']) || text.ends_with("Key"))
        && text.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'))
        && classify(text) != Class::Plain
        && {
            let all = words(name);
            all.len() > 2 && words(text).iter().all(|word| all.contains(word))
        }
}

/// Whether `name` is one of an access key, whose secret stands beside it.
fn names_user(name: &str) -> bool {
    let words = words(name);
    let compact = words.concat();
    (compact.ends_with("accesskey") || compact.ends_with("accesskeyid"))
        && !words.iter().any(|word| word.contains("secret"))
}

/// Whether `value` under `name` can be the name of a Secret: `tlsSecret: web-tls`.
fn names_object(name: &str, value: &str) -> bool {
    let all = words(name);
    let Some((last, owners)) = all.split_last() else { return false };
    // `secretsMap: airflow-secrets`.
    let (last, owners) = match owners.split_last() {
        Some((secrets, owners)) if last == "map" && secrets.starts_with("secret") => (secrets, owners),
        _ => (last, owners),
    };
    let value_owned = owners.iter().any(|owner| VALUE_OWNERS.contains(owner.as_str())) || last.len() > 7;
    let label = |text: &str| {
        !text.is_empty()
            && text.len() <= 253
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
    };
    let says = value.split(['-', '.']).any(|word| OBJECTS.contains(word));
    let digits = value.bytes().any(|byte| byte.is_ascii_digit());
    if last == "credentials" && !owners.is_empty() && says && !digits && value.contains('-') && label(value) {
        // `registryCredentials: ghcr-pull`.
        return true;
    }
    if !matches!(last.as_str(), "secret" | "secrets") || shape::is_key(value) {
        return false;
    }
    if value.contains('/') {
        // A namespace and a name, or the path of one in a store.
        return value.split('/').all(label);
    }
    let password =
        |owner: &str| ["password", "passwd", "pw", "pwd", "pass"].iter().any(|word| owner.ends_with(word));
    let refers = owners.iter().any(|owner| REFERRERS.contains(owner.as_str()) || password(owner));
    // `runnerTokenSecret: gitlab-runner-eu`.
    let named_after = || {
        !digits
            && value.split('-').any(|word| {
                word.len() > 3 && !VALUE_OWNERS.contains(word) && owners.iter().any(|owner| owner == word)
            })
    };
    label(value) && value.contains('-') && (refers || !value_owned && says || named_after())
}

/// Whether a connection string is an address and nothing else: `jdbc:postgresql://db:5432/shop`.
fn names_no_logon(text: &str) -> bool {
    (text.starts_with("jdbc:") || text.contains("://"))
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":/._-,".contains(&byte))
        && !keys::holds_random(text)
        && !shape::is_secret_link(text)
        // `LOCK_DSN=flock`.
        || text.len() <= 16 && text.bytes().all(|byte| byte.is_ascii_lowercase())
}
