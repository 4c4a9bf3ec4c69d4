//! The role `source-server`: what Git says of applications, over HTTP and over the bus, to those who may ask.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use pipeline_core::{ExposeSecret as _, SecretString, Service as _, ServiceContext, Shutdown, async_trait};
use pipeline_http::serve::ServeConfig;
use prometheus::Registry;
use stages_git::GitSeries;
use stages_kube::{Reader, Right};
use stages_source::{
    Accounts, Callers, NoCallers, Operations, Review, ReviewError, ServeBounds, SourceApi, TokenFile,
    document, routes, serve_over,
};

use super::{build, join, pages, sources};
use crate::cli::{SourceServerArgs, SourceServerCommand, print};
use crate::config::{Config, Variables};

/// Connections at a time.
const CONNECTIONS: usize = 1_024;

/// Runs the role until SIGTERM or SIGINT, or prints what it answers.
///
/// # Errors
/// Whatever kept it from starting, with what to do next.
pub(crate) fn command(given: &SourceServerArgs, variables: &Variables) -> anyhow::Result<ExitCode> {
    if let Some(SourceServerCommand::Schema) = given.command {
        return print(&format!("{:#}\n", document())).map(|()| ExitCode::SUCCESS);
    }
    super::serve(&given.given(), variables, run)
}

async fn run(config: &Config, stop: Shutdown) -> anyhow::Result<()> {
    let settings = &config.source_server;
    if settings.repositories.is_empty() && !settings.git.is_used() {
        bail!(
            "no repository is configured: say where each is, such as --repository \
             https://git.example.com/mono.git=/repositories/mono, or which are fetched, such as --fetch \
             https://git.example.com/team"
        );
    }
    let registry = Registry::new();
    if settings.callers.bus && config.bus.is_none() {
        bail!(
            "sourceServer.callers.bus is set, and bus.url is not: set it to the bus over which it is to answer, such as \
             nats://nats:4222"
        );
    }
    let bounds = ServeBounds { body: settings.max_body.len() };
    let (library, following) = sources::library(config, GitSeries::new(&registry), &stop).await?;
    let answering = SourceApi::new(library, &registry);
    let routes = routes(answering.clone(), callers(config).await?, bounds);
    let listen = settings.listen.context("sourceServer.listen is not set")?;
    let serve = ServeConfig {
        connections: CONNECTIONS,
        grace: *config.shutdown.grace,
        // What takes longer is answered by the library itself.
        request_timeout: *settings.timeout + std::time::Duration::from_secs(30),
        flag: Some("--listen"),
        ..ServeConfig::new(listen.to_string(), "sourceServer.listen")
    };
    let server = serve.build_bare(routes.merge(pages::routes(registry, &stop, || Ok(())))).await?;
    tracing::info!(repositories = settings.repositories.len(), "answering questions");
    let credentials = async {
        following.await;
        // Where there is nothing to follow.
        std::future::pending().await
    };
    let both = async {
        let served = async {
            let served = Box::new(server).serve(ServiceContext::alone(stop.clone())).await;
            stop.cancel();
            served
        };
        let (served, over_bus) = tokio::join!(served, over_bus(config, answering, bounds, stop.clone()));
        served.context("answer questions").and(over_bus)
    };
    tokio::select! {
        served = both => served,
        never = credentials => never,
    }
}

/// Answers over the bus as well, where the settings say so. HTTP is answered while the bus is away.
async fn over_bus(
    config: &Config,
    answering: SourceApi,
    bounds: ServeBounds,
    stop: Shutdown,
) -> anyhow::Result<()> {
    let Some(bus) = config.bus.as_ref().filter(|_| config.source_server.callers.bus) else { return Ok(()) };
    match super::unless_stopped(&stop, join::connected(bus, &stop)).await {
        Ok(Some(connected)) => {
            let bus = Arc::new(connected.jetstream());
            let may = &config.source_server.callers.bus_operations;
            let may = if may.is_empty() { Operations::ALL } else { may.iter().map(|of| **of).collect() };
            serve_over(bus, answering, (bounds, may), *config.shutdown.grace, stop).await;
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(error) => {
            // Else HTTP would go on, and nobody see it.
            stop.cancel();
            Err(error)
        }
    }
}

/// Who may ask.
async fn callers(config: &Config) -> anyhow::Result<Arc<dyn Callers>> {
    let settings = &config.source_server.callers;
    if let Some(path) = &*settings.token_file {
        return Ok(Arc::new(TokenFile::open(path).await));
    }
    if settings.accounts.is_empty() && settings.bus {
        return Ok(Arc::new(NoCallers));
    }
    if settings.accounts.is_empty() {
        bail!(
            "nobody may ask: name the ServiceAccounts that may in sourceServer.callers.accounts, such as \
             argocd/event-reporter, or set sourceServer.callers.tokenFile to a file with one token for all"
        );
    }
    let reader =
        build::watch(config).cluster.reader().await.context("find the cluster that knows who asks")?;
    let allowed = settings.accounts.iter().map(|account| (account.name.clone(), account.may));
    Ok(Arc::new(Accounts::new(Reviews(reader), allowed)))
}

/// What it needs to be allowed: to ask whose tokens are, where it asks that, and to read the credentials of repositories.
pub(super) fn rights(config: &Config) -> Vec<Right> {
    let callers = &config.source_server.callers;
    let asks = callers.token_file.is_none() && !(callers.accounts.is_empty() && callers.bus);
    let mut rights = if asks { vec![Reader::review_right()] } else { Vec::new() };
    rights.extend(sources::rights(config));
    rights
}

/// Asks the cluster whose a token is.
struct Reviews(Reader);

impl std::fmt::Debug for Reviews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reviews").finish_non_exhaustive()
    }
}

#[async_trait]
impl Review for Reviews {
    async fn owner(&self, token: &SecretString) -> Result<Option<String>, ReviewError> {
        self.0.owner(token.expose_secret()).await.map_err(|error| {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "whose a token is could not be found out");
            ReviewError
        })
    }
}
