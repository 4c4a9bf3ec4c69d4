//! Claims a shard: fences all former owners, then reads what they left.

use futures::future::ready;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use pipeline_core::Key;
use serde::de::DeserializeOwned;

use super::super::error::LedgerError;
use super::super::intents::Intent;
use super::super::state::{is_unfinished, new_id};
use super::super::stored;
use super::super::tables::{Table, Tables};
use super::row::{self, Claim, FORMAT, Place};
use super::shards::ClaimedShard;
use super::{BucketStore, Claimed, PATIENCE};
use pipeline_bus::BusError;
use pipeline_bus::jetstream::{Entry, Expect, PutError};

/// Removals of one claim that may be unanswered at a time.
const REMOVALS: usize = 32;

/// Attempts to write a claim while others write one too.
const ATTEMPTS: usize = 8;

/// What a bucket holds of a shard.
#[derive(Default)]
struct Found {
    tables: Tables,
    intents: Vec<Intent>,
    recent: Vec<u64>,
    /// All keys but the claim's.
    keys: Vec<String>,
    /// A record cannot be read: one that is left out would give old idempotency keys to new reports.
    damaged: bool,
    /// Keys of what else cannot be read.
    dropped: Vec<String>,
}

impl BucketStore {
    /// Fences all former owners of a shard, and takes in what they left.
    pub(super) async fn take_over(&self, shard: u32, epoch: Option<u64>) -> Result<Claimed, LedgerError> {
        self.let_go(shard, None);
        let (claim, sequence) = self.write_claim(shard, epoch).await?;
        let entries = self.load(shard, sequence).await?;
        let mut found = self.sort(shard, entries);
        let known = claim.ledger.clone().filter(|_| !found.damaged);
        let new = known.is_none();
        let (id, sequence) = match known {
            Some(id) => (id, sequence),
            None => {
                let keys = std::mem::take(&mut found).keys;
                self.begin_anew(shard, claim, sequence, &keys).await?
            }
        };
        if !found.dropped.is_empty() {
            tracing::warn!(
                shard,
                entries = found.dropped.len(),
                "some of what was journaled or parked is damaged and was dropped: a deletion, a fact such as the end of an operation, \
                 or that something was refused is not known any more"
            );
            let expect = Expect::Other { key: &self.names.claim(shard), sequence };
            let removed = self.remove(&found.dropped, expect).await;
            removed.map_err(|source| LedgerError::Bus { act: "mend", source: Box::new(source) })?;
        }
        Ok(self.install(shard, id, sequence, found, new))
    }

    /// Writes the claim, and returns it with its sequence.
    async fn write_claim(&self, shard: u32, epoch: Option<u64>) -> Result<(Claim, u64), LedgerError> {
        let key = self.names.claim(shard);
        for _ in 0..ATTEMPTS {
            let (value, last) = match self.bucket.last(&key).await {
                Ok(found) => found,
                Err(BusError::Gone { .. }) => {
                    self.make().await?;
                    continue;
                }
                Err(error) => return Err(LedgerError::bus("read")(error)),
            };
            let claim = self.next_claim(shard, epoch, value.as_deref())?;
            match self.bucket.put(&key, claim.bytes(), Expect::Last(last)).await {
                Ok(sequence) => return Ok((claim, sequence)),
                Err(PutError::Conflict) => {}
                Err(error) => {
                    return Err(LedgerError::Bus { act: "claim a shard of", source: Box::new(error) });
                }
            }
        }
        Err(LedgerError::Bus { act: "claim a shard of", source: Box::new(PutError::Conflict) })
    }

    /// Makes the bucket, which was lost or never there.
    async fn make(&self) -> Result<(), LedgerError> {
        let ensured = self.bucket.ensure().await.map_err(LedgerError::bus("make"))?;
        for difference in &ensured.differences {
            tracing::warn!(%difference, "the bucket of the ledger is not as it should be");
        }
        if !ensured.created.is_empty() {
            tracing::info!("the bucket of the ledger is new: everything is reported");
        }
        Ok(())
    }

    /// The claim that follows what stands there, under `epoch` or the one that follows.
    fn next_claim(&self, shard: u32, epoch: Option<u64>, value: Option<&[u8]>) -> Result<Claim, LedgerError> {
        let sharding = self.sharding.to_string();
        let mut next = epoch.unwrap_or(1);
        let ledger = match value.map(Claim::read) {
            None => None,
            Some(None) => {
                tracing::error!(
                    shard,
                    "a claim in the bucket of the ledger cannot be read: everything of its shard is reported again"
                );
                None
            }
            Some(Some(found)) => {
                if found.format > FORMAT {
                    return Err(LedgerError::Claim { found: found.format, known: FORMAT });
                }
                match epoch {
                    Some(own) if found.epoch > own => {
                        return Err(LedgerError::Fenced { shard, found: found.epoch, own });
                    }
                    Some(_) => {}
                    None => next = found.epoch.saturating_add(1),
                }
                if found.sharding != sharding {
                    return Err(LedgerError::Sharding { found: found.sharding, asked: sharding });
                }
                if found.format < FORMAT {
                    tracing::warn!(
                        shard,
                        found = found.format,
                        "a shard of the ledger is of an earlier format that nobody reads any more: all of it is reported again"
                    );
                    None
                } else {
                    found.ledger
                }
            }
        };
        Ok(Claim { format: FORMAT, epoch: next, ledger, sharding })
    }

    async fn load(&self, shard: u32, sequence: u64) -> Result<Vec<Entry>, LedgerError> {
        let filters = self.names.shard(shard);
        self.bucket.load(&filters, Some(sequence), PATIENCE).await.map_err(LedgerError::bus("read"))
    }

    fn sort(&self, shard: u32, entries: Vec<Entry>) -> Found {
        let mut found = Found::default();
        for Entry { key, value, .. } in entries {
            match self.names.parse(&key) {
                Some((_, Place::Claim)) => continue,
                Some((_, Place::Intents)) => match open(&key, &value) {
                    Some(intents) => found.intents = intents,
                    None => tracing::warn!(
                        shard,
                        "the send intents are damaged: a report that was on its way may not be reported again"
                    ),
                },
                // What cannot be read says nothing.
                Some((_, Place::Recent)) => found.recent = open(&key, &value).unwrap_or_default(),
                Some((_, Place::Row(row_id))) if self.sharding.place(&row_id.1) == shard => {
                    match row::unseal(&row_id, &value) {
                        Some(bytes) => drop(found.tables.of_mut(row_id.0).insert(row_id.1, bytes)),
                        None if row_id.0 == Table::Records => found.damaged = true,
                        None => found.dropped.push(key.clone()),
                    }
                }
                _ => found.dropped.push(key.clone()),
            }
            found.keys.push(key);
        }
        found
    }

    /// Gives a shard a new id, and removes what stands there under the former. Until the rows are gone the claim names no
    /// id: an id whose rows are in part gone would give old idempotency keys to new reports.
    async fn begin_anew(
        &self,
        shard: u32,
        claim: Claim,
        mut sequence: u64,
        keys: &[String],
    ) -> Result<(String, u64), LedgerError> {
        let key = self.names.claim(shard);
        let failed = |source| LedgerError::Bus { act: "begin anew", source: Box::new(source) };
        if claim.ledger.is_some() {
            tracing::error!(
                shard,
                "a record of the ledger in the bucket is damaged: everything of its shard is reported again"
            );
            let nameless = Claim { ledger: None, ..claim.clone() };
            sequence =
                self.bucket.put(&key, nameless.bytes(), Expect::Last(sequence)).await.map_err(failed)?;
        }
        self.remove(keys, Expect::Other { key: &key, sequence }).await.map_err(failed)?;
        let id = new_id();
        let named = Claim { ledger: Some(id.clone()), ..claim };
        let sequence = self.bucket.put(&key, named.bytes(), Expect::Last(sequence)).await.map_err(failed)?;
        Ok((id, sequence))
    }

    /// Removes keys, many at a time.
    async fn remove(&self, keys: &[String], expect: Expect<'_>) -> Result<(), PutError> {
        let removals: Vec<_> = keys.iter().map(|key| self.bucket.remove(key, expect)).collect();
        let at_once = if self.bucket.is_copied() { 1 } else { REMOVALS };
        stream::iter(removals).buffer_unordered(at_once).try_for_each(|_| ready(Ok(()))).await
    }

    /// Takes the shard into memory.
    fn install(&self, shard: u32, id: String, sequence: u64, found: Found, new: bool) -> Claimed {
        let mut state = self.shared.lock();
        state.forget(shard);
        if let Some(shards) = &mut state.shards {
            shards.held.insert(shard, ClaimedShard { id: id.into(), sequence });
        }
        state.recent.begin(shard, found.recent);
        let moved = state.take_in(found.tables, 0, &found.intents);
        self.intents.begin(shard, sequence, found.intents);
        let mut records = 0;
        let mut unfinished = Vec::new();
        for (key, bytes) in state.tables.records.iter().filter(|(key, _)| state.shard(key) == shard) {
            records += 1;
            if stored::record(bytes).is_ok_and(|record| is_unfinished(&record)) {
                unfinished.push(Key::clone(key));
            }
        }
        self.shared.changed(state, moved);
        unfinished.sort();
        self.shared.fenced.send_if_modified(|fenced| fenced.remove(&shard));
        Claimed { new, records, unfinished }
    }
}

fn open<T: DeserializeOwned>(key: &str, sealed: &[u8]) -> Option<T> {
    stored::decode(stored::unseal(key, sealed).ok()?).ok()
}
