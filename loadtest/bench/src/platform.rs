//! The platform as a process, and those who send to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use loadtest_sim::command::printed;
use loadtest_sim::process::{Process, Start};
use loadtest_sim::reporter::memory_of;
use loadtest_sim::{PATIENCE, local_client, port};
use serde_json::json;
use tokio::process::Command;

use super::bodies::Body;
use super::senders::Senders;

/// The runtime that reports.
pub(super) const RUNTIME: &str = "bench";

pub(super) struct Platform {
    process: Process,
    client: reqwest::Client,
    senders: Senders,
    url: String,
    metrics: String,
    folder: tempfile::TempDir,
}

impl Platform {
    pub(super) async fn start(program: &Path, postgres: Option<&str>) -> anyhow::Result<Self> {
        let folder = tempfile::TempDir::new().context("make a folder")?;
        let mut env =
            vec![("GITOPS_RUNTIME_STATE__DIRECTORY".to_owned(), folder.path().display().to_string())];
        if let Some(url) = postgres {
            env.push(("GITOPS_RUNTIME_PLATFORM_SERVER__STORE__POSTGRES_URL".to_owned(), url.to_owned()));
        }
        let mut make = Command::new(program);
        make.args(["platform", "token", "create", "--runtime", RUNTIME])
            .env_clear()
            .envs(env.iter().cloned());
        let token = printed(&mut make, "make a token").await?.trim().to_owned();
        let figures = format!("127.0.0.1:{}", port::free()?);
        env.push(("GITOPS_RUNTIME_SERVE__METRICS_ADDRESS".to_owned(), figures.clone()));
        let mut process = Process::start(&Start {
            program: program.to_path_buf(),
            args: ["platform", "--listen", "127.0.0.1:0"].map(Into::into).to_vec(),
            env,
            directory: folder.path().to_path_buf(),
        })?;
        let address = process.address(PATIENCE).await?;
        let client = local_client().redirect(reqwest::redirect::Policy::none());
        let client = client.timeout(PATIENCE).build()?;
        let (senders, url) = (Senders { address, token }, format!("http://{address}"));
        let metrics = format!("http://{figures}/metrics");
        Ok(Self { process, client, senders, url, metrics, folder })
    }

    /// Those who report to it.
    pub(super) const fn senders(&self) -> &Senders {
        &self.senders
    }

    /// Its address.
    pub(super) fn url(&self) -> &str {
        &self.url
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
        self.folder.path().join("platform.db")
    }

    /// The rest of the line of its log that begins so, once that is there.
    pub(super) async fn says(&self, begin: &str) -> anyhow::Result<String> {
        self.process.lines().rest_of(begin).await
    }

    /// Sends all, from all senders, each the next as soon as one is acknowledged; how long all took.
    pub(super) async fn take(&self, bodies: &[Body]) -> anyhow::Result<Duration> {
        self.senders.requests(bodies).at_once().await
    }

    /// The memory that it has now, in bytes.
    pub(super) fn resident(&self) -> anyhow::Result<u64> {
        self.process.resident().context("the platform has ended")
    }

    /// Asks for a shard's digest, which is another one.
    pub(super) async fn compare(&self, shard: u32, shards: u32) -> anyhow::Result<()> {
        let asked =
            json!({"shard": shard, "shards": shards, "applications": 1, "entities": 1, "digest": "0"});
        let request = self.client.post(format!("{}/2.0/api/events/digest", self.url));
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
        let id = self.process.id().context("the platform has ended")?;
        memory_of(id, "VmHWM:").context("read its memory")
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        let ended = self.process.stop(PATIENCE).await?;
        ensure!(ended.success(), "the platform ended with {ended}");
        Ok(())
    }
}
