//! What is reported of an application that was changed while nobody watched: of the states between nothing is known.

use serde_json::{Value, json};

use super::*;

const OTHER: &str = "2222222222222222222222222222222222222222";

/// Healthy and in sync, as it was deployed: its sources with their revisions.
fn deployed(id: u32, sources: &Value, revisions: &[&str]) -> Value {
    let mut app = store();
    let status = &mut app["status"];
    status["health"] = json!({"status": "Healthy"});
    status["resources"][1]["health"] = json!({"status": "Healthy"});
    let names = if sources.is_array() { ("sources", "revisions") } else { ("source", "revision") };
    let revisions = if sources.is_array() { json!(revisions) } else { json!(revisions[0]) };
    let told = json!({names.0: sources, names.1: revisions});
    status["sync"] = json!({"status": "Synced", names.1: revisions, "comparedTo": {names.0: sources}});
    status["history"] = json!([{"id": 1, "revision": "0"}, {"id": id}]);
    status["operationState"]["operation"] = json!({"sync": told});
    status["operationState"]["syncResult"] = told.clone();
    for (name, value) in told.as_object().unwrap() {
        status["history"][1][name] = value.clone();
    }
    let spec = app["spec"].as_object_mut().unwrap();
    spec.remove("source");
    spec.insert(names.0.to_owned(), sources.clone());
    app["metadata"]["resourceVersion"] = json!((10 + id).to_string());
    app
}

fn two_sources() -> Value {
    json!([{"repoURL": "https://git.example.com/mono.git", "path": "store"},
        {"repoURL": "https://git.example.com/other.git", "path": "more"}])
}

fn helm(replicas: u32) -> Value {
    json!({"repoURL": "https://git.example.com/mono.git", "path": "store",
        "helm": {"parameters": [{"name": "replicas", "value": replicas.to_string()}]}})
}

/// The service is another one than before.
fn news(fetch: &Fetch) -> Response {
    match fetch {
        Fetch::ManagedResources { .. } => body(json!({"items": [
            managed("", "Service", "web", &manifest("v1", "Service", "web", "news")),
            managed("apps", "Deployment", "web", &manifest("apps/v1", "Deployment", "web", "live")),
        ]})),
        fetch => healthy(fetch),
    }
}

fn reported(app: &Value) -> Record {
    remember(None, &run(&event(app), None, healthy).0).unwrap()
}

/// What is reported of `after` where `before` was reported last.
fn resources(before: &Value, after: &Value) -> Vec<String> {
    let (enriched, asked) = run(&event(after), Some(&reported(before)), news);
    assert!(calls(&asked).iter().filter(|call| **call == "managed_resources").count() <= 1, "{asked:?}");
    let service = payloads(&enriched).into_iter().find(|(kind, _)| kind == "Service");
    if let Some((_, service)) = service {
        assert_eq!(object(&service)["spec"]["state"], "news");
    }
    kinds(&enriched)
}

#[test]
fn another_revision_of_either_of_two_sources_is_seen_in_the_resources() {
    let before = deployed(3, &two_sources(), &[REVISION, REVISION]);
    for revisions in [[OTHER, REVISION], [REVISION, OTHER]] {
        let after = deployed(4, &two_sources(), &revisions);
        assert_eq!(resources(&before, &after), ["Application", "Service", "Deployment"], "{revisions:?}");
    }
}

#[test]
fn other_parameters_of_the_same_revision_are_seen_in_the_resources() {
    let after = |sources: &Value, revisions: &[&str]| deployed(4, sources, revisions);
    let before = deployed(3, &helm(1), &[REVISION]);
    assert_eq!(resources(&before, &after(&helm(2), &[REVISION])), ["Application", "Service", "Deployment"]);
    let several = |replicas| json!([helm(replicas), two_sources()[1]]);
    let (before, revisions) = (deployed(3, &several(1), &[REVISION, REVISION]), [REVISION, REVISION]);
    assert_eq!(resources(&before, &after(&several(2), &revisions)), ["Application", "Service", "Deployment"]);
}

#[test]
fn a_sync_of_some_resources_alone_is_seen_though_no_history_tells_of_it() {
    let before = deployed(3, &two_sources(), &[REVISION, REVISION]);
    let mut after = before.clone();
    after["metadata"]["resourceVersion"] = json!("14");
    after["status"]["sync"]["revisions"] = json!([OTHER, REVISION]);
    after["status"]["operationState"]["syncResult"]["revisions"] = json!([OTHER, REVISION]);
    assert_eq!(resources(&before, &after), ["Application", "Service"], "of the other one nothing differs");
}

#[test]
fn what_was_never_deployed_is_told_by_what_it_was_compared_with() {
    let without_history = |id, sources: &Value, revisions: &[&str]| {
        let mut app = deployed(id, sources, revisions);
        app["status"].as_object_mut().unwrap().remove("history");
        app
    };
    let before = without_history(3, &two_sources(), &[REVISION, REVISION]);
    let after = without_history(4, &two_sources(), &[REVISION, OTHER]);
    assert!(resources(&before, &after).contains(&"Service".to_owned()));
    let (before, after) =
        (without_history(3, &helm(1), &[REVISION]), without_history(4, &helm(2), &[REVISION]));
    assert!(resources(&before, &after).contains(&"Service".to_owned()));
}

#[test]
fn a_commit_that_is_compared_and_not_deployed_costs_no_look_at_the_resources() {
    let before = deployed(3, &helm(1), &[REVISION]);
    let mut after = before.clone();
    after["metadata"]["resourceVersion"] = json!("14");
    after["status"]["sync"]["revision"] = json!(OTHER);
    let (enriched, asked) = run(&event(&after), Some(&reported(&before)), news);
    assert_eq!(kinds(&enriched), ["Application"]);
    assert_eq!(calls(&asked), ["revision_metadata"]);
}
