//! The real ledger, on a disk that forgets what was not committed.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::FutureExt as _;
use pipeline_core::{Checkpoint, Fact, Key, Record, Report};

use pipeline_ledger::Ledger;
use pipeline_ledger::simulated::Disk;

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// SIGTERM: everything is written first.
    Orderly,
    /// SIGKILL: what was handed to the operating system is there.
    Killed,
    /// The machine goes: what was not synced is lost.
    PowerLoss,
}

/// What is remembered.
pub(super) struct Books {
    pub(super) ledger: Ledger,
    pub(super) disk: Disk,
    /// Records that moved since anybody looked.
    pub(super) moved: BTreeSet<Key>,
    /// The disk is full: neither commits nor notes succeed.
    pub(super) full: bool,
    /// A note of a report on its way was lost, and no commit has made it good.
    unnoted: bool,
}

impl Books {
    pub(super) fn new() -> Self {
        Self::open(Disk::new(7))
    }

    fn open(disk: Disk) -> Self {
        let ledger = Ledger::simulated(&disk);
        let moved = ledger.known().into_iter().map(|(key, _)| key).collect();
        Self { ledger, disk, moved, full: false, unnoted: false }
    }

    pub(super) fn get(&self, key: &Key) -> Option<Record> {
        self.ledger.get(key)
    }

    pub(super) fn update(&mut self, key: &Key, change: impl FnOnce(Option<Record>) -> Option<Record>) {
        self.ledger.update(key, change);
        self.moved.insert(key.clone());
    }

    pub(super) fn acknowledge(&mut self, key: &Key, report: &Report) {
        self.ledger.acknowledge(key, report);
        self.moved.insert(key.clone());
    }

    pub(super) fn checkpoint(&mut self, key: &Key, checkpoint: &Checkpoint, told: &[Fact]) {
        self.ledger.checkpoint(key, checkpoint, told);
        self.moved.insert(key.clone());
    }

    pub(super) fn sending(&mut self, key: &Key, report: &Report, state: Option<&Bytes>) {
        self.ledger.sending(key, report, state).now_or_never().expect("waits for no thread");
        self.moved.insert(key.clone());
        self.unnoted |= self.full;
    }

    /// Takes everything for sure: broken on purpose.
    pub(super) fn trusts(&mut self) {
        for (key, _) in self.ledger.known() {
            self.update(&key, |record| {
                record.map(|mut record| {
                    record.entities.iter_mut().for_each(|row| row.in_doubt = false);
                    record
                })
            });
        }
    }

    pub(super) fn set_full(&mut self, full: bool) {
        self.full = full;
        self.disk.full(full);
    }

    /// Commits everything that waits; whether that worked.
    pub(super) fn commit(&mut self) -> bool {
        let worked = self.ledger.commit_simulated();
        self.unnoted &= !worked;
        worked
    }

    /// Whether a kill loses what is known of reports on their way.
    pub(super) fn forgets(&self, end: End) -> bool {
        end == End::PowerLoss || self.unnoted
    }

    /// What the next process finds.
    pub(super) fn after(&self, end: End) -> Self {
        if end == End::PowerLoss {
            self.disk.power_loss();
        }
        let books = Self::open(self.disk.clone());
        Self { full: self.full, ..books }
    }
}
