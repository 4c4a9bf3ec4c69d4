//! Sentences about secrets, and secrets in sentences: commit messages, errors, documentation.

use std::ops::Range;

use super::names;
use super::shape;

/// Words behind which something is told of a secret, not the secret: `secret: rotate`, `token: expired`.
const TELL: &[&str] = &[
    "must",
    "is",
    "was",
    "are",
    "were",
    "be",
    "should",
    "shall",
    "may",
    "required",
    "missing",
    "invalid",
    "incorrect",
    "wrong",
    "empty",
    "expired",
    "not",
    "the",
    "a",
    "an",
    "your",
    "my",
    "our",
    "this",
    "that",
    "these",
    "use",
    "used",
    "uses",
    "using",
    "set",
    "sets",
    "reset",
    "change",
    "changed",
    "changes",
    "update",
    "updated",
    "updates",
    "rotate",
    "rotated",
    "rotates",
    "rotating",
    "rotation",
    "add",
    "added",
    "adds",
    "remove",
    "removed",
    "removes",
    "fix",
    "fixed",
    "fixes",
    "cannot",
    "too",
    "never",
    "for",
    "of",
    "to",
    "from",
    "in",
    "and",
    "or",
    "with",
    "without",
    "at",
    "by",
    "please",
    "enter",
    "string",
    "optional",
    "field",
    "value",
    "values",
    "authentication",
    "auth",
    "failed",
    "fails",
    "failure",
    "refresh",
    "refreshed",
    "revoke",
    "revoked",
    "renew",
    "renewed",
    "bump",
    "move",
    "moved",
    "rename",
    "renamed",
    "drop",
    "dropped",
    "clean",
    "cleanup",
    "generate",
    "generated",
    "read",
    "load",
    "loaded",
    "store",
    "stored",
    "encrypt",
    "encrypted",
    "hash",
    "hashed",
    "unknown",
    "denied",
    "mismatch",
    "confirmed",
    "none",
    "provided",
    "given",
    "does",
    "doesn't",
    "did",
    "has",
    "have",
    "will",
    "no",
    "new",
    "only",
    "make",
    "allow",
    "allows",
    "enable",
    "disable",
    "support",
    "supports",
    "introduce",
    "implement",
    "improve",
    "refactor",
    "revert",
    "handle",
    "ensure",
    "check",
    "validate",
    "migrate",
    "switch",
    "replace",
    "create",
    "created",
    "creates",
    "delete",
    "deleted",
    "deletes",
    "mount",
    "mounted",
    "sync",
    "synced",
    "configure",
    "configured",
    "document",
    "documented",
    "test",
    "tests",
    "skip",
    "keep",
    "kept",
    "prevent",
    "avoid",
    "stop",
    "start",
    "let",
    "do",
    "don't",
    "it",
    "its",
    "if",
    "when",
    "where",
    "which",
    "what",
    "how",
    "who",
    "why",
    "see",
    "name",
    "names",
    "type",
    "unauthorized",
    "forbidden",
    "unsupported",
    "malformed",
    "timeout",
    "context",
    "error",
    "errors",
    "already",
    "still",
    "after",
    "before",
    "unable",
    "could",
    "can",
    "can't",
    "couldn't",
    "lookup",
    "reload",
    "reloaded",
    "restore",
    "bootstrap",
    "import",
    "export",
    "share",
    "split",
    "merge",
    "pin",
    "upgrade",
    "downgrade",
    "extend",
    "shorten",
    "leaked",
    "secret",
    "token",
    "password",
    "unchanged",
    "configmap",
    "key",
    "file",
    "path",
    "on",
    "as",
    "all",
    "any",
    "each",
    "every",
    "other",
    "we",
    "they",
    "you",
    "i",
    "managed",
    "comes",
    "lives",
    "stays",
    "object",
    "resource",
    "default",
    "defaults",
    "unexpected",
    "length",
    "minimum",
    "maximum",
    "exceeded",
    "ok",
    "valid",
    "verified",
    "verify",
    "accepted",
    "rejected",
    "issued",
    "signature",
    "signed",
    "unset",
    "needs",
    "need",
    "want",
    "wants",
    "more",
    "less",
    "than",
    "two",
    "one",
    "both",
    "off",
];

/// Words that stand between a name and the secret that is told.
const FILL: &[&str] = &[
    "is",
    "was",
    "are",
    "to",
    "as",
    "of",
    "be",
    "now",
    "the",
    "new",
    "old",
    "changed",
    "set",
    "from",
    "for",
    "value",
    "with",
    "temporarily",
    "currently",
    "still",
    "=",
    "->",
    "=>",
    "into",
    "a",
    "default",
    "updated",
    "reset",
    "will",
    "back",
    "again",
    "should",
    "initial",
    "temporary",
    "using",
    "use",
    "rotate",
    "rotated",
    "replace",
    "replaced",
    "by",
];

/// Whether what follows a name and a colon is a sentence about it.
pub(super) fn follows(name: &str, line: &str) -> bool {
    let mut words = line.split_whitespace();
    let Some(first) = words.next() else { return false };
    if first.starts_with(['"', '\'']) {
        return false;
    }
    let count = 1 + words.clone().take(8).count();
    let plain = is_letters(first);
    let status = first.len() == 3 && first.bytes().all(|byte| byte.is_ascii_digit());
    if status && words.clone().next().is_some_and(is_letters) {
        return true;
    }
    if !plain {
        return first.starts_with('`') || first.starts_with('(') && count > 1;
    }
    let word = first.trim_end_matches(['.', ',', ':', ';', '!', '?', ')']).to_ascii_lowercase();
    let told = TELL.contains(&word.as_str());
    if told && (count > 1 || !names::is_password(name)) {
        return true;
    }
    // A sentence, unless it tells the secret further on.
    let function = words.clone().take(6).any(|word| FUNCTION.contains(&word.to_ascii_lowercase().as_str()));
    let foreign = line.chars().any(|letter| letter.is_alphabetic() && !letter.is_ascii());
    let sentence = count >= 5
        && (foreign || first.starts_with(char::is_uppercase))
        && line.split_whitespace().take(12).all(is_letters);
    if sentence || count >= 3 && word.len() > 5 && (word.ends_with("ing") || word.ends_with("ed")) {
        return true;
    }
    if names::is_password(name) {
        return count >= 3 && function && line.split_whitespace().take(12).all(is_letters);
    }
    count >= 2 && words.take(2).all(is_letters) || function
}

const FUNCTION: &[&str] = &[
    "the", "a", "an", "to", "of", "for", "in", "is", "are", "not", "and", "or", "with", "from", "by", "on",
    "at", "be", "must", "has", "have", "it", "as", "that", "which", "when", "if", "no", "can", "should",
    "was", "will", "this",
];

/// Whether a word is made of letters alone, but for what ends it.
fn is_letters(word: &str) -> bool {
    let word = word.trim_matches(['.', ',', ':', ';', '!', '?', ')', '(', '"', '\'', '`']);
    !word.is_empty()
        && word.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '-' | '\'' | '/'))
}

/// Whether a single word says how a secret is: `token=expired`, `password=required`.
pub(super) fn is_state(text: &str) -> bool {
    let word = text.trim_matches(['.', ',', ';', ')', '(', '"', '\'']);
    [
        "missing",
        "invalid",
        "expired",
        "empty",
        "required",
        "unknown",
        "denied",
        "revoked",
        "failed",
        "unset",
        "wrong",
        "incorrect",
        "absent",
        "present",
        "set",
        "malformed",
        "unauthorized",
        "string",
        "<nil>",
        "generated",
    ]
    .iter()
    .any(|known| word.eq_ignore_ascii_case(known))
}

/// Whether `text` is a word that stands behind names in sentences.
pub(super) fn is_word_of_prose(text: &str) -> bool {
    let word = text.trim_end_matches(['.', ',', ':', ';', '!', '?', ')']).to_ascii_lowercase();
    TELL.contains(&word.as_str()) || FUNCTION.contains(&word.as_str())
}

/// Whether a quoted word names a field rather than tells what stands in it.
pub(super) fn is_name_of_field(text: &str) -> bool {
    names::classify(text) != names::Class::Plain
        && text.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-_.".contains(&byte))
        || is_word_of_prose(text)
}

/// Names that configuration files set with nothing but space behind them.
pub(super) fn is_directive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "requirepass",
        "masterauth",
        "auth_pass",
        "auth-pass",
        "rootpw",
        "bindpw",
        "http_passwd",
        "insecure-password",
        "olcrootpw",
        "ldap_default_authtok",
        "smtp_password",
        "default_pass",
        "primary_pass",
        "sasl_passwd",
        "mailpass",
        "dbpass",
        "db_password",
        "bindpassword",
        "ldapbindpassword",
        "authldapbindpassword",
        "sslkeypassword",
        "ssl_password",
        "keypassword",
        "auth_token",
        "neighbor-password",
        "enable-password",
        "identified",
        "sentinel-pass",
        "auth-password",
        "proxy-password",
        "secret-access-key",
        "secret_access_key",
        "proxypassword",
        "http_password",
        "es_password",
        "shared_key",
        "self_password",
        "aws_secret_access_key",
        "aws_access_key_id",
        "masteruser_password",
        "tls-key-file-pass",
        "tls-client-key-file-pass",
        "ldapadminpassword",
        "adminpw",
        "userpw",
    ]
    .contains(&name.as_str())
}

/// The secret that a sentence tells behind a name: `password is x`, `password changed from x to y`, `password x`.
pub(super) fn told(name: &str, line: &str) -> Option<Range<usize>> {
    let password = names::is_password(name);
    let mut at = 0;
    let mut found: Option<Range<usize>> = None;
    for (number, word) in line.split([' ', '\t']).take(10).enumerate() {
        let start = at;
        at += word.len() + 1;
        if word.is_empty() || word.len() > 256 {
            continue;
        }
        let bare = word.trim_matches(['"', '\'', '`', ',', '.', ';', ')', '(', ':']);
        let offset = word.find(bare).unwrap_or(0);
        let lower = bare.to_ascii_lowercase();
        let quoted = word.starts_with(['"', '\'', '`']);
        let behind = line
            .get(..start)
            .and_then(|head| head.split_whitespace().next_back())
            .unwrap_or_default()
            .to_ascii_lowercase();
        let given = matches!(
            behind.as_str(),
            "is" | "was" | "to" | "be" | "=" | "now" | "as" | "from" | "with" | "by"
        );
        // What is neither quoted nor holds a digit or a sign is a word.
        let word_only = !quoted && bare.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        let like = !word_only
            && !bare.starts_with('-')
            && if password {
                shape::is_password(bare) || shape::is_key(bare) || quoted && given && !is_name_of_field(bare)
            } else {
                shape::is_key(bare) || given && shape::is_password(bare)
            };
        if like && !shape::is_harmless(bare) && !shape::is_hash(bare) {
            let range = start + offset..start + offset + bare.len();
            found = Some(found.map_or(range.clone(), |found| found.start..range.end));
            continue;
        }
        let filler = FILL.contains(&lower.as_str()) || bare.is_empty();
        let between = found.is_some()
            && matches!(lower.as_str(), "to" | "with" | "by" | "->" | "=>" | "and" | "instead" | "into");
        let person = matches!(behind.as_str(), "for" | "of" | "user")
            || lower == "user"
            || lower == "for"
            || lower == "in"
            || lower == "on";
        if !(filler || between || number < 6 && person && found.is_none()) {
            break;
        }
    }
    found
}

/// Whether a text is a message, though it reads as YAML: a subject of several words, an empty line, and more; or a
/// sentence before the first colon of a line.
pub(super) fn is_message(text: &str) -> bool {
    if text.trim_start().starts_with(['{', '[']) {
        return false;
    }
    let mut lines = text.trim_start().lines();
    let subject = lines.next().unwrap_or_default();
    let words = subject.split_once(": ").is_some_and(|(scope, rest)| {
        !scope.contains(' ')
            && rest.split_whitespace().count() >= 3
            && !rest.starts_with(['"', '\'', '{', '[', '|', '>', '&', '#'])
    });
    let sentence = |line: &str| {
        !line.starts_with([' ', '\t', '#', '-', '"', '\'', '?', '{', '['])
            && line
                .split_once(": ")
                .is_some_and(|(head, _)| head.split_whitespace().count() >= 3 && !head.contains("{{"))
    };
    words && lines.next().is_some_and(|line| line.trim().is_empty()) || text.lines().any(sentence)
}

/// Whether a value is the label of a field that people see: `New password`, `Forgot your password?`.
pub(super) fn is_label(text: &str) -> bool {
    let mut words = text.split_whitespace();
    text.len() <= 64
        && text.starts_with(|letter: char| letter.is_uppercase())
        && text.split_whitespace().all(is_letters)
        && words.any(|word| names::classify(word.trim_matches(['?', '!', '.', ':'])) != names::Class::Plain)
}
