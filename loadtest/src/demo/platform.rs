//! The platform of a demo: the real one, on embedded defaults, which keeps what is reported and shows it in its console.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use loadtest_sim::local_client;
use loadtest_sim::people::FIRST;
use loadtest_sim::platform_process::PlatformProcess;
use serde_json::{Value, json};

/// How long it may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// Names of the applications that it shows to a runtime with that token, but for those that were deleted.
pub(super) async fn applications(
    platform: &PlatformProcess,
    token: &str,
) -> anyhow::Result<BTreeSet<String>> {
    let client = local_client().timeout(ANSWERS_WITHIN);
    let query = "{ applications(pagination: {first: 500}) { edges { node { deleted metadata { name } } } } }";
    let client = client.build().context("make a client")?;
    let asked = client.post(format!("{}/2.0/api/graphql", platform.url())).header("authorization", token);
    let answer = asked.json(&json!({"query": query})).send().await.context("ask the platform")?;
    let answer: Value = answer.error_for_status()?.json().await.context("read what the platform shows")?;
    let edges = answer["data"]["applications"]["edges"].as_array();
    let edges = edges.with_context(|| format!("the platform answers {}", answer["errors"]))?;
    let shown = edges.iter().map(|edge| &edge["node"]).filter(|node| node["deleted"] == false);
    Ok(shown.filter_map(|node| node["metadata"]["name"].as_str()).map(str::to_owned).collect())
}

/// Where the first account is made, while it runs.
pub(super) fn first_link(platform: &PlatformProcess) -> String {
    let lines = platform.lines().all();
    let link = lines.iter().find_map(|line| line.strip_prefix(FIRST));
    link.unwrap_or(platform.url()).to_owned()
}
