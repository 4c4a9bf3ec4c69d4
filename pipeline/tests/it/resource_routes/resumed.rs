//! Routes of a process that ended while one of them lagged: each goes on where it was itself.

use loadtest::sim::Simulation;
use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::kube::Collection;
use loadtest::sim::platform::PlatformSim;
use pipeline_core::Key;
use serde_json::{Value, json};

use super::{launch, other, rests, world};
use crate::runtime::eventually;

fn put(simulation: &Simulation, name: &str, phase: &str, step: u64) {
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": 3}, "status": {"phase": phase, "currentStepIndex": step},
    });
    simulation.kube.apply(Collection::Rollouts, object).unwrap();
}

fn delete(simulation: &Simulation, name: &str) {
    assert!(simulation.kube.delete(Collection::Rollouts, &Key::new("shop", name).unwrap()));
}

/// The phases that were told of one object, in order; `gone` of its end.
fn phases(payloads: impl Iterator<Item = Value>, name: &str) -> Vec<String> {
    let of = payloads.filter(|payload| payload["object"]["metadata"]["name"] == name);
    of.map(|payload| match payload["deleted"] == true {
        true => "gone".to_owned(),
        false => payload["object"]["status"]["phase"].as_str().unwrap_or_default().to_owned(),
    })
    .collect()
}

fn told(platform: &PlatformSim, name: &str) -> Vec<String> {
    let kept = platform.kept();
    phases(kept.iter().map(|report| serde_json::from_slice(&report.payload).unwrap()), name)
}

/// Waits until both platforms were told these phases of one object.
async fn both(platforms: [&PlatformSim; 2], name: &str, expected: &[&str]) {
    for (at, platform) in platforms.into_iter().enumerate() {
        eventually(&format!("{name} on route {at}: {expected:?}"), || told(platform, name) == expected).await;
    }
}

#[tokio::test]
async fn after_a_kill_each_route_is_told_all_that_came_and_went_and_none_anything_twice() {
    let simulation = world().await;
    let (audit, sink) = other(&simulation).await;
    let platforms = [&simulation.platform, &audit];
    let file = simulation.directory().join("late.ndjson");
    let route = |name: &str, sink: &Value| json!({"name": name, "sink": sink});
    let [to_audit, late] = [route("audit", &sink), route("late", &json!({"kind": "file", "path": file}))];
    let with = |routes: &[&Value]| json!({"kinds": ["rollouts.argoproj.io"], "applications": false, "routes": routes});
    for name in ["web", "stays", "goes"] {
        put(&simulation, name, "Healthy", 2);
    }
    let runtime = launch(&simulation, &with(&[&to_audit])).await;
    for name in ["web", "stays", "goes"] {
        both(platforms, name, &["Healthy"]).await;
    }
    rests(&runtime).await;
    runtime.stop().await;

    // One is away when more happens, and the process is killed.
    let away = audit.faults().add(Rule::always(Fault::Status { status: 503, retry_after: None }));
    let runtime = launch(&simulation, &with(&[&to_audit])).await;
    put(&simulation, "web", "Progressing", 0);
    put(&simulation, "web", "Paused", 1);
    put(&simulation, "goes", "Degraded", 1);
    let ahead = [&simulation.platform; 2];
    both(ahead, "web", &["Healthy", "Progressing", "Paused"]).await;
    both(ahead, "goes", &["Healthy", "Degraded"]).await;
    runtime.kill().await;

    // More comes and goes while nobody watches.
    put(&simulation, "web", "Progressing", 1);
    put(&simulation, "web", "Healthy", 2);
    delete(&simulation, "goes");
    put(&simulation, "came", "Progressing", 0);
    put(&simulation, "came", "Degraded", 0);
    delete(&simulation, "came");
    audit.faults().remove(away);
    let runtime = launch(&simulation, &with(&[&to_audit])).await;
    let web = ["Healthy", "Progressing", "Paused", "Progressing", "Healthy"];
    let expected: [(&str, &[&str]); 4] = [
        ("web", &web),
        ("stays", &["Healthy"]),
        ("goes", &["Healthy", "Degraded", "gone"]),
        ("came", &["Progressing", "Degraded", "gone"]),
    ];
    for (name, phases) in expected {
        both(platforms, name, phases).await;
    }
    rests(&runtime).await;
    runtime.stop().await;
    for (name, phases) in expected {
        assert_eq!(platforms.map(|platform| told(platform, name)), [phases, phases], "{name}");
    }

    // A route that is new is told what is there; nobody misses one that is left out.
    let written = |name: &str| {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap());
        let lines = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].clone());
        phases(lines, name)
    };
    put(&simulation, "web", "Paused", 1);
    let runtime = launch(&simulation, &with(&[&late])).await;
    let and_paused = [&web[..], &["Paused"]].concat();
    both(ahead, "web", &and_paused).await;
    for (name, phases) in [("web", ["Paused"]), ("stays", ["Healthy"])] {
        eventually(name, || written(name) == phases).await;
    }
    rests(&runtime).await;
    runtime.stop().await;

    // It is back, and is told what it missed.
    put(&simulation, "web", "Healthy", 2);
    let runtime = launch(&simulation, &with(&[&late, &to_audit])).await;
    let and_healthy = [&and_paused[..], &["Healthy"]].concat();
    both(platforms, "web", &and_healthy).await;
    eventually("the new one's", || written("web") == ["Paused", "Healthy"]).await;
    rests(&runtime).await;
    runtime.stop().await;
    assert_eq!(platforms.map(|platform| told(platform, "web")), [&and_healthy[..]; 2]);
    assert_eq!(
        (written("web").len(), written("stays"), written("came").len()),
        (2, vec!["Healthy".to_owned()], 0)
    );
    for platform in platforms {
        assert_eq!(platform.totals().malformed, 0);
        assert_eq!(["stays", "goes", "came"].map(|name| told(platform, name).len()), [1, 3, 3]);
    }
}

#[tokio::test]
async fn what_is_in_flight_at_a_stop_counts_as_done_when_it_was_answered() {
    let simulation = world().await;
    let file = simulation.directory().join("late.ndjson");
    let late = json!({"name": "late", "sink": {"kind": "file", "path": file}});
    let with = |routes: &[&Value]| json!({"kinds": ["rollouts.argoproj.io"], "applications": false, "routes": routes});
    put(&simulation, "web", "Healthy", 2);
    let runtime = launch(&simulation, &with(&[])).await;
    let platform = [&simulation.platform; 2];
    both(platform, "web", &["Healthy"]).await;
    rests(&runtime).await;

    let mut held = simulation.platform.hold_up(|_| true);
    put(&simulation, "web", "Progressing", 0);
    held.came().await.unwrap();
    let lines = runtime.process().lines().clone();
    let stops = || lines.all().iter().any(|line| line.contains("stopping: what is in flight may finish"));
    let answered = async {
        eventually("the stop", stops).await;
        drop(held);
    };
    tokio::join!(runtime.stop(), answered);
    assert_eq!(told(&simulation.platform, "web"), ["Healthy", "Progressing"]);

    // The watch goes on behind it: a route that is new hears of what came since alone.
    put(&simulation, "web", "Paused", 1);
    let runtime = launch(&simulation, &with(&[&late])).await;
    both(platform, "web", &["Healthy", "Progressing", "Paused"]).await;
    let written = || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap());
        let lines = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].clone());
        phases(lines, "web")
    };
    eventually("the new route", || !written().is_empty()).await;
    rests(&runtime).await;
    runtime.stop().await;
    assert_eq!(written(), ["Paused"]);
}
