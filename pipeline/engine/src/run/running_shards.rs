//! The shards that this process works on at the moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use pipeline_core::{Key, LaneCounts};
use tokio::sync::{mpsc, watch};

use crate::lane::Backlog;
use crate::shard::Command;
use pipeline_ownership::sharding::Sharding;

/// One shard that is worked on, as others see it.
#[derive(Debug)]
pub(super) struct ShardHandle {
    pub(super) number: u32,
    /// Its counters, as it last told them.
    pub(super) counts: watch::Receiver<LaneCounts>,
    /// What it has to do now.
    pub(super) backlog: watch::Receiver<Backlog>,
    pub(super) commands: mpsc::Sender<Command>,
}

/// The shards that this process works on. They stay as they are where nothing is shared with other processes, and come
/// and go with their leases.
#[derive(Debug)]
pub(crate) struct RunningShards {
    sharding: Sharding,
    running: RwLock<BTreeMap<u32, Arc<ShardHandle>>>,
    /// Events that were other routes', by shard.
    skipped: Mutex<BTreeMap<u32, u64>>,
}

impl RunningShards {
    pub(super) fn new(sharding: Sharding) -> Self {
        Self { sharding, running: RwLock::default(), skipped: Mutex::default() }
    }

    /// How many there are, here or elsewhere.
    pub(super) fn shards(&self) -> u32 {
        self.sharding.shards().get()
    }

    pub(super) fn add(&self, told: ShardHandle) {
        let mut running = self.running.write().unwrap_or_else(PoisonError::into_inner);
        running.insert(told.number, Arc::new(told));
    }

    pub(super) fn remove(&self, shard: u32) {
        self.running.write().unwrap_or_else(PoisonError::into_inner).remove(&shard);
    }

    /// The shard of an object, if it is worked on here.
    pub(super) fn of(&self, key: &Key) -> Option<Arc<ShardHandle>> {
        let shard = self.sharding.place(key);
        self.running.read().unwrap_or_else(PoisonError::into_inner).get(&shard).cloned()
    }

    /// What all of them did and hold.
    pub(super) fn backlog(&self) -> Backlog {
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        running.values().map(|told| *told.backlog.borrow()).sum()
    }

    /// An event of a shard came that is another route's.
    pub(crate) fn skip(&self, shard: u32) {
        *self.skips().entry(shard).or_default() += 1;
    }

    /// Events that were other routes'.
    pub(super) fn skipped(&self) -> u64 {
        self.skips().values().sum()
    }

    /// Events of one shard that came so far, other routes' included, and what it held when that was told.
    pub(super) fn came(&self, shard: u32) -> Option<(u64, LaneCounts)> {
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        let counts = *running.get(&shard)?.counts.borrow();
        let skipped = self.skips().get(&shard).copied().unwrap_or_default();
        Some((counts.delivered + skipped, counts))
    }

    fn skips(&self) -> MutexGuard<'_, BTreeMap<u32, u64>> {
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, in order.
    pub(super) fn all(&self) -> Vec<Arc<ShardHandle>> {
        self.running.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
