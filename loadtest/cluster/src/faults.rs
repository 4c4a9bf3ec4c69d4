//! `loadtest cluster faults`: kills the API server, Argo CD and the reporter in turn while applications change, and
//! judges in the end whether everything was reported.
//!
//! takes: a number of rounds, a seed - gives: a row for each round, what is wrong, and one last line
//! calls: the cluster, which it starts and ends; the binary, which it builds first - fails: exit code 1 unless
//! everything worked again after each round and the oracle holds at the end; then the folder with all logs stays
//!
//! The seed says what is killed in which round, when and for how long, and what is changed in which order; the
//! scheduling of the processes is their own.

mod application;
mod changes;
mod driver;
mod known;
mod plan;
mod reports;
mod round;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::oracle;
use super::progress::Progress;
use super::run::{Setup, Stage};
use super::{Ground, temporary_directory};
use driver::Driver;
use known::Known;
use loadtest_judge::interrupt;
use loadtest_judge::screen::{judged, say};
use loadtest_sim::PATIENCE;
use loadtest_sim::process;
use plan::{Round, Victim};
use round::{Outcome, Rounds};

const EXAMPLES: &str = "\
Examples:
  Ten rounds, as they were before:
    loadtest cluster faults --rounds 10 --seed 1";

/// It is at rest when so long no application has changed, and none is synced or deleted.
const REST: Duration = Duration::from_secs(2);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);

/// Arguments of `loadtest cluster faults`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// How many rounds; in any three each of API server, Argo CD and reporter is killed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub rounds: u16,
    /// What is killed when, and what is changed
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Programs, and what stays.
    #[command(flatten)]
    pub ground: Ground,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    interrupt::exit_of(all(args))
}

/// Carries all rounds out; whether all is well.
async fn all(args: &Args) -> anyhow::Result<bool> {
    let began = Instant::now();
    let program = process::program(args.ground.program.as_deref()).await?;
    let folder = temporary_directory()?;
    let setup = Setup {
        binaries: args.ground.binaries.as_deref(),
        program: &program,
        directory: folder.path(),
        scenarios: &[],
        on_platform: false,
    };
    let rounds = plan::rounds(args.seed, usize::from(args.rounds));
    let carried = Box::pin(carry_out(&setup, &rounds, args.seed)).await;
    args.ground.leave(folder, matches!(carried, Ok((_, true))));
    let (failed, good) = carried?;
    say(&format!("{:.0} s in all", began.elapsed().as_secs_f64()));
    say(&judged(&last_line(rounds.len(), failed), good));
    Ok(good)
}

/// How many rounds failed, and whether all is well.
async fn carry_out(setup: &Setup<'_>, rounds: &[Round], seed: u64) -> anyhow::Result<(usize, bool)> {
    let mut stage = Stage::start(setup).await?;
    // Beside the logs, for whoever looks for a cause.
    stage.platform.write_to(&setup.directory.join("reports.jsonl")).await?;
    let known = Known::listen(&stage.platform);
    let driver = Driver::new(&stage.cluster, &known);
    let subjects = Progress.step("applications", changes::begin(&driver, &stage.cluster.git)).await?;
    let stop = CancellationToken::new();
    let (outcomes, failures) = tokio::join!(
        async {
            let outcomes = in_turn(&mut stage, &driver, &known, rounds).await;
            stop.cancel();
            outcomes
        },
        changes::go_on(&driver, &subjects, seed, &stop),
    );
    let outcomes = outcomes?;
    let mut wrong = failures;
    wrong.extend(unmet(rounds, &outcomes));
    wrong.extend(rest(&stage).await?);
    // What is in sync is judged as it is; the others once they are.
    let astray = changes::out_of_sync(&driver).await?;
    if !astray.is_empty() {
        let mut names = application::names();
        names.retain(|name| !astray.contains(name));
        wrong.extend(Progress.step("the verdict on what is in sync", verdict(&stage, &names)).await?);
        changes::repair(&driver, &astray).await?;
        wrong.extend(rest(&stage).await?);
    }
    wrong.extend(Progress.step("the verdict", verdict(&stage, &application::names())).await?);
    wrong.extend(reports::repeated(&stage.platform.kept()));
    stage.platform.close_file().await?;
    let totals = stage.platform.totals();
    say(&format!(
        "{} changes, {} reports of applications, {} of resources, {} repeated under their key",
        driver.made(),
        totals.applications,
        totals.resources,
        totals.duplicates
    ));
    // Not every right is used by what happens here.
    wrong.extend(Box::pin(stage.end(false)).await?.wrong);
    for line in &wrong {
        say(&judged(&format!("  {line}"), false));
    }
    // What is wrong in the end may be any round's fault.
    let failed = outcomes.iter().filter(|outcome| !outcome.wrong.is_empty()).count();
    Ok(if wrong.is_empty() { (failed, failed == 0) } else { (rounds.len(), false) })
}

/// One round after the other, with a row for each.
async fn in_turn(
    stage: &mut Stage,
    driver: &Driver,
    known: &Known,
    rounds: &[Round],
) -> anyhow::Result<Vec<Outcome>> {
    let repository = stage.cluster.git.repository(application::MORTAL.name).await?;
    let mut carry = Rounds { stage, driver, known, repository, began: Instant::now() };
    Progress.step("changes", carry.begin()).await?;
    carry.began = Instant::now();
    say(&header());
    let mut outcomes = Vec::new();
    for (round, number) in rounds.iter().zip(1..) {
        let outcome = carry.carry_out(round).await.with_context(|| format!("round {number}"))?;
        let reports = carry.stage.platform.totals().taken;
        say(&row(number, round, &outcome, driver.made(), reports));
        for line in &outcome.wrong {
            say(&format!("    {line}"));
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn header() -> String {
    line("round", "killed", &["at", "away for", "changes", "reports", "recovered in"].map(str::to_owned))
}

fn row(number: usize, round: &Round, outcome: &Outcome, changes: u64, reports: u64) -> String {
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let figures = [
        seconds(outcome.at),
        seconds(outcome.away),
        changes.to_string(),
        reports.to_string(),
        seconds(outcome.recovered),
    ];
    let verdict = if outcome.wrong.is_empty() { "held" } else { "FAILED" };
    let how = if outcome.expired { ", its version was too old (410) and it listed anew" } else { "" };
    let line = line(&number.to_string(), &round.victim.to_string(), &figures);
    format!("{line}  {verdict}{how}")
}

fn line(number: &str, killed: &str, [at, away, changes, reports, recovered]: &[String; 5]) -> String {
    format!("{number:>5}  {killed:<30} {at:>8} {away:>9} {changes:>8} {reports:>8} {recovered:>13}")
}

/// That the watch met a version that was too old has to be seen at least once.
fn unmet(rounds: &[Round], outcomes: &[Outcome]) -> Option<String> {
    let mut own =
        rounds.iter().zip(outcomes).filter(|(round, _)| round.victim == Victim::ApiServer).peekable();
    own.peek()?;
    let met = own.any(|(_, outcome)| outcome.expired);
    (!met).then(|| "no watch of the reporter met a version that was too old (410)".to_owned())
}

fn last_line(rounds: usize, failed: usize) -> String {
    format!("faults: {rounds} rounds, {} held, {failed} failed", rounds - failed)
}

/// Waits until Argo CD has come to rest; says when it has not.
async fn rest(stage: &Stage) -> anyhow::Result<Option<String>> {
    let player = stage.player();
    let end = Instant::now() + PATIENCE;
    let mut since = Instant::now();
    let mut before: Option<Vec<Option<String>>> = None;
    loop {
        let mut now = Vec::new();
        let mut runs = false;
        for name in application::names() {
            let object = player.objects.get(&application::application(&name)).await?;
            let is_going = |object: &Value| {
                driver::is_running(object) || object.pointer("/metadata/deletionTimestamp").is_some()
            };
            runs |= object.as_ref().is_some_and(is_going);
            let version = object.as_ref().and_then(|object| object.pointer("/metadata/resourceVersion"));
            now.push(version.and_then(Value::as_str).map(str::to_owned));
        }
        if runs || before.as_ref() != Some(&now) {
            since = Instant::now();
            before = Some(now);
        }
        if since.elapsed() >= REST {
            return Ok(None);
        }
        if Instant::now() > end {
            return Ok(Some(format!("argo cd did not come to rest within {PATIENCE:?}")));
        }
        sleep(LOOK).await;
    }
}

/// What was reported wrong of these applications or not at all, and whether the reporter still holds something.
async fn verdict(stage: &Stage, names: &[String]) -> anyhow::Result<Vec<String>> {
    let mut wrong = oracle::judge(&stage.judge()?, names, PATIENCE).await?;
    // Argo CD looks at every application once a minute, whether it changes or not.
    let reporter = stage.reporter.running().await?;
    if let Err(error) = reporter.wait(PATIENCE, "the reporter to hold nothing", |now| now.total.idle()).await
    {
        wrong.push(format!("{error:#}"));
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(expired: &[bool]) -> Vec<Outcome> {
        expired.iter().map(|expired| Outcome { expired: *expired, ..Outcome::default() }).collect()
    }

    #[test]
    fn a_version_that_is_too_old_has_to_be_met_once() {
        let rounds: Vec<Round> = plan::rounds(1, 6);
        let api_server = |round: &Round| round.victim == Victim::ApiServer;
        let first = rounds.iter().position(api_server).unwrap();
        let never = outcomes(&[false; 6]);
        assert_eq!(
            unmet(&rounds, &never).unwrap(),
            "no watch of the reporter met a version that was too old (410)"
        );
        let mut once = never.clone();
        once[first].expired = true;
        assert_eq!(unmet(&rounds, &once), None);
        let others: Vec<Round> = rounds.into_iter().filter(|round| !api_server(round)).collect();
        assert_eq!(unmet(&others, &never), None, "without such a round there is nothing to meet");
    }

    #[test]
    fn rows_stand_under_their_header_and_the_last_line_is_as_promised() {
        let round = plan::rounds(1, 1)[0];
        let outcome = Outcome {
            at: Duration::from_millis(12_340),
            away: Duration::from_millis(2_050),
            recovered: Duration::from_millis(9_990),
            ..Outcome::default()
        };
        let row = row(1, &Round { victim: Victim::Reporter, ..round }, &outcome, 123, 4_567);
        assert_eq!(
            header(),
            "round  killed                               at  away for  changes  reports  recovered in"
        );
        assert_eq!(
            row,
            "    1  reporter                         12.3 s     2.0 s      123     4567        10.0 s  held"
        );
        assert_eq!(last_line(10, 1), "faults: 10 rounds, 9 held, 1 failed");
    }
}
