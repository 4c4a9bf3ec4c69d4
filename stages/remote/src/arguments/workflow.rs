//! The arguments of `workflow`.

use std::num::NonZeroU32;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::OutputArgs;
use super::act::{AppProxyArgs, ConfirmArgs, LogArgs, WaitArgs};
use super::app::label;
use super::number::number;
use crate::names;

const LIST: &str = "\
Examples:
  gitops-runtime workflow list
  gitops-runtime workflow list --runtime prod --namespace ci --limit 20
  gitops-runtime workflow list --namespace ci -l team=shop --watch";

const GET: &str = "\
Examples:
  gitops-runtime workflow get build-x7k2p --namespace ci
  gitops-runtime workflow get build-x7k2p --namespace ci --watch";

const SUBMIT: &str = "\
Examples:
  gitops-runtime workflow submit build --namespace ci -p revision=main --wait
  gitops-runtime workflow submit build --namespace ci -p revision=main --dry-run";

const LOGS: &str = "\
Examples:
  gitops-runtime workflow logs build-x7k2p --namespace ci
  gitops-runtime workflow logs build-x7k2p --namespace ci --follow --timestamps
  gitops-runtime workflow logs build-x7k2p build-x7k2p-test-1 --namespace ci --tail 20
  gitops-runtime workflow logs build-x7k2p --namespace ci --grep 'error|panic'

It takes the server of Argo Workflows (the setting appProxy.workflows.url of the runtime). Pods that are gone have no lines.";

const OTHER: &str = "\
Examples:
  The workflow build-x7k2p in the namespace ci; retry, resubmit, terminate, stop, suspend and resume are given alike:
    gitops-runtime workflow retry build-x7k2p --namespace ci --wait
    gitops-runtime workflow stop build-x7k2p --namespace ci --yes";

/// Which runtime and namespace.
#[derive(Debug, Clone, Args)]
pub(crate) struct NamespaceArgs {
    /// The runtime; may be left out where you see one alone
    #[arg(long, value_name = "RUNTIME", add = ArgValueCompleter::new(names::runtimes))]
    pub(crate) runtime: Option<String>,
    /// The namespace; without it the runtime's own
    #[arg(short, long, value_name = "NAMESPACE", add = ArgValueCompleter::new(names::destinations))]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) way: AppProxyArgs,
}

/// What is done to a workflow, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkflowChangeArgs {
    /// Its name
    #[arg(value_name = "WORKFLOW", add = ArgValueCompleter::new(names::workflows))]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) careful: ConfirmArgs,
    #[command(flatten)]
    pub(crate) waiting: WaitArgs,
    #[command(flatten)]
    pub(crate) within: NamespaceArgs,
}

/// What is to be submitted, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct Submit {
    /// The WorkflowTemplate that it is made of
    #[arg(value_name = "TEMPLATE", add = ArgValueCompleter::new(names::templates))]
    pub(crate) template: String,
    /// A parameter; may be repeated
    #[arg(short, long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) parameters: Vec<(String, String)>,
    /// The template is a ClusterWorkflowTemplate
    #[arg(long)]
    pub(crate) cluster_scope: bool,
    /// Where it begins, if not where the template says
    #[arg(long, value_name = "NAME")]
    pub(crate) entrypoint: Option<String>,
    /// What its name begins with, if not with the template's
    #[arg(long, value_name = "TEXT")]
    pub(crate) generate_name: Option<String>,
    #[command(flatten)]
    pub(crate) careful: ConfirmArgs,
    #[command(flatten)]
    pub(crate) waiting: WaitArgs,
    #[command(flatten)]
    pub(crate) within: NamespaceArgs,
}

/// Whose lines, and which.
#[derive(Debug, Clone, Args)]
pub(crate) struct Logs {
    /// The workflow
    #[arg(value_name = "WORKFLOW", add = ArgValueCompleter::new(names::workflows))]
    pub(crate) name: String,
    /// One of its pods; without it all
    #[arg(value_name = "POD")]
    pub(crate) pod: Option<String>,
    /// The container
    #[arg(short, long, value_name = "NAME", default_value = "main")]
    pub(crate) container: String,
    #[command(flatten)]
    pub(crate) lines: LogArgs,
    /// Lines that match this regular expression
    #[arg(long, value_name = "REGEX")]
    pub(crate) grep: Option<String>,
    #[command(flatten)]
    pub(crate) within: NamespaceArgs,
}

fn parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a parameter is NAME=VALUE".to_owned()),
    }
}

/// What is to be done with workflows.
#[derive(Subcommand)]
pub(crate) enum WorkflowCommand {
    /// List the workflows of a namespace, the newest first.
    #[command(after_help = LIST)]
    List {
        /// Show at most so many, of which a runtime tells 500
        #[arg(long, value_name = "NUMBER", default_value = "50", value_parser = number::<NonZeroU32>)]
        limit: NonZeroU32,
        /// Those that have these labels, such as team=shop,tier=web; may be repeated
        #[arg(short = 'l', long = "selector", value_name = "KEY=VALUE", value_delimiter = ',', value_parser = label)]
        labels: Vec<String>,
        /// Look again every two seconds, and show what changed, until Ctrl-C
        #[arg(short, long)]
        watch: bool,
        #[command(flatten)]
        shown: OutputArgs,
        #[command(flatten)]
        within: NamespaceArgs,
    },
    /// Show a workflow.
    #[command(after_help = GET)]
    Get {
        /// Its name
        #[arg(value_name = "WORKFLOW", add = ArgValueCompleter::new(names::workflows))]
        name: String,
        /// Look again every two seconds, and show it whenever it changed, until Ctrl-C
        #[arg(short, long)]
        watch: bool,
        #[command(flatten)]
        shown: OutputArgs,
        #[command(flatten)]
        within: NamespaceArgs,
    },
    /// Read the logs of a workflow's pods.
    #[command(after_help = LOGS)]
    Logs(Box<Logs>),
    /// Begin a workflow of a template.
    #[command(after_help = SUBMIT)]
    Submit(Box<Submit>),
    /// Do once more what failed of a workflow.
    #[command(after_help = OTHER)]
    Retry(WorkflowChangeArgs),
    /// Begin a workflow like another.
    #[command(after_help = OTHER)]
    Resubmit(WorkflowChangeArgs),
    /// End a workflow at once, without its exit handlers.
    #[command(after_help = OTHER)]
    Terminate(WorkflowChangeArgs),
    /// End a workflow, and run its exit handlers.
    #[command(after_help = OTHER)]
    Stop(WorkflowChangeArgs),
    /// Hold a workflow where it is.
    #[command(after_help = OTHER)]
    Suspend(WorkflowChangeArgs),
    /// Go on with a workflow that was suspended.
    #[command(after_help = OTHER)]
    Resume(WorkflowChangeArgs),
}
