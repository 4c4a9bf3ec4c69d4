//! Writes the rows of a group, each fenced by the claim of its shard.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use pipeline_bus::BusError;
use pipeline_bus::jetstream::{Expect, PutError};
use pipeline_core::Key;

use super::super::error::Failure;
use super::super::group_commit::Group;
use super::super::store::Unwritten;
use super::super::stored;
use super::super::tables::{Row, RowId, Table};
use super::shards::ClaimedShard;
use super::{BucketStore, row};

/// Rows that may be unanswered at a time: fewer than the bucket allows, so that intents always find room beside them.
const WINDOW: usize = 128;

/// Their bytes, where no single row has more.
const WINDOW_BYTES: usize = 8 << 20;

/// What was not written.
#[derive(Default)]
struct Failed {
    row_ids: Vec<RowId>,
    /// One error of each shard.
    shards: BTreeMap<u32, PutError>,
    /// The bus failed, and not one row alone.
    pauses: bool,
    /// There is no connection: nothing more is tried.
    away: bool,
}

impl BucketStore {
    pub(super) async fn write(&self, group: &Group) -> Result<(), Unwritten> {
        let held = &group.held;
        let place = |row_id: &RowId| self.sharding.place(&row_id.1);
        let mut rows: Vec<(u32, &Row)> = group.rows.iter().map(|row| (place(&row.0), row)).collect();
        // What moved together: the journal first.
        rows.sort_by_key(|(_, ((table, _), _))| *table);
        let put = async {
            if self.bucket.is_copied() {
                self.put_in_turn(&rows, held).await
            } else {
                self.put(&rows, held).await
            }
        };
        let (mut failed, ()) = tokio::join!(put, self.put_recent(group));
        for (shard, error) in &failed.shards {
            if let Some(held) = held.get(shard) {
                self.failed(*shard, held.sequence, error).await;
            }
        }
        let gone = rows.iter().filter(|(_, ((table, _), bytes))| *table == Table::Records && bytes.is_none());
        let gone: BTreeSet<u32> = gone.map(|(shard, _)| *shard).collect();
        for (shard, held) in held.iter().filter(|(shard, _)| !failed.shards.contains_key(shard)) {
            self.intents.covered(*shard, held.sequence, group.number, gone.contains(shard));
        }
        match failed.shards.pop_first() {
            None => Ok(()),
            Some((_, error)) => {
                let failure = Failure::Bucket(error);
                Err(Unwritten { row_ids: failed.row_ids, failure, pauses: failed.pauses })
            }
        }
    }

    /// Writes what was reported recently. An error is no reason to stop: the rows beside it meet the same.
    async fn put_recent(&self, group: &Group) {
        let written = group.recent.iter().filter_map(|(shard, bytes)| {
            let sequence = group.held.get(shard)?.sequence;
            Some(async move {
                let (key, claim) = (self.names.recent(*shard), self.names.claim(*shard));
                let expect = Expect::Other { key: &claim, sequence };
                let _turn = self.turn(*shard).await;
                if let Err(error) = self.bucket.put(&key, stored::seal(&key, bytes).into(), expect).await {
                    let error: &dyn std::error::Error = &error;
                    tracing::debug!(
                        shard,
                        error,
                        "what was reported recently is written with the next group"
                    );
                    self.shared.lock().recent.put_back(*shard);
                }
            })
        });
        join_all(written).await;
    }

    /// Writes rows of the shards that are held.
    async fn put(&self, rows: &[(u32, &Row)], held: &HashMap<u32, ClaimedShard>) -> Failed {
        let claims: HashMap<u32, String> =
            held.keys().map(|shard| (*shard, self.names.claim(*shard))).collect();
        let mut failed = Failed::default();
        let mut sent = FuturesUnordered::new();
        let (mut sending, mut cut) = (0, HashSet::new());
        let room = self.bucket.room();
        for (shard, (row_id, bytes)) in rows {
            let (Some(held), Some(claim)) = (held.get(shard), claims.get(shard)) else { continue };
            if failed.away {
                failed.row_ids.push(row_id.clone());
                continue;
            }
            while sent.len() >= WINDOW || sending > WINDOW_BYTES {
                let Some((shard, row_id, size, answer)) = sent.next().await else { break };
                sending -= size;
                failed.judge(shard, row_id, answer);
            }
            let (key, expect) =
                (self.names.row(*shard, row_id), Expect::Other { key: claim, sequence: held.sequence });
            let mut size = 0;
            let writing = match bytes {
                Some(bytes) => {
                    let (sealed, is_cut) = row::fitting(row_id, bytes, room);
                    size = sealed.len();
                    if is_cut {
                        cut.insert(&row_id.1);
                    }
                    self.bucket.send(&key, sealed, expect).await
                }
                None => self.bucket.send_remove(&key, expect).await,
            };
            match writing {
                Ok(writing) => {
                    sending += size;
                    sent.push(async move { (*shard, row_id, size, writing.answer().await) });
                }
                Err(error) => {
                    failed.away = matches!(error, BusError::Away);
                    failed.pauses |= failed.away;
                    failed.add(*shard, row_id, error.into());
                }
            }
        }
        while let Some((shard, row_id, _, answer)) = sent.next().await {
            failed.judge(shard, row_id, answer);
        }
        self.say_cut(rows, &cut);
        failed
    }

    /// Writes rows of the shards that are held, of each shard one after another.
    async fn put_in_turn(&self, rows: &[(u32, &Row)], held: &HashMap<u32, ClaimedShard>) -> Failed {
        let mut by_shard: BTreeMap<u32, Vec<&Row>> = BTreeMap::new();
        for (shard, row) in rows {
            by_shard.entry(*shard).or_default().push(row);
        }
        let room = self.bucket.room();
        let shards = by_shard.into_iter().filter_map(|(shard, rows)| {
            let (claim, sequence) = (self.names.claim(shard), held.get(&shard)?.sequence);
            Some(async move {
                let (mut failed, mut cut) = (Failed::default(), HashSet::new());
                for (row_id, bytes) in rows {
                    if failed.away {
                        failed.row_ids.push(row_id.clone());
                        continue;
                    }
                    let key = self.names.row(shard, row_id);
                    let expect = Expect::Other { key: &claim, sequence };
                    let _turn = self.turn(shard).await;
                    let written = match bytes {
                        Some(bytes) => {
                            let (sealed, is_cut) = row::fitting(row_id, bytes, room);
                            if is_cut {
                                cut.insert(&row_id.1);
                            }
                            self.bucket.put(&key, sealed, expect).await
                        }
                        None => self.bucket.remove(&key, expect).await,
                    };
                    // What follows would wait for an answer that does not come either.
                    failed.away = matches!(written, Err(PutError::Bus(BusError::Away | BusError::NoAnswer)));
                    failed.judge(shard, row_id, written);
                }
                (failed, cut)
            })
        });
        let (mut all, mut cut) = (Failed::default(), HashSet::new());
        for (failed, of_shard) in join_all(shards).await {
            all.row_ids.extend(failed.row_ids);
            all.shards.extend(failed.shards);
            all.pauses |= failed.pauses;
            cut.extend(of_shard);
        }
        self.say_cut(rows, &cut);
        all
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
                    object = %key,
                    "the record of an object is too large for the bus: it is written without its resources, which \
                     are reported again when another replica takes it over"
                );
            }
        }
    }
}

impl Failed {
    fn judge(&mut self, shard: u32, row_id: &RowId, answer: Result<u64, PutError>) {
        if let Err(error) = answer {
            self.pauses = true;
            self.add(shard, row_id, error);
        }
    }

    fn add(&mut self, shard: u32, row_id: &RowId, error: PutError) {
        self.row_ids.push(row_id.clone());
        // One that says that the shard is another's is not hidden by one that says less.
        let telling = matches!(error, PutError::Conflict | PutError::Bus(BusError::Gone { .. }));
        if telling || !self.shards.contains_key(&shard) {
            self.shards.insert(shard, error);
        }
    }
}
