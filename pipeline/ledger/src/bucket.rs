//! The ledger in a bucket of the bus, where replicas come and go: whoever owns a shard claims it here, and takes over what
//! its former owner acknowledged.
//!
//! takes: claims of shards, and what a ledger in a file takes - gives: the same records, journal and parked entries
//! calls: a key-value bucket, written by two tasks: rows in groups, notes of reports on their way before these go - fails:
//! while the bus is away nothing is lost in memory, as with a file; a shard that somebody else has claimed, or whose
//! bucket was lost, is forgotten at once and reported by [`Ledger::fenced`]
//!
//! # Keys
//! ```text
//! claim.<sink>.<shard>                        who may write the shard: epoch of its owner, ledger id (JSON)
//! records.<sink>.<shard>.<namespace>.<name>   a packed record; likewise `journal.` and `parked.`
//! flight.<sink>.<shard>                       notes of reports on their way, as in a flight file
//! told.<sink>.<shard>                         what was told lately and no row says any more
//! ```
//! Rows stand under the application's name and not its uid, so that one that is made again replaces its row in one write,
//! and nothing is left that somebody would have to sweep.
//!
//! # Fencing
//! Each write of a shard expects its claim to be the very message that this owner wrote: from the moment at which the next
//! owner has written its claim, the server refuses every write of all before it, whatever they believe. What a replica
//! holds in memory of a shard that it does not own any more is never written.
//!
//! # Groups
//! The rows of a group are not written in one transaction. Of one application the journal goes first: were a record
//! written and the process killed, what the record says was told would be told again.

mod check;
mod claim;
mod copy;
mod notes;
mod row;
mod shards;
mod told;
mod write;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Key, Remembered};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

pub use self::check::refusing_claims;
use self::notes::Notebook;
use self::row::Names;
pub(super) use self::shards::Shards;
use self::told::Told;
use self::write::Work;
use super::error::LedgerError;
use super::intents::Intent;
use super::state::{Shared, State};
use super::{Ledger, Origin};
use pipeline_bus::jetstream::{Bucket, BusError, PutError};
use pipeline_ownership::sharding::Sharding;

/// Within this time what all replicas remember of a shard must have been read.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a ledger in a bucket behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketOptions {
    /// The name of the sink whose acknowledgements are held; each sink has rows of its own in the bucket.
    pub sink: String,
    /// How applications are divided; the same for all replicas.
    pub sharding: Sharding,
    /// A change waits at most this long to be written.
    pub group_time: Duration,
    /// Writing begins at once when this many rows have changed.
    pub group_size: usize,
    /// The first pause after a failed group; doubled up to 30 s while it keeps failing.
    pub retry: Duration,
}

impl BucketOptions {
    /// The defaults, for one sink.
    #[must_use]
    pub fn new(sink: impl Into<String>, sharding: Sharding) -> Self {
        Self {
            sink: sink.into(),
            sharding,
            group_time: Duration::from_millis(50),
            group_size: 256,
            retry: Duration::from_secs(1),
        }
    }
}

/// What was found when a shard was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The shard has a new ledger id: nothing is known of it, and everything is to be reported.
    pub new: bool,
    /// Applications that are remembered.
    pub records: usize,
    /// Those of them whose reports are not all acknowledged, or may have been received without being acknowledged, or
    /// lacked a fact: they are to be read again. In order.
    pub unfinished: Vec<Key>,
}

/// What was copied into a bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Shards, each with its claim.
    pub shards: u32,
    /// Records.
    pub records: usize,
    /// Journal entries.
    pub journal: usize,
    /// Parked entries.
    pub parked: usize,
}

/// What a ledger in a bucket has beside its memory.
pub(super) struct Remote {
    common: Arc<Common>,
    tasks: [AbortHandle; 2],
    /// Its sender is dropped when nothing is written any more.
    ended: watch::Receiver<()>,
}

/// What the tasks share.
struct Common {
    shared: Arc<Shared>,
    bucket: Bucket,
    names: Names,
    options: BucketOptions,
    notes: Notebook,
    told: Told,
    fenced: watch::Sender<BTreeSet<u32>>,
}

impl Ledger {
    /// A ledger in `bucket`, of which nothing is held yet: see [`Ledger::claim`]. To be called on a runtime. It remembers
    /// nothing of applications whose shard it does not hold. Dropped without [`Ledger::close`], it does not write what
    /// waits.
    ///
    /// # Errors
    /// [`LedgerError::Bus`] when the sink's name is too long for a key.
    pub fn in_bucket(bucket: Bucket, options: BucketOptions) -> Result<Self, LedgerError> {
        let names = Names::new(&options.sink).map_err(|error| LedgerError::bus("name")(error.into()))?;
        let state = State { shards: Some(Shards::new(options.sharding)), ..State::default() };
        let shared = Shared::new(String::new(), options.sink.clone(), state, Some(options.group_size));
        let mut ledger = Self::over(Arc::new(shared), Origin::Existing);
        let common = Arc::new(Common {
            shared: ledger.inner.shared.clone(),
            bucket,
            names,
            options,
            notes: Notebook::default(),
            told: Told::default(),
            fenced: ledger.inner.fenced.clone(),
        });
        if let Some(inner) = Arc::get_mut(&mut ledger.inner) {
            inner.bucket = Some(Remote::spawn(common));
        }
        Ok(ledger)
    }

    /// Whether it is in a bucket, and holds what was claimed.
    pub fn is_in_bucket(&self) -> bool {
        self.inner.bucket.is_some()
    }

    /// The id under which reports of `key` are counted, part of their idempotency keys. Of a ledger in a bucket it is that
    /// of the key's shard, and empty while that is not held.
    #[must_use]
    pub fn id_of(&self, key: &Key) -> Arc<str> {
        let state = self.inner.shared.lock();
        self.inner.shared.id_of(&state, key)
    }

    /// Shards that are held; none where everything is.
    #[must_use]
    pub fn owned(&self) -> BTreeSet<u32> {
        self.inner.shared.lock().shards.as_ref().map(Shards::owned).unwrap_or_default()
    }

    /// Shards that this ledger held and lost, without having been told to let go of them: to somebody else's claim, or
    /// with the bucket. Nothing of them is remembered or written any more, and nothing may be sent. A shard that is
    /// forgotten or claimed again leaves the set. Of a ledger in memory or a file nothing ever stands there.
    #[must_use]
    pub fn fenced(&self) -> watch::Receiver<BTreeSet<u32>> {
        self.inner.fenced.subscribe()
    }

    /// Lets go of a shard at once, and writes nothing any more of it: its lease is lost, or was never this replica's.
    pub fn forget(&self, shard: u32) {
        if let Some(remote) = &self.inner.bucket {
            remote.common.forget(shard, None);
            remote.common.fenced.send_if_modified(|fenced| fenced.remove(&shard));
        }
    }

    /// Writes what waits of a shard, and lets go of it; to be called when nothing of it is being sent any more. It is let go
    /// of also when writing fails: what was not written is then reported again by the next owner, under the same keys.
    ///
    /// # Errors
    /// [`LedgerError::Write`], when something could not be written.
    pub async fn release(&self, shard: u32) -> Result<(), LedgerError> {
        let Some(remote) = &self.inner.bucket else { return Ok(()) };
        let common = &remote.common;
        let held = common.shared.lock().shards.as_ref().and_then(|shards| shards.held(shard).cloned());
        let Some(held) = held else { return Ok(()) };
        let written = self.flush().await;
        let waits = {
            let state = common.shared.lock();
            let shards = state.shards.as_ref();
            state.dirty.iter().any(|(_, key)| shards.is_some_and(|shards| shards.place(key) == shard))
        };
        let result = if waits { written } else { Ok(()) };
        if result.is_ok() {
            // What it says stands in the rows now; were it left behind, the next owner would doubt what is certain.
            let _ =
                tokio::time::timeout(common.options.retry, common.notes.settled(shard, held.sequence)).await;
        }
        common.forget(shard, Some(held.sequence));
        result
    }
}

impl Remote {
    fn spawn(common: Arc<Common>) -> Self {
        let notes = tokio::spawn(notes::write(common.clone()));
        let notes_task = notes.abort_handle();
        let (tell, ended) = watch::channel(());
        let work = Work::new(common.clone());
        let both = common.clone();
        let rows = tokio::spawn(async move {
            // Dropped last, whatever happens: the word that nothing is written any more.
            let _ended = tell;
            let _closed = Closed(both.clone());
            work.run().await;
            // After the last group, which covers what they say.
            both.notes.close();
            let _ = notes.await;
        });
        Self { common, tasks: [rows.abort_handle(), notes_task], ended }
    }

    /// Intents a report that is about to be sent.
    pub(super) fn note(&self, shard: u32, note: Intent) -> oneshot::Receiver<bool> {
        self.common.notes.add(shard, note)
    }

    /// Intents that could not be written, each time that it was tried.
    pub(super) fn flight_errors(&self) -> u64 {
        self.common.notes.errors()
    }

    /// What stands in the bucket of all shards, one after the other.
    pub(super) async fn remembered(&self) -> Result<Vec<Remembered>, LedgerError> {
        let Common { bucket, names, options, .. } = &*self.common;
        let mut all = Vec::new();
        for shard in 0..options.sharding.shards().get() {
            let entries = match bucket.load(&[names.records(shard)], None, PATIENCE).await {
                Err(BusError::Gone { .. }) => break,
                entries => entries.map_err(LedgerError::bus("read"))?,
            };
            all.extend(entries.iter().filter_map(|entry| names.remembered(entry)));
        }
        Ok(all)
    }

    /// Writes what waits, once.
    pub(super) async fn close(&self) {
        self.common.shared.stop();
        // It is never told anything: an error means that the sender is gone.
        let _ = self.ended.clone().changed().await;
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// Says that nothing is written any more, so that nobody waits for it.
struct Closed(Arc<Common>);

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.shared.lock().close(std::thread::panicking());
        self.0.notes.close();
    }
}

impl Common {
    /// Lets go of a shard, if it is (still) held by the claim with this sequence.
    fn forget(&self, shard: u32, sequence: Option<u64>) -> bool {
        let mut state = self.shared.lock();
        let held = state.shards.as_ref().and_then(|shards| shards.held(shard));
        let Some(held) = held.filter(|held| sequence.is_none_or(|sequence| sequence == held.sequence)) else {
            return false;
        };
        self.notes.forget(shard, held.sequence);
        self.told.forget(shard, held.sequence);
        state.forget(shard);
        true
    }

    /// Lets go of a shard that somebody else has claimed under the epoch `found`, or whose bucket was lost.
    fn fence(&self, shard: u32, sequence: u64, found: Option<u64>) {
        if !self.forget(shard, Some(sequence)) {
            return;
        }
        self.shared.lock().errors += 1;
        match found {
            Some(epoch) => tracing::warn!(
                shard,
                epoch,
                "somebody else has claimed a shard of the ledger: nothing of it is written here any more"
            ),
            None => tracing::warn!(
                shard,
                "the bucket of the ledger was lost: nothing of this shard is known until it is claimed again"
            ),
        }
        self.fenced.send_if_modified(|fenced| fenced.insert(shard));
    }

    /// Finds out why the server refused a write that expected the claim with this sequence, and whether the shard is still
    /// held by it.
    async fn judge(&self, shard: u32, sequence: u64) -> Result<bool, BusError> {
        let (value, last) = self.bucket.last(&self.names.claim(shard)).await?;
        if last == sequence {
            return Ok(true);
        }
        let claim = value.map(|value| row::Claim::read(&value));
        self.fence(shard, sequence, claim.map(|claim| claim.map_or(0, |claim| claim.epoch)));
        Ok(false)
    }

    /// What to make of a write of a shard that failed: lets go of it when it is not held any more.
    async fn failed(&self, shard: u32, sequence: u64, error: &PutError) {
        let judged = match error {
            PutError::Conflict => self.judge(shard, sequence).await.map(drop),
            PutError::Bus(BusError::Gone { .. }) => match self.bucket.show().await {
                Ok(None) => {
                    self.fence(shard, sequence, None);
                    Ok(())
                }
                other => other.map(drop),
            },
            PutError::Bus(_) => Ok(()),
        };
        if let Err(error) = judged {
            tracing::debug!(
                shard,
                error = &error as &dyn std::error::Error,
                "cannot read a claim of the ledger"
            );
        }
    }
}
