//! `loadtest bench` itself, as a process, in small.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::Context as _;
use loadtest_sim::process;
use serde_json::{Value, json};

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

/// The one run that standard output tells of.
fn run(output: &Output) -> anyhow::Result<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let told = || format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    let mut whole: Value = serde_json::from_str(&text).with_context(told)?;
    anyhow::ensure!(whole["runs"].as_array().is_some_and(|runs| runs.len() == 1), "{whole}");
    Ok(whole["runs"][0].take())
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

/// This product, by a command line and settings in the environment.
async fn command() -> anyhow::Result<String> {
    let program = program().await?;
    Ok(format!(
        "GITOPS_RUNTIME_KUBERNETES__KUBECONFIG={{kubeconfig}} GITOPS_RUNTIME_ARGOCD__URL={{argocd}} \
         GITOPS_RUNTIME_ARGOCD__TOKEN={{argocd_token}} GITOPS_RUNTIME_PLATFORM__URL={{platform}} \
         GITOPS_RUNTIME_PLATFORM__TOKEN={{token}} GITOPS_RUNTIME_STATE__DIRECTORY={{state}} \
         GITOPS_RUNTIME_SERVE__ADDRESS=127.0.0.1:{{port}} GITOPS_RUNTIME_SERVE__METRICS_ADDRESS=127.0.0.1:0 \
         '{program}' reporter"
    ))
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
async fn any_reporter_is_measured_by_its_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let small = SMALL
        .replace("changes, at-least: 1000000", "changes")
        .replace("calls-per-change, at-most: 2", "series");
    std::fs::write(folder.path().join("small.yaml"), small).unwrap();
    let own = command().await.unwrap();
    let output = bench(folder.path(), &["small.yaml", "--reporter", &own, "--json", "-"]).await.unwrap();
    let given = run(&output).unwrap();
    assert_eq!(given["reporter"], own);
    assert!(is_correct(&given), "{given}");
    // Nothing but its command line is known of it: memory and series are measured from outside.
    assert!(figure(&given, "series exposed").unwrap() > 10.0);
    assert!(figure(&given, "resident memory, most").unwrap() > 1.0);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_stands_beside_fails_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let idle = SMALL.replace("patience: 300s", "patience: 1s").replace("at-least", "at-most");
    let idle = idle.split("figures:").next().unwrap().to_owned() + "figures: []\n";
    std::fs::write(folder.path().join("idle.yaml"), idle).unwrap();
    let arguments = ["idle.yaml", "--reporter", "sleep 600", "--beside", "sleep 601", "--json", "out.json"];
    let output = bench(folder.path(), &arguments).await.unwrap();
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
    let whole: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&whole["lost"], whole["runs"].as_array().map(Vec::len)), (&json!(40), Some(2)), "{table}");
    assert!(table.contains("bench: 1 failed"), "the one that is judged: {table}");
    assert_eq!(output.status.code(), Some(1), "{table}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reporter_that_reports_nothing_has_lost_everything_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let small = SMALL.replace("patience: 300s", "patience: 1s");
    std::fs::write(folder.path().join("small.yaml"), small).unwrap();
    let output = bench(folder.path(), &["small.yaml", "--short", "--reporter", "sleep 600"]).await.unwrap();
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
    let output =
        bench(folder.path(), &["small.yaml", "--reporter", "sh -c 'echo no such flag >&2'"]).await.unwrap();
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{table}");
    assert!(table.contains("the reporter has ended; the end of its log:"), "{table}");
    assert!(table.contains("bench: 1 failed"), "{table}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_is_is_listed_and_what_there_is_not_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = bench(folder.path(), &["--list"]).await.unwrap();
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(list.contains(" steady") && list.contains("in the table") && list.contains(" rough"), "{list}");
    let output = bench(folder.path(), &["nothing"]).await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("there is neither a scenario nor a file \"nothing\"; there are steady, "),
        "{told}"
    );
    assert_eq!(output.status.code(), Some(1));
    let output = bench(folder.path(), &["--reporter", "{nowhere}"]).await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("there is no placeholder {nowhere}; there are {kubeconfig}, "), "{told}");
    assert_eq!(output.status.code(), Some(2));
}
