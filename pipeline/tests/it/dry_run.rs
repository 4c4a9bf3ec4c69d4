//! `resource-reporter --dry-run`: what would be sent, why all else is not, and nothing else.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::Stdio;

use loadtest::sim::kube::Collection;
use loadtest::sim::{Setup, Simulation};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::runtime::{PROGRAM, SOON};

/// A dry run, and the lines that it writes.
struct DryRun {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    _held: [TcpListener; 3],
}

impl DryRun {
    /// It stands beside a reporter that holds the ports of the settings.
    fn start(simulation: &Simulation, resources: &Value) -> Self {
        let settings = json!({"resources": resources});
        let variables: BTreeMap<_, _> = simulation.environment(&settings).unwrap().into_iter().collect();
        let mut command = Command::new(PROGRAM);
        command.args(["resource-reporter", "--dry-run"]).env_clear().envs(variables);
        let held = ["SERVE__ADDRESS", "SERVE__METRICS_ADDRESS", "ADMIN__ADDRESS"]
            .map(|name| (name, TcpListener::bind("127.0.0.1:0").unwrap()));
        for (name, port) in &held {
            command.env(format!("GITOPS_RUNTIME_{name}"), port.local_addr().unwrap().to_string());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, _held: held.map(|(_, port)| port) }
    }

    /// The next line: of what would be sent `route: name`, of all else as it is.
    async fn line(&mut self) -> Option<String> {
        let line = tokio::time::timeout(SOON, self.lines.next_line()).await.unwrap().unwrap()?;
        let told: Value = serde_json::from_str(&line).unwrap();
        Some(match told["data"]["object"]["metadata"]["name"].as_str() {
            Some(name) => format!("{}: {name}", told["route"].as_str().unwrap_or("sent")),
            None => line,
        })
    }

    /// So many lines, sorted: shards are not waited for.
    async fn lines(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.len() < count {
            lines.push(self.line().await.unwrap());
        }
        lines.sort();
        lines
    }

    /// Presses Ctrl-C; gives what is written until the end.
    async fn interrupt(mut self) -> Vec<String> {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
        let mut lines = Vec::new();
        while let Some(line) = self.line().await {
            lines.push(line);
        }
        assert!(self.child.wait().await.unwrap().success());
        lines
    }
}

fn rollout(namespace: &str, name: &str, phase: &str, tier: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": {"name": name, "namespace": namespace, "labels": {"tier": tier}},
        "spec": {"replicas": 3}, "status": {"phase": phase, "conditions": []},
    })
}

async fn world() -> Simulation {
    let simulation = Simulation::start(Setup { tls: [None; 3], ..Setup::default() }).await.unwrap();
    let put = |object| simulation.kube.apply(Collection::Rollouts, object).unwrap();
    put(rollout("shop", "web", "Degraded", "front"));
    put(rollout("shop", "calm", "Healthy", "front"));
    put(rollout("shop", "deep", "Degraded", "back"));
    put(rollout("test-a", "web", "Degraded", "front"));
    let idle = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "old", "namespace": "shop", "labels": {"tier": "front"}},
        "spec": {"replicas": 0}, "status": {"replicas": 0},
    });
    simulation.kube.apply(Collection::ReplicaSets, idle).unwrap();
    simulation
}

fn kinds() -> Value {
    json!([
        {
            "kind": "rollouts.argoproj.io", "excludedNamespaces": ["test-*"],
            "filter": "object.status.phase != 'Healthy'",
        },
        "replicasets.apps",
    ])
}

/// What is written of objects that are not sent.
fn not_sent(what: &str, reason: &str, why: &str) -> String {
    format!("{{\"notSent\":\"{what}\",\"reason\":\"{reason}\",\"why\":\"{why}\"}}")
}

/// Nothing was sent and nothing is kept.
fn left_nothing(simulation: &Simulation) {
    assert_eq!(simulation.platform.totals().posts, 0);
    let state = std::fs::read_dir(simulation.directory().join("state")).unwrap();
    assert_eq!(state.count(), 0, "a dry run keeps nothing");
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_send_and_of_all_else_why_not_with_a_count_at_the_end() {
    let simulation = world().await;
    let resources = json!({
        "kinds": kinds(), "applications": false, "match": {"labelSelector": "tier=front"},
    });
    let mut run = DryRun::start(&simulation, &resources);
    assert_eq!(
        run.lines(5).await,
        [
            "sent: web".to_owned(),
            not_sent("replicaset/shop/old", "idle", "nothing of it runs, and nothing did before"),
            not_sent("rollout/shop/calm", "excluded", "the filter of its kind does not take it"),
            not_sent("rollout/shop/deep", "no-route", "no route takes it"),
            not_sent("rollout/test-a/web", "namespace", "its namespace is not watched"),
        ]
        .into_iter()
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>()
    );
    let mut beats = rollout("shop", "web", "Degraded", "front");
    beats["status"]["conditions"] =
        json!([{"type": "Progressing", "lastUpdateTime": "2026-01-01T00:00:00Z"}]);
    simulation.kube.apply(Collection::Rollouts, beats.clone()).unwrap();
    assert_eq!(run.line().await.unwrap(), "sent: web");
    beats["status"]["conditions"][0]["lastUpdateTime"] = json!("2026-01-01T00:01:00Z");
    simulation.kube.apply(Collection::Rollouts, beats).unwrap();
    assert_eq!(
        run.line().await.unwrap(),
        not_sent("rollout/shop/web", "heartbeat", "only members changed that nobody would call a change")
    );
    assert_eq!(
        run.interrupt().await,
        [
            "{\"notSent\":{\"excluded\":1,\"heartbeat\":1,\"idle\":1,\"namespace\":1,\"no-route\":1},\"sent\":2}"
        ]
    );
    left_nothing(&simulation);
}

#[tokio::test]
async fn a_dry_run_of_several_routes_names_them_and_touches_the_sink_of_none() {
    let simulation = world().await;
    let file = simulation.directory().join("audit.ndjson");
    let resources = json!({
        "kinds": kinds(), "applications": false, "match": {"labelSelector": "tier=front"},
        "routes": [
            {"name": "audit", "match": {"labelSelector": "tier=back"}, "sink": {"kind": "file", "path": file}},
            {"name": "sets", "match": {"kinds": ["replicasets.apps"]}, "sink": {"kind": "stdout"}},
        ],
    });
    let mut run = DryRun::start(&simulation, &resources);
    let idle = |route: &str| {
        let why = "nothing of it runs, and nothing did before";
        format!(
            "{{\"notSent\":\"replicaset/shop/old\",\"reason\":\"idle\",\"route\":\"{route}\",\"why\":\"{why}\"}}"
        )
    };
    let why = "the filter of its kind does not take it";
    let mut expected = vec![
        "audit: deep".to_owned(),
        "default: web".to_owned(),
        idle("default"),
        idle("sets"),
        format!(
            "{{\"notSent\":\"rollout/shop/calm\",\"reason\":\"excluded\",\"route\":\"default\",\"why\":\"{why}\"}}"
        ),
        not_sent("rollout/test-a/web", "namespace", "its namespace is not watched"),
    ];
    expected.sort();
    assert_eq!(run.lines(6).await, expected);
    simulation.kube.apply(Collection::Rollouts, rollout("shop", "middle", "Degraded", "middle")).unwrap();
    assert_eq!(run.line().await.unwrap(), not_sent("rollout/shop/middle", "no-route", "no route takes it"));
    assert_eq!(
        run.interrupt().await,
        ["{\"notSent\":{\"excluded\":1,\"idle\":2,\"namespace\":1,\"no-route\":1},\"sent\":2}"]
    );
    left_nothing(&simulation);
    assert!(!file.exists(), "the sink of a route is not touched");
}
