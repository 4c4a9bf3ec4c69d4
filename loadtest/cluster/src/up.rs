//! `loadtest cluster up`: a cluster to work with by hand, until Ctrl-C.
//!
//! takes: folders, or nothing - gives: a running cluster, and the environment that reaches it, on standard output and in
//! the file `env` of its folder
//! calls: the programs of a cluster, which end with this one, however that ends - fails: when something does not start or
//! end; then its folder stays, with the logs that tell why

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use loadtest_judge::interrupt::{INTERRUPTED, Interrupt};
use loadtest_judge::screen::say;

use super::network::Network;
use super::node::BUSYBOX;
use super::{Cluster, Options, temporary_directory};

const EXAMPLES: &str = "\
Examples:
In the foreground, until Ctrl-C; another shell takes the environment from the folder:
  loadtest cluster up --directory one
  . one/env
With a node that runs containers, as root:
  loadtest cluster up --node --directory one
  . one/env
  kubectl run web --image localhost/busybox:1 -- httpd -f
  kubectl exec web -- nslookup kubernetes.default.svc.cluster.local";

/// Arguments of `loadtest cluster up`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The cluster's folder, for what it stores and logs; without it, a new one that goes with the cluster
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The folder of the cluster's programs; without it, they are built where they are not yet
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// Without the controllers of Argo Rollouts and Argo Workflows
    #[arg(long)]
    only_argocd: bool,
    /// With a real node that runs containers: containerd, kubelet and kube-proxy in namespaces of their own; needs root
    #[arg(long)]
    node: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    runtime.block_on(async {
        // It goes with the cluster, unless that does not start.
        let own = if args.directory.is_none() { Some(temporary_directory()?) } else { None };
        let folder =
            own.as_ref().map_or_else(|| args.directory.clone(), |own| Some(own.path().to_path_buf()));
        let stayed = Box::pin(stay(args, folder)).await;
        if let (Err(_), Some(own)) = (&stayed, own) {
            say(&format!("logs: {}", own.keep().display()));
        }
        stayed
    })
}

/// Starts a cluster here, and ends it when this program is asked to end.
async fn stay(args: &Args, directory: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let mut interrupt = Interrupt::listen()?;
    let options = Options {
        binaries: args.binaries.clone(),
        directory,
        rollouts: !args.only_argocd,
        workflows: !args.only_argocd,
        node: args.node,
    };
    let cluster = tokio::select! {
        started = Box::pin(Cluster::start(&options)) => started?,
        () = interrupt.wait() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    let mut exports = exports(&cluster.environment().await?, &cluster.programs());
    if let Some(node) = &cluster.node {
        exports.push_str(&hints(node.network(), &node.import_line()));
    }
    let env = cluster.directory.join("env");
    private(&env, &exports).with_context(|| format!("write {}", env.display()))?;
    say(exports.trim_end());
    interrupt.wait().await;
    cluster.stop().await?;
    // Whoever reads it would look for a cluster that is gone.
    std::fs::remove_file(&env).with_context(|| format!("remove {}", env.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a file that its owner alone can read: there are tokens in it.
fn private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text.as_bytes())
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

/// What a node can be used for, as comments of a shell.
fn hints(network: Network, import: &str) -> String {
    format!(
        "# Pods ({}), Services ({}) and node ports (at {}) can be reached from this machine, and it from pods (as {}).\n\
         #   kubectl run web --image {BUSYBOX} -- httpd -f -p 8080\n\
         #   kubectl expose pod web --port 80 --target-port 8080\n\
         #   kubectl exec web -- nslookup web.argocd.svc.cluster.local\n\
         # Other images are pulled, or imported:\n\
         #   {import} <image.tar\n",
        network.pods(),
        network.services(),
        network.node(),
        network.host(),
    )
}

/// As one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
