//! The store: records that are written by compare-and-set, and what a watch shows of them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::{Input, Lease, LeaseWrite, Replica, Shown, Write};

#[derive(Debug, Clone)]
struct StoredLeases {
    lease: Lease,
    revision: u64,
}

pub(super) struct Store {
    /// Writes whatever comes.
    blind: bool,
    revision: u64,
    leases: BTreeMap<u32, StoredLeases>,
    members: BTreeMap<Replica, (u64, Duration)>,
    /// Of every shard, since the beginning: a store that lost everything does not make epochs fall.
    highest: BTreeMap<u32, u64>,
    fell: Option<String>,
    pub(super) away_until: Duration,
    /// How often everything was lost: watches begin anew.
    pub(super) lives: u64,
}

impl Store {
    pub(super) fn new(blind: bool) -> Self {
        Self {
            blind,
            revision: 0,
            leases: BTreeMap::new(),
            members: BTreeMap::new(),
            highest: BTreeMap::new(),
            fell: None,
            away_until: Duration::ZERO,
            lives: 0,
        }
    }

    pub(super) fn write(&mut self, write: &Write) -> LeaseWrite {
        let held = self.leases.get(&write.shard);
        if held.map(|kept| kept.revision) != write.expected && !self.blind {
            return LeaseWrite::Refused { current: held.map(|kept| (kept.lease.clone(), kept.revision)) };
        }
        let highest = self.highest.entry(write.shard).or_default();
        let changes_hands = held.is_none_or(|kept| write.owner.is_some() && kept.lease.owner != write.owner);
        if write.epoch < *highest || (changes_hands && write.epoch == *highest) {
            let (shard, epoch) = (write.shard, write.epoch);
            self.fell.get_or_insert(format!("shard {shard} goes from epoch {highest} to {epoch}"));
        }
        *highest = write.epoch.max(*highest);
        self.revision += 1;
        let until = pipeline_core::Timestamp::UNIX_EPOCH;
        let lease = Lease { shard: write.shard, epoch: write.epoch, owner: write.owner.clone(), until };
        self.leases.insert(write.shard, StoredLeases { lease, revision: self.revision });
        LeaseWrite::Granted { revision: self.revision }
    }

    pub(super) fn announce(&mut self, replica: &Replica, now: Duration) {
        self.revision += 1;
        self.members.insert(replica.clone(), (self.revision, now));
    }

    pub(super) fn leave(&mut self, replica: &Replica) {
        self.members.remove(replica);
    }

    pub(super) fn list(&self) -> Input {
        Input::Shown(Shown::Listed {
            leases: self.leases.values().map(|kept| (kept.lease.clone(), kept.revision)).collect(),
            members: self
                .members
                .iter()
                .map(|(replica, (revision, _))| (replica.clone(), *revision))
                .collect(),
        })
    }

    /// What a watch shows that has shown everything up to a revision.
    pub(super) fn since(&self, revision: u64) -> Vec<Input> {
        let leases = self.leases.values().filter(|kept| kept.revision > revision);
        let leases = leases.map(|kept| {
            (kept.revision, Input::Shown(Shown::Lease { lease: kept.lease.clone(), revision: kept.revision }))
        });
        let members = self.members.iter().filter(|(_, (at, _))| *at > revision);
        let members = members.map(|(replica, (at, _))| {
            (*at, Input::Shown(Shown::Member { replica: replica.clone(), revision: *at }))
        });
        let mut all: Vec<(u64, Input)> = leases.chain(members).collect();
        all.sort_by_key(|(revision, _)| *revision);
        all.into_iter().map(|(_, input)| input).collect()
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn members(&self) -> Vec<Replica> {
        self.members.keys().cloned().collect()
    }

    /// A presence expires by itself.
    pub(super) fn expire(&mut self, now: Duration, ttl: Duration) {
        self.members.retain(|_, (_, at)| *at + ttl > now);
    }

    pub(super) fn lose_everything(&mut self) {
        self.leases.clear();
        self.members.clear();
        self.revision = 0;
        self.lives += 1;
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.fell.clone().map_or(Ok(()), Err)
    }
}
