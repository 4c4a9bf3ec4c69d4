//! `loadtest bench` itself, as a process, in small.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::Context as _;
use loadtest_bench::measured::{Figure, Results, Run};
use loadtest_sim::process;

const SMALL: &str = "\
about: A few changes
applications: 20
resources: 4
peers:
  argocd: {latency: 20ms}
  platform: {latency: 5ms}
patience: 3s
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
    let ended = tokio::time::timeout(Duration::from_secs(240), command.output()).await;
    Ok(ended.context("the command does not end")??)
}

fn results(output: &Output) -> anyhow::Result<Results> {
    let text = String::from_utf8_lossy(&output.stdout);
    let told = || format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).with_context(told)
}

fn figure<'a>(run: &'a Run, what: &str) -> anyhow::Result<&'a Figure> {
    let found = run.figures.iter().find(|figure| figure.what == what);
    found.with_context(|| format!("there is no figure {what}: {:?}", run.figures))
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
    let files = ["--json", "out.json", "--html", "out.html"];
    let output =
        bench(folder.path(), &[&["small.yaml", "--program", &program], &files[..]].concat()).await.unwrap();
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
    let whole: serde_json::Value = serde_json::from_str(&json).unwrap();
    for name in ["changes_per_second", "argocd_calls_per_change", "p50_ms", "p99_ms", "rss_bytes"] {
        assert!(whole[name].as_f64().is_some_and(|value| value > 0.0), "{name}: {}", whole[name]);
    }
    for name in ["lost", "duplicated", "out_of_order", "wrong"] {
        assert_eq!(whole[name], 0, "{name}");
    }
    let read: Results = serde_json::from_str(&json).unwrap();
    let [run] = read.runs.as_slice() else { panic!("{table}") };
    assert!(run.correct.holds(), "{table}");
    assert_eq!((run.scenario.as_str(), run.about.as_str()), ("small", "A few changes"));
    assert_eq!(figure(run, "applications reported at the start").unwrap().value, 20.0);
    // A state that is read while the next change is made shows both, and the first one's report tells the second.
    let reports = figure(run, "reports a change").unwrap().value;
    assert!((1.0..=3.0).contains(&reports), "{table}");
    let calls = figure(run, "Argo CD calls a change, but one a new commit").unwrap().value;
    assert!((1.0..=3.0).contains(&calls), "{table}");
    assert!(
        figure(run, "changes a second").unwrap().value > 1.0
            && figure(run, "CPU a change").unwrap().value > 0.0,
        "{table}"
    );
    // No change is acknowledged sooner than its peers answer: a round of calls, and the reports.
    assert!(figure(run, "p50 from due to acknowledged").unwrap().value >= 25.0, "{table}");
    assert!(run.latencies.windows(2).all(|pair| pair[0].milliseconds <= pair[1].milliseconds));
    assert!(run.latencies.len() > 5 && run.curve.len() >= 3, "{run:?}");
    assert!(run.curve.iter().all(|sample| sample.resident > 1 << 20 && sample.queue.is_some()), "{run:?}");
    assert_eq!((output.status.code(), table.contains("must be 1000000 or more")), (Some(1), true), "{table}");
    let page = std::fs::read_to_string(folder.path().join("out.html")).unwrap();
    assert!(page.contains("<html") && page.contains("small"), "{page}");

    // The short form judges no speed.
    let output = bench(folder.path(), &["small.yaml", "--short", "--program", &program]).await.unwrap();
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!table.contains("must be 1000000 or more"), "{table}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_reporter_is_measured_by_its_command_line_and_another_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let small = SMALL
        .replace("changes, at-least: 1000000", "changes")
        .replace("calls-per-change, at-most: 2", "series");
    std::fs::write(folder.path().join("small.yaml"), small).unwrap();
    let own = command().await.unwrap();
    let output =
        bench(folder.path(), &["small.yaml", "--reporter", &own, "--beside", "sleep 600", "--json", "-"])
            .await
            .unwrap();
    let read = results(&output).unwrap();
    let [given, idle] = read.runs.as_slice() else { panic!("{read:?}") };
    assert_eq!((given.reporter.as_str(), idle.reporter.as_str()), (own.as_str(), "sleep 600"));
    assert!(given.correct.holds(), "{given:?}");
    assert!(figure(given, "changes a second").unwrap().value > 1.0);
    // Nothing but its command line is known of it: its own figures are not told, memory and series are.
    assert!(given.curve.iter().all(|sample| sample.queue.is_none() && sample.resident > 1 << 20));
    assert!(figure(given, "series exposed").unwrap().value > 10.0);
    assert!(figure(given, "resident memory, most").unwrap().value > 1.0);
    // Who stands beside fails nothing.
    assert_eq!(idle.correct.lost, 20);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reporter_that_reports_nothing_has_lost_everything_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.yaml"), SMALL).unwrap();
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
async fn more_at_once_than_the_queues_hold_is_reported_and_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let program = program().await.unwrap();
    let output =
        bench(folder.path(), &["overload", "--short", "--program", &program, "--json", "-"]).await.unwrap();
    let read = results(&output).unwrap();
    let [run] = read.runs.as_slice() else { panic!("{read:?}") };
    assert!(run.correct.holds(), "{run:?}");
    assert_eq!(figure(run, "applications reported at the start").unwrap().value, 120.0);
    assert_eq!(figure(run, "looks with an event unaccounted for").unwrap().value, 0.0);
    assert!(
        figure(run, "did not fit, marked to be read again").unwrap().value > 0.0,
        "the queues were never full"
    );
    assert!(figure(run, "API server reads a first report").unwrap().value > 0.0);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_share_applications_are_measured_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let program = program().await.unwrap();
    let output =
        bench(folder.path(), &["replicas", "--short", "--program", &program, "--json", "-"]).await.unwrap();
    let read = results(&output).unwrap();
    let [run] = read.runs.as_slice() else { panic!("{read:?}") };
    assert!(run.correct.holds(), "{run:?}");
    assert_eq!((run.conditions["processes"].as_str(), output.status.code()), ("2", Some(0)), "{run:?}");
    assert_eq!(figure(run, "applications reported at the start").unwrap().value, 60.0);
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
