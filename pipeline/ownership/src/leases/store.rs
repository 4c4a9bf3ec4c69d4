//! What a store of leases is asked, and what it shows.

use std::future::Future;

use tokio::sync::mpsc;

use super::{Lease, Presence, Replica};

/// Where leases are, such as a bucket of a broker.
///
/// It answers, it does not decide, and it does not retry: whoever asks does, and gives up by dropping the future. What it
/// cannot reach is an answer too ([`LeaseWrite::Failed`]); it says so in the log, once until it can again.
pub trait Store: Send + Sync + 'static {
    /// Writes the record of a shard, only if the store holds the revision `expected` of it (`None`: no record); a
    /// compare-and-set, of which nothing may be guessed.
    ///
    /// A store that can lose everything must not grant here what was decided on by what it held before: no revision of its
    /// former life equals one of this life, and where it held nothing before, the write is refused with what it holds now.
    fn write(&self, lease: &Lease, expected: Option<u64>) -> impl Future<Output = LeaseWrite> + Send;

    /// Writes that a replica is there, whatever was written of it before. The record may expire by itself, not before a
    /// lease does.
    fn announce(&self, presence: &Presence) -> impl Future<Output = ()> + Send;

    /// Deletes that a replica is there.
    fn leave(&self, replica: &Replica) -> impl Future<Output = ()> + Send;

    /// Shows everything, then every change, for ever: after whatever broke it says [`Shown::Unwatched`] and lists again.
    /// Ends when nobody takes it any more, and may be dropped wherever it waits.
    fn watch(&self, out: mpsc::Sender<Shown>) -> impl Future<Output = ()> + Send;
}

/// What a store says to a compare-and-set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseWrite {
    /// It is written, as this revision.
    Granted {
        /// The revision.
        revision: u64,
    },
    /// It is not: the store holds something else.
    Refused {
        /// What it holds, with its revision; `None`: nothing.
        current: Option<(Lease, u64)>,
    },
    /// Nobody knows whether it is written, or there is no answer at all.
    Failed,
}

/// What a store shows to those who watch it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// All records of the store, each with its revision: at the start, and whenever a watch begins anew. Nothing is
    /// claimed before the first.
    Listed {
        /// Those of the shards.
        leases: Vec<(Lease, u64)>,
        /// Those of the replicas.
        members: Vec<(Replica, u64)>,
    },
    /// The watch has broken, or the store has been reached anew: nothing is claimed before all is listed again, because of
    /// a store that lost everything meanwhile.
    Unwatched,
    /// A record of a shard; whoever watches may have written it, and it may come late.
    Lease {
        /// The record.
        lease: Lease,
        /// Its revision: rises with every write to the store.
        revision: u64,
    },
    /// The record of a shard was deleted; nobody who takes part does that.
    LeaseGone {
        /// The shard.
        shard: u32,
    },
    /// A replica wrote that it is there.
    Member {
        /// The replica.
        replica: Replica,
        /// The revision of its record.
        revision: u64,
    },
    /// Which shards a replica was refused, as its record says; comes before that record is shown, where it says so.
    Refused {
        /// The replica.
        replica: Replica,
        /// The shards.
        shards: Vec<u32>,
        /// The revision of its record: one of another revision says that there is none.
        revision: u64,
    },
    /// A replica's record went: it left, or was silent for too long.
    MemberGone {
        /// The replica.
        replica: Replica,
    },
}
