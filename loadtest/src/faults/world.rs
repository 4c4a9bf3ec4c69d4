//! The simulated peers, the real binary before them, the load and the witness: what every fault needs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use super::Setting;
use super::load::Load;
use super::outcome::Outcome;
use super::truth::{self, Missing};
use super::witness::Witness;
use crate::reporter::Reporter;
use crate::sim::generate::Shape;
use crate::sim::platform::Keep;
use crate::sim::{Load as Served, Setup, Simulation};

/// How long the binary may take until it is ready.
pub(super) const READY: Duration = Duration::from_secs(60);
/// What the log says of a panic, before and after it is set up.
const PANICS: [&str; 2] = ["panicked at", "a panic: this is a bug"];
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
    panics: Vec<String>,
}

impl World {
    /// Starts the simulators with every application in them; the binary is not started yet.
    ///
    /// # Errors
    /// When a simulator cannot be started.
    pub(super) async fn new(setting: &Setting, scene: Scene) -> anyhow::Result<Self> {
        let simulation = Simulation::start(Setup {
            load: Served::Generated(Shape {
                applications: scene.applications,
                resources: scene.resources,
                application_bytes: 2_000,
                resource_bytes: 1_000,
                seed: setting.seed,
                ..Shape::default()
            }),
            argocd_latency: scene.argocd_latency,
            platform_latency: scene.platform_latency,
            history: 200_000,
            keep: Keep { last: scene.facts, reports: 0 },
            ..Setup::default()
        })
        .await?;
        simulation.populate()?;
        let witness = Witness::at(&simulation.platform);
        let load = Load::new(&simulation, &witness, setting.seed)?;
        let binary = Binary {
            program: setting.program.clone(),
            settings: scene.settings,
            reporter: None,
            peak: 0,
            panics: Vec::new(),
        };
        Ok(Self { simulation, witness, load, binary })
    }

    /// The same, with the binary started and every application reported.
    ///
    /// # Errors
    /// When something cannot be started, or the first reports do not come.
    pub(super) async fn settled(setting: &Setting, scene: Scene) -> anyhow::Result<Self> {
        let mut world = Self::new(setting, scene).await?;
        world.start().await?;
        let missing = world.known(Duration::from_secs(120)).await?;
        if let Some(first) = missing.told.first() {
            anyhow::bail!("the first reports did not come, {} of them: {first}", missing.count);
        }
        Ok(world)
    }

    /// Starts the binary and waits until it is ready.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) async fn start(&mut self) -> anyhow::Result<()> {
        self.binary.start(&self.simulation).await?;
        self.binary.reporter()?.ready(READY).await
    }

    /// How many reports and repetitions the platform got.
    pub(super) fn posts(&self) -> u64 {
        self.witness.lock().received
    }

    /// Kills the binary in this instant, as the witness notes.
    ///
    /// # Errors
    /// When it does not run.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        self.binary.kill(&self.witness).await
    }

    /// Waits until the binary holds nothing and the platform knows everything; gives what it does not know when
    /// `within` is over.
    ///
    /// # Errors
    /// When the binary does not answer.
    pub(super) async fn known(&mut self, within: Duration) -> anyhow::Result<Missing> {
        self.all_known(None, within).await
    }

    async fn all_known(&mut self, spared: Option<&str>, within: Duration) -> anyhow::Result<Missing> {
        let deadline = Instant::now() + within;
        loop {
            let idle = self.binary.reporter()?.status().await?.total.idle();
            let over = Instant::now() >= deadline;
            if idle || over {
                let missing = truth::missing(&self.simulation, &self.witness, &self.load, spared)?;
                if missing.count == 0 || over {
                    self.binary.look();
                    return Ok(missing);
                }
            }
            sleep(LOOK).await;
        }
    }

    /// The same, but nothing is asked of the application `spared`.
    ///
    /// # Errors
    /// When the binary does not answer.
    pub(super) async fn known_but(&mut self, spared: &str, within: Duration) -> anyhow::Result<Missing> {
        self.all_known(Some(spared), within).await
    }

    /// Waits as [`Self::known`] and a little longer, and fills in what was lost, repeated and out of order, and how
    /// long it took from `since`.
    ///
    /// # Errors
    /// When the binary does not answer.
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
        outcome.lost += missing.count;
        outcome.wrong.extend(missing.told);
        let suspect = self.witness.lock().suspect.take();
        if let Some(name) = &suspect {
            outcome.wrong.push(format!("{name}: {}", self.witness.story(name)));
        }
        if let Some(name) = missing.names.first().or(suspect.as_ref()) {
            outcome.wrong.push(self.binary.explain(&self.simulation, name).await);
        }
        outcome.changes += self.load.changes;
        let totals = self.simulation.platform.totals();
        outcome.demand(totals.without_key + totals.malformed == 0, || {
            format!("{} reports without a key, {} malformed", totals.without_key, totals.malformed)
        });
        let mut seen = self.witness.lock();
        outcome.duplicated += seen.duplicates;
        outcome.beyond += seen.beyond;
        outcome.out_of_order += seen.out_of_order;
        outcome.wrong.append(&mut seen.told);
        outcome.peak = outcome.peak.max(self.binary.peak);
        outcome.wrong.append(&mut self.binary.panics);
        Ok(())
    }

    /// Ends everything in order.
    ///
    /// # Errors
    /// When the binary does not end with success.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        self.binary.stop().await?;
        self.simulation.stop().await
    }
}

impl Binary {
    /// Starts it on the same state and waits until it serves.
    ///
    /// # Errors
    /// When it does not serve.
    pub(super) async fn start(&mut self, simulation: &Simulation) -> anyhow::Result<()> {
        self.reporter = Some(Reporter::start(&self.program, simulation, &self.settings).await?);
        Ok(())
    }

    /// The running one.
    ///
    /// # Errors
    /// When none runs.
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
        let lines = reporter.process().lines().all();
        let is_panic = |line: &&String| PANICS.iter().any(|panic| line.contains(panic));
        let panicked = lines.iter().find(is_panic);
        if let Some(line) = panicked.filter(|line| !self.panics.contains(line)) {
            self.panics.push(line.clone());
        }
    }

    /// Lines that it has logged since its last start and that hold `text`.
    pub(super) fn said(&self, text: &str) -> Vec<String> {
        let lines = self.reporter.as_ref().map(|reporter| reporter.process().lines().all());
        lines.unwrap_or_default().into_iter().filter(|line| line.contains(text)).collect()
    }

    /// What it says itself of an application.
    async fn explain(&self, simulation: &Simulation, name: &str) -> String {
        let mut explain = Command::new(&self.program);
        explain.args(["explain", name, "--state"]).arg(simulation.directory().join("state"));
        match explain.output().await {
            Ok(said) => String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).trim().to_owned(),
            Err(error) => format!("{name}: it cannot be asked to explain it: {error}"),
        }
    }

    /// Kills it in this instant.
    ///
    /// # Errors
    /// When none runs.
    pub(super) async fn kill(&mut self, witness: &Witness) -> anyhow::Result<()> {
        self.look();
        let reporter = self.reporter.take().context("the binary does not run")?;
        witness.killed();
        reporter.strike().await
    }

    /// Asks it to stop.
    ///
    /// # Errors
    /// When it does not end with success.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        self.look();
        match self.reporter.take() {
            Some(reporter) => reporter.stop().await,
            None => Ok(()),
        }
    }
}

/// The mean of some numbers; 0 of none.
pub(super) fn mean(numbers: &[f64]) -> f64 {
    if numbers.is_empty() { 0.0 } else { numbers.iter().sum::<f64>() / numbers.len() as f64 }
}

/// A time for people.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests;
