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

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    cells: [String; 7],
}

impl Row {
    pub(super) fn of(case: &str, tally: &Tally, unfiltered: usize) -> Self {
        let number = |number: usize| number.to_string();
        Self {
            cells: [
                case.to_owned(),
                number(tally.rounds),
                number(tally.reports()),
                number(tally.equal),
                number(tally.on_purpose),
                number(tally.different.len()),
                number(unfiltered),
            ],
        }
    }
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
    rows: &[Row],
    checks: &[(String, Check)],
    lines: &[String],
    rules: &Rules,
    with_git: bool,
) -> String {
    let mut out = String::new();
    if !checks.is_empty() {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header(["case", "events", "applications", "resources", "same as before", "exceptions"]);
        for (case, check) in checks {
            let numbers =
                [check.events, check.applications, check.resources, check.unsent, check.exceptions.len()];
            table.add_row([vec![case.clone()], numbers.iter().map(ToString::to_string).collect()].concat());
        }
        push(&mut out, &table.to_string());
    }
    if !rows.is_empty() {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header(["case", "rounds", "reports", "equal", "on purpose", "different", "not filtered"]);
        for row in rows {
            table.add_row(row.cells.iter());
        }
        push(&mut out, &table.to_string());
        for rule in &rules.rules {
            let uses = rules.uses.get(&rule.name).copied().unwrap_or(0);
            push(&mut out, &format!("rule {}: {uses} uses at {}: {}", rule.name, rule.path, rule.reason));
        }
    }
    lines.iter().for_each(|line| push(&mut out, line));
    if !checks.is_empty() {
        let sum = |of: fn(&Check) -> usize| checks.iter().map(|(_, check)| of(check)).sum::<usize>();
        push(
            &mut out,
            &format!(
                "observed: {} reports, {} of applications, {} of resources, {} exceptions",
                summary.observed,
                sum(|check| check.applications),
                sum(|check| check.resources),
                summary.exceptions
            ),
        );
    }
    if with_git && !checks.is_empty() {
        let (named, others) = summary.named;
        push(
            &mut out,
            &format!(
                "files named by git: {named} of {} reports of resources, at its newest commit where the repository lacks theirs",
                named + others
            ),
        );
    }
    if with_git && !rows.is_empty() {
        for (name, field) in FIELDS.iter().zip(&summary.fields) {
            let Field { equal, on_purpose, different } = field;
            let counts = format!("{equal} equal, {on_purpose} different on purpose, {different} different");
            push(&mut out, &format!("field {name}: {counts}"));
        }
    }
    if !rows.is_empty() {
        push(&mut out, &format!("events filtered then, and reported by us: {}", summary.unfiltered));
        push(
            &mut out,
            &format!(
                "second pass: {} of {} live states from managed-resources, {} rounds with other reports",
                summary.pairs.0, summary.pairs.1, summary.unequal_rounds
            ),
        );
        push(
            &mut out,
            &format!(
                "replay: {} reports, {} equal, {} different on purpose, {} different",
                summary.reports, summary.equal, summary.on_purpose, summary.different
            ),
        );
    }
    out
}

fn push(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).context("print the replay")
}
