//! The only place that knows every stage: one function per role, which builds its stages from the settings,
//! puts them into an engine, and runs that until the process is told to stop.

mod build;
mod log;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use pipeline_core::{Meter, Seen, Service, Shutdown, Source as _};
use pipeline_engine::health::{Health, HealthLimits};
use pipeline_engine::metrics::{Metrics, MetricsConfig};
use pipeline_engine::run::{Engine, Parts};
use pipeline_engine::serve::{ServeConfig, Served};
use stages_enrich::stage::ArgoCdEnrichment;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::config::{Config, Loaded};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// A turn may take the time of all calls for its event, and then that of its reports, before its lane counts
/// as stuck.
const SLACK: Duration = Duration::from_secs(180);
/// Argo CD's settings are asked for every two seconds until they are known; later than this, health tells.
const SETTINGS_KNOWN_WITHIN: Duration = Duration::from_secs(60);
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
    let result = runtime.block_on(report(loaded.config));
    // What still blocks (a slow disk) does not keep the process from ending.
    runtime.shutdown_timeout(Duration::from_secs(2));
    if let Err(error) = &result {
        tracing::error!(error = format!("{error:#}"), "the reporter ends");
    }
    result
}

async fn report(config: Config) -> anyhow::Result<()> {
    let stop = Shutdown::new();
    let signals = tokio::spawn(stop_on_signal(stop.clone())?);

    let engine_config = build::engine(&config);
    let owned = engine_config.owned.shards(engine_config.sharding);
    let metrics = Metrics::new(&MetricsConfig {
        compat: config.compat_metrics,
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

    let (ledger, redactor) = build::memory(&config).await?;
    let seen = Seen::default();
    let watch = build::watch(&config).build(stages_watch::Deps { seen: seen.clone(), meter: meter.clone() });
    let source =
        watch.await.context("watch the applications of the cluster (settings under `kubernetes`)")?;
    let enrichment = build::enrichment(&config).await?;
    let (enrich, settings) = enrichment
        .build(seen.clone(), redactor, meter.clone())
        .await
        .context("reach Argo CD (settings under `argocd`)")?;
    let sink = build::sink(&config, meter, &stop).await?;

    let engine = Engine::new(
        engine_config,
        Parts {
            source,
            enrich: enrich.clone(),
            sink,
            ledger: ledger.clone(),
            metrics: metrics.clone(),
            health: health.clone(),
        },
    );

    let mut services = JoinSet::new();
    services.spawn(settings.serve(stop.clone()));
    services.spawn(tell_of_settings(enrich, health.clone(), stop.clone()));
    let handle = engine.handle();
    let served = Served {
        health,
        metrics,
        ledger: ledger.clone(),
        sharding: engine_config.sharding,
        keys: Arc::new(move || seen.keys()),
        engine: Arc::new(move || handle.status()),
    };
    let addresses = [(config.serve, "serve.address"), (config.serve_metrics, "serve.metricsAddress")];
    for (address, setting) in addresses {
        if let Some(address) = address {
            let server = ServeConfig::new(address.to_string(), setting).build(served.clone()).await?;
            services.spawn(server.serve(stop.clone()));
        }
    }

    tracing::info!(
        source = stages_watch::ApplicationWatch::NAME,
        shards = engine_config.sharding.shards().get(),
        "reporting"
    );
    let ran = engine.run(stop.clone()).await.context("run the engine");
    stop.cancel();
    while services.join_next().await.is_some() {}
    signals.abort();
    let closed = ledger.close().await.context("close the ledger");
    tracing::info!("stopped");
    ran.and(closed)
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
) -> Result<(), pipeline_core::StageError> {
    let known = async {
        while !enrich.health().settings_known {
            tokio::time::sleep(LOOK).await;
        }
        health.settings_known();
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = known => {}
    }
    Ok(())
}
