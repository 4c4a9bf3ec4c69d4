//! The roles that run beside Argo CD: each a process with an account of its own, which may do what the role prints.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::Cluster;
use crate::argocd::ArgoCd;
use crate::audit;
use crate::objects::Objects;
use loadtest_judge::screen::say;
use loadtest_sim::process::{Process, Start};

/// It serves, and ends, within this time, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(300);
const REPORTER: &str = "reporter";
/// Its account; those of the others are called as they are.
const ACCOUNT: &str = "event-reporter";
const SOURCES: &str = "source-server";
const CHANGES: &str = "change-revision";
/// The file in its folder that it tells changes to.
const TOLD: &str = "changes.ndjson";
/// Between two looks at that.
const LOOK: Duration = Duration::from_millis(150);

/// A role, how it is started, and what it may do.
struct Role {
    name: &'static str,
    start: Start,
    /// As it printed them.
    rights: String,
    process: Option<Process>,
}

impl Role {
    /// Has the role's rights applied, and an account with them.
    async fn prepare(
        name: &'static str,
        (program, cluster, folder): (&Path, &Cluster, &Path),
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
        let own = if name == REPORTER { ACCOUNT } else { name };
        let account = format!("{}/{own}", ArgoCd::NAMESPACE);
        let printed = Command::new(program)
            .args(["rbac", "print", "--role", name, "--config", &config, "--service-account", &account])
            .env_clear()
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("ask {name} for the rights it needs"))?;
        if !printed.status.success() {
            let said = String::from_utf8_lossy(&printed.stderr);
            bail!("ask {name} for the rights it needs: {}", said.trim());
        }
        let rights = String::from_utf8(printed.stdout).context("read the rights that a role needs")?;
        Objects::new(cluster.control.client()).apply(&rights, ArgoCd::NAMESPACE).await?;
        let token = cluster.control.account(ArgoCd::NAMESPACE, own).await?;
        write(&file("token"), &token).await?;
        cluster.control.kubeconfig(own, &token, &file("kubeconfig")).await?;
        let args = [name, "--config", &config].map(OsString::from).to_vec();
        let program = program.canonicalize().context("find the program")?;
        Ok(Self { name, start: Start { program, args, env: Vec::new(), directory }, rights, process: None })
    }

    /// Starts it, and gives where it serves.
    async fn start(&mut self) -> anyhow::Result<String> {
        let mut process = Process::start(&self.start)?;
        let address = process.address(PATIENCE).await.with_context(|| format!("start {}", self.name))?;
        self.process = Some(process);
        Ok(format!("http://{address}"))
    }

    fn token(&self) -> PathBuf {
        self.start.directory.join("token")
    }

    /// Keeps its log in its folder, and ends it.
    async fn stop(&mut self) -> anyhow::Result<()> {
        let process = self.process.take().with_context(|| format!("{} is down", self.name))?;
        let lines = process.lines().clone();
        let ended = process.stop(PATIENCE).await;
        write(&self.start.directory.join("log"), &lines.all().join("\n")).await?;
        let ended = ended.with_context(|| format!("stop {}", self.name))?;
        ensure!(ended.success(), "{} ended with {ended}", self.name);
        Ok(())
    }

    /// What is wrong with what its account asked for. It writes to an application once for each of so many syncs, and no more
    /// than `again` times what a kill had it write once more.
    fn judged(&self, audit_log: &str, (syncs, again): (usize, usize)) -> anyhow::Result<Vec<String>> {
        let verdict = audit::verdict(audit_log, &audit::user(&self.rights)?, &audit::granted(&self.rights)?)?;
        let first = verdict.to_string();
        say(&format!("{}: {}", self.name, first.lines().next().unwrap_or_default()));
        let written: usize =
            verdict.used.iter().filter(|(right, _)| right.verb == "patch").map(|(_, times)| times).sum();
        let too_often = (written > syncs + again)
            .then(|| format!("it wrote to applications {written} times for {syncs} syncs"));
        // Of an application alone is asked when a queue was full, which the scenarios of `cluster run --all` see to.
        let is_rare =
            |what: &String| what.starts_with("granted and never used: get applications.argoproj.io");
        let none = (verdict.requests == 0).then(|| "the audit log holds no request of it".to_owned());
        let all = verdict.failures.into_iter().filter(|what| !is_rare(what)).chain(none).chain(too_often);
        Ok(all.map(|what| format!("{}: {what}", self.name)).collect())
    }
}

/// All three.
pub(super) struct Roles {
    reporter: Role,
    sources: Role,
    changes: Role,
}

impl Roles {
    /// Starts them: the reporter asks the source server with the token of its account, which a review knows.
    pub(super) async fn start(
        program: &Path,
        cluster: &Cluster,
        (platform, platform_token): (&str, &str),
        repository: &str,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let at = (program, cluster, folder);
        let clones = |name: &str| json!({"files": true, "directory": folder.join(name).join("clones")});
        let settings = json!({"sourceServer": {
            "listen": "127.0.0.1:0",
            "callers": {"accounts": [format!("{}/{ACCOUNT}", ArgoCd::NAMESPACE)]},
            "git": {"allowed": [repository], "repositories": clones(SOURCES)},
        }});
        let mut sources = Role::prepare(SOURCES, at, settings).await?;
        let url = sources.start().await?;
        let settings = json!({
            "reporter": {"sink": {"kind": "file", "file": {"path": folder.join(CHANGES).join(TOLD)}}},
            "changeRevision": {"annotations": true, "repositories": clones(CHANGES)},
        });
        let mut changes = Role::prepare(CHANGES, at, settings).await?;
        changes.start().await?;
        let own = folder.join(REPORTER);
        let settings = json!({
            "argocd": {"url": cluster.argocd.url(), "tokenFile": own.join("argocd-token"), "settingsInterval": "1s"},
            "platform": {"url": platform, "tokenFile": own.join("platform-token")},
            "reporter": {
                "sink": {"kind": "platform"},
                "lanes": {"retry": {"min": "250ms", "max": "2s"}},
                "sources": {"from": "server", "url": url, "tokenFile": own.join("token")},
            },
        });
        let mut reporter = Role::prepare(REPORTER, at, settings).await?;
        write(&own.join("argocd-token"), &cluster.argocd.token(ArgoCd::REPORTER)?).await?;
        write(&own.join("platform-token"), platform_token).await?;
        ensure!(reporter.token() == own.join("token"), "the reporter asks with the token of its account");
        reporter.start().await?;
        Ok(Self { reporter, sources, changes })
    }

    /// Kills who says what changed.
    pub(super) async fn kill_changes(&mut self) -> anyhow::Result<()> {
        let process = self.changes.process.take().context("the change revision is down")?;
        process.kill().await.context("kill the change revision")
    }

    /// Starts it again on what it has left.
    pub(super) async fn start_changes(&mut self) -> anyhow::Result<()> {
        self.changes.start().await.map(drop)
    }

    /// Waits until it is told that a commit changed an application.
    pub(super) async fn told(&self, application: &str, commit: &str) -> anyhow::Result<()> {
        let file = self.changes.start.directory.join(TOLD);
        let told = async {
            loop {
                let text =
                    tokio::fs::read_to_string(&file).await.context("read what changed applications")?;
                let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                let is_it = |line: Value| {
                    line["data"]["name"] == application && line["data"]["changeRevision"] == commit
                };
                if lines.any(is_it) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let timed = tokio::time::timeout(PATIENCE, told).await;
        timed.with_context(|| format!("wait until it is told that {commit} changed {application}"))?
    }

    /// Ends all; what is wrong with what their accounts asked for while there were so many syncs.
    pub(super) async fn stop(
        &mut self,
        cluster: &Cluster,
        syncs: (usize, usize),
    ) -> anyhow::Result<Vec<String>> {
        let all = [&mut self.reporter, &mut self.changes, &mut self.sources];
        let mut wrong = Vec::new();
        for role in all {
            role.stop().await?;
            let log = tokio::fs::read_to_string(cluster.control.audit_log()).await;
            wrong.extend(role.judged(&log.context("read the audit log")?, syncs)?);
        }
        Ok(wrong)
    }
}

async fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    tokio::fs::write(path, text).await.with_context(|| format!("write {}", path.display()))
}
