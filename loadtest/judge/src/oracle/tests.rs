use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use loadtest_sim::platform::ResourceKey;
use loadtest_sim::recordings::packed;

fn app() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "argocd", "uid": "u1", "resourceVersion": "70"},
        "status": {
            "sync": {"status": "OutOfSync", "revision": "new"}, "health": {"status": "Degraded"},
            "history": [{"id": 1, "revision": "older"}, {"id": 2, "revision": "old"}],
            "operationState": {"phase": "Succeeded", "startedAt": "s", "finishedAt": "f"},
            "conditions": [{"type": "SyncError"}],
            "resources": [
                {"version": "v1", "kind": "ConfigMap", "namespace": "web", "name": "settings", "status": "Synced"},
                {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "web", "name": "web",
                 "status": "OutOfSync", "health": {"status": "Missing"}},
                {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application", "namespace": "argocd",
                 "name": "child", "status": "Synced"},
            ],
        },
    })
}

fn managed() -> Value {
    let live = json!({"metadata": {"name": "settings", "namespace": "web", "uid": "u2"}}).to_string();
    json!({"items": [
        {"kind": "ConfigMap", "namespace": "web", "name": "settings", "liveState": live},
        {"group": "apps", "kind": "Deployment", "namespace": "web", "name": "web", "liveState": "null"},
    ]})
}

fn report(object: &Value, source: &Value) -> Last {
    let data = json!({"object": STANDARD.encode(object.to_string()), "source": source});
    Last { reports: 1, uid: String::new(), era: 0, version: None, payload: Some(data.to_string().into()) }
}

/// What a platform holds when everything was reported.
fn reported() -> Vec<(EntityName, Last)> {
    let app = app();
    let entity = |resource| EntityName { app_namespace: "argocd".into(), app_name: "web".into(), resource };
    let key = |api: &str, kind: &str, name: &str| ResourceKey {
        api_version: api.into(),
        kind: kind.into(),
        namespace: "web".into(),
        name: name.into(),
    };
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "uid": "u2"}});
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
    vec![
        (
            entity(None),
            report(
                &app,
                &json!({"actualManifest": "{}", "syncStatus": "OutOfSync", "healthStatus": "Degraded"}),
            ),
        ),
        (
            entity(Some(key("v1", "ConfigMap", "settings"))),
            report(&map, &json!({"syncStatus": "Synced", "healthStatus": "Healthy", "revision": "old"})),
        ),
        (
            entity(Some(key("apps/v1", "Deployment", "web"))),
            report(&web, &json!({"syncStatus": "OutOfSync", "healthStatus": "Missing", "revision": "old"})),
        ),
    ]
}

fn wanted() -> Vec<Expected> {
    let (app, managed) = (app(), managed());
    expected_of(&LastState { object: Some(&app), managed: Some(&managed), ..LastState::default() })
}

fn texts(differences: &[Difference]) -> Vec<String> {
    differences.iter().map(ToString::to_string).collect()
}

#[test]
fn what_was_told_in_full_has_no_difference() {
    assert_eq!(wanted().len(), 3);
    assert_eq!(check(&wanted(), &reported()), []);
}

#[test]
fn each_fact_that_was_not_told_is_found() {
    let change = |at: usize, object: &dyn Fn(&mut Value), source: &dyn Fn(&mut Value)| {
        let mut all = reported();
        let mut data: Value = serde_json::from_slice(all[at].1.payload.as_ref().unwrap()).unwrap();
        let mut inner: Value =
            serde_json::from_slice(&STANDARD.decode(data["object"].as_str().unwrap()).unwrap()).unwrap();
        object(&mut inner);
        source(&mut data["source"]);
        all[at].1 = report(&inner, &data["source"]);
        texts(&check(&wanted(), &all))
    };
    let none = |_: &mut Value| {};
    for (found, text) in [
        (
            change(0, &|object| object["status"]["sync"]["revision"] = json!("older"), &none),
            r#"argocd/web: revision is "older", expected "new""#,
        ),
        (
            change(0, &|object| object["status"]["operationState"]["finishedAt"] = json!(null), &none),
            r#"argocd/web: operation end is null, expected "f""#,
        ),
        (
            change(0, &|object| object["metadata"]["deletionTimestamp"] = json!("now"), &none),
            "argocd/web: deleted is true, expected false",
        ),
        (
            change(0, &none, &|source| source["actualManifest"] = json!("")),
            "argocd/web: live manifest is false, expected true",
        ),
        (
            change(0, &none, &|source| source["healthStatus"] = json!("Healthy")),
            r#"argocd/web: source health is "Healthy", expected "Degraded""#,
        ),
        (
            change(1, &none, &|source| source["healthStatus"] = json!(null)),
            r#"argocd/web ConfigMap web/settings: health is null, expected "Healthy""#,
        ),
        (
            change(1, &|object| object["metadata"]["uid"] = json!(null), &none),
            "argocd/web ConfigMap web/settings: live manifest is false, expected true",
        ),
        (
            change(2, &none, &|source| source["syncStatus"] = json!("Synced")),
            r#"argocd/web Deployment web/web: sync status is "Synced", expected "OutOfSync""#,
        ),
        (
            change(2, &none, &|source| source["revision"] = json!("older")),
            r#"argocd/web Deployment web/web: revision is "older", expected "old""#,
        ),
        (
            change(2, &|object| object["metadata"]["uid"] = json!("ghost"), &none),
            "argocd/web Deployment web/web: live manifest is true, expected false",
        ),
    ] {
        assert_eq!(found, [text]);
    }
    let mut entries = app();
    entries["status"]["resources"][0]["status"] = json!("OutOfSync");
    let stale = check(&wanted(), &[(reported()[0].0.clone(), report(&entries, &json!({})))]);
    assert!(stale.iter().any(|difference| difference.fact == "resources"), "{stale:?}");
}

#[test]
fn what_was_never_told_is_found() {
    let mut all = reported();
    all.remove(2);
    all[1].1.payload = None;
    assert_eq!(
        texts(&check(&wanted(), &all)),
        [
            "argocd/web ConfigMap web/settings: payload is null, expected \"a report\"",
            "argocd/web Deployment web/web: report is null, expected \"one\"",
        ]
    );
}

#[test]
fn a_deletion_must_be_told() {
    let app = app();
    let wanted = expected_of(&LastState { object: Some(&app), deleted: true, ..LastState::default() });
    assert_eq!(wanted.len(), 1);
    assert_eq!(
        texts(&check(&wanted, &reported())),
        ["argocd/web: deleted is false, expected true", "argocd/web: live manifest is true, expected false"]
    );
    let mut gone = app;
    gone["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let told = [(reported()[0].0.clone(), report(&gone, &json!({"actualManifest": ""})))];
    assert_eq!(check(&wanted, &told), []);
}

#[test]
fn health_is_the_trees_where_the_application_says_so() {
    let mut app = app();
    app["status"]["resourceHealthSource"] = json!("appTree");
    app["status"]["resources"] = json!([
        {"version": "v1", "kind": "ConfigMap", "namespace": "web", "name": "a", "status": "Synced"},
        {"version": "v1", "kind": "ConfigMap", "namespace": "web", "name": "b", "status": "OutOfSync"},
        {"version": "v1", "kind": "Service", "namespace": "web", "name": "c", "status": "Synced"},
        {"version": "v1", "kind": "Service", "namespace": "web", "name": "d", "status": "Synced"},
    ]);
    let node = |kind: &str, name: &str| json!({"kind": kind, "namespace": "web", "name": name});
    let mut degraded = node("Service", "c");
    degraded["health"] = json!({"status": "Degraded"});
    let tree = json!({"nodes": [node("ConfigMap", "a"), node("ConfigMap", "b"), degraded]});
    let all = expected_of(&LastState { object: Some(&app), tree: Some(&tree), ..LastState::default() });
    let healths: Vec<&Value> = all[1..].iter().map(|expected| &expected.facts["health"]).collect();
    assert_eq!(healths, [&json!("Healthy"), &json!(null), &json!("Degraded"), &json!("Unknown")]);
    // Without the managed resources nothing is known of live manifests.
    assert!(all[1..].iter().all(|expected| !expected.facts.contains_key("live manifest")));
}

#[test]
fn an_older_state_after_a_newer_one_is_found() {
    let kept = |uid: &str, version: &str| {
        let object = json!({"metadata": {"uid": uid, "resourceVersion": version}});
        KeptReport {
            key: None,
            entity: reported()[0].0.clone(),
            payload: report(&object, &json!({})).payload.unwrap(),
        }
    };
    // The same state twice is no disorder, nor is a new life.
    assert_eq!(order(&[kept("a", "9"), kept("a", "9"), kept("a", "12"), kept("b", "3")]), []);
    let found = order(&[kept("a", "9"), kept("a", "12"), kept("b", "3"), kept("a", "10"), kept("a", "11")]);
    assert_eq!(
        texts(&found),
        ["argocd/web: order is 10, expected 12", "argocd/web: order is 11, expected 12"]
    );
}

#[test]
fn every_application_and_resource_of_the_recordings_is_expected() {
    for set in ["incumbent-2.12", "argocd-3.2"] {
        let cases = packed(set).unwrap();
        let all: Vec<Expected> = cases.iter().flat_map(|case| expected(case).unwrap()).collect();
        let applications = all.iter().filter(|expected| expected.entity.resource.is_none()).count();
        assert_eq!(applications, 13, "{set}");
        let deleted = all.iter().filter(|expected| expected.facts.get("deleted") == Some(&json!(true)));
        assert_eq!(deleted.count(), 5, "{set}");
        assert!(all.len() > 80, "{set}: {}", all.len());
    }
}

/// The oracle and the recorded reporter agree, but for what that one is known to tell wrong: an application that
/// was deleted without a finalizer is reported as living.
#[test]
fn the_recorded_reporter_told_what_the_oracle_expects() {
    let mut found = Vec::new();
    for case in packed("incumbent-2.12").unwrap() {
        let mut last: HashMap<EntityName, Last> = HashMap::new();
        for line in &case.reports {
            let payload = line.data.to_string();
            let (data, object) =
                (&line.data, STANDARD.decode(line.data["object"].as_str().unwrap()).unwrap());
            let object: Value = serde_json::from_slice(&object).unwrap();
            let part = |pointer: &str| text(object.pointer(pointer));
            let resource = (part("/kind") != "Application").then(|| ResourceKey {
                api_version: part("/apiVersion"),
                kind: part("/kind"),
                namespace: part("/metadata/namespace"),
                name: part("/metadata/name"),
            });
            let app_name = match resource {
                Some(_) => text(data.pointer("/source/appName")),
                None => part("/metadata/name"),
            };
            let entity = EntityName { app_namespace: "argocd".into(), app_name, resource };
            let payload = Some(payload.into());
            last.insert(entity, Last { reports: 1, uid: String::new(), era: 0, version: None, payload });
        }
        let last: Vec<_> = last.into_iter().collect();
        found.extend(texts(&check(&expected(&case).unwrap(), &last)));
    }
    assert_eq!(
        found,
        [
            "argocd/brief: deleted is false, expected true",
            "argocd/brief: live manifest is true, expected false"
        ]
    );
}
