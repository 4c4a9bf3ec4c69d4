//! What a benchmark found, as a table: every figure beside the incumbent's, or another setting's, and beside what was
//! wrong in the same run.

use serde_json::{Map, Value, json};

use super::figures::Outcome;
use super::measured::{Bound, Figure, Results, Run};
use super::number::with_unit;
use super::scenario::Measure;
use loadtest_judge::screen::{judged, table};

/// A run that did not come to an end.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) scenario: String,
    pub(super) error: anyhow::Error,
}

/// The results as JSON, and before them, for whoever looks for one figure, those of the first run that has a rate of
/// changes: `changes_per_second`, `argocd_calls_per_change`, `p50_ms`, `p99_ms`, `rss_bytes`, and how much was `lost`,
/// `duplicated`, `out_of_order` and `wrong` in all runs. One call for the metadata of each new commit is not among
/// `argocd_calls_per_change`: it is made once for a commit, however many changes and applications bring it, and is a
/// figure of its own among those of the run.
pub(super) fn json(results: &Results) -> serde_json::Result<String> {
    let mut all = Map::new();
    let figure = |run: &Run, measure: Measure| {
        run.figures.iter().find(|figure| figure.what == measure.label()).map(|figure| figure.value)
    };
    if let Some(run) = results.runs.iter().find(|run| figure(run, Measure::Changes).is_some()) {
        for (name, measure) in [
            ("changes_per_second", Measure::Changes),
            ("argocd_calls_per_change", Measure::CallsPerChange),
            ("p50_ms", Measure::P50),
            ("p99_ms", Measure::P99),
        ] {
            all.extend(figure(run, measure).map(|value| (name.to_owned(), json!(value))));
        }
        let bytes = figure(run, Measure::Resident).map(|mebibytes| (mebibytes * 1_048_576.0).round() as u64);
        all.extend(bytes.map(|bytes| ("rss_bytes".to_owned(), json!(bytes))));
    }
    let wrong = |of: fn(&Run) -> u64| json!(results.runs.iter().map(of).sum::<u64>());
    all.insert("lost".to_owned(), wrong(|run| run.correct.lost));
    all.insert("duplicated".to_owned(), wrong(|run| run.correct.duplicated));
    all.insert("out_of_order".to_owned(), wrong(|run| run.correct.out_of_order));
    all.insert("wrong".to_owned(), wrong(|run| run.correct.wrong));
    if let Value::Object(whole) = serde_json::to_value(results)? {
        all.extend(whole);
    }
    serde_json::to_string_pretty(&all)
}

/// The table of all outcomes, what failed below it.
pub(super) fn text(outcomes: &[Outcome], broken: &[Broken]) -> String {
    let header = [
        "scenario",
        "figure",
        "beside",
        "measured",
        "must be",
        "lost",
        "duplicated",
        "out of order",
        "wrong",
    ];
    let mut rows = Vec::new();
    for outcome in outcomes {
        let figures: Vec<&Figure> =
            outcome.shown.iter().filter_map(|at| outcome.run.figures.get(*at)).collect();
        for figure in figures {
            let mut row = vec![outcome.run.scenario.clone(), figure.what.clone()];
            row.extend([beside(figure), with_unit(figure.value, &figure.unit), bound(figure)]);
            let correct = outcome.run.correct;
            for count in [correct.lost, correct.duplicated, correct.out_of_order, correct.wrong] {
                row.push(judged(&count.to_string(), count == 0));
            }
            rows.push(row);
        }
    }
    let mut text = table(2, &header, &rows);
    for outcome in outcomes {
        for violation in &outcome.violations {
            text.push_str(&format!("\n{}: not accounted for: {violation}", outcome.run.scenario));
        }
    }
    let failures = failures(outcomes, broken);
    let last = match failures.as_slice() {
        [] => "bench: everything as it must be".to_owned(),
        failures => format!("{}\nbench: {} failed", failures.join("\n"), failures.len()),
    };
    text.push_str(&format!("\n\n{}", judged(&last, failures.is_empty())));
    text
}

/// What fails the command, a line each.
pub(super) fn failures(outcomes: &[Outcome], broken: &[Broken]) -> Vec<String> {
    let told = |broken: &Broken| format!("{}: {:#}", broken.scenario, broken.error);
    let mut failures: Vec<String> = broken.iter().map(told).collect();
    for outcome in outcomes {
        let own = outcome.failures().into_iter();
        failures.extend(own.map(|failure| format!("{}: {failure}", outcome.run.scenario)));
    }
    failures
}

fn beside(figure: &Figure) -> String {
    match &figure.beside {
        Some(beside) => format!("{}: {}", beside.whose, with_unit(beside.value, &figure.unit)),
        None => "-".to_owned(),
    }
}

fn bound(figure: &Figure) -> String {
    match figure.bound {
        Some(bound) => {
            let text = match bound {
                Bound::AtLeast(least) => format!(">= {}", with_unit(least, &figure.unit)),
                Bound::AtMost(most) => format!("<= {}", with_unit(most, &figure.unit)),
            };
            let holds = bound.holds(figure.value);
            judged(&format!("{text} {}", if holds { "reached" } else { "missed" }), holds)
        }
        None => String::new(),
    }
}
