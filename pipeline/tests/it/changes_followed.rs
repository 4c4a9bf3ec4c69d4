//! The role `change-revision` beside a reporter on one bus: the API server is watched once, and nothing is missed, whoever of both
//! comes, goes or loses what is on the bus.

use std::path::{Path, PathBuf};

use git2::Oid;
use loadtest::nats::NatsServer;
use loadtest::process::Start;
use loadtest::sim::Simulation;
use loadtest::sim::kube::Collection;
use pipeline_core::Key;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::changes::{Monorepo, synced};
use crate::runtime::{PROGRAM, Runtime, eventually, start};
use crate::told;

const FOLLOWED: &str = "the reporter is followed: the API server is not watched";
const WATCHED: &str = "the API server is watched: no reporter is followed";

struct World {
    mono: Monorepo,
    simulation: Simulation,
    server: NatsServer,
    of_changes: TempDir,
}

impl World {
    async fn new() -> Self {
        let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
        let (server, of_changes) = (NatsServer::start().await.unwrap(), TempDir::new().unwrap());
        Self { mono, simulation, server, of_changes }
    }

    fn settings(&self) -> Value {
        json!({"bus": {"url": self.server.url()}, "reporter": {"sharding": {"shards": 2}}})
    }

    async fn reporter(&self) -> Runtime {
        Runtime::start(&self.simulation, &self.settings()).await
    }

    fn reports(&self) -> PathBuf {
        self.of_changes.path().join("changes.ndjson")
    }

    async fn changes(&self, more: &Value) -> Runtime {
        let mut settings = self.settings();
        let own = json!({
            "state": {"directory": self.of_changes.path()},
            "reporter": {"sink": {"kind": "file", "file": {"path": self.reports()}}},
            "changeRevision": {"repositories": {"files": true}},
        });
        crate::runtime::merge(&mut settings, &own);
        crate::runtime::merge(&mut settings, more);
        let start = Start { args: vec!["change-revision".into()], ..start(&self.simulation, &settings) };
        Runtime::launch(start).await
    }

    fn sync(&self, name: &str, revisions: &[Oid]) {
        told::put_object(
            &self.simulation,
            synced(name, &self.mono.url(), &format!("apps/{name}"), revisions),
        );
    }

    /// The revisions that an application was told to have been synced to, in order, and its end as `-`. What is told once more after
    /// a loss stands once.
    fn told(&self, name: &str) -> Vec<String> {
        told_of(&self.reports(), name)
    }

    /// How often an application was told, whatever of.
    fn lines(&self, name: &str) -> usize {
        let text = std::fs::read_to_string(self.reports()).unwrap_or_default();
        text.lines().filter(|line| line.contains(&format!("\"name\":\"{name}\""))).count()
    }

    async fn until(&self, name: &str, revisions: &[&str]) {
        eventually(&format!("{revisions:?} of {name}"), || self.told(name) == revisions).await;
    }
}

fn told_of(reports: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(reports).unwrap_or_default();
    let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of = |line: Value| match line["data"]["deleted"] == true {
        true => "-".to_owned(),
        false => line["data"]["sources"][0]["revision"].as_str().unwrap_or_default().to_owned(),
    };
    let mut all: Vec<String> = whole.filter(|line| line["data"]["name"] == name).map(of).collect();
    all.dedup();
    all
}

async fn says(runtime: &Runtime, message: &str, times: usize) {
    eventually(&format!("{times} times {message:?}"), || runtime.said(message) >= times).await;
}

#[tokio::test]
async fn beside_a_reporter_the_api_server_is_watched_once_and_what_came_before_and_meanwhile_is_told() {
    let world = World::new().await;
    let (mono, kube) = (&world.mono, &world.simulation.kube);
    let first = mono.commit(&[], &[("apps/a/x", "1"), ("apps/b/x", "1")]);
    let second = mono.commit(&[first], &[("apps/a/x", "2")]);
    let third = mono.commit(&[second], &[("apps/a/x", "3"), ("apps/b/x", "3")]);
    let [one, two, three] = [first, second, third].map(|id| id.to_string());
    let reporter = world.reporter().await;
    world.sync("a", &[first]);
    reporter.until("a report", |status| status.total.acked > 0 && status.total.idle()).await;
    let changes = world.changes(&json!({})).await;
    says(&changes, FOLLOWED, 1).await;
    world.until("a", &[&one]).await;
    eventually("one watch, the reporter's", || kube.open_watches() == 1).await;
    let watches = kube.counts().watches;
    // One change, one application that is new, and one that goes.
    world.sync("a", &[first, second]);
    world.sync("b", &[first, second]);
    world.until("a", &[&one, &two]).await;
    world.until("b", &[&two]).await;
    assert!(kube.delete(Collection::Applications, &Key::new("argocd", "b").unwrap()));
    world.until("b", &[&two, "-"]).await;
    assert_eq!((kube.open_watches(), kube.counts().watches), (1, watches), "no other was begun");
    assert_eq!((world.lines("a"), world.lines("b")), (2, 2), "each is told once");

    let check = async |more: &[&str]| {
        let url = world.server.url();
        let words = [
            &[
                "bus",
                "check",
                "--bus",
                &url,
                "--role",
                "change-revision",
                "--set",
                "reporter.sharding.shards=2",
            ][..],
            more,
        ]
        .concat();
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(words).env_clear().env("HOSTNAME", "host").kill_on_drop(true);
        let done = tokio::time::timeout(crate::runtime::SOON, command.output()).await.unwrap().unwrap();
        (done.status.code(), String::from_utf8(done.stdout).unwrap())
    };
    let follows = "bus: change-revision follows the reporter\nbus: ok\n";
    assert_eq!(check(&[]).await, (Some(0), follows.to_owned()));

    // Without a reporter it watches by itself, and follows the next one.
    reporter.stop().await;
    says(&changes, WATCHED, 1).await;
    world.sync("a", &[first, second, third]);
    world.until("a", &[&one, &two, &three]).await;
    let watches =
        "bus: no change-revision follows the reporter: whoever runs watches the API server\nbus: ok\n";
    assert_eq!(check(&[]).await, (Some(0), watches.to_owned()));
    let reporter = world.reporter().await;
    says(&changes, FOLLOWED, 2).await;
    eventually("one watch", || kube.open_watches() == 1).await;
    world.sync("b", &[first, third]);
    world.until("b", &[&two, "-", &three]).await;
    // What happens while it is killed is found.
    changes.kill().await;
    world.sync("a", &[first, second, third, first]);
    reporter.until("rest", |status| status.total.idle()).await;
    let changes = world.changes(&json!({})).await;
    says(&changes, FOLLOWED, 1).await;
    world.until("a", &[&one, &two, &three, &one]).await;
    eventually("one watch", || kube.open_watches() == 1).await;
    changes.stop().await;
    reporter.stop().await;
}

#[tokio::test]
async fn a_bus_that_lost_everything_is_followed_anew_and_nothing_is_missed() {
    let world = World::new().await;
    let mono = &world.mono;
    let first = mono.commit(&[], &[("apps/a/x", "1")]);
    let second = mono.commit(&[first], &[("apps/a/x", "2")]);
    let [one, two] = [first, second].map(|id| id.to_string());
    world.sync("a", &[first]);
    let reporter = world.reporter().await;
    let changes = world.changes(&json!({})).await;
    says(&changes, FOLLOWED, 1).await;
    world.until("a", &[&one]).await;
    world.server.kill().await.unwrap();
    world.sync("a", &[first, second]);
    world.server.lose_storage().await.unwrap();
    world.server.restart().await.unwrap();
    eventually("what changed meanwhile", || world.told("a").last() == Some(&two)).await;
    says(&changes, FOLLOWED, 2).await;
    eventually("one watch", || world.simulation.kube.open_watches() == 1).await;
    world.sync("a", &[first, second, first]);
    eventually("what changed after that", || world.told("a").last() == Some(&one)).await;
    changes.stop().await;
    reporter.stop().await;
}

#[tokio::test]
async fn whoever_is_told_not_to_follow_watches_beside_a_reporter() {
    let world = World::new().await;
    let first = world.mono.commit(&[], &[("apps/a/x", "1")]);
    let reporter = world.reporter().await;
    let changes = world.changes(&json!({"changeRevision": {"followReporter": false}})).await;
    eventually("two watches", || world.simulation.kube.open_watches() == 2).await;
    world.sync("a", &[first]);
    world.until("a", &[&first.to_string()]).await;
    assert!(changes.stop().await.iter().all(|line| ![FOLLOWED, WATCHED].contains(&&*line.message)));
    reporter.stop().await;
}
