//! `gitops-runtime bus check`: what is missing on the server, or differs from the settings.

use std::process::ExitCode;

use anyhow::Context as _;
use pipeline_bus::jetstream::{Difference, LEDGER};
use pipeline_ledger::refusing_claims;
use serde::Serialize;

use super::{BusConnection, behind, refusing, say_json};
use crate::app;
use crate::cli::ask::say;
use crate::cli::ask::show::size;

/// The least `max_payload` of the server: a message of this size holds everything that is kept of an object while the bus is away.
const MIN_PAYLOAD: usize = 512 << 10;

/// The result as JSON.
#[derive(Serialize)]
struct CheckResult<'a> {
    /// For a role that may follow a reporter: whether it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    follows: Option<bool>,
    differences: Vec<JsonDifference<'a>>,
}

/// A difference from the settings, as JSON.
#[derive(Serialize)]
struct JsonDifference<'a> {
    what: &'a str,
    is: &'a str,
    should: &'a str,
}

impl<'a> JsonDifference<'a> {
    fn of(difference: &'a Difference) -> Self {
        let Difference { what, is, should } = difference;
        Self { what, is, should }
    }
}

/// Whether the role follows a reporter; `None` for a role that never does.
async fn follows(connection: &BusConnection) -> anyhow::Result<Option<bool>> {
    let Some((bus, group)) = app::bus::followed(&connection.config, &connection.bus)? else {
        return Ok(None);
    };
    Ok(Some(bus.is_followed(&group, app::PIPELINE).await?))
}

/// Compares the stream, durables, buckets and claims of shards with the settings; the exit code is 1 if something differs.
pub(super) async fn run(connection: &BusConnection, json: bool) -> anyhow::Result<ExitCode> {
    const ACT: &str = "compare what stands on the bus with the settings";
    let durables =
        pipeline_bus::durables(app::ROUTE, connection.pipeline, connection.config.reporter.sharding.shards());
    let mut differences = connection.bus.check(&durables).await.context(ACT)?;
    for bucket in connection.buckets() {
        differences.extend(bucket.check().await.context(ACT)?);
    }
    let show = connection.bus.show(connection.pipeline).await.context(ACT)?;
    if show.max_payload < MIN_PAYLOAD {
        differences.push(Difference {
            what: "server: max_payload".to_owned(),
            is: show.max_payload.to_string(),
            should: format!("{MIN_PAYLOAD} or more"),
        });
    }
    if let (Some(behind), Some(stream)) = (refusing(&show), &show.stream) {
        let held = format!("{} of {}", size(stream.bytes), size(stream.max_bytes));
        differences.push(Difference {
            what: format!("stream {}", stream.name),
            is: format!("full ({held}), so that it refuses what is watched: {behind}"),
            should: "read in time: see why that durable is not, remove it if nobody is to read it, or raise bus.maxBytes \
                     and the stream's max_bytes"
                .to_owned(),
        });
    }
    if let (Some(durable), Some(reports)) = (behind(&show), &show.reports) {
        differences.push(Difference {
            what: format!("stream {}", reports.name),
            is: format!("discarding its oldest reports, with which {durable} does not keep up"),
            should: "read in time".to_owned(),
        });
    }
    if connection.config.bus.as_ref().is_some_and(|bus| bus.bucket) {
        // Without a cluster it is not known whose claims they are: then all count.
        let sink = app::bus::ledger(&connection.config, connection.pipeline).await.ok();
        let (bucket, sharding) = (connection.bus.bucket(LEDGER), app::sharding(&connection.config));
        let claims = refusing_claims(&bucket, sink.as_deref(), sharding).await.context(ACT)?;
        differences.extend(claims);
    }
    if connection.config.bus.as_ref().is_some_and(|bus| bus.leases.is_some()) {
        differences.extend(connection.bus.refusals().await.context(ACT)?);
    }
    let follows = follows(connection).await.context(ACT)?;
    if let Some(follows) = follows.filter(|_| !json) {
        say(match follows {
            true => "bus: change-revision follows the reporter\n",
            false => "bus: no change-revision follows the reporter: whoever runs watches the API server\n",
        })?;
    }
    if json {
        say_json(&CheckResult {
            follows,
            differences: differences.iter().map(JsonDifference::of).collect(),
        })?;
    } else if differences.is_empty() {
        say("bus: ok\n")?;
    } else {
        let lines = differences.iter().map(|difference| format!("bus: {difference}\n"));
        say(&lines.collect::<String>())?;
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
