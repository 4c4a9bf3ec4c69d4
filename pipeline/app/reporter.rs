//! The role `reporter`: what happens to Argo CD applications, reported; and all that is the same where other objects are.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::future::join_all;
use pipeline_bus::jetstream::JetStream;
use pipeline_bus::{Bus, Memory};
use pipeline_core::{
    Enrich, Key, Labels, Meter, ObjectIndex, Requests, Service as _, ServiceContext, Shutdown, Sink, Source,
    StageError,
};
use pipeline_engine::limit::KindLimits;
use pipeline_engine::run::{self, Engine, EngineError, Match, Pipeline, Route};
use pipeline_http::admin::Answering;
use pipeline_http::admin::wire::Counted;
use pipeline_http::serve::{DEFAULT_ROUTE, ServeConfig, Served, Server, WorkingProcess};
use pipeline_ledger::{Ledger, LedgerError};
use pipeline_observe::health::{Health, HealthLimits, Link};
use pipeline_observe::metrics::{Metrics, MetricsConfig};
use pipeline_redact::Redactor;
use prometheus::Registry;
use stages_argocd::settings::SettingsWatch;
use stages_argocd::stage::ArgoCdEnrichment;
use stages_git::GitSeries;
use stages_resources::ResourceEnrichment;
use stages_revision::over_bus::AnswerOverBus;
use tokio::task::JoinSet;

use super::dry_run::{DryRun, Writing};
use super::judged::Judged;
use super::routes::{self, Further};
use super::{Following, VERSION, admin, applications, build, change_revision, join, resources, traces};
use crate::config::{ChangesFrom, Config, Places, SourcesFrom, Target};

/// The pipeline of the role `reporter`, and its one route: what they are called on the bus.
pub(crate) const PIPELINE: &str = "applications";
pub(crate) const ROUTE: &str = "reporter";
/// The pipeline of the role `change-revision`, which has the same route.
pub(crate) const CHANGES: &str = "changes";

/// An attempt may take the time of all calls for its event, and then that of its reports, before its lane counts
/// as stuck.
const SLACK: Duration = Duration::from_secs(180);
/// Argo CD's settings are asked for every two seconds until they are known.
const SETTINGS_KNOWN_WITHIN: Duration = Duration::from_secs(60);
/// The last group of acknowledgements is written in this time, or given up: it would be sent again.
const LEDGER_CLOSED_WITHIN: Duration = Duration::from_secs(10);
/// A process that is to end waits so long for a bus that does not answer.
const BUS_AWAY: Duration = Duration::from_secs(5);
/// How often it asks the bus meanwhile.
const BUS_ASKED_EVERY: Duration = Duration::from_millis(200);
/// Once it has waited in vain it gives up within this time, so that all takes less than ten seconds.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(1);
/// How often health looks whether Argo CD's settings are known.
const LOOK: Duration = Duration::from_secs(1);

/// How the settings share applications out.
pub(crate) fn sharding(config: &Config) -> pipeline_ownership::sharding::Sharding {
    build::engine(config).sharding
}

/// A role that watches and reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportingRole {
    /// Argo CD applications and their resources.
    Applications,
    /// Objects of other kinds, as they are.
    Resources,
    /// Which commits changed Argo CD applications.
    Changes,
}

/// What a role has of its own.
struct RoleSettings<'c> {
    /// As the command line names it.
    name: &'static str,
    pipeline: &'static str,
    counts: Counted,
    labels: Labels,
    /// The time of all calls for one event.
    attempt_time: Duration,
    /// Argo CD's settings are asked for, and known in this time; later than that, health tells.
    settings_known_within: Option<Duration>,
    kind_limits: KindLimits,
    /// Who acknowledges what is remembered as acknowledged.
    target: Target<'c>,
    has_further_routes: bool,
    takes: Match,
    /// How often the sink is told, in short, what was acknowledged.
    digest: Option<Duration>,
}

impl ReportingRole {
    fn settings(self, config: &Config) -> anyhow::Result<RoleSettings<'_>> {
        let kind = config.reporter.sink.kind;
        Ok(match self {
            Self::Applications => RoleSettings {
                name: "reporter",
                pipeline: PIPELINE,
                counts: Counted::Application,
                labels: stages_argocd::labels::LABELS,
                attempt_time: *config.argocd.event_timeout,
                settings_known_within: Some(SETTINGS_KNOWN_WITHIN),
                kind_limits: &[],
                target: config.target(),
                has_further_routes: false,
                takes: Match::default(),
                digest: config.reporter.digest(kind),
            },
            Self::Resources => RoleSettings {
                name: "resource-reporter",
                pipeline: "resources",
                counts: Counted::Object,
                labels: stages_resources::labels::LABELS,
                attempt_time: *config.argocd.event_timeout,
                settings_known_within: None,
                kind_limits: resources::limits(config),
                target: config.target(),
                has_further_routes: true,
                takes: routes::takes(&config.resources.matching)?,
                digest: routes::digest(config, kind),
            },
            Self::Changes => RoleSettings {
                name: "change-revision",
                pipeline: CHANGES,
                counts: Counted::Application,
                labels: stages_revision::labels::LABELS,
                // The revision of now and the one before are fetched.
                attempt_time: *config.change_revision.repositories.timeout * 2,
                settings_known_within: None,
                kind_limits: &[],
                target: config.target_of_changes().unwrap_or_else(|| config.target()),
                has_further_routes: false,
                takes: Match::default(),
                digest: None,
            },
        })
    }
}

/// Where events of a pipeline come from, and what makes reports of them.
pub(super) struct Built {
    pub(super) source: Arc<dyn Source>,
    pub(super) enrich: Arc<dyn Enrich>,
    /// In place of the sink of the settings.
    pub(super) sink: Option<Arc<dyn Sink>>,
    /// What makes reports of other kinds, for further routes.
    pub(super) resources: Option<ResourceEnrichment>,
    /// What is there.
    pub(super) keys: Arc<dyn Fn() -> Vec<Key> + Send + Sync>,
    /// What runs beside it where Argo CD is asked.
    pub(super) argocd: Option<OfArgoCd>,
    /// Answers others over the bus.
    pub(super) answers: Option<AnswerOverBus>,
    /// Follows what others are asked with: a token or a password in a Secret, credentials of repositories.
    pub(super) following: Following,
}

/// What runs beside a pipeline that asks Argo CD.
pub(super) struct OfArgoCd {
    enrich: ArgoCdEnrichment,
    settings: SettingsWatch,
}

/// The applications' source and enrichment; `bus` is there to ask others over it.
async fn applications(
    config: &Config,
    places: &Places,
    redactor: Redactor,
    (meter, registry): (Arc<dyn Meter>, &Registry),
    bus: Option<JetStream>,
    stop: &Shutdown,
) -> anyhow::Result<Built> {
    let seen = ObjectIndex::default();
    let source = applications::watch(config, redactor.clone(), seen.clone(), meter.clone()).await?;
    let (mut enrichment, following) = build::enrichment(config, stop).await?;
    let asks = bus.clone().map(|bus| Arc::new(bus) as Arc<dyn Requests>);
    let has_clones = config.reporter.sources.asks(SourcesFrom::Here).is_some()
        || config.reporter.change_revisions.from == ChangesFrom::Here;
    let series = if has_clones { GitSeries::new(registry) } else { GitSeries::default() };
    let (sources, of_sources) = super::sources::of(config, series.clone(), asks, stop)
        .await
        .context("ask what Git says (settings under `reporter.sources`)")?;
    enrichment.sources = sources;
    let (changes, of_changes) = super::changes::of(config, places, redactor.clone(), (series, bus), stop)
        .await
        .context("ask which commits changed applications (settings under `reporter.changeRevisions`)")?;
    enrichment.changes = changes;
    let (enrich, settings) = enrichment
        .build(seen.clone(), redactor, meter)
        .await
        .context("reach Argo CD (settings under `argocd`)")?;
    Ok(Built {
        source: Arc::new(source),
        enrich: Arc::new(enrich.clone()),
        sink: None,
        resources: None,
        keys: Arc::new(move || seen.keys()),
        argocd: Some(OfArgoCd { enrich, settings }),
        answers: None,
        following: Box::pin(async move {
            tokio::join!(following, of_sources, of_changes);
        }),
    })
}

/// A reporter that has not begun.
pub(super) struct Reporter {
    engine: Engine,
    services: JoinSet<Result<(), StageError>>,
    /// Of each route.
    ledgers: Vec<Ledger>,
    traces: Option<traces::Traces>,
    /// The bus, where there is one.
    bus: Option<JetStream>,
    grace: Duration,
    /// What a dry run writes.
    writing: Option<Writing>,
}

impl Reporter {
    pub(super) async fn build(
        config: &Config,
        role: ReportingRole,
        dry_run: bool,
        stop: &Shutdown,
    ) -> anyhow::Result<Self> {
        let (dry, writing) = if dry_run { Some(DryRun::start(stop.clone())?).unzip() } else { (None, None) };
        let own = role.settings(config)?;
        let engine_config = run::Config { kind_limits: own.kind_limits, ..build::engine(config) };
        let (metrics, health, mut further) = telemetry(config, &own, &engine_config);
        let meter: Arc<dyn Meter> = Arc::new(Judged::new(metrics.clone(), health.clone()));
        let mut services = JoinSet::new();
        let works = Arc::new(OnceLock::new());
        let served = Served {
            health: health.clone(),
            metrics: metrics.clone(),
            sharding: engine_config.sharding,
            works: works.clone(),
            routes: further.iter().map(Further::served).collect(),
        };
        if config.bus.is_some() {
            health.bus(Link::Joining, Instant::now());
        }
        // Before anything is waited for: what keeps a process from working is asked of it.
        for server in listen(config, served).await? {
            services.spawn(Box::new(server).serve(ServiceContext::alone(stop.clone())));
        }

        let places = build::places(config).await?;
        let connected = match &config.bus {
            Some(bus) => Some(join::connected(bus, stop).await?),
            None => None,
        };
        let server =
            build::watch(config).server().await.context("find the cluster (settings under `kubernetes`)")?;
        let jetstream = connected.as_ref().map(join::Connected::jetstream);
        let acknowledged_by = build::acknowledged_by(&own.target, &server);
        let (ledger, redactor) =
            ledger_and_redactor(config, &places, connected.as_ref(), acknowledged_by).await?;
        let counted = (meter.clone(), &metrics.registry());
        let Built { source, enrich, sink, resources, keys, argocd, answers, following } = match role {
            ReportingRole::Applications => {
                applications(config, &places, redactor, counted, jetstream.clone(), stop).await?
            }
            ReportingRole::Resources => {
                resources::build(config, redactor, meter.clone(), dry.clone()).await?
            }
            ReportingRole::Changes => {
                change_revision::build(config, &places, redactor, counted, jetstream.as_ref(), stop).await?
            }
        };
        let named = (!further.is_empty()).then_some(DEFAULT_ROUTE);
        let sink = match (sink, &dry) {
            (Some(own), _) => own,
            (None, Some(dry)) => dry.sink(named, stop)?,
            (None, None) => build::sink(config.target(), meter, stop).await?,
        };

        let (bus, leases): (Arc<dyn Bus>, _) = match connected {
            Some(connected) => connected.join(stop)?,
            None => (Arc::new(Memory::default()), None),
        };
        let (tap, traces) = traces::start(config, &metrics).await?.unzip();
        let others: anyhow::Result<Vec<Match>> = further.iter().map(Further::takes).collect();
        let others = Some(others?);
        let route = Route {
            name: ROUTE.to_owned(),
            takes: own.takes,
            enrich: None,
            sink,
            ledger: ledger.clone(),
            metrics,
            health: health.clone(),
            tap,
            reports: config.bus.as_ref().is_some_and(|bus| bus.reports),
            concurrency: build::concurrency(&config.target()),
            unreported: dry.as_ref().map(|dry| dry.unreported(named, others)),
            digest: own.digest,
        };
        let mut all = vec![route];
        if let Some(resources) = &resources {
            for route in &mut further {
                let share = (resources, resources::routes(config));
                all.push(route.build(config, &server, share, (dry.as_ref(), stop)).await?);
            }
        }
        let pipeline = Pipeline { name: own.pipeline.to_owned(), source, enrich, routes: all };
        let mut engine = Engine::new(engine_config, bus, leases).pipeline(pipeline);
        let stopping = stop.clone();
        services.spawn(async move {
            following.await;
            // Where there is nothing to follow.
            stopping.cancelled().await;
            Ok(())
        });
        if let Some(answers) = answers {
            engine = engine.service(answers);
        }
        if let Some(OfArgoCd { enrich, settings }) = argocd {
            engine = engine.service(settings);
            services.spawn(tell_of_settings(enrich, health.clone(), stop.clone()));
        }
        let handle = engine.handle(own.pipeline, ROUTE).context("find the reporter in its engine")?;
        let further: anyhow::Result<Vec<_>> =
            further.into_iter().map(|route| route.works(&engine, own.pipeline)).collect();
        let (answering, mut ledgers): (Vec<_>, Vec<_>) = further?.into_iter().unzip();
        ledgers.push(ledger.clone());
        let answering = Answering {
            routes: answering,
            handle: handle.clone(),
            ledger: ledger.clone(),
            health,
            sharding: engine_config.sharding,
            keys: keys.clone(),
            namespace: config.kubernetes.namespace.to_string(),
            role: own.name,
            counts: own.counts,
        };
        for server in admin::listen(config, &places, answering).await? {
            services.spawn(Box::new(server).serve(ServiceContext::alone(stop.clone())));
        }
        let engine_status = Arc::new(move || handle.status());
        // Nobody else sets it.
        let _ = works.set(WorkingProcess { ledger: ledger.clone(), keys, engine: engine_status });
        tracing::info!(source = own.pipeline, shards = engine_config.sharding.shards().get(), "reporting");
        Ok(Self { engine, services, ledgers, traces, bus: jetstream, grace: *config.shutdown.grace, writing })
    }

    pub(super) async fn run(self, stop: Shutdown) -> anyhow::Result<()> {
        let Self { engine, mut services, ledgers, traces, bus, grace, writing } = self;
        let close = || async {
            let closed = join_all(ledgers.iter().map(Ledger::close)).await;
            closed.into_iter().collect::<Result<(), _>>()
        };
        let asked = stop.clone();
        let asked = tokio::spawn(async move {
            asked.cancelled().await;
            tokio::time::Instant::now()
        });
        let mut engine = std::pin::pin!(engine.run(stop.clone()));
        let work = async {
            let ran = tokio::select! {
                ran = engine.as_mut() => ran.context("run the engine"),
                // Nothing that is served ends by itself: without it the reporter would be blind, or mute.
                Some(ended) = services.join_next() => {
                    let asked = stop.is_cancelled();
                    stop.cancel();
                    let ran = engine.await.context("run the engine");
                    if asked { ran } else { ran.and(Err(ended_early(ended))) }
                }
            };
            stop.cancel();
            while services.join_next().await.is_some() {}
            let last_traces = async {
                if let (Some(traces), Ok(asked)) = (traces, asked.await) {
                    traces.finish(asked + grace).await;
                }
            };
            let closed = tokio::time::timeout(LEDGER_CLOSED_WITHIN, close());
            let (closed, ()) = tokio::join!(closed, last_traces);
            let closed =
                closed.context("close the ledger: the disk does not answer")?.context("close the ledger");
            ran.and(closed)
        };
        let ended = tokio::select! {
            ended = work => ended,
            () = away(bus.as_ref(), &stop) => {
                tracing::warn!("the bus does not answer: what waits for it is reported after the next start");
                // Where the ledger is a file, it is written.
                let _ = tokio::time::timeout(GIVEN_UP_WITHIN, close()).await;
                return Ok(());
            }
        };
        if let Some(writing) = writing {
            tokio::task::spawn_blocking(move || writing.end()).await.context("write the end")?;
        }
        match (ended, bus) {
            (Err(error), Some(bus)) if is_unwritten(&error) && !bus.answers(GIVEN_UP_WITHIN).await => {
                let error: &dyn std::error::Error = error.as_ref();
                tracing::warn!(error, "the bus does not answer: what it did not take is reported again");
                Ok(())
            }
            (ended, _) => ended,
        }
    }
}

/// Whether what was acknowledged last could not be written down, and nothing else went wrong.
fn is_unwritten(error: &anyhow::Error) -> bool {
    error.downcast_ref::<LedgerError>().is_some()
        || matches!(error.downcast_ref(), Some(EngineError::Ledger(_)))
}

/// Returns when the process was told to stop and the bus has not answered for [`BUS_AWAY`] since: without it nothing of what
/// is under way can be written down, so that nothing is won by waiting for it.
async fn away(bus: Option<&JetStream>, stop: &Shutdown) {
    let Some(bus) = bus else { return std::future::pending().await };
    stop.cancelled().await;
    let mut answered = Instant::now();
    while answered.elapsed() < BUS_AWAY {
        if bus.answers(BUS_AWAY.saturating_sub(answered.elapsed())).await {
            answered = Instant::now();
        }
        tokio::time::sleep(BUS_ASKED_EVERY).await;
    }
}

/// Metrics and health of the first route, and the further routes with theirs.
fn telemetry<'c>(
    config: &'c Config,
    own: &RoleSettings<'_>,
    engine: &run::Config,
) -> (Metrics, Health, Vec<Further<'c>>) {
    // Shards that come and go are nobody's at first.
    let leased = config.bus.as_ref().is_some_and(|bus| bus.leases.is_some());
    let owned = if leased { Vec::new() } else { engine.owned.shards(engine.sharding) };
    let metrics = Metrics::new(&MetricsConfig {
        compat: config.metrics.compat,
        shards: engine.sharding.shards().get(),
        stages: vec![stages_kube::labels::LABELS, own.labels, stages_report::labels::LABELS],
        ..MetricsConfig::new(owned.iter().copied(), VERSION)
    });
    let limits = HealthLimits { lane_stuck: own.attempt_time + SLACK, settings: own.settings_known_within };
    let further = match own.has_further_routes {
        true => Further::all(config, &owned, &limits, own.labels),
        false => Vec::new(),
    };
    (metrics, Health::new(limits, owned, Instant::now()), further)
}

/// The ledger, and what takes secrets out by the redaction key: on the bus, where replicas share them there, or in this process's
/// own places.
async fn ledger_and_redactor(
    config: &Config,
    places: &Places,
    connected: Option<&join::Connected<'_>>,
    acknowledged_by: String,
) -> anyhow::Result<(Ledger, Redactor)> {
    let (mut ledger, mut shared_key) = (None, None);
    if let Some(connected) = connected {
        ledger = connected.ledger(config, &acknowledged_by).await?;
        shared_key = connected.redaction_key(places).await?;
    }
    let redactor = build::redactor(places, shared_key).await?;
    let ledger = match ledger {
        Some(ledger) => ledger,
        None => build::ledger(acknowledged_by, places.ledger.clone()).await?,
    };
    Ok((ledger, redactor))
}

/// Listens where the settings say so.
async fn listen(config: &Config, served: Served) -> anyhow::Result<Vec<Server>> {
    let addresses = [
        (*config.serve.address, "serve.address", false),
        (*config.serve.metrics_address, "serve.metricsAddress", true),
    ];
    let mut servers = Vec::new();
    for (address, setting, metrics_only) in addresses {
        if let Some(address) = address {
            // The flag says of both where they are.
            let flag = Some("--listen");
            let config = ServeConfig { metrics_only, flag, ..ServeConfig::new(address.to_string(), setting) };
            servers.push(config.build(served.clone()).await?);
        }
    }
    Ok(servers)
}

fn ended_early(ended: Result<Result<(), StageError>, tokio::task::JoinError>) -> anyhow::Error {
    match ended {
        Ok(Err(error)) => anyhow::Error::from(error).context("a service ended"),
        Ok(Ok(())) => anyhow::anyhow!("a service ended without being asked"),
        // What it said may quote what it worked on.
        Err(_) => anyhow::anyhow!("a service panicked"),
    }
}

/// Tells health when Argo CD's settings are known.
async fn tell_of_settings(
    enrich: ArgoCdEnrichment,
    health: Health,
    stop: Shutdown,
) -> Result<(), StageError> {
    let known = async {
        while !enrich.health().settings_known {
            tokio::time::sleep(LOOK).await;
        }
        health.settings_known();
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = known => stop.cancelled().await,
    }
    Ok(())
}
