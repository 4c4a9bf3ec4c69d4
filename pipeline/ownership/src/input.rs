//! What the state machine takes in, and what it wants done.

use std::time::Duration;

use crate::{LeaseWrite, Replica, Shown};

/// Numbers the writes of one [`super::Ownership`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request(u64);

impl Request {
    pub(super) fn new(number: u64) -> Self {
        Self(number)
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// What the store showed. [`Shown::Unwatched`] is to be told before anything is written over a new connection to a
    /// store that grants what it should refuse after it lost everything; see [`Store::write`](crate::Store::write).
    Shown(Shown),
    /// The store's answer to a write.
    Answered {
        /// Which write.
        request: Request,
        /// Of which shard.
        shard: u32,
        /// The answer.
        answer: LeaseWrite,
    },
    /// A shard has stopped, as [`Action::Stop`] wanted or by itself: nothing of it is under way any more. A report that
    /// was cut off is under way until its time-out, because the receiver may still take it.
    Drained {
        /// The shard.
        shard: u32,
        /// The epoch it was started with.
        epoch: u64,
    },
    /// As [`Input::Drained`], of a shard whose part of the ledger could not be claimed.
    Refused {
        /// The shard.
        shard: u32,
        /// The epoch it was started with.
        epoch: u64,
        /// Why.
        why: Refusal,
    },
    /// Time has passed: see [`super::Config::tick`].
    Tick,
    /// The process is to end.
    Stop,
}

/// Why a shard's part of the ledger could not be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It was claimed in this higher epoch: the next one is higher than that.
    Epoch(u64),
    /// It is another version's or configuration's: another replica is to have the shard, if there is one that can.
    Foreign,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Write the replica's presence ([`Presence`](crate::Presence)), whatever it was. It may expire by itself in the store, after
    /// [`super::Config::ttl`] or later.
    Announce,
    /// Delete the replica's presence.
    Leave,
    /// Write the record of a shard, and tell the answer ([`Input::Answered`]). It is written only if the store holds
    /// `expected`; anything else would break what leases promise.
    Write(Write),
    /// Begin to work on a shard.
    Start {
        /// The shard.
        shard: u32,
        /// The epoch, which each report of it carries.
        epoch: u64,
    },
    /// Stop working on a shard, and tell when nothing of it is under way ([`Input::Drained`]), in any case.
    Stop {
        /// The shard.
        shard: u32,
        /// The epoch it was started with.
        epoch: u64,
        /// How.
        how: StopHow,
    },
}

/// How a shard stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopHow {
    /// Nothing new is begun; what is under way may end.
    Drain,
    /// Everything is cut off: the lease is lost, or is left to lapse.
    Now,
}

/// Why a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To own a shard.
    Acquire,
    /// To go on owning it.
    Renew,
    /// To give it back.
    Release,
}

/// A compare-and-set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Names it in the answer.
    pub request: Request,
    /// Why.
    pub purpose: Purpose,
    /// The shard.
    pub shard: u32,
    /// [`Lease::epoch`](crate::Lease::epoch).
    pub epoch: u64,
    /// [`Lease::owner`](crate::Lease::owner).
    pub owner: Option<Replica>,
    /// The revision that the store must hold; `None`: no record.
    pub expected: Option<u64>,
}

/// How long a replica owns a shard, as far as it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTerm {
    /// The epoch.
    pub epoch: u64,
    /// When the lease ends, on the monotonic clock of [`super::Ownership::step`].
    pub until: Duration,
}

impl LeaseTerm {
    /// Whether something that takes `post_timeout` at most may be begun: it ends before the lease does.
    #[must_use]
    pub fn may_send(&self, now: Duration, post_timeout: Duration) -> bool {
        now.saturating_add(post_timeout) < self.until
    }
}
