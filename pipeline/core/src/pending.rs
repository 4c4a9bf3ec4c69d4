//! What of a key must outlive the process.

use serde::{Deserialize, Serialize};

use crate::{Fact, Uid, Version};

/// What of a key is unreported and cannot be read again from the cluster: it must outlive the process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Facts, oldest first: the life, the state that showed it, the fact.
    pub facts: Vec<(Uid, Version, Fact)>,
    /// Lives that are over, and their last known state, oldest first.
    pub gone: Vec<(Uid, Version)>,
}

impl Pending {
    /// The same, if it tells of anything.
    #[must_use]
    pub fn if_any(self) -> Option<Self> {
        (!self.facts.is_empty() || !self.gone.is_empty()).then_some(self)
    }

    /// The latest life that it tells of.
    #[must_use]
    pub fn latest(&self) -> Option<&Uid> {
        let facts = self.facts.iter().map(|(uid, version, _)| (version, uid));
        let lives = facts.chain(self.gone.iter().map(|(uid, version)| (version, uid)));
        lives.max_by_key(|(version, _)| **version).map(|(_, uid)| uid)
    }
}
