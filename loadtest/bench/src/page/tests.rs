use std::collections::BTreeMap;

use roxmltree::Document;

use super::*;
use crate::measured::{Beside, Bound, Correct, FORMAT, Figure, Latency, Sample};

const CHARTS: usize = 6;

fn sample(second: u32) -> Sample {
    let t = f64::from(second);
    Sample {
        seconds: t,
        changes: 1_000.0 + 40.0 * (t / 2.0).sin(),
        queue: Some(20 + u64::from(second % 7)),
        resident: (30 << 20) + u64::from(second) * 10_000,
        cores: 1.2,
        calls: Some(2.0),
        p99: Some(120.0 + t),
    }
}

fn run(scenario: &str, reporter: &str) -> Run {
    let quantiles = [0.0, 0.5, 0.9, 0.99, 0.999, 1.0];
    Run {
        scenario: scenario.to_owned(),
        about: "Applications change as fast as they are reported.".to_owned(),
        reporter: reporter.to_owned(),
        conditions: BTreeMap::from([("applications".to_owned(), "10,000".to_owned())]),
        figures: vec![
            Figure {
                what: "changes a second".to_owned(),
                unit: String::new(),
                value: 1_012.0,
                beside: Some(Beside { whose: "incumbent, measured".to_owned(), value: 9.0 }),
                bound: Some(Bound::AtLeast(1_000.0)),
            },
            Figure {
                what: "resident memory".to_owned(),
                unit: "MiB".to_owned(),
                value: 72.0,
                beside: Some(Beside { whose: "incumbent, measured".to_owned(), value: 36.0 }),
                bound: Some(Bound::AtMost(48.0)),
            },
        ],
        correct: Correct::default(),
        latencies: quantiles
            .map(|quantile| Latency { quantile, milliseconds: 35.0 + 100.0 * quantile })
            .to_vec(),
        curve: (0..=20).map(sample).collect(),
    }
}

fn page(runs: Vec<Run>) -> String {
    html(&Results { format: FORMAT, when: "2026-03-01T12:30:00Z".parse().unwrap(), cores: 2, runs }).unwrap()
}

/// The charts of a page, each as it would stand in a file of its own.
fn drawn(page: &str) -> Vec<String> {
    let parts = page.split("<svg").skip(1).map(|part| part.split_once("</svg>").unwrap().0);
    parts.map(|part| format!("<svg{part}</svg>")).collect()
}

/// The points of a reporter's line.
fn points(chart: &str, at: usize) -> Vec<(f64, f64)> {
    let chart = Document::parse(chart).unwrap();
    let colour = hex(COLOURS[at]);
    let line = chart.root().descendants().find(|node| node.attribute("stroke") == Some(&colour));
    let points = line.and_then(|node| node.attribute("points")).unwrap_or_default().to_owned();
    let number = |text: &str| text.parse::<f64>().unwrap();
    let pairs = points.split_whitespace().map(|point| point.split_once(',').unwrap());
    pairs.map(|(x, y)| (number(x), number(y))).collect()
}

#[test]
fn every_chart_has_as_many_points_as_were_told_inside_of_it() {
    let page = page(vec![run("steady", "ours"), run("steady", "theirs"), run("burst", "ours")]);
    let charts = drawn(&page);
    assert_eq!(charts.len(), 2 * CHARTS);
    for (index, chart) in charts.iter().enumerate() {
        let reporters = if index < CHARTS { 2 } else { 1 };
        // The last chart of a scenario is that of the quantiles, without the maximum.
        let told = if index % CHARTS == CHARTS - 1 { 5 } else { 21 };
        for at in 0..3 {
            let points = points(chart, at);
            assert_eq!(points.len(), if at < reporters { told } else { 0 }, "chart {index}, line {at}");
            let inside = |(x, y): &(f64, f64)| (0.0..=800.0).contains(x) && (0.0..=420.0).contains(y);
            assert!(points.iter().all(inside), "{points:?}");
            assert!(points.is_sorted_by(|one, other| one.0 < other.0), "chart {index}: {points:?}");
        }
    }
    let latency = points(&charts[CHARTS - 1], 0);
    assert!(latency.is_sorted_by(|one, other| one.1 >= other.1), "up is less in SVG: {latency:?}");
}

#[test]
fn what_was_not_told_is_said_and_not_drawn() {
    let mut silent = run("steady", "theirs");
    for sample in &mut silent.curve {
        (sample.queue, sample.calls, sample.p99) = (None, None, None);
    }
    let alone = page(vec![silent]);
    assert_eq!(drawn(&alone).len(), CHARTS - 3);
    assert_eq!(alone.matches("Not told: there is nothing to draw.").count(), 3);
    assert!(page(Vec::new()).contains("No run was measured."));
}

#[test]
fn names_are_text_whatever_they_hold() {
    let bad = "<script>alert(1)</script>\"'&<svg onload=x>";
    let mut hostile = run(bad, bad);
    hostile.about = bad.to_owned();
    hostile.conditions = BTreeMap::from([(bad.to_owned(), bad.to_owned())]);
    hostile.figures[0].what = bad.to_owned();
    hostile.figures[0].unit = bad.to_owned();
    hostile.figures[0].beside = Some(Beside { whose: bad.to_owned(), value: 1.0 });
    let page = page(vec![hostile, run("steady", "ours")]);
    assert!(!page.contains("<script"), "a name became markup");
    assert!(!page.contains("<svg onload"), "a name became markup");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;'&amp;&lt;svg onload=x&gt;"));
    for chart in drawn(&page) {
        Document::parse(&chart).unwrap();
    }
}

#[test]
fn numbers_that_are_none_are_never_drawn() {
    let mut odd = run("steady", "ours");
    for (at, value) in [(0, f64::NAN), (1, f64::INFINITY), (2, f64::MAX), (3, -1.0), (4, 5e-324)] {
        odd.curve[at].changes = value;
        odd.curve[at].p99 = Some(value);
    }
    odd.curve[10].seconds = f64::NAN;
    odd.latencies[0].milliseconds = f64::NAN;
    odd.figures[0].value = f64::NAN;
    odd.figures[1].beside = Some(Beside { whose: "nobody".to_owned(), value: 0.0 });
    let page = page(vec![odd]);
    for word in ["NaN", ">inf", "Infinity"] {
        assert!(!page.contains(word), "{word}");
    }
    let counts: Vec<usize> = drawn(&page).iter().map(|chart| points(chart, 0).len()).collect();
    assert_eq!(counts, [16, 16, 20, 20, 20, 4]);
}

#[test]
fn the_page_brings_along_all_that_it_shows() {
    let page = page(vec![run("steady", "ours")]);
    for word in ["<script", "<link", "<img", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(word), "{word}");
    }
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count() + 1);
    assert!(page.contains("http-equiv=\"Content-Security-Policy\"") && page.contains("width=device-width"));
}

#[test]
fn figures_say_what_they_must_be_and_whether_they_are() {
    let mut wrong = run("steady", "theirs");
    wrong.correct = Correct { lost: 8_999, wrong: 2, ..Correct::default() };
    wrong.figures[1].bound = None;
    let page = page(vec![run("steady", "ours"), wrong]);
    let text = |page: &str| {
        let mut text = String::new();
        let mut tag = false;
        for letter in page.chars() {
            match letter {
                '<' => tag = true,
                '>' => (tag, text) = (false, text + "|"),
                _ if !tag => text.push(letter),
                _ => {}
            }
        }
        let parts: Vec<&str> = text.split('|').map(str::trim).filter(|part| !part.is_empty()).collect();
        parts.join("|")
    };
    let text = text(&page);
    for told in [
        "measured|2026-03-01 12:30 UTC",
        "applications|10,000",
        "changes a second|1,012|9|incumbent, measured|112.4 × better|at least 1,000|kept|correct",
        "resident memory|72 MiB|36 MiB|incumbent, measured|2 × worse|at most 48 MiB|missed|correct",
        "resident memory|72 MiB|36 MiB|incumbent, measured|2 ×|8,999 lost, 2 wrong",
    ] {
        assert!(text.contains(told), "{told}\n{text}");
    }
}

#[test]
fn conditions_stand_where_they_differ() {
    let (mut ours, mut theirs) = (run("steady", "ours"), run("steady", "theirs"));
    for (run, replicas) in [(&mut ours, "1"), (&mut theirs, "5")] {
        run.conditions.insert("replicas".to_owned(), replicas.to_owned());
    }
    let page = page(vec![ours, theirs]);
    assert_eq!(page.matches("<dt>applications</dt>").count(), 1, "of the scenario");
    assert_eq!(page.matches("<dt>replicas</dt>").count(), 2, "of each reporter");
}
