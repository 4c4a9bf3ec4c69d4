//! Who is measured: this product, or any reporter that is given by its command line.

mod command;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::scenario::Scenario;
use command::Started;
pub(super) use command::{Command, HELP};
use loadtest_sim::nats::NatsServer;
use loadtest_sim::reporter::{Figures, Metrics, REDACTION_KEY, Reporter, Usage, merge};
use loadtest_sim::{PATIENCE, Simulation, local_client, until};

/// Between two looks while something is waited for.
const LOOK: Duration = Duration::from_millis(50);
/// A reporter that tells nothing of itself has settled when it has sent nothing for so long.
const QUIET: Duration = Duration::from_secs(2);
/// How long a process may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// Who is measured.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    /// This product's binary.
    Own(PathBuf),
    /// Another one.
    Given(Command),
}

impl Subject {
    /// What it is called in tables.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Own(_) => format!("gitops-runtime {}", env!("CARGO_PKG_VERSION")),
            Self::Given(command) => command.text.clone(),
        }
    }

    /// Starts as many processes as the scenario says.
    pub(super) async fn start(
        &self,
        simulation: &Simulation,
        scenario: &Scenario,
    ) -> anyhow::Result<Running> {
        let mut members = Vec::new();
        let nats = if scenario.bus { Some(NatsServer::start().await?) } else { None };
        for replica in 0..scenario.replicas {
            let directory = simulation.directory().join(format!("state-{replica}"));
            std::fs::create_dir(&directory).context("make a folder for the reporter's state")?;
            members.push(match self {
                Self::Own(program) => {
                    let settings = settings(simulation, scenario, replica, &directory)?;
                    let file = directory.join("config.yaml");
                    // JSON is YAML.
                    std::fs::write(&file, format!("{settings:#}\n")).context("write the settings")?;
                    let environment = [
                        ("GITOPS_RUNTIME_CONFIG", file.display().to_string()),
                        ("HOSTNAME", format!("replica-{replica}")),
                    ];
                    let environment = environment.map(|(name, value)| (name.to_owned(), value)).to_vec();
                    let bus = nats.as_ref().map(|nats| ["--bus".into(), nats.url().into()]);
                    let arguments = bus.into_iter().flatten().collect();
                    let folder = simulation.directory();
                    Member::Own(Reporter::launch(program, arguments, environment, folder).await?)
                }
                Self::Given(command) => {
                    let place = command.place(simulation, replica, scenario.replicas, &directory)?;
                    Member::Given { started: command.start(&place)?, port: place.port }
                }
            });
        }
        let client = local_client().timeout(PATIENCE).build().context("make a client")?;
        Ok(Running { members, client, nats })
    }
}

/// The settings of one process of this product.
fn settings(
    simulation: &Simulation,
    scenario: &Scenario,
    replica: u32,
    directory: &Path,
) -> anyhow::Result<Value> {
    let mut settings = simulation.settings().clone();
    merge(&mut settings, &Reporter::settings());
    merge(&mut settings, &json!({"state": {"directory": directory.to_str().context("name a folder")?}}));
    if scenario.bus {
        let key = simulation.directory().join("redaction-key");
        std::fs::write(&key, REDACTION_KEY).context("write the key of the replicas")?;
        merge(&mut settings, &json!({"redaction": {"keyFile": key.display().to_string()}}));
    } else if scenario.replicas > 1 {
        let sharding = json!({"shards": scenario.replicas, "shard": replica.to_string()});
        merge(&mut settings, &json!({"reporter": {"sharding": sharding}}));
    }
    merge(&mut settings, &Value::Object(scenario.settings.clone()));
    Ok(settings)
}

/// The processes that are measured. Dropping it ends them.
pub(super) struct Running {
    members: Vec<Member>,
    client: reqwest::Client,
    nats: Option<NatsServer>,
}

enum Member {
    Own(Reporter),
    Given { started: Started, port: u16 },
}

/// What the processes tell of themselves, if they do.
pub(super) struct Told {
    /// Every shard of every process.
    pub(super) shards: Vec<Figures>,
}

impl Told {
    /// Nothing is held and nothing is to be read again.
    pub(super) fn idle(&self) -> bool {
        self.shards.iter().all(Figures::idle)
    }

    /// Events taken in.
    pub(super) fn observed(&self) -> u64 {
        self.shards.iter().map(|shard| shard.observed).sum()
    }
}

impl Running {
    /// What the kernel knows of all processes together.
    pub(super) fn usage(&self) -> anyhow::Result<Usage> {
        self.members.iter().try_fold(Usage::default(), |sum, member| Ok(sum.plus(member.usage()?)))
    }

    /// What they tell of themselves; `None` of another reporter.
    pub(super) async fn told(&self) -> anyhow::Result<Option<Told>> {
        let mut shards = Vec::new();
        for member in &self.members {
            let Member::Own(reporter) = member else { return Ok(None) };
            shards.extend(reporter.status().await?.shards);
        }
        Ok(Some(Told { shards }))
    }

    /// Most samples that one of them exposes; `None` where nothing is served at the port that was given.
    pub(super) async fn series(&self) -> anyhow::Result<Option<usize>> {
        let mut most = None;
        for member in &self.members {
            let metrics = match member {
                Member::Own(reporter) => reporter.metrics().await?,
                Member::Given { port, .. } => {
                    let asked = self.client.get(format!("http://127.0.0.1:{port}/metrics")).send().await;
                    let answer = asked.and_then(reqwest::Response::error_for_status);
                    let Ok(text) = async { answer?.text().await }.await else { continue };
                    Metrics::read(&text)
                }
            };
            most = most.max(Some(metrics.len()).filter(|count| *count > 0));
        }
        Ok(most)
    }

    /// Waits until all of them watch.
    pub(super) async fn ready(&self, simulation: &Simulation, within: Duration) -> anyhow::Result<()> {
        for member in &self.members {
            if let Member::Own(reporter) = member {
                reporter.ready(within).await?;
            }
        }
        // Of those that share a bus one watches for all.
        let watches = if self.nats.is_some() { 1 } else { self.members.len() };
        // One that has ended will watch nothing.
        let look = async || self.usage().map(|_| simulation.kube.open_watches());
        if until(within, LOOK, look, |open| *open >= watches).await? < watches {
            bail!("waited {within:?} in vain for the reporter to watch applications");
        }
        Ok(())
    }

    /// Waits until nothing is worked on any more, or `within` has passed.
    pub(super) async fn settle(&self, simulation: &Simulation, within: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + within;
        let mut last = (0, Instant::now());
        while Instant::now() < deadline {
            self.usage()?;
            let told = self.told().await?;
            let quiet = if told.is_some() { LOOK * 4 } else { QUIET };
            let seen = told.as_ref().map_or_else(|| simulation.platform.totals().posts, Told::observed);
            if seen != last.0 {
                last = (seen, Instant::now());
            }
            if told.is_none_or(|told| told.idle()) && last.1.elapsed() > quiet {
                return Ok(());
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Asks all of them to stop and waits for their end.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        for member in self.members {
            match member {
                Member::Own(reporter) => reporter.stop().await?,
                Member::Given { started, .. } => started.stop(ENDS_WITHIN).await,
            }
        }
        Ok(())
    }
}

impl Member {
    fn usage(&self) -> anyhow::Result<Usage> {
        match self {
            Self::Own(reporter) => reporter.usage(),
            Self::Given { started, .. } => started.usage(),
        }
    }
}
