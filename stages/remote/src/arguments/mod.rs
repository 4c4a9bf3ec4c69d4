//! The arguments of the commands, and their help.

pub(crate) mod act;
pub(crate) mod app;
pub(crate) mod context;
pub(crate) mod git;
pub(crate) mod install;
pub(crate) mod number;
pub(crate) mod rollout;
pub(crate) mod runtime;
pub(crate) mod seal;
pub(crate) mod workflow;

use std::num::NonZeroU32;

use clap::{ArgMatches, Args, FromArgMatches, Subcommand};
use clap_complete::ArgValueCompleter;

use self::app::AppCommand;
use self::context::{ContextCommand, Login};
use self::number::number;
use self::rollout::RolloutCommand;
use self::runtime::RuntimeCommand;
use self::seal::Seal;
use self::workflow::WorkflowCommand;
use crate::names;
use crate::show::Output;

const CONTEXT: &str = "\
Examples:
  gitops-runtime context list                          the platforms that you are signed in to
  gitops-runtime context use staging                   the one that is meant from now on
  GITOPS_RUNTIME_CONTEXT=staging gitops-runtime app list
  gitops-runtime app list --context staging            the one that is meant once
  gitops-runtime context remove staging                forgets its key as well";

const RUNTIME: &str = "\
Examples:
  gitops-runtime runtime list                          every runtime, and when it last reported
  gitops-runtime runtime get prod                      one, with what is wrong with it
  gitops-runtime runtime list -o json                  for programs
  gitops-runtime runtime install prod --chart helm/gitops-runtime -f values.yaml --print";

const APP: &str = "\
Examples:
  gitops-runtime app list -l team=shop                 applications that have a label
  gitops-runtime app list health:degraded env:prod     by the words of the console's list
  gitops-runtime app list --runtime prod --watch       those of a runtime, and what changes of them
  gitops-runtime app get shop                          one, with what is wrong with it
  gitops-runtime app tree shop                         its resources
  gitops-runtime app diff shop                         how what runs differs from what should
  gitops-runtime app history shop                      what was deployed
  gitops-runtime app events shop                       what happened to it
  gitops-runtime app sync shop --dry-run               what a sync would change
  gitops-runtime app sync shop --wait                  and does it
  gitops-runtime app logs shop Deployment/web --follow

What changes something goes to the app proxy of the runtime, through the platform or, with --app-proxy, directly; as you, with
your rights. An application is named by its name, or as NAMESPACE/NAME or RUNTIME/NAMESPACE/NAME where there are several of that name.";

const ROLLOUT: &str = "\
Examples:
  gitops-runtime rollout get shop                      the step that it is at, and its revisions
  gitops-runtime rollout promote shop --full --wait
  gitops-runtime rollout abort shop --dry-run";

const WORKFLOW: &str = "\
Examples:
  gitops-runtime workflow list --runtime prod --namespace ci
  gitops-runtime workflow submit build --namespace ci -p revision=main --wait
  gitops-runtime workflow logs build-x7k2p --namespace ci --follow
  gitops-runtime workflow retry build-x7k2p --namespace ci";

/// What people do with a platform that runs elsewhere: subcommands of whoever has them among its own.
pub struct RemoteCommand(pub(crate) Command);

impl Subcommand for RemoteCommand {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        Command::augment_subcommands(command)
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Command::augment_subcommands_for_update(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Command::has_subcommand(name)
    }
}

impl FromArgMatches for RemoteCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Command::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// The same, as these commands know it.
#[derive(Subcommand)]
pub(crate) enum Command {
    Login(Login),
    /// List the platforms that you are signed in to, and choose one.
    #[command(subcommand, after_help = CONTEXT)]
    Context(ContextCommand),
    /// See runtimes, as the platform knows them, and their logs; install, upgrade and uninstall them.
    #[command(subcommand, after_help = RUNTIME)]
    Runtime(RuntimeCommand),
    /// See applications of all runtimes, sync them, and read their logs.
    #[command(subcommand, after_help = APP)]
    App(AppCommand),
    /// See Rollouts of applications, and lead them.
    #[command(subcommand, after_help = ROLLOUT)]
    Rollout(RolloutCommand),
    /// See workflows and their logs, begin and end them.
    #[command(subcommand, after_help = WORKFLOW)]
    Workflow(WorkflowCommand),
    Seal(Box<Seal>),
}

pub(crate) use self::act::AppProxyArgs;
pub use self::git::RemoteGit;

/// Which platform is asked.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Platform")]
pub(crate) struct PlatformArgs {
    /// Which of those that you are signed in to; without it the current one [env: GITOPS_RUNTIME_CONTEXT]
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(names::contexts))]
    pub(crate) context: Option<String>,
}

/// How an answer is shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct OutputArgs {
    /// How it is shown
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Output,
}

/// How a list is shown.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) shown: OutputArgs,
    /// Show at most so many; without it all, up to 20000
    #[arg(long, value_name = "NUMBER", value_parser = number::<NonZeroU32>)]
    pub(crate) limit: Option<NonZeroU32>,
    /// Look again every two seconds, and show what changed, until Ctrl-C
    #[arg(short, long)]
    pub(crate) watch: bool,
}

/// The most rows that are shown of a list.
const MOST: usize = 20_000;

impl ListArgs {
    /// How many rows are asked for.
    pub(crate) fn rows(&self) -> usize {
        let limit = self.limit.and_then(|limit| usize::try_from(limit.get()).ok());
        limit.map_or(MOST, |limit| limit.min(MOST))
    }
}
