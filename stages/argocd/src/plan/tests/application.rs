//! Reports of root applications.

use serde_json::{Value, json};

use super::*;

fn report(edit: impl FnOnce(&mut Value)) -> Value {
    let mut store = store();
    edit(&mut store);
    payload(&run(&event(&store), None, healthy).0, "Application")
}

#[test]
fn the_object_is_as_watched_with_marks_and_what_always_stands() {
    let payload = report(|app| app["spec"]["syncPolicy"] = json!({"automated": {"prune": false}}));
    let object = object(&payload);
    assert_eq!(object["spec"]["syncPolicy"], json!({"automated": {"prune": false}}));
    assert_eq!(object["status"]["summary"], json!({}));
    assert_eq!(object["status"]["sync"]["comparedTo"]["destination"], json!({}));
    let labels = &object["metadata"]["labels"];
    assert_eq!(labels["app.meta.commit-date"], "2026-11-20T10:00:00.000Z");
    assert_eq!(labels["app.meta.commit-author"], "Ada <ada@example.com>");
    assert_eq!(labels["app.meta.commit-message"], "Add web");
    let annotation = object["metadata"]["annotations"]["app.meta.revisions-metadata"].as_str().unwrap();
    assert_eq!(
        annotation,
        r#"{"syncRevisions":[{"revision":"REVISION","metadata":{"author":"Ada \u003cada@example.com\u003e","#
            .replace("REVISION", REVISION)
            + r#""date":"2026-11-20T10:00:00Z","message":"Add web"}}],"changeRevisions":null}"#
    );
    let text = payload["source"]["actualManifest"].as_str().unwrap();
    assert!(text.starts_with(r#"{"kind":"Application","apiVersion":"argoproj.io/v1alpha1","metadata":{"#));
    assert!(text.contains(r"Ada \u003cada@example.com\u003e") && !text.contains('<'));
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), object);
}

#[test]
fn an_application_without_a_status_is_reported_with_what_always_stands() {
    let payload = report(|app| {
        app.as_object_mut().unwrap().remove("status");
    });
    let object = object(&payload);
    assert_eq!(
        object["status"],
        json!({
            "sync": {"status": "", "comparedTo": {"source": {"repoURL": ""}, "destination": {}}},
            "health": {}, "summary": {},
        })
    );
    assert_eq!(
        object["metadata"]["annotations"]["app.meta.revisions-metadata"],
        r#"{"syncRevisions":null,"changeRevisions":null}"#
    );
    assert_eq!(object["metadata"]["labels"], json!({"team": "web"}));
    let source = &payload["source"];
    assert_eq!(source["syncStartedAt"], NOW);
    assert_eq!(source.get("syncFinishedAt"), None);
    assert_eq!((&source["healthStatus"], &source["healthMessage"]), (&json!(""), &json!("")));
    assert_eq!(payload.get("errors"), None);
    assert_eq!(payload["timestamp"], "2026-11-21T12:00:00.250Z");
}

#[test]
fn the_source_of_a_root_has_every_field() {
    let mut payload = report(|_| {});
    payload["source"]["actualManifest"] = json!("");
    assert_eq!(
        payload["source"],
        json!({
            "desiredManifest": "", "actualManifest": "", "gitManifest": "", "path": "", "revision": "",
            "repoURL": "https://git.example.com/mono.git", "commitMessage": "", "commitAuthor": "",
            "appName": "", "appLabels": {}, "syncStatus": "Synced", "syncStartedAt": "2026-11-21T11:00:00Z",
            "syncFinishedAt": "2026-11-21T11:00:05Z", "healthStatus": "Progressing", "healthMessage": "",
            "cluster": "https://kubernetes.default.svc", "historyId": 0, "operationSyncRevision": "",
            "appUID": "", "appNamespace": "", "appInstanceLabelKey": "app.kubernetes.io/instance",
            "trackingMethod": "annotation",
        })
    );
}

#[test]
fn going_empties_the_actual_manifest() {
    let payload = report(|app| app["metadata"]["deletionTimestamp"] = json!("2026-11-21T11:59:00Z"));
    assert_eq!(payload["source"]["actualManifest"], "");
    assert_eq!(object(&payload)["metadata"]["deletionTimestamp"], "2026-11-21T11:59:00Z");
}

#[test]
fn several_sources_are_marked_each_and_labelled_by_the_first_that_is_no_reference() {
    let mut store = store();
    store["spec"]["sources"] = json!([
        {"repoURL": "https://git.example.com/values.git", "ref": "values"},
        {"repoURL": "https://charts.example.com", "chart": "shop"},
        {"repoURL": "https://git.example.com/mono.git", "path": "x"},
    ]);
    store["status"]["operationState"]["operation"]["sync"] = json!({"revisions": ["a", "1.2.3", "b"]});
    let (enriched, asked) = run(&event(&store), None, healthy);
    let indices: Vec<_> = asked
        .iter()
        .filter_map(|fetch| match fetch {
            Fetch::RevisionMetadata { source_index, revision, .. } => {
                Some((*source_index, revision.as_str()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(indices, [(0, "a"), (2, "b")]);
    let root = payload(&enriched, "Application");
    assert_eq!(root["source"]["repoURL"], "https://git.example.com/values.git");
    let object = object(&root);
    let annotation = object["metadata"]["annotations"]["app.meta.revisions-metadata"].as_str().unwrap();
    let marks: Value = serde_json::from_str(annotation).unwrap();
    assert_eq!(marks["syncRevisions"][1], json!({"revision": "1.2.3"}));
    // The first that is no reference is a chart, and a chart has no commit.
    assert_eq!(object["metadata"]["labels"], json!({"team": "web"}));
}

#[test]
fn nobody_is_asked_who_committed_what_a_registry_holds() {
    const DIGEST: &str = "sha256:2d7a6b0c";
    let commits_of = |source: Value| {
        let mut store = store();
        store["spec"]["source"] = source;
        store["status"]["sync"]["revision"] = json!(DIGEST);
        store["status"]["operationState"]["operation"]["sync"] = json!({"revision": DIGEST});
        let (enriched, asked) = run(&event(&store), None, healthy);
        let object = object(&payload(&enriched, "Application"));
        let marks = object["metadata"]["annotations"]["app.meta.revisions-metadata"].as_str().unwrap();
        let marks: Value = serde_json::from_str(marks).unwrap();
        assert!(enriched.reports.iter().all(|report| !report.incomplete));
        assert_eq!(marks["syncRevisions"][0]["revision"], DIGEST);
        let is_asked = asked.iter().any(|fetch| matches!(fetch, Fetch::RevisionMetadata { .. }));
        let is_told = !marks["syncRevisions"][0]["metadata"].is_null();
        (is_asked, is_told, object["metadata"]["labels"]["app.meta.commit-author"].is_string())
    };
    for of_a_registry in [
        json!({"repoURL": "oci://registry.example.com/team/web", "path": "."}),
        json!({"repoURL": "oci://registry.example.com/team/web", "chart": ""}),
        json!({"repoURL": "oci://registry.example.com/team", "chart": "web"}),
    ] {
        assert_eq!(commits_of(of_a_registry.clone()), (false, false, false), "{of_a_registry}");
    }
    let of_git = json!({"repoURL": "https://registry.example.com/team/web", "path": "."});
    assert_eq!(commits_of(of_git), (true, true, true));
}

#[test]
fn what_changed_it_is_told_as_it_is_annotated_but_not_of_another_revision() {
    let changed = |annotations: Value| {
        let payload = report(|app| app["metadata"]["annotations"] = annotations);
        let object = object(&payload);
        let marks = object["metadata"]["annotations"]["app.meta.revisions-metadata"].as_str().unwrap();
        serde_json::from_str::<Value>(marks).unwrap()["changeRevisions"].clone()
    };
    let (list, first) =
        ("mrp-controller.argoproj.io/change-revisions", "mrp-controller.argoproj.io/change-revision");
    let (of, of_first) =
        ("mrp-controller.argoproj.io/git-revisions", "mrp-controller.argoproj.io/git-revision");
    let (older, newest) = (r#"["0123456789012345678901234567890123456789"]"#, json!([REVISION]).to_string());
    let told = changed(json!({list: older, of: newest}));
    assert_eq!(told[0]["revision"], "0123456789012345678901234567890123456789");
    assert_eq!(told[0]["metadata"]["author"], "Ada <ada@example.com>");
    assert_eq!(changed(json!({first: "abc", of_first: REVISION}))[0]["revision"], "abc");
    for other in [
        json!({list: older, of: older}),
        json!({list: older}),
        json!({list: "no list", of: newest}),
        json!({list: "[]", of: newest}),
        json!({first: "", of_first: REVISION}),
    ] {
        assert_eq!(changed(other.clone()), Value::Null, "{other}");
    }
}

#[test]
fn what_changed_it_is_told_of_the_commit_that_its_operation_found_behind_a_name() {
    let changed = |asked: &str, found: Value, of: &str| {
        let payload = report(|app| {
            app["status"]["operationState"]["operation"]["sync"]["revision"] = json!(asked);
            app["status"]["operationState"]["syncResult"] = found;
            app["metadata"]["annotations"] = json!({
                "mrp-controller.argoproj.io/change-revision": "abc", "mrp-controller.argoproj.io/git-revision": of,
            });
        });
        let object = object(&payload);
        let marks = object["metadata"]["annotations"]["app.meta.revisions-metadata"].as_str().unwrap();
        serde_json::from_str::<Value>(marks).unwrap()["changeRevisions"][0]["revision"].clone()
    };
    // A branch, or the object of an annotated tag.
    for asked in ["main", "4444444444444444444444444444444444444444"] {
        assert_eq!(changed(asked, json!({"revision": REVISION}), REVISION), "abc", "{asked}");
        assert_eq!(changed(asked, json!({"revision": REVISION}), "2222222"), Value::Null, "{asked}");
        assert_eq!(changed(asked, json!({}), REVISION), Value::Null, "{asked}");
    }
}

#[test]
fn one_failed_look_up_takes_all_marks() {
    let mut store = store();
    store["spec"]["sources"] = json!([{"repoURL": "a"}, {"repoURL": "b"}]);
    store["status"]["operationState"]["operation"]["sync"] = json!({"revisions": ["a", "b"]});
    let response = |fetch: &Fetch| match fetch {
        Fetch::RevisionMetadata { source_index: 1, .. } => Response::NotFound,
        fetch => healthy(fetch),
    };
    let (enriched, _) = run(&event(&store), None, response);
    let object = object(&payload(&enriched, "Application"));
    assert_eq!(object["metadata"]["labels"], json!({"team": "web"}));
    assert_eq!(
        object["metadata"]["annotations"]["app.meta.revisions-metadata"],
        r#"{"syncRevisions":null,"changeRevisions":null}"#
    );
}

#[test]
fn conditions_are_errors_or_warnings_with_their_time() {
    let payload = report(|app| {
        app["status"]["conditions"] = json!([
            {"type": "ComparisonError", "message": "e", "lastTransitionTime": "2026-11-21T10:00:00Z"},
            {"type": "OrphanedResourceWarning", "message": "w"},
            {"type": "Other", "message": "o"},
        ]);
    });
    assert_eq!(
        payload["errors"],
        json!([
            {"type": "sync", "level": "error", "message": "e", "lastSeen": "2026-11-21T10:00:00Z"},
            {"type": "sync", "level": "warning", "message": "w", "lastSeen": NOW},
        ])
    );
}

#[test]
fn a_condition_of_failed_tasks_is_replaced_by_the_failed_resources() {
    let tasks = json!([{"type": "SyncError", "message": "one or more synchronization tasks are not valid"}]);
    let payload = report(|app| {
        app["status"]["conditions"] = tasks.clone();
        app["status"]["operationState"]["syncResult"]["resources"] = json!([
            {"kind": "Service", "name": "web", "status": "SyncFailed", "hookPhase": "Failed", "message": "no"},
            {"kind": "Job", "name": "hook", "hookPhase": "Error", "message": "bad"},
            {"kind": "Job", "name": "quiet", "hookPhase": "Error", "message": ""},
            {"kind": "Job", "name": "fine", "hookPhase": "Succeeded", "message": "ok"},
        ]);
    });
    let messages: Vec<_> = payload["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (&error["message"], &error["lastSeen"]))
        .collect();
    assert_eq!(
        messages,
        [
            (&json!("Resource Service(web): \n no"), &json!(NOW)),
            (&json!("Resource Job(hook): \n bad"), &json!(NOW)),
        ]
    );
    let payload = report(|app| {
        app["status"]["conditions"] = tasks;
        app["status"]["operationState"]["syncResult"].as_object_mut().unwrap().remove("resources");
    });
    assert_eq!(payload["errors"][0]["message"], "one or more synchronization tasks are not valid");
}

#[test]
fn versions_come_from_the_synced_revision() {
    let fork = |fetch: &Fetch| match fetch {
        Fetch::Manifests { .. } => body(json!({
            "manifests": [], "applicationVersions": {
                "appVersion": "2.7.1", "dependencies": {"deps": "name: shop\n"}, "other": "x",
            },
        })),
        fetch => healthy(fetch),
    };
    let store = store();
    let event = event(&store);
    let (result, asked) = run_with(&event, None, &settings(RawManifests::Unknown), Duration::ZERO, fork);
    let enriched = result.unwrap();
    assert_eq!(
        payload(&enriched, "Application")["appVersions"],
        json!({"appVersion": "2.7.1", "dependencies": {"deps": "name: shop\n"}})
    );
    assert_eq!(payload(&enriched, "Service")["appVersions"], json!({}));
    let paths: Vec<_> = asked
        .iter()
        .filter(|fetch| matches!(fetch, Fetch::Manifests { .. }))
        .map(|fetch| fetch.path("/argo"))
        .collect();
    let path = format!(
        "/argo/api/v1/applications/store/manifests?appNamespace=argocd&project=default&revision={REVISION}"
    );
    // The same call, and the same place in the cache.
    assert_eq!(paths, [path.clone(), path]);
}

#[test]
fn empty_parts_of_versions_are_absent() {
    let fork = |fetch: &Fetch| match fetch {
        Fetch::Manifests { .. } => body(json!({
            "manifests": [], "applicationVersions": {
                "appVersion": "", "dependencies": {"deps": "name: shop\n", "lock": "", "requirements": null},
            },
        })),
        fetch => healthy(fetch),
    };
    let store = store();
    let (result, _) = run_with(&event(&store), None, &settings(RawManifests::Served), Duration::ZERO, fork);
    assert_eq!(
        payload(&result.unwrap(), "Application")["appVersions"],
        json!({"dependencies": {"deps": "name: shop\n"}})
    );
}
