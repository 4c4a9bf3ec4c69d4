//! Redaction, fail closed, before anything leaves the process or is logged.
//!
//! takes: manifests (live, desired, raw Git text), Applications, messages
//! gives: the same with every secret value replaced by `redacted:hmac-sha256:<32 hex digits>`, a digest of
//! the value under the runtime's key: a changed secret is seen to have changed, equal values give equal
//! digests (the `data` of a Secret is decoded first, so that it equals its `stringData`), and nobody can
//! guess values by hashing. Argo CD's own mask (`++++++++`) stays. Text without a secret comes back to the
//! byte.
//! fails: never; what cannot be read is withheld, replaced by a constant text and a digest.

mod comments;
mod document;
mod explain;
mod key;
mod keys;
mod marks;
mod names;
mod occurrences;
mod packed;
mod placeholders;
mod programs;
mod prose;
mod scan;
mod shape;
mod splice;
mod table;
mod text;
mod tree;
mod walk;
mod words;

use std::borrow::Cow;
use std::fmt;

pub use explain::{Explained, Note};
use hmac::{Hmac, KeyInit as _, Mac as _};
pub use key::{RedactionKey, RedactionKeyError};
use serde_json::{Value, json};
use sha2::Sha256;
pub use table::{Cut, ROWS, Row};

/// What every digest begins with.
pub const PREFIX: &str = "redacted:hmac-sha256:";
/// Hexadecimal digits of a digest: half of the HMAC.
const DIGITS: usize = 32;
/// What stands for a manifest that cannot be read.
pub const WITHHELD: &str = "unparsable manifest";

/// Replaces secret values by keyed digests. Cheap to clone.
#[derive(Clone)]
pub struct Redactor {
    mac: Hmac<Sha256>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// `key` is the per-runtime HMAC key, of any length; see [`RedactionKey`].
    #[must_use]
    #[expect(clippy::expect_used, reason = "HMAC takes keys of every length; only its trait knows others")]
    pub fn new(key: &[u8]) -> Self {
        Self { mac: Hmac::new_from_slice(key).expect("a key of any length") }
    }

    /// The keyed digest of `value`, `redacted:hmac-sha256:<32 hex digits>`.
    #[must_use]
    pub fn digest(&self, value: &[u8]) -> String {
        let mut mac = self.mac.clone();
        mac.update(value);
        let full = mac.finalize().into_bytes();
        let mut text = String::with_capacity(PREFIX.len() + DIGITS);
        text.push_str(PREFIX);
        for byte in full.iter().take(DIGITS / 2) {
            for digit in [byte >> 4, byte & 15] {
                text.extend(char::from_digit(u32::from(digit), 16));
            }
        }
        text
    }

    /// Redacts one manifest as JSON text (live, desired, or the text `null`). Text that holds no secret is
    /// returned as it is, to the byte; what is no JSON object or array is withheld:
    /// `{"withheld":"unparsable manifest","digest":"redacted:hmac-sha256:..."}`.
    #[must_use]
    pub fn manifest<'a>(&self, json: &'a str) -> Cow<'a, str> {
        if json.trim().is_empty() {
            return Cow::Borrowed(json);
        }
        match tree::json(json) {
            Ok(Value::Null) => Cow::Borrowed(json),
            Ok(mut object @ (Value::Object(_) | Value::Array(_))) => match self.value(&mut object) {
                false => Cow::Borrowed(json),
                true => Cow::Owned(object.to_string()),
            },
            Ok(_) | Err(tree::Unreadable) => {
                Cow::Owned(json!({"withheld": WITHHELD, "digest": self.digest(json.as_bytes())}).to_string())
            }
        }
    }

    /// Redacts raw Git text: YAML of one or many documents, JSON, Helm values, anything. Text that holds no
    /// secret is returned as it is, to the byte; in text that holds one nothing but the secret scalars differs, and what
    /// its comments tell of secrets. Where it has templates, or a whole Secret in its comments, it is written anew,
    /// without comments;
    /// text that cannot be read is withheld: `# withheld: unparsable manifest (redacted:hmac-sha256:...)`.
    #[must_use]
    pub fn raw<'a>(&self, text: &'a str) -> Cow<'a, str> {
        walk::Walk::new(self).raw(text).unwrap_or_else(|_| Cow::Owned(self.withheld(text)))
    }

    /// Redacts an object in place (an Application, or any manifest). Returns whether anything changed.
    pub fn value(&self, object: &mut Value) -> bool {
        walk::Walk::new(self).redact(object)
    }

    /// Redacts free text: a message or a URL (credentials in URLs, token shapes, private keys, values beside
    /// names that say secret). A text that quotes a whole Secret, as `kubectl` does, is withheld.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        walk::Walk::new(self).free(text, 0)
    }

    /// Redacts only what is secret by its own shape.
    fn marked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replace(text, &text::secrets(text, false))
    }

    /// Redacts the name of a member, in which a whole text may stand.
    fn named<'a>(&self, name: &'a str) -> Cow<'a, str> {
        self.replace(name, &text::secrets(name, name.contains([' ', '='])))
    }

    fn replace<'a>(&self, text: &'a str, secrets: &[scan::Found]) -> Cow<'a, str> {
        if secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len() + secrets.len() * DIGITS);
        let mut done = 0;
        for secret in secrets.iter().map(|secret| &secret.range) {
            // Ranges end at ASCII bytes; one that would not is widened to the whole rest, never passed on.
            let (Some(kept), Some(value)) = (text.get(done..secret.start), text.get(secret.clone())) else {
                return Cow::Owned(self.digest(text.as_bytes()));
            };
            out.push_str(kept);
            out.push_str(&self.digest(value.as_bytes()));
            done = secret.end;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(out)
    }

    fn withheld(&self, text: &str) -> String {
        format!("# withheld: {WITHHELD} ({})\n", self.digest(text.as_bytes()))
    }
}
