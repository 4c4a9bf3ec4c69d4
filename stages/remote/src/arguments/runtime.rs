//! The arguments of `runtime`.

use std::path::PathBuf;

use clap::Subcommand;
use clap_complete::ArgValueCompleter;

use super::act::AppProxyArgs;
use super::install::{Install, Uninstall};
use super::{ListArgs, OutputArgs, PlatformArgs};
use crate::names;

const LIST: &str = "\
Examples:
  gitops-runtime runtime list
  gitops-runtime runtime list -o wide --watch
  gitops-runtime runtime list -o name | xargs -n1 gitops-runtime runtime get";

const GET: &str = "\
Examples:
  gitops-runtime runtime get prod
  gitops-runtime runtime get prod -o yaml";

const LOGS: &str = "\
Examples:
  gitops-runtime runtime logs prod --app-proxy https://prod.example.com/app-proxy
  gitops-runtime runtime logs prod --app-proxy https://prod.example.com/app-proxy -o - | tar -tzf -

A file for each container of the runtime's own pods, and about.txt, which says what is missing. Secrets are redacted. It takes an
admin's key, and a way to the app proxy: the platform passes no archives on.";

const INSTALL: &str = "\
Examples:
  See the command, or what it would change, and run it:
    gitops-runtime runtime install prod --chart helm/gitops-runtime -f values.yaml --print
    gitops-runtime runtime install prod --chart helm/gitops-runtime -f values.yaml --dry-run
    gitops-runtime runtime install prod --chart helm/gitops-runtime -f values.yaml
  In a cluster and a namespace of one's own choice:
    gitops-runtime runtime install prod --chart helm/gitops-runtime -f values.yaml --kube-context prod --namespace runtime

The runtime is added on the platform's page Runtimes first, which shows how its token becomes a Secret of the namespace.
Exit codes: 0 it is installed and has reported; 1 helm failed, or nobody answers; 3 it has not reported in time.";

const UPGRADE: &str = "\
Examples:
  gitops-runtime runtime upgrade prod --chart helm/gitops-runtime --namespace runtime
  gitops-runtime runtime upgrade prod --chart helm/gitops-runtime --set reporter.replicas=2 --dry-run

Values that were given before are kept, and those of the new chart are added.";

const UNINSTALL: &str = "\
Examples:
  gitops-runtime runtime uninstall prod --namespace runtime --dry-run
  gitops-runtime runtime uninstall prod --namespace runtime --yes
  gitops-runtime runtime uninstall prod --record-only   where nothing of it is installed any more

The release goes, and then the platform forgets the runtime and its tokens; what the chart leaves is named.";

/// What is to be done with runtimes.
#[derive(Subcommand)]
pub(crate) enum RuntimeCommand {
    /// List runtimes.
    #[command(after_help = LIST)]
    List {
        #[command(flatten)]
        listed: ListArgs,
        #[command(flatten)]
        place: PlatformArgs,
    },
    /// Show one runtime, and what it says is wrong with it.
    #[command(after_help = GET)]
    Get {
        /// Its name
        #[arg(value_name = "RUNTIME", add = ArgValueCompleter::new(names::runtimes))]
        name: String,
        /// Look again every two seconds, and show it whenever it changed, until Ctrl-C
        #[arg(short, long)]
        watch: bool,
        #[command(flatten)]
        shown: OutputArgs,
        #[command(flatten)]
        place: PlatformArgs,
    },
    /// Download the logs of a runtime's own pods, for admins.
    #[command(after_help = LOGS)]
    Logs {
        /// Its name
        #[arg(value_name = "RUNTIME", add = ArgValueCompleter::new(names::runtimes))]
        name: String,
        /// The archive; `-` is standard output [default: RUNTIME-logs.tar.gz]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        way: AppProxyArgs,
    },
    /// Install a runtime with helm, and wait for its first report.
    #[command(after_help = INSTALL)]
    Install(Box<Install>),
    /// Upgrade a runtime with helm, and wait for its next report.
    #[command(after_help = UPGRADE)]
    Upgrade(Box<Install>),
    /// Uninstall a runtime with helm, and have the platform forget it.
    #[command(after_help = UNINSTALL)]
    Uninstall(Box<Uninstall>),
}
