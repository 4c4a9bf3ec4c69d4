//! Which names say that their value is secret: object keys, environment variables, Helm parameters, flags.
//!
//! A name is cut into words (`dbPassword`, `DB_PASSWORD`, `db.password`, `db-password` are all `db`,
//! `password`). Doubt counts as secret; what is let through is listed here, with its reason.

use super::words::{ABOUT, EXEMPT, KEY_OWNERS, NOT_STEMS, STEMS, SUFFIXES, WEAK};

/// What a name says of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Nothing.
    Plain,
    /// Secret when it is a scalar: short words that name many other things too (`pass`, `jwt`).
    Scalar,
    /// Secret when it looks like a credential: `auth`, `authorization`, `cookie`.
    Header,
    /// Secret, whatever it is.
    Secret,
}

/// Judges `name`.
pub(super) fn classify(name: &str) -> Class {
    let name = without_domain(name);
    if !suspicious(name.as_bytes()) {
        return Class::Plain;
    }
    let mut words = words(name);
    let compact = words.concat();
    if EXEMPT.contains(&compact.as_str()) || words.iter().any(|word| word == "existing") {
        return Class::Plain;
    }
    while words.len() > 1
        && words
            .last()
            .is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()) || SUFFIXES.contains(&last.as_str()))
    {
        words.pop();
    }
    let Some(last) = words.last() else { return Class::Plain };
    if is_about(&words, last, &compact) {
        return Class::Plain;
    }
    let mut rest = compact;
    for word in NOT_STEMS {
        if rest.contains(word) {
            rest = rest.replace(word, "");
        }
    }
    if STEMS.iter().any(|stem| rest.contains(stem)) || owned_key(&words) {
        return Class::Secret;
    }
    if WEAK.contains(&last.as_str()) {
        return Class::Scalar;
    }
    match last.as_str() {
        "auth" | "authorization" | "cookie" | "cookies" => Class::Header,
        _ => Class::Plain,
    }
}

/// Whether `name` names a reference to a secret kept elsewhere (`secretKeyRef`, `valueFrom`, `secretName`).
pub(super) fn is_reference(name: &str) -> bool {
    let words = words(name);
    match words.last().map(String::as_str) {
        Some("ref" | "refs" | "reference" | "selector") => true,
        Some("from") => words.first().is_some_and(|first| first == "value"),
        Some("name") => words.iter().any(|word| word == "secret"),
        Some("secret") => words.iter().any(|word| word == "existing"),
        _ => false,
    }
}

/// Whether `name` ends in `secret` or `secrets`, or is `serviceAccountToken`: names under which Kubernetes
/// keeps references as often as values.
pub(super) fn may_refer(name: &str) -> bool {
    let words = words(name);
    matches!(words.last().map(String::as_str), Some("secret" | "secrets"))
        || words.concat() == "serviceaccounttoken"
}

/// Whether `name` is a plain word for a password, so that even `name:value` without a space counts.
pub(super) fn is_password(name: &str) -> bool {
    words(name).last().is_some_and(|last| {
        last.ends_with("password")
            || last.ends_with("passwd")
            || last.ends_with("passphrase")
            || last == "pwd"
    })
}

/// Whether anything in `text` could be, or could name, a secret: a scan for the fragments every stem,
/// weak word and owner of a key begins with. What it lets through needs no closer look.
pub(super) fn suspicious(text: &[u8]) -> bool {
    text.iter().enumerate().any(|(at, byte)| {
        let fragments: &[&[u8]] = match byte.to_ascii_lowercase() {
            b'p' => &[b"pass", b"pwd", b"psk", b"pfx", b"p12", b"privk"],
            b's' => &[b"secr", b"sig", b"stringd"],
            b't' => &[b"tok", b"totp"],
            b'k' => &[b"key"],
            b'c' => &[b"cred", b"cook", b"conn"],
            b'a' => &[b"auth"],
            b'd' => &[b"dsn", b"dock"],
            b'b' => &[b"bear"],
            b'j' => &[b"jwt", b"jks"],
            b'o' => &[b"otp"],
            b'i' => &[b"id_", b"id-", b"idrs"],
            _ => return false,
        };
        let rest = text.get(at..).unwrap_or_default();
        fragments.iter().any(|fragment| {
            rest.get(..fragment.len()).is_some_and(|head| head.eq_ignore_ascii_case(fragment))
        })
    })
}

/// Drops the DNS prefix of a label's or annotation's key: `argocd.argoproj.io/secret-type` is `secret-type`.
fn without_domain(name: &str) -> &str {
    match name.rsplit_once('/') {
        Some((domain, rest)) if domain.contains('.') && !rest.is_empty() => rest,
        _ => name,
    }
}

fn is_about(words: &[String], last: &str, compact: &str) -> bool {
    if words.len() > 1 && ABOUT.contains(&last) {
        return true;
    }
    let counts = words.first().is_some_and(|first| matches!(first.as_str(), "max" | "min" | "num" | "total"));
    if counts && matches!(last, "token" | "tokens") {
        return true;
    }
    ["name", "ref", "type", "path", "url", "file"].iter().any(|about| {
        compact.strip_suffix(about).is_some_and(|head| STEMS.iter().any(|stem| head.ends_with(stem)))
    })
}

fn owned_key(words: &[String]) -> bool {
    words.windows(2).any(|pair| match pair {
        [owner, key] => {
            matches!(key.as_str(), "key" | "keys") && KEY_OWNERS.contains(&owner.as_str())
                || (owner == "key" && key == "pem")
                || (owner == "id" && matches!(key.as_str(), "rsa" | "ed25519" | "ecdsa" | "dsa"))
        }
        _ => false,
    })
}

/// Lower-case words of a name: cut at everything that is neither letter nor digit, and where the case
/// rises (`clientSecret`, `APIKey`).
fn words(name: &str) -> Vec<String> {
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

fn take(words: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

#[cfg(test)]
mod tests;
