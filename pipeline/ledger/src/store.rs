//! Where a ledger outlives the process.

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use pipeline_core::Remembered;

use super::bucket::Claimed;
use super::error::{Failure, LedgerError};
use super::group_commit::Group;
use super::intents::Intent;
use super::state;
use super::tables::RowId;

/// A file, a bucket of the bus, or nothing. Memory has everything: a store is read when it is opened or a shard of it is
/// claimed, and written in groups.
pub(super) trait Store: Send + Sync {
    /// As [`LedgerStatus::storage`](super::LedgerStatus::storage) says.
    fn storage(&self) -> &'static str;

    /// Writes a group.
    fn commit<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<(), Unwritten>>;

    /// Writes down a report that is about to be sent; gives whether it may go, when that outlives the process. Called under
    /// the ledger's lock: a group that covers the intent comes later.
    fn intend(&self, intent: Intent) -> BoxFuture<'_, bool>;

    /// Nothing is written any more, for whatever reason.
    fn stop(&self) {}

    /// Lets go of everything, after the last group.
    fn close(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }

    /// Takes a shard over, under an epoch or the one that follows the newest. Where everything is held nothing is new.
    fn claim(&self, _shard: u32, _epoch: Option<u64>) -> BoxFuture<'_, Result<Claimed, LedgerError>> {
        ready(Ok(Claimed::default())).boxed()
    }

    /// Lets go of a shard that was claimed with this sequence; `settled` when the rows say everything.
    fn release(&self, _shard: u32, _sequence: u64, _settled: bool) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }

    /// Lets go of a shard at once.
    fn forget(&self, _shard: u32) {}

    /// What stands in the store beyond what is held: of shards that others have.
    fn remembered(&self) -> BoxFuture<'_, Result<Vec<Remembered>, LedgerError>> {
        ready(Ok(Vec::new())).boxed()
    }

    /// Intents that could not be written.
    fn intent_errors(&self) -> u64 {
        0
    }

    /// How long its file is; 0 when that cannot be said.
    fn bytes(&self) -> u64 {
        0
    }

    /// Now, in seconds since 1970; 0 when that cannot be said.
    fn now(&self) -> u32 {
        state::seconds()
    }
}

/// What of a group was not written.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) row_ids: Vec<RowId>,
    pub(super) failure: Failure,
    /// The next group may do no better at once.
    pub(super) pauses: bool,
}

/// Nothing outlives the process.
pub(super) struct Memory;

impl Store for Memory {
    fn storage(&self) -> &'static str {
        "memory"
    }

    fn commit<'a>(&'a self, _group: &'a Group) -> BoxFuture<'a, Result<(), Unwritten>> {
        ready(Ok(())).boxed()
    }

    fn intend(&self, _intent: Intent) -> BoxFuture<'_, bool> {
        ready(true).boxed()
    }
}
