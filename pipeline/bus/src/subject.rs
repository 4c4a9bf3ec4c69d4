//! Where a message travels: `<prefix>.<source>.<shard>.<uid>` and one of
//!
//! - `.state`: the newest takes the place of one that nobody has consumed yet;
//! - `.once.<resourceVersion>`: stays until it is consumed; `.once.<resourceVersion>.deleted` for a deletion, which may
//!   be noticed at the very version that was seen last. What brings facts of earlier states along ends in `.facts.` and what
//!   tells them, in hex: the same state of a watcher that did not see those must not take its place.
//!
//! Reports end in one more token, the entity's id in hex, 0 for the object itself: neither a change nor the report of
//! another entity takes their place.
//! What is no plain token (letters, digits, `-`, `_`) is escaped as `=` and two hex digits a byte; nothing is `=` alone.

use std::fmt;

use pipeline_core::{Digest, EntityId, Uid, Version};

use super::message::{Kind, Message};

/// Bytes of one escaped token; a server's bound for a whole subject with all that belongs to it is 4,096.
const MAX_TOKEN: usize = 512;

/// Bytes of a prefix.
const MAX_PREFIX: usize = 128;

/// The first tokens of every subject of one installation, `gitops-runtime` for example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

/// A text that cannot be the first part of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a prefix of the bus is 1 to 128 letters, digits, `-` and `_`, in parts between dots")]
pub struct PrefixError;

impl Prefix {
    /// Checks a prefix.
    ///
    /// # Errors
    /// [`PrefixError`].
    pub fn new(text: &str) -> Result<Self, PrefixError> {
        let plain = |part: &str| !part.is_empty() && part.bytes().all(is_plain);
        if text.len() > MAX_PREFIX || !text.split('.').all(plain) {
            return Err(PrefixError);
        }
        Ok(Self(text.to_owned()))
    }

    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What all names on the server begin with: no dot may stand in it.
    #[must_use]
    pub fn stream(&self) -> String {
        self.0.replace('.', "_")
    }

    /// The name of the stream that holds what `source` publishes: one that is full refuses nothing of another.
    #[must_use]
    pub fn stream_of(&self, source: &str) -> String {
        format!("{}_{}", self.stream(), escape(source))
    }

    /// Every subject below it.
    #[must_use]
    pub fn all(&self) -> String {
        format!("{}.>", self.0)
    }

    /// Every subject of one source, or of one shard of it.
    ///
    /// # Errors
    /// [`SubjectError::TooLong`].
    pub fn filter(&self, source: &str, shard: Option<u32>) -> Result<String, SubjectError> {
        let source = token(source)?;
        Ok(match shard {
            None => format!("{}.{source}.>", self.0),
            Some(shard) => format!("{}.{source}.{shard}.>", self.0),
        })
    }
}

/// Whether a newer message may take the place of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The newest is enough.
    Newest,
    /// Each must arrive.
    Each,
}

impl Keep {
    /// Of a message, where `told` is the fact that was last published of this uid: a deletion, and a fact that was not
    /// published yet, must arrive; so must states that others with facts were folded into.
    ///
    /// Every later state may show the last fact as well, and none would ever coalesce without `told`.
    #[must_use]
    pub fn of(message: &Message, told: Option<Digest>) -> Self {
        let fact = message.fact.as_ref().map(|fact| fact.id);
        let news = fact.is_some() && fact != told;
        if message.kind() == Kind::Deleted || news || !message.coalesced.is_empty() {
            Self::Each
        } else {
            Self::Newest
        }
    }
}

/// The last part of a subject: of messages that have all of it in common the stream keeps the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionKey {
    /// One place a uid, and one a thing reported of it: coalesces.
    State,
    /// A place of its own, also beside the same state with other facts of earlier ones.
    Once {
        /// Of the object.
        version: Version,
        /// It is a deletion.
        is_deleted: bool,
        /// Facts of earlier states that it brings along.
        brought: Option<Digest>,
    },
}

/// Where one message travels, without the prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What published it: `objects` for example.
    pub source: String,
    /// The shard of the object's name.
    pub shard: u32,
    /// The life of the object.
    pub uid: Uid,
    /// What it is kept under.
    pub compaction: CompactionKey,
    /// What a report is about; `None` for a change.
    pub about: Option<EntityId>,
}

/// A subject that cannot be written, or is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// A part is longer than a server takes.
    #[error("a part of a subject of the bus is longer than {MAX_TOKEN} bytes")]
    TooLong,
    /// It does not have the shape above.
    #[error("a subject is not one of the bus")]
    Foreign,
}

impl Subject {
    /// The subject of `message`, published by `source` for `shard`.
    #[must_use]
    pub fn of(source: &str, shard: u32, message: &Message, keep: Keep) -> Self {
        let compaction = match keep {
            Keep::Newest => CompactionKey::State,
            Keep::Each => CompactionKey::Once {
                version: message.version,
                is_deleted: message.kind() == Kind::Deleted,
                brought: message.brought(),
            },
        };
        Self {
            source: source.to_owned(),
            shard,
            uid: Uid::clone(&message.uid),
            compaction,
            about: message.about().map(|about| about.entity),
        }
    }

    /// As text, below `prefix`.
    ///
    /// # Errors
    /// [`SubjectError::TooLong`].
    pub fn text(&self, prefix: &Prefix) -> Result<String, SubjectError> {
        let Self { shard, compaction, .. } = self;
        let (source, uid) = (token(&self.source)?, token(&self.uid)?);
        let mut text = format!("{}.{source}.{shard}.{uid}.{compaction}", prefix.0);
        if let Some(EntityId(id)) = self.about {
            text.push_str(&format!(".{id:016x}"));
        }
        Ok(text)
    }

    /// Reads what [`Subject::text`] wrote.
    ///
    /// # Errors
    /// [`SubjectError::Foreign`] for every text that it would not write.
    pub fn parse(prefix: &Prefix, text: &str) -> Result<Self, SubjectError> {
        let subject = Self::read(prefix, text).ok_or(SubjectError::Foreign)?;
        match subject.text(prefix) {
            Ok(same) if same == text => Ok(subject),
            _ => Err(SubjectError::Foreign),
        }
    }

    fn read(prefix: &Prefix, text: &str) -> Option<Self> {
        let tail = text.strip_prefix(prefix.as_str())?.strip_prefix('.')?;
        let parts: Vec<&str> = tail.splitn(10, '.').collect();
        let [source, shard, uid, end @ ..] = parts.as_slice() else { return None };
        let hex = |id: &str| u64::from_str_radix(id, 16).ok();
        let (compaction, rest) = match end {
            ["state", rest @ ..] => (CompactionKey::State, rest),
            ["once", version, rest @ ..] => {
                let version = Version(version.parse().ok()?);
                let (is_deleted, rest) = match rest {
                    ["deleted", rest @ ..] => (true, rest),
                    rest => (false, rest),
                };
                let (brought, rest) = match rest {
                    ["facts", id, rest @ ..] => (Some(Digest(hex(id)?)), rest),
                    rest => (None, rest),
                };
                (CompactionKey::Once { version, is_deleted, brought }, rest)
            }
            _ => return None,
        };
        let about = match rest {
            [] => None,
            [id] => Some(EntityId(hex(id)?)),
            _ => return None,
        };
        let (source, uid) = (plain(source)?, plain(uid)?);
        Some(Self { source, shard: shard.parse().ok()?, uid: uid.into(), compaction, about })
    }
}

impl fmt::Display for CompactionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Once { version: Version(version), is_deleted, brought } = self else {
            return f.write_str("state");
        };
        write!(f, "once.{version}{}", if *is_deleted { ".deleted" } else { "" })?;
        brought.map_or(Ok(()), |Digest(facts)| write!(f, ".facts.{facts:016x}"))
    }
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// A text as one token, of a bounded length.
pub fn token(text: &str) -> Result<String, SubjectError> {
    if text.len() > MAX_TOKEN {
        return Err(SubjectError::TooLong);
    }
    let token = escape(text);
    if token.len() > MAX_TOKEN { Err(SubjectError::TooLong) } else { Ok(token) }
}

/// A text as one token.
pub fn escape(text: &str) -> String {
    if text.is_empty() { "=".to_owned() } else { escape_all_but(is_plain, text) }
}

/// A text in which each byte but those that stay is `=` and two hex digits.
pub(crate) fn escape_all_but(stays: fn(u8) -> bool, text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if stays(byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("={byte:02X}"));
        }
    }
    escaped
}

/// The text of one token.
pub fn plain(token: &str) -> Option<String> {
    if token == "=" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'=' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
