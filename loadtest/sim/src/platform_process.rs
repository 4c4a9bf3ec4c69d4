//! The real binary as a platform: started on what the one before it has left in its folder, killed, and stopped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::PATIENCE;
use crate::command::printed;
use crate::process::{Lines, Process, Start};

/// Between two looks at what it has said.
const LOOK: Duration = Duration::from_millis(50);

/// A running platform on embedded defaults.
#[derive(Debug)]
pub struct PlatformProcess {
    process: Process,
    program: PathBuf,
    state: PathBuf,
    url: String,
}

impl PlatformProcess {
    /// Starts it and waits until it receives reports; its store is in `folder`, and stays there.
    pub async fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
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
        let url = format!("http://{}", process.address(PATIENCE).await?);
        let deadline = Instant::now() + PATIENCE;
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
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its log.
    #[must_use]
    pub fn lines(&self) -> &Lines {
        self.process.lines()
    }

    /// Makes a token by which a runtime reports.
    pub async fn token(&self, runtime: &str) -> anyhow::Result<String> {
        let mut command = Command::new(&self.program);
        command.args(["platform", "token", "create", "--runtime", runtime, "--state"]).arg(&self.state);
        Ok(printed(command.env_clear(), "make a token").await?.trim_end().to_owned())
    }

    /// The command that shows again what it has kept.
    #[must_use]
    pub fn again(&self) -> String {
        format!("{} platform --state {}", self.program.display(), self.state.display())
    }

    /// Kills it (SIGKILL) and waits for its end.
    pub async fn kill(self) -> anyhow::Result<()> {
        self.process.kill().await
    }

    /// Asks it to stop and waits for its end.
    pub async fn stop(self) -> anyhow::Result<()> {
        let status = self.process.stop(PATIENCE).await?;
        if !status.success() {
            bail!("the platform ended with {status}");
        }
        Ok(())
    }
}
