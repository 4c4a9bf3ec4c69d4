//! The arguments of `rollout`.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::OutputArgs;
use super::act::{AppProxyArgs, ChangeArgs};
use super::app::AppNameArgs;
use super::number::number;
use crate::names;

const GET: &str = "\
Examples:
  gitops-runtime rollout get shop
  gitops-runtime rollout get shop web --watch          as it goes on
  gitops-runtime rollout get shop web -o yaml";

const PROMOTE: &str = "\
Examples:
  gitops-runtime rollout promote shop                  ends the pause that its only Rollout stands at
  gitops-runtime rollout promote shop web --full --wait";

const ABORT: &str = "\
Examples:
  gitops-runtime rollout abort shop web --dry-run
  gitops-runtime rollout abort shop web --yes --wait";

const ROLLBACK: &str = "\
Examples:
  gitops-runtime rollout rollback shop web             to the revision before
  gitops-runtime rollout rollback shop web --to 3 --wait";

const OTHER: &str = "\
Examples:
  Of the Rollout web of the application shop; pause, resume, retry, restart and skip are given alike:
    gitops-runtime rollout pause shop web
    gitops-runtime rollout resume shop web --wait
    gitops-runtime rollout skip shop web --dry-run";

/// Which Rollout.
#[derive(Debug, Clone, Args)]
pub(crate) struct RolloutArgs {
    #[command(flatten)]
    pub(crate) named: AppNameArgs,
    /// Its Rollout, also as NAMESPACE/NAME; may be left out where it has one alone
    #[arg(value_name = "ROLLOUT", add = ArgValueCompleter::new(names::rollouts))]
    pub(crate) rollout: Option<String>,
}

/// What is done, to which, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct RolloutChangeArgs {
    #[command(flatten)]
    pub(crate) meant: RolloutArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// What is to be done with Rollouts.
#[derive(Subcommand)]
pub(crate) enum RolloutCommand {
    /// Show a Rollout: the step that it is at, and the revisions that it can go back to.
    #[command(after_help = GET)]
    Get {
        #[command(flatten)]
        meant: RolloutArgs,
        /// Look again every two seconds, and show it whenever it changed, until Ctrl-C
        #[arg(short, long)]
        watch: bool,
        #[command(flatten)]
        shown: OutputArgs,
        #[command(flatten)]
        way: AppProxyArgs,
    },
    /// End the pause that a Rollout stands at, or all that is left of it.
    #[command(after_help = PROMOTE)]
    Promote {
        #[command(flatten)]
        done: RolloutChangeArgs,
        /// All steps and analyses that are left
        #[arg(long)]
        full: bool,
    },
    /// Hold a Rollout where it is.
    #[command(after_help = OTHER)]
    Pause(RolloutChangeArgs),
    /// Go on with a Rollout that was paused.
    #[command(after_help = OTHER)]
    Resume(RolloutChangeArgs),
    /// Give a Rollout up, and go back to what ran before.
    #[command(after_help = ABORT)]
    Abort(RolloutChangeArgs),
    /// Try a Rollout again that was aborted.
    #[command(after_help = OTHER)]
    Retry(RolloutChangeArgs),
    /// Replace the pods of a Rollout.
    #[command(after_help = OTHER)]
    Restart(RolloutChangeArgs),
    /// Leave out the step that a Rollout is at.
    #[command(after_help = OTHER)]
    Skip(RolloutChangeArgs),
    /// Go back to a revision before.
    #[command(after_help = ROLLBACK)]
    Rollback {
        #[command(flatten)]
        done: RolloutChangeArgs,
        /// Which revision; without it the one before
        #[arg(long, value_name = "REVISION", value_parser = number::<i64>)]
        to: Option<i64>,
    },
}
