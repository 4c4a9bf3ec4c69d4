//! Who is measured: as many processes of the reporter as a scenario says.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::scenario::Scenario;
use loadtest_sim::nats::NatsServer;
use loadtest_sim::reporter::{Figures, Reporter, Usage, merge};
use loadtest_sim::{Simulation, until};

/// Between two looks while something is waited for.
const LOOK: Duration = Duration::from_millis(50);

/// What it is called in tables.
pub(super) fn name() -> String {
    format!("gitops-runtime {}", env!("CARGO_PKG_VERSION"))
}

/// Starts as many processes as the scenario says.
pub(super) async fn start(
    program: &Path,
    simulation: &Simulation,
    scenario: &Scenario,
) -> anyhow::Result<Running> {
    let nats = if scenario.bus { Some(NatsServer::start().await?) } else { None };
    let mut settings = simulation.settings().clone();
    merge(&mut settings, &Reporter::settings());
    merge(&mut settings, &Value::Object(scenario.settings.clone()));
    let mut members = Vec::new();
    for replica in 0..scenario.replicas {
        let (name, bus) = (format!("replica-{replica}"), nats.as_ref().map(NatsServer::url));
        members.push(Reporter::replica(program, simulation.directory(), &name, &settings, bus).await?);
    }
    Ok(Running { members, nats })
}

/// The processes that are measured. Dropping it ends them.
pub(super) struct Running {
    members: Vec<Reporter>,
    nats: Option<NatsServer>,
}

/// What the processes tell of themselves.
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

    /// What they tell of themselves.
    pub(super) async fn told(&self) -> anyhow::Result<Told> {
        let mut shards = Vec::new();
        for member in &self.members {
            shards.extend(member.status().await?.shards);
        }
        Ok(Told { shards })
    }

    /// How many events ended without a report: nothing in them was new, or a later one of the same object stands for them.
    pub(super) async fn exits(&self) -> anyhow::Result<u64> {
        let of = |shard: &Figures| shard.filtered + shard.coalesced;
        Ok(self.told().await?.shards.iter().map(of).sum())
    }

    /// Most samples that one of them exposes.
    pub(super) async fn series(&self) -> anyhow::Result<usize> {
        let mut most = 0;
        for member in &self.members {
            most = most.max(member.metrics().await?.len());
        }
        Ok(most)
    }

    /// Waits until all of them watch.
    pub(super) async fn ready(&self, simulation: &Simulation, within: Duration) -> anyhow::Result<()> {
        for member in &self.members {
            member.ready(within).await?;
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
    pub(super) async fn settle(&self, within: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + within;
        let mut last = (0, Instant::now());
        while Instant::now() < deadline {
            let told = self.told().await?;
            if told.observed() != last.0 {
                last = (told.observed(), Instant::now());
            }
            if told.idle() && last.1.elapsed() > LOOK * 4 {
                return Ok(());
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Asks all of them to stop and waits for their end.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        for member in self.members {
            member.stop().await?;
        }
        Ok(())
    }
}
