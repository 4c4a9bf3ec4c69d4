use std::collections::BTreeMap;

use roxmltree::{Document, Node};

use super::*;
use crate::bench::measured::{Beside, Bound, Correct, FORMAT, Figure, Latency, Sample};

const CHARTS: usize = 7;

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
fn charts(page: &str) -> Vec<String> {
    let parts = page.split("<svg class=\"chart\"").skip(1);
    let own = |part: &str| part.split_once("<ul class=\"legend\"").unwrap().0.to_owned();
    parts.map(|part| format!("<svg class=\"chart\"{}", own(part))).collect()
}

fn with_stroke<'a>(chart: &'a Document<'_>, at: usize) -> Vec<Node<'a, 'a>> {
    let colour = palette::hex(palette::COLOURS[at].light);
    let is_line = |node: &Node<'_, '_>| {
        node.is_element() && [node.attribute("stroke"), node.attribute("fill")].contains(&Some(&colour))
    };
    chart.root().descendants().filter(is_line).collect()
}

/// The points of a reporter's line: of its parts, and those that stand alone.
fn points(chart: &Document<'_>, at: usize) -> Vec<(f64, f64)> {
    let number = |text: &str| text.parse::<f64>().unwrap();
    with_stroke(chart, at)
        .iter()
        .flat_map(|node| match node.attribute("points") {
            Some(points) => {
                points.split_whitespace().map(|point| point.split_once(',').unwrap()).collect::<Vec<_>>()
            }
            None => vec![(node.attribute("cx").unwrap(), node.attribute("cy").unwrap())],
        })
        .map(|(x, y)| (number(x), number(y)))
        .collect()
}

#[test]
fn every_chart_has_as_many_points_as_were_told_inside_of_it() {
    let page = page(vec![run("steady", "ours"), run("steady", "theirs"), run("burst", "ours")]);
    let charts = charts(&page);
    assert_eq!(charts.len(), 2 * CHARTS);
    for (index, chart) in charts.iter().enumerate() {
        let chart = Document::parse(chart).unwrap();
        let reporters = if index < CHARTS { 2 } else { 1 };
        // The second chart of a scenario is that of the quantiles.
        let told = if index % CHARTS == 1 { 6 } else { 21 };
        for at in 0..3 {
            let points = points(&chart, at);
            assert_eq!(points.len(), if at < reporters { told } else { 0 }, "chart {index}, line {at}");
            let inside = |(x, y): &(f64, f64)| (0.0..=800.0).contains(x) && (0.0..=440.0).contains(y);
            assert!(points.iter().all(inside), "{points:?}");
            assert!(points.is_sorted_by(|one, other| one.0 < other.0), "chart {index}: {points:?}");
        }
    }
}

#[test]
fn a_line_rises_where_the_values_rise() {
    let page = page(vec![run("steady", "ours")]);
    let latency = &charts(&page)[1];
    let points = points(&Document::parse(latency).unwrap(), 0);
    assert!(points.is_sorted_by(|one, other| one.1 >= other.1), "up is less in SVG: {points:?}");
    assert!(points[0].1 - points[5].1 > 100.0, "{points:?}");
}

#[test]
fn each_chart_is_told_in_words_too() {
    let page = page(vec![run("steady", "ours")]);
    let mut names = Vec::new();
    for chart in charts(&page) {
        let chart = Document::parse(&chart).unwrap();
        let svg = chart.root_element();
        assert_eq!(svg.attribute("role"), Some("img"));
        let labels: Vec<&str> = svg.attribute("aria-labelledby").unwrap().split(' ').collect();
        let of = |tag: &str| {
            svg.children().find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", tag))).unwrap()
        };
        assert_eq!(labels, [of("title").attribute("id").unwrap(), of("desc").attribute("id").unwrap()]);
        assert!(of("desc").text().unwrap().contains("ours: "), "{:?}", of("desc").text());
        names.push(of("title").text().unwrap().to_owned());
    }
    assert_eq!(
        names,
        [
            "Throughput, changes a second",
            "Latency, milliseconds, from due to acknowledged",
            "99th percentile over time, milliseconds",
            "Queue, events queued, waiting and in flight",
            "Resident memory, MiB",
            "Calls per change, calls to Argo CD",
            "Processor, cores used",
        ]
    );
    // The same numbers stand in a table: the last sample's p99, the memory, and a quantile.
    for number in [">140<", ">30.19<", ">134.9<"] {
        assert!(page.contains(number), "{number}");
    }
}

#[test]
fn what_was_not_told_is_said_and_not_drawn() {
    let mut silent = run("steady", "theirs");
    for sample in &mut silent.curve {
        (sample.queue, sample.calls, sample.p99) = (None, None, None);
    }
    let alone = page(vec![silent.clone()]);
    assert_eq!(charts(&alone).len(), CHARTS - 3);
    assert_eq!(alone.matches("Not told: there is nothing to draw.").count(), 3);

    let beside = page(vec![run("steady", "ours"), silent]);
    assert_eq!(charts(&beside).len(), CHARTS);
    assert_eq!(beside.matches("<em>not told</em>").count(), 3);
    assert!(beside.contains("theirs: not told."));

    let mut nothing = run("steady", "ours");
    (nothing.curve, nothing.latencies) = (Vec::new(), Vec::new());
    let nothing = page(vec![nothing]);
    assert_eq!(charts(&nothing).len(), 0);
    assert_eq!(nothing.matches("Not told: there is nothing to draw.").count(), CHARTS);
    assert!(page(Vec::new()).contains("No run was measured."));
}

#[test]
fn a_line_has_a_gap_where_a_sample_is_silent() {
    let mut gaps = run("steady", "ours");
    for second in [5, 7, 8] {
        gaps.curve[second].p99 = None;
    }
    let page = page(vec![gaps]);
    let chart = &charts(&page)[2];
    let chart = Document::parse(chart).unwrap();
    let parts: Vec<(&str, usize)> = with_stroke(&chart, 0)
        .iter()
        .map(|node| {
            (node.tag_name().name(), node.attribute("points").map_or(1, |all| all.split_whitespace().count()))
        })
        .collect();
    assert_eq!(parts, [("polyline", 5), ("circle", 1), ("polyline", 12)]);
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
    for chart in charts(&page) {
        Document::parse(&chart).unwrap();
    }
}

#[test]
fn numbers_that_are_none_are_never_drawn() {
    let mut odd = run("steady", "ours");
    for (at, value) in [(0, f64::NAN), (1, f64::INFINITY), (2, f64::MAX), (3, -1.0), (4, 5e-324)] {
        odd.curve[at].changes = value;
        odd.curve[at].p99 = Some(value);
        odd.curve[at].calls = Some(value);
    }
    odd.curve[10].seconds = f64::NAN;
    odd.curve[11].resident = u64::MAX;
    odd.latencies[0].milliseconds = f64::NAN;
    odd.latencies[1].quantile = 7.0;
    odd.figures[0].value = f64::NAN;
    odd.figures[1].beside = Some(Beside { whose: "nobody".to_owned(), value: 0.0 });
    let page = page(vec![odd]);
    for word in ["NaN", "inf", "Inf"] {
        assert!(!page.replace("inflight", "").contains(word), "{word}");
    }
    let charts = charts(&page);
    let counts: Vec<usize> =
        charts.iter().map(|chart| points(&Document::parse(chart).unwrap(), 0).len()).collect();
    // One sample has no time; two have no number; of the quantiles one has no number and one is none.
    assert_eq!(counts, [18, 4, 18, 20, 20, 18, 20]);
}

#[test]
fn the_page_brings_along_all_that_it_shows() {
    let page = page(vec![run("steady", "ours")]);
    for word in ["<script", "<link", "<img", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(word), "{word}");
    }
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count() + 1);
    assert!(page.contains("http-equiv=\"Content-Security-Policy\""));
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("width=device-width"));
    for at in 0..palette::COLOURS.len() {
        let light = palette::hex(palette::COLOURS[at].light);
        assert!(page.contains(&format!("svg [stroke=\"{light}\"]{{stroke:#")), "no colour by dark: {light}");
    }
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
        "2 of 3 bounds kept|1 of 2 runs reported correctly",
        "measured|2026-03-01 12:30 UTC",
        "Conditions of every run|applications|10,000",
        "changes a second|1,012|9|incumbent, measured|112.4 × better|at least 1,000|kept|correct",
        "resident memory|72 MiB|36 MiB|incumbent, measured|2 × worse|at most 48 MiB|missed|correct",
        "resident memory|72 MiB|36 MiB|incumbent, measured|2 ×|8,999 lost, 2 wrong",
        "steady|ours|0|0|0|0|correct",
        "steady|theirs|8,999|0|0|2|incorrect",
    ] {
        assert!(text.contains(told), "{told}\n{text}");
    }
}

#[test]
fn conditions_stand_where_they_differ() {
    let (mut ours, mut theirs) = (run("steady", "ours"), run("steady", "theirs"));
    let mut other = run("burst", "ours");
    for (run, argocd, replicas) in
        [(&mut ours, "20ms", "1"), (&mut theirs, "20ms", "5"), (&mut other, "80ms", "1")]
    {
        run.conditions.insert("Argo CD answers after".to_owned(), argocd.to_owned());
        run.conditions.insert("replicas".to_owned(), replicas.to_owned());
    }
    let page = page(vec![ours, theirs, other]);
    assert_eq!(page.matches("<dt>applications</dt>").count(), 1, "of every run");
    assert_eq!(page.matches("<dt>Argo CD answers after</dt>").count(), 2, "of each scenario");
    assert_eq!(page.matches("<dt>replicas</dt>").count(), 3, "of two reporters, and of a scenario");
}

#[test]
fn more_reporters_than_colours_are_said() {
    let runs = (0..9).map(|number| run("steady", &format!("reporter {number}"))).collect();
    let page = page(runs);
    assert!(page.contains("Only the first 8 are drawn; the tables have all of them."));
    assert!(page.contains("Numbers of reporter 8"));
}
