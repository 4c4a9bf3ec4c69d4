//! The results as one HTML page that needs no network and no script: tables, and charts as inline SVG.
//!
//! takes: what was measured - gives: the page's text - fails: when a chart cannot be drawn
//!
//! All names come from files that others write: everything goes through the template library, which escapes it,
//! and the page forbids itself whatever it does not bring along.

mod axis;
mod chart;
mod charts;
mod number;
mod palette;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::measured::{Results, Run};
pub(super) use number::{number, with_unit};
pub(super) use tables::wrongs;

const STYLE: &str = include_str!("page/style.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// What stands above the runs.
#[derive(Debug)]
pub(super) struct Head {
    /// Title and first heading.
    pub(super) title: String,
    /// Words and what they say, e.g. `measured` and a time.
    pub(super) facts: Vec<(String, String)>,
}

/// The page of one command's results.
///
/// # Errors
/// When a chart cannot be drawn.
pub(crate) fn html(results: &Results) -> anyhow::Result<String> {
    let facts = [
        ("measured", time(results)),
        ("processor cores, shared by reporter, simulators and driver", results.cores.to_string()),
    ];
    let head = Head {
        title: "Benchmark".to_owned(),
        facts: facts.map(|(word, said)| (word.to_owned(), said)).into(),
    };
    draw(&head, &results.runs)
}

/// When the first run began, to the minute.
pub(super) fn time(results: &Results) -> String {
    results.when.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// The page of any runs.
///
/// # Errors
/// As [`html()`].
pub(super) fn draw(head: &Head, runs: &[Run]) -> anyhow::Result<String> {
    let all: Vec<&Run> = runs.iter().collect();
    let common = shared(&all);
    let mut sections = Vec::new();
    for (index, (name, runs)) in scenarios(runs).into_iter().enumerate() {
        sections.push(section(index, name, &runs, &common)?);
    }
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (head.title) }
                style { (PreEscaped(STYLE)) (PreEscaped(palette::rules())) }
            }
            body {
                header {
                    h1 { (head.title) }
                    (verdict(runs))
                    (terms(head.facts.iter().map(|(word, said)| (word.as_str(), said.as_str()))))
                    @if !common.is_empty() {
                        h2 { "Conditions of every run" }
                        (terms(common.iter().map(|(word, said)| (*word, *said))))
                    }
                }
                main {
                    @if runs.is_empty() {
                        p.untold { "No run was measured." }
                    } @else {
                        section aria-labelledby="figures" {
                            h2 id="figures" { "Figures" }
                            (tables::figures(runs))
                        }
                        section aria-labelledby="correctness" {
                            h2 id="correctness" { "Correctness" }
                            (tables::correctness(runs))
                        }
                    }
                    @for section in &sections { (section) }
                }
            }
        }
    };
    Ok(page.into_string())
}

/// The runs by scenario, in the order of first appearance.
fn scenarios(runs: &[Run]) -> Vec<(&str, Vec<&Run>)> {
    let mut found: Vec<(&str, Vec<&Run>)> = Vec::new();
    for run in runs {
        match found.iter_mut().find(|(name, _)| *name == run.scenario) {
            Some((_, runs)) => runs.push(run),
            None => found.push((&run.scenario, vec![run])),
        }
    }
    found
}

/// The conditions that all runs have alike.
fn shared<'a>(runs: &[&'a Run]) -> BTreeMap<&'a str, &'a str> {
    let Some((first, others)) = runs.split_first() else { return BTreeMap::new() };
    first
        .conditions
        .iter()
        .filter(|(word, said)| others.iter().all(|run| run.conditions.get(*word) == Some(*said)))
        .map(|(word, said)| (word.as_str(), said.as_str()))
        .collect()
}

/// How many bounds are kept, and whether the reports were right.
fn verdict(runs: &[Run]) -> Markup {
    let bounds: Vec<bool> = runs
        .iter()
        .flat_map(|run| &run.figures)
        .filter_map(|figure| figure.bound.map(|bound| bound.holds(figure.value)))
        .collect();
    let kept = bounds.iter().filter(|kept| **kept).count();
    let correct = runs.iter().filter(|run| run.correct.holds()).count();
    html! {
        p.verdict {
            span class=(judged(kept == bounds.len())) { (kept) " of " (bounds.len()) " bounds kept" }
            span class=(judged(correct == runs.len())) {
                (correct) " of " (runs.len()) " runs reported correctly"
            }
        }
    }
}

fn judged(good: bool) -> &'static str {
    if good { "good" } else { "bad" }
}

/// One scenario: what it is about, and the charts of its runs.
fn section(index: usize, name: &str, runs: &[&Run], common: &BTreeMap<&str, &str>) -> anyhow::Result<Markup> {
    let alike = shared(runs);
    let own = alike.iter().filter(|(word, _)| !common.contains_key(*word));
    let mut abouts: Vec<&str> = Vec::new();
    for run in runs {
        if !run.about.is_empty() && !abouts.contains(&run.about.as_str()) {
            abouts.push(&run.about);
        }
    }
    let charts = charts::of(index, runs)?;
    Ok(html! {
        section aria-labelledby={ "s" (index) } {
            h2 id={ "s" (index) } { (name) }
            @for about in abouts { p { (about) } }
            (terms(own.map(|(word, said)| (*word, *said))))
            ol.reporters {
                @for (at, run) in runs.iter().enumerate() {
                    li {
                        @if at < palette::COLOURS.len() { (palette::swatch(at)) }
                        (run.reporter)
                        @let differing = run.conditions.iter().filter(|(word, _)| !alike.contains_key(word.as_str()));
                        (terms(differing.map(|(word, said)| (word.as_str(), said.as_str()))))
                    }
                }
            }
            @if runs.len() > palette::COLOURS.len() {
                p.untold { "Only the first " (palette::COLOURS.len()) " are drawn; the tables have all of them." }
            }
            div.charts { @for chart in &charts { (chart) } }
            @for run in runs { (tables::numbers(run)) }
        }
    })
}

/// Words and what they say, as a list; nothing where there are none.
fn terms<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Markup {
    let mut pairs = pairs.peekable();
    html! {
        @if pairs.peek().is_some() {
            dl {
                @for (word, said) in pairs { div { dt { (word) } dd { (said) } } }
            }
        }
    }
}
