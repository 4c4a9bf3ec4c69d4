//! An engine whose shards are fed by a stream: its parts, and the order in which they begin and end.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::Shutdown;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::bus::Joined;
use super::shard_runner::{Ends, ShardRunner};
use super::stream::{Stream, answers, publisher::Publisher, results};
use super::table::Table;
use super::{Config, EngineError, Fixed, Handle, SOURCE_END, replicas, spawn, watching};
use crate::shard::{Acknowledged, Answers, Shared};
use pipeline_observe::health::Link;

/// The last acknowledgements are given within this time, or given up.
const LAST: Duration = Duration::from_secs(5);
/// How often it is looked whether the bus is there.
const LOOK: Duration = Duration::from_millis(500);

/// An engine's part in the work on a stream.
pub(super) struct Shares {
    pub(super) config: Config,
    pub(super) shared: Arc<Shared>,
    pub(super) table: Arc<Table>,
    pub(super) handle: Handle,
}

impl Shares {
    /// Works until `stop`.
    pub(super) async fn run(
        self,
        joined: Joined,
        shards: Vec<Fixed>,
        results: Option<mpsc::Receiver<Acknowledged>>,
        stop: &Shutdown,
    ) -> Result<(), EngineError> {
        let Self { config, shared, table, handle } = self;
        let Joined { jetstream, leases, .. } = joined;
        let sharding = config.sharding;
        let every = jetstream.ack_wait() / 3;
        let stream = Stream::new(jetstream, sharding.shards(), shared.metrics.bus().clone());
        if leases.is_some() {
            shared.health.shares(false, false, std::time::Instant::now());
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = stream.ensure() => {}
        }
        let (answer, answered) = mpsc::unbounded_channel();
        let linked = spawn(link(stream.clone(), shared.clone()));
        let answering = spawn(answers::answer(stream.clone(), shared.ledger.clone(), answered));
        let ended = stop.child_token();
        let publishing =
            results.map(|results| spawn(results::publish(stream.clone(), sharding, results, ended.clone())));

        let (watches, watched) = watch::channel(false);
        let outlet = Publisher::new(shared.clone(), stream.clone(), sharding);
        let watching = watching::Published { config, shared: shared.clone(), leased: leases.is_some() };
        let watching = spawn(watching.run(outlet, stream.watch(), watched, ended.clone()));
        let term = ShardRunner {
            config,
            shared: shared.clone(),
            table,
            stream: stream.clone(),
            answers: Answers { to: answer, every },
            lanes: config.owned.shards(sharding).len().try_into().unwrap_or(u32::MAX),
            post_timeout: leases.as_ref().map_or(config.grace, |leases| leases.post_timeout),
            claims: watch::Sender::default(),
            watches,
        };
        let result = match leases {
            Some(leases) => replicas::run(term, leases, handle, stop.clone()).await,
            None => for_good(term, shards, stop).await,
        };
        ended.cancel();
        if tokio::time::timeout(SOURCE_END + SOURCE_END, watching).await.is_err() {
            tracing::warn!("the source did not stop in time");
        }
        drop((publishing, linked));
        // Its last askers are gone.
        if tokio::time::timeout(LAST, answering).await.is_err() {
            tracing::warn!(
                "the bus does not take the last acknowledgements: what they are for is delivered again"
            );
        }
        result
    }
}

/// Tells health how the bus is connected with.
async fn link(stream: Arc<Stream>, shared: Arc<Shared>) {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let link = if stream.jetstream.is_connected() { Link::Whole } else { Link::Away };
        shared.health.bus(link, std::time::Instant::now());
    }
}

/// Works on the shards that the settings name until `stop`. It watches when all of them are claimed: the first list finds
/// what is gone of those that the ledger knows by then.
async fn for_good(term: ShardRunner, shards: Vec<Fixed>, stop: &Shutdown) -> Result<(), EngineError> {
    let mut terms = JoinSet::new();
    let ends = Ends { stop: stop.child_token(), cut: Shutdown::new() };
    let (mut claims, watches) = (term.claims.subscribe(), term.watches.clone());
    let all = u64::try_from(shards.len()).unwrap_or(u64::MAX);
    let watching = spawn(async move {
        if claims.wait_for(|claims| *claims >= all).await.is_ok() {
            watches.send_replace(true);
        }
    });
    for shard in shards {
        let ends = Ends { stop: ends.stop.child_token(), cut: ends.cut.clone() };
        terms.spawn(term.clone().for_good(shard, ends));
    }
    let mut fenced = term.shared.ledger.fenced();
    drop(term);
    let mut result = Ok(());
    loop {
        tokio::select! {
            Ok(()) = fenced.changed() => {
                if !fenced.borrow_and_update().is_empty() {
                    result = Err(EngineError::Fenced);
                    ends.cut.cancel();
                    ends.stop.cancel();
                }
            }
            ended = terms.join_next() => match ended {
                None => {
                    drop(watching);
                    return result;
                }
                Some(ended) if ended.is_err() || !stop.is_cancelled() => {
                    result = result.and(Err(EngineError::Shard));
                    ends.stop.cancel();
                }
                Some(_) => {}
            },
        }
    }
}
