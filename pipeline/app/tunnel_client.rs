//! The role `tunnel-client`: leads visitors of a tunnel server to one service.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use pipeline_core::{Service as _, ServiceContext, Shutdown, StageError};
use prometheus::Registry;
use stages_tunnel::{ClientConfig, Dial, Name, Times};

use super::pages::Pages;
use crate::cli::TunnelClientArgs;
use crate::config::{Config, Variables, set};

/// Runs it until SIGTERM or SIGINT, or until it is refused.
///
/// # Errors
/// Whatever kept it from starting, with what to do next; and what the server refused it for.
pub(crate) fn command(given: &TunnelClientArgs, variables: &Variables) -> anyhow::Result<ExitCode> {
    let host = set(variables, "HOSTNAME").map_or_else(host_name, str::to_owned);
    let variable = |name: &str| set(variables, name).map(str::to_owned);
    super::serve(&given.given(), variables, async |config, stop| {
        run(config, &host, variable, given.is_tool(), stop).await
    })
}

async fn run(
    config: &Config,
    host: &str,
    variable: impl Fn(&str) -> Option<String>,
    is_tool: bool,
    stop: Shutdown,
) -> anyhow::Result<()> {
    let settings = &config.tunnel_client;
    let to = settings.to.as_ref().context(
        "tunnelClient.to is not set: set it (--to) to the address of a tunnel server, such as https://tunnels.example.com",
    )?;
    let forward = settings.forward.clone().context(
        "tunnelClient.forward is not set: set it (--forward) to what visitors are led to, such as http://localhost:3000",
    )?;
    let times = Times::default();
    let own = config.namespace.as_deref().unwrap_or(host);
    let name = match &*settings.name {
        Some(name) => name.clone(),
        None => {
            Name::read(&made_of(host)).context("make a name of the host's: set tunnelClient.name (--name)")?
        }
    };
    let token = super::build::token(&settings.token())?.unwrap_or_else(|| stages_client::Token::literal(""));
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis();
    let registry = Registry::new();
    let client = ClientConfig {
        dial: Dial::new(to, settings.ca_file.as_deref(), times.handshake)?.through(variable)?,
        protocol: settings.protocol(),
        name: name.clone(),
        token,
        forward,
        connections: settings.connections,
        id: settings.id.as_ref().map_or_else(|| own.to_owned(), |id| id.0.clone()),
        generation: u64::try_from(started).unwrap_or(u64::MAX),
        allowed: settings.allowed(),
        grace: *config.shutdown.grace,
        // Who ends is started again in a pod, and would take over in its turn.
        standby: !is_tool,
        times,
    };
    let client = client.build(&registry)?;
    let ready = client.ready();
    // Whoever waits for the end of an update of a Deployment waits for those that stand by as well.
    let judge = move || match ready.is_ready() || ready.stands_by() {
        true => Ok(()),
        false => Err("visitors do not reach the service through the tunnel: the log says why"),
    };
    let pages = Pages::start(config, registry, &stop, judge).await?;
    tracing::info!(tunnel = %name, "opening the tunnel");
    let served = Box::new(client).serve(ServiceContext::alone(stop)).await;
    let served = served.map_err(|error| {
        let (StageError::Retry { source, .. } | StageError::Reject { source, .. }) = error;
        anyhow::anyhow!(source).context(format!("keep the tunnel {name} open"))
    });
    pages.stop().await.and(served)
}

/// A name for whoever gave none.
fn made_of(host: &str) -> String {
    let kept: String = host
        .chars()
        .map(|letter| letter.to_ascii_lowercase())
        .filter(char::is_ascii_alphanumeric)
        .take(38)
        .collect();
    format!("try-{}", if kept.is_empty() { "this" } else { &kept })
}

fn host_name() -> String {
    let text = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    match text.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_made_of_a_host_is_one() {
        for (host, name) in [
            ("Laptop-7.local", "try-laptop7local"),
            ("---", "try-this"),
            (&"x".repeat(99), &format!("try-{}", "x".repeat(38))),
        ] {
            assert_eq!(made_of(host), name);
            assert!(Name::read(name).is_ok());
        }
    }
}
