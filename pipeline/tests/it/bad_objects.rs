//! Applications that are not as they should be: they are reported as far as they can be, or skipped and counted,
//! and the others go on.

use loadtest::sim::Simulation;
use loadtest::sim::argocd::Kind;
use loadtest::sim::kube::Collection;
use loadtest::sim::platform::Last;
use pipeline_core::Key;
use serde_json::{Value, json};

use crate::runtime::{Runtime, eventually, object, taken};
use crate::told::{self, REPORTS};

/// Reports `odd` among others, changes one of these afterwards, and gives the last report of `odd`.
async fn among_others(name: &str, odd: Value) -> (Simulation, Value) {
    let simulation = told::world(|_| {}).await;
    told::put(&simulation, "before");
    told::put_object(&simulation, odd);
    told::put(&simulation, "later");
    let runtime = Runtime::start(&simulation, &json!({})).await;
    let last = |name: &str| simulation.platform.last_of_application("argocd", name);
    eventually("every application", || {
        ["before", name, "later"].into_iter().all(|name| last(name).is_some())
    })
    .await;
    others_go_on(&simulation).await;
    let status = runtime.idle(4).await;
    assert_eq!((status.total.parked, status.total.acked), (0, 4), "{status:?}");
    assert_eq!(runtime.counted("gitops_runtime_malformed_objects_total", &[]).await, 0.0);
    runtime.stop().await;
    let Last { payload, .. } = last(name).unwrap();
    (simulation, serde_json::from_slice(&payload.unwrap()).unwrap())
}

/// Changes an application and waits for the report of that.
async fn others_go_on(simulation: &Simulation) {
    let mut other = told::application("before", &told::thing());
    other["spec"]["source"]["path"] = json!("elsewhere");
    let version = simulation.kube.apply(Collection::Applications, other).unwrap();
    eventually("a change of another application", || {
        let last = simulation.platform.last_of_application("argocd", "before");
        last.is_some_and(|last| last.version == Some(version))
    })
    .await;
}

fn without(part: &str) -> Value {
    let mut odd = told::application("odd", &told::thing());
    odd.as_object_mut().unwrap().remove(part);
    odd
}

#[tokio::test]
async fn an_application_without_a_spec_is_reported() {
    let (_, payload) = among_others("odd", without("spec")).await;
    assert_eq!(payload["source"]["syncStatus"], "OutOfSync");
    assert_eq!((&payload["source"]["repoURL"], &payload["source"]["cluster"]), (&json!(""), &json!("")));
}

#[tokio::test]
async fn an_application_without_a_status_is_reported() {
    let (_, payload) = among_others("odd", without("status")).await;
    let object = object(payload.to_string().as_bytes());
    let stands = json!({
        "sync": {"status": "", "comparedTo": {"source": {"repoURL": ""}, "destination": {}}},
        "health": {}, "summary": {},
    });
    assert_eq!(object["status"], stands);
    assert_eq!(payload["source"]["repoURL"], "https://git.example/repo.git");
}

#[tokio::test]
async fn an_application_with_members_of_the_wrong_types_is_reported() {
    let mut odd = told::application("odd", &told::thing());
    odd["metadata"]["labels"] = json!(["not", "a", "map"]);
    odd["metadata"]["annotations"] = json!(7);
    odd["metadata"]["deletionTimestamp"] = json!({});
    odd["spec"] = json!({"source": "text", "sources": 3, "destination": [], "project": {"a": 1}});
    odd["operation"] = json!("now");
    odd["status"] = json!({
        "sync": ["Synced"], "health": 4, "history": {"id": 1}, "conditions": "many", "operationState": [1],
        "resources": [7, "text", null, {"kind": 5, "name": ["x"]}, {"kind": "ConfigMap", "name": "thing", "status": 3}],
        "summary": "none", "reconciledAt": 12,
    });
    let (_, payload) = among_others("odd", odd).await;
    assert_eq!(payload["source"]["appName"], "");
    assert_eq!(object(payload.to_string().as_bytes())["metadata"]["name"], "odd");
}

#[tokio::test]
async fn an_application_of_3_mb_is_reported() {
    let size = 3 << 20;
    let mut odd = told::application("odd", &told::thing());
    odd["metadata"]["annotations"] = json!({"note": "n".repeat(size)});
    let (_, payload) = among_others("odd", odd).await;
    let object = object(payload.to_string().as_bytes());
    assert_eq!(object["metadata"]["annotations"]["note"].as_str().unwrap().len(), size);
}

#[tokio::test]
async fn names_that_need_escaping_are_escaped() {
    let name = "w ird%2f?&#+=ü";
    let odd = told::application(name, &told::thing());
    let simulation = told::world(|_| {}).await;
    simulation.argocd.traffic().keep(1_000);
    told::put(&simulation, "before");
    let mut odd = odd;
    odd["spec"]["project"] = json!("a&b=c#d");
    odd["status"]["resources"][1]["name"] = json!("system:node?x=1&y/z %41");
    told::put_object(&simulation, odd);
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, 2 * REPORTS).await;
    others_go_on(&simulation).await;
    assert_eq!(runtime.status().await.total.parked, 0);
    runtime.stop().await;
    assert!(simulation.platform.last_of_application("argocd", name).is_some());
    assert_eq!(simulation.argocd.count(Kind::Other), 0, "a path that Argo CD does not know");
    let escaped = "/api/v1/applications/w%20ird%252f%3F%26%23%2B%3D%C3%BC/";
    let asked: Vec<String> = simulation.argocd.traffic().kept();
    let about: Vec<&String> = asked.iter().filter(|path| path.starts_with(escaped)).collect();
    assert!(about.len() >= 3, "{asked:#?}");
    assert!(about.iter().all(|path| path.contains("project=a%26b%3Dc%23d")), "{about:#?}");
    let resource = "resourceName=system%3Anode%3Fx%3D1%26y%2Fz%20%2541&";
    assert!(about.iter().any(|path| path.contains(resource)), "{about:#?}");
}

/// Puts a text where an application should be, among others that are reported.
async fn skipped(text: &'static str, part: &str) {
    let simulation = told::world(|_| {}).await;
    told::put(&simulation, "before");
    let key = Key::new("argocd", "odd").unwrap();
    simulation.kube.apply_text(Collection::Applications, &key, |_| text.into());
    told::put(&simulation, "later");
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, 2 * REPORTS).await;
    let message = "something in the watch cannot be read and was skipped";
    let line = runtime.says(message).await;
    assert_eq!((line.level.as_str(), line.field("part")), ("WARN", part));
    runtime.counts("gitops_runtime_malformed_objects_total", &[], 1.0).await;
    // Once more, over the watch.
    eventually("a watch", || simulation.kube.open_watches() > 0).await;
    simulation.kube.apply_text(Collection::Applications, &key, |_| text.into());
    runtime.counts("gitops_runtime_malformed_objects_total", &[], 2.0).await;
    others_go_on(&simulation).await;
    let status = runtime.idle(3).await;
    assert_eq!((status.total.parked, status.total.acked), (0, 3), "{status:?}");
    runtime.stop().await;
    assert_eq!(simulation.platform.totals().applications, 3);
}

#[tokio::test]
async fn an_object_that_is_no_mapping_is_skipped_and_counted() {
    skipped("[1, 2, 3]", "object").await;
}

#[tokio::test]
async fn an_application_without_metadata_is_skipped_and_counted() {
    skipped(r#"{"kind": "Application", "metadata": "none", "spec": {}}"#, "metadata").await;
}

#[tokio::test]
async fn an_application_without_a_uid_is_skipped_and_counted() {
    skipped(
        r#"{"kind": "Application", "metadata": {"name": "odd", "namespace": "argocd", "resourceVersion": "2"}}"#,
        "uid",
    )
    .await;
}

#[tokio::test]
async fn an_application_with_a_name_of_the_wrong_type_is_skipped_and_counted() {
    skipped(
        r#"{"metadata": {"name": 5, "namespace": "argocd", "uid": "u", "resourceVersion": "2"}}"#,
        "name",
    )
    .await;
}
