//! The ledger: what has been acknowledged, one packed record per application and sink.
//!
//! takes: changes of records, by closure - gives: records, at once from memory
//! calls: a file (redb), written by one thread of its own in groups - fails: a write error loses nothing in
//! memory; it is counted, said once, and tried again until it works
//!
//! Every read is answered from memory. A crash loses at most the last group (50 ms or 256 changes), and what it
//! loses is reported again under the same idempotency keys. A lost or corrupt file is a new ledger with a new
//! id: everything is reported again, and no old key is ever given to a new report.

mod error;
mod file;
mod packed;
mod writer;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pipeline_core::{ApplicationDigest, Key, Record, Report, Stub, Uid};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::lane::{Parked, Pending};
pub use error::{Failure, LedgerError};
use writer::Writer;

/// How a file ledger behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerOptions {
    /// The name of the sink whose acknowledgements are held; each sink has a table of its own in the file.
    pub sink: String,
    /// A change waits at most this long for its commit.
    pub group_time: Duration,
    /// A commit begins at once when this many records have changed.
    pub group_size: usize,
    /// The first pause after a failed commit; doubled up to 30 s while it keeps failing.
    pub retry: Duration,
    /// Bytes of the file that are cached in memory; records are read from memory in any case.
    pub cache: usize,
}

impl LedgerOptions {
    /// The defaults, for one sink.
    #[must_use]
    pub fn new(sink: impl Into<String>) -> Self {
        Self {
            sink: sink.into(),
            group_time: Duration::from_millis(50),
            group_size: 256,
            retry: Duration::from_secs(1),
            cache: 4 << 20,
        }
    }
}

/// Where a ledger's records came from; anything but [`Origin::Existing`] is followed by a full resend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nothing outlives the process.
    Memory,
    /// The file was made.
    New,
    /// The file was there.
    Existing,
    /// The file was corrupt: it now has this name, and an empty one was made.
    SetAside(PathBuf),
}

/// What was acknowledged of one shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Applications of which something was acknowledged.
    pub applications: u64,
    /// Entities: those applications, and every resource of theirs that was ever acknowledged.
    pub entities: u64,
    /// The exclusive or over all of them, as [`pipeline_core::ShardDigest`] says.
    pub digest: u128,
}

/// What a ledger says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LedgerStatus {
    /// `memory` or `file`.
    pub storage: &'static str,
    /// Records held: one an application.
    pub records: usize,
    /// Bytes of packed records and their keys in memory.
    pub bytes: usize,
    /// Records that are newer in memory than in the file.
    pub waiting: usize,
    /// Commits that succeeded.
    pub commits: u64,
    /// Commits that failed.
    pub errors: u64,
    /// The last commit failed.
    pub failing: bool,
    /// Seconds since the last commit that succeeded; `None` before the first, and in memory.
    #[serde(rename = "last_commit_seconds", serialize_with = "seconds")]
    pub last_commit_age: Option<Duration>,
}

/// Shared by everything that acknowledges; cloning shares. When the last clone is dropped, what waits is
/// committed, which blocks for that one commit: call [`Ledger::close`] first on a runtime thread.
#[derive(Clone)]
pub struct Ledger {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    origin: Origin,
    writer: Option<Writer>,
}

struct Shared {
    id: String,
    durable: bool,
    group_size: usize,
    state: Mutex<State>,
    wake: Condvar,
}

/// Packed records by application.
type Records = HashMap<Key, Box<[u8]>>;
type Waiter = oneshot::Sender<Result<(), LedgerError>>;

/// Guarded by one lock, which is held for one record at a time.
#[derive(Default)]
struct State {
    records: Records,
    bytes: usize,
    /// Keys, not copies: what waits for a commit is bounded by the number of applications.
    dirty: HashSet<Key>,
    /// When the oldest of `dirty` began to wait.
    dirty_since: Option<Instant>,
    /// Keys whose commit is under way.
    committing: usize,
    /// Changes made, and changes made when the last commit began that succeeded.
    changed: u64,
    committed: u64,
    waiters: Vec<(u64, Waiter)>,
    closing: bool,
    closed: bool,
    commits: u64,
    errors: u64,
    failing: bool,
    last_commit: Option<Instant>,
}

impl Ledger {
    /// A ledger that lives as long as the process.
    #[must_use]
    pub fn memory() -> Self {
        let shared = Shared::new(new_id(), HashMap::new(), None);
        Self { inner: Arc::new(Inner { shared: Arc::new(shared), origin: Origin::Memory, writer: None }) }
    }

    /// Opens or makes the ledger in the file `path`, checks all of it, and reads it into memory. Blocks:
    /// call it in `spawn_blocking`, or before the runtime works.
    ///
    /// A corrupt file is renamed to `<name>.corrupt-<time>` and an empty ledger takes its place: see
    /// [`Ledger::origin`].
    ///
    /// # Errors
    /// [`LedgerError`] when the file is held by another process, may not be used, is of a newer format, or
    /// the disk refuses.
    pub fn open(path: impl AsRef<Path>, options: LedgerOptions) -> Result<Self, LedgerError> {
        let opener = file::opener(path.as_ref().to_owned(), options.cache);
        Self::open_with(path.as_ref(), options, opener)
    }

    fn open_with(path: &Path, options: LedgerOptions, opener: file::Opener) -> Result<Self, LedgerError> {
        let (store, loaded) = file::Store::open(path, &options.sink, opener)?;
        let shared = Arc::new(Shared::new(loaded.id, loaded.records, Some(options.group_size)));
        let writer = Writer::spawn(shared.clone(), store, options)?;
        Ok(Self { inner: Arc::new(Inner { shared, origin: loaded.origin, writer: Some(writer) }) })
    }

    /// 32 hexadecimal digits, made with the file: part of every idempotency key.
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
        self.inner.shared.lock().record(key)
    }

    /// Moves the record of `key`: at once in memory, in the file with the next group. `change` runs under
    /// the ledger's lock: it computes, and calls nothing that waits.
    pub fn update(&self, key: &Key, change: impl FnOnce(Option<Record>) -> Option<Record>) {
        let shared = &self.inner.shared;
        let mut state = shared.lock();
        let after = change(state.record(key)).map(|record| packed::encode(&record));
        if !state.put(key, after) || !shared.durable {
            return;
        }
        state.changed += 1;
        let first = state.dirty.is_empty();
        state.dirty.insert(key.clone());
        if first {
            state.dirty_since = Some(Instant::now());
        }
        if first || state.dirty.len() == shared.group_size {
            drop(state);
            shared.wake.notify_one();
        }
    }

    /// Notes that a report is about to be sent, so that a killed process knows at its next start of whose state it
    /// is not sure. Returns when the note would outlive the process, or could not be made, which is said once.
    pub async fn sending(&self, key: &Key, report: &Report, stub: Option<&Stub>) {
        self.update(key, |record| Record::sending(record, report, stub));
    }

    /// Keeps what of `key` must outlive the process beside its record; `None` removes it. In the file with the next
    /// group.
    pub fn journal(&self, _key: &Key, _pending: Option<Pending>) {}

    /// What was journaled when the ledger was opened.
    #[must_use]
    pub fn journaled(&self) -> Vec<(Key, Pending)> {
        Vec::new()
    }

    /// Keeps how `key` was parked; `None` removes it. In the file with the next group.
    pub fn park(&self, _key: &Key, _parked: Option<Parked>) {}

    /// What was parked when the ledger was opened.
    #[must_use]
    pub fn parked(&self) -> Vec<(Key, Parked)> {
        Vec::new()
    }

    /// What was acknowledged of one application; `None` when nothing was.
    #[must_use]
    pub fn digest(&self, _key: &Key) -> Option<ApplicationDigest> {
        None
    }

    /// What was acknowledged of each shard, `place` naming the shard of a key; kept up to date with every
    /// acknowledgement, so that asking costs no more than what changed since the last time.
    #[must_use]
    pub fn digests(&self, _place: impl Fn(&Key) -> Option<u32>) -> BTreeMap<u32, Acknowledged> {
        BTreeMap::new()
    }

    /// Every application that is remembered, and which life of it, in no order.
    #[must_use]
    pub fn known(&self) -> Vec<(Key, Uid)> {
        let state = self.inner.shared.lock();
        let known = state.records.iter();
        known.filter_map(|(key, packed)| Some((key.clone(), packed::uid(packed).ok()?))).collect()
    }

    /// Waits until every change made before this call is in the file. At once in memory.
    ///
    /// # Errors
    /// [`LedgerError::Write`] when the next commit fails (it is tried again without being asked), and
    /// [`LedgerError::Closed`] after [`Ledger::close`] could not write.
    pub async fn flush(&self) -> Result<(), LedgerError> {
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
            storage: if shared.durable { "file" } else { "memory" },
            records: state.records.len(),
            bytes: state.bytes,
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

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(writer) = &mut self.writer {
            self.shared.stop();
            writer.join();
        }
    }
}

impl Shared {
    /// `group_size` is `None` for a ledger in memory.
    fn new(id: String, records: Records, group_size: Option<usize>) -> Self {
        let bytes = records.iter().map(|(key, packed)| weight(key, packed)).sum();
        let state = State { records, bytes, ..State::default() };
        Self {
            id,
            durable: group_size.is_some(),
            group_size: group_size.unwrap_or_default().max(1),
            state: Mutex::new(state),
            wake: Condvar::new(),
        }
    }

    /// A panic in a caller's closure leaves the state as it was before: nothing is half moved.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.lock().closing = true;
        self.wake.notify_one();
    }
}

impl State {
    fn record(&self, key: &Key) -> Option<Record> {
        self.records.get(key).and_then(|bytes| packed::decode(bytes).ok())
    }

    /// Puts or removes a record; returns whether that changed anything.
    fn put(&mut self, key: &Key, after: Option<Box<[u8]>>) -> bool {
        let before = match after {
            Some(after) => {
                self.bytes += weight(key, &after);
                match self.records.get_mut(key) {
                    Some(slot) if *slot == after => {
                        self.bytes -= weight(key, &after);
                        return false;
                    }
                    Some(slot) => Some(std::mem::replace(slot, after)),
                    None => {
                        self.records.insert(key.clone(), after);
                        return true;
                    }
                }
            }
            None => self.records.remove(key),
        };
        self.bytes -= before.as_ref().map_or(0, |before| weight(key, before));
        before.is_some()
    }

    fn waiting(&self) -> usize {
        self.dirty.len() + self.committing
    }
}

fn weight(key: &Key, packed: &[u8]) -> usize {
    size_of::<(Key, Box<[u8]>)>() + key.as_str().len() + packed.len()
}

/// 128 random bits, from the operating system's randomness behind the standard library's hash keys; time and
/// process stand beside them so that two ledgers differ even where that randomness is weak.
fn new_id() -> String {
    use sha2::Digest as _;
    use std::hash::{BuildHasher as _, RandomState};
    let mut hasher = sha2::Sha256::new();
    for salt in 0..2_u64 {
        hasher.update(RandomState::new().hash_one(salt).to_be_bytes());
    }
    hasher.update(jiff::Timestamp::now().as_nanosecond().to_be_bytes());
    hasher.update(std::process::id().to_be_bytes());
    hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
fn seconds<S: serde::Serializer>(age: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    age.map(|age| age.as_secs_f64()).serialize(to)
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod tests;
