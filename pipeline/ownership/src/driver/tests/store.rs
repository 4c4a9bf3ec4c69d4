//! A store in memory, whose faults a test turns on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::{Lease, LeaseWrite, Presence, Replica, Shown, Store};

/// How a store behaves to one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Well,
    /// It takes everything, and never answers.
    Silent,
    /// As well as ever, beside a flood of changes that mean nothing.
    Flooding,
}

#[derive(Default)]
struct StoredLeases {
    revision: u64,
    leases: BTreeMap<u32, (Lease, u64)>,
    members: BTreeMap<Replica, u64>,
    watchers: Vec<mpsc::UnboundedSender<Shown>>,
}

impl StoredLeases {
    fn show(&mut self, shown: &Shown) {
        self.watchers.retain(|watcher| watcher.send(shown.clone()).is_ok());
    }
}

/// What all replicas share.
#[derive(Clone, Default)]
pub(super) struct Memory {
    kept: Arc<Mutex<StoredLeases>>,
    under_way: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

/// The way of one replica to it.
#[derive(Clone)]
pub(super) struct Way {
    memory: Memory,
    mood: watch::Sender<Mood>,
    /// How long the store takes for one write.
    takes: Duration,
}

impl Memory {
    pub(super) fn way(&self, takes: Duration) -> Way {
        Way { memory: self.clone(), mood: watch::Sender::new(Mood::Well), takes }
    }

    pub(super) fn lease(&self, shard: u32) -> Option<Lease> {
        self.kept.lock().unwrap().leases.get(&shard).map(|(lease, _)| lease.clone())
    }

    pub(super) fn members(&self) -> Vec<Replica> {
        self.kept.lock().unwrap().members.keys().cloned().collect()
    }

    /// The most writes that were under way at once.
    pub(super) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    /// Ends every watch, as a task that panics would.
    pub(super) fn break_watches(&self) {
        self.kept.lock().unwrap().watchers.clear();
    }

    /// Somebody else writes a record.
    pub(super) fn overwrite(&self, lease: Lease) {
        let mut kept = self.kept.lock().unwrap();
        kept.revision += 1;
        let revision = kept.revision;
        kept.leases.insert(lease.shard, (lease.clone(), revision));
        kept.show(&Shown::Lease { lease, revision });
    }
}

impl Way {
    pub(super) fn mood(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    async fn answers(&self) {
        tokio::time::sleep(self.takes).await;
        let _ = self.mood.subscribe().wait_for(|mood| *mood != Mood::Silent).await;
    }
}

/// A change that means nothing.
fn unheard_of() -> Shown {
    Shown::MemberGone { replica: Replica::new("unheard-of").unwrap() }
}

/// Counts down whether a write ends or is given up.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Store for Way {
    async fn write(&self, lease: &Lease, expected: Option<u64>) -> LeaseWrite {
        let now = self.memory.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        let _under_way = UnderWay(&self.memory.under_way);
        self.memory.most.fetch_max(now, Ordering::SeqCst);
        self.answers().await;
        let mut kept = self.memory.kept.lock().unwrap();
        let current = kept.leases.get(&lease.shard).cloned();
        if current.as_ref().map(|(_, revision)| *revision) != expected {
            return LeaseWrite::Refused { current };
        }
        kept.revision += 1;
        let revision = kept.revision;
        kept.leases.insert(lease.shard, (lease.clone(), revision));
        kept.show(&Shown::Lease { lease: lease.clone(), revision });
        LeaseWrite::Granted { revision }
    }

    async fn announce(&self, presence: &Presence) {
        self.answers().await;
        let mut kept = self.memory.kept.lock().unwrap();
        kept.revision += 1;
        let revision = kept.revision;
        kept.members.insert(presence.replica.clone(), revision);
        kept.show(&Shown::Member { replica: presence.replica.clone(), revision });
    }

    async fn leave(&self, replica: &Replica) {
        self.answers().await;
        let mut kept = self.memory.kept.lock().unwrap();
        kept.members.remove(replica);
        kept.show(&Shown::MemberGone { replica: replica.clone() });
    }

    async fn watch(&self, out: mpsc::Sender<Shown>) {
        self.answers().await;
        let (watcher, mut changes) = mpsc::unbounded_channel();
        let listed = {
            let mut kept = self.memory.kept.lock().unwrap();
            kept.watchers.push(watcher);
            let leases = kept.leases.values().cloned().collect();
            let members = kept.members.iter().map(|(replica, at)| (replica.clone(), *at)).collect();
            Shown::Listed { leases, members }
        };
        let mut mood = self.mood.subscribe();
        let mut next = Some(listed);
        while let Some(shown) = next.take() {
            if out.send(shown).await.is_err() {
                return;
            }
            // Faster than anybody reads: there is no room left whenever somebody else runs.
            while next.is_none() && *mood.borrow_and_update() == Mood::Flooding {
                while out.try_send(unheard_of()).is_ok() {}
                if out.is_closed() {
                    return;
                }
                tokio::task::yield_now().await;
                next = changes.try_recv().ok();
            }
            if next.is_none() {
                next = tokio::select! {
                    change = changes.recv() => change,
                    _ = mood.changed() => Some(unheard_of()),
                };
            }
        }
    }
}
