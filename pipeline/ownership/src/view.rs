//! What one replica has seen of the others: who is there, and the record of each shard, each with when it was first
//! seen as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Config, Lease, Replica};

/// The record of a shard, without what nobody decides by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) epoch: u64,
    /// `None`: given back.
    pub(super) owner: Option<Replica>,
    pub(super) revision: u64,
}

impl Record {
    /// What a lease says, written as this revision.
    pub(super) fn of(lease: Lease, revision: u64) -> Self {
        Self { epoch: lease.epoch, owner: lease.owner, revision }
    }
}

#[derive(Debug, Clone, Default)]
struct ObservedRecord {
    /// `None`: there is none.
    record: Option<Record>,
    /// When it was first seen so.
    since: Duration,
    /// The highest epoch that was ever seen.
    highest: u64,
}

/// When a presence last changed, and its revision then.
#[derive(Debug, Clone, Copy)]
struct Beat {
    revision: u64,
    at: Duration,
}

#[derive(Debug, Clone)]
pub(super) struct View {
    ttl: Duration,
    first_epoch: u64,
    listed: bool,
    members: BTreeMap<Replica, Beat>,
    /// Which shards replicas were refused, with the revision of the record that says so.
    refused: BTreeMap<Replica, (u64, BTreeSet<u32>)>,
    shards: Vec<ObservedRecord>,
}

impl View {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            ttl: config.ttl,
            first_epoch: config.first_epoch,
            listed: false,
            members: BTreeMap::new(),
            refused: BTreeMap::new(),
            shards: vec![ObservedRecord::default(); config.shards.get() as usize],
        }
    }

    /// Something may happen unseen until everything is listed again.
    pub(super) fn unwatched(&mut self) {
        self.listed = false;
    }

    /// Whether everything has been listed, and is watched since.
    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    /// All that is in the store, whatever was known before.
    pub(super) fn list(&mut self, leases: Vec<(Lease, u64)>, members: Vec<(Replica, u64)>, now: Duration) {
        let mut records = vec![None; self.shards.len()];
        for (lease, revision) in leases {
            // Of a shard that there is not, another configuration may have left a record.
            if let Some(record) = records.get_mut(lease.shard as usize) {
                *record = Some(Record::of(lease, revision));
            }
        }
        for (seen, record) in self.shards.iter_mut().zip(records) {
            if record.is_none() {
                // There may have been one meanwhile, which the store lost.
                seen.since = now;
            }
            seen.take(record, now);
        }
        let there: BTreeSet<&Replica> = members.iter().map(|(replica, _)| replica).collect();
        self.members.retain(|replica, _| there.contains(replica));
        self.refused.retain(|replica, _| there.contains(replica));
        for (replica, revision) in members {
            self.beat(replica, revision, now);
        }
        self.listed = true;
    }

    /// A record as a watch shows it, which may be older than what is known.
    pub(super) fn lease(&mut self, lease: Lease, revision: u64, now: Duration) {
        let Some(seen) = self.shards.get_mut(lease.shard as usize) else { return };
        if seen.record.as_ref().is_none_or(|record| record.revision < revision) {
            seen.take(Some(Record::of(lease, revision)), now);
        }
    }

    /// A record as the store holds it now; `None`: it holds none.
    pub(super) fn current(&mut self, shard: u32, record: Option<Record>, now: Duration) {
        if let Some(seen) = self.shards.get_mut(shard as usize) {
            seen.take(record, now);
        }
    }

    /// What the record of this revision says; it is shown next.
    pub(super) fn refused(&mut self, replica: Replica, shards: Vec<u32>, revision: u64) {
        self.refused.insert(replica, (revision, shards.into_iter().collect()));
    }

    /// Whether a replica was refused a shard, as far as it is known.
    pub(super) fn refuses(&self, replica: &Replica, shard: u32) -> bool {
        self.refused.get(replica).is_some_and(|(_, shards)| shards.contains(&shard))
    }

    pub(super) fn beat(&mut self, replica: Replica, revision: u64, now: Duration) {
        if self.refused.get(&replica).is_some_and(|(told, _)| *told != revision) {
            self.refused.remove(&replica);
        }
        let beat = self.members.entry(replica).or_insert(Beat { revision, at: now });
        if beat.revision != revision {
            *beat = Beat { revision, at: now };
        }
    }

    pub(super) fn left(&mut self, replica: &Replica) {
        self.members.remove(replica);
        self.refused.remove(replica);
    }

    /// Who is there.
    pub(super) fn members(&self, now: Duration) -> BTreeSet<Replica> {
        let alive = self.members.iter().filter(|(_, beat)| beat.at + self.ttl > now);
        alive.map(|(replica, _)| replica.clone()).collect()
    }

    pub(super) fn record(&self, shard: u32) -> Option<&Record> {
        self.shards.get(shard as usize)?.record.as_ref()
    }

    /// Who owned it last, and in which epoch.
    pub(super) fn last_owner(&self, shard: u32) -> Option<(Replica, u64)> {
        let Record { epoch, owner, .. } = self.record(shard)?;
        owner.clone().filter(|_| *epoch > 0).map(|owner| (owner, *epoch))
    }

    /// Whose lease lives, as far as is known.
    pub(super) fn owner(&self, shard: u32, now: Duration) -> Option<&Replica> {
        let seen = self.shards.get(shard as usize)?;
        if seen.since + self.ttl > now { seen.record.as_ref()?.owner.as_ref() } else { None }
    }

    /// Whether a shard may be claimed: it was given back, or neither its record nor that it has none has changed for as
    /// long as a lease lives. Where the store lost everything, an owner may not know of it yet.
    pub(super) fn is_free(&self, shard: u32, me: &Replica, now: Duration) -> bool {
        let Some(seen) = self.shards.get(shard as usize) else { return false };
        let given_back = seen.record.as_ref().is_some_and(|record| match &record.owner {
            // A claim of this process that it gave up.
            Some(owner) => owner == me,
            None => true,
        });
        given_back || seen.since + self.ttl <= now
    }

    /// The epoch of the next owner.
    pub(super) fn next_epoch(&self, shard: u32, now: Duration) -> u64 {
        let highest = self.shards.get(shard as usize).map_or(0, |seen| seen.highest);
        highest.saturating_add(1).max(self.first_epoch.saturating_add(now.as_secs()))
    }

    /// An epoch that was asked for is never asked for again.
    pub(super) fn note_epoch(&mut self, shard: u32, epoch: u64) {
        if let Some(seen) = self.shards.get_mut(shard as usize) {
            seen.highest = seen.highest.max(epoch);
        }
    }
}

impl ObservedRecord {
    fn take(&mut self, record: Option<Record>, now: Duration) {
        if self.record != record {
            self.highest = self.highest.max(record.as_ref().map_or(0, |record| record.epoch));
            self.record = record;
            self.since = now;
        }
    }
}
