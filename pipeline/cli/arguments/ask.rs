//! The commands that ask a running reporter.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use pipeline_core::{Key, read_duration};
use pipeline_http::admin::wire::{Since, Step};
use pipeline_ownership::sharding::preview::{MOST_SHARDS, REPLICAS, Way};

use super::given;
use crate::config::Given;

const EXPLAIN: &str = "\
Examples:
  What happened to an application, why it was reported or not, and what waits:
    gitops-runtime explain shop
  One in another namespace, as JSON:
    gitops-runtime explain team-a/shop --json
  An object of another kind, of the resource reporter; and what became of it on another route of that:
    gitops-runtime explain rollout/shop/web
    gitops-runtime explain rollout/shop/web --route audit
  Of the reporter in a pod:
    kubectl exec deploy/event-reporter -- gitops-runtime explain shop";

const PARKED: &str = "\
A report that the receiver refuses for good is parked: it is kept as a name, a reason and a digest, never as a body.

Examples:
  gitops-runtime parked list                   what was refused, why and when
  gitops-runtime parked show shop              which of its reports
  gitops-runtime parked replay shop            read it again, and report it as it is now
  gitops-runtime parked replay --all           all of them
  gitops-runtime parked drop shop --yes        give it up, until it changes

What is given up is forgotten. It is tried again, and parked again if it is refused again, when it changes, when it is
replayed or verified, and after a restart, which lists everything.";

const REPLAY: &str = "\
Examples:
  Look at two applications again, and report what differs from what was acknowledged:
    gitops-runtime replay --app shop --app team-a/web
  The receiver has lost an hour: report all of what was reported since:
    gitops-runtime replay --since 1h --whole
  Since a time:
    gitops-runtime replay --since 2026-11-21T09:00:00Z --whole";

const STATUS: &str = "\
Examples:
  gitops-runtime status                        shards, queues, the circuit, the ledger
  gitops-runtime status --watch                again every second
  gitops-runtime status --json | jq .total     for tools";

const TAIL: &str = "\
Examples:
  gitops-runtime tail                                    every step of every event, from now on
  gitops-runtime tail --app shop                         of one application
  gitops-runtime tail --step parked --step retried       what fails
  gitops-runtime tail --shard 0 --json                   one JSON object a line";

const TOP: &str = "\
Examples:
  gitops-runtime top                           what keeps the reporter busy, again every second; q quits
  gitops-runtime top --once                    once, as text
  gitops-runtime top --json | jq .slowest      for tools
  gitops-runtime explain shop                  what happened to one of its applications: the same trace ids

The figures are of the last two and a half to five minutes. NO_COLOR=1 takes the colours away.";

const VERIFY: &str = "\
Compares the cluster, what was acknowledged and, where the receiver answers, what it holds.

Examples:
  gitops-runtime verify                        report again what differs; exit 1 if something still does
  gitops-runtime verify --dry-run              only tell what differs; exit 1 if something does
  gitops-runtime verify --within 30m --json    with more time, for tools
  gitops-runtime verify --route default        the same of the resource reporter, on its first route, where both reporters run";

const DISTRIBUTION: &str = "\
Tells what each of a number of replicas would own. Nothing is changed.

Examples:
  The applications of the running reporter, over three replicas that come and go:
    gitops-runtime distribution --replicas 3
  How many would move with a sixth, as JSON:
    gitops-runtime distribution --replicas 6 --from 5 --output json
  The same with static replicas, as the incumbent numbers them (EVENT_REPORTER_REPLICAS):
    gitops-runtime distribution --replicas 6 --from 5 --way fnv-modulo
  Names from elsewhere, one a line, each with the number of its resources if that is known:
    argocd app list --output name | gitops-runtime distribution --replicas 3 --names -

With the way `leases`, which shards a replica has depends on its name as well; how many it has, and how many move, does
not.";

/// What is asked of a running reporter.
#[derive(Subcommand)]
pub(crate) enum ReporterCommand {
    /// Preview what each of a number of replicas would own, and what would move.
    #[command(after_help = DISTRIBUTION)]
    Distribution(Box<DistributionArgs>),
    /// Tell what happened to an application or another object last, and why.
    #[command(after_help = EXPLAIN)]
    Explain {
        /// The application, without a namespace in the one Argo CD is installed in; or an object of another kind
        #[arg(value_name = "[[KIND/]NAMESPACE/]NAME", value_parser = app)]
        app: String,
        #[command(flatten)]
        on: RouteArgs,
    },
    /// List, show, replay or drop what the receiver refused for good.
    #[command(subcommand, after_help = PARKED)]
    Parked(ParkedCommand),
    /// Read applications or other objects again, and report them.
    #[command(after_help = REPLAY)]
    Replay {
        #[command(flatten)]
        which: ReplayArgs,
        /// Report all of it, whatever was acknowledged; without this, only what differs
        #[arg(long)]
        whole: bool,
        #[command(flatten)]
        on: RouteArgs,
    },
    /// Tell how the reporter stands: shards, queues, what is in flight, the circuit, the ledger.
    #[command(after_help = STATUS)]
    Status {
        /// Again every second, until Ctrl-C
        #[arg(long)]
        watch: bool,
        #[command(flatten)]
        place: ReporterArgs,
    },
    /// Follow what happens, as it happens.
    #[command(after_help = TAIL)]
    Tail {
        /// Only of this application or other object; may be repeated
        #[arg(long, value_name = "[[KIND/]NAMESPACE/]NAME", value_parser = app)]
        app: Vec<String>,
        /// Only in this shard; may be repeated
        #[arg(long, value_name = "NUMBER")]
        shard: Vec<u32>,
        /// Only this kind of step; may be repeated
        #[arg(long, value_name = "STEP", value_parser = Step::NAMES.to_vec())]
        step: Vec<String>,
        #[command(flatten)]
        on: RouteArgs,
    },
    /// Show what keeps the reporter busy: its hottest and slowest objects, calls, errors, latency, shards.
    #[command(after_help = TOP)]
    Top {
        /// Print it once, as text; so it is where standard output is no terminal
        #[arg(long)]
        once: bool,
        /// Names in each list, 1 to 100
        #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: u32,
        #[command(flatten)]
        on: RouteArgs,
    },
    /// Compare cluster, ledger and receiver, and report again what differs.
    #[command(after_help = VERIFY)]
    Verify {
        /// Only compare, and report nothing
        #[arg(long)]
        dry_run: bool,
        /// The time it may take
        #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = within)]
        within: Duration,
        #[command(flatten)]
        on: RouteArgs,
    },
}

/// A number within these bounds.
fn from_1_to(most: u32) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=u64::from(most))
}

/// What is distributed over which replicas.
#[derive(Args)]
pub(crate) struct DistributionArgs {
    /// How many replicas there would be, 1 to 256
    #[arg(long, value_name = "NUMBER", value_parser = from_1_to(REPLICAS))]
    pub(crate) replicas: u32,
    /// How many there are: tells what moves
    #[arg(long, value_name = "NUMBER", value_parser = from_1_to(REPLICAS))]
    pub(crate) from: Option<u32>,
    /// How many shards there are, with the way leases [default: 32]
    #[arg(long, value_name = "NUMBER", value_parser = from_1_to(MOST_SHARDS))]
    pub(crate) shards: Option<u32>,
    /// How shards find their replicas: by leases, or by ordinals with jump hash, or with the incumbent's
    #[arg(long, value_name = "WAY", value_parser = Way::NAMES, default_value = "leases")]
    pub(crate) way: String,
    /// A file of names, or - for standard input; without it, those of the running reporter
    #[arg(long, value_name = "FILE", conflicts_with_all = ["socket", "address", "state"])]
    pub(crate) names: Option<PathBuf>,
    /// table, or json for tools
    #[arg(long, value_name = "FORMAT", value_parser = ["table", "json"], default_value = "table")]
    pub(crate) output: String,
    #[command(flatten)]
    pub(crate) place: ReporterArgs,
}

/// What is to be done about what is parked.
#[derive(Subcommand)]
pub(crate) enum ParkedCommand {
    /// List what is parked: which, why, when.
    List {
        #[command(flatten)]
        on: RouteArgs,
    },
    /// Show which reports of an application or another object were refused.
    Show {
        /// The application or other object
        #[arg(value_name = "[[KIND/]NAMESPACE/]NAME", value_parser = app)]
        app: String,
        #[command(flatten)]
        on: RouteArgs,
    },
    /// Read again what is parked, and report it as it is now.
    Replay {
        /// The applications or other objects
        #[arg(value_name = "[[KIND/]NAMESPACE/]NAME", value_parser = app, required_unless_present = "all")]
        apps: Vec<String>,
        /// All that are parked
        #[arg(long, conflicts_with = "apps")]
        all: bool,
        #[command(flatten)]
        on: RouteArgs,
    },
    /// Give up what is parked: it is tried again when it changes, or after a restart.
    Drop {
        /// The applications or other objects
        #[arg(value_name = "[[KIND/]NAMESPACE/]NAME", value_parser = app, required = true)]
        apps: Vec<String>,
        /// Yes, give them up
        #[arg(long, required = true)]
        yes: bool,
        #[command(flatten)]
        on: RouteArgs,
    },
}

/// What is replayed.
#[derive(Args)]
#[group(required = true, multiple = true)]
pub(crate) struct ReplayArgs {
    /// An application or another object; may be repeated
    #[arg(long, value_name = "[[KIND/]NAMESPACE/]NAME", value_parser = app)]
    pub(crate) app: Vec<String>,
    /// Those reported since: a time such as 2026-11-21T09:00:00Z, or how long ago, such as 90m
    #[arg(long, value_name = "TIME|DURATION", value_parser = since)]
    pub(crate) since: Option<Since>,
}

/// Where the reporter is asked, and how the answer is shown.
#[derive(Args)]
#[command(next_help_heading = "The reporter")]
pub(crate) struct ReporterArgs {
    /// Its admin socket
    #[arg(long, value_name = "PATH", conflicts_with_all = ["address", "state"])]
    pub(crate) socket: Option<PathBuf>,
    /// Its admin address, such as http://127.0.0.1:8089
    #[arg(long, value_name = "URL", conflicts_with = "state")]
    pub(crate) address: Option<String>,
    /// A file that holds the token for the address
    #[arg(long, value_name = "FILE", conflicts_with = "socket")]
    pub(crate) token_file: Option<PathBuf>,
    /// Its directory of the ledger and the admin socket
    #[arg(long, value_name = "DIR")]
    state: Option<String>,
    /// Its file of settings [env: GITOPS_RUNTIME_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON, for tools
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where the reporter is asked, and about which of its routes.
#[derive(Args)]
#[command(next_help_heading = "The reporter")]
pub(crate) struct RouteArgs {
    /// A route of the resource reporter, whose first is called default. Where both reporters run, whatever names a route is asked of
    /// the resource reporter, and without one, what names no object of another kind of the reporter of applications
    #[arg(long, value_name = "NAME")]
    pub(crate) route: Option<String>,
    #[command(flatten)]
    pub(crate) place: ReporterArgs,
}

impl ReporterArgs {
    /// What the flags say of the settings.
    pub(crate) fn given(&self) -> Given {
        given(&self.config, &[], &[], &[("state.directory", "--state", &self.state)])
    }
}

pub(super) fn app(text: &str) -> Result<String, String> {
    let named = if text.contains('/') { Key::parse(text) } else { Key::new("any", text) };
    match named {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => {
            Err("must be the name of an application, its namespace and name, such as argocd/shop, or kind, namespace and name of \
                 another object, such as rollout/shop/web"
                .to_owned())
        }
    }
}

fn within(text: &str) -> Result<Duration, String> {
    read_duration(text).and_then(|within| match within.as_secs() {
        1..=86_400 => Ok(within),
        _ => Err("must be from 1s to 24h".to_owned()),
    })
}

fn since(text: &str) -> Result<Since, String> {
    let ago = read_duration(text).map(|duration| Since::Ago(duration.as_secs()));
    ago.or_else(|_| text.parse().map(Since::Time)).map_err(|_| {
        "must be a time such as 2026-11-21T09:00:00Z, or how long ago, such as 90m, 12h or 7d".to_owned()
    })
}
