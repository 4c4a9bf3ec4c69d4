//! An engine that shares its work with others: shards come and go with their leases, and who owns the first watches.
//!
//! takes: orders of the leases - gives: terms of shards, and the word that they are over - calls: the engine's parts
//! fails: when the leases cannot be kept any more, which ends the process

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use pipeline_core::Shutdown;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::shard_runner::{Ends, ShardRunner, leased};
use super::{EngineError, Handle, Leases};
use crate::verify::{VerifyError, VerifyOptions};
use pipeline_ownership::{Driven, Fence, Order, Refusal, Standing, StopHow};

/// The owner of this shard watches for all.
pub(super) const WATCHER: u32 = 0;
/// So long after another began to watch, everything is compared with the cluster: it has listed by then.
const SETTLE: Duration = Duration::from_secs(5);
/// So long after another began to watch, everything is compared with the cluster for a second time: shards that were handed over
/// at that time have drained, and what a former watcher published late came.
const SETTLE_AGAIN: Duration = Duration::from_secs(45);

/// Works on the shards that the leases give until `stop`, and then until they are given back.
pub(super) async fn run(
    runners: Arc<[ShardRunner]>,
    handles: Vec<Handle>,
    leases: Leases,
    stop: Shutdown,
) -> Result<(), EngineError> {
    let Driven { mut orders, drained, refused, status, task } = leases.driven;
    let mut fenced = fences(&runners);
    let comparing = runners.iter().zip(handles).map(|(runner, handle)| {
        let (claims, made) = (runner.claims.subscribe(), runner.bus.made());
        super::spawn(compare(status.clone(), claims, made, handle, stop.clone()))
    });
    let compared: Vec<_> = comparing.collect();
    let told = super::spawn(tell(status, runners.clone()));
    let mut terms = Terms { runners, drained, refused, running: HashMap::new(), tasks: JoinSet::new() };
    loop {
        tokio::select! {
            Some((runner, shards)) = fenced.next() => terms.cut(&runner, &shards),
            order = orders.recv() => match order {
                Some(Order::Start { shard, fence }) => terms.start(shard, fence),
                Some(Order::Stop { shard, epoch, how }) => terms.stop(shard, epoch, how).await,
                None => break,
            },
            Some(ended) = terms.tasks.join_next() => match ended {
                Ok((shard, epoch)) => terms.forget(shard, epoch),
                Err(_) => return Err(EngineError::Shard),
            },
        }
    }
    terms.end().await;
    drop((compared, told));
    let ended = task.await;
    if stop.is_cancelled() && ended.is_ok() { Ok(()) } else { Err(EngineError::Leases) }
}

/// The terms of shards that are under way.
struct Terms {
    runners: Arc<[ShardRunner]>,
    drained: mpsc::Sender<(u32, u64)>,
    refused: mpsc::Sender<(u32, u64, Refusal)>,
    /// The epoch of each shard, and what ends its term.
    running: HashMap<u32, (u64, Ends)>,
    tasks: JoinSet<(u32, u64)>,
}

impl Terms {
    /// Begins the term of a shard.
    fn start(&mut self, shard: u32, fence: Fence) {
        let (epoch, ends) = (fence.epoch(), Ends::default());
        tracing::debug!(shard, epoch, "a shard is this process's");
        self.running.insert(shard, (epoch, ends.clone()));
        let (runners, drained, refused) = (self.runners.clone(), self.drained.clone(), self.refused.clone());
        self.tasks.spawn(async move {
            // An error in saying so means that the leases ended before.
            match leased(&runners, shard, fence, ends).await {
                Ok(()) => drop(drained.send((shard, epoch)).await),
                Err(why) => drop(refused.send((shard, epoch, why)).await),
            }
            (shard, epoch)
        });
    }

    /// Ends the term of a shard as it is ordered.
    async fn stop(&self, shard: u32, epoch: u64, how: StopHow) {
        match self.running.get(&shard) {
            Some((owned, ends)) if *owned == epoch => {
                tracing::debug!(shard, epoch, ?how, "a shard is given up");
                if how == StopHow::Now {
                    ends.cut.cancel();
                }
                ends.stop.cancel();
            }
            // It has ended by itself; whoever asks is told that again.
            _ => drop(self.drained.send((shard, epoch)).await),
        }
    }

    /// Cuts off the terms of shards whose part of the ledger is not this process's any more.
    fn cut(&self, runner: &ShardRunner, shards: &BTreeSet<u32>) {
        for shard in shards {
            if let Some((epoch, ends)) = self.running.get(shard).filter(|(_, ends)| !ends.cut.is_cancelled())
            {
                tracing::warn!(
                    shard,
                    epoch,
                    "the ledger of this shard is another process's by now, or was lost"
                );
                runner.shared.metrics.bus().fenced();
                ends.cut.cancel();
                ends.stop.cancel();
            }
        }
    }

    /// A term has ended; another of the same shard may have begun since.
    fn forget(&mut self, shard: u32, epoch: u64) {
        if self.running.get(&shard).is_some_and(|(owned, _)| *owned == epoch) {
            self.running.remove(&shard);
        }
    }

    /// Cuts off all that is under way, and waits for it.
    async fn end(&mut self) {
        for (_, ends) in self.running.values() {
            ends.cut.cancel();
            ends.stop.cancel();
        }
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Compares everything with the cluster whenever another process has begun to watch, so that what happened between two
/// watches is found, and what one that had been paused published late; and whenever a shard was claimed: nobody may have
/// had it when somebody began to watch, so that of what was gone by then no message tells, and where its ledger knows
/// nothing, what was listed before is on the bus no more; and whenever the bus was made anew, with which went what told of an
/// object's end. What is held, and in no ledger yet, is read for itself.
async fn compare(
    mut status: watch::Receiver<Standing>,
    mut claims: watch::Receiver<u64>,
    mut made: watch::Receiver<u64>,
    handle: Handle,
    stop: Shutdown,
) {
    let mut compared = None;
    loop {
        let zero = status.borrow_and_update().zero.clone();
        let cause = (zero, *claims.borrow_and_update(), *made.borrow_and_update());
        if cause.0.is_some() && compared.as_ref() != Some(&cause) {
            for settle in [SETTLE, SETTLE_AGAIN] {
                tokio::select! {
                    () = stop.cancelled() => return,
                    // Of what was claimed just now nothing is compared yet.
                    Ok(()) = claims.changed() => break,
                    Ok(()) = made.changed() => break,
                    () = tokio::time::sleep(settle) => {}
                }
                if status.borrow().zero != cause.0 {
                    break;
                }
                handle.read_held().await;
                match handle.verify(VerifyOptions { drift: false, ..VerifyOptions::default() }).await {
                    Ok(_) => compared = Some(cause.clone()),
                    // Somebody asked for the same, or the cluster cannot be listed now.
                    Err(VerifyError::Busy | VerifyError::Survey(_)) => {}
                    Err(VerifyError::Stopped | VerifyError::Unlisted) => return,
                }
            }
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = status.changed() => if changed.is_err() { return },
            changed = claims.changed() => if changed.is_err() { return },
            changed = made.changed() => if changed.is_err() { return },
        }
    }
}

/// Tells health whether somebody watches, and whether it is known who owns what.
async fn tell(mut status: watch::Receiver<Standing>, runners: Arc<[ShardRunner]>) {
    loop {
        let Standing { zero, watched, listed, .. } = status.borrow_and_update().clone();
        for runner in &*runners {
            if let Some((_, epoch)) = &zero {
                runner.bus.knows_epoch(*epoch);
            }
            runner.shared.health.shares(listed, watched, std::time::Instant::now());
        }
        if status.changed().await.is_err() {
            return;
        }
    }
}

/// Tells of each route which of its shards another process has claimed.
pub(super) fn fences(runners: &[ShardRunner]) -> BoxStream<'static, (ShardRunner, BTreeSet<u32>)> {
    let fences = runners.iter().cloned().map(|runner| {
        let fenced = runner.shared.ledger.fenced();
        Box::pin(futures::stream::unfold((runner, fenced), async |(runner, mut fenced)| {
            fenced.changed().await.ok()?;
            let shards = fenced.borrow_and_update().iter().copied().collect();
            Some(((runner.clone(), shards), (runner, fenced)))
        }))
    });
    futures::stream::select_all(fences).boxed()
}
