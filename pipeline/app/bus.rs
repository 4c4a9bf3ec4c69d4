//! From the settings to the bus: how it is reached, what stands there, and who this process is on it.

use std::time::Duration;

use anyhow::Context as _;
use pipeline_bus::jetstream::{self, JetStream};
use pipeline_ownership::Replica;

use super::{build, nats};
use crate::config::{Bus, Config};

/// How the bus is reached. Reads the files that the settings name, which must be there; they are followed afterwards.
///
/// # Errors
/// When one of them cannot be read, or does not hold what it should; it names the setting and the file.
pub(crate) async fn connection(bus: &Bus) -> anyhow::Result<jetstream::Config> {
    Ok(jetstream::Config {
        access: nats::access("bus", &bus.access(), &bus.urls.0, *bus.timeout).await?,
        prefix: bus.prefix.0.clone(),
        replicas: bus.copies,
        max_bytes: bus.max_bytes.0,
        reports_max_bytes: bus.reports_max_bytes.0,
        ack_wait: *bus.ack_wait,
        duplicate_window: Duration::from_secs(120),
        max_ack_pending: 1_000,
        heartbeat: Duration::from_secs(4),
    })
}

/// Of a role that follows a reporter: that one's part of the bus, and the group that the role is there; `None` where it follows none.
///
/// # Errors
/// None that the settings let happen.
pub(crate) fn followed(config: &Config, bus: &JetStream) -> anyhow::Result<Option<(JetStream, String)>> {
    let Some(followed) = config.bus.as_ref().and_then(|bus| bus.followed.as_ref()) else { return Ok(None) };
    let of_reporter =
        bus.beside(&followed.prefix).context("name the reporter's part of the bus (bus.prefix)")?;
    Ok(Some((of_reporter, followed.group.clone())))
}

/// The name of this process among the replicas, which no other has ever had.
///
/// # Errors
/// None that the settings let happen.
pub(crate) fn replica(bus: &Bus) -> anyhow::Result<Replica> {
    let life = fastrand::u64(..);
    Replica::new(&format!("{}.{life:016x}", bus.replica.0)).context("name this replica: set bus.replica")
}

/// What the ledger of a pipeline calls the configured sink of what was reported of the configured cluster.
///
/// # Errors
/// When the cluster's address cannot be found.
pub(crate) async fn ledger(config: &Config, pipeline: &str) -> anyhow::Result<String> {
    let server =
        build::watch(config).server().await.context("find the cluster (settings under `kubernetes`)")?;
    let of_changes = if pipeline == super::CHANGES { config.target_of_changes() } else { None };
    Ok(build::acknowledged_by(&of_changes.unwrap_or_else(|| config.target()), &server))
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
