//! The shards that are held, and what of the memory is theirs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use pipeline_core::Key;

use super::super::state::State;
use super::super::tables::{RowId, Table};
use pipeline_ownership::sharding::Sharding;

/// A shard that is held.
#[derive(Debug, Clone)]
pub(crate) struct ClaimedShard {
    /// Under which its reports are counted.
    pub(crate) id: Arc<str>,
    /// Of its claim in the bucket.
    pub(crate) sequence: u64,
}

/// All that are held.
pub(crate) struct Shards {
    sharding: Sharding,
    pub(crate) held: HashMap<u32, ClaimedShard>,
}

impl Shards {
    pub(super) fn new(sharding: Sharding) -> Self {
        Self { sharding, held: HashMap::new() }
    }

    /// The shard of a key, held or not.
    pub(crate) fn place(&self, key: &Key) -> u32 {
        self.sharding.place(key)
    }

    /// The shard of a key, if it is held.
    pub(crate) fn of(&self, key: &Key) -> Option<&ClaimedShard> {
        self.held(self.place(key))
    }

    /// A shard, if it is held.
    pub(crate) fn held(&self, shard: u32) -> Option<&ClaimedShard> {
        self.held.get(&shard)
    }

    pub(super) fn owned(&self) -> BTreeSet<u32> {
        self.held.keys().copied().collect()
    }
}

impl State {
    /// Forgets a shard and all that is remembered of it.
    pub(super) fn forget(&mut self, shard: u32) {
        let Some(shards) = self.shards.as_ref().filter(|shards| shards.held.contains_key(&shard)) else {
            return;
        };
        let row_ids: Vec<RowId> =
            self.tables.row_ids().filter(|(_, key)| shards.place(key) == shard).collect();
        let sharding = shards.sharding;
        self.dirty.retain(|(_, key)| sharding.place(key) != shard);
        self.cut.retain(|key| sharding.place(key) != shard);
        for (table, key) in row_ids {
            match table {
                Table::Records => drop(self.change(&key, |_| None)),
                Table::Journal | Table::Parked | Table::Done => drop(self.put(table, &key, None)),
            }
        }
        self.recent.forget(shard);
        if let Some(shards) = &mut self.shards {
            shards.held.remove(&shard);
        }
        if self.dirty.is_empty() {
            self.dirty_since = None;
            if self.committing == 0 {
                // Nobody writes what was forgotten, and nobody waits for it.
                self.committed = self.changed;
                for (_, waiter) in self.waiters.drain(..) {
                    let _ = waiter.send(Ok(()));
                }
            }
        }
    }
}
