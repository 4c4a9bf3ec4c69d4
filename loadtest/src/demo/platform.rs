//! The platform of a demo: the real one, on embedded defaults, which keeps what is reported and shows it in its console.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use loadtest_sim::process::{Process, Start};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// How long it may take to start, and to end.
const WITHIN: Duration = Duration::from_secs(300);
/// How long it may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// Between two looks at what it has said.
const LOOK: Duration = Duration::from_millis(50);

/// A running platform.
pub(super) struct Platform {
    process: Process,
    program: PathBuf,
    state: PathBuf,
    url: String,
}

impl Platform {
    /// Starts it; its store is in `folder`, and stays there.
    pub(super) async fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let program = program.canonicalize().with_context(|| format!("find {}", program.display()))?;
        let folder = folder.canonicalize().with_context(|| format!("find {}", folder.display()))?;
        let state = folder.join("platform");
        let mut process = Process::start(&Start {
            program: program.clone(),
            args: ["platform", "--listen", "127.0.0.1:0", "--set", "serve.metricsAddress=", "--state"]
                .map(Into::into)
                .into_iter()
                .chain([state.clone().into_os_string()])
                .collect(),
            env: Vec::new(),
            directory: folder,
        })?;
        let url = format!("http://{}", process.address(WITHIN).await?);
        let deadline = Instant::now() + WITHIN;
        while !process.lines().any("receiving reports") {
            if Instant::now() > deadline || process.id().is_none() {
                bail!(
                    "the platform does not receive reports; its log:\n{}",
                    process.lines().all().join("\n")
                );
            }
            sleep(LOOK).await;
        }
        Ok(Self { process, program, state, url })
    }

    /// Its address.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Makes a token by which a runtime reports.
    pub(super) async fn token(&self, runtime: &str) -> anyhow::Result<String> {
        let mut command = Command::new(&self.program);
        command.args(["platform", "token", "create", "--runtime", runtime, "--state"]).arg(&self.state);
        command.env_clear().stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.context("make a token")?;
        if !output.status.success() {
            bail!("no token was made: {}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        Ok(String::from_utf8(output.stdout).context("read a token")?.trim_end().to_owned())
    }

    /// Names of the applications that it shows to a runtime with that token, but for those that were deleted.
    pub(super) async fn applications(&self, token: &str) -> anyhow::Result<BTreeSet<String>> {
        let none: [reqwest::Certificate; 0] = [];
        let client = reqwest::Client::builder().tls_certs_only(none).no_proxy().timeout(ANSWERS_WITHIN);
        let query =
            "{ applications(pagination: {first: 500}) { edges { node { deleted metadata { name } } } } }";
        let client = client.build().context("make a client")?;
        let asked = client.post(format!("{}/2.0/api/graphql", self.url)).header("authorization", token);
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
        link.map_or_else(|| self.url.clone(), |(_, link)| link.to_owned())
    }

    /// The command that shows again what it has kept.
    pub(super) fn again(&self) -> String {
        format!("{} platform --state {}", self.program.display(), self.state.display())
    }

    /// Asks it to stop and waits for its end.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        let status = self.process.stop(WITHIN).await?;
        if !status.success() {
            bail!("the platform ended with {status}");
        }
        Ok(())
    }
}
