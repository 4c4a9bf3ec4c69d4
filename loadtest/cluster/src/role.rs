//! A role as a process with an account of its own, which may do what the role prints.
//!
//! takes: the program, a control plane, a folder, settings - gives: the process, and what its account asked for
//! calls: the program for its rights, the API server to grant them - fails: when the program refuses, or does not serve in time

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

use super::argocd::ArgoCd;
use super::audit::{self, Verdict};
use super::control::Control;
use super::objects::Objects;
use loadtest_sim::PATIENCE;
use loadtest_sim::command::printed;
use loadtest_sim::process::{Lines, Process, Start};

/// A role, how it is started, and what it may do.
#[derive(Debug)]
pub(super) struct Role {
    name: &'static str,
    start: Start,
    /// As it printed them.
    rights: String,
    process: Option<Process>,
}

impl Role {
    /// Has the role's rights applied, and an account with them, which is called `own`.
    pub(super) async fn prepare(
        (name, own): (&'static str, &str),
        (program, control, folder): (&Path, &Control, &Path),
        more: Value,
    ) -> anyhow::Result<Self> {
        let directory = folder.join(name);
        tokio::fs::create_dir_all(directory.join("state"))
            .await
            .with_context(|| format!("make a folder for {name}"))?;
        let file = |file: &str| directory.join(file);
        let mut settings = json!({
            "kubernetes": {"kubeconfig": file("kubeconfig"), "namespace": ArgoCd::NAMESPACE},
            "state": {"directory": file("state")},
            "serve": {"address": "127.0.0.1:0", "metricsAddress": ""},
        });
        loadtest_sim::reporter::merge(&mut settings, &more);
        // JSON is YAML.
        write(&file("config.yaml"), &format!("{settings:#}\n")).await?;
        let config = file("config.yaml").display().to_string();
        let account = format!("{}/{own}", ArgoCd::NAMESPACE);
        let mut print = Command::new(program);
        print.args(["rbac", "print", "--role", name, "--config", &config, "--service-account", &account]);
        let act = format!("ask {name} for the rights it needs");
        let rights = printed(print.env_clear(), &act).await?;
        Objects::new(control.client()).apply(&rights, ArgoCd::NAMESPACE).await?;
        let token = control.account(ArgoCd::NAMESPACE, own).await?;
        write(&file("token"), &token).await?;
        control.kubeconfig(own, &token, &file("kubeconfig")).await?;
        let args = [name, "--config", &config].map(OsString::from).to_vec();
        let program = program.canonicalize().context("find the program")?;
        Ok(Self { name, start: Start { program, args, env: Vec::new(), directory }, rights, process: None })
    }

    /// Lays settings over those that it was prepared with: its rights stay as they were granted.
    pub(super) async fn reconfigure(&self, more: &Value) -> anyhow::Result<()> {
        let file = self.directory().join("config.yaml");
        let act = || format!("read {}", file.display());
        let text = tokio::fs::read_to_string(&file).await.with_context(act)?;
        let mut settings = serde_json::from_str(&text).with_context(act)?;
        loadtest_sim::reporter::merge(&mut settings, more);
        write(&file, &format!("{settings:#}\n")).await
    }

    /// As `gitops-runtime` calls it.
    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    /// Where its files are: `token` is that of its account.
    pub(super) fn directory(&self) -> &Path {
        &self.start.directory
    }

    /// Starts it, and gives where it serves.
    pub(super) async fn start(&mut self) -> anyhow::Result<String> {
        let mut process = Process::start(&self.start)?;
        let address = process.address(PATIENCE).await.with_context(|| format!("start {}", self.name))?;
        self.process = Some(process);
        Ok(format!("http://{address}"))
    }

    /// What it logged, while it runs.
    pub(super) fn lines(&self) -> anyhow::Result<Lines> {
        Ok(self.running()?.lines().clone())
    }

    /// Kills it (SIGKILL).
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        let process = self.process.take().with_context(|| format!("{} is down", self.name))?;
        process.kill().await.with_context(|| format!("kill {}", self.name))
    }

    fn running(&self) -> anyhow::Result<&Process> {
        self.process.as_ref().with_context(|| format!("{} is down", self.name))
    }

    /// Keeps its log in its folder, and ends it.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        let process = self.process.take().with_context(|| format!("{} is down", self.name))?;
        let lines = process.lines().clone();
        let ended = process.stop(PATIENCE).await;
        write(&self.directory().join("log"), &lines.all().join("\n")).await?;
        let ended = ended.with_context(|| format!("stop {}", self.name))?;
        ensure!(ended.success(), "{} ended with {ended}", self.name);
        Ok(())
    }

    /// What its account asked for.
    pub(super) async fn asked(&self, control: &Control) -> anyhow::Result<Verdict> {
        let log = tokio::fs::read_to_string(control.audit_log()).await.context("read the audit log")?;
        audit::verdict(&log, &audit::user(&self.rights)?, &audit::granted(&self.rights)?)
    }
}

/// Writes a file of a role.
pub(super) async fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    tokio::fs::write(path, text).await.with_context(|| format!("write {}", path.display()))
}

/// The resources of which a log says something that begins so, each time.
pub(super) fn said_of(log: &Lines, what: &str) -> Vec<String> {
    let said = |line: String| {
        let line: Value = serde_json::from_str(&line).ok()?;
        let fields = line.get("fields").unwrap_or(&line);
        let is_it = fields["message"].as_str()?.starts_with(what);
        is_it.then(|| fields["resource"].as_str().map(str::to_owned))?
    };
    log.all().into_iter().filter_map(said).collect()
}
