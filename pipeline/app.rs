//! The only place that knows every stage: one function per role, which builds its stages from the settings,
//! puts them into an engine, and runs that until the process is told to stop.

mod admin;
mod build;
pub(crate) mod bus;
pub(crate) mod join;
mod lead;
pub(crate) mod log;
mod rbac;
mod traces;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use pipeline_core::{Meter, Seen, Service as _, Shutdown, Source as _, StageError};
use pipeline_engine::admin::Answering;
use pipeline_engine::bus::Bus;
use pipeline_engine::health::{Health, HealthLimits};
use pipeline_engine::ledger::Ledger;
use pipeline_engine::metrics::{Metrics, MetricsConfig};
use pipeline_engine::run::{Engine, Parts};
use pipeline_engine::serve::{ServeConfig, Served};
use stages_enrich::stage::ArgoCdEnrichment;
use stages_report::Sink;
use stages_watch::ApplicationWatch;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

pub(crate) use self::rbac::run as rbac;
use crate::config::{Config, Loaded};

/// Small pieces of many sizes come and go on every thread: with the system's allocator a third of the changes a second
/// fewer were reported by two cores. How it is set up stands in `.cargo/config.toml`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// A turn may take the time of all calls for its event, and then that of its reports, before its lane counts
/// as stuck.
const SLACK: Duration = Duration::from_secs(180);
/// Argo CD's settings are asked for every two seconds until they are known; later than this, health tells.
const SETTINGS_KNOWN_WITHIN: Duration = Duration::from_secs(60);
/// The last group of acknowledgements is written in this time, or given up: it would be sent again.
const LEDGER_CLOSED_WITHIN: Duration = Duration::from_secs(10);
/// How often health looks whether Argo CD's settings are known.
const LOOK: Duration = Duration::from_secs(1);

/// Runs the role `reporter` until SIGTERM or SIGINT.
///
/// # Errors
/// When it cannot start, each with what to do next; or when it ends without having been asked to.
pub(crate) fn reporter(loaded: Loaded) -> anyhow::Result<()> {
    stages_http::install_crypto();
    log::start(&loaded.config);
    for ignored in &loaded.ignored {
        tracing::info!(variable = %ignored.name, why = %ignored.why, "this variable is known and not needed");
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start the runtime")?;
    let lead = lead::Lead::start()?;
    let result = runtime.block_on(report(loaded.config, lead.runtime()));
    drop(lead);
    // What still blocks (a slow disk) does not keep the process from ending.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

async fn report(config: Config, lead: Handle) -> anyhow::Result<()> {
    outlive_file_size_limit()?;
    let stop = Shutdown::new();
    let signals = tokio::spawn(stop_on_signal(stop.clone())?);
    // Building asks files, credential plug-ins and the API server: none of them keeps the process from ending.
    let built = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        built = Reporter::build(&config, lead, &stop) => built?,
    };
    let result = built.run(stop).await;
    signals.abort();
    tracing::info!("stopped");
    result
}

/// A reporter that has not begun.
struct Reporter {
    engine: Engine<ApplicationWatch, ArgoCdEnrichment, Sink>,
    services: JoinSet<Result<(), StageError>>,
    ledger: Ledger,
    traces: Option<traces::Traces>,
    grace: Duration,
}

impl Reporter {
    async fn build(config: &Config, lead: Handle, stop: &Shutdown) -> anyhow::Result<Self> {
        let engine_config = build::engine(config);
        // Shards that come and go are nobody's at first.
        let leased = config.bus.as_ref().is_some_and(|bus| bus.leases.is_some());
        let owned = if leased { Vec::new() } else { engine_config.owned.shards(engine_config.sharding) };
        let metrics = Metrics::new(&MetricsConfig {
            compat: config.compat_metrics,
            shards: engine_config.sharding.shards().get(),
            ..MetricsConfig::new(owned.iter().copied(), VERSION)
        });
        let meter: Arc<dyn Meter> = Arc::new(metrics.clone());
        let health = Health::new(
            HealthLimits {
                lane_stuck: config.argocd.event_timeout + SLACK,
                settings: Some(SETTINGS_KNOWN_WITHIN),
                ..HealthLimits::default()
            },
            owned,
            Instant::now(),
        );

        let places = build::places(config).await?;
        let connected = join::connected(config, stop).await?;
        let seen = Seen::default();
        let watch = build::watch(config);
        let server = watch.server().await.context("find the cluster (settings under `kubernetes`)")?;
        let (mut ledger, mut shared_key) = (None, None);
        if let Some(connected) = &connected {
            ledger = connected.ledger(config, &server).await?;
            shared_key = connected.redaction_key(&places).await?;
        }
        let redactor = build::redactor(&places, shared_key).await?;
        let ledger = match ledger {
            Some(ledger) => ledger,
            None => build::ledger(config, &server, &places).await?,
        };
        let deps =
            stages_watch::Deps { seen: seen.clone(), meter: meter.clone(), redactor: redactor.clone() };
        let source = watch
            .build(deps)
            .await
            .context("watch the applications of the cluster (settings under `kubernetes`)")?;
        let (enrich, settings) = build::enrichment(config)
            .await?
            .build(seen.clone(), redactor, meter.clone())
            .await
            .context("reach Argo CD (settings under `argocd`)")?;
        let sink = build::sink(config, meter, stop).await?;

        let bus = match connected {
            Some(connected) => connected.join(config, stop).await?,
            None => Bus::Memory,
        };
        let parts = Parts {
            source,
            enrich: enrich.clone(),
            sink,
            ledger: ledger.clone(),
            metrics: metrics.clone(),
            health: health.clone(),
            bus,
        };
        let (tap, traces) = traces::start(config, &parts.metrics).await?.unzip();
        let engine = Engine::traced(engine_config, parts, tap).led_by(lead);

        let mut services = JoinSet::new();
        services.spawn(settings.serve(stop.clone()));
        services.spawn(tell_of_settings(enrich, health.clone(), stop.clone()));
        let handle = engine.handle();
        let answering = Answering {
            handle: handle.clone(),
            ledger: ledger.clone(),
            health: health.clone(),
            sharding: engine_config.sharding,
            keys: {
                let seen = seen.clone();
                Arc::new(move || seen.keys())
            },
        };
        for server in admin::listen(config, &places, answering).await? {
            services.spawn(server.serve(stop.clone()));
        }
        let served = Served {
            health,
            metrics,
            ledger: ledger.clone(),
            sharding: engine_config.sharding,
            keys: Arc::new(move || seen.keys()),
            engine: Arc::new(move || handle.status()),
        };
        let addresses =
            [(config.serve, "serve.address", false), (config.serve_metrics, "serve.metricsAddress", true)];
        for (address, setting, metrics_only) in addresses {
            if let Some(address) = address {
                let config = ServeConfig { metrics_only, ..ServeConfig::new(address.to_string(), setting) };
                services.spawn(config.build(served.clone()).await?.serve(stop.clone()));
            }
        }
        tracing::info!(
            source = ApplicationWatch::NAME,
            shards = engine_config.sharding.shards().get(),
            "reporting"
        );
        Ok(Self { engine, services, ledger, traces, grace: config.grace })
    }

    async fn run(self, stop: Shutdown) -> anyhow::Result<()> {
        let Self { engine, mut services, ledger, traces, grace } = self;
        let asked = stop.clone();
        let asked = tokio::spawn(async move {
            asked.cancelled().await;
            tokio::time::Instant::now()
        });
        let mut engine = std::pin::pin!(engine.run(stop.clone()));
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
        let closed = tokio::time::timeout(LEDGER_CLOSED_WITHIN, ledger.close());
        let (closed, ()) = tokio::join!(closed, last_traces);
        let closed =
            closed.context("close the ledger: the disk does not answer")?.context("close the ledger");
        ran.and(closed)
    }
}

fn ended_early(ended: Result<Result<(), StageError>, tokio::task::JoinError>) -> anyhow::Error {
    match ended {
        Ok(Err(error)) => anyhow::Error::from(error).context("a service ended"),
        Ok(Ok(())) => anyhow::anyhow!("a service ended without being asked"),
        // What it said may quote what it worked on.
        Err(_) => anyhow::anyhow!("a service panicked"),
    }
}

/// A file that may not grow any more fails the write, as a full disk does: the ledger waits until there is room. Without
/// a listener the signal that comes with it would end the process.
fn outlive_file_size_limit() -> anyhow::Result<()> {
    /// The same number on Linux and macOS.
    const SIGXFSZ: i32 = 25;
    signal(SignalKind::from_raw(SIGXFSZ)).context("listen for SIGXFSZ").map(drop)
}

/// Cancels `stop` at the first SIGTERM or SIGINT; the second ends the process at once.
fn stop_on_signal(stop: Shutdown) -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    Ok(async move {
        for again in [false, true] {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            if again {
                tracing::warn!(signal = name, "told to stop a second time: ending at once");
                std::process::exit(1);
            }
            tracing::info!(signal = name, "stopping: what is in flight may finish");
            stop.cancel();
        }
    })
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
