//! `loadtest install`: the chart installed for real, and judged step by step.
//!
//! takes: a program, or builds it; names of steps - gives: a cluster with a real node, the chart on it, and a row per step
//! calls: the programs of a cluster, which end with this one - fails: exit code 1 unless every step passed

mod access;
mod acting;
mod applications;
mod argocd;
mod backup;
mod before;
mod browsing;
mod connections;
mod converted;
mod flux;
mod granted;
mod ground;
mod hook;
mod image;
mod neighbour;
mod new_argocd;
mod policies;
mod power;
pub mod registry;
mod rights;
mod standin;
mod step;
mod steps;
mod tools;
mod traefik;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use loadtest_cluster::progress::Progress;
use loadtest_judge::interrupt;
use loadtest_judge::screen::{judged, say, table};
use loadtest_sim::PATIENCE;
use loadtest_sim::process;

use ground::{Ground, NAMESPACE, RELEASE};
pub use step::Step;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(200);
/// How long the long form looks for a change that nobody made.
const QUIET: Duration = Duration::from_secs(300);

const EXAMPLES: &str = "\
Examples:
Everything, on a cluster that is made and goes again:
  loadtest install
An installation, a change in Git and its report, to look at until Ctrl-C:
  loadtest install --only change --keep-running
The way in from outside, by pods of the chart:
  loadtest install --only access
What there is:
  loadtest install --list";

/// Arguments of `loadtest install`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only this step after the installation; may be repeated
    #[arg(long, value_name = "STEP")]
    only: Vec<Step>,
    /// Installation, one change, the same by Argo CD, end
    #[arg(long, conflicts_with = "only")]
    short: bool,
    /// Lists the steps
    #[arg(long)]
    list: bool,
    /// Leave everything up at the end, until Ctrl-C
    #[arg(long)]
    keep_running: bool,
    /// Programs, and what stays.
    #[command(flatten)]
    ground: loadtest_cluster::Ground,
}

/// Runs `loadtest install`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list {
        let rows: Vec<_> =
            Step::value_variants().iter().map(|step| vec![step.name(), step.about()]).collect();
        say(&table(2, &["step", "what"], &rows));
        return Ok(ExitCode::SUCCESS);
    }
    interrupt::exit_of(all(args))
}

async fn all(args: &Args) -> anyhow::Result<bool> {
    let program = process::program(args.ground.program.as_deref()).await?;
    let folder = loadtest_cluster::temporary_directory()?;
    let result = Box::pin(judge(args, &program, folder.path())).await;
    args.ground.leave(folder, result.as_ref().is_ok_and(|good| *good));
    result
}

/// Takes the steps until one fails; whether none did.
async fn judge(args: &Args, program: &Path, folder: &Path) -> anyhow::Result<bool> {
    let began = Instant::now();
    let quiet = if args.short { Duration::ZERO } else { QUIET };
    let mut ground = Box::pin(Ground::start(args.ground.binaries.as_deref(), program, folder, quiet)).await?;
    let mut rows = vec![vec!["start".to_owned(), judged("passed", true), seconds(began.elapsed())]];
    let mut good = true;
    for step in Step::chosen(&args.only, args.short) {
        say(&format!("== {}: {}", step.name(), step.about()));
        let began = Instant::now();
        let wrong = match Box::pin(steps::take(&mut ground, step)).await {
            Ok(wrong) => wrong,
            Err(error) => vec![format!("{error:#}")],
        };
        good = wrong.is_empty();
        for line in wrong {
            say(&judged(&format!("  {line}"), false));
        }
        let verdict = if good { "passed" } else { "failed" };
        rows.push(vec![step.name(), judged(verdict, good), seconds(began.elapsed())]);
        if !good {
            // What comes after it would be judged by what it left.
            ground.explain().await;
            break;
        }
    }
    say(&table(2, &["step", "verdict", "time"], &rows));
    if args.keep_running {
        say(&format!(
            "release {RELEASE} in namespace {NAMESPACE}; export KUBECONFIG={}",
            ground.kubeconfig()
        ));
        say("everything stays up until Ctrl-C");
        std::future::pending::<()>().await;
    }
    Progress.step("end", Box::pin(ground.stop())).await?;
    say(&judged(if good { "install: held" } else { "install: failed" }, good));
    Ok(good)
}

/// Looks until what is seen `is_so`; gives what was seen last, whatever it is when [`PATIENCE`] is over.
async fn until<T>(
    look: impl AsyncFnMut() -> anyhow::Result<T>,
    is_so: impl Fn(&T) -> bool,
) -> anyhow::Result<T> {
    loadtest_sim::until(PATIENCE, LOOK, look, is_so).await
}

fn seconds(time: Duration) -> String {
    format!("{:.0} s", time.as_secs_f64())
}
