//! One shard for as long as this process owns it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use pipeline_core::{Key, Shutdown};
use tokio::sync::watch;

use super::replicas::WATCHER;
use super::{Config, OwnedShard};
use crate::lane::Lane;
use crate::shard::{Answers, RecoveredWork, Shard, Shared};
use pipeline_bus::{Bus, Durable};
use pipeline_ledger::{Claimed, LedgerError};
use pipeline_observe::health::ClaimRefusal;
use pipeline_ownership::{Fence, Refusal};

/// Between tries to claim a shard's part of the ledger.
const AGAIN: Duration = Duration::from_millis(500);

/// What a shard's term needs.
#[derive(Clone)]
pub(super) struct ShardRunner {
    pub(super) config: Config,
    pub(super) shared: Arc<Shared>,
    pub(super) bus: Arc<dyn Bus>,
    /// The pipeline's name and the route's, on the bus.
    pub(super) names: (Arc<str>, Arc<str>),
    /// Where the bus asks for answers.
    pub(super) answers: Option<Answers>,
    /// Among how many shards what a process may hold is shared out.
    pub(super) lanes: u32,
    /// How long sending one report may take.
    pub(super) post_timeout: Duration,
    /// Counts shards that were claimed.
    pub(super) claims: watch::Sender<u64>,
    /// Whether this process is to watch.
    pub(super) watches: watch::Sender<bool>,
}

/// How a term ends: `stop` lets what is in flight finish, and `cut` no longer than until its time-out.
#[derive(Debug, Clone, Default)]
pub(super) struct Ends {
    pub(super) stop: Shutdown,
    pub(super) cut: Shutdown,
}

impl ShardRunner {
    /// Works on a shard that is this process's for good, until it is told to stop. Without leases the newest process that
    /// claims a shard's part of a ledger in a bucket has it.
    pub(super) async fn for_good(self, shard: OwnedShard, stop: Shutdown) {
        let unfinished = if self.shared.ledger.is_in_bucket() {
            self.claim_until(shard.number, None, &stop).await.ok().flatten()
        } else if self.bus.is_lossless() && self.shared.source.as_survey().is_some() {
            // The watch of this process lists all of it.
            Some(Vec::new())
        } else {
            Some(self.shared.ledger.unfinished(|key| self.config.sharding.place(key) == shard.number))
        };
        if let Some(unfinished) = unfinished {
            Box::pin(self.work(shard, unfinished, &stop)).await;
        }
    }

    /// Works on a shard that was claimed under a lease.
    async fn under_lease(&self, fence: Fence, number: u32, unfinished: Vec<Key>, ends: &Ends) {
        self.shared.metrics.owns(number, true);
        let cut = (ends.cut.clone(), self.post_timeout);
        let shard = OwnedShard::new(number, Some(fence), cut, &self.shared.running);
        Box::pin(self.work(shard, unfinished, &ends.stop)).await;
        self.shared.running.remove(number);
        self.shared.metrics.owns(number, false);
        if ends.cut.is_cancelled() {
            self.shared.ledger.forget(number);
        } else if let Err(error) = self.shared.ledger.release(number).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(
                shard = number,
                error,
                "what was acknowledged last of a shard is not in the ledger"
            );
        }
    }

    /// Watches for all until `stop`: from when the shard is claimed, since who may not claim it is no watcher.
    async fn watch(&self, epoch: u64, stop: &Shutdown) {
        let tell = |watches| {
            self.shared.health.watches(watches, std::time::Instant::now());
            self.watches.send_replace(watches);
        };
        self.bus.publishes_in(epoch);
        tell(true);
        stop.cancelled().await;
        tell(false);
    }

    /// Claims the shard's part of the ledger; nothing when it was told to stop meanwhile. Health is told how it goes.
    async fn claim_until(
        &self,
        shard: u32,
        epoch: Option<u64>,
        stop: &Shutdown,
    ) -> Result<Option<Vec<Key>>, Refusal> {
        let health = &self.shared.health;
        health.claims(shard, std::time::Instant::now());
        let claimed = tokio::select! {
            () = stop.cancelled() => {
                health.claims_no_more(shard);
                return Ok(None);
            }
            claimed = self.claim(shard, epoch) => claimed,
        };
        match claimed {
            Ok(unfinished) => {
                health.claimed(shard);
                Ok(Some(unfinished))
            }
            Err(LedgerError::Fenced { found, .. }) => {
                health.claims_no_more(shard);
                self.shared.metrics.bus().fenced();
                tracing::warn!(shard, epoch, found, "another process owns this shard by now, or did");
                Err(Refusal::Epoch(found))
            }
            Err(error) => {
                let why = match &error {
                    LedgerError::Sharding { .. } => ClaimRefusal::Sharding,
                    _ => ClaimRefusal::Version,
                };
                health.refused(shard, why);
                let error: &dyn std::error::Error = &error;
                tracing::error!(
                    shard,
                    error,
                    "cannot claim a shard's part of the ledger: it is left to another replica"
                );
                Err(Refusal::Foreign)
            }
        }
    }

    async fn work(&self, shard: OwnedShard, unfinished: Vec<Key>, stop: &Shutdown) {
        let OwnedShard { number, mut ports, deliver } = shard;
        ports.answers.clone_from(&self.answers);
        let left = self.left(number, unfinished);
        let lane = Lane::new(self.config.lane(u64::from(self.lanes)));
        let history = self.config.history / self.lanes.max(1) as usize;
        let shard = Shard::new(number, self.shared.clone(), lane, ports, self.config.journal_every, history);
        let (source, group) = (self.names.0.to_string(), self.names.1.to_string());
        let durable = Durable { group, source, shard: Some(number) };
        let feeding = self.bus.subscribe(durable, deliver, stop.clone());
        self.claims.send_modify(|claims| *claims += 1);
        let running = async {
            shard.run(left, stop.clone()).await;
            // It ended, asked or not: nothing takes what would be fed.
            stop.cancel();
        };
        tokio::join!(running, feeding);
    }

    /// Claims the shard's part of the ledger, trying until the server answers or it is refused. Gives what an earlier owner
    /// did not finish.
    async fn claim(&self, shard: u32, epoch: Option<u64>) -> Result<Vec<Key>, LedgerError> {
        let ledger = &self.shared.ledger;
        loop {
            let claimed = match epoch {
                Some(epoch) => ledger.claim(shard, epoch).await,
                None => ledger.claim_for_good(shard).await,
            };
            match claimed {
                Ok(Claimed { new, unfinished, .. }) => {
                    if new {
                        tracing::info!(
                            shard,
                            "the ledger knows nothing of this shard: everything is reported"
                        );
                    }
                    return Ok(unfinished);
                }
                Err(
                    error @ (LedgerError::Fenced { .. }
                    | LedgerError::Sharding { .. }
                    | LedgerError::Claim { .. }),
                ) => return Err(error),
                Err(error) => {
                    not_yet(shard, &error);
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// What an earlier owner, or process, left.
    fn left(&self, shard: u32, unfinished: Vec<Key>) -> RecoveredWork {
        let ledger = &self.shared.ledger;
        let ours = |key: &Key| self.config.sharding.place(key) == shard;
        let watched = |key: &Key| ours(key) && self.shared.watches(key);
        let parked: Vec<_> = ledger.parked().into_iter().filter(|(key, _)| ours(key)).collect();
        let refused: HashSet<&Key> = parked.iter().map(|(key, _)| key).collect();
        let again = unfinished.into_iter().filter(|key| watched(key) && !refused.contains(key));
        let unfinished = again.filter_map(|key| ledger.get(&key).map(|record| (key, record.uid))).collect();
        let journaled = ledger.journaled().into_iter().filter(|(key, _)| ours(key));
        let (pending, unwatched): (Vec<_>, Vec<_>) = journaled.partition(|(key, _)| self.shared.watches(key));
        if !unwatched.is_empty() {
            tracing::warn!(
                shard,
                objects = unwatched.len(),
                "what waits to be reported of objects that are not watched any more stays in the ledger"
            );
        }
        RecoveredWork { parked, pending, goes_on: self.bus.is_lossless(), unfinished }
    }
}

/// Works on a shard under a lease until it is told to stop, for all routes. Returns when nothing of it is under way, or why
/// nothing of it could be begun.
pub(super) async fn leased(
    runners: &[ShardRunner],
    number: u32,
    fence: Fence,
    ends: Ends,
) -> Result<(), Refusal> {
    let epoch = fence.epoch();
    let mut work = Vec::new();
    for runner in runners {
        match runner.claim_until(number, Some(epoch), &ends.stop).await {
            Ok(Some(unfinished)) => {
                work.push(runner.under_lease(fence.clone(), number, unfinished, &ends));
            }
            other => {
                runners.iter().for_each(|runner| runner.shared.ledger.forget(number));
                return other.map(drop);
            }
        }
    }
    let watching = async {
        if let Some(first) = runners.first().filter(|_| number == WATCHER) {
            first.watch(epoch, &ends.stop).await;
        }
    };
    // The shard's end is the watch's as well.
    tokio::join!(join_all(work), watching);
    Ok(())
}

fn not_yet(shard: u32, error: &(dyn std::error::Error + 'static)) {
    tracing::debug!(shard, error, "cannot claim a shard's part of the ledger yet");
}
