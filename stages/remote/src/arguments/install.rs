//! The arguments of `runtime install`, `upgrade` and `uninstall`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;
use pipeline_core::read_duration;

use super::PlatformArgs;
use crate::names;

/// Which helm is run, and where it installs.
#[derive(Debug, Clone, Args)]
pub(crate) struct Helm {
    /// The release; without it the runtime's name
    #[arg(long, value_name = "NAME")]
    pub(crate) release: Option<String>,
    /// The namespace
    #[arg(short, long, value_name = "NAME", default_value = "gitops-runtime")]
    pub(crate) namespace: String,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) kube_context: Option<String>,
    /// The kubeconfig of the cluster
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The program; without it the one that is found
    #[arg(long, value_name = "FILE", default_value = "helm")]
    pub(crate) helm: PathBuf,
    /// Print the command, and do nothing
    #[arg(long)]
    pub(crate) print: bool,
    /// Say what would be changed, object by object, and change nothing
    #[arg(long, conflicts_with = "print")]
    pub(crate) dry_run: bool,
}

/// What is installed.
#[derive(Debug, Clone, Args)]
pub(crate) struct Install {
    /// The runtime's name: lower-case letters and digits, a letter first
    #[arg(value_name = "RUNTIME", add = ArgValueCompleter::new(names::runtimes))]
    pub(crate) name: String,
    /// The chart: a directory, an archive, or an address that helm knows
    #[arg(long, value_name = "CHART")]
    pub(crate) chart: String,
    /// A file of values; may be repeated
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    pub(crate) values: Vec<PathBuf>,
    /// A value; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// How long the new pods, where there were others, and then the first report are waited for
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = read_duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) helm: Helm,
    #[command(flatten)]
    pub(crate) place: PlatformArgs,
}

/// What is taken away.
#[derive(Debug, Clone, Args)]
pub(crate) struct Uninstall {
    /// The runtime's name
    #[arg(value_name = "RUNTIME", add = ArgValueCompleter::new(names::runtimes))]
    pub(crate) name: String,
    /// Run no helm: the platform alone forgets a runtime of which nothing is installed any more
    #[arg(long, conflicts_with = "print")]
    pub(crate) record_only: bool,
    /// Do not ask whether it is meant
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) helm: Helm,
    #[command(flatten)]
    pub(crate) place: PlatformArgs,
}
