//! What must not be coalesced.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Digest;

/// Something that happened once, and that a later state of the object may not show any more. States coalesce, facts do
/// not: each is kept until it was reported. Only the stage that made it knows what its body says.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Tells it from every other fact of the same incarnation.
    pub id: Digest,
    /// What it is, for the stage that made it; redacted.
    pub body: Bytes,
}

/// Without what it says: what is printed may end in a log.
impl fmt::Debug for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fact({:016x}, {} bytes)", self.id.0, self.body.len())
    }
}

impl Fact {
    /// Whether both are the same fact.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.id == other.id
    }

    /// Bytes it is charged with.
    #[must_use]
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.body.len()
    }
}
