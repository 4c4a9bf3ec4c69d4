//! `loadtest compare`, run as a person runs it: what it prints, what it refuses, and how it exits.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

/// A folder with files, and the command run in it.
struct Desk(tempfile::TempDir);

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn compare(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadtest"));
        command.arg("compare").args(args).current_dir(self.0.path());
        // What a shell may have set would stand among the messages.
        let output = command.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE").output().unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn results(scenario: &str, changes: f64, lost: u64) -> Value {
    let sample = |second: u32| {
        json!({
            "seconds": second, "changes": changes, "queue": 3, "resident": 40_000_000, "cores": 1.5, "calls": 2.0,
            "p99": null,
        })
    };
    json!({
        "format": 1,
        "when": "2026-03-01T12:30:00Z",
        "cores": 2,
        "runs": [{
            "scenario": scenario,
            "about": "Applications change as often as they are reported.",
            "reporter": "gitops-runtime 0.1.0",
            "conditions": { "applications": "10,000" },
            "figures": [{
                "what": "changes a second", "unit": "", "value": changes,
                "beside": { "whose": "incumbent, measured", "value": 9.0 }, "bound": { "at_least": 1000.0 },
            }],
            "correct": { "lost": lost, "duplicated": 0, "out_of_order": 0, "wrong": 0 },
            "latencies": [
                { "quantile": 0.5, "milliseconds": 40.0 }, { "quantile": 0.99, "milliseconds": 140.0 },
                { "quantile": 1.0, "milliseconds": 190.0 },
            ],
            "curve": (0..5).map(sample).collect::<Vec<_>>(),
        }],
    })
}

#[test]
fn better_is_0_and_worse_or_incorrect_is_1() {
    let desk = Desk::new();
    for (name, changes, lost) in
        [("a", 1_000.0, 0), ("faster", 2_000.0, 0), ("slower", 900.0, 0), ("wrong", 2_000.0, 7)]
    {
        desk.write(name, &results("steady", changes, lost).to_string());
    }
    let conclusion = |worse: u32, percent: &str, wrong: u32| {
        format!(
            "B is worse by more than {percent}% in {worse} of 1 figures that have a direction, and reported something \
             wrong in {wrong} of 1 runs"
        )
    };
    for (args, code, told) in [
        (vec!["a", "a"], 0, conclusion(0, "5", 0)),
        (vec!["a", "faster"], 0, conclusion(0, "5", 0)),
        (vec!["a", "slower"], 1, conclusion(1, "5", 0)),
        (vec!["a", "slower", "--threshold", "12.5%"], 0, conclusion(0, "12.5", 0)),
        (vec!["a", "wrong"], 1, conclusion(0, "5", 1)),
    ] {
        let ran = desk.compare(&args);
        assert_eq!(ran.out.lines().last(), Some(told.as_str()), "{args:?}\n{}{}", ran.out, ran.err);
        assert_eq!((ran.code, ran.err.as_str()), (Some(code), ""), "{args:?}\n{}", ran.out);
    }
    let ran = desk.compare(&["a", "slower"]);
    assert!(ran.out.contains("changes a second    1,000      900  0.9 x  worse"), "{}", ran.out);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let desk = Desk::new();
    let good = results("steady", 1_000.0, 0);
    desk.write("good", &good.to_string());
    desk.write("burst", &results("burst", 1_000.0, 0).to_string());
    desk.write("words", "changes: 1,000");
    desk.write("half", "{\n  \"format\": 1,\n  \"runs\": [");
    desk.write("list", "[]");
    desk.write("before", "{\"changes_per_second\": 9.0, \"token\": \"s3cret\"}");
    desk.write("newer", "{\"format\": 2, \"trials\": []}");
    let mut odd = good;
    odd["runs"][0]["figures"][0]["value"] = json!("s3cret");
    desk.write("odd", &odd.to_string());
    desk.write("bare", "{\"format\": 1}");
    let file = std::fs::File::create(desk.path("large")).unwrap();
    file.set_len((64 << 20) + 1).unwrap();

    let none = "no results of `loadtest bench --json`: ";
    let mut all = String::new();
    for (file, told) in [
        ("absent", "open absent\n\nCaused by:\n    No such file or directory (os error 2)".to_owned()),
        ("words", "read words: not JSON (line 1, column 1)".to_owned()),
        ("half", "read half: not JSON (line 3, column 11)".to_owned()),
        ("list", format!("read list: {none}they begin with a number called `format`")),
        ("before", format!("read before: {none}they begin with a number called `format`")),
        (
            "newer",
            "read newer: results of format 2, and this program reads format 1: measure again, or compare with the \
             program that wrote them"
                .to_owned(),
        ),
        (
            "odd",
            format!(
                "read odd: {none}something is missing or of another kind at runs[0].figures[0].value (line 1, column {})",
                odd.to_string().split_once("\"s3cret\"").unwrap().0.len() + 8
            ),
        ),
        ("bare", format!("read bare: {none}something is missing or of another kind at the top (line 1, column 13)")),
        ("large", "read large: larger than 64 MiB, which no file of results is".to_owned()),
        ("burst", "compare the two: no scenario is in both".to_owned()),
    ] {
        for args in [["good", file], [file, "good"]] {
            let ran = desk.compare(&args);
            assert_eq!((ran.code, ran.out.as_str(), ran.err), (Some(1), "", format!("Error: {told}\n")), "{args:?}");
            write!(all, "{}", desk.compare(&args).err).unwrap();
        }
    }
    assert!(!all.contains("s3cret"), "what stands in a file is never told");

    let ran = desk.compare(&["good", "good", "--threshold", "0.05"]);
    let told = "error: invalid value '0.05' for '--threshold <PERCENT>': a threshold is written as 5% or 2.5%, from 0% \
                to 100%";
    assert_eq!((ran.code, ran.err.lines().next()), (Some(2), Some(told)));

    let ran = desk.compare(&["good", "good", "--html", "nowhere/page.html"]);
    let told = "Error: write the page to nowhere/page.html\n\nCaused by:\n    No such file or directory (os error 2)\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), told));
}

#[test]
fn the_page_draws_both() {
    let desk = Desk::new();
    desk.write("a", &results("steady", 1_000.0, 0).to_string());
    desk.write("b", &results("steady", 1_500.0, 0).to_string());
    let ran = desk.compare(&["a", "b", "--html", "page.html"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let page = std::fs::read_to_string(desk.path("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"), "{}", page.lines().next().unwrap());
    // All but the p99 over time, which no sample told; in each a line of A and one of B.
    assert_eq!(page.matches("<svg ").count(), 5);
    assert_eq!(page.matches("Not told: there is nothing to draw.").count(), 1);
    for colour in ["#0B5CAD", "#B84600"] {
        let line = format!("<polyline fill=\"none\" opacity=\"1\" stroke=\"{colour}\"");
        assert_eq!(page.matches(&line).count(), 5, "{colour}");
    }
}

#[test]
fn the_help_has_examples() {
    let ran = Desk::new().compare(&["--help"]);
    assert_eq!(ran.code, Some(0));
    for told in [
        "Usage: loadtest compare [OPTIONS] <A> <B>",
        "loadtest compare before.json after.json --threshold 10% --html compared.html",
        "[default: 5%]",
        "Exit codes: 0, or 1 when B is worse",
    ] {
        assert!(ran.out.contains(told), "{told}\n{}", ran.out);
    }
}
