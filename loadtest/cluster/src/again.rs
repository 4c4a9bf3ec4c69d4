//! `loadtest cluster replay`: recordings of a real cluster, played by the simulators to the real binary.
//!
//! takes: recordings of `loadtest cluster run --record` - gives: for each case, whether the last report of every
//! application and resource is the recorded one
//! calls: the real binary, which watches and asks the simulators - fails: when a recording cannot be read
//!
//! So the simulators are shown to behave as the real peers did. Each case is played in a cluster of its own, with the
//! answers that its reporter had then.

mod compare;
mod play;
mod taken;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use compare::{Compared, Difference, Entity};

use loadtest_judge::interrupt;
use loadtest_judge::screen::{judged, say};
use loadtest_sim::platform::parse;
use loadtest_sim::process;
use loadtest_sim::recordings::{self, Case};
use play::Played;

/// Differences that are printed of a case.
const LISTED: usize = 40;

/// Arguments of `loadtest cluster replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A folder of cases, or one case, recorded by `loadtest cluster run --record`
    dir: PathBuf,
    /// Keeps what was reported and logged of every case, not only of those that differ
    #[arg(long)]
    keep: bool,
    /// Cases that are played at once
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    parallel: u8,
    /// Run this program and build nothing
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// What came of one case.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Its name.
    pub case: String,
    /// Watch events that were played.
    pub events: usize,
    /// Watch events that the recorded reporter had folded into newer ones.
    pub folded: usize,
    /// Reports that came.
    pub reports: usize,
    /// How the last reports compare.
    pub compared: Compared,
    /// What is wrong beside that: the oracle's findings, or why the case could not be played.
    pub problems: Vec<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Where its reports and its log are, if they were kept.
    pub kept: Option<PathBuf>,
}

impl Outcome {
    /// Whether everything came out as it was recorded.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.compared.entities > 0 && self.compared.different == 0 && self.problems.is_empty()
    }

    /// The row that is printed of it; names are `width` wide.
    #[must_use]
    pub fn row(&self, width: usize) -> String {
        let Self { case, events, folded, reports, compared, seconds, .. } = self;
        let verdict = judged(if self.is_good() { "equal" } else { "different" }, self.is_good());
        format!(
            "{case:<width$} {events:>5} events {folded:>4} folded {reports:>5} reports {:>5} entities {seconds:>6.1} s  {verdict}",
            compared.entities,
        )
    }

    /// The lines that are printed below the row: every difference, with its path and both values.
    #[must_use]
    pub fn details(&self) -> Vec<String> {
        let differences = self.compared.differences.iter().map(ToString::to_string);
        let all = differences.chain(self.problems.iter().cloned());
        let mut lines: Vec<String> = all.map(|line| format!("  {}: {line}", self.case)).collect();
        if let Some(more) = lines.len().checked_sub(LISTED).filter(|more| *more > 0) {
            lines.truncate(LISTED);
            lines.push(format!("  {}: {more} more", self.case));
        }
        if let Some(kept) = &self.kept {
            lines.push(format!("  {}: reports and log in {}", self.case, kept.display()));
        }
        lines
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let cases = recordings::load_dir(&args.dir)?;
    interrupt::exit_of(all(args, &cases))
}

/// Plays all cases; whether all came out as they were recorded.
async fn all(args: &Args, cases: &[Case]) -> anyhow::Result<bool> {
    let program = process::program(args.program.as_deref()).await?;
    let width = cases.iter().map(|case| case.name.len()).max().unwrap_or_default();
    let mut outcomes = Vec::new();
    let playing = futures::stream::iter(cases).map(|case| replay(case, cases, &program, args.keep));
    let mut playing = playing.buffer_unordered(usize::from(args.parallel));
    while let Some(outcome) = playing.next().await {
        say(&outcome.row(width));
        outcome.details().iter().for_each(|line| say(line));
        outcomes.push(outcome);
    }
    say(&summary(&outcomes));
    Ok(is_good(&outcomes))
}

/// Whether all that was compared is equal, and something was.
#[must_use]
pub fn is_good(outcomes: &[Outcome]) -> bool {
    !outcomes.is_empty() && outcomes.iter().all(Outcome::is_good)
}

/// The last line: `replayed: N cases, N entities, N equal, N different`. What is wrong with a case beside its last
/// reports counts as a difference.
#[must_use]
pub fn summary(outcomes: &[Outcome]) -> String {
    let sum = |of: fn(&Outcome) -> usize| outcomes.iter().map(of).sum::<usize>();
    let entities = sum(|outcome| outcome.compared.entities);
    let unequal = sum(|outcome| outcome.compared.different);
    let different = unequal + sum(|outcome| outcome.problems.len());
    let (cases, equal) = (outcomes.len(), entities - unequal);
    format!("replayed: {cases} cases, {entities} entities, {equal} equal, {different} different")
}

/// Plays one case to `program` and compares; what came is kept where it differs, or if it is to be. `among` are the
/// cases of the same recording: what its reporter learned of a commit in one of them it knew in all.
pub async fn replay(case: &Case, among: &[Case], program: &Path, keep: bool) -> Outcome {
    let began = Instant::now();
    let mut outcome = Outcome { case: case.name.clone(), ..Outcome::default() };
    match play::play(case, among, program).await {
        Ok(played) => {
            let recorded = compare::last(case.reports.iter().map(|report| report.data.clone()));
            let replayed =
                played.reports.iter().filter_map(|report| serde_json::from_slice(&report.payload).ok());
            outcome.compared =
                compare::compare(&recorded, &compare::last(replayed), &compare::not_found(&case.calls));
            outcome.events = played.events;
            outcome.folded = case.watch.len() - played.events;
            outcome.reports = played.reports.len();
            outcome.problems.clone_from(&played.problems);
            if case.reports.is_empty() {
                outcome.problems.push("no report was recorded".to_owned());
            }
            if keep || !outcome.is_good() {
                match kept(&case.name, &played).await {
                    Ok(folder) => outcome.kept = Some(folder),
                    Err(error) => outcome.problems.push(format!("{error:#}")),
                }
            }
        }
        Err(error) => outcome.problems.push(format!("{error:#}")),
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome
}

/// Writes reports and log into a new folder.
async fn kept(case: &str, played: &Played) -> anyhow::Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix(&format!("loadtest-replay-{case}-")).tempdir();
    let folder = folder.context("make a folder for reports")?.keep();
    let mut reports = String::new();
    for (n, report) in played.reports.iter().enumerate() {
        let data: Value = serde_json::from_slice(&report.payload).context("read a report")?;
        reports.push_str(&json!({"n": n, "data": data}).to_string());
        reports.push('\n');
    }
    let mut log = played.log.join("\n");
    log.push('\n');
    for (name, text) in [("reports.jsonl", reports), ("reporter.log", log)] {
        let path = folder.join(name);
        tokio::fs::write(&path, text).await.with_context(|| format!("write {}", path.display()))?;
    }
    Ok(folder)
}

/// Uids of the applications of which anything was reported.
fn lives(case: &Case) -> HashSet<String> {
    let reports = case.reports.iter().filter_map(|report| parse(&report.data.to_string()));
    reports.filter(|report| report.entity.resource.is_none()).map(|report| report.uid).collect()
}
