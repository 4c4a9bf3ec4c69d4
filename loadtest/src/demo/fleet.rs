//! A second runtime, whose generated applications move for as long as somebody looks.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use loadtest_sim::generate::{Mix, Shape};
use loadtest_sim::platform_process::PlatformProcess;
use loadtest_sim::reporter::Reporter;
use loadtest_sim::{Load, Setup, Simulation};
use serde_json::json;

/// What it is called on the platform.
const RUNTIME: &str = "simulated";
/// How many applications it has.
const APPLICATIONS: u32 = 300;
/// Between two changes.
const MOVE: Duration = Duration::from_millis(700);
/// What changes: mostly deployments, and now and then something that needs somebody.
const MIX: Mix = Mix { drift: 2, commit: 2, deploy: 20, health: 1, reconcile: 15 };

/// Its simulators, and the reporter between them and the platform.
pub(super) struct Fleet {
    simulation: Simulation,
    reporter: Reporter,
}

impl Fleet {
    /// Starts it.
    pub(super) async fn start(program: &Path, platform: &PlatformProcess) -> anyhow::Result<Self> {
        let shape = Shape { applications: APPLICATIONS, ..Shape::default() };
        let simulation =
            Simulation::start(Setup { load: Load::Generated(shape), ..Setup::default() }).await?;
        simulation.populate()?;
        let token = simulation.directory().join("console-token");
        std::fs::write(&token, platform.token(RUNTIME).await?).context("write a token")?;
        let platform = json!({"platform": {"url": platform.url(), "tokenFile": token.display().to_string()}});
        let reporter = Reporter::start(program, &simulation, &platform).await?;
        Ok(Self { simulation, reporter })
    }

    /// Lets applications change until it is dropped, or its reporter ends.
    pub(super) async fn moves(&self) -> anyhow::Result<()> {
        let mut chance = fastrand::Rng::with_seed(1);
        let mut next = tokio::time::interval(MOVE);
        loop {
            next.tick().await;
            self.reporter.usage()?;
            self.simulation.change(MIX, &mut chance)?;
        }
    }

    /// Ends it.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.reporter.stop().await?;
        self.simulation.stop().await
    }
}
