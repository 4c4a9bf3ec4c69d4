//! The role `tunnel-server`: where clients of tunnels connect, and visitors come for what is behind them.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use pipeline_core::{Service as _, ServiceContext, Shutdown};
use prometheus::Registry;
use stages_tunnel::{Anybody, Credentials, CredentialsFile, PlatformCredentials};

use super::board::Tunnels;
use super::build;
use super::pages::Pages;
use crate::cli::TunnelServerArgs;
use crate::config::{Config, Variables};

/// Runs it until SIGTERM or SIGINT.
///
/// # Errors
/// Whatever kept it from starting, with what to do next.
pub(crate) fn command(given: &TunnelServerArgs, variables: &Variables) -> anyhow::Result<ExitCode> {
    super::serve(&given.given(), variables, async |config, stop| run(config, given.single, stop).await)
}

async fn run(config: &Config, is_single: bool, stop: Shutdown) -> anyhow::Result<()> {
    let settings = config.tunnel_server.config(*config.shutdown.grace).context(
        "tunnelServer.domain is not set: set it (--domain) to what hosts of tunnels end in, or try it on this machine \
         with --single",
    )?;
    let domain = settings.domain.clone();
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let registry = Registry::new();
    let mut server = settings.build(credentials(config, is_single).await?, &registry).await?;
    if let Some(bus) = &config.bus {
        let (listen, reached) = config.tunnel_server.peers.addresses()?;
        // A bus that answers may still make no bucket.
        let joining = async {
            let connected = super::join::connected(bus, &stop).await?;
            anyhow::Ok(Tunnels::open(&connected.jetstream()).await)
        };
        let Some(board) = super::unless_stopped(&stop, joining).await? else { return Ok(()) };
        server = server.beside(listen, reached, Arc::new(board)).await?;
        tracing::info!(address = %listen, "passing visitors on between servers that share the bus");
    }
    let address = server.address();
    let pages = Pages::start(config, registry, &stop, || Ok(())).await?;
    tracing::info!(%address, "taking clients of tunnels and their visitors");
    if is_single {
        tracing::info!(
            "tunnels are visited at {scheme}://NAME.{domain}:{port}; open one with `gitops-runtime tunnel-client --to \
             {scheme}://localhost:{port} --forward http://localhost:3000`",
            port = address.port()
        );
    }
    let served = Box::new(server).serve(ServiceContext::alone(stop)).await.context("lead visitors through");
    pages.stop().await.and(served)
}

/// What says who may open a tunnel.
async fn credentials(config: &Config, is_single: bool) -> anyhow::Result<Arc<dyn Credentials>> {
    let settings = &config.tunnel_server;
    if let Some(path) = &*settings.tokens_file {
        return Ok(Arc::new(CredentialsFile::open(path).await?));
    }
    if settings.ask_platform {
        let url = build::platform_url(config)?;
        let trust = build::platform_http(config, *config.platform.timeout, 0);
        return Ok(Arc::new(PlatformCredentials::new(url.as_str(), trust).await?));
    }
    let is_own = settings.listen.is_some_and(|address| address.ip().is_loopback());
    match is_single {
        true if is_own => Ok(Arc::new(Anybody)),
        true => anyhow::bail!(
            "whoever reaches this server could open any tunnel: name a file of tokens with --tokens-file, or listen on \
             127.0.0.1 alone"
        ),
        false => anyhow::bail!(
            "nothing says who may open a tunnel: set tunnelServer.tokensFile (--tokens-file) to a file with a name and a \
             token in each line, or ask a platform (--platform-url)"
        ),
    }
}
