//! Bounds and times of an engine.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::circuit;
use crate::lane;
use crate::limit::{KindLimits, RateLimit};
use pipeline_core::Backoff;
use pipeline_ownership::sharding::{Owned, Sharding};

/// Bounds and times of an engine. What a process may hold is shared out evenly among the shards of its
/// routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Which shard owns an object.
    pub sharding: Sharding,
    /// Which shards this process owns.
    pub owned: Owned,
    /// Events queued or waiting, each shard.
    pub queue_events: usize,
    /// Of these, events of one object.
    pub queue_events_per_key: usize,
    /// Bytes of all events held, all shards together.
    pub queue_bytes: u64,
    /// Bytes of the facts kept for objects that are to be read again, all shards together.
    pub summary_bytes: u64,
    /// Objects in flight, each shard.
    pub concurrency: NonZeroU32,
    /// Objects being read again, all shards together (at least one each).
    pub reads: NonZeroU32,
    /// Reports of one object on their way at a time.
    pub reports_per_key: NonZeroU32,
    /// Between tries.
    pub retry: Backoff,
    /// When the sink counts as down, and how long between probes.
    pub circuit: circuit::Config,
    /// Between starts of a source that ended.
    pub restart: Backoff,
    /// What is in flight may finish within this time after `stop`.
    pub grace: Duration,
    /// Events of each object; `None` is no limit.
    pub rate_limit: Option<RateLimit>,
    /// Events of each object of some kinds, in place of it.
    pub kind_limits: KindLimits,
    /// Between two tries to fetch what is missing of an object; all of them together make one call a second in vain.
    pub refetch: Backoff,
    /// Objects remembered as refused for good, each shard.
    pub parked: usize,
    /// What cannot be read again and is not reported within this time is written to the ledger.
    pub journal_every: Duration,
    /// Objects of which the last steps are remembered, all shards together.
    pub history: usize,
}

impl Config {
    /// The bounds of one of `lanes` lanes.
    #[must_use]
    pub fn lane(&self, lanes: u64) -> lane::Config {
        let lanes = lanes.max(1);
        lane::Config {
            queue_events: self.queue_events,
            queue_events_per_key: self.queue_events_per_key,
            queue_bytes: self.queue_bytes / lanes,
            summary_bytes: self.summary_bytes / lanes,
            concurrency: u64::from(self.concurrency.get()),
            reads: (u64::from(self.reads.get()) / lanes).max(1),
            backoff: self.retry,
            parked: self.parked,
            rate_limit: self.rate_limit,
            kind_limits: self.kind_limits,
            refetch: self.refetch,
            // A lane's share: all lanes of all processes together make a call a second in vain.
            refetch_every: Duration::from_secs(1) * self.sharding.shards().get(),
        }
    }
}
