//! The ledger in a bucket of the bus, where replicas come and go: whoever owns a shard claims it here, and takes over what
//! its former owner acknowledged.
//!
//! takes: claims of shards, and what a ledger in a file takes - gives: the same records, journal and parked entries
//! calls: a key-value bucket, written by two tasks: rows in groups, send intents before their reports go - fails:
//! while the bus is away nothing is lost in memory, as with a file; a shard that somebody else has claimed, or whose
//! bucket was lost, is forgotten at once and reported by [`Ledger::fenced`]
//!
//! # Keys
//! ```text
//! claim.<sink>.<shard>                        who may write the shard: epoch of its owner, ledger id (JSON)
//! records.<sink>.<shard>.<namespace>.<name>   a record; likewise `journal.` and `parked.`
//! intents.<sink>.<shard>                      send intents that no row covers yet
//! recent.<sink>.<shard>                       what was reported recently and no row says any more
//! ```
//! Rows stand under the object's name and not its uid, so that one that is made again replaces its row in one write,
//! and nothing is left that somebody would have to sweep.
//!
//! # Fencing
//! Each write of a shard expects its claim to be the very message that this owner wrote: from the moment at which the next
//! owner has written its claim, the server refuses every write of all before it, whatever they believe. What a replica
//! holds in memory of a shard that it does not own any more is never written.
//!
//! # Groups
//! The rows of a group are not written in one transaction. Of one object the journal goes first: were a record
//! written and the process killed, what the record says was reported would be reported again. In a bucket with copies a shard
//! is written one row after another, and shards beside each other.

mod check;
mod claim;
mod intents;
mod row;
mod shards;
mod write;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use pipeline_core::{Key, Remembered};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use self::check::refusing_claims;
use self::intents::IntentPages;
use self::row::Names;
pub(super) use self::shards::{ClaimedShard, Shards};
use super::error::LedgerError;
use super::group_commit::{Group, GroupCommit, Writer};
use super::intents::Intent;
use super::state::{Shared, State};
use super::store::{Store, Unwritten};
use super::{Ledger, LedgerOptions, Origin};
use pipeline_bus::BusError;
use pipeline_bus::jetstream::{Bucket, PutError};
use pipeline_ownership::sharding::Sharding;

/// Within this time all of a shard must have been read.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was found when a shard was claimed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The shard has a new ledger id: nothing is known of it, and everything is to be reported.
    pub new: bool,
    /// Objects that are remembered.
    pub records: usize,
    /// Those of them whose reports are not all acknowledged, or may have been received without being acknowledged, or
    /// lacked a fact: they are to be read again. In order.
    pub unfinished: Vec<Key>,
}

/// The bucket, as the tasks that write it share it.
pub(super) struct BucketStore {
    shared: Arc<Shared>,
    bucket: Bucket,
    names: Names,
    options: LedgerOptions,
    sharding: Sharding,
    intents: IntentPages,
    /// Held by whoever writes under a shard's claim, where the bucket has copies; by number of the shard.
    turns: Vec<tokio::sync::Mutex<()>>,
    /// The task that writes intents.
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Ledger {
    /// A ledger in `bucket`, of which nothing is held yet: see [`Ledger::claim`]. `sharding` is the same for all replicas. To be called on a runtime. It remembers
    /// nothing of objects whose shard it does not hold. Dropped without [`Ledger::close`], it does not write what
    /// waits.
    ///
    /// # Errors
    /// [`LedgerError::Bus`] when the sink's name is too long for a key.
    pub fn in_bucket(
        bucket: Bucket,
        sharding: Sharding,
        options: LedgerOptions,
    ) -> Result<Self, LedgerError> {
        let names = Names::new(&options.sink).map_err(|error| LedgerError::bus("name")(error.into()))?;
        let state = State { shards: Some(Shards::new(sharding)), ..State::default() };
        let shared = Shared::new(String::new(), options.sink.clone(), state, Some(options.group_size));
        let shared = Arc::new(shared);
        let (group_time, retry) = (options.group_time, options.retry);
        let turns = if bucket.is_copied() { sharding.shards().get() } else { 0 };
        let store = Arc::new(BucketStore {
            shared: shared.clone(),
            bucket,
            names,
            options,
            sharding,
            intents: IntentPages::default(),
            turns: (0..turns).map(|_| tokio::sync::Mutex::default()).collect(),
            task: Mutex::default(),
        });
        let task = tokio::spawn(intents::write(store.clone()));
        let mut writer = Writer::task(GroupCommit::new(shared.clone(), store.clone(), group_time, retry));
        writer.tasks.push(task.abort_handle());
        *store.task() = Some(task);
        Ok(Self::over(shared, Origin::Existing, store, Some(writer)))
    }

    /// Whether it is in a bucket, and holds what was claimed.
    pub fn is_in_bucket(&self) -> bool {
        self.inner.shared.lock().shards.is_some()
    }

    /// The id under which reports of `key` are counted, part of their idempotency keys. Of a ledger in a bucket it is that
    /// of the key's shard, and empty while that is not held.
    #[must_use]
    pub fn id_of(&self, key: &Key) -> Arc<str> {
        let state = self.inner.shared.lock();
        self.inner.shared.id_of(&state, key)
    }

    /// The id under which reports of one shard are counted, as [`Ledger::id_of`] of each of its keys.
    #[must_use]
    pub fn id_of_shard(&self, shard: u32) -> Arc<str> {
        let (shared, state) = (&self.inner.shared, self.inner.shared.lock());
        let held = state.shards.as_ref().and_then(|shards| shards.held(shard));
        held.map_or_else(|| shared.id.clone(), |held| held.id.clone())
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
        self.inner.shared.fenced.subscribe()
    }

    /// Lets go of a shard at once, and writes nothing any more of it: its lease is lost, or was never this replica's.
    pub fn forget(&self, shard: u32) {
        self.inner.store.forget(shard);
    }

    /// Takes a shard over, under the epoch of the lease that this replica holds: from then on nobody who claimed it before
    /// can write anything of it, and what they wrote is remembered here. To be called before anything of the shard is
    /// looked at, and again after the shard was lost. A bucket that is absent is made.
    ///
    /// # Errors
    /// [`LedgerError::Fenced`] when somebody has claimed it under a higher epoch; [`LedgerError::Sharding`] and
    /// [`LedgerError::Claim`] when the bucket is another version's or configuration's; [`LedgerError::Bus`] when the bus is
    /// away: then it may be called again, with the same epoch.
    pub async fn claim(&self, shard: u32, epoch: u64) -> Result<Claimed, LedgerError> {
        self.inner.store.claim(shard, Some(epoch)).await
    }

    /// As [`Ledger::claim`], for a shard that is this process's for good: under the epoch that follows the newest. Where two
    /// claim it at once, the one whose claim was written last has it.
    ///
    /// # Errors
    /// As [`Ledger::claim`], but never [`LedgerError::Fenced`].
    pub async fn claim_for_good(&self, shard: u32) -> Result<Claimed, LedgerError> {
        self.inner.store.claim(shard, None).await
    }

    /// Writes what waits of a shard, and lets go of it; to be called when nothing of it is being sent any more. It is let go
    /// of also when writing fails: what was not written is then reported again by the next owner, under the same keys.
    ///
    /// # Errors
    /// [`LedgerError::Write`], when something could not be written.
    pub async fn release(&self, shard: u32) -> Result<(), LedgerError> {
        let shared = &self.inner.shared;
        let held = shared.lock().shards.as_ref().and_then(|shards| shards.held.get(&shard).cloned());
        let Some(held) = held else { return Ok(()) };
        let written = self.flush().await;
        let waits = {
            let state = shared.lock();
            state.dirty.iter().any(|(_, key)| state.shard(key) == shard)
        };
        let result = if waits { written } else { Ok(()) };
        self.inner.store.release(shard, held.sequence, result.is_ok()).await;
        result
    }
}

impl BucketStore {
    /// What stands in the bucket of all shards, one after the other.
    async fn all_remembered(&self) -> Result<Vec<Remembered>, LedgerError> {
        let mut all = Vec::new();
        for shard in 0..self.sharding.shards().get() {
            let entries = match self.bucket.load(&[self.names.records(shard)], None, PATIENCE).await {
                Err(BusError::Gone { .. }) => break,
                entries => entries.map_err(LedgerError::bus("read"))?,
            };
            all.extend(entries.iter().filter_map(|entry| self.names.remembered(entry)));
        }
        Ok(all)
    }
}

impl Store for BucketStore {
    fn storage(&self) -> &'static str {
        "bucket"
    }

    fn commit<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<(), Unwritten>> {
        self.write(group).boxed()
    }

    fn intend(&self, intent: Intent) -> BoxFuture<'_, bool> {
        let written = self.intents.add(self.sharding.place(&intent.key), intent);
        async { written.await.unwrap_or(false) }.boxed()
    }

    fn stop(&self) {
        self.intents.close();
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.stop();
        let task = self.task().take();
        async {
            if let Some(task) = task {
                // An error means that it was aborted.
                let _ = task.await;
            }
        }
        .boxed()
    }

    fn claim(&self, shard: u32, epoch: Option<u64>) -> BoxFuture<'_, Result<Claimed, LedgerError>> {
        self.take_over(shard, epoch).boxed()
    }

    fn release(&self, shard: u32, sequence: u64, settled: bool) -> BoxFuture<'_, ()> {
        async move {
            if settled {
                // What they say stands in the rows now; were they left behind, the next owner would doubt what is certain.
                let all = self.intents.settled(shard, sequence);
                let _ = tokio::time::timeout(self.options.retry, all).await;
            }
            self.let_go(shard, Some(sequence));
        }
        .boxed()
    }

    fn forget(&self, shard: u32) {
        self.let_go(shard, None);
        self.shared.fenced.send_if_modified(|fenced| fenced.remove(&shard));
    }

    fn remembered(&self) -> BoxFuture<'_, Result<Vec<Remembered>, LedgerError>> {
        self.all_remembered().boxed()
    }

    fn intent_errors(&self) -> u64 {
        self.intents.errors()
    }
}

impl BucketStore {
    /// The turn to write under a shard's claim: of a bucket with copies one write at a time, since its servers refuse
    /// another that expects the same claim while one is under way. Without copies nobody waits.
    async fn turn(&self, shard: u32) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match self.turns.get(usize::try_from(shard).ok()?) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }

    fn task(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of a shard, if it is (still) held by the claim with this sequence.
    fn let_go(&self, shard: u32, sequence: Option<u64>) -> bool {
        let mut state = self.shared.lock();
        let held = state.shards.as_ref().and_then(|shards| shards.held.get(&shard));
        let Some(held) = held.filter(|held| sequence.is_none_or(|sequence| sequence == held.sequence)) else {
            return false;
        };
        self.intents.forget(shard, held.sequence);
        state.forget(shard);
        true
    }

    /// Lets go of a shard that somebody else has claimed under the epoch `found`, or whose bucket was lost.
    fn fence(&self, shard: u32, sequence: u64, found: Option<u64>) {
        if !self.let_go(shard, Some(sequence)) {
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
        self.shared.fenced.send_if_modified(|fenced| fenced.insert(shard));
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
