//! Looks at a running engine, and asks things of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{CircuitState, Key, LaneCounts, Parked, Trace, Uid};
use tokio::sync::{broadcast, oneshot, watch};
use tokio::time::Instant;

use super::running_shards::{RunningShards, ShardHandle};
use crate::shard::{Command, Explained};
use crate::verify::{self, Progress, Verified, VerifyError, VerifyOptions};
use pipeline_observe::top::Ranking;

/// Looks at a running engine and asks things of it; cloning shares.
#[derive(Clone)]
pub struct Handle {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) started: Instant,
    pub(super) running: Arc<RunningShards>,
    pub(super) circuit: watch::Receiver<CircuitState>,
    pub(super) traces: broadcast::Sender<(u32, Trace)>,
    pub(super) verify: verify::Caller,
    pub(super) watches: Box<dyn Fn(&Key) -> bool + Send + Sync>,
}

/// An engine at one moment. The counts of a shard are up to a tenth of a second old, and each shard's are from
/// one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Time since the engine was made.
    pub uptime: Duration,
    /// The shards that this process works on, in order.
    pub shards: Vec<(u32, LaneCounts)>,
    /// The sink's circuit.
    pub circuit: CircuitState,
}

impl Status {
    /// All shards together.
    #[must_use]
    pub fn total(&self) -> LaneCounts {
        self.shards.iter().map(|(_, counts)| *counts).sum()
    }
}

impl Handle {
    /// How it stands.
    #[must_use]
    pub fn status(&self) -> Status {
        let shards = self.inner.running.all();
        Status {
            uptime: self.inner.started.elapsed(),
            shards: shards.iter().map(|shard| (shard.number, *shard.counts.borrow())).collect(),
            circuit: *self.inner.circuit.borrow(),
        }
    }

    /// How many shards there are, of which this process may work on some.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.inner.running.shards()
    }

    /// What happens from now on, with the shard in which it happens. A listener that lags loses the oldest.
    #[must_use]
    pub fn traces(&self) -> broadcast::Receiver<(u32, Trace)> {
        self.inner.traces.subscribe()
    }

    /// What is known of an object; `None` when this process does not own it, or is stopping.
    pub async fn explain(&self, key: &Key) -> Option<Explained> {
        let (answer, answered) = oneshot::channel();
        self.shard(key)?.commands.send(Command::Explain(key.clone(), answer)).await.ok()?;
        answered.await.ok()
    }

    /// Reads an object again and reports what differs, or, if `whole`, all of it. `false` when this process
    /// does not own it, does not watch it, or is stopping.
    pub async fn replay(&self, key: &Key, whole: bool) -> bool {
        match self.shard(key).filter(|_| self.watches(key)) {
            Some(shard) => shard.commands.send(Command::Replay(key.clone(), whole)).await.is_ok(),
            None => false,
        }
    }

    /// The same of an object that the receiver holds in this life: where it is not there, and nothing is remembered of it, that life is
    /// reported to be over.
    pub(crate) async fn replay_held(&self, key: &Key, uid: &Uid) -> bool {
        match self.shard(key).filter(|_| self.watches(key)) {
            Some(shard) => shard.commands.send(Command::ReplayHeld(key.clone(), uid.clone())).await.is_ok(),
            None => false,
        }
    }

    /// Reads again what is held and of which nothing was acknowledged. No list tells the end of such an object to a process that has
    /// come to watch since: nothing remembers that it was there but the shard that holds it.
    pub async fn read_held(&self) {
        for shard in self.inner.running.all() {
            // One that stops leaves it to its next owner.
            let _ = shard.commands.send(Command::ReadHeld).await;
        }
    }

    /// Gives up a parked object. `false` when it was not parked here.
    pub async fn discard(&self, key: &Key) -> bool {
        let Some(shard) = self.shard(key) else { return false };
        let (answer, answered) = oneshot::channel();
        let sent = shard.commands.send(Command::Discard(key.clone(), answer)).await;
        sent.is_ok() && answered.await.unwrap_or(false)
    }

    /// Everything that was refused for good.
    pub async fn parked(&self) -> Vec<(Key, Parked)> {
        let mut parked = Vec::new();
        for shard in self.inner.running.all() {
            let (answer, answered) = oneshot::channel();
            if shard.commands.send(Command::Parked(answer)).await.is_ok() {
                parked.extend(answered.await.unwrap_or_default());
            }
        }
        parked
    }

    /// What kept each shard busy in the last minutes: the first `limit` of each list. A shard that is stopping is
    /// left out.
    pub async fn top(&self, limit: usize) -> Vec<(u32, Ranking)> {
        let mut asked = Vec::new();
        for shard in self.inner.running.all() {
            let (answer, answered) = oneshot::channel();
            if shard.commands.send(Command::Top(limit, answer)).await.is_ok() {
                asked.push((shard.number, answered));
            }
        }
        let mut rankings = Vec::new();
        for (number, answered) in asked {
            if let Ok(ranking) = answered.await {
                rankings.push((number, ranking));
            }
        }
        rankings
    }

    /// Compares the cluster, the ledger and the receiver, and reports again what differs.
    ///
    /// # Errors
    /// [`VerifyError`], also when a verification is running already.
    pub async fn verify(&self, options: VerifyOptions) -> Result<Verified, VerifyError> {
        self.inner.verify.verify(options).await
    }

    /// How far the verification is that is running; `None` when none is.
    #[must_use]
    pub fn verifying(&self) -> Option<Progress> {
        self.inner.verify.progress()
    }

    /// Whether an object is watched by the settings of now.
    #[must_use]
    pub fn watches(&self, key: &Key) -> bool {
        (self.inner.watches)(key)
    }

    /// Whether this process owns an object.
    #[must_use]
    pub fn owns(&self, key: &Key) -> bool {
        self.shard(key).is_some()
    }

    fn shard(&self, key: &Key) -> Option<Arc<ShardHandle>> {
        self.inner.running.of(key)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.status()).finish()
    }
}
