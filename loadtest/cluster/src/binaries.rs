//! The programs of a cluster: built once by `.ci/cluster/build` and kept outside the tree.
//!
//! takes: nothing, or a folder - gives: where each program and each file of its installation stands
//! calls: `.ci/cluster/build` - fails: when that fails, or a program is missing

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail, ensure};
use tokio::process::Command;

/// Names the folder that holds the programs, so that nothing is built.
pub const VARIABLE: &str = "LOADTEST_CLUSTER_BINARIES";

/// A folder with `bin/` and `share/`.
#[derive(Debug, Clone)]
pub struct Binaries {
    directory: PathBuf,
}

impl Binaries {
    /// The folder `given`, or the one that [`VARIABLE`] names, or the one that `.ci/cluster/build` makes; a first
    /// build takes minutes and shows its progress on standard error.
    pub async fn find(given: Option<&Path>) -> anyhow::Result<Self> {
        let told = given.map(Path::to_path_buf).or_else(|| std::env::var_os(VARIABLE).map(Into::into));
        let directory = match told {
            Some(directory) => directory,
            None => build(&[]).await?,
        };
        if !directory.join("bin").is_dir() {
            bail!("{} holds no programs of a cluster; run .ci/cluster/build", directory.display());
        }
        Ok(Self { directory })
    }

    /// A program by its name: `kube-apiserver`, `kube-controller-manager`, `kube-scheduler`, `kubectl`, `kwok`,
    /// `argocd-server`, `argocd-repo-server`, `argocd-application-controller`, `argocd-applicationset-controller`,
    /// `rollouts-controller`, `workflow-controller`, `helm`, `kustomize`. Those of the system (`etcd`, `redis-server`, `git`) are on `PATH`.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.directory.join("bin").join(name)
    }

    /// A program that is built only when it is asked for, which takes minutes the first time: `traefik`; `argo` and `argoexec`,
    /// the server and the executor of Argo Workflows; `helm-controller`, Flux'.
    pub async fn further(&self, name: &str) -> anyhow::Result<PathBuf> {
        let program = self.program(name);
        if !program.is_file() {
            let made = build(&[name]).await?;
            ensure!(
                made == self.directory,
                "{} holds no {name}, but {} does: name that folder, or none",
                self.directory.display(),
                made.display()
            );
        }
        Ok(program)
    }

    /// The folder of all programs, for a `PATH`.
    #[must_use]
    pub fn programs(&self) -> PathBuf {
        self.directory.join("bin")
    }

    /// A file of an installation: `argocd/` and `rollouts/` and `workflows/` hold manifests as their modules ship
    /// them, `kwok/` its stages, `routes/` the definitions of others' routes that the chart may render, and of
    /// what serves them.
    #[must_use]
    pub fn share(&self, name: &str) -> PathBuf {
        self.directory.join("share").join(name)
    }
}

async fn build(further: &[&str]) -> anyhow::Result<PathBuf> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the folder of the workspace")?;
    let program = root.join(".ci/cluster/build");
    let built = Command::new(&program)
        .args(further)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("start {}", program.display()))?
        .wait_with_output()
        .await
        .with_context(|| format!("run {}", program.display()))?;
    if !built.status.success() {
        bail!("{} failed; its messages stand above", program.display());
    }
    let said = String::from_utf8(built.stdout).context("read where the programs of a cluster are")?;
    let last = said.lines().last().context("read where the programs of a cluster are")?;
    Ok(PathBuf::from(last))
}
