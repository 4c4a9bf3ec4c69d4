//! The tables: figures beside what they are measured against, correctness, and the numbers behind the charts.

use maud::{Markup, html};

use super::judged;
use super::number::{number, with_unit};
use crate::bench::measured::{Bound, Correct, Figure, Run};

const MEBIBYTE: f64 = 1_048_576.0;
const WRONGS: [&str; 4] = ["Lost", "Duplicated", "Out of order", "Wrong at the end"];

/// A table that is wider than a phone scrolls by itself, by touch and by key.
fn scrolling(about: &str, table: &Markup) -> Markup {
    html! { div.scroll role="region" aria-label=(about) tabindex="0" { (table) } }
}

/// Every figure of every run; whether the reports were right stands beside each.
pub(super) fn figures(runs: &[Run]) -> Markup {
    let table = html! {
        table.cards {
            thead {
                tr {
                    th scope="col" { "Figure" }
                    th.n scope="col" { "Measured" }
                    th.n scope="col" { "Beside" }
                    th.n scope="col" { "Ratio" }
                    th.n scope="col" { "Must be" }
                    th scope="col" { "Reports" }
                }
            }
            @for run in runs {
                tbody {
                    tr.run { th colspan="6" scope="rowgroup" { (run.scenario) " " small { (run.reporter) } } }
                    @for figure in &run.figures {
                        tr {
                            th scope="row" { (figure.what) }
                            td.n data-label="Measured" { strong { (with_unit(figure.value, &figure.unit)) } }
                            td.n data-label="Beside" {
                                @if let Some(beside) = &figure.beside {
                                    (with_unit(beside.value, &figure.unit)) " " small { (beside.whose) }
                                }
                            }
                            td.n data-label="Ratio" { (ratio(figure)) }
                            td.n data-label="Must be" {
                                @if let Some(bound) = figure.bound { (must(bound, figure)) }
                            }
                            td data-label="Reports" {
                                span class=(judged(run.correct.holds())) { (wrongs(run.correct)) }
                            }
                        }
                    }
                }
            }
        }
    };
    scrolling("figures", &table)
}

/// How many times better or worse than what it stands beside; a plain quotient where nobody said what is better.
fn ratio(figure: &Figure) -> String {
    let Some(beside) = &figure.beside else { return String::new() };
    let times = figure.value / beside.value;
    if !times.is_finite() || times <= 0.0 {
        return String::new();
    }
    let gain = match figure.bound {
        None => return format!("{} \u{d7}", number(times)),
        Some(Bound::AtLeast(_)) => times,
        Some(Bound::AtMost(_)) => times.recip(),
    };
    if number(gain) == "1" {
        "same".to_owned()
    } else if gain > 1.0 {
        format!("{} \u{d7} better", number(gain))
    } else {
        format!("{} \u{d7} worse", number(gain.recip()))
    }
}

fn must(bound: Bound, figure: &Figure) -> Markup {
    let (word, limit) = match bound {
        Bound::AtLeast(least) => ("at least", least),
        Bound::AtMost(most) => ("at most", most),
    };
    let kept = bound.holds(figure.value);
    html! {
        (word) " " (with_unit(limit, &figure.unit)) " "
        span class=(judged(kept)) { @if kept { "kept" } @else { "missed" } }
    }
}

/// What was wrong, in a few words.
pub(crate) fn wrongs(correct: Correct) -> String {
    let counts = [
        (correct.lost, "lost"),
        (correct.duplicated, "duplicated"),
        (correct.out_of_order, "out of order"),
        (correct.wrong, "wrong"),
    ];
    let told = counts.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, what)| format!("{} {what}", number(*count as f64))).collect();
    if told.is_empty() { "correct".to_owned() } else { told.join(", ") }
}

/// What was wrong with the reports of each run.
pub(super) fn correctness(runs: &[Run]) -> Markup {
    let table = html! {
        table.cards {
            thead {
                tr {
                    th scope="col" { "Scenario" }
                    th scope="col" { "Reporter" }
                    @for what in WRONGS {
                        th.n scope="col" { (what) }
                    }
                    th scope="col" { "Reports" }
                }
            }
            tbody {
                @for run in runs {
                    @let Correct { lost, duplicated, out_of_order, wrong } = run.correct;
                    tr {
                        th scope="row" { (run.scenario) }
                        td.name data-label="Reporter" { (run.reporter) }
                        @for (count, what) in [lost, duplicated, out_of_order, wrong].into_iter().zip(WRONGS) {
                            td class={ "n" @if count > 0 { " bad" } } data-label=(what) { (number(count as f64)) }
                        }
                        td data-label="Reports" {
                            span class=(judged(run.correct.holds())) {
                                @if run.correct.holds() { "correct" } @else { "incorrect" }
                            }
                        }
                    }
                }
            }
        }
    };
    scrolling("correctness", &table)
}

/// The numbers that the charts of a run draw.
pub(super) fn numbers(run: &Run) -> Markup {
    let curve = html! {
        table {
            thead {
                tr {
                    @for what in [
                        "Seconds", "Changes a second", "p99 (ms)", "Queue", "Memory (MiB)", "Calls per change", "Cores",
                    ] {
                        th.n scope="col" { (what) }
                    }
                }
            }
            tbody {
                @for sample in &run.curve {
                    tr {
                        th.n scope="row" { (number(sample.seconds)) }
                        td.n { (number(sample.changes)) }
                        td.n { (told(sample.p99)) }
                        td.n { (told(sample.queue.map(|queue| queue as f64))) }
                        td.n { (number(sample.resident as f64 / MEBIBYTE)) }
                        td.n { (told(sample.calls)) }
                        td.n { (number(sample.cores)) }
                    }
                }
            }
        }
    };
    let latencies = html! {
        table {
            thead { tr { th.n scope="col" { "Quantile" } th.n scope="col" { "Milliseconds" } } }
            tbody {
                @for latency in &run.latencies {
                    tr {
                        th.n scope="row" { (latency.quantile) }
                        td.n { (number(latency.milliseconds)) }
                    }
                }
            }
        }
    };
    html! {
        details {
            summary { "Numbers of " (run.reporter) }
            @if !run.latencies.is_empty() { (scrolling("latencies", &latencies)) }
            @if !run.curve.is_empty() { (scrolling("samples", &curve)) }
            @if run.latencies.is_empty() && run.curve.is_empty() { p.untold { "Not told." } }
        }
    }
}

fn told(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}
