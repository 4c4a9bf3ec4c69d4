//! The arguments of the commands on values of the chart.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use url::Url;

const VALIDATE: &str = "\
Examples:
  Everything that is wrong with a file of values, before it is installed:
    gitops-runtime validate -f values.yaml
  The files alone, with no cluster asked:
    gitops-runtime validate -f values.yaml --skip cluster
  Several files, later over earlier as for helm, for a code scanner:
    gitops-runtime validate -f values.yaml -f prod.yaml --format sarif > values.sarif

Exit codes: 0 nothing is wrong, 1 something is, 2 usage, 3 with --strict: nothing is, but not all could be measured.";

const CONVERT: &str = "\
Examples:
  Values of the Codefresh chart as values of this one, with what has no place here in comments:
    gitops-runtime values convert codefresh-values.yaml > values.yaml
    gitops-runtime validate -f values.yaml";

/// Which values are judged, and how that is shown.
#[derive(Args)]
#[command(after_help = VALIDATE)]
pub(crate) struct Validate {
    /// A file of values; later ones stand above earlier ones. - is standard input
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The namespace that the chart is to be installed in; the runtime's name if none is given
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// The kubeconfig of the cluster that is asked; without one it is the current one, or none
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// How it is shown
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Shape,
    /// Do not look there; may be repeated
    #[arg(long, value_enum, value_name = "TIER")]
    pub(crate) skip: Vec<Tier>,
    /// Exit with 3 when something could not be measured
    #[arg(long)]
    pub(crate) strict: bool,
}

/// How findings are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// For people
    Table,
    /// For programs
    Json,
    /// For code scanners
    Sarif,
}

/// Where one looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tier {
    /// The values themselves
    Static,
    /// The cluster
    Cluster,
    /// The platform, Git and Argo CD
    Network,
}

/// What is to be done with values.
#[derive(Subcommand)]
pub(crate) enum ValuesCommand {
    /// Print values of the Codefresh chart as values of this one; what has no place here is named in comments.
    #[command(after_help = CONVERT)]
    Convert {
        /// The file; - is standard input
        file: PathBuf,
    },
}

/// Which reporter is asked.
#[derive(Args)]
pub(crate) struct Check {
    /// Where it serves health, such as http://gitops-runtime-reporter:8088
    pub(crate) url: Url,
    /// How long it may take to become ready
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = crate::config::duration)]
    pub(crate) within: Duration,
}
