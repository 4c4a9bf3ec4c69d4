//! The name of a replica.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The most bytes of a name: what a Kubernetes object's may have.
const BYTES: usize = 253;

/// Names one life of one replica, such as `event-reporter-2.9f31c0`: no two processes ever have the same name, not even
/// one after the other, so that a process that was restarted under its host's name is never taken for the owner that it
/// was. Letters, digits, `-`, `_` and `.`, which is what keys of a JetStream bucket may hold. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Replica(Arc<str>);

/// A text that names no replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name of a replica is 1 to {BYTES} letters, digits, `-`, `_` or `.`, with no `.` at an end or beside another"
)]
pub struct ReplicaError;

impl Replica {
    /// Reads a name.
    ///
    /// # Errors
    /// [`ReplicaError`] when it is none.
    pub fn new(name: &str) -> Result<Self, ReplicaError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let dotted = name.starts_with('.') || name.ends_with('.') || name.contains("..");
        match (1..=BYTES).contains(&name.len()) && name.bytes().all(allowed) && !dotted {
            true => Ok(Self(name.into())),
            false => Err(ReplicaError),
        }
    }

    /// Stands for an owner of whom nothing is known; processes have longer names.
    pub(super) fn unknown() -> Self {
        Self("unknown".into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Replica {
    type Error = ReplicaError;

    fn try_from(name: String) -> Result<Self, ReplicaError> {
        Self::new(&name)
    }
}

impl fmt::Display for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_every_store_can_hold() {
        for name in ["a", "event-reporter-2.9f31c0", "A_b", &"x".repeat(253)] {
            assert_eq!(Replica::new(name).unwrap().as_str(), name);
        }
        for name in ["", "a b", "a/b", "ä", "a*", ".a", "a.", "a..b", &"x".repeat(254)] {
            assert_eq!(
                Replica::new(name).unwrap_err().to_string(),
                "the name of a replica is 1 to 253 letters, digits, `-`, `_` or `.`, with no `.` at an end or beside \
                 another"
            );
        }
    }
}
