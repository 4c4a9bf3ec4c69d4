//! The role `router`: requests from outside, each to the service that it is for.

use std::process::ExitCode;

use anyhow::Context as _;
use pipeline_core::{Service as _, ServiceContext, Shutdown};
use prometheus::Registry;

use super::pages::Pages;
use crate::cli::RouterArgs;
use crate::config::{Config, Variables};

/// Runs it until SIGTERM or SIGINT.
///
/// # Errors
/// Whatever kept it from starting, with what to do next.
pub(crate) fn command(given: &RouterArgs, variables: &Variables) -> anyhow::Result<ExitCode> {
    super::serve(&given.given(), variables, run)
}

async fn run(config: &Config, stop: Shutdown) -> anyhow::Result<()> {
    let registry = Registry::new();
    let platform = config.platform.url.as_ref().map(|url| url.origin().ascii_serialization());
    let origin = platform.unwrap_or_default();
    let settings = config.router.config(config.namespace.as_deref(), &origin, *config.shutdown.grace);
    let router = settings.build(&registry).await?;
    let address = router.address();
    // Probes and metrics are answered as long as requests are.
    let pages = Pages::start(config, registry, &stop, || Ok(())).await?;
    tracing::info!(%address, "taking requests");
    let served = Box::new(router).serve(ServiceContext::alone(stop)).await.context("take requests");
    pages.stop().await.and(served)
}
