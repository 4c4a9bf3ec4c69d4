//! Changes that the application's own state hardly tells of: made while the program was down, or of what lives alone.

use loadtest::sim::Simulation;
use loadtest::sim::argocd::Kind;
use loadtest::sim::kube::Collection;
use serde_json::{Value, json};

use crate::runtime::{Runtime, eventually, object, taken};
use crate::told::{self, application, managed, thing, world};

/// Two sources, in sync and healthy, deployed at these commits with this many replicas.
fn deployed(id: u32, commits: [&str; 2], replicas: u32) -> Value {
    let source = |path: &str| {
        json!({"repoURL": "https://git.example/repo.git", "path": path,
            "helm": {"parameters": [{"name": "replicas", "value": replicas.to_string()}]}})
    };
    let sources = json!([source("shop"), source("more")]);
    let mut entry = thing();
    crate::runtime::merge(&mut entry, &json!({"status": "Synced", "health": {"status": "Healthy"}}));
    let mut app = application("shop", &thing());
    let spec = app["spec"].as_object_mut().unwrap();
    spec.remove("source");
    spec.insert("sources".to_owned(), sources.clone());
    app["status"] = json!({
        "sync": {"status": "Synced", "revisions": commits, "comparedTo": {"sources": sources}},
        "health": {"status": "Healthy"},
        "history": [{"id": id, "revisions": commits, "sources": sources}],
        "resources": [entry],
    });
    app
}

fn live(simulation: &Simulation, data: &str) {
    let text = |data: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "thing", "namespace": "shop"},
            "data": {"state": data}})
        .to_string()
    };
    let answer = managed(&thing(), &text(data), &text("wanted"));
    simulation.argocd.set(Kind::ManagedResources, "shop", 200, answer.to_string());
}

/// What the receiver holds of the ConfigMap.
fn held(simulation: &Simulation) -> Option<String> {
    let last = simulation.platform.last().into_iter().find(|(name, _)| name.resource.is_some())?.1;
    object(&last.payload?)["data"]["state"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn a_sync_while_the_program_is_down_is_seen_in_the_resources_of_several_sources() {
    let simulation = world(|_| {}).await;
    told::put_object(&simulation, deployed(1, ["a", "a"], 1));
    live(&simulation, "first");
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, 2).await;
    runtime.idle(1).await;
    runtime.stop().await;
    for (id, commits, replicas) in [(2, ["a", "b"], 1), (3, ["a", "b"], 2)] {
        let state = format!("deployed {id}");
        simulation.kube.apply(Collection::Applications, deployed(id, commits, replicas)).unwrap();
        live(&simulation, &state);
        let runtime = Runtime::start(&simulation, &json!({})).await;
        eventually("its resource is reported", || held(&simulation).as_deref() == Some(&*state)).await;
        runtime.stop().await;
    }
}

#[tokio::test]
async fn what_is_out_of_sync_and_drifts_further_is_found_by_a_verification() {
    let simulation = world(|_| {}).await;
    let mut app = deployed(1, ["a", "a"], 1);
    app["status"]["sync"]["status"] = json!("OutOfSync");
    app["status"]["resources"][0]["status"] = json!("OutOfSync");
    told::put_object(&simulation, app);
    live(&simulation, "drifted");
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, 2).await;
    runtime.idle(1).await;
    // Nothing of the application changes.
    live(&simulation, "drifted further");
    let verified = crate::ask::json(&simulation, &["verify"]).await;
    assert_eq!((&verified["drifted"]["total"], &verified["repaired"]), (&json!(1), &json!(1)), "{verified}");
    assert_eq!(held(&simulation).as_deref(), Some("drifted further"), "{verified}");
    runtime.stop().await;
}
