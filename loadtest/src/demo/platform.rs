//! The platform of a demo: the real one, on embedded defaults, which keeps what is reported and shows it in its console.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use loadtest_sim::local_client;
use loadtest_sim::platform_process::PlatformProcess;
use serde_json::{Value, json};

/// How long it may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// A running platform.
pub(super) struct Platform {
    process: PlatformProcess,
}

impl Platform {
    /// Starts it; its store is in `folder`, and stays there.
    pub(super) async fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        Ok(Self { process: PlatformProcess::start(program, folder).await? })
    }

    /// Its address.
    pub(super) fn url(&self) -> &str {
        self.process.url()
    }

    /// Makes a token by which a runtime reports.
    pub(super) async fn token(&self, runtime: &str) -> anyhow::Result<String> {
        self.process.token(runtime).await
    }

    /// Names of the applications that it shows to a runtime with that token, but for those that were deleted.
    pub(super) async fn applications(&self, token: &str) -> anyhow::Result<BTreeSet<String>> {
        let client = local_client().timeout(ANSWERS_WITHIN);
        let query =
            "{ applications(pagination: {first: 500}) { edges { node { deleted metadata { name } } } } }";
        let client = client.build().context("make a client")?;
        let asked = client.post(format!("{}/2.0/api/graphql", self.url())).header("authorization", token);
        let answer = asked.json(&json!({"query": query})).send().await.context("ask the platform")?;
        let answer: Value =
            answer.error_for_status()?.json().await.context("read what the platform shows")?;
        let edges = answer["data"]["applications"]["edges"].as_array();
        let edges = edges.with_context(|| format!("the platform answers {}", answer["errors"]))?;
        let shown = edges.iter().map(|edge| &edge["node"]).filter(|node| node["deleted"] == false);
        Ok(shown.filter_map(|node| node["metadata"]["name"].as_str()).map(str::to_owned).collect())
    }

    /// Where the first account is made, while it runs.
    pub(super) fn first_link(&self) -> String {
        let lines = self.process.lines().all();
        let link = lines.iter().find_map(|line| line.split_once("make the first one: "));
        link.map_or_else(|| self.url().to_owned(), |(_, link)| link.to_owned())
    }

    /// The command that shows again what it has kept.
    pub(super) fn again(&self) -> String {
        self.process.again()
    }

    /// Asks it to stop and waits for its end.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.process.stop().await
    }
}
