//! What is in memory: the tables, and what of them waits for the file.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use pipeline_core::{Digest, Key, Record, SendIntent, Timestamp, Uid};
use tokio::sync::{Notify, oneshot, watch};

use super::bucket::Shards;
use super::error::LedgerError;
use super::intents::Intent;
use super::recent::RecentlyReported;
use super::stored;
use super::tables::{Bytes, Row, RowId, Table, Tables, row_ids, weight};

/// All that is journaled may take this many bytes.
pub(super) const JOURNAL: usize = 16 << 20;

pub(super) type Waiter = oneshot::Sender<Result<(), LedgerError>>;

pub(super) struct Shared {
    /// Of a ledger in a bucket every shard has one of its own, and this is empty.
    pub(super) id: Arc<str>,
    /// Of the tables; in memory none has a name.
    sink: String,
    /// The name of a sink whose acknowledgements are in memory.
    pub(super) sent_as: OnceLock<String>,
    pub(super) durable: bool,
    pub(super) group_size: usize,
    pub(super) state: Mutex<State>,
    pub(super) wake: Notify,
    /// As [`Ledger::fenced`](super::Ledger::fenced) says.
    pub(super) fenced: watch::Sender<BTreeSet<u32>>,
}

/// Guarded by one lock, which is held for one record at a time.
#[derive(Default)]
pub(super) struct State {
    pub(super) tables: Tables,
    /// The shards that a ledger in a bucket holds; of others it remembers nothing. `None` elsewhere: all are held.
    pub(super) shards: Option<Shards>,
    pub(super) recent: RecentlyReported,
    /// Of the records.
    pub(super) bytes: usize,
    pub(super) journal_bytes: usize,
    pub(super) journal_refused: u64,
    /// Entities of which it is not known what the receiver holds.
    pub(super) in_doubt: usize,
    /// Objects whose record is too large for the bus.
    pub(super) cut: HashSet<Key>,
    /// Names, not copies: what waits for a commit is bounded by the number of objects.
    pub(super) dirty: HashSet<RowId>,
    /// When the oldest of `dirty` began to wait.
    pub(super) dirty_since: Option<Instant>,
    /// Rows whose commit is under way.
    pub(super) committing: usize,
    /// Changes made, and changes made when the last commit began that succeeded.
    pub(super) changed: u64,
    pub(super) committed: u64,
    /// Number of the last send intent, or of the last commit that began: a commit covers all intents made before it
    /// began.
    pub(super) numbered: u64,
    pub(super) waiters: Vec<(u64, Waiter)>,
    pub(super) closing: bool,
    pub(super) closed: bool,
    pub(super) commits: u64,
    pub(super) errors: u64,
    pub(super) failing: bool,
    pub(super) last_commit: Option<Instant>,
}

impl Shared {
    /// `group_size` is `None` for a ledger in memory.
    pub(super) fn new(id: String, sink: String, state: State, group_size: Option<usize>) -> Self {
        Self {
            id: id.into(),
            sink,
            sent_as: OnceLock::new(),
            durable: group_size.is_some(),
            group_size: group_size.unwrap_or_default().max(1),
            state: Mutex::new(state),
            wake: Notify::new(),
            fenced: watch::Sender::default(),
        }
    }

    /// The sink's name in idempotency keys.
    pub(super) fn sink(&self) -> &str {
        let told = self.sent_as.get().filter(|_| !self.durable);
        told.unwrap_or(&self.sink)
    }

    /// A panic in a caller's closure leaves the state as it was before: nothing is half moved.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&self) {
        self.lock().closing = true;
        self.wake.notify_one();
    }

    /// The id under which what is acknowledged of `key` is counted; empty where its shard is not held.
    pub(super) fn id_of(&self, state: &State, key: &Key) -> Arc<str> {
        match &state.shards {
            None => self.id.clone(),
            Some(shards) => shards.of(key).map_or_else(|| self.id.clone(), |held| held.id.clone()),
        }
    }

    /// Lets go of the lock, and wakes the writer when a group has begun or is full. What changed under one lock is in
    /// one commit.
    pub(super) fn changed(&self, mut state: MutexGuard<'_, State>, row_ids: impl IntoIterator<Item = RowId>) {
        if !self.durable {
            return;
        }
        let before = state.dirty.len();
        row_ids.into_iter().for_each(|row_id| state.mark(row_id));
        let after = state.dirty.len();
        let full = before < self.group_size && after >= self.group_size;
        drop(state);
        if (before == 0 && after > 0) || full {
            self.wake.notify_one();
        }
    }
}

impl State {
    /// As [`State::take_in`], of a ledger that nobody has yet.
    pub(super) fn begin(&mut self, tables: Tables, covered: u64, intents: &[Intent]) {
        self.take_in(tables, covered, intents).into_iter().for_each(|row_id| self.mark(row_id));
    }

    /// Takes in what a store holds, moved by the intents of reports that were on their way; returns what is to be written.
    pub(super) fn take_in(&mut self, tables: Tables, covered: u64, intents: &[Intent]) -> Vec<RowId> {
        self.numbered = self.numbered.max(covered);
        for (key, bytes) in tables.records {
            self.change(&key, |_| stored::record(&bytes).ok());
        }
        let others =
            [(Table::Journal, tables.journal), (Table::Parked, tables.parked), (Table::Done, tables.done)];
        for (table, values) in others {
            for (key, bytes) in values {
                self.put(table, &key, Some(bytes));
            }
        }
        let uncovered = intents.iter().filter(|intent| intent.number > covered);
        uncovered.flat_map(|intent| self.resume(intent)).collect()
    }

    /// Takes in what a former process wrote down; returns what moved.
    fn resume(&mut self, intent: &Intent) -> Vec<RowId> {
        let Intent { number, key, sent } = intent;
        self.numbered = self.numbered.max(*number);
        sent.facts().for_each(|fact| self.add_reported(key, &sent.uid, fact));
        let moved = self.change(key, |record| Record::resume(record, sent));
        let struck = self.strike(key);
        row_ids(key, moved, struck).collect()
    }

    pub(super) fn mark(&mut self, row_id: RowId) {
        self.changed += 1;
        self.dirty.insert(row_id);
        self.dirty_since.get_or_insert_with(Instant::now);
    }

    /// Moves one record; returns whether that changed anything. The fact that it names no more was reported recently.
    pub(super) fn change(
        &mut self,
        key: &Key,
        change: impl FnOnce(Option<Record>) -> Option<Record>,
    ) -> bool {
        let before = self.tables.record(key);
        self.change_from(key, before, change)
    }

    fn change_from(
        &mut self,
        key: &Key,
        before: Option<Record>,
        change: impl FnOnce(Option<Record>) -> Option<Record>,
    ) -> bool {
        let was = before.as_ref().map_or(0, in_doubt);
        let last = before.as_ref().and_then(last_fact);
        let after = change(before);
        let is = after.as_ref().map_or(0, in_doubt);
        let moved = self.put(Table::Records, key, after.as_ref().map(|record| stored::encode(record).into()));
        if moved {
            // Where the incarnation is over as well, its end says it all.
            if let Some((uid, fact)) = last
                .filter(|last| after.is_some() && after.as_ref().and_then(last_fact).as_ref() != Some(last))
            {
                self.add_reported(key, &uid, fact);
            }
            self.in_doubt = self.in_doubt + is - was;
        }
        moved
    }

    /// Moves the record, which is `before`, to a report that is about to be sent; returns whether it moved, and what must be written down
    /// before the report goes: nothing, where the store holds the same already.
    pub(super) fn intend(
        &mut self,
        key: &Key,
        before: Option<Record>,
        sent: SendIntent,
    ) -> (bool, Option<Intent>) {
        let row_id = (Table::Records, key.clone());
        let moved = self.change_from(key, before, |record| Record::resume(record, &sent));
        if !moved && self.committing == 0 && !self.dirty.contains(&row_id) {
            return (false, None);
        }
        self.numbered += 1;
        (moved, Some(Intent { number: self.numbered, key: key.clone(), sent }))
    }

    /// Puts or removes a value; returns whether that changed anything.
    pub(super) fn put(&mut self, table: Table, key: &Key, after: Option<Bytes>) -> bool {
        if self.tables.of(table).get(key).map(|held| &**held) == after.as_deref() || !self.holds(key) {
            return false;
        }
        let gained = after.as_ref().map_or(0, |after| weight(key, after));
        let bytes = self.tables.of_mut(table);
        let before = match after {
            Some(after) => bytes.insert(key.clone(), after),
            None => bytes.remove(key),
        };
        let lost = before.map_or(0, |before| weight(key, &before));
        match table {
            Table::Records => self.bytes = self.bytes + gained - lost,
            Table::Journal => self.journal_bytes = self.journal_bytes + gained - lost,
            Table::Parked | Table::Done => {}
        }
        true
    }

    /// What these rows hold at this moment: `None` is nothing.
    pub(super) fn image(&self, row_ids: impl Iterator<Item = RowId>) -> Vec<Row> {
        let row = |row_id: RowId| {
            let bytes = self.tables.of(row_id.0).get(&row_id.1).cloned();
            (row_id, bytes)
        };
        row_ids.map(row).collect()
    }

    /// The shard of a key; 0 where everything is held.
    pub(super) fn shard(&self, key: &Key) -> u32 {
        self.shards.as_ref().map_or(0, |shards| shards.place(key))
    }

    /// Whether anything may be remembered of `key`.
    pub(super) fn holds(&self, key: &Key) -> bool {
        self.shards.as_ref().is_none_or(|shards| shards.of(key).is_some())
    }

    pub(super) fn waiting(&self) -> usize {
        self.dirty.len() + self.committing
    }
}

/// The fact that was reported last, and of which incarnation.
fn last_fact(record: &Record) -> Option<(Uid, Digest)> {
    (!record.fact.is_none()).then(|| (record.uid.clone(), record.fact))
}

pub(super) fn in_doubt(record: &Record) -> usize {
    record.entities.iter().filter(|row| row.in_doubt).count()
}

/// Whether something of it is incomplete, or in doubt, or not acknowledged as a whole.
pub(super) fn is_unfinished(record: &Record) -> bool {
    record.is_incomplete() || record.is_in_doubt() || !record.is_settled()
}

/// Now, in seconds since 1970; 0 when that cannot be said.
pub(super) fn seconds() -> u32 {
    u32::try_from(Timestamp::now().as_second()).unwrap_or_default()
}

/// 128 random bits, from the operating system's randomness behind the standard library's hash keys; time and
/// process stand beside them so that two ledgers differ even where that randomness is weak.
pub(super) fn new_id() -> String {
    use sha2::Digest as _;
    use std::hash::{BuildHasher as _, RandomState};
    let mut hasher = sha2::Sha256::new();
    for salt in 0..2_u64 {
        hasher.update(RandomState::new().hash_one(salt).to_be_bytes());
    }
    hasher.update(jiff::Timestamp::now().as_nanosecond().to_be_bytes());
    hasher.update(std::process::id().to_be_bytes());
    hex::encode(&hasher.finalize()[..16])
}
