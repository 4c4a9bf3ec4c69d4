//! The simulated peers, the real binary before them, the load and the witness: what every fault needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::Setting;
use super::load::{Load, generated, small};
use loadtest_judge::outcome::{Counts, Outcome};
use loadtest_judge::truth::{self, Missing};
use loadtest_judge::witness::Witness;
use loadtest_sim::Simulation;
use loadtest_sim::platform::Keep;
use loadtest_sim::process;
use loadtest_sim::reporter::{Reporter, Status};
use loadtest_sim::{PATIENCE, until};

/// How long an answer may take into the ledger on such a machine; the long form knows better.
const COMMITTED_WITHIN: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// So long nothing more may come once everything is known.
const QUIET: Duration = Duration::from_millis(400);

/// What is simulated.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) applications: u32,
    pub(super) resources: u32,
    pub(super) argocd_latency: Duration,
    pub(super) platform_latency: Duration,
    /// The platform keeps last payloads, so that facts can be compared.
    pub(super) facts: bool,
    pub(super) settings: Value,
}

impl Scene {
    pub(super) fn new(applications: u32, resources: u32) -> Self {
        Self {
            applications,
            resources,
            argocd_latency: Duration::from_millis(2),
            platform_latency: Duration::from_millis(5),
            facts: true,
            settings: json!({}),
        }
    }
}

/// Everything that runs.
#[derive(Debug)]
pub(super) struct World {
    pub(super) simulation: Simulation,
    pub(super) witness: Witness,
    pub(super) load: Load,
    pub(super) binary: Binary,
}

/// The real binary, started as often as needed on the same state.
#[derive(Debug)]
pub(super) struct Binary {
    program: PathBuf,
    settings: Value,
    reporter: Option<Reporter>,
    pub(super) peak: u64,
    /// Lines of a panic in its log.
    panics: BTreeSet<String>,
}

impl World {
    /// Starts the simulators with every application in them; the binary is not started yet.
    pub(super) async fn new(setting: &Setting, scene: Scene) -> anyhow::Result<Self> {
        let shape = small(scene.applications, scene.resources, setting.seed);
        let latencies = [scene.argocd_latency, scene.platform_latency];
        let keep = Keep { last: scene.facts, reports: 0 };
        let (simulation, witness, load) = generated(shape, latencies, keep).await?;
        if !setting.long {
            witness.lock().commit = Some(COMMITTED_WITHIN);
        }
        let binary = Binary {
            program: setting.program.clone(),
            settings: scene.settings,
            reporter: None,
            peak: 0,
            panics: BTreeSet::new(),
        };
        Ok(Self { simulation, witness, load, binary })
    }

    /// The same, with the binary started and every application reported.
    pub(super) async fn settled(setting: &Setting, scene: Scene) -> anyhow::Result<Self> {
        let mut world = Self::new(setting, scene).await?;
        world.start().await?;
        let missing = world.known(PATIENCE).await?;
        if let Some(first) = missing.told.first() {
            anyhow::bail!("the first reports did not come, {} of them: {first}", missing.count);
        }
        Ok(world)
    }

    /// Starts the binary and waits until it is ready.
    pub(super) async fn start(&mut self) -> anyhow::Result<()> {
        self.binary.start(&self.simulation).await?;
        self.binary.reporter()?.ready(PATIENCE).await
    }

    /// Waits until nothing is left that the ledger has yet to hold.
    pub(super) async fn committed(&self) -> anyhow::Result<()> {
        let look = async || {
            let page = self.binary.reporter()?.page("/status").await?;
            let status: Value = serde_json::from_str(&page).context("read /status")?;
            Ok(status.pointer("/ledger/waiting") == Some(&json!(0)))
        };
        let is_held = until(PATIENCE, LOOK, look, |is_held| *is_held).await?;
        anyhow::ensure!(is_held, "the ledger does not hold everything within {PATIENCE:?}");
        Ok(())
    }

    /// Waits until every application that is there was looked at since the last start, and nothing is held.
    pub(super) async fn looked_at(&self) -> anyhow::Result<()> {
        let fleet = self.simulation.fleet.as_ref().context("the simulation generates no applications")?;
        let there = fleet.snapshot().iter().filter(|state| !state.gone).count() as u64;
        let is_over = |status: &Status| status.total.idle() && status.total.observed >= there;
        self.binary.reporter()?.wait(PATIENCE, "every application to be looked at", is_over).await.map(drop)
    }

    /// Kills it once the ledger holds everything, and starts it again: not one report may come of that. Nothing changes
    /// meanwhile, and every change was reported before.
    pub(super) async fn restart_in_silence(&mut self, outcome: &mut Outcome) -> anyhow::Result<()> {
        self.committed().await?;
        let before = self.posts();
        self.kill().await?;
        self.start().await?;
        self.looked_at().await?;
        sleep(QUIET).await;
        let sent = self.posts() - before;
        outcome.beyond += sent;
        outcome.demand(sent == 0, || {
            format!("{sent} reports came after a kill, although the ledger held everything")
        });
        Ok(())
    }

    /// How many reports and repetitions the platform got.
    pub(super) fn posts(&self) -> u64 {
        self.witness.lock().received
    }

    /// Kills the binary in this instant, as the witness notes.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        self.binary.kill(&self.witness).await
    }

    /// Waits until the binary holds nothing and the platform knows everything; gives what it does not know when
    /// `within` is over.
    pub(super) async fn known(&mut self, within: Duration) -> anyhow::Result<Missing> {
        self.all_known(None, within).await
    }

    async fn all_known(&mut self, spared: Option<&str>, within: Duration) -> anyhow::Result<Missing> {
        let deadline = Instant::now() + within;
        loop {
            let idle = self.binary.reporter()?.status().await?.total.idle();
            let over = Instant::now() >= deadline;
            if idle || over {
                let missing = truth::missing(&self.simulation, &self.witness, &self.load.ended, spared)?;
                if missing.count == 0 || over {
                    self.binary.look();
                    return Ok(missing);
                }
            }
            sleep(LOOK).await;
        }
    }

    /// The same, but nothing is asked of the application `spared`.
    pub(super) async fn known_but(&mut self, spared: &str, within: Duration) -> anyhow::Result<Missing> {
        self.all_known(Some(spared), within).await
    }

    /// Waits as [`Self::known`] and a little longer, and fills in what was lost, repeated and out of order, and how
    /// long it took from `since`.
    pub(super) async fn verdict(
        &mut self,
        outcome: &mut Outcome,
        since: Option<Instant>,
        within: Duration,
    ) -> anyhow::Result<()> {
        let missing = self.known(within).await?;
        outcome.drain = since.map(|since| since.elapsed());
        sleep(QUIET).await;
        self.binary.look();
        outcome.changes += self.load.changes;
        let counts = Counts::of(&self.witness, &self.simulation.platform);
        if let Some(name) = outcome.judge(counts, missing, &self.witness) {
            let state = self.simulation.directory().join("state");
            outcome.wrong.push(process::explain(self.binary.program(), &name, &state).await);
        }
        outcome.peak = outcome.peak.max(self.binary.peak);
        outcome.wrong.extend(std::mem::take(&mut self.binary.panics));
        Ok(())
    }

    /// Ends everything in order.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        self.binary.stop().await?;
        self.simulation.stop().await
    }
}

impl Binary {
    /// Starts it on the same state and waits until it serves.
    pub(super) async fn start(&mut self, simulation: &Simulation) -> anyhow::Result<()> {
        self.reporter = Some(Reporter::start(&self.program, simulation, &self.settings).await?);
        Ok(())
    }

    /// The running one.
    pub(super) fn reporter(&self) -> anyhow::Result<&Reporter> {
        self.reporter.as_ref().context("the binary does not run")
    }

    /// The program itself.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Notes its memory and whether it panicked.
    pub(super) fn look(&mut self) {
        let Some(reporter) = &self.reporter else { return };
        if let Ok(usage) = reporter.usage() {
            self.peak = self.peak.max(usage.peak);
        }
        self.panics.extend(reporter.process().lines().panics());
    }

    /// Lines that it has logged since its last start and that hold `text`.
    pub(super) fn said(&self, text: &str) -> Vec<String> {
        let lines = self.reporter.as_ref().map(|reporter| reporter.process().lines().all());
        lines.unwrap_or_default().into_iter().filter(|line| line.contains(text)).collect()
    }

    /// Kills it in this instant.
    pub(super) async fn kill(&mut self, witness: &Witness) -> anyhow::Result<()> {
        self.look();
        let reporter = self.reporter.take().context("the binary does not run")?;
        witness.killed();
        reporter.kill().await
    }

    /// Asks it to stop.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        self.look();
        match self.reporter.take() {
            Some(reporter) => reporter.stop().await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
