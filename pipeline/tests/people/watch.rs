//! What changes, shown as it does, and lists of workflows.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::app_proxy::AppProxy;
use crate::desk::{Desk, told};
use crate::platform::{PROGRAM, SOON};

/// A command that goes on until it is interrupted.
struct Watching {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watching {
    fn start(desk: &Desk, arguments: &[&str]) -> Self {
        let mut command = desk.command(PROGRAM);
        let command =
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    async fn line(&mut self) -> String {
        tokio::time::timeout(SOON, self.lines.next_line()).await.unwrap().unwrap().expect("another line")
    }

    /// Ends it as Ctrl-C does; what it said beside its answer.
    async fn interrupt(self) -> String {
        let process = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-INT", &process]).status().await.unwrap().success());
        let output = tokio::time::timeout(SOON, self.child.wait_with_output()).await.unwrap().unwrap();
        assert_eq!(output.status.code(), Some(0), "whoever has seen enough is not told of a failure");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// A report of an application: how healthy it is.
fn report(name: &str, version: u32, health: &str) -> Value {
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": name, "resourceVersion": version.to_string()},
        "status": {"sync": {"status": "Synced"}, "health": {"status": health}},
    });
    let source = json!({"syncStatus": "Synced", "healthStatus": health});
    json!({"timestamp": format!("2026-11-20T10:00:{version:02}.000Z"), "object": object, "source": source})
}

#[tokio::test]
async fn of_a_list_that_is_watched_the_rows_that_change_are_shown_until_it_is_interrupted() {
    let desk = Desk::signed_in().await;
    desk.platform.report(&report("first", 1, "Healthy")).await;
    let mut watching = Watching::start(&desk, &["app", "list", "--watch", "--namespace", "argocd"]);
    let mut shown = Vec::new();
    for _ in 0..4 {
        shown.push(watching.line().await);
    }
    assert!(
        shown[0].starts_with("APPLICATION") && shown[2].starts_with("prod/argocd/first    Healthy"),
        "{shown:?}"
    );
    desk.platform.report(&report("first", 2, "Degraded")).await;
    let changed = watching.line().await;
    assert!(changed.starts_with("prod/argocd/first  Degraded"), "the row alone, without a header: {changed}");
    assert_eq!(watching.interrupt().await, "");
    let mut watching = Watching::start(&desk, &["app", "list", "--watch", "-o", "json"]);
    let mut first: Vec<Value> = Vec::new();
    for _ in 0..3 {
        first.push(serde_json::from_str(&watching.line().await).unwrap());
    }
    desk.platform.report(&report("first", 3, "Healthy")).await;
    let changed: Value = serde_json::from_str(&watching.line().await).unwrap();
    assert_eq!(
        (&changed["metadata"]["name"], &changed["healthStatus"]),
        (&json!("first"), &json!("HEALTHY"))
    );
    watching.interrupt().await;
    let mut watching = Watching::start(&desk, &["app", "get", "first", "--watch", "-o", "json"]);
    let mut health = async || {
        let shown: Value = serde_json::from_str(&watching.line().await).unwrap();
        shown["healthStatus"].clone()
    };
    assert_eq!(health().await, "HEALTHY");
    desk.platform.report(&report("first", 4, "Degraded")).await;
    assert_eq!(health().await, "DEGRADED");
    watching.interrupt().await;
    let mut watching = Watching::start(&desk, &["runtime", "get", "prod", "--watch", "-o", "name"]);
    assert_eq!(watching.line().await, "prod");
    watching.interrupt().await;
    desk.stop().await;
}

fn rollout(step: u32) -> Value {
    json!({
        "metadata": {"name": "api", "namespace": "store"}, "uid": "o", "phase": "Progressing", "message": null, "paused": false,
        "aborted": false, "strategy": "canary", "currentStepIndex": step, "steps": 2, "revision": 4, "stableRevision": "x",
        "replicas": 3, "readyReplicas": 3, "updatedReplicas": 1, "availableReplicas": 3, "revisions": [],
    })
}

#[tokio::test]
async fn a_rollout_that_is_watched_is_shown_whenever_it_goes_on() {
    let (desk, proxy) = (Desk::signed_in().await, AppProxy::start().await);
    let node = json!({"group": "argoproj.io", "version": "v1alpha1", "kind": "Rollout", "namespace": "store", "name": "api", "parentRefs": []});
    proxy.answers("resourceTree", &[json!({"nodes": [node]})]);
    proxy.answers("rollout", &[rollout(0), rollout(0), rollout(1)]);
    let get = ["rollout", "get", "store", "--app-proxy", &proxy.url];
    let text = desk.run(&get).await.done();
    assert!(text.contains("Step:         0 of 2\n"), "{text}");
    proxy.answers("rollout", &[rollout(0), rollout(0), rollout(1)]);
    let mut watching = Watching::start(&desk, &[&get[..], &["--watch", "-o", "json"]].concat());
    for step in [0, 1] {
        let shown: Value = serde_json::from_str(&watching.line().await).unwrap();
        assert_eq!(shown["currentStepIndex"], step, "each once");
    }
    watching.interrupt().await;
    desk.stop().await;
}

#[tokio::test]
async fn workflows_are_listed_in_every_form_by_their_labels_and_as_they_change() {
    let (desk, proxy) = (Desk::signed_in().await, AppProxy::start().await);
    let workflow = |name: &str, phase: &str| {
        json!({
            "metadata": {"name": name, "namespace": "ci"}, "uid": name, "phase": phase, "message": "no space left\nat all",
            "progress": "1/2", "workflowTemplate": "build", "suspended": false, "createdAt": null, "startedAt": null,
            "finishedAt": null,
        })
    };
    let both = json!([workflow("build-2", "Failed"), workflow("build-1", "Succeeded")]);
    proxy.answers("workflows", std::slice::from_ref(&both));
    let list = ["workflow", "list", "--runtime", "prod", "-n", "ci", "--app-proxy", &proxy.url];
    let run = async |more: &[&str]| desk.run(&[&list[..], more].concat()).await;
    let table = run(&[]).await.done();
    let expected = "NAME     PHASE      PROGRESS  TEMPLATE  MESSAGE\n\
                    build-2  Failed     1/2       build     no space left\n\
                    build-1  Succeeded  1/2       build     no space left\n";
    assert_eq!(table, expected);
    assert_eq!(proxy.asked()[0].1, json!({"namespace": "ci", "first": 51}), "one more, to know of more");
    assert_eq!(run(&["-o", "name"]).await.done(), "build-2\nbuild-1\n");
    let json: Value = serde_json::from_str(&run(&["-o", "json"]).await.done()).unwrap();
    assert_eq!(json, both);
    assert!(run(&["-o", "yaml"]).await.done().contains("    name: build-1\n"));
    proxy.asked();
    let some = run(&["-o", "name", "--limit", "1", "-l", "team=shop,tier=web"]).await;
    assert_eq!(
        (some.out.as_str(), some.err),
        ("build-2\n", told("there are more than 1: --limit shows more"))
    );
    let labels = json!({"namespace": "ci", "first": 2, "labels": ["team=shop", "tier=web"]});
    assert_eq!(proxy.asked()[0].1, labels);
    let wrong = run(&["-l", "team"]).await;
    assert!(wrong.code == 2 && wrong.err.contains("a label is KEY=VALUE"), "{wrong:?}");
    proxy.answers("workflows", &[json!([])]);
    let none = run(&["-l", "team=none"]).await;
    assert_eq!(
        (none.code, none.out.as_str(), none.err),
        (0, "", told("there is no such workflow in ci of prod"))
    );

    let changed = json!([workflow("build-2", "Failed"), workflow("build-3", "Running")]);
    proxy.answers("workflows", &[both.clone(), both, changed]);
    let mut watching = Watching::start(&desk, &[&list[..], &["--watch", "-o", "name"]].concat());
    for name in ["build-2", "build-1", "build-3"] {
        assert_eq!(watching.line().await, name);
    }
    assert_eq!(watching.interrupt().await, told("build-1 is not listed any more"));

    proxy.answers("workflow", &[workflow("build-3", "Running"), workflow("build-3", "Succeeded")]);
    let get = ["workflow", "get", "build-3", "--runtime", "prod", "-n", "ci", "--app-proxy", &proxy.url];
    let mut watching = Watching::start(&desk, &[&get[..], &["--watch", "-o", "json"]].concat());
    for phase in ["Running", "Succeeded"] {
        let shown: Value = serde_json::from_str(&watching.line().await).unwrap();
        assert_eq!(shown["phase"], phase);
    }
    watching.interrupt().await;
    desk.stop().await;
}
