//! The real binary as a reporter of a simulation: started against the simulators, looked at through the pages
//! it serves and what the kernel knows of it, and stopped.

mod metrics;
#[cfg(test)]
mod tests;
mod usage;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::{Value, json};

pub use metrics::Metrics;
pub use usage::{Usage, memory_of, of_this_thread};

use crate::Simulation;
use crate::process::{Process, Start};
use crate::{PATIENCE, local_client, until};

/// The redaction key of whoever must redact alike: replicas, recorded runs and their replays.
pub const REDACTION_KEY: &str = "5265636f7264696e677320686f6c64206e6f7468696e6720736563726574212121";

/// How often a page is asked for while something is waited for.
const LOOK: Duration = Duration::from_millis(50);

/// A running reporter.
#[derive(Debug)]
pub struct Reporter {
    process: Process,
    url: String,
    client: reqwest::Client,
}

/// `/status`, as far as it is read.
#[derive(Debug, Clone, Deserialize)]
pub struct Status {
    /// The first list is complete and every shard runs.
    pub ready: bool,
    /// The sink's circuit.
    pub circuit: Circuit,
    /// All shards together.
    pub total: Figures,
    /// Each shard.
    pub shards: Vec<Figures>,
}

/// The sink's circuit.
#[derive(Debug, Clone, Deserialize)]
pub struct Circuit {
    /// `closed`, `open` or `probing`.
    pub state: String,
}

/// What a shard did and holds, of one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Which shard; 0 for the sum.
    pub shard: u32,
    /// Events taken in, re-reads included.
    pub observed: u64,
    /// Events whose reports were all acknowledged.
    pub acked: u64,
    /// Events whose state was folded into a newer one.
    pub coalesced: u64,
    /// Events that brought no report.
    pub filtered: u64,
    /// Events refused for good.
    pub parked: u64,
    /// Events that may start.
    pub queued: u64,
    /// Events that wait for a retry or the rate limit.
    pub waiting: u64,
    /// Events whose attempt is running.
    pub in_flight: u64,
    /// Applications to be read again.
    pub dirty: u64,
    /// Applications being read.
    pub reading: u64,
    /// Events that a full queue turned into a mark.
    pub overflowed: u64,
    /// Attempts and reads that are tried again.
    pub retried: u64,
    /// Reads of marked applications.
    pub reads: u64,
}

impl Figures {
    /// What is missing (positive) or counted twice (negative) in
    /// `observed = acked + coalesced + filtered + parked + queued + waiting + in flight`; computed here, not
    /// taken from the reporter.
    #[must_use]
    pub fn balance(&self) -> i64 {
        let parts = self.acked
            + self.coalesced
            + self.filtered
            + self.parked
            + self.queued
            + self.waiting
            + self.in_flight;
        self.observed.cast_signed() - parts.cast_signed()
    }

    /// Nothing is held and nothing is to be read again.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.queued + self.waiting + self.in_flight + self.dirty + self.reading == 0
    }
}

impl Reporter {
    /// Starts `program` against the simulators; `more` are settings over those of the simulation. Waits until it
    /// serves.
    pub async fn start(program: &Path, simulation: &Simulation, more: &Value) -> anyhow::Result<Self> {
        Self::start_as("reporter", program, simulation, more).await
    }

    /// The same in the role that reports objects of other kinds.
    pub async fn start_of_resources(
        program: &Path,
        simulation: &Simulation,
        more: &Value,
    ) -> anyhow::Result<Self> {
        Self::start_as("resource-reporter", program, simulation, more).await
    }

    async fn start_as(
        role: &str,
        program: &Path,
        simulation: &Simulation,
        more: &Value,
    ) -> anyhow::Result<Self> {
        let mut settings = Self::settings();
        merge(&mut settings, more);
        let environment = simulation.environment(&settings)?;
        Self::run(program, vec![role.into()], environment, simulation.directory()).await
    }

    /// What is set for every reporter, whatever it is pointed at.
    #[must_use]
    pub fn settings() -> Value {
        json!({
            "serve": {"address": "127.0.0.1:0", "metricsAddress": ""},
            "reporter": {"sink": {"kind": "platform"}},
        })
    }

    /// Starts `program reporter` in a folder, with settings that further arguments or `environment` point it to, and waits
    /// until it reports.
    pub async fn launch(
        program: &Path,
        more: Vec<OsString>,
        environment: Vec<(String, String)>,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let args = [OsString::from("reporter")].into_iter().chain(more).collect();
        Self::run(program, args, environment, directory).await
    }

    /// Starts one of several that report of a simulation: in a folder of its name below `folder`, with `settings` but for what is its
    /// own, and on this bus, if there is one.
    pub async fn replica(
        program: &Path,
        folder: &Path,
        name: &str,
        settings: &Value,
        bus: Option<String>,
    ) -> anyhow::Result<Self> {
        let directory = folder.join(name);
        std::fs::create_dir_all(&directory).context("make a folder for a replica")?;
        let mut own = json!({"state": {"directory": &directory}});
        if bus.is_some() {
            let key = directory.join("redaction-key");
            std::fs::write(&key, REDACTION_KEY).context("write the key of a replica")?;
            merge(&mut own, &json!({"redaction": {"keyFile": key}}));
        }
        let mut all = settings.clone();
        merge(&mut all, &own);
        let file = directory.join("config.yaml");
        // JSON is YAML.
        std::fs::write(&file, format!("{all:#}\n")).context("write the settings of a replica")?;
        let mut args = vec!["--config".into(), file.into_os_string()];
        args.extend(bus.into_iter().flat_map(|url| ["--bus".to_owned(), url].map(OsString::from)));
        let environment = vec![("HOSTNAME".to_owned(), name.to_owned())];
        let started = Self::launch(program, args, environment, &directory).await;
        started.with_context(|| format!("start {name}"))
    }

    async fn run(
        program: &Path,
        args: Vec<OsString>,
        environment: Vec<(String, String)>,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        // It runs in another folder than this program.
        let program = program.canonicalize().with_context(|| format!("find {}", program.display()))?;
        let mut process =
            Process::start(&Start { program, args, env: environment, directory: directory.to_path_buf() })?;
        let address = process.address(PATIENCE).await?;
        // It serves before it reports.
        process.says("\"reporting\"", PATIENCE).await?;
        let client = local_client().timeout(PATIENCE).build().context("make a client")?;
        Ok(Self { process, url: format!("http://{address}"), client })
    }

    /// Where it serves, as `http://127.0.0.1:1234`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The process itself.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// What it says of itself.
    pub async fn status(&self) -> anyhow::Result<Status> {
        let answer = self.page("/status").await?;
        serde_json::from_str(&answer).context("read /status")
    }

    /// Its metrics.
    pub async fn metrics(&self) -> anyhow::Result<Metrics> {
        Ok(Metrics::read(&self.page("/metrics").await?))
    }

    /// Waits until the first list is complete and every shard runs.
    pub async fn ready(&self, within: Duration) -> anyhow::Result<()> {
        self.wait(within, "the reporter to be ready", |status| status.ready).await.map(drop)
    }

    /// Waits until `done` says so of its status.
    pub async fn wait(
        &self,
        within: Duration,
        what: &str,
        done: impl Fn(&Status) -> bool,
    ) -> anyhow::Result<Status> {
        let status = until(within, LOOK, async || self.status().await, &done).await?;
        if !done(&status) {
            bail!("waited {within:?} for {what} in vain: {:?}", status.total);
        }
        Ok(status)
    }

    /// What the kernel knows of it.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        let read = || Usage::of(self.process.id()?);
        read().with_context(|| {
            format!("the reporter has ended; the end of its log:\n{}", self.process.lines().end())
        })
    }

    /// Kills it (SIGKILL) in this instant, and waits for its end.
    pub async fn kill(self) -> anyhow::Result<()> {
        self.process.kill().await
    }

    /// Asks it to stop and waits for its end.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.process.stop_cleanly("the reporter").await
    }

    /// A page as it is served with success, such as `/metrics`.
    pub async fn page(&self, page: &str) -> anyhow::Result<String> {
        let answer = self.client.get(format!("{}{page}", self.url)).send().await;
        let text = async { answer?.error_for_status()?.text().await };
        match text.await {
            Ok(text) => Ok(text),
            Err(error) => {
                // A process that ended says more than a connection that was refused.
                self.usage()?;
                Err(error).with_context(|| format!("ask the reporter for {page}"))
            }
        }
    }
}

/// Lays settings over others.
pub fn merge(base: &mut Value, more: &Value) {
    match (base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (name, value) in more {
                merge(base.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (base, more) => *base = more.clone(),
    }
}
