//! What was acknowledged, in short.

use std::collections::BTreeMap;
use std::sync::Arc;

use pipeline_core::{Digest, EntityId, EntityRow, Key, Record, idempotency_key};
use sha2::Digest as _;

use super::state::Shared;
use super::tables::Bytes;
use super::{AckedDigest, stored};

/// What was acknowledged of one object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) entities: u64,
    pub(super) digest: u128,
}

/// Adds up what was acknowledged of each shard.
pub(super) fn add_up(shared: &Shared, place: impl Fn(&Key) -> Option<u32>) -> BTreeMap<u32, AckedDigest> {
    let held: Vec<(u32, Bytes, Arc<str>)> = {
        let state = shared.lock();
        let placed = state.tables.records.iter().filter_map(|(key, bytes)| Some((place(key)?, key, bytes)));
        placed.map(|(shard, key, bytes)| (shard, bytes.clone(), shared.id_of(&state, key))).collect()
    };
    let mut shards = BTreeMap::<u32, AckedDigest>::new();
    for (shard, bytes, id) in held {
        let Ok(record) = stored::record(&bytes) else { continue };
        let Some(tally) = tally(&record, &id, shared.sink()) else { continue };
        let sum = shards.entry(shard).or_default();
        sum.objects += 1;
        sum.entities += tally.entities;
        sum.digest ^= tally.digest;
    }
    shards
}

/// `None` when nothing was acknowledged.
pub(super) fn tally(record: &Record, ledger: &str, sink: &str) -> Option<Tally> {
    let mut tally = Tally::default();
    for &EntityRow { id, counter, unacked, content, .. } in &record.entities {
        // The counter that the last acknowledged report went out with.
        let with = counter.checked_sub(u64::from(unacked.skipped) + 1);
        if let Some(with) = with.filter(|_| !content.is_none()) {
            tally.entities += 1;
            tally.digest ^= of(ledger, sink, &record.uid, id, with, content);
        }
    }
    (tally.entities > 0).then_some(tally)
}

fn of(ledger: &str, sink: &str, uid: &str, entity: EntityId, counter: u64, content: Digest) -> u128 {
    let key = idempotency_key(ledger, sink, uid, entity, counter, content);
    let full = sha2::Sha256::digest(key.as_bytes());
    full.iter().take(16).fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}

#[cfg(test)]
pub(super) mod tests;
