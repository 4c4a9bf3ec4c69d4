//! Drives the state machine of one replica over a store of leases.
//!
//! takes: a [`Store`], what has drained - gives: orders to begin and to stop, each begun shard with a [`Fence`]
//! calls: the store - fails: never; while the store does not answer, leases lapse, and their shards are stopped
//!
//! The loop waits for nothing but for something to happen. Writes run as tasks of their own, at most 32 at a time, each for
//! as long as an answer is awaited; so does the watch, whose changes are taken only after everything else that is there, so
//! that no flood of them holds up a renewal.

mod fence;
mod run;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use pipeline_core::Shutdown;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use self::run::Driver;
use super::{Config, Refusal, Replica, StopHow, Store};

pub use self::fence::Fence;

/// What is to be done about a shard. Orders about one shard come in order, and it is begun again only after it was said
/// that it has drained.
#[derive(Debug, Clone)]
pub enum Order {
    /// Begin to work on a shard.
    Start {
        /// The shard.
        shard: u32,
        /// Its epoch, and until when may be sent.
        fence: Fence,
    },
    /// Stop working on a shard, and tell when nothing of it is under way ([`Driven::drained`]), in any case. A shard that is
    /// told to drain may be told to stop at once after that.
    Stop {
        /// The shard.
        shard: u32,
        /// The epoch it was begun with.
        epoch: u64,
        /// How.
        how: StopHow,
    },
}

/// What a replica knows of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// The shards that it owns, those that drain among them, in order.
    pub owned: Vec<u32>,
    /// The replicas that are there, with this one.
    pub members: BTreeSet<Replica>,
    /// Who owned shard 0 last, and in which epoch, whoever it is; the lease may have ended since.
    pub zero: Option<(Replica, u64)>,
    /// Whether somebody owns shard 0 now, this replica or another one; known while `listed`.
    pub watched: bool,
    /// Whether everything in the store has been seen, and is watched since.
    pub listed: bool,
}

/// What drives, and how to speak with it.
#[derive(Debug)]
pub struct Driven {
    /// What is to be done; to be taken at once, always. Closed when the driver has ended. Dropped, it ends the driver, whose
    /// leases then lapse.
    pub orders: mpsc::Receiver<Order>,
    /// Takes the shard and epoch of what has stopped: nothing of it is under way any more. A report that was cut off is
    /// under way until its time-out, because the receiver may still take it.
    pub drained: mpsc::Sender<(u32, u64)>,
    /// Takes instead the shard and epoch of what was not even begun, because its part of the ledger could not be claimed.
    pub refused: mpsc::Sender<(u32, u64, Refusal)>,
    /// What the replica knows.
    pub status: watch::Receiver<Standing>,
    /// Ends after `stop`, when everything was handed over, or cannot be. Aborted, it says nothing to anybody, and its leases
    /// lapse: fences then close by themselves.
    pub task: JoinHandle<()>,
}

/// Claims, renews and hands over shards as `me`, until `stop`; then all shards drain, and are given back.
///
/// Reports must not take longer than `post_timeout`; [`Config::check`] says whether leases can be held so.
/// [`Config::first_epoch`] is raised to the seconds since 1970. To be called within a tokio runtime.
pub fn drive<S: Store>(
    config: Config,
    me: Replica,
    store: S,
    post_timeout: Duration,
    stop: Shutdown,
) -> Driven {
    let (to_orders, orders) = mpsc::channel(config.shards.get() as usize);
    let (drained, from_drained) = mpsc::channel(config.shards.get() as usize);
    let (refused, from_refused) = mpsc::channel(config.shards.get() as usize);
    let (to_status, status) = watch::channel(Standing::default());
    let driver = Driver::new(config, me, store, post_timeout, to_status);
    let task = tokio::spawn(driver.run(to_orders, from_drained, from_refused, stop));
    Driven { orders, drained, refused, status, task }
}
