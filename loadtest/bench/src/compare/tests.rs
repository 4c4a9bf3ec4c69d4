use std::collections::BTreeMap;

use super::*;
use crate::measured::{Bound, Correct, FORMAT, Figure};

fn figure(what: &str, value: f64, bound: Option<Bound>) -> Figure {
    Figure { what: what.to_owned(), unit: String::new(), value, beside: None, bound }
}

fn speed(value: f64) -> Figure {
    figure("changes a second", value, Some(Bound::AtLeast(1_000.0)))
}

fn p99(value: f64) -> Figure {
    Figure { unit: "ms".to_owned(), ..figure("p99", value, Some(Bound::AtMost(250.0))) }
}

fn run_of(scenario: &str, reporter: &str, figures: Vec<Figure>) -> Run {
    Run {
        scenario: scenario.to_owned(),
        about: String::new(),
        reporter: reporter.to_owned(),
        conditions: BTreeMap::new(),
        figures,
        correct: Correct::default(),
        latencies: Vec::new(),
        curve: Vec::new(),
    }
}

fn results(runs: Vec<Run>) -> Results {
    Results { format: FORMAT, when: "2026-03-01T12:30:00Z".parse().unwrap(), cores: 2, runs }
}

fn of(figures: Vec<Figure>) -> Results {
    results(vec![run_of("steady", "ours", figures)])
}

/// Whether B is good, and the line that says so.
fn judge(a: &Results, b: &Results, threshold: f64) -> (bool, String) {
    let compared = compare(a, b).unwrap();
    let table = compared.table(threshold);
    (compared.is_good(threshold), table.lines().last().unwrap().to_owned())
}

fn told(worse: usize, all: usize, incorrect: usize, runs: usize) -> String {
    format!(
        "B is worse by more than 5% in {worse} of {all} figures that have a direction, and reported something wrong \
         in {incorrect} of {runs} runs"
    )
}

#[test]
fn thresholds_are_read() {
    assert_eq!(threshold("5%"), Ok(0.05));
    assert_eq!(threshold("0%"), Ok(0.0));
    assert_eq!(threshold("12.5%"), Ok(0.125));
    for bad in ["5", "-1%", "101%", "five%", "NaN%", "%", ""] {
        let told = "a threshold is written as 5% or 2.5%, from 0% to 100%";
        assert_eq!(threshold(bad), Err(told.to_owned()), "{bad}");
    }
}

#[test]
fn worse_is_less_of_what_must_be_much_and_more_of_what_must_be_little() {
    let a = of(vec![speed(1_000.0), p99(100.0)]);
    for (speed_b, p99_b, worse) in [
        (1_000.0, 100.0, 0),
        (950.0, 105.0, 0),
        (2_000.0, 10.0, 0),
        (949.0, 100.0, 1),
        (1_000.0, 106.0, 1),
        (10.0, 900.0, 2),
    ] {
        let b = of(vec![speed(speed_b), p99(p99_b)]);
        assert_eq!(judge(&a, &b, 0.05), (worse == 0, told(worse, 2, 0, 1)), "{speed_b} {p99_b}");
    }
    assert!(judge(&a, &of(vec![speed(949.0), p99(106.0)]), 0.1).0, "within a tenth");
}

#[test]
fn from_nothing_anything_is_a_difference() {
    let calls = |value| figure("calls", value, Some(Bound::AtMost(2.0)));
    assert_eq!(judge(&of(vec![calls(0.0)]), &of(vec![calls(0.0)]), 0.05), (true, told(0, 1, 0, 1)));
    assert_eq!(judge(&of(vec![calls(0.0)]), &of(vec![calls(0.1)]), 0.05), (false, told(1, 1, 0, 1)));
    assert_eq!(judge(&of(vec![speed(0.0)]), &of(vec![speed(1.0)]), 0.05), (true, told(0, 1, 0, 1)));
}

#[test]
fn a_figure_without_a_bound_is_told_and_not_judged() {
    let (a, b) = (of(vec![figure("reports", 10.0, None)]), of(vec![figure("reports", 90.0, None)]));
    assert_eq!(judge(&a, &b, 0.05), (true, told(0, 0, 0, 1)));
    let bounded = of(vec![figure("reports", 90.0, Some(Bound::AtMost(50.0)))]);
    assert_eq!(judge(&a, &bounded, 0.05), (false, told(1, 1, 0, 1)), "one of the two says what is better");
}

#[test]
fn what_b_reported_wrong_counts_also_where_a_has_no_such_run() {
    let (a, mut b) = (of(vec![speed(1_000.0)]), of(vec![speed(5_000.0)]));
    b.runs[0].correct.out_of_order = 1;
    assert_eq!(judge(&a, &b, 0.05), (false, told(0, 1, 1, 1)));
    assert!(judge(&b, &a, 0.8).0, "what A reported wrong is no fault of B");

    let mut extra = run_of("burst", "ours", Vec::new());
    extra.correct.lost = 3;
    let b = results(vec![run_of("steady", "ours", vec![speed(1_000.0)]), extra]);
    assert_eq!(judge(&a, &b, 0.05), (false, told(0, 1, 1, 2)));
}

#[test]
fn the_table_says_everything_about_both() {
    let mut a = results(vec![
        run_of("steady", "reporter 0.1", vec![speed(1_000.0), p99(100.0), figure("old", 1.0, None)]),
        run_of("steady", "incumbent", vec![speed(9.0)]),
        run_of("cold", "reporter 0.1", Vec::new()),
    ]);
    let mut b = results(vec![
        run_of("steady", "incumbent", vec![speed(9.0)]),
        run_of("steady", "reporter 0.2", vec![speed(2_500.0), p99(180.0), figure("new", 2.0, None)]),
        run_of("burst", "reporter 0.2", Vec::new()),
    ]);
    a.cores = 4;
    a.runs[0].conditions = BTreeMap::from([("rate".to_owned(), "500".to_owned())]);
    b.runs[1].conditions =
        BTreeMap::from([("rate".to_owned(), "250".to_owned()), ("seed".to_owned(), "1".to_owned())]);
    b.runs[1].correct = Correct { lost: 3, ..Correct::default() };
    b.runs[2].scenario = "burst\u{1b}[31m".to_owned();
    let text = compare(&a, &b).unwrap().table(0.05);
    let expected = "\
A was measured on 4 cores and B on 2: the figures compare unlike things

steady
  A: reporter 0.1
  B: reporter 0.2
  rate differs: 500 in A, 250 in B
  seed differs: not told in A, 1 in B
                          A                                             B  B / A
 changes a second     1,000                                         2,500  2.5 x     better
 p99                 100 ms                                        180 ms  1.8 x      worse
 old                      1                                             -         only in A
 new                      -                                             2         only in B
 reports            correct  3 lost         incorrect

steady
  A: incumbent
  B: incumbent
                          A        B  B / A
 changes a second         9        9    1 x  same
 reports            correct  correct

only in A: cold, reporter 0.1: correct

only in B: burst\u{fffd}[31m, reporter 0.2: correct

B is worse by more than 5% in 1 of 3 figures that have a direction, and reported something wrong in 1 of 3 runs";
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&text), squeezed(expected), "{text}");
}

#[test]
fn nothing_in_common_is_no_comparison() {
    let (a, b) = (of(vec![speed(1.0)]), results(vec![run_of("burst", "ours", Vec::new())]));
    assert_eq!(compare(&a, &b).unwrap_err().to_string(), "compare the two: no scenario is in both");
}

#[test]
fn the_page_has_the_runs_of_both() {
    let a = of(vec![speed(1_000.0)]);
    let b = results(vec![
        run_of("steady", "ours", vec![figure("other", 1.0, None), speed(2_000.0)]),
        run_of("burst", "ours", Vec::new()),
    ]);
    let page = compare(&a, &b).unwrap().page(&a, &b).unwrap();
    for told in [
        "<h1>Comparison</h1>",
        "<dt>A</dt><dd>measured 2026-03-01 12:30 UTC, 2 processor cores</dd>",
        "steady <small>A: ours</small>",
        "steady <small>B: ours</small>",
        "burst <small>B: ours</small>",
        "1,000 <small>A</small>",
        "2 \u{d7} better",
    ] {
        assert!(page.contains(told), "{told}");
    }
}
