//! The engine: one source, one enrichment, one sink, and the shards between them.
//!
//! takes: the stages, a ledger, where to count - gives: reports, until it is told to stop
//! calls: [`Source::run`], supervised; everything else from the shards - fails: when a shard dies of a bug, or
//! the ledger cannot be written at the end; the cluster still holds all state, and a restart finds what differs

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Emitter, Enrich, Key, Note, Shutdown, Sink, Source};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::circuit;
use crate::health::Health;
use crate::lane::{self, Backoff, Lane, LaneCounts, Parked, Trace};
use crate::ledger::{Ledger, LedgerError};
use crate::limit::RateLimit;
use crate::metrics::Metrics;
use crate::shard::{Breaker, Command, Ports, Shard, Shared};
pub use crate::shard::{Explained, Moment};
use crate::sharding::{Owned, Sharding};
use crate::supervise::{RESTART, supervise};

/// Events between a source and a shard that takes them in at once.
const INBOX: usize = 64;
/// Traces kept for a listener that lags; older ones are lost to it.
const TRACES: usize = 4096;
/// Requests of people that a shard has not taken yet.
const COMMANDS: usize = 64;
/// A source is told to stop together with the shards; when those have ended it gets this much longer.
const SOURCE_END: Duration = Duration::from_secs(1);
/// How often the ledger's figures are taken.
const FIGURES: Duration = Duration::from_secs(1);

/// Bounds and times of an engine. What a process may hold is shared out evenly among its shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Which shard owns an application.
    pub sharding: Sharding,
    /// Which shards this process owns.
    pub owned: Owned,
    /// Events queued or waiting, each shard.
    pub queue_events: usize,
    /// Of these, events of one application.
    pub queue_events_per_key: usize,
    /// Bytes of all events held, all shards together.
    pub queue_bytes: u64,
    /// Bytes of the operation ends kept for applications that are to be read again, all shards together.
    pub summary_bytes: u64,
    /// Applications in flight, each shard.
    pub concurrency: NonZeroU32,
    /// Applications being read again, all shards together (at least one each).
    pub reads: NonZeroU32,
    /// Reports of one application on their way at a time.
    pub reports_per_key: NonZeroU32,
    /// Between tries.
    pub retry: Backoff,
    /// When the sink counts as down, and how long between probes.
    pub circuit: circuit::Config,
    /// Between starts of a source that ended.
    pub restart: Backoff,
    /// What is in flight may finish within this time after `stop`.
    pub grace: Duration,
    /// Events of each application; `None` is no limit.
    pub rate_limit: Option<RateLimit>,
    /// Applications remembered as refused for good, each shard.
    pub parked: usize,
}

impl Default for Config {
    fn default() -> Self {
        const fn count(number: u32) -> NonZeroU32 {
            match NonZeroU32::new(number) {
                Some(count) => count,
                None => NonZeroU32::MIN,
            }
        }
        Self {
            sharding: Sharding::Jump { shards: count(5) },
            owned: Owned::All,
            queue_events: 1000,
            queue_events_per_key: 100,
            queue_bytes: 32 << 20,
            summary_bytes: 16 << 20,
            concurrency: count(16),
            reads: count(16),
            reports_per_key: count(8),
            retry: Backoff::default(),
            circuit: circuit::Config::default(),
            restart: RESTART,
            grace: Duration::from_secs(20),
            rate_limit: None,
            parked: 10_000,
        }
    }
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
        }
    }
}

/// What an engine is made of.
pub struct Parts<So, En, Si> {
    /// Where events come from.
    pub source: So,
    /// What makes reports of them.
    pub enrich: En,
    /// Where reports go.
    pub sink: Si,
    /// What was acknowledged.
    pub ledger: Ledger,
    /// Where to count.
    pub metrics: Metrics,
    /// Where to tell how it goes.
    pub health: Health,
}

/// Why an engine ended without being asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A shard's task ended: a bug. What it held is found again after a restart.
    #[error("a shard ended without being asked")]
    Shard,
    /// What was acknowledged last could not be written.
    #[error("cannot write the ledger while stopping")]
    Ledger(#[source] LedgerError),
}

/// An engine that has not begun.
pub struct Engine<So, En, Si> {
    config: Config,
    shared: Arc<Shared<So, En, Si>>,
    inboxes: Arc<[mpsc::Sender<pipeline_core::Event>]>,
    shards: Vec<(u32, Ports)>,
    handle: Handle,
}

impl<So: Source, En: Enrich, Si: Sink> Engine<So, En, Si> {
    /// Puts an engine together.
    #[must_use]
    pub fn new(config: Config, parts: Parts<So, En, Si>) -> Self {
        let Parts { source, enrich, sink, ledger, metrics, health } = parts;
        let breaker = Breaker::new(config.circuit, sink.name());
        let (traces, _) = broadcast::channel(TRACES);
        let started = Instant::now();
        let (mut inboxes, mut shards, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for number in config.owned.shards(config.sharding) {
            let (inbox_in, inbox) = mpsc::channel(INBOX);
            let (commands_in, commands) = mpsc::channel(COMMANDS);
            let (counts, counts_out) = watch::channel(LaneCounts::default());
            inboxes.push(inbox_in);
            shards.push((number, Ports { inbox, commands, counts }));
            told.push(Told { number, counts: counts_out, commands: commands_in });
        }
        let handle = Handle {
            inner: Arc::new(Inner {
                config,
                started,
                shards: told,
                circuit: breaker.watch(),
                traces: traces.clone(),
            }),
        };
        let shared = Shared {
            source,
            enrich,
            sink,
            ledger,
            metrics,
            health,
            breaker,
            traces,
            started,
            reports_per_key: usize::try_from(config.reports_per_key.get()).unwrap_or(usize::MAX),
            grace: config.grace,
        };
        Self { config, shared: Arc::new(shared), inboxes: inboxes.into(), shards, handle }
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
        let Self { config, shared, inboxes, shards, handle: _ } = self;
        let source_stop = stop.child_token();
        let shard_stop = stop.child_token();
        let bounds = config.lane(shards.len() as u64);
        let mut tasks = JoinSet::new();
        for (number, ports) in shards {
            let shard = Shard::new(number, shared.clone(), Lane::new(bounds), ports);
            tasks.spawn(shard.run(shard_stop.clone()));
        }
        let source = tokio::spawn(watch_on(config, shared.clone(), inboxes, source_stop.clone()));
        let figures = tokio::spawn(figures(shared.clone(), source_stop.clone()));

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
        let watching = source.abort_handle();
        if tokio::time::timeout(SOURCE_END, source).await.is_err() {
            tracing::warn!("the source did not stop in time");
            watching.abort();
        }
        // It only waits for the same token.
        let _ = figures.await;
        let written = shared.ledger.flush().await.map_err(EngineError::Ledger);
        result.and(written)
    }
}

impl<So, En, Si> fmt::Debug for Engine<So, En, Si> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Keeps the source running.
async fn watch_on<So: Source, En: Enrich, Si: Sink>(
    config: Config,
    shared: Arc<Shared<So, En, Si>>,
    inboxes: Arc<[mpsc::Sender<pipeline_core::Event>]>,
    stop: Shutdown,
) {
    let place = move |key: &Key| config.owned.lane(config.sharding, key);
    let note = |shared: &Shared<So, En, Si>, note: &Note| {
        shared.metrics.note(note);
        shared.health.note(note, std::time::Instant::now());
    };
    let broken = |reason| note(&shared, &Note::Broken(reason));
    let start = || {
        let known = shared.ledger.known().into_iter().filter(|(key, _)| place(key).is_some()).collect();
        let told = shared.clone();
        let emitter = Emitter::new(inboxes.clone(), place, move |what| note(&told, &what), known);
        shared.source.run(emitter, stop.clone())
    };
    supervise(So::NAME, config.restart, &stop, broken, start).await;
}

/// Passes on what changes by itself: the ledger's figures and the circuit.
async fn figures<So: Source, En: Enrich, Si: Sink>(shared: Arc<Shared<So, En, Si>>, stop: Shutdown) {
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

/// Looks at a running engine and asks things of it; cloning shares.
#[derive(Clone)]
pub struct Handle {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    started: Instant,
    shards: Vec<Told>,
    circuit: watch::Receiver<circuit::State>,
    traces: broadcast::Sender<(u32, Trace)>,
}

struct Told {
    number: u32,
    counts: watch::Receiver<LaneCounts>,
    commands: mpsc::Sender<Command>,
}

/// An engine at one moment. The counts of a shard are up to a tenth of a second old, and each shard's are from
/// one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Time since the engine was made.
    pub uptime: Duration,
    /// The shards of this process, in order.
    pub shards: Vec<(u32, LaneCounts)>,
    /// The sink's circuit.
    pub circuit: circuit::State,
}

impl Status {
    /// All shards together.
    #[must_use]
    pub fn total(&self) -> LaneCounts {
        self.shards.iter().fold(LaneCounts::default(), |sum, (_, counts)| sum.plus(counts))
    }
}

impl Handle {
    /// How it stands.
    #[must_use]
    pub fn status(&self) -> Status {
        let shards = self.inner.shards.iter().map(|shard| (shard.number, *shard.counts.borrow()));
        Status {
            uptime: self.inner.started.elapsed(),
            shards: shards.collect(),
            circuit: *self.inner.circuit.borrow(),
        }
    }

    /// What happens from now on, with the shard in which it happens. A listener that lags loses the oldest.
    #[must_use]
    pub fn traces(&self) -> broadcast::Receiver<(u32, Trace)> {
        self.inner.traces.subscribe()
    }

    /// What is known of an application; `None` when this process does not own it, or is stopping.
    pub async fn explain(&self, key: &Key) -> Option<Explained> {
        let (answer, answered) = oneshot::channel();
        self.shard(key)?.commands.send(Command::Explain(key.clone(), answer)).await.ok()?;
        answered.await.ok()
    }

    /// Reads an application again and reports what differs, or, if `whole`, all of it. `false` when this process
    /// does not own it, or is stopping.
    pub async fn replay(&self, key: &Key, whole: bool) -> bool {
        match self.shard(key) {
            Some(shard) => shard.commands.send(Command::Replay(key.clone(), whole)).await.is_ok(),
            None => false,
        }
    }

    /// Gives up a parked application. `false` when it was not parked here.
    pub async fn discard(&self, key: &Key) -> bool {
        let Some(shard) = self.shard(key) else { return false };
        let (answer, answered) = oneshot::channel();
        let sent = shard.commands.send(Command::Discard(key.clone(), answer)).await;
        sent.is_ok() && answered.await.unwrap_or(false)
    }

    /// Everything that was refused for good.
    pub async fn parked(&self) -> Vec<(Key, Parked)> {
        let mut parked = Vec::new();
        for shard in &self.inner.shards {
            let (answer, answered) = oneshot::channel();
            if shard.commands.send(Command::Parked(answer)).await.is_ok() {
                parked.extend(answered.await.unwrap_or_default());
            }
        }
        parked
    }

    fn shard(&self, key: &Key) -> Option<&Told> {
        let Config { owned, sharding, .. } = self.inner.config;
        self.inner.shards.get(owned.lane(sharding, key)?)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.status()).finish()
    }
}
