//! Reports of resources.

use serde_json::{Value, json};

use super::*;

fn run_store(
    edit: impl FnOnce(&mut Value),
    response: impl FnMut(&Fetch) -> Response,
) -> (Enriched, Vec<Fetch>) {
    let mut store = store();
    edit(&mut store);
    run(&event(&store), None, response)
}

fn parsed(payload: &Value, manifest: &str) -> Value {
    serde_json::from_str(payload["source"][manifest].as_str().unwrap()).unwrap_or_default()
}

#[test]
fn a_resource_has_the_states_of_managed_resources_and_its_application() {
    let (enriched, asked) = run_store(|_| {}, healthy);
    assert_eq!(calls(&asked).iter().filter(|call| **call == "managed_resources").count(), 1);
    let mut payload = payload(&enriched, "Deployment");
    assert_eq!(object(&payload)["spec"]["state"], "live");
    assert_eq!(parsed(&payload, "actualManifest")["spec"]["state"], "live");
    assert_eq!(parsed(&payload, "desiredManifest")["spec"]["state"], "desired");
    let git: Value = serde_saphyr::from_str(payload["source"]["gitManifest"].as_str().unwrap()).unwrap();
    assert_eq!(git, parsed(&payload, "desiredManifest"));
    for manifest in ["actualManifest", "desiredManifest", "gitManifest"] {
        payload["source"][manifest] = json!("");
    }
    assert_eq!(
        payload["source"],
        json!({
            "desiredManifest": "", "actualManifest": "", "gitManifest": "", "path": "",
            "repoURL": "https://git.example.com/mono.git", "revision": REVISION,
            "commitMessage": "Add web", "commitAuthor": "Ada <ada@example.com>",
            "commitDate": "2026-11-20T10:00:00Z", "appName": "store", "appLabels": {"team": "web"},
            "syncStatus": "Synced", "syncStartedAt": "2026-11-21T11:00:00Z",
            "syncFinishedAt": "2026-11-21T11:00:05Z", "healthStatus": "Progressing",
            "healthMessage": "1 of 2", "cluster": "https://kubernetes.default.svc", "historyId": 3,
            "operationSyncRevision": REVISION, "appUID": "u1", "appNamespace": "argocd",
            "appInstanceLabelKey": "app.kubernetes.io/instance", "trackingMethod": "annotation",
        })
    );
}

#[test]
fn what_is_synced_and_healthy_was_finished_when_it_was_started() {
    let (enriched, _) = run_store(|_| {}, healthy);
    assert_eq!(payload(&enriched, "Service")["source"]["syncFinishedAt"], "2026-11-21T11:00:00Z");
    let without = |app: &mut Value| {
        app["status"].as_object_mut().unwrap().remove("operationState");
    };
    let (enriched, _) = run_store(without, healthy);
    assert_eq!(payload(&enriched, "Service")["source"]["syncFinishedAt"], NOW);
    assert_eq!(payload(&enriched, "Deployment")["source"].get("syncFinishedAt"), None);
}

#[test]
fn no_labels_are_null_and_no_health_is_absent() {
    let edit = |app: &mut Value| {
        app["metadata"].as_object_mut().unwrap().remove("labels");
        let entry = app["status"]["resources"][1].as_object_mut().unwrap();
        entry.remove("health");
        entry.insert("status".to_owned(), json!("OutOfSync"));
    };
    let (enriched, _) = run_store(edit, healthy);
    let source = payload(&enriched, "Deployment")["source"].clone();
    assert_eq!(source["appLabels"], Value::Null);
    assert_eq!((source.get("healthStatus"), source.get("healthMessage")), (None, None));
    assert_eq!(payload(&enriched, "Application")["source"]["appLabels"], json!({}));
}

#[test]
fn nested_applications_are_left_to_their_own_events() {
    let edit = |app: &mut Value| {
        app["status"]["resources"] = json!([{"group": "argoproj.io", "version": "v1alpha1",
            "kind": "Application", "namespace": "argocd", "name": "child", "status": "Synced"}]);
    };
    let (enriched, asked) = run_store(edit, healthy);
    assert_eq!(kinds(&enriched), ["Application"]);
    assert_eq!(calls(&asked), ["revision_metadata"]);
}

/// The fork's `manifests`: two entries for the service, of which the first counts.
fn fork(fetch: &Fetch) -> Response {
    let entry = |state: &str, path: &str| {
        let mut manifest = manifest("v1", "Service", "web", state);
        manifest["metadata"].as_object_mut().unwrap().remove("namespace");
        json!({"compiledManifest": manifest.to_string(), "rawManifest": format!("raw: {state}\n"), "path": path})
    };
    match fetch {
        Fetch::Manifests { .. } => {
            body(json!({"manifests": [entry("first", "a.yaml"), entry("second", "b.yaml")]}))
        }
        Fetch::Resource { .. } | Fetch::ManagedResources { .. } => Response::NotFound,
        fetch => healthy(fetch),
    }
}

fn run_fork(edit: impl FnOnce(&mut Value), response: impl FnMut(&Fetch) -> Response) -> Enriched {
    let mut store = store();
    edit(&mut store);
    let fork = settings(RawManifests::Served);
    run_with(&event(&store), None, &fork, Duration::ZERO, response).0.unwrap()
}

#[test]
fn the_fork_gives_the_raw_manifest_and_its_path() {
    let enriched = run_fork(|_| {}, fork);
    let service = payload(&enriched, "Service");
    assert_eq!(service["source"]["gitManifest"], "raw: first\n");
    assert_eq!(service["source"]["path"], "a.yaml");
    assert_eq!(parsed(&service, "desiredManifest")["spec"]["state"], "first");
    assert_eq!(parsed(&service, "desiredManifest")["metadata"].get("namespace"), None);
    // Without a live object: the desired one, in the resource's namespace.
    assert_eq!(service["source"]["actualManifest"], "");
    assert_eq!(object(&service)["metadata"]["namespace"], "store");
    // Without that, too: a stub.
    let deployment = payload(&enriched, "Deployment");
    assert_eq!(
        object(&deployment),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "store"}})
    );
    assert_eq!(deployment["source"]["gitManifest"], "");
}

#[test]
fn a_cluster_scoped_stub_has_no_namespace() {
    let edit = |app: &mut Value| {
        app["status"]["resources"] =
            json!([{"version": "v1", "kind": "Namespace", "name": "store", "status": "OutOfSync"}]);
    };
    let enriched = run_fork(edit, fork);
    assert_eq!(
        object(&payload(&enriched, "Namespace")),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "store"}})
    );
}

#[test]
fn pruning_empties_what_lives_and_what_is_wanted_but_not_what_is_in_git() {
    let prune = |app: &mut Value| app["status"]["resources"][0]["requiresPruning"] = json!(true);
    let live = |fetch: &Fetch| match fetch {
        Fetch::ManagedResources { .. } => healthy(fetch),
        fetch => fork(fetch),
    };
    let service = payload(&run_fork(prune, live), "Service");
    let source = &service["source"];
    assert_eq!((&source["actualManifest"], &source["desiredManifest"]), (&json!(""), &json!("")));
    assert_eq!((&source["gitManifest"], &source["path"]), (&json!("raw: first\n"), &json!("a.yaml")));
    assert_eq!(object(&service)["spec"]["state"], "live");
    // Only with a live object,
    let service = payload(&run_fork(prune, fork), "Service");
    assert_ne!(service["source"]["desiredManifest"], "");
    // and only if it is known that none is wanted.
    let broken = |fetch: &Fetch| match fetch {
        Fetch::Manifests { .. } => Response::GenerationError,
        fetch => live(fetch),
    };
    let service = payload(&run_fork(prune, broken), "Service");
    assert_ne!(service["source"]["actualManifest"], "");
    assert_eq!(service["source"]["desiredManifest"], "");
}

#[test]
fn deleting_the_application_empties_its_resources() {
    let going = |app: &mut Value| app["metadata"]["deletionTimestamp"] = json!("2026-11-21T11:59:00Z");
    let (enriched, _) = run_store(going, healthy);
    let source = payload(&enriched, "Service")["source"].clone();
    for manifest in ["actualManifest", "desiredManifest", "gitManifest"] {
        assert_eq!(source[manifest], "", "{manifest}");
    }
}

#[test]
fn the_git_manifest_of_a_secret_is_the_compiled_one() {
    let edit = |app: &mut Value| app["status"]["resources"][0]["kind"] = json!("Secret");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"},
        "data": {"password": "++++++++"}});
    let response = |fetch: &Fetch| match fetch {
        Fetch::Manifests { .. } => body(json!({"manifests": [{"compiledManifest": secret.to_string(),
            "rawManifest": "stringData: {password: hunter2}", "path": "s.yaml"}]})),
        fetch => fork(fetch),
    };
    let source = payload(&run_fork(edit, response), "Secret")["source"].clone();
    assert_eq!(source["gitManifest"], source["desiredManifest"]);
    assert!(source["gitManifest"].as_str().unwrap().contains("++++++++"));
    assert_eq!(source["path"], "s.yaml");
}

#[test]
fn hooks_are_asked_for_one_by_one() {
    let edit = |app: &mut Value| {
        app["status"]["resources"] = json!([{"group": "batch", "version": "v1", "kind": "Job",
            "namespace": "store", "name": "hook", "hook": true, "requiresPruning": true}]);
    };
    let (enriched, asked) = run_store(edit, healthy);
    assert_eq!(calls(&asked), ["manifests", "resource", "revision_metadata"]);
    let path = asked[1].path("");
    assert_eq!(
        path,
        "/api/v1/applications/store/resource?appNamespace=argocd&namespace=store&resourceName=hook\
         &version=v1&group=batch&kind=Job&project=default"
    );
    let job = payload(&enriched, "Job");
    assert_eq!(job["source"]["syncStatus"], "");
    assert_eq!(job["source"].get("healthStatus"), None);
    assert_eq!(job["source"]["actualManifest"], "");
    assert_eq!(object(&job)["spec"]["state"], "live");
}

#[test]
fn an_entry_that_managed_resources_lacks_is_asked_for() {
    let lacking = |fetch: &Fetch| match fetch {
        Fetch::ManagedResources { .. } => body(json!({"items": [
            managed("", "Service", "web", &manifest("v1", "Service", "web", "live")),
            // An object that is not there is the text `null`.
            {"group": "apps", "kind": "Deployment", "namespace": "store", "name": "other",
                "liveState": "null", "targetState": "null"},
        ]})),
        Fetch::Resource { .. } => {
            body(json!({"manifest": manifest("apps/v1", "Deployment", "web", "one").to_string()}))
        }
        fetch => healthy(fetch),
    };
    let (enriched, asked) = run_store(|_| {}, lacking);
    assert_eq!(calls(&asked).iter().filter(|call| **call == "resource").count(), 1);
    assert_eq!(object(&payload(&enriched, "Deployment"))["spec"]["state"], "one");
}

#[test]
fn names_are_escaped() {
    let edit = |app: &mut Value| app["metadata"]["name"] = json!("a b&c/d");
    let (_, asked) = run_store(edit, healthy);
    assert!(asked.iter().all(|fetch| fetch.path("/x/").starts_with("/x/api/v1/applications/a%20b%26c%2Fd/")));
}

#[test]
fn a_sync_that_failed_is_an_error_of_its_resource() {
    let edit = |app: &mut Value| {
        let result = |phase: &str, status: &str, message: &str| {
            json!({"kind": "Service", "namespace": "store", "name": "web", "syncPhase": phase,
                "version": "v2", "status": status, "hookPhase": "Failed", "message": message})
        };
        app["status"]["operationState"]["syncResult"]["resources"] = json!([
            result("PreSync", "SyncFailed", "no"),
            result("Sync", "SyncFailed", "first"),
            result("Sync", "SyncFailed", "second")
        ]);
    };
    let (enriched, _) = run_store(edit, healthy);
    assert_eq!(
        payload(&enriched, "Service")["errors"],
        json!([{"type": "sync", "level": "error", "message": "first", "lastSeen": "2026-11-21T11:00:00Z"}])
    );
    assert_eq!(payload(&enriched, "Deployment").get("errors"), None);
}

#[test]
fn a_desired_fallback_of_a_cluster_scoped_resource_has_no_namespace() {
    let role = |namespace: Option<&str>| {
        let mut role = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}});
        if let Some(namespace) = namespace {
            role["metadata"]["namespace"] = json!(namespace);
        }
        role
    };
    let edit = |store: &mut Value| {
        store["status"]["resources"] =
            json!([{"version": "v1", "kind": "Node", "name": "one", "status": "OutOfSync"}]);
    };
    let (enriched, _) = run_store(edit, |fetch| match fetch {
        Fetch::ManagedResources { .. } => body(json!({"items": [{
            "kind": "Node", "name": "one", "liveState": "null",
            "targetState": role(Some("wrong")).to_string(),
        }]})),
        fetch => healthy(fetch),
    });
    assert_eq!(object(&payload(&enriched, "Node")), role(None));
}
