//! What was acknowledged, in short: computed anew for what changed alone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use pipeline_core::{Digest, Entity, Key, Record, ResourceRow, idempotency_key};
use sha2::Digest as _;

use super::Acknowledged;
use super::state::Shared;

/// The digests of all applications, as they were when they were last asked for.
#[derive(Default)]
pub(super) struct Digests {
    held: Mutex<HashMap<Key, Tally>>,
}

/// What was acknowledged of one application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) entities: u64,
    pub(super) digest: u128,
}

impl Digests {
    /// Adds up what was acknowledged of each shard. Hashes what changed since the last call; the rest costs one
    /// exclusive or an application.
    pub(super) fn add_up(
        &self,
        shared: &Shared,
        place: impl Fn(&Key) -> Option<u32>,
    ) -> BTreeMap<u32, Acknowledged> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let stale: Vec<Key> = {
            let mut state = shared.lock();
            match state.stale.replace(HashSet::new()) {
                Some(stale) => stale.into_iter().collect(),
                None => state.tables.records.keys().cloned().collect(),
            }
        };
        for key in stale {
            // The lock is held for one record at a time.
            let (record, id) = {
                let state = shared.lock();
                (state.tables.record(&key), shared.id_of(&state, &key))
            };
            match record.and_then(|record| tally(&record, &id, shared.sink())) {
                Some(tally) => drop(held.insert(key, tally)),
                None => drop(held.remove(&key)),
            }
        }
        let mut shards = BTreeMap::<u32, Acknowledged>::new();
        for (key, tally) in held.iter() {
            let Some(shard) = place(key) else { continue };
            let sum = shards.entry(shard).or_default();
            sum.applications += 1;
            sum.entities += tally.entities;
            sum.digest ^= tally.digest;
        }
        shards
    }
}

/// `None` when nothing was acknowledged.
pub(super) fn tally(record: &Record, ledger: &str, sink: &str) -> Option<Tally> {
    let row = |row: &ResourceRow| (Entity::Resource(row.id), row.counter, row.unanswered, row.content);
    let application = (Entity::Application, record.counter, record.unanswered, record.content);
    let entities = std::iter::once(application).chain(record.resources.iter().map(row));
    let mut tally = Tally::default();
    for (entity, counter, unanswered, content) in entities {
        // The counter that the last acknowledged report went out with.
        let with = counter.checked_sub(u64::from(unanswered.skipped) + 1);
        if let Some(with) = with.filter(|_| !content.is_none()) {
            tally.entities += 1;
            tally.digest ^= of(ledger, sink, &record.uid, entity, with, content);
        }
    }
    (tally.entities > 0).then_some(tally)
}

fn of(ledger: &str, sink: &str, uid: &str, entity: Entity, counter: u64, content: Digest) -> u128 {
    let key = idempotency_key(ledger, sink, uid, entity, counter, content);
    let full = sha2::Sha256::digest(key.as_bytes());
    full.iter().take(16).fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}

#[cfg(test)]
#[path = "digests_tests.rs"]
pub(super) mod tests;
