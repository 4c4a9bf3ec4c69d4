//! What of a key must outlive the process.

use std::sync::Arc;

use crate::{OperationEnd, Uid, Version};

/// What of a key is unreported and cannot be read again from the cluster: it must outlive the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pending {
    /// Ends of operations, oldest first: the life, the state that showed it, the end.
    pub ends: Vec<(Uid, Version, Arc<OperationEnd>)>,
    /// Lives that are over, and their last known state, oldest first.
    pub gone: Vec<(Uid, Version)>,
}

impl Pending {
    /// The latest life that it tells of.
    #[must_use]
    pub fn latest(&self) -> Option<&Uid> {
        let ends = self.ends.iter().map(|(uid, version, _)| (version, uid));
        let lives = ends.chain(self.gone.iter().map(|(uid, version)| (version, uid)));
        lives.max_by_key(|(version, _)| **version).map(|(_, uid)| uid)
    }
}
