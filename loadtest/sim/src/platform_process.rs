//! The real binary as a platform: started on what the one before it has left in its folder, killed, and stopped.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::process::Command;

use crate::PATIENCE;
use crate::command::printed;
use crate::process::{Lines, Process, Start};

/// A running platform.
#[derive(Debug)]
pub struct PlatformProcess {
    process: Process,
    program: PathBuf,
    settings: Vec<String>,
    state: PathBuf,
    url: String,
}

impl PlatformProcess {
    /// Starts it on embedded defaults and waits until it receives reports; its store is in `folder`, and stays there.
    pub async fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        Self::with(program, folder, vec!["serve.metricsAddress=".to_owned()]).await
    }

    /// The same with settings, each as `path=value`.
    pub async fn with(program: &Path, folder: &Path, settings: Vec<String>) -> anyhow::Result<Self> {
        let program = program.canonicalize().with_context(|| format!("find {}", program.display()))?;
        let folder = folder.canonicalize().with_context(|| format!("find {}", folder.display()))?;
        let state = folder.join("platform");
        let args = ["platform", "--listen", "127.0.0.1:0", "--state"].map(OsStr::new);
        let args = args.into_iter().chain([state.as_os_str()]);
        let mut process = Process::start(&Start::with_settings(&program, args, &settings, folder))?;
        let url = format!("http://{}", process.address(PATIENCE).await?);
        process.says("receiving reports", PATIENCE).await?;
        Ok(Self { process, program, settings, state, url })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The process itself.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Its log.
    #[must_use]
    pub fn lines(&self) -> &Lines {
        self.process.lines()
    }

    /// The folder of its store, unless that is on Postgres.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Makes a token by which a runtime reports.
    pub async fn token(&self, runtime: &str) -> anyhow::Result<String> {
        let mut command = Command::new(&self.program);
        command.args(["platform", "token", "create", "--runtime", runtime, "--state"]).arg(&self.state);
        command.args(self.settings.iter().flat_map(|setting| ["--set", setting]));
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
        self.process.stop_cleanly("the platform").await
    }
}
