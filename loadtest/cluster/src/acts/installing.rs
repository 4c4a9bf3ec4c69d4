//! A runtime that is installed, upgraded and uninstalled from a command line, by the helm that is found: first told, then done.
//!
//! takes: a cluster, a platform, and an admin's key - gives: what is wrong with what is told beside what is done
//! calls: the program as a person runs it, which runs helm; the API server - fails: when one of them cannot be run

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use loadtest_judge::screen::say;
use serde_json::json;
use tokio::process::Command;

use crate::objects::{Objects, Reference};
use loadtest_sim::command::Said;

/// The chart of this tree.
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../helm/gitops-runtime");
/// The runtime, its release and its namespace.
pub(super) const RUNTIME: &str = "eu1";
/// The workload of the release that is looked at.
const WORKLOAD: &str = "eu1-gitops-runtime-reporter";

/// Somebody at a command line, with the kubeconfig of a cluster.
pub(super) struct Installer<'a> {
    pub(super) program: &'a Path,
    pub(super) helm: PathBuf,
    pub(super) kubeconfig: &'a Path,
    pub(super) home: PathBuf,
    pub(super) objects: &'a Objects,
}

impl Installer<'_> {
    /// Signs in, installs, upgrades and uninstalls; what is wrong with it.
    pub(super) async fn tries(&self, platform: &str, key: &str) -> anyhow::Result<Vec<String>> {
        tokio::fs::create_dir_all(&self.home).await.context("make a home")?;
        let said = self.types(&["login", platform, "--name", "installer"], key).await?;
        ensure!(said.0 == 0, "signing in says: {said:?}");
        let values = json!({
            "global": {"integrations": {"argo-cd": {"namespace": "argocd"}}},
            "reporter": {"persistence": {"enabled": false}},
        });
        let file = self.home.join("values.json");
        tokio::fs::write(&file, values.to_string()).await.context("write values")?;
        let file = file.display().to_string();

        let mut wrong = Vec::new();
        let mut held = |what: &str, is_held: bool, said: &Said| match is_held {
            true => say(&format!("  {what}: as it must be")),
            false => wrong.push(format!("{what}: {said:?}")),
        };
        let install = ["install", RUNTIME, "--chart", CHART, "-f", &file];
        let told = self.runtime(&install, &["--dry-run"]).await?;
        let begin = format!("would install the release {RUNTIME} in the namespace {RUNTIME}\n--- live ");
        let is_new = told.1.lines().filter(|line| line.starts_with("--- live ")).count();
        let all_new = told.1.matches(", which is not there\n+++ desired ").count();
        let is_told = told.0 == 0 && told.1.starts_with(&begin) && is_new > 5 && is_new == all_new;
        held("what an installation would make is told", is_told, &told);
        held("it makes nothing", !self.is_there("v1", "Namespace", RUNTIME).await?, &told);

        // Nobody reports: its pods have no image here.
        let done = self.runtime(&install, &["--timeout", "1s"]).await?;
        held("whoever waits for a report is told that none came", done.0 == 3, &done);
        held("it is installed", self.is_there("apps/v1", "Deployment", WORKLOAD).await?, &done);

        let upgrade = ["upgrade", RUNTIME, "--chart", CHART];
        let told = self.runtime(&upgrade, &["--dry-run"]).await?;
        let is_none = told.0 == 0 && told.2 == "gitops-runtime: nothing would be changed\n";
        held("an upgrade to what is installed would change nothing", is_none, &told);
        let before = self.objects.get(&workload()).await?;
        let told =
            self.runtime(&upgrade, &["--set", "reporter.podAnnotations.asked=yes", "--dry-run"]).await?;
        let title = format!("--- live Deployment/{WORKLOAD} in {RUNTIME}\n+++ desired ");
        let is_one = told.2 == "gitops-runtime: 1 object would be changed\n";
        let is_told =
            told.0 == 0 && is_one && told.1.contains(&title) && told.1.contains("\n+        asked: ");
        held("what another value would change is told", is_told, &told);
        held("it changes nothing", self.objects.get(&workload()).await? == before, &told);

        let uninstall = ["uninstall", RUNTIME];
        let told = self.runtime(&uninstall, &["--dry-run"]).await?;
        let is_told = told.0 == 0 && told.1.contains(&format!("\n  Deployment/{WORKLOAD} in {RUNTIME}\n"));
        held("what would go with the release is told", is_told, &told);
        held("it stays", self.objects.get(&workload()).await? == before, &told);
        let done = self.runtime(&uninstall, &["--yes"]).await?;
        let is_gone = !self.is_there("apps/v1", "Deployment", WORKLOAD).await?;
        held("it goes", done.0 == 0 && is_gone, &done);
        let left = told.1.lines().filter_map(|line| line.strip_suffix(", which stays"));
        for line in left {
            let name = line.rsplit('/').next().unwrap_or_default().split(' ').next().unwrap_or_default();
            held(&format!("it says that {} stays", line.trim()), done.1.contains(name), &done);
        }
        let forgotten = self.types(&["runtime", "get", RUNTIME], "").await?;
        held("the platform has forgotten the runtime", forgotten.0 == 1, &forgotten);
        Ok(wrong)
    }

    /// A command of `runtime`, in the cluster.
    async fn runtime(&self, command: &[&str], more: &[&str]) -> anyhow::Result<Said> {
        let (helm, kubeconfig) = (self.helm.display().to_string(), self.kubeconfig.display().to_string());
        let place = ["--namespace", RUNTIME, "--helm", &helm, "--kubeconfig", &kubeconfig];
        self.types(&[&["runtime"], command, &place, more].concat(), "").await
    }

    async fn is_there(&self, version: &str, kind: &str, name: &str) -> anyhow::Result<bool> {
        let namespace = if kind == "Namespace" { None } else { Some(RUNTIME) };
        let found = self.objects.get(&Reference::new(version, kind, namespace, name)).await?;
        Ok(found.is_some_and(|found| found.pointer("/metadata/deletionTimestamp").is_none()))
    }

    async fn types(&self, arguments: &[&str], input: &str) -> anyhow::Result<Said> {
        let mut command = Command::new(self.program);
        command.args(arguments).env_clear().env("HOME", &self.home).env("PATH", "/usr/bin:/bin");
        let said = Said::by(command.current_dir(&self.home), input).await;
        said.with_context(|| arguments.join(" "))
    }
}

fn workload() -> Reference {
    Reference::new("apps/v1", "Deployment", Some(RUNTIME), WORKLOAD)
}
