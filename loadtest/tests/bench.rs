//! `loadtest bench` itself, as a process, in small.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::Context as _;
use loadtest_sim::process;
use serde_json::Value;

const SMALL: &str = "\
about: A few changes
applications: 20
resources: 4
peers:
  argocd: {latency: 20ms}
  platform: {latency: 5ms}
patience: 300s
changes:
  - {rate: max, outstanding: 8, seconds: 1.5}
  - {rate: half, seconds: 1.5}
figures:
  - {what: changes, at-least: 1000000}
  - {what: calls-per-change, at-most: 2}
  - {what: p99}
  - {what: resident}
";

/// Runs `loadtest bench`; a hang is told, not waited for.
async fn bench(folder: &Path, args: &[&str]) -> anyhow::Result<Output> {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_loadtest"));
    command.arg("bench").args(args).current_dir(folder).kill_on_drop(true);
    let ended = tokio::time::timeout(Duration::from_secs(600), command.output()).await;
    Ok(ended.context("the command does not end")??)
}

fn figure(run: &Value, what: &str) -> anyhow::Result<f64> {
    let figures = run["figures"].as_array().into_iter().flatten();
    let found = figures.into_iter().find(|figure| figure["what"] == what);
    found.and_then(|figure| figure["value"].as_f64()).with_context(|| format!("there is no {what}: {run}"))
}

fn is_correct(run: &Value) -> bool {
    run["correct"]
        .as_object()
        .is_some_and(|counts| counts.len() == 4 && counts.values().all(|count| *count == 0))
}

async fn program() -> anyhow::Result<String> {
    Ok(process::binary().await?.display().to_string())
}

/// A program of these lines of a shell.
fn script(folder: &Path, lines: &str) -> anyhow::Result<String> {
    let path = folder.join("reporter");
    std::fs::write(&path, format!("#!/bin/sh\n{lines}\n"))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700))?;
    Ok(path.display().to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scenario_of_a_file_is_measured_and_a_missed_bound_fails_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.yaml"), SMALL).unwrap();
    let program = program().await.unwrap();
    let output =
        bench(folder.path(), &["small.yaml", "--program", &program, "--json", "out.json"]).await.unwrap();
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
    let whole: Value = serde_json::from_str(&json).unwrap();
    for name in ["changes_per_second", "argocd_calls_per_change", "p50_ms", "p99_ms", "rss_bytes"] {
        assert!(whole[name].as_f64().is_some_and(|value| value > 0.0), "{name}: {}", whole[name]);
    }
    for name in ["lost", "duplicated", "out_of_order", "wrong"] {
        assert_eq!(whole[name], 0, "{name}");
    }
    let run = &whole["runs"][0];
    assert!(is_correct(run), "{table}");
    assert_eq!((run["scenario"].as_str(), run["about"].as_str()), (Some("small"), Some("A few changes")));
    assert_eq!(figure(run, "applications reported at the start").unwrap(), 20.0);
    // It is counted in hundredths of a second, so that a few changes may take none.
    assert!(figure(run, "CPU a change").is_ok(), "{table}");
    // No change is acknowledged sooner than its peers answer: a round of calls, and the reports.
    assert!(figure(run, "p50 from due to acknowledged").unwrap() >= 25.0, "{table}");
    let latencies: Vec<f64> = run["latencies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["milliseconds"].as_f64().unwrap())
        .collect();
    assert!(latencies.len() > 5 && latencies.is_sorted(), "{latencies:?}");
    assert_eq!((output.status.code(), table.contains("must be 1000000 or more")), (Some(1), true), "{table}");

    // The short form judges no speed.
    let output = bench(folder.path(), &["small.yaml", "--short", "--program", &program]).await.unwrap();
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!table.contains("must be 1000000 or more"), "{table}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reporter_that_reports_nothing_has_lost_everything_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let small = SMALL.replace("patience: 300s", "patience: 1s");
    std::fs::write(folder.path().join("small.yaml"), small).unwrap();
    // Nobody listens there.
    let elsewhere = format!(
        "exec env GITOPS_RUNTIME_PLATFORM__URL=http://127.0.0.1:1 '{}' \"$@\"",
        program().await.unwrap()
    );
    let program = script(folder.path(), &elsewhere).unwrap();
    let output = bench(folder.path(), &["small.yaml", "--short", "--program", &program]).await.unwrap();
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{table}");
    for line in [
        "small: 20 lost, 0 duplicated, 0 out of order, 0 wrong at the end",
        "small: changes a second: not measured",
        "small: p99 from due to acknowledged: not measured",
        "bench: 4 failed",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reporter_that_ends_is_told_with_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.yaml"), SMALL).unwrap();
    let program = script(folder.path(), "echo no such flag >&2").unwrap();
    let output = bench(folder.path(), &["small.yaml", "--program", &program]).await.unwrap();
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{table}");
    assert!(table.contains("no such flag"), "{table}");
    assert!(table.contains("bench: 1 failed"), "{table}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_is_is_listed_and_what_there_is_not_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = bench(folder.path(), &["--list"]).await.unwrap();
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(list.contains(" steady") && list.contains("in the table") && list.contains(" bus"), "{list}");
    let output = bench(folder.path(), &["nothing"]).await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("there is neither a scenario nor a file \"nothing\"; there are steady, "),
        "{told}"
    );
    assert_eq!(output.status.code(), Some(1));
}
