//! The shards that this process works on at the moment.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use pipeline_core::{Key, LaneCounts};
use tokio::sync::{mpsc, watch};

use crate::shard::Command;
use pipeline_ownership::sharding::Sharding;

/// One shard that is worked on, as others see it.
#[derive(Debug)]
pub(super) struct ShardHandle {
    pub(super) number: u32,
    pub(super) counts: watch::Receiver<LaneCounts>,
    pub(super) commands: mpsc::Sender<Command>,
}

/// The shards that this process works on. They stay as they are where nothing is shared with other processes, and come
/// and go with their leases.
#[derive(Debug)]
pub(crate) struct Table {
    sharding: Sharding,
    running: RwLock<BTreeMap<u32, Arc<ShardHandle>>>,
    skipped: AtomicU64,
}

impl Table {
    pub(super) fn new(sharding: Sharding) -> Self {
        Self { sharding, running: RwLock::default(), skipped: AtomicU64::new(0) }
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

    /// What all of them did and hold, as they last told.
    pub(super) fn counts(&self) -> LaneCounts {
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        running.values().map(|told| *told.counts.borrow()).sum()
    }

    /// An event came that is another route's.
    pub(crate) fn skip(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    /// Events that were other routes'.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// All of them, in order.
    pub(super) fn all(&self) -> Vec<Arc<ShardHandle>> {
        self.running.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
