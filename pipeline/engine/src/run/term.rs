//! One shard for as long as this process owns it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Enrich, Key, Shutdown, Sink, Source, Timestamp};
use tokio::sync::watch;

use super::stream::{Stream, feed};
use super::table::Table;
use super::{Config, Fixed};
use crate::lane::Lane;
use crate::ledger::LedgerError;
use crate::ownership::Fence;
use crate::shard::{Answers, Left, Shard, Shared};

/// Between tries to claim a shard's part of the ledger.
const AGAIN: Duration = Duration::from_millis(500);
/// A shard that cannot be claimed is given back after so long.
const REFUSED: Duration = Duration::from_secs(2);

/// What a shard's term needs.
pub(super) struct Term<So, En, Si> {
    pub(super) config: Config,
    pub(super) shared: Arc<Shared<So, En, Si>>,
    pub(super) table: Arc<Table>,
    pub(super) stream: Arc<Stream>,
    pub(super) answers: Answers,
    /// Among how many shards what a process may hold is shared out.
    pub(super) lanes: u32,
    /// How long sending one report may take.
    pub(super) post_timeout: Duration,
    /// Counts shards that were claimed and of which the ledger knows nothing.
    pub(super) unknown: watch::Sender<u64>,
}

impl<So, En, Si> Clone for Term<So, En, Si> {
    fn clone(&self) -> Self {
        Self {
            config: self.config,
            shared: self.shared.clone(),
            table: self.table.clone(),
            stream: self.stream.clone(),
            answers: self.answers.clone(),
            lanes: self.lanes,
            post_timeout: self.post_timeout,
            unknown: self.unknown.clone(),
        }
    }
}

/// How a term ends: `stop` lets what is in flight finish, and `cut` no longer than until its time-out.
#[derive(Debug, Clone, Default)]
pub(super) struct Ends {
    pub(super) stop: Shutdown,
    pub(super) cut: Shutdown,
}

impl<So: Source, En: Enrich, Si: Sink> Term<So, En, Si> {
    /// Works on `shard` under a lease until it is told to stop. Returns when nothing of it is under way.
    pub(super) async fn leased(self, number: u32, fence: Fence, ends: Ends) {
        let claimed = tokio::select! {
            () = ends.stop.cancelled() => None,
            claimed = self.claim(number, fence.epoch()) => claimed,
        };
        let Some(unfinished) = claimed else {
            self.shared.ledger.forget(number);
            // It may be this process's still, and given back to it at once.
            tokio::select! {
                () = ends.stop.cancelled() => {}
                () = tokio::time::sleep(REFUSED) => {}
            }
            return;
        };
        self.shared.metrics.owns(number, true);
        let cut = (ends.cut.clone(), self.post_timeout);
        let shard = Fixed::new(number, Some(fence), cut, &self.table);
        Box::pin(self.work(shard, unfinished, &ends.stop)).await;
        self.table.remove(number);
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

    /// Works on a shard that is this process's for good, until it is told to stop. Without leases the newest process that
    /// claims a shard's part of a ledger in a bucket has it.
    pub(super) async fn for_good(self, shard: Fixed, ends: Ends) {
        let Fixed { number, .. } = shard;
        let unfinished = if self.shared.ledger.is_in_bucket() {
            let epoch = u64::try_from(Timestamp::now().as_second()).unwrap_or_default();
            tokio::select! {
                () = ends.stop.cancelled() => None,
                claimed = self.claim(number, epoch) => claimed,
            }
        } else {
            Some(self.shared.ledger.unfinished(|key| self.config.sharding.place(key) == number))
        };
        if let Some(unfinished) = unfinished {
            Box::pin(self.work(shard, unfinished, &ends.stop)).await;
        }
    }

    async fn work(&self, shard: Fixed, unfinished: Vec<Key>, stop: &Shutdown) {
        let Fixed { number, mut ports, inbox, deliver } = shard;
        ports.answers = Some(self.answers.clone());
        let left = self.left(number, unfinished);
        let lane = Lane::new(self.config.lane(u64::from(self.lanes)));
        let history = self.config.history / self.lanes.max(1) as usize;
        let shard = Shard::new(number, self.shared.clone(), lane, ports, self.config.journal_every, history);
        let feeding = feed::feed(self.stream.clone(), number, deliver, stop.clone());
        let running = async {
            shard.run(left, stop.clone()).await;
            // It ended, asked or not: nothing takes what would be fed.
            stop.cancel();
        };
        tokio::join!(running, feeding);
        // Nothing ever comes through it.
        drop(inbox);
    }

    /// Claims the shard's part of the ledger, trying until the server answers; nothing when a newer owner has. Gives what an
    /// earlier owner did not finish.
    async fn claim(&self, shard: u32, epoch: u64) -> Option<Vec<Key>> {
        loop {
            match self.shared.ledger.claim(shard, epoch).await {
                Ok(claimed) => {
                    if claimed.new {
                        tracing::info!(
                            shard,
                            "the ledger knows nothing of this shard: everything is reported"
                        );
                        self.unknown.send_modify(|claims| *claims += 1);
                    }
                    return Some(claimed.unfinished);
                }
                Err(LedgerError::Fenced { .. }) => {
                    self.stream.metrics.fenced();
                    tracing::warn!(shard, epoch, "another process owns this shard by now");
                    return None;
                }
                Err(error @ (LedgerError::Sharding { .. } | LedgerError::Claim { .. })) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(
                        shard,
                        error,
                        "cannot claim a shard's part of the ledger: it is given back"
                    );
                    return None;
                }
                Err(error) => {
                    not_yet(shard, &error);
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// What an earlier owner, or process, left.
    fn left(&self, shard: u32, unfinished: Vec<Key>) -> Left {
        let (ledger, source) = (&self.shared.ledger, &self.shared.source);
        let ours = |key: &Key| self.config.sharding.place(key) == shard;
        let watched = |key: &Key| ours(key) && source.watches(key);
        let parked: Vec<_> = ledger.parked().into_iter().filter(|(key, _)| ours(key)).collect();
        let refused: HashSet<&Key> = parked.iter().map(|(key, _)| key).collect();
        let again = unfinished.into_iter().filter(|key| watched(key) && !refused.contains(key));
        let unfinished = again.filter_map(|key| ledger.get(&key).map(|record| (key, record.uid))).collect();
        let pending = ledger.journaled().into_iter().filter(|(key, _)| watched(key)).collect();
        Left { parked, pending, unfinished }
    }
}

fn not_yet(shard: u32, error: &(dyn std::error::Error + 'static)) {
    tracing::debug!(shard, error, "cannot claim a shard's part of the ledger yet");
}
