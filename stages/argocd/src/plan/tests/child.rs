//! Child applications: reported as a resource of their parent.

use pipeline_core::Reason;
use serde_json::{Value, json};

use super::*;
use crate::labels;
use crate::plan::TrackingMethod;

fn child() -> Value {
    let mut child = store();
    child["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/tracking-id": "parent:argoproj.io/Application:argocd/store"});
    child["status"]["operationState"]["phase"] = json!("Failed");
    child
}

fn parent() -> Value {
    let mut parent = store();
    parent["metadata"] = json!({"name": "parent", "namespace": "apps", "uid": "p1", "resourceVersion": "9"});
    parent["spec"]["destination"]["server"] = json!("https://parent");
    parent["status"]["history"] = json!([{"id": 8, "revision": "parent-revision"}]);
    parent["status"]["operationState"]["operation"]["sync"]["revision"] = json!("parent-operation");
    parent
}

fn responses(fetch: &Fetch) -> Response {
    match fetch {
        Fetch::Parent { .. } => body(parent()),
        Fetch::Manifests { app, .. } if app.name == "parent" => body(json!({"manifests": [{
            "compiledManifest": json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"name": "store", "namespace": "argocd"}}).to_string(),
            "rawManifest": "raw", "path": "parent/store.yaml",
        }]})),
        Fetch::RevisionMetadata { app, .. } if app.name == "parent" => body(json!({
            "author": "Grace", "date": "2026-11-20T11:00:00Z", "message": "Parent",
        })),
        fetch => healthy(fetch),
    }
}

#[test]
fn a_child_has_the_state_of_its_own_and_the_sync_of_its_parent() {
    let (enriched, asked) = run(&event(&child()), None, responses);
    assert_eq!(asked[0].path(""), "/api/v1/applications/parent?appNamespace=");
    assert_eq!(enriched.reports[0].kind, labels::CHILD_APP_REPORT);
    let report = payload(&enriched, "Application");
    let source = &report["source"];
    assert_eq!(source["path"], "parent/store.yaml");
    assert_eq!(source["commitAuthor"], "Grace");
    assert_eq!(source["appName"], "parent");
    assert_eq!(source["appNamespace"], "apps");
    assert_eq!(source["appUID"], "p1");
    assert_eq!(source["appLabels"], Value::Null);
    assert_eq!(source["historyId"], 8);
    assert_eq!(source["revision"], "parent-revision");
    assert_eq!(source["operationSyncRevision"], "parent-operation");
    assert_eq!(source["cluster"], "https://parent");
    assert_eq!(source["syncStatus"], "Synced");
    assert_eq!(source["healthStatus"], "Progressing");
    let actual: Value = serde_json::from_str(source["actualManifest"].as_str().unwrap()).unwrap();
    let marked = object(&report);
    assert_eq!(actual["metadata"]["labels"], json!({"team": "web"}));
    assert_eq!(actual["metadata"]["annotations"].as_object().unwrap().len(), 1);
    assert_eq!(marked["metadata"]["labels"]["app.meta.commit-author"], "Ada <ada@example.com>");
    assert_eq!(report["errors"][0]["message"], "ok");
    // Its resources are its own.
    let service = payload(&enriched, "Service");
    assert_eq!(service["source"]["appName"], "store");
    assert_eq!(service["source"]["cluster"], "https://kubernetes.default.svc");
}

#[test]
fn errors_stand_in_the_order_of_parent_operation_conditions_and_resources() {
    let mut child = child();
    child["status"]["conditions"] = json!([{"type": "XError", "message": "condition"}]);
    let response = |fetch: &Fetch| match fetch {
        Fetch::Parent { .. } => {
            let mut parent = parent();
            parent["status"]["operationState"]["syncResult"]["resources"] = json!([{"group": "argoproj.io",
                "kind": "Application", "namespace": "argocd", "name": "store", "syncPhase": "Sync",
                "status": "SyncFailed", "message": "sync"}]);
            body(parent)
        }
        Fetch::ResourceTree { .. } => {
            body(json!({"nodes": [{"kind": "Pod", "name": "p", "namespace": "store",
            "health": {"status": "Degraded", "message": "pod"},
            "parentRefs": [{"group": "apps", "kind": "Deployment", "namespace": "store", "name": "web"}]}]}))
        }
        fetch => responses(fetch),
    };
    let (enriched, _) = run(&event(&child), None, response);
    let report = payload(&enriched, "Application");
    let messages: Vec<_> =
        report["errors"].as_array().unwrap().iter().map(|error| error["message"].clone()).collect();
    assert_eq!(messages, [json!("sync"), json!("ok"), json!("condition"), json!("pod")]);
}

#[test]
fn a_child_whose_parent_cannot_be_read_is_a_root() {
    let lost = |fetch: &Fetch| match fetch {
        Fetch::Parent { .. } => Response::NotFound,
        fetch => healthy(fetch),
    };
    let (enriched, _) = run(&event(&child()), None, lost);
    assert_eq!(enriched.reports[0].kind, labels::APP_REPORT);
    assert_eq!(payload(&enriched, "Application")["source"]["appName"], "");
    assert_eq!(kinds(&enriched).len(), 3);
}

#[test]
fn a_parent_that_fails_is_waited_for() {
    let broken = |fetch: &Fetch| match fetch {
        Fetch::Parent { .. } => Response::Failed(Reason::ServerError),
        fetch => healthy(fetch),
    };
    let child = child();
    let event = event(&child);
    let upstream = settings(RawManifests::Absent);
    let (result, asked) = run_with(&event, None, &upstream, Duration::from_secs(299), broken);
    let error = result.unwrap_err();
    assert!(error.is_retry());
    assert_eq!(error.to_string(), "read parent application");
    assert!(calls(&asked).contains(&"application"));
    let enriched = run_with(&event, None, &upstream, Duration::from_secs(300), broken).0.unwrap();
    assert!(enriched.reports[0].incomplete && enriched.refetch.is_some());
}

#[test]
fn who_the_parent_is() {
    let settings = |method| Settings { tracking_method: method, ..Settings::default() };
    let parent = |id: &str, label: Option<&str>, method| {
        let mut app = store();
        app["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": id});
        if let Some(label) = label {
            app["metadata"]["labels"]["app.kubernetes.io/instance"] = json!(label);
        }
        let (_, asked) = run_with(&event(&app), None, &settings(method), Duration::ZERO, healthy);
        asked.into_iter().find_map(|fetch| match fetch {
            Fetch::Parent { namespace, name } => Some(format!("{namespace}|{name}")),
            _ => None,
        })
    };
    let by_annotation = |id: &str| parent(id, None, TrackingMethod::Annotation);
    assert_eq!(by_annotation("p:argoproj.io/Application:argocd/store").as_deref(), Some("|p"));
    assert_eq!(by_annotation("ns_p:argoproj.io/Application:argocd/store").as_deref(), Some("ns|p"));
    for none in ["p", "p:x", "p:a/b:c", "p:a/b:c/d:e", "p:a:c/d", ":a/b:c/d", ""] {
        assert_eq!(by_annotation(none), None, "{none}");
    }
    let id = "p:argoproj.io/Application:argocd/store";
    assert_eq!(parent(id, Some("q"), TrackingMethod::Label).as_deref(), Some("|q"));
    assert_eq!(parent(id, None, TrackingMethod::Label), None);
    assert_eq!(parent(id, Some("q"), TrackingMethod::AnnotationAndLabel).as_deref(), Some("|p"));
}

#[test]
fn what_another_argo_cd_tracks_has_no_parent_here() {
    let has_parent = |own: Option<&str>, theirs: Option<&str>| {
        let mut app = child();
        if let Some(theirs) = theirs {
            app["metadata"]["annotations"]["argocd.argoproj.io/installation-id"] = json!(theirs);
        }
        let own = Settings { installation_id: own.map(str::to_owned), ..settings(RawManifests::Absent) };
        let (_, asked) = run_with(&event(&app), None, &own, Duration::ZERO, responses);
        asked.iter().any(|fetch| matches!(fetch, Fetch::Parent { .. }))
    };
    for (own, theirs, expected) in [
        (Some("tenant"), Some("tenant"), true),
        (Some("tenant"), Some("hub"), false),
        (Some("tenant"), None, false),
        (Some(""), Some("hub"), false),
        (Some(""), None, true),
        // Not known yet.
        (None, Some("hub"), true),
    ] {
        assert_eq!(has_parent(own, theirs), expected, "{own:?} {theirs:?}");
    }
}

#[test]
fn a_deleted_child_is_still_its_parents() {
    let (enriched, asked) = run(&deleted(&child()), None, responses);
    assert_eq!(enriched.reports.len(), 1);
    assert!(enriched.reports[0].ends);
    let report = payload(&enriched, "Application");
    assert_eq!(report["source"]["appName"], "parent");
    assert_eq!(report["source"]["actualManifest"], "");
    assert_eq!(report["source"]["path"], "parent/store.yaml");
    assert!(asked.iter().all(|fetch| fetch.path("").contains("/parent")), "nothing is asked of what is gone");
}
