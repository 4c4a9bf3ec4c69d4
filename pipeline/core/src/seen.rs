//! What the watch has seen: the newest version and the uid of every application, whoever owns its shard.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::{Key, Uid, Version};

/// Shared between the watch, which writes it, and enrichment, which asks it about parents. Bounded by the
/// number of applications; holds no object. Cloning shares.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    newest: Arc<RwLock<HashMap<Key, (Uid, Version)>>>,
}

impl Seen {
    /// Notes that `key` was seen. An older version than the one known of the same uid changes nothing.
    pub fn note(&self, key: &Key, uid: &Uid, version: Version) {
        let mut newest = self.newest.write().unwrap_or_else(PoisonError::into_inner);
        match newest.get_mut(key) {
            Some((known, at)) if known == uid => *at = (*at).max(version),
            Some(entry) => *entry = (uid.clone(), version),
            None => {
                newest.insert(key.clone(), (uid.clone(), version));
            }
        }
    }

    /// Forgets `key`: it is gone. Returns what was known of it.
    pub fn forget(&self, key: &Key) -> Option<(Uid, Version)> {
        self.newest.write().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    /// What is known of `key`.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<(Uid, Version)> {
        self.newest.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Every key that is there, in no order.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        self.newest.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// How many applications are there.
    #[must_use]
    pub fn len(&self) -> usize {
        self.newest.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether none is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
