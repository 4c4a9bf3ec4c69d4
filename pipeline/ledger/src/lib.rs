//! The ledger: what has been acknowledged, one record per object and sink.
//!
//! takes: changes of records, by closure - gives: records, at once from memory
//! calls: a store (a file of redb, or a bucket of the bus), in groups - fails: a write error loses nothing in
//! memory; it is counted, said once, and tried again until it works
//!
//! Where replicas come and go it stands in a bucket of the bus, shard by shard: see [`Ledger::in_bucket`].
//!
//! Every read is answered from memory. A crash loses at most the last group (50 ms or 256 changes), and what it
//! loses is reported again under the same idempotency keys. Of a report that was on its way when the process was
//! killed the send intents beside the ledger tell, so that its entity is reported again whatever its state is then. A
//! lost or corrupt file, and one that is older than its send intents say, is a new ledger with a new id: everything is
//! reported again, and no old key is ever given to a new report.

mod aside;
mod bucket;
mod compact;
mod digests;
mod error;
mod file;
mod file_store;
mod group_commit;
mod head;
mod intent_file;
mod intent_log;
mod intents;
mod kept;
mod recent;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
mod state;
mod status;
mod store;
mod stored;
mod tables;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use pipeline_core::{Checkpoint, Fact, Key, ObjectDigest, Record, Remembered, Report, SendIntent, Uid};
use tokio::sync::oneshot;

pub use bucket::{Claimed, refusing_claims};
pub use error::{Failure, LedgerError};
use file_store::FileStore;
use group_commit::{GroupCommit, Writer};
use intent_file::IntentFile;
use intent_log::Owner;
use state::{Shared, State, new_id};
pub use status::{AckedDigest, LedgerOptions, LedgerStatus, Origin};
use store::{Memory, Store};
use tables::{Bytes, Table, row_ids};

/// Shared by everything that acknowledges; cloning shares. When the last clone is dropped, what waits is
/// committed, which blocks for that one commit: call [`Ledger::close`] first on a runtime thread.
#[derive(Clone)]
pub struct Ledger {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    origin: Origin,
    store: Arc<dyn Store>,
    /// `None` where nothing is written, or somebody asks for each group.
    writer: Option<Writer>,
    #[cfg(any(test, feature = "simulated"))]
    by_hand: Option<std::sync::Mutex<GroupCommit>>,
}

impl Ledger {
    /// A ledger that lives as long as the process.
    #[must_use]
    pub fn memory() -> Self {
        let shared = Shared::new(new_id(), String::new(), State::default(), None);
        Self::over(Arc::new(shared), Origin::Memory, Arc::new(Memory), None)
    }

    fn over(shared: Arc<Shared>, origin: Origin, store: Arc<dyn Store>, writer: Option<Writer>) -> Self {
        let inner = Inner {
            shared,
            origin,
            store,
            writer,
            #[cfg(any(test, feature = "simulated"))]
            by_hand: None,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Opens or makes the ledger in the file `path`, checks all of it, and reads it into memory. Blocks:
    /// call it in `spawn_blocking`, or before the runtime works.
    ///
    /// A corrupt file, and one that has gone back to an earlier commit, is renamed to `<name>.corrupt-<time>` and an
    /// empty ledger takes its place: see [`Ledger::origin`].
    ///
    /// # Errors
    /// [`LedgerError`] when the file is held by another process, may not be used, is of a newer format, or
    /// the disk refuses.
    pub fn open(path: impl AsRef<Path>, options: LedgerOptions) -> Result<Self, LedgerError> {
        let opener = file::opener(path.as_ref().to_owned(), options.cache);
        Self::open_with(path.as_ref(), options, opener)
    }

    fn open_with(path: &Path, options: LedgerOptions, opener: file::Opener) -> Result<Self, LedgerError> {
        let (file, loaded) = file::LedgerFile::open(path, &options.sink, opener)?;
        let owner = Owner { id: loaded.id.clone(), sink: options.sink.clone() };
        let mut state = State::default();
        state.begin(loaded.tables, loaded.covered, &loaded.left.intents);
        let beside = intent_file::path_of(path, &options.sink);
        let failed = |source| LedgerError::Io {
            act: "start writing",
            path: path.to_owned(),
            source: Box::new(redb::Error::Io(source)),
        };
        let intents = IntentFile::open(beside, owner, loaded.covered, loaded.left).map_err(failed)?;
        let shared = Arc::new(Shared::new(loaded.id, options.sink, state, Some(options.group_size)));
        let store = Arc::new(FileStore::new(shared.clone(), path, file, intents));
        let work = GroupCommit::new(shared.clone(), store.clone(), options.group_time, options.retry);
        let writer = Writer::thread(work).map_err(failed)?;
        Ok(Self::over(shared, loaded.origin, store, Some(writer)))
    }

    /// 32 hexadecimal digits, made with the file: part of every idempotency key. Empty of a ledger in a bucket, each shard
    /// of which has an id of its own: see [`Ledger::id_of`].
    #[must_use]
    pub fn id(&self) -> &str {
        &self.inner.shared.id
    }

    /// Where the records came from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.inner.origin
    }

    /// What is remembered of `key`.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Record> {
        self.inner.shared.lock().tables.record(key)
    }

    /// Moves the record of `key`: at once in memory, in the file with the next group. `change` runs under
    /// the ledger's lock: it computes, and calls nothing that waits.
    pub fn update(&self, key: &Key, change: impl FnOnce(Option<Record>) -> Option<Record>) {
        let shared = &self.inner.shared;
        let mut state = shared.lock();
        if state.change(key, change) {
            shared.changed(state, [(Table::Records, key.clone())]);
        }
    }

    /// Writes down that a report is about to be sent, so that a killed process knows at its next start of whose state it
    /// is not sure, and so does whoever owns the shard next. Returns when that would outlive the process: in a file
    /// also when it could not be written, which is said once, in a bucket not before.
    ///
    /// Returns whether the report may go: it may not when the ledger does not hold the object's shard (any more).
    pub async fn sending(&self, key: &Key, report: &Report, first: Option<&bytes::Bytes>) -> bool {
        let written = {
            let shared = &self.inner.shared;
            let mut state = shared.lock();
            if !state.holds(key) {
                return false;
            }
            let before = state.tables.record(key);
            let Some(sent) = SendIntent::new(before.as_ref(), report, first) else { return true };
            let (moved, intent) = state.intend(key, before, sent);
            let written = intent.map(|intent| self.inner.store.intend(intent));
            if moved {
                shared.changed(state, [(Table::Records, key.clone())]);
            }
            written
        };
        match written {
            Some(written) => written.await,
            None => true,
        }
    }

    /// Moves the record of `key` by one acknowledged report, as [`Record::acknowledge`] says, and notes when. With the
    /// end of an incarnation goes, in the same commit, what is journaled of it, and with the report of a
    /// fact, that fact.
    pub fn acknowledge(&self, key: &Key, report: &Report) {
        let now = self.inner.store.now();
        let shared = &self.inner.shared;
        let mut state = shared.lock();
        let moved = state.change(key, |record| {
            let record = Record::acknowledge(record, report);
            let moved = !report.ends;
            record.map(|record| Record { reported: if moved { now } else { record.reported }, ..record })
        });
        if report.ends {
            state.incarnation_ended(key, &report.uid);
        } else {
            state.incarnation_goes_on(key, &report.uid);
        }
        let struck = (report.ends || report.fact.is_some()) && state.strike(key);
        shared.changed(state, row_ids(key, moved, struck));
    }

    /// Moves the record of `key` by a delivery whose reports were all acknowledged, as [`Record::checkpoint`] says. The delivery
    /// told the facts `told` and the one that its state shows: they go from the journal in the same
    /// commit, so that no process tells them again.
    pub fn checkpoint(&self, key: &Key, checkpoint: &Checkpoint, told: &[Fact]) {
        let shared = &self.inner.shared;
        let mut state = shared.lock();
        told.iter().for_each(|fact| state.add_reported(key, &checkpoint.uid, fact.id));
        let moved = state.change(key, |record| Some(Record::checkpoint(record, checkpoint)));
        let struck = state.strike(key);
        shared.changed(state, row_ids(key, moved, struck));
    }

    /// The sink's name in idempotency keys and digests. Of a file it is [`LedgerOptions::sink`]: what is counted under
    /// one name is sent under the same.
    #[must_use]
    pub fn sink(&self) -> &str {
        self.inner.shared.sink()
    }

    /// Tells a ledger in memory, which has no name for its table, [`Ledger::sink`]. Told once, it stays.
    pub fn sent_as(&self, sink: &str) {
        self.inner.shared.sent_as.get_or_init(|| sink.to_owned());
    }

    /// What was acknowledged of one object; `None` when nothing was.
    #[must_use]
    pub fn digest(&self, key: &Key) -> Option<ObjectDigest> {
        let shared = &self.inner.shared;
        let (record, id) = {
            let state = shared.lock();
            (state.tables.record(key)?, shared.id_of(&state, key))
        };
        let digests::Tally { entities, digest } = digests::tally(&record, &id, shared.sink())?;
        Some(ObjectDigest { key: key.clone(), uid: record.uid, version: record.version, entities, digest })
    }

    /// What was acknowledged of each shard, `place` naming the shard of a key. Hashes everything: 10,000 objects of
    /// ten resources take a tenth of a second.
    #[must_use]
    pub fn digests(&self, place: impl Fn(&Key) -> Option<u32>) -> BTreeMap<u32, AckedDigest> {
        digests::add_up(&self.inner.shared, place)
    }

    /// Objects of which something was reported at `seconds` since 1970 or later, or of which that is not known,
    /// in order.
    #[must_use]
    pub fn reported_since(&self, seconds: u32) -> Vec<Key> {
        let recent = |record: &Record| record.reported == 0 || record.reported >= seconds;
        let decode = |bytes: &[u8]| stored::record(bytes).ok().filter(recent);
        self.decoded(Table::Records, decode).into_iter().map(|(key, _)| key).collect()
    }

    fn decoded<T>(&self, table: Table, decode: impl Fn(&[u8]) -> Option<T>) -> Vec<(Key, T)> {
        let held: Vec<(Key, Bytes)> = {
            let state = self.inner.shared.lock();
            state.tables.of(table).iter().map(|(key, bytes)| (key.clone(), bytes.clone())).collect()
        };
        // Reading them takes long, and nobody waits for that.
        let read = held.into_iter().filter_map(|(key, bytes)| Some((key, decode(&bytes)?)));
        let mut all: Vec<(Key, T)> = read.collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    /// Every object that is remembered, and which incarnation of it, in order of keys.
    #[must_use]
    pub fn known(&self) -> Vec<(Key, Uid)> {
        self.remembered().into_iter().map(|(key, uid, _)| (key, uid)).collect()
    }

    /// The same, with versions.
    #[must_use]
    pub fn remembered(&self) -> Vec<Remembered> {
        let lives = self.decoded(Table::Records, |bytes| stored::incarnation(bytes).ok());
        lives.into_iter().map(|(key, (uid, version))| (key, uid, version)).collect()
    }

    /// What all replicas remember: of a ledger in a bucket also of shards that are not held, as it stands there.
    ///
    /// # Errors
    /// [`LedgerError::Bus`], when the bus is away.
    pub async fn remembered_by_all(&self) -> Result<Vec<Remembered>, LedgerError> {
        let mut all = self.inner.store.remembered().await?;
        // Later, and so newer.
        all.extend(self.remembered());
        Ok(all)
    }

    /// Objects, of those that `of` names, of which something is incomplete, or in doubt, or not acknowledged as a whole: they
    /// are to be read again where no list will show them. In order of keys.
    pub fn unfinished(&self, of: impl FnMut(&Key) -> bool) -> Vec<Key> {
        let unfinished = |bytes: &[u8]| stored::record(bytes).ok().filter(state::is_unfinished);
        let all = self.decoded(Table::Records, unfinished);
        all.into_iter().map(|(key, _)| key).filter(of).collect()
    }

    /// Waits until every change made before this call is in the file. At once in memory.
    ///
    /// # Errors
    /// [`LedgerError::Write`] when the next commit fails (it is tried again without being asked), and
    /// [`LedgerError::Closed`] after [`Ledger::close`] could not write.
    pub async fn flush(&self) -> Result<(), LedgerError> {
        #[cfg(any(test, feature = "simulated"))]
        if self.inner.by_hand.is_some() {
            self.commit_simulated();
            return Ok(());
        }
        let done = {
            let mut state = self.inner.shared.lock();
            if state.committed >= state.changed || !self.inner.shared.durable {
                return Ok(());
            }
            if state.closed {
                return Err(LedgerError::Closed { waiting: state.waiting() });
            }
            let (tell, done) = oneshot::channel();
            let target = state.changed;
            state.waiters.push((target, tell));
            done
        };
        self.inner.shared.wake.notify_one();
        match done.await {
            Ok(result) => result,
            Err(_) => Err(LedgerError::Closed { waiting: self.status().waiting }),
        }
    }

    /// Commits what waits, once, and lets go of the file. Later changes stay in memory alone.
    ///
    /// # Errors
    /// [`LedgerError::Closed`] when that commit failed: why stands in the log.
    pub async fn close(&self) -> Result<(), LedgerError> {
        let Some(writer) = &self.inner.writer else { return Ok(()) };
        self.inner.shared.stop();
        writer.ended().await;
        match self.status().waiting {
            0 => Ok(()),
            waiting => Err(LedgerError::Closed { waiting }),
        }
    }

    /// Figures, for health, metrics and `/status`.
    #[must_use]
    pub fn status(&self) -> LedgerStatus {
        let shared = &self.inner.shared;
        let state = shared.lock();
        LedgerStatus {
            storage: self.inner.store.storage(),
            records: state.tables.records.len(),
            bytes: state.bytes,
            cut: state.cut.len(),
            in_doubt: state.in_doubt,
            journal: state.tables.journal.len(),
            journal_bytes: state.journal_bytes,
            journal_refused: state.journal_refused,
            parked: state.tables.parked.len(),
            file_bytes: self.inner.store.bytes(),
            intent_errors: self.inner.store.intent_errors(),
            waiting: state.waiting(),
            commits: state.commits,
            errors: state.errors,
            failing: state.failing,
            last_commit_age: state.last_commit.map(|at| at.elapsed()),
        }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { shared, origin, .. } = &*self.inner;
        f.debug_struct("Ledger").field("id", &shared.id).field("origin", origin).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod recovery_tests;
#[cfg(test)]
mod rewrite_tests;
#[cfg(test)]
mod tests;
