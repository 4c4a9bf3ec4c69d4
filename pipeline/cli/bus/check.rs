//! `gitops-runtime bus check`: what is absent on the server, or differs from the settings.

use std::process::ExitCode;

use anyhow::Context as _;
use pipeline_bus::jetstream::{Difference, LEDGER};
use pipeline_ledger::refusing_claims;
use serde::Serialize;

use super::{Reached, behind, refusing, say_json};
use crate::app;
use crate::cli::ask::say;
use crate::cli::ask::show::size;

/// Bytes of one message that the server is to take at least: in them is room for all that is kept of what happened to an object
/// while the bus took nothing.
const MESSAGE: usize = 512 << 10;

/// What is shown as JSON.
#[derive(Serialize)]
struct Checked<'a> {
    /// Of a role that follows a reporter: whether one is there and it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    follows: Option<bool>,
    differences: Vec<Different<'a>>,
}

/// One thing that is not as the settings say.
#[derive(Serialize)]
struct Different<'a> {
    what: &'a str,
    is: &'a str,
    should: &'a str,
}

impl<'a> Different<'a> {
    fn of(difference: &'a Difference) -> Self {
        let Difference { what, is, should } = difference;
        Self { what, is, should }
    }
}

/// Whether the role follows a reporter; `None` where it is not to.
async fn follows(reached: &Reached) -> anyhow::Result<Option<bool>> {
    let Some((bus, group)) = app::bus::followed(&reached.config, &reached.bus)? else { return Ok(None) };
    Ok(Some(bus.is_followed(&group, app::PIPELINE).await?))
}

/// Compares stream, durables, buckets and what refuses shards to replicas with the settings; 1 when something differs.
pub(super) async fn run(reached: &Reached, json: bool) -> anyhow::Result<ExitCode> {
    const ACT: &str = "compare what stands on the bus with the settings";
    let durables =
        pipeline_bus::durables(app::ROUTE, reached.pipeline, reached.config.reporter.sharding.shards());
    let mut differences = reached.bus.check(&durables).await.context(ACT)?;
    for bucket in reached.buckets() {
        differences.extend(bucket.check().await.context(ACT)?);
    }
    let show = reached.bus.show(reached.pipeline).await.context(ACT)?;
    if show.max_payload < MESSAGE {
        differences.push(Difference {
            what: "server: max_payload".to_owned(),
            is: show.max_payload.to_string(),
            should: format!("{MESSAGE} or more"),
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
    if reached.config.bus.as_ref().is_some_and(|bus| bus.bucket) {
        // Without a cluster nobody knows whose claims they are: then all count.
        let sink = app::bus::ledger(&reached.config, reached.pipeline).await.ok();
        let (bucket, sharding) = (reached.bus.bucket(LEDGER), app::sharding(&reached.config));
        let claims = refusing_claims(&bucket, sink.as_deref(), sharding).await.context(ACT)?;
        differences.extend(claims);
    }
    if reached.config.bus.as_ref().is_some_and(|bus| bus.leases.is_some()) {
        differences.extend(reached.bus.refusals().await.context(ACT)?);
    }
    let follows = follows(reached).await.context(ACT)?;
    if let Some(follows) = follows.filter(|_| !json) {
        say(match follows {
            true => "bus: change-revision follows the reporter\n",
            false => "bus: no change-revision follows the reporter: whoever runs watches the API server\n",
        })?;
    }
    if json {
        say_json(&Checked { follows, differences: differences.iter().map(Different::of).collect() })?;
    } else if differences.is_empty() {
        say("bus: ok\n")?;
    } else {
        let lines = differences.iter().map(|difference| format!("bus: {difference}\n"));
        say(&lines.collect::<String>())?;
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
