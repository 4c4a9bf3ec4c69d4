//! How a replica stands to one shard.

use std::time::Duration;

use super::input::{LeaseTerm, Purpose, Request};

/// A write that is not answered yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) request: Request,
    pub(super) purpose: Purpose,
    pub(super) sent: Duration,
}

/// How far the work on a shard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Running,
    /// Told to drain, then.
    Draining(Duration),
    /// Told to stop at once; the lease is left to lapse.
    Ending,
    Drained,
}

/// A shard whose lease is held.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldLease {
    pub(super) revision: u64,
    pub(super) term: LeaseTerm,
    pub(super) work: Work,
    pub(super) pending: Option<Pending>,
    pub(super) next_write: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Mine {
    /// Nothing; not asked for before then.
    No(Duration),
    Acquiring(Pending, u64),
    HeldLease(HeldLease),
    /// The lease is gone; the shard still ends.
    Lost {
        epoch: u64,
    },
}
