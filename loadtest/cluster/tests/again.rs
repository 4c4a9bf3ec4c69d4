//! What the real binary reported is recorded, and reported again when the recording is replayed to it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use loadtest_cluster::again::{self, Outcome};
use loadtest_cluster::oracle::Witness;
use loadtest_cluster::record::{Config, Recorder};
use loadtest_sim::platform::Keep;
use loadtest_sim::process;
use loadtest_sim::recordings::{Case, ReportLine, load_dir, packed};
use loadtest_sim::reporter::{REDACTION_KEY, Reporter};
use loadtest_sim::{Load, Setup, Simulation};
use serde_json::{Value, json};

/// How long the reporter may take to be done with everything; a fact that could not be had is asked for after a minute.
const DONE: Duration = Duration::from_secs(120);

async fn kubernetes(simulation: &Simulation) -> kube::Client {
    let text = std::fs::read_to_string(simulation.directory().join("kubeconfig")).unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

/// Plays cases, with pauses between their events of at most so long, and records what a reporter with more settings
/// does.
async fn record(
    (program, directory): (&Path, &Path),
    cases: Vec<Case>,
    pause: Duration,
    more: Value,
) -> Vec<Case> {
    let names: BTreeMap<String, Vec<String>> =
        cases.iter().map(|case| (case.name.clone(), case.meta.applications.clone())).collect();
    let mut simulation = Simulation::start(Setup {
        load: Load::Recording(cases),
        tls: [None; 3],
        argocd_latency: Duration::from_millis(10),
        platform_latency: Duration::from_millis(5),
        keep: Keep { last: true, reports: 0 },
        ..Setup::default()
    })
    .await
    .unwrap();
    let config = Config {
        directory: directory.to_path_buf(),
        cases: names,
        argocd: simulation.argocd.url(),
        token: std::fs::read_to_string(simulation.directory().join("argocd-token")).unwrap(),
        namespace: "argocd".to_owned(),
        hidden: Vec::new(),
    };
    let witness = Witness::start(kubernetes(&simulation).await, "argocd").await.unwrap();
    let recorder = Recorder::start(config, &simulation.platform, &witness).await.unwrap();
    let key = simulation.directory().join("redaction-key");
    std::fs::write(&key, REDACTION_KEY).unwrap();
    let settings = json!({
        "argocd": {"url": recorder.url()}, "redaction": {"keyFile": key}, "reporter": more,
    });
    let reporter = Reporter::start(program, &simulation, &settings).await.unwrap();
    reporter.ready(DONE).await.unwrap();
    let mut player = simulation.player.take().unwrap();
    let events = player.remaining() as u64;
    player.play(&simulation.kube, 1.0, pause).await.unwrap();
    let done =
        |total: loadtest_sim::reporter::Figures| total.observed >= events && total.idle() && total.owed == 0;
    reporter.wait(DONE, "everything to be reported", |status| done(status.total)).await.unwrap();
    reporter.stop().await.unwrap();
    recorder.finish(&simulation.platform).await.unwrap();
    simulation.stop().await.unwrap();
    let recorded = load_dir(directory).unwrap();
    assert_eq!(recorded.iter().map(|case| case.watch.len() as u64).sum::<u64>(), events);
    recorded
}

async fn replayed(program: &Path, cases: &[Case], among: &[Case]) -> Vec<Outcome> {
    let playing = futures::stream::iter(cases).map(|case| again::replay(case, among, program, false));
    playing.buffer_unordered(4).collect().await
}

/// The packed recordings of these names.
fn named(names: &[&str]) -> Vec<Case> {
    let cases = packed("argocd-3.2").unwrap();
    cases.into_iter().filter(|case| names.contains(&case.name.as_str())).collect()
}

fn of<'a>(cases: &'a mut [Case], name: &str) -> &'a mut Case {
    cases.iter_mut().find(|case| case.name == name).unwrap()
}

/// Whether a report is of the resource of this kind.
fn is_of(report: &ReportLine, kind: &str) -> bool {
    object(&report.data)["kind"] == kind
}

fn object(data: &Value) -> Value {
    use base64::Engine as _;
    let object = data["object"].as_str().unwrap();
    serde_json::from_slice(&base64::engine::general_purpose::STANDARD.decode(object).unwrap()).unwrap()
}

fn with_object(data: &Value, change: impl FnOnce(&mut Value)) -> Value {
    use base64::Engine as _;
    let mut object = object(data);
    change(&mut object);
    let mut data = data.clone();
    data["object"] = base64::engine::general_purpose::STANDARD.encode(object.to_string()).into();
    data
}

fn told(outcomes: &[Outcome]) -> String {
    let lines =
        |outcome: &Outcome| std::iter::once(outcome.row(24)).chain(outcome.details()).collect::<Vec<_>>();
    let mut lines: Vec<String> = outcomes.iter().flat_map(lines).collect();
    lines.push(again::summary(outcomes));
    lines.join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_recorded_is_reported_again_and_what_was_not_is_told() {
    let program = process::binary().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let names = ["app-of-apps", "directory-drift", "hooks", "rollout-workflow", "secret-commit-prune"];
    let cases = named(&names);
    let at = (program.as_path(), folder.path());
    // Mostly faster than the reporter is done with an event.
    let mut cases = record(at, cases, Duration::from_millis(20), json!({})).await;

    let among = cases.clone();
    // The same recordings with a health, a report too many and a report too few; the first as it is.
    let drift = of(&mut cases, "directory-drift");
    let last = drift.reports.iter_mut().rfind(|report| is_of(report, "Deployment")).unwrap();
    last.data["source"]["healthStatus"] = "Suspended".into();
    let secret = of(&mut cases, "secret-commit-prune");
    secret.reports.retain(|report| !is_of(report, "Secret"));
    let hooks = of(&mut cases, "hooks");
    let mut more = hooks.reports.iter().rfind(|report| is_of(report, "Service")).unwrap().clone();
    more.data = with_object(&more.data, |object| object["metadata"]["name"] = "never-there".into());
    hooks.reports.push(more);
    // Whoever looked on says at last that nothing of it is there: that is not what was reported, then or now.
    let rollout = of(&mut cases, "rollout-workflow");
    let mut look = rollout.calls.iter().rfind(|call| call.path.contains("/resource-tree")).unwrap().clone();
    (look.t, look.by, look.body) = (look.t + 3600.0, "observer".to_owned(), "empty".to_owned());
    rollout.calls.push(look);
    let empty = serde_json::value::to_raw_value(&json!({"nodes": []})).unwrap();
    rollout.bodies.insert("empty".to_owned(), empty);
    let mut outcomes = replayed(&program, &cases, &among).await;
    outcomes.sort_by(|left, right| left.case.cmp(&right.case));
    assert_eq!(outcomes.iter().map(|outcome| outcome.case.as_str()).collect::<Vec<_>>(), names);
    assert_eq!(outcomes.iter().map(|outcome| outcome.folded).sum::<usize>(), 0, "{}", told(&outcomes));
    let same = outcomes.remove(0);
    assert!(same.is_good() && same.compared.entities > 5, "{}", told(&[same]));
    let lines: Vec<String> = outcomes
        .iter()
        .flat_map(|outcome| outcome.compared.differences.iter().map(ToString::to_string))
        .collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    let ends = [
        (" Deployment ", r#": source.healthStatus: recorded "Suspended", replayed "Healthy""#),
        ("never-there", r#": report: recorded "one", replayed (absent)"#),
        (" Secret ", r#": report: recorded (absent), replayed "one""#),
    ];
    for (line, (about, end)) in lines.iter().zip(ends) {
        assert!(line.contains(about) && line.ends_with(end), "{line}");
    }
    let problems: Vec<&String> = outcomes.iter().flat_map(|outcome| &outcome.problems).collect();
    assert!(!problems.is_empty() && problems.len() == outcomes[2].problems.len(), "{problems:#?}");
    let is_told = |problem: &&String| {
        problem.starts_with("not as the cluster was: argocd/")
            && problem.ends_with(": health is \"Healthy\", expected \"Unknown\"")
    };
    assert!(problems.iter().any(is_told), "{problems:#?}");
    let all = format!(" {} different", lines.len() + problems.len());
    assert!(again::summary(&outcomes).ends_with(&all), "{}", again::summary(&outcomes));
    assert!(!again::is_good(&outcomes));
    for outcome in outcomes {
        let kept = outcome.kept.unwrap();
        assert!(kept.join("reports.jsonl").is_file() && kept.join("reporter.log").is_file());
        std::fs::remove_dir_all(kept).unwrap();
    }
}

/// Nearly every event finds the queue full: what was reported is a choice of the states that there were.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_folded_then_is_folded_again() {
    let program = process::binary().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cases = named(&["directory-drift", "hooks", "secret-commit-prune"]);
    let full = json!({"sharding": {"shards": 1}, "queue": {"events": 2}, "lanes": {"concurrency": 2}});
    let cases = record((&program, folder.path()), cases, Duration::from_millis(2), full).await;
    let outcomes = replayed(&program, &cases, &cases).await;
    assert!(again::is_good(&outcomes), "{}", told(&outcomes));
    let folded: usize = outcomes.iter().map(|outcome| outcome.folded).sum();
    assert!(folded > 0, "{}", told(&outcomes));
}
