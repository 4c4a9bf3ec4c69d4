//! What a replay prints.

use std::io::Write as _;

use anyhow::Context as _;
use comfy_table::Table;

use super::Summary;
use super::compare::Tally;
use super::fields::{FIELDS, Field};
use super::observed::Check;
use super::rules::Rules;
use loadtest_judge::diff::short;

/// Differences that are listed of one report, and reports of one case.
const LISTED: usize = 20;

/// One line of the table of cases with a recorded reporter.
pub(super) fn row(case: &str, tally: &Tally, unfiltered: usize) -> Vec<String> {
    let (reports, different) = (tally.reports(), tally.different.len());
    cells(case, [tally.rounds, reports, tally.equal, tally.on_purpose, different, unfiltered])
}

fn cells<const N: usize>(case: &str, numbers: [usize; N]) -> Vec<String> {
    std::iter::once(case.to_owned()).chain(numbers.map(|number| number.to_string())).collect()
}

fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    table.to_string()
}

/// A line for each difference of a case.
pub(super) fn differences(case: &str, tally: &Tally) -> Vec<String> {
    let mut lines = Vec::new();
    for unequal in tally.different.iter().take(LISTED) {
        let about = &unequal.about;
        let report = unequal.report.map_or_else(|| "only ours".to_owned(), |n| format!("report {n}"));
        for difference in unequal.differences.iter().take(LISTED) {
            lines.push(format!(
                "{case}: round {}, {report}, {} {}/{}: {}: ours {} theirs {}",
                unequal.round,
                about.kind,
                about.namespace,
                about.name,
                difference.path,
                short(difference.ours.as_ref()),
                short(difference.theirs.as_ref()),
            ));
        }
        if let Some(more) = unequal.differences.len().checked_sub(LISTED).filter(|more| *more > 0) {
            lines.push(format!("{case}: round {}, {report}: {more} more", unequal.round));
        }
    }
    if let Some(more) = tally.different.len().checked_sub(LISTED).filter(|more| *more > 0) {
        lines.push(format!("{case}: {more} more reports that differ"));
    }
    lines
}

/// The whole output.
pub(super) fn text(
    summary: &Summary,
    rows: Vec<Vec<String>>,
    checks: &[(String, Check)],
    lines: Vec<String>,
    rules: &Rules,
    with_git: bool,
) -> String {
    let (is_observed, is_replayed) = (!checks.is_empty(), !rows.is_empty());
    let mut out = Vec::new();
    if is_observed {
        let header = ["case", "events", "applications", "resources", "same as before", "exceptions"];
        let rows = checks.iter().map(|(case, check)| {
            let exceptions = check.exceptions.len();
            cells(case, [check.events, check.applications, check.resources, check.unsent, exceptions])
        });
        out.push(table(&header, rows));
    }
    if is_replayed {
        let header = ["case", "rounds", "reports", "equal", "on purpose", "different", "not filtered"];
        out.push(table(&header, rows));
        out.extend(rules.rules.iter().map(|rule| {
            let uses = rules.uses.get(&rule.name).copied().unwrap_or(0);
            format!("rule {}: {uses} uses at {}: {}", rule.name, rule.path, rule.reason)
        }));
    }
    out.extend(lines);
    if is_observed {
        let sum = |of: fn(&Check) -> usize| checks.iter().map(|(_, check)| of(check)).sum::<usize>();
        out.push(format!(
            "observed: {} reports, {} of applications, {} of resources, {} exceptions",
            summary.observed,
            sum(|check| check.applications),
            sum(|check| check.resources),
            summary.exceptions
        ));
    }
    if with_git && is_observed {
        let (named, others) = summary.named;
        out.push(format!(
            "files named by git: {named} of {} reports of resources, at its newest commit where the repository lacks theirs",
            named + others
        ));
    }
    if with_git && is_replayed {
        out.extend(FIELDS.iter().zip(&summary.fields).map(|(name, field)| {
            let Field { equal, on_purpose, different } = field;
            format!("field {name}: {equal} equal, {on_purpose} different on purpose, {different} different")
        }));
    }
    if is_replayed {
        out.push(format!("events filtered then, and reported by us: {}", summary.unfiltered));
        out.push(format!(
            "second pass: {} of {} live states from managed-resources, {} rounds with other reports",
            summary.pairs.0, summary.pairs.1, summary.unequal_rounds
        ));
        out.push(format!(
            "replay: {} reports, {} equal, {} different on purpose, {} different",
            summary.reports, summary.equal, summary.on_purpose, summary.different
        ));
    }
    out.into_iter().map(|line| line + "\n").collect()
}

pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).context("print the replay")
}
