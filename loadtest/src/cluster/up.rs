//! `loadtest cluster up`, `down` and `status`: a cluster to work with by hand.
//!
//! takes: folders, or nothing - gives: a running cluster, in the foreground or in the background, and the environment
//! that reaches it, on standard output and in the file `env` of its folder
//! calls: the programs of a cluster; `kill`, `setsid` - fails: when something does not start or end

mod processes;
mod registry;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::fs;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use super::{Cluster, Options, fresh_directory};
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::screen::{judged, say, table};
use processes::Process;
use registry::{Entry, Registry};

const UP_EXAMPLES: &str = "\
Examples:
  In the background, and into this shell:
    eval \"$(loadtest cluster up --detach)\"
  In the foreground, until Ctrl-C; another shell takes the environment from the folder:
    loadtest cluster up --directory /tmp/one
    . /tmp/one/env";

/// How long a cluster may take to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(60);
const ASK: Duration = Duration::from_millis(50);

/// Arguments of `loadtest cluster up`.
#[derive(Debug, clap::Args)]
#[command(after_help = UP_EXAMPLES)]
pub struct UpArgs {
    /// The cluster's folder, for what it stores and logs; without it, a new one that goes with the cluster
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The folder of the cluster's programs; without it, they are built where they are not yet
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// Leave it in the background, and return when it is ready
    #[arg(long)]
    detach: bool,
    /// Without the controllers of Argo Rollouts and Argo Workflows
    #[arg(long)]
    only_argocd: bool,
    /// The folder goes with the cluster: the part of `--detach` that stays knows it by this
    #[arg(long, hide = true)]
    temporary: bool,
}

/// Arguments of `loadtest cluster down`.
#[derive(Debug, clap::Args)]
pub struct DownArgs {
    /// The cluster's folder; not needed when there is one cluster
    #[arg(value_name = "DIR", conflicts_with = "all")]
    directory: Option<PathBuf>,
    /// Every cluster that is up
    #[arg(long)]
    all: bool,
}

/// Arguments of `loadtest cluster status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// The cluster's folder; without it, all clusters
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Starts a cluster.
///
/// # Errors
/// When it does not start.
pub(super) fn up(args: &UpArgs) -> anyhow::Result<ExitCode> {
    runtime()?.block_on(async {
        let (directory, temporary) = match &args.directory {
            Some(directory) => (directory.clone(), args.temporary),
            None => (fresh_directory()?, true),
        };
        fs::create_dir_all(&directory)
            .await
            .with_context(|| format!("make the folder {}", directory.display()))?;
        let directory = fs::canonicalize(&directory).await.context("find the cluster's folder")?;
        let registry = Registry::of_user()?;
        if registry.all()?.iter().any(|entry| entry.directory == directory && entry.process.is_alive()) {
            bail!("a cluster is up in {} already", directory.display());
        }
        if args.detach {
            detach(args, &directory, temporary).await
        } else {
            Box::pin(stay(args, &registry, directory, temporary)).await
        }
    })
}

/// Ends clusters.
///
/// # Errors
/// When there is no such cluster, or it does not end.
pub(super) fn down(args: &DownArgs) -> anyhow::Result<ExitCode> {
    runtime()?.block_on(async {
        let registry = Registry::of_user()?;
        for entry in chosen(registry.all()?, args.directory.as_deref(), args.all)? {
            end(&registry, &entry).await?;
            say(&format!("{} is down", entry.directory.display()));
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Tells how clusters are.
///
/// # Errors
/// When there is no such cluster.
pub(super) fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let registry = Registry::of_user()?;
    let entries = chosen(registry.all()?, args.directory.as_deref(), true)?;
    if entries.is_empty() {
        say("no cluster is up");
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    let mut is_well = true;
    for entry in &entries {
        for (program, runs) in health(entry) {
            is_well &= runs;
            let word = if runs { "up" } else { "down" };
            rows.push(vec![entry.directory.display().to_string(), program, judged(word, runs)]);
        }
    }
    say(&table(3, &["cluster", "program", "state"], &rows));
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start the runtime")
}

/// Starts a cluster here, and ends it when this program is asked to end.
async fn stay(
    args: &UpArgs,
    registry: &Registry,
    directory: PathBuf,
    temporary: bool,
) -> anyhow::Result<ExitCode> {
    let mut interrupt = Interrupt::listen()?;
    let mut entry = Entry {
        directory: directory.clone(),
        process: Process::this()?,
        is_temporary: temporary,
        programs: Vec::new(),
    };
    registry.put(&entry)?;
    let options = Options {
        binaries: args.binaries.clone(),
        directory: Some(directory),
        rollouts: !args.only_argocd,
        workflows: !args.only_argocd,
    };
    let started = tokio::select! {
        started = Box::pin(Cluster::start(&options)) => started.map(Some),
        () = interrupt.wait() => Ok(None),
    };
    let code = match started {
        Ok(Some(cluster)) => {
            entry.programs = cluster.health().into_iter().map(|(name, _)| name).collect();
            registry.put(&entry)?;
            let exports = exports(&cluster.environment().await?, &cluster.programs());
            registry::write(&entry.directory.join("env"), &exports)?;
            say(exports.trim_end());
            interrupt.wait().await;
            cluster.stop().await?;
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::from(INTERRUPTED),
        Err(why) => {
            // The logs that tell why stay.
            registry.remove(&entry)?;
            return Err(why);
        }
    };
    forget(registry, &entry).await?;
    Ok(code)
}

/// Starts this program again in a session of its own, and waits until its cluster is ready.
async fn detach(args: &UpArgs, directory: &Path, temporary: bool) -> anyhow::Result<ExitCode> {
    let mut interrupt = Interrupt::listen()?;
    let log = directory.join("up.log");
    let output = std::fs::File::create(&log).with_context(|| format!("write {}", log.display()))?;
    let mut command = Command::new("setsid");
    command
        .arg(std::env::current_exe().context("find this program")?)
        .args(["cluster", "up", "--directory"])
        .arg(directory)
        .args(
            args.binaries
                .iter()
                .flat_map(|binaries| ["--binaries".into(), binaries.clone().into_os_string()]),
        )
        .args(args.only_argocd.then_some("--only-argocd"))
        .args(temporary.then_some("--temporary"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output);
    let ready = directory.join("env");
    remove_if_there(&ready).await?;
    let mut other = command.spawn().context("start the cluster in the background")?;
    let mut shown = Shown::open(&log).await?;
    loop {
        shown.more().await?;
        if let Ok(exports) = fs::read_to_string(&ready).await {
            shown.more().await?;
            say(exports.trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        tokio::select! {
            ended = other.wait() => {
                shown.more().await?;
                bail!("the cluster did not start ({}); its logs are in {}", ended.context("wait for the cluster")?, directory.display());
            }
            () = interrupt.wait() => {
                if let Some(id) = other.id() {
                    processes::signal(id, "TERM").await?;
                }
                other.wait().await.context("wait for the cluster")?;
                return Ok(ExitCode::from(INTERRUPTED));
            }
            () = tokio::time::sleep(ASK) => {}
        }
    }
}

/// Ends a cluster that another process holds, or what is left of one.
async fn end(registry: &Registry, entry: &Entry) -> anyhow::Result<()> {
    if entry.process.is_alive() {
        processes::signal(entry.process.id, "TERM").await?;
        if !entry.process.ends(PATIENCE).await {
            // Its programs die with it.
            processes::signal(entry.process.id, "KILL").await?;
            if !entry.process.ends(PATIENCE).await {
                bail!("process {} of {} does not end", entry.process.id, entry.directory.display());
            }
        }
    }
    forget(registry, entry).await
}

async fn forget(registry: &Registry, entry: &Entry) -> anyhow::Result<()> {
    registry.remove(entry)?;
    if entry.is_temporary && fs::try_exists(&entry.directory).await.unwrap_or(false) {
        let gone = fs::remove_dir_all(&entry.directory).await;
        gone.with_context(|| format!("remove {}", entry.directory.display()))?;
    } else {
        // Whoever reads it would look for a cluster that is gone.
        remove_if_there(&entry.directory.join("env")).await?;
    }
    Ok(())
}

async fn remove_if_there(file: &Path) -> anyhow::Result<()> {
    match fs::remove_file(file).await {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
            Err(why).with_context(|| format!("remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

/// What runs of the cluster: the process that holds it, then each program that ran when it was ready.
fn health(entry: &Entry) -> Vec<(String, bool)> {
    let holder = entry.process.is_alive();
    // Programs die with their holder; when the system does not tell, they are not known to be up.
    let children =
        if holder { processes::children(entry.process.id).unwrap_or_default() } else { BTreeSet::new() };
    let programs = entry.programs.iter().map(|name| (name.clone(), children.contains(name)));
    let mut health = vec![("loadtest".to_owned(), holder)];
    health.extend(programs);
    if entry.programs.is_empty() {
        health.push(("(not ready)".to_owned(), false));
    }
    health
}

/// The clusters that are meant.
fn chosen(entries: Vec<Entry>, directory: Option<&Path>, all: bool) -> anyhow::Result<Vec<Entry>> {
    if let Some(directory) = directory {
        let full = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf());
        let found = entries.into_iter().find(|entry| entry.directory == full);
        return Ok(vec![found.with_context(|| format!("no cluster is up in {}", directory.display()))?]);
    }
    if !all && entries.len() > 1 {
        let folders: Vec<String> =
            entries.iter().map(|entry| entry.directory.display().to_string()).collect();
        bail!("{} clusters are up; name one, or say --all: {}", folders.len(), folders.join(", "));
    }
    if !all && entries.is_empty() {
        bail!("no cluster is up");
    }
    Ok(entries)
}

/// Lines for a shell to source.
fn exports(environment: &[(String, String)], programs: &Path) -> String {
    let mut lines = String::new();
    for (name, value) in environment.iter().filter(|(name, _)| name != "PATH") {
        lines.push_str(&format!("export {name}={}\n", quoted(value)));
    }
    // The shell's own, not that of whoever started the cluster.
    lines.push_str(&format!("export PATH={}:\"$PATH\"\n", quoted(&programs.display().to_string())));
    lines
}

/// As one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A log that another process writes, shown as it grows.
#[derive(Debug)]
struct Shown {
    file: fs::File,
}

impl Shown {
    async fn open(log: &Path) -> anyhow::Result<Self> {
        let file = fs::File::open(log).await.with_context(|| format!("read {}", log.display()))?;
        Ok(Self { file })
    }

    #[expect(clippy::print_stderr, reason = "progress is for whoever started the program")]
    async fn more(&mut self) -> anyhow::Result<()> {
        let mut text = Vec::new();
        self.file.read_to_end(&mut text).await.context("read the log of the cluster")?;
        eprint!("{}", String::from_utf8_lossy(&text));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
