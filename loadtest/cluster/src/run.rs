//! `loadtest cluster run`: plays scenarios on a real cluster with the real binary, and judges every report.
//!
//! takes: names of scenarios, or all - gives: a row for each as it ends, what the rights were used for, and one last
//! line
//! calls: the cluster, which it starts and ends; the binary, which it builds first - fails: exit code 1 when a
//! scenario failed, a report is wrong, or the rights are not exactly those that are needed; then the folder with all
//! logs stays

mod restart;
mod stage;
#[cfg(test)]
mod tests;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use futures::stream::{self, StreamExt as _};

use super::scenario::{self, Scenario};
use super::{Ground, temporary_directory};
use loadtest_judge::interrupt;
use loadtest_judge::screen::{judged, say, table};
use loadtest_sim::process;
pub use restart::Restart;
pub use stage::{Setup, Stage};

const EXAMPLES: &str = "\
Examples:
  What there is to play:
    loadtest cluster run --list
  Two scenarios:
    loadtest cluster run hooks waves
  Everything; with all scenarios, rights that were granted and never used are a failure:
    loadtest cluster run --all
  The same with the real platform, which is compared with the cluster too, killed where a scenario takes it away:
    loadtest cluster run --all --platform";

/// Arguments of `loadtest cluster run`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The scenarios to play
    #[arg(value_name = "CASE", required_unless_present_any = ["all", "list"], conflicts_with = "all")]
    pub cases: Vec<String>,
    /// Play all scenarios
    #[arg(long)]
    pub all: bool,
    /// Have a real platform keep what is reported, and compare what it shows with the cluster and what it acknowledged
    #[arg(long)]
    pub platform: bool,
    /// Only tell which scenarios there are
    #[arg(long)]
    pub list: bool,
    /// Scenarios that are played at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub parallel: u8,
    /// How many seconds the right reports may be waited for; a fact that could not be had is asked for again after a
    /// minute
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub patience: u64,
    /// The folder of the scenarios
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios"), hide_default_value = true)]
    pub scenarios: PathBuf,
    /// Programs, and what stays.
    #[command(flatten)]
    pub ground: Ground,
}

/// How a scenario ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The scenario.
    pub name: String,
    /// How long it took, the verdict included.
    pub took: Duration,
    /// Reports of its applications and their resources.
    pub reports: u64,
    /// Its applications.
    pub applications: usize,
    /// What is wrong, a line each; empty when it passed.
    pub wrong: Vec<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let scenarios = scenario::load(&args.scenarios)?;
    if args.list {
        say(&listed(&scenarios));
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = chosen(scenarios, &args.cases)?;
    interrupt::exit_of(all(args, &chosen))
}

/// The scenarios of these names; all when there are none.
fn chosen(scenarios: Vec<Scenario>, names: &[String]) -> anyhow::Result<Vec<Scenario>> {
    if names.is_empty() {
        return Ok(scenarios);
    }
    let known: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    for (at, name) in names.iter().enumerate() {
        if !known.contains(&name.as_str()) {
            bail!("there is no scenario {name}; there are {}", known.join(", "));
        }
        if names.iter().take(at).any(|earlier| earlier == name) {
            bail!("scenario {name} is named twice");
        }
    }
    Ok(scenarios.into_iter().filter(|scenario| names.contains(&scenario.name)).collect())
}

fn listed(scenarios: &[Scenario]) -> String {
    let rows: Vec<Vec<String>> =
        scenarios.iter().map(|scenario| vec![scenario.name.clone(), scenario.about.clone()]).collect();
    table(2, &["scenario", "what happens"], &rows)
}

/// Plays the scenarios; whether all is well.
async fn all(args: &Args, scenarios: &[Scenario]) -> anyhow::Result<bool> {
    let began = Instant::now();
    let program = process::program(args.ground.program.as_deref()).await?;
    let folder = temporary_directory()?;
    let setup = Setup {
        binaries: args.ground.binaries.as_deref(),
        program: &program,
        directory: folder.path(),
        scenarios,
        on_platform: args.platform,
    };
    let stage = match Stage::start(&setup).await {
        Ok(stage) => stage,
        Err(error) => {
            args.ground.leave(folder, false);
            return Err(error);
        }
    };
    say(&format!("the cluster and the reporter run after {:.1} s", began.elapsed().as_secs_f64()));
    let patience = Duration::from_secs(args.patience);
    let mut outcomes = Vec::new();
    // Those that need the cluster for themselves come first, while there is nothing else in it.
    for scenario in scenarios.iter().filter(|scenario| scenario.alone) {
        outcomes.push(shown(stage.play(scenario, patience).await));
    }
    let others = scenarios.iter().filter(|scenario| !scenario.alone);
    let mut playing = stream::iter(others.map(|scenario| stage.play(scenario, patience)))
        .buffer_unordered(usize::from(args.parallel));
    while let Some(outcome) = playing.next().await {
        outcomes.push(shown(outcome));
    }
    drop(playing);
    let ended = Box::pin(stage.end(args.all)).await;
    let failed = outcomes.iter().filter(|outcome| !outcome.wrong.is_empty()).count();
    let (said, wrong) = match &ended {
        Ok(end) => (end.said.clone(), end.wrong.clone()),
        Err(error) => (Vec::new(), vec![format!("{error:#}")]),
    };
    for line in said {
        say(&line);
    }
    for line in &wrong {
        say(&judged(&format!("  {line}"), false));
    }
    // What no single scenario is about may be the fault of any.
    let failed = if wrong.is_empty() { failed } else { outcomes.len() };
    let good = failed == 0;
    args.ground.leave(folder, good);
    say(&format!("{:.0} s in all", began.elapsed().as_secs_f64()));
    say(&judged(&last_line(outcomes.len(), failed), good));
    Ok(good)
}

/// Says how a scenario ended.
fn shown(outcome: Outcome) -> Outcome {
    let good = outcome.wrong.is_empty();
    let verdict = judged(if good { "passed" } else { "FAILED" }, good);
    say(&format!(
        "{:<26} {:>6.1} s {:>5} reports {:>3} applications  {verdict}",
        outcome.name,
        outcome.took.as_secs_f64(),
        outcome.reports,
        outcome.applications
    ));
    for line in &outcome.wrong {
        say(&format!("    {line}"));
    }
    outcome
}

fn last_line(scenarios: usize, failed: usize) -> String {
    format!("cluster: {scenarios} scenarios, {} passed, {failed} failed", scenarios - failed)
}
