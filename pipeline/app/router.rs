//! The role `router`: requests from outside, each to the service that it is for.

use std::process::ExitCode;

use anyhow::Context as _;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use pipeline_core::{Given, Service as _, Shutdown};
use pipeline_http::serve::ServeConfig;
use prometheus::{Registry, TextEncoder};

use crate::cli::OnRouter;
use crate::config::{Config, Variables};

/// Runs it until SIGTERM or SIGINT.
///
/// # Errors
/// Whatever kept it from starting, with what to do next.
pub(crate) fn command(given: &OnRouter, variables: &Variables) -> anyhow::Result<ExitCode> {
    let config =
        Config::load_given(&given.given(), variables).map_err(|problems| anyhow::anyhow!("{problems}"))?;
    stages_client::install_crypto();
    super::log::start(&config);
    super::run(async |stop| run(&config, stop).await)?;
    Ok(ExitCode::SUCCESS)
}

async fn run(config: &Config, stop: Shutdown) -> anyhow::Result<()> {
    let registry = Registry::new();
    let platform = config.platform.url.as_ref().map(|url| url.origin().ascii_serialization());
    let origin = platform.unwrap_or_default();
    let settings = config.router.config(config.namespace.as_deref(), &origin, *config.shutdown.grace);
    let router = settings.build(&registry).await?;
    let address = router.address();
    let pages = match *config.serve.address {
        Some(address) => {
            let serve = ServeConfig::new(address.to_string(), "serve.address");
            Some(serve.build_bare(pages(registry, stop.clone())).await?)
        }
        None => None,
    };
    tracing::info!(%address, "taking requests");
    // Probes and metrics are answered as long as requests are.
    let ended = Shutdown::new();
    let served = pages.map(|pages| tokio::spawn(Box::new(pages).serve(Given::alone(ended.clone()))));
    Box::new(router).serve(Given::alone(stop)).await.context("take requests")?;
    ended.cancel();
    if let Some(served) = served {
        served.await.context("serve")?.context("serve")?;
    }
    Ok(())
}

/// What a process says of itself.
fn pages(registry: Registry, stop: Shutdown) -> Router {
    let ready = async move || match stop.is_cancelled() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n"),
        false => (StatusCode::OK, "ready\n"),
    };
    let metrics = async move || {
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap_or_default();
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
    };
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}
