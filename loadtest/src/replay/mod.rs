//! Replays recorded traffic through the product's own decision and payload code, and compares.
//!
//! Where a reporter was recorded, each of its rounds is played with the answers it had then, and the reports
//! are compared field by field; a deliberate difference is a rule of `replay-rules.yaml`. Where none was, the
//! reports are compared with what was watched and answered. Fails when a recording cannot be read.

mod compare;
mod fields;
mod git;
mod memory;
mod observed;
mod output;
mod pairing;
mod play;
mod predicates;
mod recorded;
mod rules;
mod said;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use compare::Tally;
pub use fields::Field;
pub use git::Git;
use loadtest_sim::recordings::{self, Case, WatchLine};
use play::Watched;
use rules::Rules;

/// Arguments of `loadtest replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A folder of cases, or one case, in the format of the recordings
    dir: PathBuf,

    /// What upstream's Argo CD does not say (gitManifest, path, appVersions) is said from this repository, or bundle of one
    #[arg(long, value_name = "BUNDLE|DIR")]
    repository: Option<PathBuf>,
}

/// What a replay found.
#[derive(Debug, Default)]
pub struct Summary {
    /// Reports compared, those that only one side made included.
    pub reports: usize,
    /// Equal in every field.
    pub equal: usize,
    /// Different where a rule says so.
    pub on_purpose: usize,
    /// Different otherwise.
    pub different: usize,
    /// Live states taken from `managed-resources` in the second pass, and `resource` answers in all.
    pub pairs: (usize, usize),
    /// Rounds whose reports the second pass changed.
    pub unequal_rounds: usize,
    /// Events that the recorded reporter filtered and the product would report.
    pub unfiltered: usize,
    /// Reports of cases without a recorded reporter, compared with what was watched.
    pub observed: usize,
    /// Those that are not what was watched.
    pub exceptions: usize,
    /// Files that Git named in reports of cases without a recorded reporter, and reports where it could not.
    pub named: (usize, usize),
    /// How `gitManifest`, `path` and `appVersions` compare, in this order.
    pub fields: [Field; 3],
    /// Every line of the output.
    pub text: String,
}

impl Summary {
    /// Whether everything that was compared is as it should be.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.different == 0
            && self.exceptions == 0
            && self.unequal_rounds == 0
            && self.reports + self.observed > 0
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let cases = recordings::load_dir(&args.dir)?;
    let git = args.repository.as_deref().map(Git::open).transpose()?;
    let summary = replay_from(&cases, git.as_ref())?;
    output::print(&summary.text)?;
    Ok(if summary.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Replays cases.
pub fn replay(cases: &[Case]) -> anyhow::Result<Summary> {
    replay_from(cases, None)
}

/// Replays cases; `git` says what only a fork of Argo CD says.
pub fn replay_from(cases: &[Case], git: Option<&Git>) -> anyhow::Result<Summary> {
    let mut rules = Rules::load()?;
    let mut summary = Summary::default();
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    let (with, without): (Vec<_>, Vec<_>) = cases.iter().partition(|case| !case.rounds.is_empty());
    for case in &with {
        let watched = watched(case)?;
        let playback = play::play_from(case, &watched, false, git);
        let tally = compare::compare(case, &playback, &mut rules);
        let paired = play::play_from(case, &watched, true, git);
        let unequal = compare::unequal_rounds(&playback, &paired);
        lines.extend(output::differences(&case.name, &tally));
        lines.extend(unequal.iter().map(|n| format!("{}: round {n} differs in the second pass", case.name)));
        add(&mut summary, &tally);
        summary.unfiltered += playback.unfiltered;
        summary.unequal_rounds += unequal.len();
        summary.pairs.0 += paired.pairs.0;
        summary.pairs.1 += paired.pairs.1;
        rows.push(output::row(&case.name, &tally, playback.unfiltered));
    }
    let mut checks = Vec::new();
    for case in &without {
        let check = observed::check(case, &watched(case)?, git)?;
        summary.observed += check.applications + check.resources;
        summary.exceptions += check.exceptions.len();
        summary.named.0 += check.named.0;
        summary.named.1 += check.named.1;
        lines.extend(check.exceptions.iter().map(|exception| format!("{}: {exception}", case.name)));
        checks.push((case.name.clone(), check));
    }
    summary.text = output::text(&summary, rows, &checks, lines, &rules, git.is_some());
    Ok(summary)
}

fn watched(case: &Case) -> anyhow::Result<Vec<Watched>> {
    let read = |line| Watched::of(line).with_context(|| format!("read the watch of {}", case.name));
    let is_change = |line: &&WatchLine| matches!(line.kind.as_str(), "ADDED" | "MODIFIED" | "DELETED");
    case.watch.iter().filter(is_change).map(read).collect()
}

fn add(summary: &mut Summary, tally: &Tally) {
    summary.reports += tally.reports();
    summary.equal += tally.equal;
    summary.on_purpose += tally.on_purpose;
    summary.different += tally.different.len();
    for (field, more) in summary.fields.iter_mut().zip(tally.fields) {
        field.add(more);
    }
}
