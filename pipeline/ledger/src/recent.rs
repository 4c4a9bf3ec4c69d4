//! What was reported recently and no record says any more: ends of incarnations, whose records are gone, and facts
//! that later ones followed.
//!
//! The journal lets go of them together with the record's move, and does not take them back while the lane has not heard
//! of that yet: were they still journaled when the process is killed, the next one would report them again after what
//! follows them, and a fact after the end of its incarnation brings it back to life at a receiver that
//! remembers keys.
//!
//! And a message of the bus whose acknowledgement did not arrive is delivered again, after a cut, a pause or a kill to an
//! owner that did not report what it says: so the latest stands in the bucket too, under one more key of each shard, and
//! is written with the group in which the rows let go of it.

use std::collections::{HashMap, VecDeque};

use pipeline_core::{Change, Digest, Event, Fact, Key, Pending, Record, Uid};

use super::Ledger;
use super::state::State;
use super::stored::{self, checksum};
use super::tables::Table;

/// Of one shard; far more than can be between an acknowledgement and the end of its attempt.
const KEPT: usize = 4096;

/// Of these, the latest that a store holds: 2 kB. At five a second more than a message waits to be delivered again.
const STORED: usize = 256;

/// What was reported recently of all shards that are held.
#[derive(Default)]
pub(super) struct RecentlyReported {
    by_shard: HashMap<u32, Page>,
}

#[derive(Default)]
struct Page {
    /// Each once, the latest last.
    digests: VecDeque<u64>,
    /// The store does not hold the latest.
    changed: bool,
}

/// Of a fact, or of none: of the end of the incarnation itself.
fn digest(key: &Key, uid: &Uid, fact: Digest) -> u64 {
    let mut bytes = fact.0.to_le_bytes().to_vec();
    bytes.extend_from_slice(uid.as_bytes());
    checksum(key.as_str(), &bytes)
}

impl RecentlyReported {
    /// Begins a shard with what a former owner left.
    pub(super) fn begin(&mut self, shard: u32, left: Vec<u64>) {
        self.by_shard.insert(shard, Page { digests: left.into(), changed: false });
    }

    pub(super) fn forget(&mut self, shard: u32) {
        self.by_shard.remove(&shard);
    }

    /// The latest of the shards where that changed, as it is to be stored.
    pub(super) fn take_changed(&mut self) -> Vec<(u32, Vec<u8>)> {
        let mut changed = Vec::new();
        for (shard, page) in self.by_shard.iter_mut().filter(|(_, page)| page.changed) {
            page.changed = false;
            let latest = page.digests.len().saturating_sub(STORED)..;
            changed.push((*shard, stored::encode(&page.digests.range(latest).collect::<Vec<_>>())));
        }
        changed
    }

    /// What was not stored goes with the next group.
    pub(super) fn put_back(&mut self, shard: u32) {
        if let Some(page) = self.by_shard.get_mut(&shard) {
            page.changed = true;
        }
    }

    fn add(&mut self, shard: u32, one: u64) {
        let page = self.by_shard.entry(shard).or_default();
        if !page.digests.contains(&one) {
            if page.digests.len() >= KEPT {
                page.digests.pop_front();
            }
            page.digests.push_back(one);
            page.changed = true;
        }
    }

    fn remove(&mut self, shard: u32, one: u64) {
        if self.has(shard, one)
            && let Some(page) = self.by_shard.get_mut(&shard)
        {
            page.digests.retain(|held| *held != one);
            page.changed = true;
        }
    }

    fn has(&self, shard: u32, one: u64) -> bool {
        self.by_shard.get(&shard).is_some_and(|page| page.digests.contains(&one))
    }
}

impl Ledger {
    /// Whether this process, or in a bucket a former owner, was told that the end of an incarnation has arrived: whoever
    /// notices it again has nothing to report.
    #[must_use]
    pub fn has_ended(&self, key: &Key, uid: &Uid) -> bool {
        self.inner.shared.lock().has_ended(key, uid)
    }

    /// The event without what was reported, by this process or in a bucket by a former owner, beside what the
    /// object's record says, which is `known`; `None` when that is the event itself.
    ///
    /// What the journal and the bus both hold, or the bus delivers again, comes a second time after its delivery was settled:
    /// so a fact. And a list that lacks a name names the incarnation that whoever asked for it knew, which
    /// may be one of long ago: where its end was reported, it is the known incarnation that is over.
    #[must_use]
    pub fn without_reported(&self, event: &Event, known: Option<&Record>) -> Option<Event> {
        let (key, uid) = (&event.key, &event.uid);
        let state = self.inner.shared.lock();
        let other = known.filter(|known| event.is_deleted() && known.uid != *uid);
        if let Some(other) = other.filter(|_| state.has_ended(key, uid)) {
            return Some(Event {
                uid: other.uid.clone(),
                change: Change::Deleted { body: None },
                labels: pipeline_core::ObjectLabels::default(),
                fact: None,
                coalesced: Vec::new(),
                ..event.clone()
            });
        }
        let left: Vec<Fact> =
            event.coalesced.iter().filter(|fact| !state.was_reported(key, uid, fact)).cloned().collect();
        let changed = left.len() < event.coalesced.len();
        changed.then(|| Event { coalesced: left, ..event.clone() })
    }
}

impl State {
    /// The end of an incarnation was acknowledged.
    pub(super) fn incarnation_ended(&mut self, key: &Key, uid: &Uid) {
        self.add_reported(key, uid, Digest::NONE);
    }

    /// Something else of an incarnation was acknowledged: if it was taken for over, it is not.
    pub(super) fn incarnation_goes_on(&mut self, key: &Key, uid: &Uid) {
        self.recent.remove(self.shard(key), digest(key, uid, Digest::NONE));
    }

    /// A fact was reported, and its record need not say so.
    pub(super) fn add_reported(&mut self, key: &Key, uid: &Uid, fact: Digest) {
        if self.holds(key) {
            self.recent.add(self.shard(key), digest(key, uid, fact));
        }
    }

    fn has_ended(&self, key: &Key, uid: &Uid) -> bool {
        self.recent.has(self.shard(key), digest(key, uid, Digest::NONE))
    }

    fn was_reported(&self, key: &Key, uid: &Uid, fact: &Fact) -> bool {
        let is_last = |record: Record| record.uid == *uid && record.reported_last(fact);
        self.recent.has(self.shard(key), digest(key, uid, fact.id))
            || self.tables.record(key).is_some_and(is_last)
    }

    /// What of `pending` is still to be kept.
    pub(super) fn unreported(&self, key: &Key, mut pending: Pending) -> Option<Pending> {
        pending
            .facts
            .retain(|(uid, _, fact)| !self.has_ended(key, uid) && !self.was_reported(key, uid, fact));
        pending.gone.retain(|(uid, _)| !self.has_ended(key, uid));
        pending.if_any()
    }

    /// Takes what was reported out of the journal; returns whether that moved.
    pub(super) fn strike(&mut self, key: &Key) -> bool {
        let held = self.tables.journal.get(key).and_then(|bytes| stored::decode(bytes).ok());
        let Some(held) = held else { return false };
        let left = self.unreported(key, held).map(|left| stored::encode(&left).into());
        self.put(Table::Journal, key, left)
    }
}

#[cfg(test)]
mod tests;
