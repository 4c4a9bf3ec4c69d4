//! What is secret by its own shape, as data: one row a pattern.
//!
//! A row is searched in the runs in which one of its marks stands, and again behind each find that is no secret, as far as
//! that stays linear (`scan.rs`). The first of its groups that matches is the secret, else the whole match. The samples of
//! each row are a test.

mod devices;
mod lines;
mod messages;
mod statements;
mod tokens;

use devices::DEVICES;
use lines::LINES;
use messages::MESSAGES;
use statements::STATEMENTS;
use tokens::TOKENS;

/// How a text is cut into the runs in which a row is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// At white space, quotes, brackets and the signs that part fields: what tokens are made of stays together.
    Word,
    /// At white space, quotes and angle brackets, and before the scheme of each URL.
    Link,
    /// At the end of a line.
    Line,
}

/// One pattern.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name, which `gitops-runtime redact --explain` shows.
    pub name: &'static str,
    /// Whose it is, or where it is written down.
    pub from: &'static str,
    /// In what it is searched.
    pub cut: Cut,
    /// One of these, in any case, stands in every match. None holds a part of a name, which is looked at by itself.
    pub marks: &'static [&'static str],
    /// Its regular expression, which knows ASCII alone.
    pub pattern: &'static str,
    /// Texts that match.
    pub yes: [&'static str; 2],
    /// Texts that do not.
    pub no: [&'static str; 2],
}

impl Row {
    /// Whether what this row finds is a word that stands there as often as a secret: a short number, a version or a word for
    /// a state that is written to a file; a version or a name of a secret in capitals that `sed` fills in; a version, an
    /// address or a structure that is encoded.
    pub fn is_plain(&self, text: &str) -> bool {
        let all = |known: fn(u8) -> bool| text.bytes().all(known);
        let version = || {
            let number = text.strip_prefix('v').unwrap_or(text);
            number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
                && (text.starts_with('v') || text.contains('.'))
        };
        let names = || ["PASS", "SECRET", "TOKEN", "KEY"].iter().any(|known| text.contains(known));
        match self.name {
            "written-to-a-file" => {
                text.len() <= 4 && all(|byte| byte.is_ascii_digit())
                    || ["ENABLED", "DISABLED", "TRUE", "FALSE", "NONE", "DONE", "READY"].contains(&text)
                    || version()
            }
            "filled-in-by-sed" => {
                names() && all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
                    || version()
            }
            // Nobody can log in.
            "user-with-an-id" => text.len() < 4 || text.starts_with(['!', '*']),
            // What every agent of SNMP is delivered with.
            "community-of-a-device" => text == "public",
            // How something is encrypted, `the secret cipher aes-256-cbc`; how many characters a simple password has.
            "cipher-of-a-device" => {
                let lower = text.to_ascii_lowercase();
                text.len() < 3
                    || super::words::TERMS.contains(lower.as_str())
                    || ["aes-", "aes1", "aes2", "tls_", "ecdhe-", "ecdhe_", "dhe-", "chacha20-", "3des-"]
                        .iter()
                        .any(|begin| lower.starts_with(begin))
            }
            "encoded-by-a-shell" | "hashed-by-a-shell" => {
                text.contains(['/', '{', ':']) && !super::shape::is_password(text) || version()
            }
            "value-of-a-column" => text.len() < 6 || super::shape::is_uuid(text) || version(),
            // What a script says of one: `token: missing`.
            "filled-in-by-printf" => super::prose::is_word_of_prose(text) || super::prose::is_state(text),
            "key-in-other-languages" => !super::shape::is_key(text),
            // Until when one is good: `2026-12-01T08:00:00Z`.
            "password-in-other-scripts" => {
                let mut parts = text.split(['-', 'T', ':', 'Z', '.', '+']).filter(|part| !part.is_empty());
                text.get(4..5) == Some("-")
                    && text.contains('T')
                    && parts.clone().count() >= 5
                    && parts.all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
            }
            _ => false,
        }
    }
}

macro_rules! rows {
    ($($new:ident $cut:ident),*) => {$(
        const fn $new(
            name: &'static str,
            from: &'static str,
            marks: &'static [&'static str],
            pattern: &'static str,
            yes: [&'static str; 2],
            no: [&'static str; 2],
        ) -> Row {
            Row { name, from, cut: Cut::$cut, marks, pattern, yes, no }
        }
    )*};
}
rows!(word Word, link Link, line Line);

/// Every row: what is secret by itself, then what a line says of it. A token begins where no letter, digit or `_` stands
/// before it.
pub const ROWS: &[Row] = &{
    let parts = [TOKENS, LINES, DEVICES, STATEMENTS, MESSAGES];
    let mut rows =
        [TOKENS[0]; TOKENS.len() + LINES.len() + DEVICES.len() + STATEMENTS.len() + MESSAGES.len()];
    let (mut row, mut part) = (0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            rows[row] = parts[part][at];
            (row, at) = (row + 1, at + 1);
        }
        part += 1;
    }
    rows
};
