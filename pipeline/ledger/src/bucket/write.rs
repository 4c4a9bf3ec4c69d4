//! The task that writes rows: groups, as a file's writer makes them, each row fenced by the claim of its shard.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use pipeline_core::Key;

use super::super::error::Failure;
use super::super::pace::{Group, Pace};
use super::super::tables::{Row, Slot, Table};
use super::shards::Held;
use super::{Common, row};
use pipeline_bus::jetstream::{BusError, Expect, PutError};

/// Rows that may be unanswered at a time: fewer than the bucket allows, so that notes always find room beside them.
const WINDOW: usize = 128;

/// Their bytes, where no single row has more.
const WINDOW_BYTES: usize = 8 << 20;

/// The task.
pub(super) struct Work {
    common: Arc<Common>,
    pace: Pace,
}

/// A group, and the shards that were held when it was taken.
struct Taken {
    group: Group,
    held: HashMap<u32, Held>,
}

/// What was not written.
#[derive(Default)]
struct Failed {
    slots: Vec<(u32, Slot)>,
    /// One error of each shard.
    shards: BTreeMap<u32, PutError>,
    /// The bus failed, and not one row alone.
    pauses: bool,
    /// There is no connection: nothing more is tried.
    away: bool,
}

impl Work {
    pub(super) fn new(common: Arc<Common>) -> Self {
        let pace = Pace::new(common.options.group_time, common.options.retry);
        Self { common, pace }
    }

    /// Writes until the ledger is closed, and then what waits, once.
    pub(super) async fn run(mut self) {
        loop {
            let taken = self.next().await;
            let closing = taken.group.closing;
            if !taken.group.rows.is_empty() {
                self.commit(taken).await;
            }
            if closing {
                return;
            }
        }
    }

    async fn next(&self) -> Taken {
        let shared = &self.common.shared;
        loop {
            let woken = shared.wake_task.notified();
            let wait = {
                let mut state = shared.lock();
                let now = Instant::now();
                let due = self.pace.due(&state, shared.group_size, now);
                if state.closing || due.is_some_and(|due| due <= now) {
                    let held = state.shards.as_ref().map(super::Shards::all).unwrap_or_default();
                    return Taken { group: state.group(), held };
                }
                due.map(|due| due.saturating_duration_since(now))
            };
            match wait {
                Some(wait) => drop(tokio::time::timeout(wait, woken).await),
                None => woken.await,
            }
        }
    }

    async fn commit(&mut self, Taken { group, held }: Taken) {
        let common = self.common.clone();
        let place = |slot: &Slot| common.options.sharding.place(&slot.1);
        let mut rows: Vec<(u32, &Row)> = group.rows.iter().map(|row| (place(&row.0), row)).collect();
        // What moved together: the journal first.
        rows.sort_by_key(|(_, ((table, _), _))| match table {
            Table::Journal => 0,
            Table::Parked => 1,
            Table::Records => 2,
        });
        let (failed, ()) = tokio::join!(common.put(&rows, &held), common.put_told(&held));
        for (shard, error) in &failed.shards {
            if let Some(held) = held.get(shard) {
                common.failed(*shard, held.sequence, error).await;
            }
        }

        let bad: BTreeSet<u32> = failed.shards.keys().copied().collect();
        let gone =
            rows.iter().filter(|(_, ((table, _), packed))| *table == Table::Records && packed.is_none());
        let gone: BTreeSet<u32> = gone.map(|(shard, _)| *shard).collect();
        for (shard, held) in held.iter().filter(|(shard, _)| !bad.contains(shard)) {
            common.notes.covered(*shard, held.sequence, group.number, gone.contains(shard));
        }

        let mut state = common.shared.lock();
        state.committing = 0;
        let still = |shard: &u32| {
            let now = state.shards.as_ref().and_then(|shards| shards.held(*shard));
            now.map(|held| held.sequence) == held.get(shard).map(|held| held.sequence)
        };
        let Failed { slots, mut shards, pauses, .. } = failed;
        shards.retain(|shard, _| still(shard));
        let slots: Vec<Slot> =
            slots.into_iter().filter(|(shard, _)| still(shard)).map(|(_, slot)| slot).collect();
        match shards.pop_first() {
            Some((_, error)) if !slots.is_empty() => {
                self.pace.failed(&mut state, &group, slots, Failure::Bucket(error), pauses);
            }
            _ => self.pace.succeeded(&mut state, &group),
        }
    }
}

impl Common {
    /// Writes rows of the shards that are held.
    async fn put(&self, rows: &[(u32, &Row)], held: &HashMap<u32, Held>) -> Failed {
        let claims: HashMap<u32, String> =
            held.keys().map(|shard| (*shard, self.names.claim(*shard))).collect();
        let mut failed = Failed::default();
        let mut sent = FuturesUnordered::new();
        let (mut bytes, mut cut) = (0, HashSet::new());
        let room = self.bucket.room();
        for (shard, (slot, packed)) in rows {
            let (Some(held), Some(claim)) = (held.get(shard), claims.get(shard)) else { continue };
            if failed.away {
                failed.slots.push((*shard, slot.clone()));
                continue;
            }
            while sent.len() >= WINDOW || bytes > WINDOW_BYTES {
                let Some((shard, slot, size, answer)) = sent.next().await else { break };
                bytes -= size;
                failed.judge(shard, slot, answer);
            }
            let (key, expect) =
                (self.names.row(*shard, slot), Expect::Other { key: claim, sequence: held.sequence });
            let mut size = 0;
            let writing = match packed {
                Some(packed) => {
                    let (sealed, is_cut) = row::fitting(slot, packed, room);
                    size = sealed.len();
                    if is_cut {
                        cut.insert(&slot.1);
                    }
                    self.bucket.send(&key, sealed, expect).await
                }
                None => self.bucket.send_remove(&key, expect).await,
            };
            match writing {
                Ok(writing) => {
                    bytes += size;
                    sent.push(async move { (*shard, slot, size, writing.answer().await) });
                }
                Err(error) => {
                    failed.away = matches!(error, BusError::Away);
                    failed.pauses |= failed.away;
                    failed.add(*shard, slot, error.into());
                }
            }
        }
        while let Some((shard, slot, _, answer)) = sent.next().await {
            failed.judge(shard, slot, answer);
        }
        self.say_cut(rows, &cut);
        failed
    }

    /// Remembers which records were written without their resources, and says it of each once.
    fn say_cut(&self, rows: &[(u32, &Row)], cut: &HashSet<&Key>) {
        let mut state = self.shared.lock();
        let records = rows.iter().filter(|(_, ((table, _), _))| *table == Table::Records);
        for (_, ((_, key), _)) in records {
            if !cut.contains(key) {
                state.cut.remove(key);
            } else if state.cut.insert(key.clone()) {
                tracing::warn!(
                    application = %key,
                    "the record of an application is too large for the bus: it is written without its resources, which \
                     are reported again when another replica takes it over"
                );
            }
        }
    }
}

impl Failed {
    fn judge(&mut self, shard: u32, slot: &Slot, answer: Result<u64, PutError>) {
        if let Err(error) = answer {
            self.pauses = true;
            self.add(shard, slot, error);
        }
    }

    fn add(&mut self, shard: u32, slot: &Slot, error: PutError) {
        self.slots.push((shard, slot.clone()));
        // One that says that the shard is another's is not hidden by one that says less.
        let telling = matches!(error, PutError::Conflict | PutError::Bus(BusError::Gone { .. }));
        if telling || !self.shards.contains_key(&shard) {
            self.shards.insert(shard, error);
        }
    }
}
