//! The commands of the bus.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ask::app;
use super::given;
use crate::cli::assignment;
use crate::config::Given;
use pipeline_bus::REPORTS;

const BUS: &str = "\
Examples:
  Tell what is absent on the server, or differs from the settings; exit 1 if something does:
    gitops-runtime bus check --bus nats://nats:4222
  See what waits there, and for whom:
    gitops-runtime bus show --config settings.yaml
  The same of the processes that tell which commits changed applications:
    gitops-runtime bus check --role change-revision --config settings.yaml
  For tools:
    gitops-runtime bus show --json | jq '.durables[] | select(.waiting == 0)'

Neither changes anything. The reporter makes what is absent when it starts; what differs is changed by a person.";

const TAP: &str = "\
Examples:
  gitops-runtime tap --bus nats://nats:4222              every message, from now on
  gitops-runtime tap --source reports --app shop         what is acknowledged of one application
  gitops-runtime tap --shard 0 --count 10                ten messages of one shard
  gitops-runtime tap --json | jq -r .app                 one JSON object a line

A line has the time, the source, the shard, what it is, the application, its resourceVersion, the bytes and the trace id
that `explain` shows. No message is shown, held back or acknowledged: listening changes nothing.";

/// What is done on the bus itself.
#[derive(Subcommand)]
pub(crate) enum BusCommands {
    /// Check or show what stands on the bus.
    #[command(subcommand, after_help = BUS)]
    Bus(BusCommand),
    /// Follow what is published on the bus, without the messages themselves.
    #[command(after_help = TAP)]
    Tap(Box<TapArgs>),
}

/// What is asked of the bus.
#[derive(Subcommand)]
pub(crate) enum BusCommand {
    /// Tell what is absent on the server or differs from the settings; exit 1 if something does.
    #[command(after_help = BUS)]
    Check {
        #[command(flatten)]
        place: Box<BusArgs>,
    },
    /// Show stream, durables and buckets: messages, bytes, what is unacknowledged and what is pending.
    #[command(after_help = BUS)]
    Show {
        #[command(flatten)]
        place: Box<BusArgs>,
    },
}

/// What is listened to.
#[derive(Args)]
pub(crate) struct TapArgs {
    /// What is watched, or what was acknowledged; without it, both
    #[arg(long, value_name = "SOURCE", value_parser = [crate::app::PIPELINE, crate::app::CHANGES, REPORTS])]
    pub(crate) source: Option<String>,
    /// One application
    #[arg(long, value_name = "[NAMESPACE/]NAME", value_parser = app)]
    pub(crate) app: Option<String>,
    /// One shard, counted from 0
    #[arg(long, value_name = "NUMBER")]
    pub(crate) shard: Option<u32>,
    /// End after so many messages
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) place: BusArgs,
}

/// Those who share their work over the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BusRole {
    /// What happens to applications.
    Reporter,
    /// Which commits changed them.
    ChangeRevision,
}

/// Where the bus is, and how the answer is shown.
#[derive(Args)]
#[command(next_help_heading = "The bus")]
pub(crate) struct BusArgs {
    /// Its servers, such as nats://nats:4222
    #[arg(long, value_name = "URL")]
    bus: Option<String>,
    /// Whose stream, durables and buckets
    #[arg(long, value_enum, value_name = "ROLE", default_value_t = BusRole::Reporter)]
    pub(crate) role: BusRole,
    /// The role's file of settings [env: GITOPS_RUNTIME_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any setting, such as bus.prefix=gitops; may be repeated
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Print JSON, for tools
    #[arg(long)]
    pub(crate) json: bool,
}

impl BusArgs {
    /// What the flags say of the settings.
    pub(crate) fn given(&self) -> Given {
        given(&self.config, &[], &self.set, &[("bus.url", "--bus", &self.bus)])
    }
}
