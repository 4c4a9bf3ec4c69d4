//! The engine: one source, one enrichment, one sink, and the shards between them.
//!
//! takes: the stages, a ledger, where to count - gives: reports, until it is told to stop
//! calls: [`Source::run`], supervised; everything else from the shards - fails: when a shard dies of a bug, or
//! the ledger cannot be written at the end; the cluster still holds all state, and a restart finds what differs

mod bus;
mod config;
mod handle;
mod listing;
mod on_stream;
mod replicas;
mod shard_runner;
mod stream;
mod table;
mod watching;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Enrich, Key, LaneCounts, Shutdown, Sink, Source};
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;

pub use bus::{Bus, Joined, Leases};
pub use config::Config;
pub use handle::{Handle, Status};

use crate::divergence;
use crate::lane::Lane;
use crate::shard::{Acknowledged, Breaker, Delivered, Ports, RecoveredWork, Shard, Shared};
pub use crate::shard::{Explained, Moment};
use crate::verify;
use handle::Inner;
use on_stream::Shares;
use pipeline_ledger::{Ledger, LedgerError, Origin};
use pipeline_observe::health::Health;
use pipeline_observe::metrics::Metrics;
use pipeline_observe::spans::Tap;
use pipeline_ownership::Fence;
use stream::results;
use table::{ShardHandle, Table};

/// Events between a source and a shard that takes them in at once.
const INBOX: usize = 64;
/// Traces kept for a listener that lags; older ones are lost to it.
const TRACES: usize = 1024;
/// Requests of people that a shard has not taken yet.
const COMMANDS: usize = 64;
/// A source is told to stop together with the shards; when those have ended it gets this much longer.
const SOURCE_END: Duration = Duration::from_secs(1);
/// How often the ledger's figures are taken.
const FIGURES: Duration = Duration::from_secs(1);

/// What an engine is made of.
pub struct Parts {
    /// Where events come from.
    pub source: Arc<dyn Source>,
    /// What makes reports of them.
    pub enrich: Arc<dyn Enrich>,
    /// Where reports go.
    pub sink: Arc<dyn Sink>,
    /// What was acknowledged.
    pub ledger: Ledger,
    /// Where to count.
    pub metrics: Metrics,
    /// Where to tell how it goes.
    pub health: Health,
    /// What connects the source with the shards.
    pub bus: Bus,
}

/// Why an engine ended without being asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A shard's task ended: a bug. What it held is found again after a restart.
    #[error("a shard ended without being asked")]
    Shard,
    /// Another process has claimed what this one was told to own for good.
    #[error(
        "another process has claimed this one's part of the ledger: give each process shards of its own, or let them \
         share the shards by leases"
    )]
    Fenced,
    /// What drives the leases ended: a bug. Other processes take the shards over.
    #[error("the leases ended without being asked")]
    Leases,
    /// What was acknowledged last could not be written.
    #[error("cannot write the ledger while stopping")]
    Ledger(#[source] LedgerError),
}

/// An engine that has not begun.
pub struct Engine {
    config: Config,
    shared: Arc<Shared>,
    table: Arc<Table>,
    work: Work,
    handle: Handle,
    desk: verify::Desk,
}

/// What an engine works on.
enum Work {
    /// Shards that the watch of this process feeds.
    Memory { shards: Vec<Fixed> },
    /// Shards that a bus feeds: those of the settings, or none yet.
    Stream { joined: Joined, shards: Vec<Fixed>, results: Option<mpsc::Receiver<Acknowledged>> },
}

impl Engine {
    /// Puts an engine together.
    #[must_use]
    pub fn new(config: Config, parts: Parts) -> Self {
        Self::traced(config, parts, None)
    }

    /// Puts an engine together that tells `tap`, if there is one, how long everything takes.
    #[must_use]
    pub fn traced(config: Config, parts: Parts, tap: Option<Tap>) -> Self {
        let Parts { source, enrich, sink, ledger, metrics, health, bus } = parts;
        let breaker = Breaker::new(config.circuit, sink.name());
        ledger.sent_as(sink.name());
        let (traces, _) = broadcast::channel(TRACES);
        let started = Instant::now();
        let table = Arc::new(Table::new(config.sharding));
        let mut acknowledged = None;
        let work = match bus {
            Bus::Memory => Work::Memory { shards: fixed(&config, &table) },
            Bus::JetStream(joined) => {
                let results = joined.reports.then(|| {
                    let (results, taken) = mpsc::channel(results::WAITING);
                    acknowledged = Some(results);
                    taken
                });
                let shards = if joined.leases.is_none() { fixed(&config, &table) } else { Vec::new() };
                Work::Stream { joined, shards, results }
            }
        };
        let (verify, desk) = verify::connection();
        let shared = Arc::new(Shared {
            source,
            enrich,
            sink,
            ledger,
            metrics,
            health,
            breaker,
            traces,
            tap,
            started,
            reports_per_key: usize::try_from(config.reports_per_key.get()).unwrap_or(usize::MAX),
            places: places(config.reports),
            grace: config.grace,
            results: acknowledged,
        });
        let watching = shared.clone();
        let handle = Handle {
            inner: Arc::new(Inner {
                started,
                table: table.clone(),
                ledger: shared.ledger.clone(),
                circuit: shared.breaker.watch(),
                traces: shared.traces.clone(),
                verify,
                watches: Box::new(move |key| watching.watches(key)),
            }),
        };
        Self { config, shared, table, work, handle, desk }
    }

    /// To look at the engine, and to ask things of it, while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until `stop`: then the source stops, nothing new begins, what is in flight may finish within
    /// the grace period, and the ledger is written.
    ///
    /// # Errors
    /// [`EngineError`]: the process should end.
    pub async fn run(self, stop: Shutdown) -> Result<(), EngineError> {
        let Self { config, shared, table, work, handle, desk } = self;
        // Whatever ends it, all of it ends.
        let aside = stop.child_token();
        say_origin(&shared.ledger);
        let figures = spawn(figures(shared.clone(), aside.clone()));
        let credentials = spawn(credentials(shared.clone(), aside.clone()));
        let divergence = config.digest.map(|every| {
            spawn(divergence::watch(shared.clone(), config, handle.clone(), every, aside.clone()))
        });
        let verify = spawn(verify::serve(shared.clone(), handle.clone(), desk, aside.clone()));
        let result = match work {
            Work::Memory { shards } => on_memory(config, &shared, (shards, table), &stop).await,
            Work::Stream { joined, shards, results } => {
                let shares = Shares { config, shared: shared.clone(), table, handle };
                shares.run(joined, shards, results, &stop).await
            }
        };
        aside.cancel();
        // They only wait for the same token.
        let _ = (figures.await, credentials.await, verify.await);
        if let Some(divergence) = divergence {
            let _ = divergence.await;
        }
        let written = shared.ledger.flush().await.map_err(EngineError::Ledger);
        result.and(written)
    }
}

/// Places for so many reports on their way.
fn places(reports: Option<NonZeroU32>) -> Semaphore {
    let places = reports.and_then(|reports| usize::try_from(reports.get()).ok());
    Semaphore::new(places.unwrap_or(Semaphore::MAX_PERMITS))
}

/// A shard that is this process's for good.
struct Fixed {
    number: u32,
    ports: Ports,
    inbox: mpsc::Sender<pipeline_core::Event>,
    deliver: mpsc::Sender<Delivered>,
}

/// The shards that the settings name.
fn fixed(config: &Config, table: &Table) -> Vec<Fixed> {
    let shards = config.owned.shards(config.sharding).into_iter();
    shards.map(|number| Fixed::new(number, None, (Shutdown::new(), config.grace), table)).collect()
}

impl Fixed {
    /// A shard that can be asked from now on.
    fn new(number: u32, fence: Option<Fence>, cut: (Shutdown, Duration), table: &Table) -> Self {
        let (inbox_in, inbox) = mpsc::channel(INBOX);
        let (deliver, deliveries) = mpsc::channel(INBOX);
        let (commands_in, commands) = mpsc::channel(COMMANDS);
        let (counts, counts_out) = watch::channel(LaneCounts::default());
        table.add(ShardHandle { number, counts: counts_out, commands: commands_in });
        let ports = Ports { inbox, deliveries, commands, counts, answers: None, fence, cut };
        Self { number, ports, inbox: inbox_in, deliver }
    }
}

async fn on_memory(
    config: Config,
    shared: &Arc<Shared>,
    (shards, table): (Vec<Fixed>, Arc<Table>),
    stop: &Shutdown,
) -> Result<(), EngineError> {
    let source_stop = stop.child_token();
    let shard_stop = stop.child_token();
    let bounds = config.lane(shards.len() as u64);
    let history = config.history / shards.len().max(1);
    let left = left(&config, shared, shards.len());
    let mut tasks = JoinSet::new();
    let mut inboxes = Vec::new();
    for (Fixed { number, ports, inbox, .. }, left) in shards.into_iter().zip(left) {
        inboxes.push(inbox);
        let lane = Lane::new(bounds);
        let shard = Shard::new(number, shared.clone(), lane, ports, config.journal_every, history);
        tasks.spawn(shard.run(left, shard_stop.clone()));
    }
    let place = move |key: &Key| config.owned.lane(config.sharding, key);
    let source = watching::watch(
        config,
        shared.clone(),
        inboxes.into(),
        place,
        Some(table),
        false,
        source_stop.clone(),
    );
    let source = spawn(source);
    let mut result = Ok(());
    while let Some(ended) = tasks.join_next().await {
        if ended.is_err() || !stop.is_cancelled() {
            result = Err(EngineError::Shard);
            // The others finish what they have begun.
            source_stop.cancel();
            shard_stop.cancel();
        }
    }
    source_stop.cancel();
    if tokio::time::timeout(SOURCE_END, source).await.is_err() {
        tracing::warn!("the source did not stop in time");
    }
    result
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Runs a task that ends with whoever waits for it.
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(task))
}

/// Passes on what changes by itself: the ledger's figures and the circuit.
async fn figures(shared: Arc<Shared>, stop: Shutdown) {
    let mut circuit = shared.breaker.watch();
    let mut tick = interval(FIGURES);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {
                let status = shared.ledger.status();
                shared.metrics.ledger(&status);
                shared.health.ledger(&status);
            }
            Ok(()) = circuit.changed() => {
                let shown = *circuit.borrow_and_update();
                shared.metrics.circuit(shown);
                shared.health.circuit(shown, std::time::Instant::now());
            }
        }
    }
}

/// Tries an open circuit at once when the sink's token has changed.
async fn credentials(shared: Arc<Shared>, stop: Shutdown) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = shared.sink.credentials_changed() => {
                tracing::info!(sink = shared.sink.name(), "the sink's credentials have changed");
                shared.breaker.hasten(shared.now());
            }
        }
    }
}

/// What an earlier process left to each of `shards` shards of this one. What is not watched any more stays where it is:
/// to read it again would report it, or its end, although nobody watches it.
fn left(config: &Config, shared: &Shared, shards: usize) -> Vec<RecoveredWork> {
    let ledger = &shared.ledger;
    let mut all: Vec<RecoveredWork> = (0..shards).map(|_| RecoveredWork::default()).collect();
    let mut unwatched = 0;
    let place = |key: &Key| config.owned.lane(config.sharding, key);
    for (key, parked) in ledger.parked() {
        if let Some(left) = place(&key).and_then(|index| all.get_mut(index)) {
            left.parked.push((key, parked));
        }
    }
    for (key, pending) in ledger.journaled() {
        match place(&key).and_then(|index| all.get_mut(index)) {
            Some(left) if shared.watches(&key) => left.pending.push((key, pending)),
            Some(_) => unwatched += 1,
            None => {}
        }
    }
    if unwatched > 0 {
        tracing::warn!(
            applications = unwatched,
            "what waits to be reported of applications that are not watched any more stays in the ledger"
        );
    }
    all
}

/// A ledger that was lost makes everything unreported, which is said once. The resend needs no pace of its own: each
/// shard works on [`Config::concurrency`] applications at a time and sends [`Config::reports_per_key`] reports of each,
/// so that the receiver's own speed paces it; one that asks for time (429, 503, `Retry-After`) or is overwhelmed opens
/// the circuit, and what waits is read again on its turn.
fn say_origin(ledger: &Ledger) {
    match ledger.origin() {
        Origin::SetAside(_) => tracing::warn!("the ledger was lost: everything is reported again"),
        Origin::New => tracing::info!("the ledger is new: everything is reported"),
        Origin::Existing | Origin::Memory => {}
    }
}
