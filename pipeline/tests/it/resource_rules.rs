//! The role `resource-reporter`: which objects of a kind are reported, how they are shown, whose they are, and as what they are
//! sent.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::kube::Collection;
use loadtest::sim::server::serve;
use loadtest::sim::{Simulation, wait_for};
use pipeline_core::Key;
use serde_json::{Value, json};

use crate::platform::Platform;
use crate::resources::{launch, world};
use crate::runtime::{eventually, http_client};

fn rollout(namespace: &str, name: &str, phase: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": {
            "name": name, "namespace": namespace, "managedFields": [{"manager": "kubectl"}],
            "annotations": {"argocd.argoproj.io/tracking-id": format!("shop:argoproj.io/Rollout:{namespace}/{name}")},
        },
        "spec": {"replicas": 3}, "status": {"phase": phase},
    })
}

fn replica_set(namespace: &str, name: &str, owner: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2}, "status": {"replicas": 2},
    });
    if let Some(uid) = owner {
        let owner =
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "uid": uid});
        object["metadata"]["ownerReferences"] = json!([owner]);
    }
    object
}

fn payloads(simulation: &Simulation) -> Vec<Value> {
    let kept = simulation.platform.kept();
    kept.iter().map(|report| serde_json::from_slice::<Value>(&report.payload).unwrap()).collect()
}

/// `namespace/name` of all that was reported, sorted.
fn names(simulation: &Simulation) -> Vec<String> {
    let name = |payload: &Value| {
        let metadata = &payload["object"]["metadata"];
        [metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap()].join("/")
    };
    let mut names: Vec<String> = payloads(simulation).iter().map(name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_kind_is_narrowed_by_namespaces_by_the_servers_selectors_and_by_an_expression() {
    let simulation = world().await;
    for (namespace, name, phase) in [
        ("shop", "web", "Degraded"),
        ("shop", "calm", "Healthy"),
        ("test-a", "web", "Degraded"),
        ("ops", "web", "Paused"),
    ] {
        simulation.kube.apply(Collection::Rollouts, rollout(namespace, name, phase)).unwrap();
    }
    for namespace in ["shop", "ops"] {
        simulation.kube.apply(Collection::ReplicaSets, replica_set(namespace, "set", None)).unwrap();
    }
    let settings = json!({"resources": {
        "applications": false, "managedFields": false,
        "kinds": [
            {
                "kind": "rollouts.argoproj.io", "excludedNamespaces": ["test-*"],
                "filter": "object.status.phase in ['Degraded', 'Paused']",
                "rateLimit": {"bucket": 100, "window": "1s"},
            },
            {"kind": "replicasets.apps@v1", "fieldSelector": "metadata.namespace=shop"},
        ],
    }});
    let runtime = launch(&simulation, &settings).await;
    let expected = ["ops/web", "shop/set", "shop/web"];
    eventually("what is asked for to be reported", || names(&simulation) == expected).await;
    runtime.counts("gitops_runtime_filtered_total", &[("reason", "excluded")], 1.0).await;
    assert!(
        payloads(&simulation)
            .iter()
            .all(|payload| payload["object"]["metadata"].get("managedFields").is_none())
    );
    // One that the filter takes no more is brought up to date once.
    simulation.kube.apply(Collection::Rollouts, rollout("shop", "web", "Healthy")).unwrap();
    simulation.kube.apply(Collection::Rollouts, rollout("shop", "calm", "Degraded")).unwrap();
    let expected = ["ops/web", "shop/calm", "shop/set", "shop/web", "shop/web"];
    eventually("what changed to be reported", || names(&simulation) == expected).await;
    runtime.until("rest", |status| status.total.idle()).await;
    assert_eq!(names(&simulation), expected);
    runtime.stop().await;
}

/// What leaves a selector is gone for whoever selects: the API server says nothing else of it.
#[tokio::test]
async fn an_object_that_leaves_a_label_selector_is_reported_as_deleted_and_as_new_when_it_is_back() {
    let simulation = world().await;
    let put = |name: &str, team: &str, phase: &str| {
        let mut object = rollout("shop", name, phase);
        object["metadata"]["labels"] = json!({"team": team});
        simulation.kube.apply(Collection::Rollouts, object).unwrap();
    };
    for (name, team) in [("web", "a"), ("other", "b")] {
        put(name, team, "Healthy");
    }
    let settings = json!({"resources": {
        "applications": false,
        "kinds": [{"kind": "rollouts.argoproj.io", "labelSelector": "team in (a, c),tier notin (test)"}],
    }});
    let told = || {
        let told = |payload: &Value| {
            let text = |pointer: &str| payload.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
            let [name, team, phase] =
                ["/object/metadata/name", "/object/metadata/labels/team", "/object/status/phase"].map(text);
            let end = if payload["deleted"] == true { " gone" } else { "" };
            format!("{name} {team} {phase}{end}")
        };
        payloads(&simulation).iter().map(told).collect::<Vec<_>>()
    };
    let runtime = launch(&simulation, &settings).await;
    let mut expected = vec!["web a Healthy"];
    eventually("the first state", || told() == expected).await;
    put("web", "b", "Degraded");
    expected.push("web a Healthy gone");
    eventually("that it left", || told() == expected).await;
    put("web", "c", "Paused");
    expected.push("web c Paused");
    eventually("that it is back", || told() == expected).await;
    put("away", "a", "Healthy");
    expected.push("away a Healthy");
    eventually("another one", || told() == expected).await;
    runtime.until("rest", |status| status.total.idle()).await;
    runtime.stop().await;

    // It left while nobody watched.
    put("away", "b", "Healthy");
    let runtime = launch(&simulation, &settings).await;
    expected.push("away a Healthy gone");
    eventually("that it left meanwhile", || told() == expected).await;
    put("last", "a", "Healthy");
    expected.push("last a Healthy");
    eventually("the last", || told() == expected).await;
    runtime.until("rest", |status| status.total.idle()).await;
    runtime.stop().await;

    // Nobody knows any more how it left: what is left of it is its name.
    put("last", "b", "Healthy");
    simulation.kube.compact();
    let runtime = launch(&simulation, &settings).await;
    expected.push("last - - gone");
    eventually("that it left before that", || told() == expected).await;
    runtime.until("rest", |status| status.total.idle()).await;
    assert_eq!(told(), expected);
    runtime.stop().await;
}

/// A receiver that takes no report twice under one `Idempotency-Key` knows of each time that an object left.
#[tokio::test]
async fn each_time_that_an_object_leaves_a_selector_has_a_key_of_its_own_that_a_repeat_keeps() {
    let simulation = world().await;
    let put = |team: &str| {
        let mut object = rollout("shop", "web", "Healthy");
        object["metadata"]["labels"] = json!({"team": team});
        simulation.kube.apply(Collection::Rollouts, object).unwrap();
    };
    let settings = json!({"resources": {
        "applications": false, "kinds": [{"kind": "rollouts.argoproj.io", "labelSelector": "team=a"}],
    }});
    let ends =
        || -> Vec<bool> { payloads(&simulation).iter().map(|payload| payload["deleted"] == true).collect() };
    let comes = async |expected: &mut Vec<bool>| {
        put("a");
        expected.push(false);
        eventually("that it is there", || ends() == *expected).await;
    };
    let leaves = async |expected: &mut Vec<bool>| {
        put("b");
        expected.push(true);
        eventually("that it left", || ends() == *expected).await;
    };
    let runtime = launch(&simulation, &settings).await;
    let mut expected = Vec::new();
    for _ in 0..3 {
        comes(&mut expected).await;
        leaves(&mut expected).await;
    }
    assert_eq!(simulation.platform.totals().duplicates, 0);

    // The answer to the next end is lost, and so is the process.
    comes(&mut expected).await;
    runtime.until("rest", |status| status.total.idle()).await;
    let lost = Rule { effect: true, ..Rule::always(Fault::Close) };
    let losing = simulation.platform.faults().add(lost);
    leaves(&mut expected).await;
    runtime.kill().await;
    simulation.platform.faults().remove(losing);
    let runtime = launch(&simulation, &settings).await;
    runtime.counts("gitops_runtime_reports_total", &[("result", "acknowledged")], 1.0).await;
    comes(&mut expected).await;
    leaves(&mut expected).await;
    runtime.until("rest", |status| status.total.idle()).await;
    assert_eq!(ends(), expected, "what was told again was taken for a repeat");
    runtime.stop().await;
}

/// An application, a Rollout that it tracks, and a ReplicaSet of that.
fn shop(simulation: &Simulation) {
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop", "namespace": "argocd"},
        "spec": {"project": "retail"}, "status": {"sync": {"revision": "abc"}},
    });
    simulation.kube.apply(Collection::Applications, application).unwrap();
    simulation.kube.apply(Collection::Rollouts, rollout("shop", "web", "Progressing")).unwrap();
    let key = Key::new("shop", "web").unwrap();
    let text = simulation.kube.text(Collection::Rollouts, &key).unwrap();
    let uid = serde_json::from_slice::<Value>(&text).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    simulation.kube.apply(Collection::ReplicaSets, replica_set("shop", "web-1", Some(&uid))).unwrap();
}

#[tokio::test]
async fn objects_go_along_with_their_application_and_our_platform_keeps_them_under_it() {
    let simulation = world().await;
    shop(&simulation);
    let settings = json!({"resources": {"kinds": ["rollouts.argoproj.io", "replicasets.apps"]}});
    let runtime = launch(&simulation, &settings).await;
    eventually("both to be reported", || names(&simulation) == ["shop/web", "shop/web-1"]).await;
    let owner = json!({"name": "shop", "namespace": "argocd", "project": "retail", "revision": "abc"});
    assert!(payloads(&simulation).iter().all(|payload| payload["application"] == owner));
    runtime.stop().await;

    let platform = Platform::start().await;
    let settings = json!({
        "resources": {"kinds": ["rollouts.argoproj.io", "replicasets.apps"]},
        "platform": {"url": platform.url(), "tokenFile": platform.token_file()},
    });
    let runtime = launch(&simulation, &settings).await;
    let client = http_client();
    let path = "/api/v1/applications/argocd/shop/timeline";
    let kinds = async || {
        let page = platform.page(&client, path).await;
        let entries = page["transitions"].as_array().into_iter().flatten();
        let mut kinds: Vec<String> =
            entries.filter_map(|entry| Some(entry["resource"]["kind"].as_str()?.to_owned())).collect();
        kinds.sort();
        kinds
    };
    wait_for("the first states", async || kinds().await, |kinds| *kinds == ["ReplicaSet", "Rollout"]).await;
    simulation.kube.apply(Collection::Rollouts, rollout("shop", "web", "Paused")).unwrap();
    wait_for(
        "the next state",
        async || kinds().await,
        |kinds| *kinds == ["ReplicaSet", "Rollout", "Rollout"],
    )
    .await;
    runtime.stop().await;
}

#[tokio::test]
async fn reports_go_out_as_cloudevents_where_that_is_the_sink() {
    let simulation = world().await;
    shop(&simulation);
    let came: Arc<Mutex<Vec<Value>>> = Arc::default();
    let taken = came.clone();
    let take = move |body: axum::body::Bytes| {
        taken.lock().unwrap().extend(serde_json::from_slice::<Vec<Value>>(&body).unwrap());
        async { StatusCode::ACCEPTED }
    };
    let url = format!("{}/events", serve(Router::new().route("/events", post(take))).await.unwrap());
    let settings = json!({
        "resources": {"kinds": ["rollouts.argoproj.io", "replicasets.apps"]},
        "reporter": {"sink": {
            "kind": "cloudevents", "cloudevents": {"url": url, "mode": "batched", "source": "/clusters/one"},
        }},
    });
    let runtime = launch(&simulation, &settings).await;
    let subjects = || {
        let came = came.lock().unwrap();
        let mut subjects: Vec<_> =
            came.iter().map(|event| event["subject"].as_str().unwrap().to_owned()).collect();
        subjects.sort();
        subjects
    };
    eventually("both events", || subjects() == ["replicaset/shop/web-1", "rollout/shop/web"]).await;
    for event in came.lock().unwrap().iter() {
        assert_eq!(
            (&event["source"], &event["type"]),
            (&json!("/clusters/one"), &json!("gitops-runtime.object.reported"))
        );
        assert_eq!(event["data"]["application"]["name"], "shop");
    }
    assert_eq!(simulation.platform.totals().posts, 0);
    runtime.stop().await;
}
