//! The platform as a process, and those who send to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use loadtest_sim::platform_process::PlatformProcess;
use loadtest_sim::{PATIENCE, local_client, port};
use serde_json::json;

use super::bodies::Body;
use super::senders::Senders;

/// The runtime that reports.
pub(super) const RUNTIME: &str = "bench";

pub(super) struct Platform {
    running: PlatformProcess,
    client: reqwest::Client,
    senders: Senders,
    metrics: String,
    _folder: tempfile::TempDir,
}

impl Platform {
    pub(super) async fn start(program: &Path, postgres: Option<&str>) -> anyhow::Result<Self> {
        let folder = tempfile::TempDir::new().context("make a folder")?;
        let figures = format!("127.0.0.1:{}", port::free()?);
        let mut settings = vec![format!("serve.metricsAddress={figures}")];
        // The URL holds a password, and is taken from a file alone.
        if let Some(url) = postgres {
            let file = folder.path().join("postgres-url");
            std::fs::write(&file, url).context("write the URL of its database")?;
            settings.push(format!("platformServer.store.postgresUrlFile={}", file.display()));
        }
        let running = PlatformProcess::with(program, folder.path(), settings).await?;
        let token = running.token(RUNTIME).await?;
        let client = local_client().redirect(reqwest::redirect::Policy::none());
        let client = client.timeout(PATIENCE).build()?;
        let address = running.url().trim_start_matches("http://").parse().context("read its address")?;
        let (senders, metrics) = (Senders { address, token }, format!("http://{figures}/metrics"));
        Ok(Self { running, client, senders, metrics, _folder: folder })
    }

    /// Those who report to it.
    pub(super) const fn senders(&self) -> &Senders {
        &self.senders
    }

    /// Its address.
    pub(super) fn url(&self) -> &str {
        self.running.url()
    }

    /// What asks it, and whoever else there is.
    pub(super) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// The token of the runtime.
    pub(super) fn token(&self) -> &str {
        &self.senders.token
    }

    /// The file that it keeps everything in, unless that is on Postgres.
    pub(super) fn file(&self) -> PathBuf {
        self.running.state().join("platform.db")
    }

    /// The rest of the line of its log that begins so, once that is there.
    pub(super) async fn says(&self, begin: &str) -> anyhow::Result<String> {
        self.running.lines().rest_of(begin).await
    }

    /// Sends all, from all senders, each the next as soon as one is acknowledged; how long all took.
    pub(super) async fn take(&self, bodies: &[Body]) -> anyhow::Result<Duration> {
        self.senders.requests(bodies).at_once().await
    }

    /// The memory that it has now, in bytes.
    pub(super) fn resident(&self) -> anyhow::Result<u64> {
        self.running.process().resident().context("the platform has ended")
    }

    /// Asks for a shard's digest, which is another one.
    pub(super) async fn compare(&self, shard: u32, shards: u32) -> anyhow::Result<()> {
        let asked =
            json!({"shard": shard, "shards": shards, "applications": 1, "entities": 1, "digest": "0"});
        let request = self.client.post(format!("{}/2.0/api/events/digest", self.url()));
        let request = request.header("authorization", &self.senders.token).body(asked.to_string());
        let answer = request.send().await?.error_for_status()?.text().await?;
        ensure!(answer == r#"{"equal":false}"#, "compared, the platform answers {answer}");
        Ok(())
    }

    /// Counters of the platform by their names, without what all of them begin and end with.
    pub(super) async fn counted<const N: usize>(&self, names: [&str; N]) -> anyhow::Result<[u64; N]> {
        let text = self.client.get(&self.metrics).send().await?.error_for_status()?.text().await?;
        let mut counted = [0; N];
        for (count, name) in counted.iter_mut().zip(names) {
            let begin = format!("gitops_runtime_platform_{name}_total ");
            let line = text.lines().find_map(|line| line.strip_prefix(&begin));
            *count = line.and_then(|value| value.parse().ok()).with_context(|| format!("find {begin}"))?;
        }
        Ok(counted)
    }

    /// The most memory that it had, in bytes.
    pub(super) fn highest_resident(&self) -> anyhow::Result<u64> {
        self.running.process().most_resident().context("the platform has ended")
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.running.stop().await
    }
}
