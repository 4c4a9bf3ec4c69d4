//! The engine: pipelines and services in one process, and what starts, feeds and ends them.
//!
//! takes: a [`Bus`], [`Pipeline`]s, services - gives: reports, until it is told to stop
//! calls: [`Source::run`](pipeline_core::Source::run), supervised; everything else from the shards - fails: when a shard dies
//! of a bug, a service ends, or the ledger cannot be written at the end; the cluster still holds all state, and a restart
//! finds what differs

mod answers;
mod background;
mod config;
mod done;
mod feed;
mod handle;
mod listing;
mod pipeline;
mod publisher;
mod replicas;
mod results;
mod route_match;
mod running_shards;
mod serving;
mod shard_runner;
mod unpublished;
mod watching;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use pipeline_core::{LaneCounts, Service, Shutdown, StageError};
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

pub use config::Config;
pub use handle::{Handle, Status};
pub use pipeline::{Pipeline, Route, Unreported};
pub use route_match::Match;

use crate::divergence;
use crate::lane::Backlog;
use crate::shard::{AckedReport, Answers, Breaker, Ports, Shared};
pub use crate::shard::{Explained, Moment};
use crate::verify;
use feed::Feed;
use handle::Inner;
use pipeline_bus::{Bus, Delivered, Durable, durables};
use pipeline_ledger::{Ledger, LedgerError, Origin};
use pipeline_ownership::{Driven, Fence};
pub(crate) use running_shards::RunningShards;
use running_shards::ShardHandle;
use serving::Serving;
use shard_runner::ShardRunner;
use watching::Watching;

/// Streams and subjects of the bus that are no pipeline's.
const RESERVED: [&str; 2] = [pipeline_bus::REPORTS, "ask"];
/// Events between a source and a shard that takes them in at once.
const INBOX: usize = 64;
/// Traces kept for a listener that lags; older ones are lost to it.
const TRACES: usize = 1024;
/// Requests of people that a shard has not taken yet.
const COMMANDS: usize = 64;
/// A source is told to stop together with the shards; when those have ended it gets this much longer.
const SOURCE_END: Duration = Duration::from_secs(1);
/// The last acknowledgements are given within this time, or given up.
const LAST: Duration = Duration::from_secs(5);

/// Shards that come and go.
#[derive(Debug)]
pub struct Leases {
    /// What is to be done, and who is told of it.
    pub driven: Driven,
    /// How long sending one report may take.
    pub post_timeout: Duration,
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
    /// A service ended: nothing that is served ends by itself.
    #[error("the service {name} ended without being asked")]
    Service {
        /// Which.
        name: &'static str,
        /// Why, if it said so.
        #[source]
        source: Option<StageError>,
    },
    /// What was acknowledged last could not be written.
    #[error("cannot write the ledger while stopping")]
    Ledger(#[source] LedgerError),
}

/// An engine that has not begun.
pub struct Engine {
    config: Config,
    bus: Arc<dyn Bus>,
    leases: Option<Leases>,
    pipelines: Vec<RunningPipeline>,
    serving: Serving,
}

/// One pipeline, and what works on it.
struct RunningPipeline {
    name: Arc<str>,
    source: Arc<dyn pipeline_core::Source>,
    routes: Vec<RunningRoute>,
}

/// One route, and what works on it.
struct RunningRoute {
    name: Arc<str>,
    shared: Arc<Shared>,
    handle: Handle,
    desk: verify::Desk,
    /// Shards that are this process's for good.
    shards: Vec<OwnedShard>,
    results: Option<mpsc::Receiver<AckedReport>>,
    /// How often the sink is told what was acknowledged.
    digest: Option<Duration>,
}

impl Engine {
    /// An engine of nothing yet, over a bus. With `leases` its shards come and go; else it has those that the settings name.
    #[must_use]
    pub fn new(config: Config, bus: Arc<dyn Bus>, leases: Option<Leases>) -> Self {
        Self { config, bus, leases, pipelines: Vec::new(), serving: Serving::default() }
    }

    /// The same with a pipeline.
    ///
    /// # Panics
    /// When its name is another's or the bus's own, or two of its routes have one name: they would share what is theirs.
    #[must_use]
    pub fn pipeline(mut self, pipeline: Pipeline) -> Self {
        let Pipeline { name, source, enrich, routes } = pipeline;
        let mut names: Vec<&str> = routes.iter().map(|route| &*route.name).collect();
        names.sort_unstable();
        assert!(
            names.windows(2).all(|pair| pair[0] != pair[1]),
            "two routes of pipeline {name} have one name"
        );
        assert!(
            !RESERVED.contains(&&*name) && self.pipelines.iter().all(|pipeline| *pipeline.name != *name),
            "the name of pipeline {name} is taken"
        );
        let started = Instant::now();
        let routes = routes.into_iter().map(|route| self.route(route, &source, &enrich, started)).collect();
        self.pipelines.push(RunningPipeline { name: name.into(), source, routes });
        self
    }

    /// What a route works with, from now on.
    fn route(
        &self,
        route: Route,
        source: &Arc<dyn pipeline_core::Source>,
        enrich: &Arc<dyn pipeline_core::Enrich>,
        started: Instant,
    ) -> RunningRoute {
        let Route {
            name,
            takes,
            enrich: own,
            sink,
            ledger,
            metrics,
            health,
            tap,
            reports,
            concurrency,
            unreported,
            digest,
        } = route;
        let breaker = Breaker::new(self.config.circuit, sink.name());
        ledger.sent_as(sink.name());
        let running = Arc::new(RunningShards::new(self.config.sharding));
        let (acknowledged, results) = reports.then(|| mpsc::channel(results::WAITING)).unzip();
        let shared = Arc::new(Shared {
            takes,
            running: running.clone(),
            source: source.clone(),
            enrich: own.unwrap_or_else(|| enrich.clone()),
            sink,
            ledger,
            metrics,
            health,
            breaker,
            traces: broadcast::channel(TRACES).0,
            tap,
            started,
            reports_per_key: usize::try_from(self.config.reports_per_key.get()).unwrap_or(usize::MAX),
            places: places(concurrency),
            unreported,
            grace: self.config.grace,
            results: acknowledged,
        });
        let (verify, desk) = verify::connection();
        let watching = shared.clone();
        let inner = Inner {
            started,
            running,
            circuit: shared.breaker.watch(),
            traces: shared.traces.clone(),
            verify,
            watches: Box::new(move |key| watching.watches(key)),
        };
        let shards =
            if self.leases.is_none() { owned_shards(&self.config, &shared.running) } else { Vec::new() };
        let handle = Handle { inner: Arc::new(inner) };
        RunningRoute { name: name.into(), shared, handle, desk, shards, results, digest }
    }

    /// The same with a service.
    #[must_use]
    pub fn service(mut self, service: impl Service) -> Self {
        self.serving.add(Box::new(service));
        self
    }

    /// To look at a route of a pipeline, and to ask things of it, while it runs.
    #[must_use]
    pub fn handle(&self, pipeline: &str, route: &str) -> Option<Handle> {
        let pipeline = self.pipelines.iter().find(|known| *known.name == *pipeline)?;
        pipeline.routes.iter().find(|known| *known.name == *route).map(|route| route.handle.clone())
    }

    /// Runs until `stop`: then sources stop, nothing new begins, what is in flight may finish within the grace period, and
    /// the ledgers are written. It is cancelled when a service ends.
    ///
    /// # Errors
    /// [`EngineError`]: the process should end.
    pub async fn run(self, stop: Shutdown) -> Result<(), EngineError> {
        let Self { config, bus, leases, mut pipelines, serving } = self;
        let metrics = pipelines
            .first()
            .and_then(|pipeline| pipeline.routes.first())
            .map(|route| route.shared.metrics.clone());
        let registry = metrics.map(|metrics| metrics.registry()).unwrap_or_default();
        let serving = spawn(serving.run(bus.clone(), registry, stop.clone(), config.grace));
        // Whatever ends it, all of it ends.
        let aside = stop.child_token();
        let mut beside = Vec::new();
        let mut ledgers = Vec::new();
        for route in pipelines.iter_mut().flat_map(|pipeline| &mut pipeline.routes) {
            let RunningRoute { shared, handle, desk, digest, .. } = route;
            say_origin(&shared.ledger);
            ledgers.push(shared.ledger.clone());
            beside.push(spawn(background::figures(shared.clone(), aside.clone())));
            beside.push(spawn(background::credentials(shared.clone(), aside.clone())));
            if let Some(every) = *digest {
                let watch = divergence::watch(shared.clone(), config, handle.clone(), every, aside.clone());
                beside.push(spawn(watch));
            }
            let desk = std::mem::replace(desk, verify::connection().1);
            beside.push(spawn(verify::serve(shared.clone(), handle.clone(), desk, aside.clone())));
        }
        let result = work(config, bus, leases, pipelines, &stop).await;
        aside.cancel();
        // They only wait for the same token.
        join_all(beside).await;
        let mut written = Ok(());
        for ledger in ledgers {
            written = written.and(ledger.flush().await.map_err(EngineError::Ledger));
        }
        if result.is_err() {
            // Whoever serves ends with it.
            stop.cancel();
        }
        let served = serving.await.unwrap_or(Ok(()));
        result.and(served).and(written)
    }
}

/// Works until `stop`, and then until nothing is under way. All of it begins, and ends, in one way, whatever the bus.
async fn work(
    config: Config,
    bus: Arc<dyn Bus>,
    leases: Option<Leases>,
    pipelines: Vec<RunningPipeline>,
    stop: &Shutdown,
) -> Result<(), EngineError> {
    let sharding = config.sharding;
    let shared: Vec<_> =
        pipelines.iter().flat_map(|pipeline| &pipeline.routes).map(|it| it.shared.clone()).collect();
    if leases.is_some() {
        shared.iter().for_each(|shared| shared.health.shares(false, false, std::time::Instant::now()));
    }
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        () = bus.ready(all_durables(&pipelines, sharding.shards().get())) => {}
    }
    let linked = (!bus.is_lossless())
        .then(|| [spawn(background::link(bus.clone(), shared)), spawn(background::look(bus.clone()))]);
    let (ended, worked_off) = (stop.child_token(), Shutdown::new());
    let (watches, watched) = watch::channel(false);
    let claims = watch::Sender::default();
    let (mut runners, mut handles, mut shards) = (Vec::new(), Vec::new(), Vec::new());
    let (mut answering, mut publishing, mut watching) = (Vec::new(), Vec::new(), Vec::new());
    let of_routes: usize = pipelines.iter().map(|pipeline| pipeline.routes.len()).sum();
    let lanes = (config.owned.shards(sharding).len() * of_routes).try_into().unwrap_or(u32::MAX);
    for RunningPipeline { name, source, routes } in pipelines {
        let feed = Feed { name: name.clone(), source, bus: bus.clone(), sharding };
        let of_routes = routes.iter().map(|route| route.shared.clone()).collect();
        let (leased, worked_off) = (leases.is_some(), worked_off.clone());
        let watch = Watching { config, feed, routes: of_routes, leased, worked_off };
        watching.push(spawn(watch.run(watched.clone(), ended.clone())));
        for RunningRoute { name: route, shared, handle, shards: own, results, .. } in routes {
            let answers = bus.ack_wait().map(|wait| {
                let (to, answered) = mpsc::unbounded_channel();
                let (bus, metrics, ledger) = (bus.clone(), shared.metrics.clone(), shared.ledger.clone());
                answering.push(spawn(answers::answer(bus, metrics, ledger, answered)));
                Answers { to, every: wait / 3 }
            });
            publishing.extend(results.map(|results| {
                let metrics = shared.metrics.bus().clone();
                spawn(results::publish(bus.clone(), metrics, sharding, results, ended.clone()))
            }));
            let runner = ShardRunner {
                config,
                shared,
                bus: bus.clone(),
                names: (name.clone(), route),
                answers,
                lanes,
                post_timeout: leases.as_ref().map_or(config.grace, |leases| leases.post_timeout),
                claims: claims.clone(),
                watches: watches.clone(),
            };
            shards.extend(own.into_iter().map(|shard| (runner.clone(), shard)));
            runners.push(runner);
            handles.push(handle);
        }
    }
    let runners: Arc<[ShardRunner]> = runners.into();
    let result = match leases {
        Some(leases) => replicas::run(runners, handles, leases, stop.clone()).await,
        None => {
            drop(handles);
            for_good(runners, shards, (claims.subscribe(), watches), stop).await
        }
    };
    ended.cancel();
    worked_off.cancel();
    if tokio::time::timeout(SOURCE_END + SOURCE_END, join_all(watching)).await.is_err() {
        tracing::warn!("the source did not stop in time");
    }
    drop((publishing, linked));
    // Its last askers are gone.
    if tokio::time::timeout(LAST, join_all(answering)).await.is_err() {
        tracing::warn!(
            "the bus does not take the last acknowledgements: what they are for is delivered again"
        );
    }
    result
}

/// Those of all routes.
fn all_durables(pipelines: &[RunningPipeline], shards: u32) -> Vec<Durable> {
    let routes = pipelines
        .iter()
        .flat_map(|pipeline| pipeline.routes.iter().map(|route| (&route.name, &pipeline.name)));
    routes.flat_map(|(group, source)| durables(group, source, shards)).collect()
}

/// Works on the shards that the settings name until `stop`. It watches when all of them are claimed, and take what is
/// published: the first list finds what is gone of those that the ledgers know by then.
async fn for_good(
    runners: Arc<[ShardRunner]>,
    shards: Vec<(ShardRunner, OwnedShard)>,
    (mut claims, watches): (watch::Receiver<u64>, watch::Sender<bool>),
    stop: &Shutdown,
) -> Result<(), EngineError> {
    let mut tasks = JoinSet::new();
    let over = stop.child_token();
    let all = u64::try_from(shards.len()).unwrap_or(u64::MAX);
    let watching = spawn(async move {
        if claims.wait_for(|claims| *claims >= all).await.is_ok() {
            watches.send_replace(true);
        }
    });
    for (runner, shard) in shards {
        tasks.spawn(runner.for_good(shard, over.child_token()));
    }
    let mut fenced = replicas::fences(&runners);
    drop(runners);
    let mut result = Ok(());
    loop {
        tokio::select! {
            Some((_, shards)) = fenced.next() => {
                if !shards.is_empty() {
                    result = Err(EngineError::Fenced);
                    over.cancel();
                }
            }
            ended = tasks.join_next() => match ended {
                None => {
                    drop(watching);
                    return result;
                }
                Some(ended) if ended.is_err() || !stop.is_cancelled() => {
                    result = result.and(Err(EngineError::Shard));
                    // The others finish what they have begun.
                    over.cancel();
                }
                Some(_) => {}
            },
        }
    }
}

/// Places for so many reports on their way.
fn places(reports: Option<NonZeroU32>) -> Semaphore {
    let places = reports.and_then(|reports| usize::try_from(reports.get()).ok());
    Semaphore::new(places.unwrap_or(Semaphore::MAX_PERMITS))
}

/// A shard that is this process's.
struct OwnedShard {
    number: u32,
    ports: Ports,
    deliver: mpsc::Sender<Delivered>,
}

/// The shards that the settings name.
fn owned_shards(config: &Config, running: &RunningShards) -> Vec<OwnedShard> {
    let shards = config.owned.shards(config.sharding).into_iter();
    shards.map(|number| OwnedShard::new(number, None, (Shutdown::new(), config.grace), running)).collect()
}

impl OwnedShard {
    /// A shard that can be asked from now on.
    fn new(number: u32, fence: Option<Fence>, cut: (Shutdown, Duration), running: &RunningShards) -> Self {
        let (deliver, deliveries) = mpsc::channel(INBOX);
        let (commands_in, commands) = mpsc::channel(COMMANDS);
        let (counts, counts_out) = watch::channel(LaneCounts::default());
        let (backlog, backlog_out) = watch::channel(Backlog::default());
        running.add(ShardHandle { number, counts: counts_out, backlog: backlog_out, commands: commands_in });
        let ports = Ports { deliveries, commands, counts, backlog, answers: None, fence, cut };
        Self { number, ports, deliver }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Runs a task that ends with whoever waits for it.
fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> AbortOnDropHandle<T> {
    AbortOnDropHandle::new(tokio::spawn(task))
}

/// A ledger that was lost makes everything unreported, which is said once. The resend needs no pace of its own: each
/// shard works on [`Config::concurrency`] objects at a time and sends [`Config::reports_per_key`] reports of each,
/// so that the receiver's own speed paces it; one that asks for time (429, 503, `Retry-After`) or is overwhelmed opens
/// the circuit, and what waits is read again on its turn.
fn say_origin(ledger: &Ledger) {
    match ledger.origin() {
        Origin::SetAside(_) => tracing::warn!("the ledger was lost: everything is reported again"),
        Origin::New => tracing::info!("the ledger is new: everything is reported"),
        Origin::Existing | Origin::Memory => {}
    }
}
