//! A real cluster for tests: a Kubernetes API server, its controllers and Argo CD on loopback, Git repositories, the
//! scenarios that are played on them, and the oracle that judges what was reported.

pub mod acts;
mod adoption;
pub mod argo;
pub mod argocd;
pub mod audit;
pub mod binaries;
mod callers;
pub mod chart;
pub mod control;
pub mod definitions;
pub mod faults;
pub mod git;
pub mod kinds;
pub mod modules;
pub mod monorepo;
pub mod network;
pub mod node;
pub mod objects;
pub mod oracle;
pub mod platform;
pub mod play;
pub mod progress;
pub mod resources;
pub mod restore;
mod role;
pub mod run;
pub mod scenario;
pub mod up;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;

use argo::Controller;
use argocd::ArgoCd;
use binaries::Binaries;
use control::Control;
use git::Git;
use loadtest_judge::interrupt;
use loadtest_judge::screen::{judged, say};
use loadtest_sim::process;
use node::{Namespaces, Node};
use progress::Progress;
use tokio::time::Instant;

/// `loadtest cluster`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts the cluster and prints the environment that reaches it
    Up(up::Args),
    /// Plays scenarios on a cluster of their own, with the real binary, and judges every report
    Run(run::Args),
    /// Kills its parts in turn while applications change, and judges what was reported in the end
    Faults(faults::Args),
    /// Has an API server judge what the chart renders, of good values and of values made at random
    Chart(chart::Args),
    /// Restores etcd under the reporter and while it is down, and judges what was reported in the end
    Restore(Ground),
    /// Has ten applications of one repository synced to commits and merges, and judges what is said of their files and changes
    Monorepo(Ground),
    /// Has Rollouts and Workflows go through what can happen to them while the resource reporter is killed, and judges its reports
    #[command(after_help = "\
Examples:
  loadtest cluster resources                          the whole story, with the binary built first
  loadtest cluster resources --keep --program PROGRAM  with this program; the folder with all logs stays")]
    Resources(Ground),
    /// Has a hundred kinds served at once, one of them in two versions, one not to be read, one gone for a while, and judges reports
    #[command(after_help = "\
Examples:
  loadtest cluster kinds                    builds the binary first
  loadtest cluster kinds --program PROGRAM  with this program")]
    Kinds(Ground),
    /// Has everything that people ask for carried out by real Argo CD, Rollouts and Workflows, and judges what became of it
    Acts(acts::Args),
    /// Runs pods on a real node, and looks whether anything is left of it, also when its command was killed
    Node(node::check::Args),
    /// Removes what nodes have left whose command was killed
    Sweep,
}

/// What every command takes that has the real binary report from a real cluster.
#[derive(Debug, Clone, clap::Args)]
pub struct Ground {
    /// The folder of the cluster's programs; without it they are built
    #[arg(long, value_name = "DIR")]
    pub binaries: Option<PathBuf>,
    /// Run this program and build nothing
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Keep the folder with all logs also when all is well
    #[arg(long)]
    pub keep: bool,
}

impl Ground {
    /// Has something played with the program in a folder of its own, and says what is wrong in the end; whether nothing is.
    async fn play(
        &self,
        name: &str,
        played: impl AsyncFnOnce(&Path, &Path) -> anyhow::Result<Vec<String>>,
    ) -> anyhow::Result<bool> {
        let began = Instant::now();
        let program = process::program(self.program.as_deref()).await?;
        let folder = temporary_directory()?;
        let result = Box::pin(played(&program, folder.path())).await;
        let good = result.as_ref().is_ok_and(Vec::is_empty);
        self.leave(folder, good);
        for line in result? {
            say(&judged(&format!("  {line}"), false));
        }
        say(&format!("{:.0} s in all", began.elapsed().as_secs_f64()));
        say(&judged(&format!("{name}: {}", if good { "held" } else { "failed" }), good));
        Ok(good)
    }

    /// The same with the programs of a cluster, to the exit code of a command.
    fn run(
        &self,
        name: &str,
        played: impl AsyncFnOnce(&Path, &Binaries, &Path) -> anyhow::Result<Vec<String>>,
    ) -> anyhow::Result<ExitCode> {
        interrupt::exit_of(self.play(name, async |program, folder| {
            let binaries = Binaries::find(self.binaries.as_deref()).await?;
            played(program, &binaries, folder).await
        }))
    }

    /// Removes the folder, or says where it is.
    pub fn leave(&self, folder: tempfile::TempDir, is_well: bool) {
        if self.keep || !is_well {
            say(&format!("logs: {}", folder.keep().display()));
        }
    }
}

/// What a cluster is made of.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The folder of its programs; see [`Binaries::find`].
    pub binaries: Option<PathBuf>,
    /// Its own folder, made where there is none; without it a new one under the temporary directory.
    pub directory: Option<PathBuf>,
    /// With the controller of Argo Rollouts.
    pub rollouts: bool,
    /// With the controller of Argo Workflows.
    pub workflows: bool,
    /// With a real node that runs containers; this needs root.
    pub node: bool,
}

/// A running cluster. Its programs end when it is dropped, and when this program ends in any way; its folder stays.
#[derive(Debug)]
pub struct Cluster {
    /// The control plane.
    pub control: Control,
    /// The Git repositories.
    pub git: Git,
    /// Argo CD.
    pub argocd: ArgoCd,
    /// The controller of Argo Rollouts, if it was asked for.
    pub rollouts: Option<Controller>,
    /// The controller of Argo Workflows, if it was asked for.
    pub workflows: Option<Controller>,
    /// The real node, if it was asked for.
    pub node: Option<Node>,
    /// Its folder: every program logs to a file in it.
    pub directory: PathBuf,
    binaries: Binaries,
}

impl Cluster {
    /// Starts everything and waits until it is ready, with a line on standard error for each step.
    pub async fn start(options: &Options) -> anyhow::Result<Self> {
        let binaries = Binaries::find(options.binaries.as_deref()).await?;
        let directory = match &options.directory {
            Some(directory) => directory.clone(),
            None => temporary_directory()?.keep(),
        };
        let directory = made(&directory).await?;
        let part = async |name: &str| made(&directory.join(name)).await;
        let (plane, repositories) = (part("control").await?, part("git").await?);
        let logs = part("node").await?;
        // Of all parts it is the first, as the others listen where it reaches them.
        let namespaces = asked(options.node, Namespaces::start(&logs)).await?;
        let network = namespaces.as_ref().map(Namespaces::network);
        let (control, git) = futures::try_join!(
            Box::pin(Control::start(&binaries, &plane, network)),
            Progress.step("git", Git::start(&repositories, Path::new(TEMPLATE))),
        )?;
        let (for_argocd, for_rollouts, for_workflows) =
            (part("argocd").await?, part("rollouts").await?, part("workflows").await?);
        let (node, argocd, rollouts, workflows) = futures::try_join!(
            Box::pin(with_node(&binaries, &control, namespaces, &logs)),
            Box::pin(ArgoCd::start(&binaries, &control, &for_argocd)),
            asked(options.rollouts, Box::pin(Controller::rollouts(&binaries, &control, &for_rollouts))),
            asked(
                options.workflows,
                Box::pin(Controller::workflows(&binaries, &control, &for_workflows, None))
            ),
        )?;
        Ok(Self { control, git, argocd, rollouts, workflows, node, directory, binaries })
    }

    /// What a program needs to reach the cluster: kubectl, the argocd command and `gitops-runtime` find it there. A
    /// repository to try things with is made.
    pub async fn environment(&self) -> anyhow::Result<Vec<(String, String)>> {
        let repository = self.git.repository("example").await?;
        let url = self.argocd.url();
        let server = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(self.programs()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(paths).context("join the folders of PATH")?;
        let path = path.to_str().context("the folders of PATH are no text")?.to_owned();
        let variables = [
            ("KUBECONFIG", self.control.admin_kubeconfig().display().to_string()),
            ("ARGOCD_SERVER", server.to_owned()),
            ("ARGOCD_OPTS", "--plaintext".to_owned()),
            ("ARGOCD_AUTH_TOKEN", self.argocd.token("admin")?),
            ("GITOPS_RUNTIME_ARGOCD__URL", url.to_owned()),
            ("GITOPS_RUNTIME_ARGOCD__TOKEN", self.argocd.token("reporter")?),
            ("LOADTEST_CLUSTER", self.directory.display().to_string()),
            ("LOADTEST_CLUSTER_REPOSITORY", repository.url().to_owned()),
            ("PATH", path),
        ];
        Ok(variables.map(|(name, value)| (name.to_owned(), value)).to_vec())
    }

    /// The folder of its programs: `kubectl`, `helm`, `kustomize` among them.
    #[must_use]
    pub fn programs(&self) -> PathBuf {
        self.binaries.programs()
    }

    /// Starts Argo CD's controller of ApplicationSets, which keeps these annotations of the Applications that it makes.
    pub async fn application_sets(&self, preserved: &[&str]) -> anyhow::Result<Controller> {
        let directory = made(&self.directory.join("applicationsets")).await?;
        Controller::application_sets(&self.binaries, &self.control, &directory, preserved).await
    }

    /// Whether each program runs, by its name.
    #[must_use]
    pub fn health(&self) -> Vec<(String, bool)> {
        let controllers = self.controllers().map(Controller::program);
        let node = self.node.iter().flat_map(Node::programs);
        self.control
            .programs()
            .into_iter()
            .chain(node)
            .chain(self.argocd.programs())
            .chain(controllers)
            .collect()
    }

    /// Ends everything; the folder stays.
    pub async fn stop(self) -> anyhow::Result<()> {
        // Those who write end before the one who keeps.
        futures::future::try_join_all(self.controllers().map(Controller::kill)).await?;
        self.argocd.stop().await?;
        self.control.stop().await?;
        // The API server listens on the node's link.
        match self.node {
            Some(node) => node.stop().await,
            None => Ok(()),
        }
    }

    fn controllers(&self) -> impl Iterator<Item = &Controller> {
        self.rollouts.iter().chain(&self.workflows)
    }
}

/// What every repository begins with.
const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/repo");

async fn asked<T>(
    is_asked: bool,
    start: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<Option<T>> {
    if is_asked { start.await.map(Some) } else { Ok(None) }
}

async fn with_node(
    binaries: &Binaries,
    control: &Control,
    namespaces: Option<Namespaces>,
    logs: &Path,
) -> anyhow::Result<Option<Node>> {
    let Some(namespaces) = namespaces else { return Ok(None) };
    Node::start(binaries, control, namespaces, logs).await.map(Some)
}

/// A new folder under the temporary directory that nobody else can read; it goes when this value does.
pub fn temporary_directory() -> anyhow::Result<tempfile::TempDir> {
    let made = tempfile::Builder::new().prefix("gitops-runtime-cluster-").tempdir();
    made.context("make a folder for the cluster")
}

/// The folder, made where there is none, by its full path: programs run elsewhere.
async fn made(directory: &Path) -> anyhow::Result<PathBuf> {
    let act = || format!("make the folder {}", directory.display());
    tokio::fs::create_dir_all(directory).await.with_context(act)?;
    tokio::fs::canonicalize(directory).await.with_context(act)
}

/// Runs `loadtest cluster`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Up(args) => up::run(args),
        Command::Run(args) => run::run(args),
        Command::Faults(args) => faults::run(args),
        Command::Chart(args) => chart::run(args),
        Command::Restore(ground) => ground.run("restore", restore::played),
        Command::Monorepo(ground) => monorepo::run(ground),
        Command::Resources(ground) => ground.run("resources", resources::played),
        Command::Kinds(ground) => ground.run("kinds", kinds::played),
        Command::Acts(args) => acts::run(args),
        Command::Node(args) => node::check::run(args),
        Command::Sweep => {
            let names = node::sweep()?;
            names.iter().for_each(|name| say(&format!("removed {name}")));
            Ok(ExitCode::SUCCESS)
        }
    }
}
