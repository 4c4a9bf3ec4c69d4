//! The arguments of the commands on values of the chart.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use url::Url;

const VALIDATE: &str = "\
Examples:
  Everything that is wrong with a file of values, before it is installed:
    gitops-runtime validate -f values.yaml --namespace runtime
  The files alone, with nobody asked:
    gitops-runtime validate -f values.yaml --skip cluster --skip network
  The values of a release that is installed:
    gitops-runtime validate --release prod --namespace runtime
  Several files, later over earlier as for helm, for a code scanner:
    gitops-runtime validate -f values.yaml -f prod.yaml --namespace runtime --format sarif > values.sarif

Exit codes: 0 nothing is wrong, 1 something is, 2 usage, 3 with --strict: nothing is, but not all could be measured.";

const CONVERT: &str = "\
Examples:
  Values of the Codefresh chart as values of this one, with what has no place here in comments:
    gitops-runtime values convert codefresh-values.yaml > values.yaml
    gitops-runtime validate -f values.yaml --namespace runtime
  Files that Helm is given together, as one:
    gitops-runtime values convert base.yaml prod.yaml > values.yaml";

const CHECK: &str = "\
Examples:
  Whether every part of an installation is well, and what to do where one is not:
    gitops-runtime check --namespace runtime
  The same in a pipeline, waiting five minutes for it:
    gitops-runtime check --namespace runtime --release prod --within 5m --format json
  Whether a reporter is ready, waiting a minute for it:
    gitops-runtime check http://gitops-runtime-reporter:8088 --within 1m
  Which hop on the way to a runtime fails, and what to do:
    gitops-runtime check access --namespace runtime
  Whether the values of a release are right for the cluster, the platform, Argo CD and Git as they are now:
    gitops-runtime validate --release prod --namespace runtime

Exit codes: 0 nothing fails, 1 something does, or with --within is still being updated when the time is over, 2 usage, 3 no workload
of an installation could be looked at. Of one it reads Deployments, StatefulSets, pods, claims, events, the ConfigMap codefresh-cm, and
the labels of Helm's Secrets; what it may not read it says.";

const ACCESS: &str = "\
Examples:
  All of the way, from inside out and from outside in:
    gitops-runtime check access --namespace runtime
  From here, as a visitor alone:
    gitops-runtime check access --url https://runtime.example.com
  For a program, with a certificate of an authority of one's own:
    gitops-runtime check access --namespace runtime --ca-file ca.crt --format json

Exit codes: 0 no hop fails, 1 one does, 2 usage. In the cluster it reads the Service, endpointslices, services/proxy,
Ingresses, HTTPRoutes, VirtualServices, Deployments, and Secrets of certificates; what it may not read it says.";

const ADOPT: &str = "\
Examples:
  See which definitions a release would take over:
    gitops-runtime crds adopt --release prod --namespace runtime --dry-run
  Take them over, and let Helm install what it takes for its own:
    gitops-runtime crds adopt --release prod --namespace runtime
    helm install prod helm/gitops-runtime --namespace runtime -f values.yaml";

/// Which values are judged, and how that is shown.
#[derive(Args)]
#[command(after_help = VALIDATE)]
pub(crate) struct Validate {
    /// A file of values; later ones stand above earlier ones. - is standard input
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The values of an installed release instead, as Helm keeps them in the namespace
    #[arg(long, value_name = "NAME", conflicts_with = "files", requires = "namespace")]
    pub(crate) release: Option<String>,
    /// The version of the chart that is meant; this program knows its own alone
    #[arg(long, value_name = "VERSION", value_parser = own_version)]
    pub(crate) version: Option<String>,
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
    /// As the chart's hook, which has two rights of its own: warn ends with 0 whatever is found
    #[arg(long, value_enum, value_name = "HOW", hide = true)]
    pub(crate) hook: Option<Hook>,
    /// Where the last words of a container go
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) termination_log: Option<PathBuf>,
}

/// What a hook makes of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hook {
    /// Say them
    Warn,
    /// Stop the installation
    Enforce,
}

fn own_version(text: &str) -> Result<String, String> {
    let own = env!("CARGO_PKG_VERSION");
    if text.trim_start_matches('v') == own {
        return Ok(text.to_owned());
    }
    Err(format!("this program judges values of the chart {own} alone: take gitops-runtime {text}"))
}

/// What is to be done with definitions.
#[derive(Subcommand)]
pub(crate) enum CrdsCommand {
    /// Hand the definitions of argoproj.io that are in the cluster over to a release, so that Helm takes them as its own.
    #[command(after_help = ADOPT)]
    Adopt(Adopt),
}

/// Which release takes definitions over.
#[derive(Args)]
pub(crate) struct Adopt {
    /// The release that takes them over
    #[arg(long, value_name = "NAME")]
    pub(crate) release: String,
    /// Its namespace
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    pub(crate) namespace: String,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take over those of another release as well
    #[arg(long)]
    pub(crate) force: bool,
    /// The kubeconfig of the cluster; without one it is the current one
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
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
        /// Files, as Helm is given them: later ones over earlier ones; - is standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

/// What is asked.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = CHECK)]
#[command(group = ArgGroup::new("what").args(["url", "namespace"]).required(true))]
pub(crate) struct Check {
    #[command(subcommand)]
    pub(crate) command: Option<CheckCommand>,
    /// Where it serves health, such as http://gitops-runtime-reporter:8088
    #[arg(value_parser = address)]
    pub(crate) url: Option<Url>,
    /// The namespace of an installation, every part of which is looked at
    #[arg(short, long, value_name = "NAME", value_parser = label)]
    pub(crate) namespace: Option<String>,
    /// Its release; without one they are all that are there
    #[arg(long, value_name = "NAME", value_parser = label, conflicts_with = "url")]
    pub(crate) release: Option<String>,
    /// The kubeconfig of the cluster; without one it is the current one
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    pub(crate) context: Option<String>,
    /// How parts are shown
    #[arg(long, value_enum, default_value = "table", conflicts_with = "url")]
    pub(crate) format: AccessShape,
    /// How long it may take to become ready
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = pipeline_core::read_duration)]
    pub(crate) within: Duration,
}

/// What else is asked.
#[derive(Subcommand)]
pub(crate) enum CheckCommand {
    Access(Box<CheckAccess>),
}

/// Say which hop between a visitor and a runtime fails, from inside out and from outside in, and what to do.
#[derive(Args)]
#[command(after_help = ACCESS)]
#[command(group = ArgGroup::new("where").args(["namespace", "url"]).required(true).multiple(true))]
pub(crate) struct CheckAccess {
    /// The namespace that the runtime is installed in
    #[arg(short, long, value_name = "NAME", value_parser = label)]
    pub(crate) namespace: Option<String>,
    /// Its address; without one it is the one that the cluster knows
    #[arg(long, value_name = "URL", value_parser = address)]
    pub(crate) url: Option<Url>,
    /// The Service of its router
    #[arg(long, value_name = "NAME", default_value = "internal-router", value_parser = label)]
    pub(crate) service: String,
    /// The kubeconfig of the cluster; without one it is the current one, or none
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// A PEM file with authorities that are trusted beside the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Accept any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Do not look there; may be repeated
    #[arg(long, value_enum, value_name = "TIER")]
    pub(crate) skip: Vec<Tier>,
    /// How it is shown
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: AccessShape,
}

/// How hops and parts are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessShape {
    /// For people
    Table,
    /// For programs
    Json,
}

fn label(text: &str) -> Result<String, String> {
    match crate::cli::is_label(text) {
        true => Ok(text.to_owned()),
        false => Err("it is no name in Kubernetes: lower-case letters, digits and -".to_owned()),
    }
}

fn address(text: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none() => {
            Ok(url)
        }
        _ => Err("it is no address, such as https://runtime.example.com".to_owned()),
    }
}
