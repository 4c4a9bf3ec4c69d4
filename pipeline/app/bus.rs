//! From the settings to the bus: how it is reached, what stands there, and who this process is on it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use pipeline_bus::jetstream;
use pipeline_core::{ExposeSecret as _, SecretString};
use pipeline_ownership::Replica;

use super::build;
use crate::config::{Bus, Config};

/// How the bus is reached. Reads the files that the settings name, which must be there; they are followed afterwards.
///
/// # Errors
/// When one of them cannot be read, or does not hold what it should; it names the setting and the file.
pub(crate) async fn connection(bus: &Bus) -> anyhow::Result<jetstream::Config> {
    let tls = bus.tls();
    if let Some(tls) = &tls {
        let mut files = vec![("bus.caFile", tls.ca.as_deref())];
        if let Some((certificate, key)) = &tls.identity {
            files.extend([("bus.certificateFile", Some(&**certificate)), ("bus.keyFile", Some(&**key))]);
        }
        for (at, path) in files {
            if let Some(path) = path {
                text(at, path).await?;
            }
        }
    }
    Ok(jetstream::Config {
        urls: bus.urls.0.clone(),
        prefix: bus.prefix.0.clone(),
        replicas: bus.copies,
        max_bytes: bus.max_bytes.0,
        reports_max_bytes: bus.reports_max_bytes.0,
        ack_wait: *bus.ack_wait,
        timeout: *bus.timeout,
        credentials: checked(bus.credentials().context("bus.passwordFile: is not set")?).await?,
        tls,
        duplicate_window: Duration::from_secs(120),
        max_ack_pending: 1_000,
        heartbeat: Duration::from_secs(4),
    })
}

/// Checks that the files are there and hold what they should.
async fn checked(credentials: jetstream::Credentials) -> anyhow::Result<jetstream::Credentials> {
    use jetstream::{Credentials, Secret};
    match &credentials {
        Credentials::Password { password: Secret::File(path), .. } => {
            line("bus.passwordFile", path).await?;
        }
        Credentials::Token(Secret::File(path)) => {
            line("bus.tokenFile", path).await?;
        }
        Credentials::File(path) => {
            text("bus.credentialsFile", path).await?;
        }
        Credentials::Nkey(Secret::File(path)) => {
            let seed = line("bus.nkeyFile", path).await?;
            // The letters that the seed of a user begins with; another key would be refused by the server, for ever.
            if !seed.expose_secret().starts_with("SU") {
                bail!("bus.nkeyFile: {} holds no seed of a user, which begins with SU", path.display());
            }
        }
        Credentials::None | Credentials::Password { .. } | Credentials::Token(_) | Credentials::Nkey(_) => {}
    }
    Ok(credentials)
}

/// What stands in a file, without what is around it.
async fn line(at: &str, path: &Path) -> anyhow::Result<SecretString> {
    let text = text(at, path).await?;
    let line = text.expose_secret().trim();
    if line.is_empty() {
        bail!("{at}: {} is empty", path.display());
    }
    Ok(line.into())
}

async fn text(at: &str, path: &Path) -> anyhow::Result<SecretString> {
    let read = tokio::fs::read_to_string(path).await;
    Ok(read.with_context(|| format!("{at}: read {}", path.display()))?.into())
}

/// The name of this process among the replicas, which no other has ever had.
///
/// # Errors
/// None that the settings let happen.
pub(crate) fn replica(bus: &Bus) -> anyhow::Result<Replica> {
    let life = fastrand::u64(..);
    Replica::new(&format!("{}.{life:016x}", bus.replica.0)).context("name this replica: set bus.replica")
}

/// What the ledger calls the configured sink of what was reported of the configured cluster.
///
/// # Errors
/// When the cluster's address cannot be found.
pub(crate) async fn ledger(config: &Config) -> anyhow::Result<String> {
    let server =
        build::watch(config).server().await.context("find the cluster (settings under `kubernetes`)")?;
    Ok(build::acknowledged_by(&config.target(), &server))
}

#[cfg(test)]
mod tests {
    use pipeline_bus::durables;

    use super::*;

    #[test]
    fn a_replica_has_a_name_that_no_other_has() {
        let named = |name: &str| replica(&of_settings(name)).unwrap();
        let (one, other) = (named("host"), named("host"));
        assert_ne!(one, other);
        assert!(one.as_str().starts_with("host.") && one.as_str().len() == "host.".len() + 16, "{one}");
        assert!(named(&"x".repeat(200)).as_str().len() > 200, "the longest name is one");
    }

    #[test]
    fn there_is_a_durable_for_each_shard() {
        let names: Vec<String> = durables(crate::app::ROUTE, crate::app::PIPELINE, 2)
            .iter()
            .map(|durable| durable.name().unwrap())
            .collect();
        assert_eq!(names, ["reporter_applications_0", "reporter_applications_1"]);
    }

    fn of_settings(replica: &str) -> Bus {
        let flag = |path: &str, text: &str| (path.to_owned(), "--set".to_owned(), text.to_owned());
        let flags = vec![flag("bus.url", "nats://nats:4222"), flag("bus.replica", replica)];
        let given = crate::config::Given { file: None, flags };
        Config::load_given(&given, &crate::config::Variables::new()).unwrap().bus.unwrap()
    }
}
