//! What clients of other generations and applications of other makes send, and what there is afterwards.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use stages_platform_store::View;

use crate::support::{Platform, config, start, taken};

fn application(name: &str, spec: &Value, sync: &Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": name, "resourceVersion": "7"},
        "spec": spec,
        "status": {"sync": sync},
    })
}

fn reported(object: &Value, source: &Value) -> Value {
    let object = STANDARD.encode(object.to_string());
    json!({"data": {"timestamp": "2026-11-21T12:00:01.000Z", "object": object, "source": source}})
}

async fn revision(platform: &Platform, name: &str) -> Value {
    let page = platform.get("/api/v1/applications").await.body;
    let all = page["applications"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap()["revision"].clone()
}

/// Beside a child stands what it is in the parent: the revision there is that of the parent's repository.
#[tokio::test]
async fn an_application_of_another_is_at_its_own_revision() {
    let platform = start(config()).await;
    let parents = json!({"appName": "parent", "appNamespace": "argocd", "revision": "of-the-parent", "syncStatus": "Synced"});
    let own = json!({"appName": "", "revision": "beside", "syncStatus": "Synced"});
    for (name, sync, source, expected) in [
        ("child", json!({"status": "Synced", "revision": "its-own"}), &parents, json!("its-own")),
        ("several", json!({"revision": "", "revisions": ["a", "b"]}), &parents, json!("a,b")),
        ("new", json!({"status": "Unknown"}), &parents, Value::Null),
        ("root", json!({"status": "Synced"}), &own, json!("beside")),
    ] {
        let body = reported(&application(name, &json!({}), &sync), source);
        assert_eq!(platform.report(&body).await, taken());
        assert_eq!(revision(&platform, name).await, expected, "{name}");
        let timeline = platform.timeline(("argocd", name)).await;
        assert_eq!(json!(timeline[0].revision), expected, "{name}");
    }
}

/// The endpoints of their own say of several sources which revision each is at.
#[tokio::test]
async fn a_resource_of_several_sources_is_at_the_revisions_of_all() {
    let platform = start(config()).await;
    let live =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}});
    let authorization = platform.token.clone();
    for (revisions, expected) in
        [(json!(["a", "b"]), Some("a,b")), (json!([]), None), (json!(null), None), (json!(["c"]), Some("c"))]
    {
        let source = json!({"appName": "shop", "appNamespace": "argocd", "targetRevision": "main", "revisions": revisions,
            "syncStatus": "Synced", "appMultiSourced": true, "appSourceIdx": 0});
        let body = json!({"timestamp": "2026-11-21T12:00:01.000Z", "actualManifest": live.to_string(), "desiredManifest": "",
            "source": source});
        let headers = [("authorization", &*authorization)];
        assert_eq!(platform.post("/2.0/api/resources", &headers, body.to_string()).await, taken());
        let timeline = platform.timeline(("argocd", "shop")).await;
        let current = timeline.iter().find(|one| one.current).unwrap();
        assert_eq!(current.revision.as_deref(), expected, "{revisions}");
    }
}

/// The endpoints of their own say how a resource is as Argo CD does, in an object.
#[tokio::test]
async fn the_health_of_a_resource_is_read_in_either_form() {
    let platform = start(config()).await;
    let live =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}});
    let headers = [("authorization", &*platform.token)];
    for (health, message, expected) in [
        (json!("Degraded"), json!("it hurts"), (Some("Degraded"), Some("it hurts"))),
        (json!({"status": "Healthy"}), json!(null), (Some("Healthy"), None)),
        (
            json!({"status": "Progressing", "message": "soon"}),
            json!(null),
            (Some("Progressing"), Some("soon")),
        ),
        (json!({"status": 7}), json!(null), (None, None)),
        (json!([]), json!(null), (None, None)),
        (json!(null), json!(null), (None, None)),
    ] {
        let source = json!({"appName": "shop", "appNamespace": "argocd", "syncStatus": "Synced",
            "healthStatus": health, "healthMessage": message});
        let body = json!({"timestamp": "2026-11-21T12:00:01.000Z", "actualManifest": live.to_string(), "source": source});
        assert_eq!(platform.post("/2.0/api/resources", &headers, body.to_string()).await, taken());
        let timeline = platform.timeline(("argocd", "shop")).await;
        let current = timeline.iter().find(|one| one.current).unwrap();
        assert_eq!((current.health.as_deref(), current.health_message.as_deref()), expected, "{health}");
    }
}

/// As Argo CD reads them: several sources go before one, and what is hydrated comes from its dry source, whatever else stands there.
#[tokio::test]
async fn an_application_comes_from_where_argo_cd_takes_it() {
    let platform = start(config()).await;
    let (old, git) = (json!({"repoURL": "old", "path": "old"}), json!({"repoURL": "git", "path": "base"}));
    let chart = json!({"repoURL": "https://charts.example.org", "chart": "web", "targetRevision": "1.2.3"});
    let dry = json!({"drySource": git, "syncSource": {"targetBranch": "env/prod", "path": "out"}});
    for (name, spec, expected) in [
        ("both", json!({"source": old, "sources": [chart, git]}), ("https://charts.example.org", "web")),
        ("none-of-several", json!({"source": old, "sources": []}), ("old", "old")),
        ("hydrated", json!({"sourceHydrator": dry}), ("git", "base")),
        ("hydrated-before", json!({"source": old, "sourceHydrator": dry}), ("git", "base")),
        ("hydrated-beside", json!({"sources": [chart, old], "sourceHydrator": dry}), ("git", "base")),
        (
            "odd",
            json!({"source": git, "sources": "odd", "sourceHydrator": {"drySource": 7}}),
            ("git", "base"),
        ),
    ] {
        let object = application(name, &spec, &json!({"status": "Synced", "revision": "a"}));
        assert_eq!(platform.report(&reported(&object, &json!({"appName": ""}))).await, taken());
        let one = platform.store.visible_one(&View::ALL, ("prod", "argocd", name)).await.unwrap().unwrap();
        assert_eq!((&*one.source.0, &*one.source.1), expected, "{name}");
    }
}
