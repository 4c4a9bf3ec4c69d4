//! The role `change-revision` as two processes on one bus: each application is told by whoever owns its shard, and a process
//! that is killed leaves its applications to the other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::Oid;
use loadtest::nats::NatsServer;
use loadtest::process::Start;
use loadtest::sim::{Simulation, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::changes::{Monorepo, annotations, put, synced};
use crate::runtime::{PROGRAM, Runtime, eventually, start};
use crate::told;

const APPLICATIONS: usize = 24;
const SHARDS: usize = 32;

fn name(number: usize) -> String {
    format!("a{number}")
}

fn path(number: usize) -> String {
    format!("apps/a{number}")
}

/// A process in a directory of its own, with what it was told to do with reports.
struct Replica {
    runtime: Runtime,
    reports: PathBuf,
}

impl Replica {
    async fn start(simulation: &Simulation, server: &NatsServer, directory: &Path) -> Self {
        let reports = directory.join("changes.ndjson");
        let settings = json!({
            "bus": {"url": server.url()},
            "state": {"directory": directory},
            "reporter": {"sink": {"kind": "file", "file": {"path": reports}}},
            "changeRevision": {"annotations": true, "repositories": {"files": true}},
        });
        let start = Start { args: vec!["change-revision".into()], ..start(simulation, &settings) };
        Self { runtime: Runtime::launch(start).await, reports }
    }

    /// Which shards it owns.
    async fn shards(&self) -> Vec<u32> {
        self.runtime.status().await.shards.iter().map(|shard| shard.shard).collect()
    }

    /// Each line that it wrote whole: an application, and the commits that changed it.
    fn told(&self) -> Vec<(String, Vec<String>)> {
        let text = std::fs::read_to_string(&self.reports).unwrap_or_default();
        let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let told = |line: Value| {
            let report = &line["data"];
            let commits = report["sources"][0]["changes"].as_array().into_iter().flatten();
            (text(&report["name"]), commits.map(|commit| text(&commit["revision"])).collect())
        };
        whole.map(told).collect()
    }
}

/// What was told of each application by all of these, in order.
fn told(replicas: &[&Replica]) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut all: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for (name, commits) in replicas.iter().flat_map(|replica| replica.told()) {
        all.entry(name).or_default().push(commits);
    }
    all
}

/// One commit for each application, after this one.
fn changed(mono: &Monorepo, mut tip: Oid, content: &str) -> Vec<Oid> {
    let one = |number: usize| {
        tip = mono.commit(&[tip], &[(&*format!("{}/x", path(number)), content)]);
        tip
    };
    (0..APPLICATIONS).map(one).collect()
}

fn sync(simulation: &Simulation, mono: &Monorepo, revisions: &[Oid]) {
    for number in 0..APPLICATIONS {
        put(simulation, synced(&name(number), &mono.url(), &path(number), revisions));
    }
}

#[tokio::test]
async fn two_share_the_applications_tell_each_once_and_lose_none_when_one_is_killed() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let (server, one, two) =
        (NatsServer::start().await.unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let first = mono.commit(&[], &[("README", "1")]);
    let one = Replica::start(&simulation, &server, one.path()).await;
    let two = Replica::start(&simulation, &server, two.path()).await;
    let shards = async || [one.shards().await, two.shards().await];
    let are_halves = |shards: &[Vec<u32>; 2]| shards.iter().all(|shards| shards.len() == SHARDS / 2);
    let [of_one, _] = wait_for("half of the shards for each", shards, are_halves).await;
    let first_watches = of_one.contains(&0);

    let second = changed(&mono, first, "1");
    let tip = *second.last().unwrap();
    sync(&simulation, &mono, &[first, tip]);
    let once: BTreeMap<String, Vec<Vec<String>>> = second
        .iter()
        .enumerate()
        .map(|(number, commit)| (name(number), vec![vec![commit.to_string()]]))
        .collect();
    eventually("what changed each", || told(&[&one, &two]).len() == APPLICATIONS).await;
    one.runtime.until("rest", |status| status.total.idle()).await;
    two.runtime.until("rest", |status| status.total.idle()).await;
    assert_eq!(told(&[&one, &two]), once, "each is told once");
    assert!(!one.told().is_empty() && !two.told().is_empty(), "both have a share");
    assert_eq!(simulation.kube.counts().patches, APPLICATIONS as u64);

    let check = async |role: &[&str], more: &[&str]| {
        let url = server.url();
        let annotated = ["--set", "changeRevision.annotations=true"];
        let words = [&["bus", "check", "--bus", &url][..], role, &annotated, more].concat();
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(words).env_clear().env("HOSTNAME", "host").kill_on_drop(true);
        let done = tokio::time::timeout(crate::runtime::SOON, command.output()).await.unwrap().unwrap();
        (done.status.code(), String::from_utf8(done.stdout).unwrap())
    };
    let role = ["--role", "change-revision"];
    let watches = "bus: no change-revision follows the reporter: whoever runs watches the API server\n";
    assert_eq!(check(&role, &[]).await, (Some(0), format!("{watches}bus: ok\n")));
    let (code, said) = check(&role, &["--set", "bus.maxBytes=2Gi"]).await;
    let differs =
        "bus: stream gitops-runtime_annotations_changes: max_bytes is 1073741824, and should be 2147483648\n";
    assert_eq!((code, said), (Some(1), format!("{watches}{differs}")));
    let (code, said) = check(&[], &[]).await;
    assert_eq!(code, Some(1), "a reporter is not there: {said}");
    assert!(said.contains("stream gitops-runtime_applications is absent"), "{said}");

    // Whoever watches for both is killed, and the next syncs come before another one does.
    let (killed, left) = if first_watches { (one, two) } else { (two, one) };
    let Replica { runtime, reports } = killed;
    runtime.kill().await;
    let third = changed(&mono, tip, "2");
    sync(&simulation, &mono, &[first, tip, *third.last().unwrap()]);
    let newest = |number: usize| vec![third[number].to_string()];
    let is_told = |number: usize| left.told().contains(&(name(number), newest(number)));
    eventually("what changed each meanwhile", || (0..APPLICATIONS).all(is_told)).await;
    left.runtime.until("rest", |status| status.total.idle()).await;
    assert_eq!(left.shards().await.len(), SHARDS);
    let before = told(&[&left]);
    for number in 0..APPLICATIONS {
        let told = &before[&name(number)];
        let commits: Vec<&Vec<String>> =
            told.iter().filter(|commits| **commits != once[&name(number)][0]).collect();
        assert_eq!(
            commits,
            [&newest(number)],
            "{}: the change is told once, by whoever is left",
            name(number)
        );
        let written = annotations(&simulation, &name(number));
        assert_eq!(written["mrp-controller.argoproj.io/change-revision"], newest(number)[0]);
    }
    assert!(reports.exists());
    left.runtime.stop().await;
}
