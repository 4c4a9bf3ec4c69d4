//! The reporter of a stage: stopped, killed, and started again on what the one before it has left.
//!
//! takes: its program and files - gives: the running process, and all that its processes have logged
//! calls: the binary - fails: when it does not start, does not become ready, or ends by itself

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, anyhow};
use tokio::process::Command;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use crate::scenario::Lifecycle;
use loadtest_sim::PATIENCE;
use loadtest_sim::reporter::Reporter;

/// How the reporter is started, as often as need be.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) environment: Vec<(String, String)>,
    pub(super) directory: PathBuf,
}

/// The reporter, which may be down.
#[derive(Debug)]
pub struct Restart {
    launch: Launch,
    life: Mutex<Life>,
}

#[derive(Debug)]
struct Life {
    running: Option<Reporter>,
    /// What the processes logged that have ended.
    logged: Vec<String>,
}

impl Launch {
    /// Starts it for the first time.
    pub(super) async fn begin(self) -> anyhow::Result<Restart> {
        let running = Some(self.start().await?);
        Ok(Restart { launch: self, life: Mutex::new(Life { running, logged: Vec::new() }) })
    }

    async fn start(&self) -> anyhow::Result<Reporter> {
        let reporter =
            Reporter::launch(&self.program, Vec::new(), self.environment.clone(), &self.directory).await?;
        reporter.ready(PATIENCE).await?;
        Ok(reporter)
    }
}

impl Restart {
    /// The running process; nothing is done to it meanwhile.
    pub async fn running(&self) -> anyhow::Result<MappedMutexGuard<'_, Reporter>> {
        let life = self.life.lock().await;
        MutexGuard::try_map(life, |life| life.running.as_mut()).map_err(|_| anyhow!("the reporter is down"))
    }

    /// Whether it is up.
    pub async fn is_up(&self) -> bool {
        self.life.lock().await.running.is_some()
    }

    /// Does to its process what a step says. When the step is over it has ended, or it has listed.
    pub async fn change(&self, step: Lifecycle) -> anyhow::Result<()> {
        let mut life = self.life.lock().await;
        if step == Lifecycle::Start {
            anyhow::ensure!(life.running.is_none(), "the reporter runs");
            life.running = Some(self.launch.start().await?);
            return Ok(());
        }
        let reporter = life.running.take().context("the reporter is down")?;
        let lines = reporter.process().lines().clone();
        let ended = match step {
            Lifecycle::Stop => reporter.stop().await,
            _ => reporter.kill().await,
        };
        life.logged.extend(lines.all());
        ended
    }

    /// A command of its program that asks the running process.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.launch.program);
        command.env_clear().envs(self.launch.environment.iter().cloned());
        command.current_dir(&self.launch.directory).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// The folder of its files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.launch.directory
    }

    /// All that its processes have logged so far.
    pub async fn logged(&self) -> Vec<String> {
        let life = self.life.lock().await;
        let own = life.running.as_ref().map(|reporter| reporter.process().lines().all());
        life.logged.iter().cloned().chain(own.into_iter().flatten()).collect()
    }
}
