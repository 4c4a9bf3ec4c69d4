//! The role `resource-reporter`: other kinds, as they are, over the wire that receivers know.

use std::collections::BTreeMap;

use loadtest::process::Start;
use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::kube::Collection;
use loadtest::sim::{Setup, Simulation};
use pipeline_core::Key;
use serde_json::{Value, json};

use crate::ask::{answer, ask};
use crate::runtime::{PROGRAM, Runtime, eventually, start};
use crate::verify::{findings, verified};

/// Simulators that keep every report.
pub(crate) async fn world() -> Simulation {
    let mut setup = Setup { tls: [None; 3], ..Setup::default() };
    setup.keep.reports = 10_000;
    Simulation::start(setup).await.unwrap()
}

/// The same without Workflows at first.
async fn without_workflows() -> Simulation {
    let simulation = world().await;
    simulation.kube.define(Collection::Workflows, false);
    simulation
}

/// Starts the reporter of other kinds and waits until it works.
pub(crate) async fn launch(simulation: &Simulation, settings: &Value) -> Runtime {
    let start = Start { args: vec!["resource-reporter".into()], ..start(simulation, settings) };
    Runtime::launch(start).await
}

fn settings() -> Value {
    json!({"resources": {
        "kinds": ["rollouts.argoproj.io", "replicasets.apps", "workflows.argoproj.io"], "discovery": "50ms",
    }})
}

fn rollout(name: &str, phase: &str, step: u64) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": {"name": name, "namespace": "shop", "managedFields": [{"manager": "kubectl"}]},
        "spec": {"replicas": 3, "strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}]}}},
        "status": {"phase": phase, "currentStepIndex": step, "weight": 1.50},
    })
}

fn workflow(name: &str, phase: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": name, "namespace": "ci"}, "status": {"phase": phase, "startedAt": "2026-01-01T00:00:00Z"},
    })
}

/// What came of one object, in order.
fn came(simulation: &Simulation, name: &str) -> Vec<Value> {
    let kept = simulation.platform.kept();
    let payloads = kept.iter().map(|report| serde_json::from_slice::<Value>(&report.payload).unwrap());
    payloads.filter(|payload| payload["object"]["metadata"]["name"] == name).collect()
}

/// The phases that came of one object, in order; `gone` of its end.
fn phases(simulation: &Simulation, name: &str) -> Vec<String> {
    let told = |payload: &Value| match payload["deleted"] == true {
        true => "gone".to_owned(),
        false => payload["object"]["status"]["phase"].as_str().unwrap_or_default().to_owned(),
    };
    came(simulation, name).iter().map(told).collect()
}

async fn has(simulation: &Simulation, name: &str, expected: &[&str]) {
    eventually(&format!("{name}: {expected:?}"), || phases(simulation, name) == expected).await;
}

#[tokio::test]
async fn objects_are_reported_as_they_are_with_their_end_and_only_what_changed_after_a_kill() {
    let simulation = without_workflows().await;
    let put = |name: &str, phase: &str, step: u64| {
        simulation.kube.apply(Collection::Rollouts, rollout(name, phase, step)).unwrap()
    };
    for name in ["web", "stays", "goes"] {
        put(name, "Healthy", 2);
    }
    let idle = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "old", "namespace": "shop"},
        "spec": {"replicas": 0}, "status": {"replicas": 0},
    });
    simulation.kube.apply(Collection::ReplicaSets, idle).unwrap();
    let runtime = launch(&simulation, &settings()).await;
    for name in ["web", "stays", "goes"] {
        has(&simulation, name, &["Healthy"]).await;
    }
    runtime.answers("/readyz", |status, _| status == 200).await;
    let key = Key::new("shop", "web").unwrap();
    let sent: Value =
        serde_json::from_slice(&simulation.kube.text(Collection::Rollouts, &key).unwrap()).unwrap();
    assert_eq!(came(&simulation, "web"), [json!({"object": sent})]);

    put("web", "Progressing", 0);
    put("web", "Paused", 1);
    has(&simulation, "web", &["Healthy", "Progressing", "Paused"]).await;
    assert!(simulation.kube.delete(Collection::Rollouts, &Key::new("shop", "goes").unwrap()));
    has(&simulation, "goes", &["Healthy", "gone"]).await;
    runtime.until("rest", |status| status.total.idle()).await;
    runtime.counts("gitops_runtime_filtered_total", &[("reason", "idle")], 1.0).await;

    runtime.kill().await;
    put("web", "Healthy", 2);
    assert!(simulation.kube.delete(Collection::Rollouts, &Key::new("shop", "stays").unwrap()));
    let runtime = launch(&simulation, &settings()).await;
    has(&simulation, "web", &["Healthy", "Progressing", "Paused", "Healthy"]).await;
    has(&simulation, "stays", &["Healthy", "gone"]).await;
    let end = came(&simulation, "stays").pop().unwrap();
    assert_eq!(end["object"]["kind"], "Rollout", "a stub says what it was");
    runtime.until("rest", |status| status.total.idle()).await;
    assert_eq!(phases(&simulation, "goes"), ["Healthy", "gone"]);
    assert_eq!(came(&simulation, "old"), [] as [Value; 0]);
    assert_eq!(simulation.platform.totals().malformed, 0);
    runtime.stop().await;
}

/// Also what came and went, as long as the API server knows it; where it does not, that is said.
#[tokio::test]
async fn what_an_object_went_through_while_nobody_watched_is_reported_in_its_order() {
    let simulation = without_workflows().await;
    let put = |name: &str, phase: &str, step: u64| {
        simulation.kube.apply(Collection::Rollouts, rollout(name, phase, step)).unwrap()
    };
    for name in ["web", "stays", "goes"] {
        put(name, "Healthy", 2);
    }
    let runtime = launch(&simulation, &settings()).await;
    for name in ["web", "stays", "goes"] {
        has(&simulation, name, &["Healthy"]).await;
    }
    runtime.until("rest", |status| status.total.idle()).await;
    runtime.stop().await;

    for (phase, step) in [("Progressing", 0), ("Paused", 1), ("Progressing", 1), ("Healthy", 2)] {
        put("web", phase, step);
    }
    put("goes", "Degraded", 1);
    assert!(simulation.kube.delete(Collection::Rollouts, &Key::new("shop", "goes").unwrap()));
    let runtime = launch(&simulation, &settings()).await;
    let goes_on = "the watch goes on where the process before ended";
    runtime
        .logs("that the watch of Rollouts goes on", |line| {
            line.message == goes_on && line.field("resource") == "rollouts.argoproj.io"
        })
        .await;
    let all = ["Healthy", "Progressing", "Paused", "Progressing", "Healthy"];
    has(&simulation, "web", &all).await;
    has(&simulation, "goes", &["Healthy", "Degraded", "gone"]).await;
    runtime.until("rest", |status| status.total.idle()).await;
    assert_eq!(phases(&simulation, "stays"), ["Healthy"]);
    runtime.stop().await;

    put("web", "Paused", 1);
    put("web", "Degraded", 1);
    assert!(simulation.kube.delete(Collection::Rollouts, &Key::new("shop", "stays").unwrap()));
    simulation.kube.compact();
    let runtime = launch(&simulation, &settings()).await;
    let gap = "what came and went since the process before this one ended is not known any more: objects are reported as they \
               are now";
    runtime
        .logs("what is not known of Rollouts", |line| {
            line.message == gap && line.field("resource") == "rollouts.argoproj.io"
        })
        .await;
    has(&simulation, "web", &[&all[..], &["Degraded"]].concat()).await;
    has(&simulation, "stays", &["Healthy", "gone"]).await;
    runtime.until("rest", |status| status.total.idle()).await;
    assert_eq!(phases(&simulation, "web").len(), 6);
    assert_eq!(simulation.platform.totals().malformed, 0);
    runtime.stop().await;
}

#[tokio::test]
async fn a_kind_is_waited_for_and_one_that_may_not_be_read_holds_up_no_other() {
    let simulation = without_workflows().await;
    simulation.kube.forbid(Collection::ReplicaSets, true);
    simulation.kube.apply(Collection::Rollouts, rollout("web", "Healthy", 0)).unwrap();
    let runtime = launch(&simulation, &settings()).await;
    has(&simulation, "web", &["Healthy"]).await;
    let said = "the api server serves no such objects: they are reported once they are installed";
    assert_eq!(runtime.says(said).await.field("resource"), "workflows.argoproj.io");
    let missing = runtime.says("a right is missing: grant it to the account that this process runs as").await;
    assert_eq!(missing.field("resource"), "replicasets.apps");
    runtime.answers("/healthz", |status, text| status == 200 && text.contains("forbidden")).await;
    for (kind, state) in [("workflow", 1.0), ("replicaset", 2.0)] {
        runtime.counts("gitops_runtime_kind_state", &[("kind", kind)], state).await;
    }
    let watched = "gitops_runtime_kind_state{kind=\"rollout\"} 0\n";
    runtime.answers("/metrics", |_, text| text.contains(watched)).await;

    simulation.kube.define(Collection::Workflows, true);
    simulation.kube.apply(Collection::Workflows, workflow("build", "Running")).unwrap();
    has(&simulation, "build", &["Running"]).await;
    let watched = "gitops_runtime_kind_state{kind=\"workflow\"} 0\n";
    runtime.answers("/metrics", |_, text| text.contains(watched)).await;
    simulation.kube.define(Collection::Workflows, false);
    has(&simulation, "build", &["Running", "gone"]).await;
    simulation.kube.drop_watches();
    simulation.kube.define(Collection::Workflows, true);
    simulation.kube.apply(Collection::Workflows, workflow("test", "Failed")).unwrap();
    has(&simulation, "test", &["Failed"]).await;
    simulation.kube.apply(Collection::Rollouts, rollout("web", "Degraded", 1)).unwrap();
    has(&simulation, "web", &["Healthy", "Degraded"]).await;
    let log = runtime.stop().await;
    let times = log.iter().filter(|line| line.message == said).count();
    assert!((1..=2).contains(&times), "said once each time that it is gone: {times}");
}

/// An API server keeps none that is so large, and whoever speaks like one may.
#[tokio::test]
async fn of_an_object_of_five_megabytes_what_fits_is_reported_and_it_holds_up_no_other() {
    let simulation = without_workflows().await;
    simulation.kube.define(Collection::Workflows, true);
    let large = |phase: &str| {
        let mut object = workflow("large", phase);
        object["status"]["storedTemplates"] = json!({"a": "a template ".repeat(300_000)});
        object["status"]["message"] = json!("a message ".repeat(200_000));
        object
    };
    assert!(large("Running").to_string().len() > 5_000_000);
    simulation.kube.apply(Collection::Workflows, large("Running")).unwrap();
    let runtime = launch(&simulation, &settings()).await;
    has(&simulation, "large", &["Running"]).await;
    simulation.kube.apply(Collection::Workflows, large("Failed")).unwrap();
    simulation.kube.apply(Collection::Workflows, workflow("small", "Succeeded")).unwrap();
    has(&simulation, "small", &["Succeeded"]).await;
    has(&simulation, "large", &["Running", "Failed"]).await;
    for report in came(&simulation, "large") {
        assert_eq!(report["cut"], json!(["/status/storedTemplates"]));
        assert_eq!(report["object"]["status"]["message"].as_str().map(str::len), Some(2_000_000));
        assert!(report["object"]["status"]["storedTemplates"].is_null());
    }
    runtime.until("rest", |status| status.total.idle()).await;
    runtime.stop().await;
}

#[tokio::test]
async fn a_bus_is_refused() {
    let simulation = without_workflows().await;
    let mut command = tokio::process::Command::new(PROGRAM);
    command.args(["resource-reporter", "--bus", "nats://127.0.0.1:1"]).env_clear().kill_on_drop(true);
    command.envs(simulation.environment(&settings()).unwrap().into_iter().collect::<BTreeMap<_, _>>());
    let refused = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said.contains("bus.url is set, and the resource reporter shares its work with no other process yet"),
        "{said}"
    );
}

/// Of what waits in a reporter's lane a phase is not lost, and its name is enough to ask about it.
#[tokio::test]
async fn any_kind_is_asked_about_by_its_short_name() {
    let simulation = without_workflows().await;
    let put = |name: &str| {
        simulation.kube.apply(Collection::Rollouts, rollout(name, "Healthy", 0)).unwrap();
    };
    put("web");
    let runtime = launch(&simulation, &settings()).await;
    has(&simulation, "web", &["Healthy"]).await;
    runtime.until("rest", |status| status.total.idle()).await;
    let refusing =
        simulation.platform.faults().add(Rule::always(Fault::Status { status: 422, retry_after: None }));
    put("refused");
    runtime.until("one to be parked", |status| status.total.parked == 1).await;
    for name in ["rollout/shop/web", "Rollouts/shop/web", "rollouts.argoproj.io/shop/web"] {
        let text = answer(&simulation, &["explain", name]).await;
        assert!(text.contains("rollout/shop/web") && text.contains("acknowledged"), "{name}: {text}");
    }
    let unknown = "gitops-runtime: rollout/shop/wbe is not known; did you mean rollout/shop/web?\n";
    assert_eq!(
        ask(&simulation, &["explain", "rollout/shop/wbe"]).await,
        (Some(1), String::new(), unknown.to_owned())
    );
    let (code, _, error) = ask(&simulation, &["explain", "pod/shop/web"]).await;
    assert_eq!(code, Some(1));
    assert!(
        error.starts_with("gitops-runtime: no object of the kind `pod` is known; did you mean rollout"),
        "{error}"
    );

    let parked = answer(&simulation, &["parked", "show", "rollout/shop/refused"]).await;
    assert!(parked.contains("rollout/shop/refused"), "{parked}");
    simulation.platform.faults().remove(refusing);
    answer(&simulation, &["parked", "replay", "rollout/shop/refused"]).await;
    has(&simulation, "refused", &["Healthy"]).await;
    answer(&simulation, &["replay", "--app", "rollouts/shop/web", "--whole"]).await;
    has(&simulation, "web", &["Healthy", "Healthy"]).await;
    runtime.stop().await;
}

/// One that takes the question about applications alone.
#[tokio::test]
async fn verify_compares_objects_with_what_was_acknowledged_and_not_with_a_platform_that_compares_applications()
 {
    let simulation = without_workflows().await;
    for name in ["web", "api"] {
        simulation.kube.apply(Collection::Rollouts, rollout(name, "Healthy", 0)).unwrap();
    }
    let settings = json!({
        "resources": {"kinds": ["rollouts.argoproj.io"], "applications": false},
        "reporter": {"sharding": {"shards": 1}, "digest": {"enabled": true, "interval": "1ms"}},
    });
    let runtime = launch(&simulation, &settings).await;
    for name in ["web", "api"] {
        has(&simulation, name, &["Healthy"]).await;
    }
    runtime.until("rest", |status| status.total.idle()).await;
    let (code, same) = verified(&simulation, &[]).await;
    assert_eq!((code, findings(&same)), (Some(0), BTreeMap::new()), "{same:#}");
    assert_eq!((&same["objects"], &same["receiverDiffers"]), (&json!(2), &Value::Null), "{same:#}");
    let text = answer(&simulation, &["verify"]).await;
    assert!(text.contains("the receiver does not compare: only cluster and ledger were\n"), "{text}");

    // The watch is silent, and nobody notices.
    simulation.kube.stall_watches(true);
    simulation.kube.apply(Collection::Rollouts, rollout("late", "Paused", 1)).unwrap();
    let (code, found) = verified(&simulation, &[]).await;
    assert_eq!((code, findings(&found)), (Some(0), BTreeMap::from([("missing", vec!["rollout/shop/late"])])));
    has(&simulation, "late", &["Paused"]).await;
    runtime.stop().await;
    let compared = simulation.platform.comparisons();
    assert_eq!((compared.shards, compared.applications), (0, 0), "it was not asked");
}
