//! What is owned by something else of its application: drawn beside it, from the reports of its object on.

use jiff::Timestamp;
use serde_json::{Value, json};
use stages_platform_store::Role;

use crate::platform::Platform;

/// An object that somebody who watches resources reports, of the application `cart`.
fn object((api_version, kind, name): (&str, &str, &str), owner: Option<(&str, &str, &str)>) -> Value {
    let references = owner.map(|(api_version, kind, name)| {
        json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": "o", "controller": true}])
    });
    // Of the second of two, all pods are there.
    let second = name.ends_with('b');
    let revision = json!({"rollout.argoproj.io/revision": if second { "2" } else { "1" }});
    let metadata = json!({
        "name": name, "namespace": "cart", "uid": name, "resourceVersion": "1", "ownerReferences": references, "annotations": revision,
    });
    let phase = if kind == "Workflow" { "Succeeded" } else { "Healthy" };
    json!({"data": {
        "object": {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"replicas": 2},
            "status": {"phase": phase, "readyReplicas": if second { 2 } else { 1 }}},
        "application": {"name": "cart", "namespace": "argocd", "project": "shop", "revision": "abc"},
    }})
}

const ARGO: &str = "argoproj.io/v1alpha1";
const OF_APPS: &str = "apps/v1";
const PAGE: &str = "/applications/prod/argocd/cart?tab=tree";

/// A Rollout with two ReplicaSets, an analysis and pods, a Workflow with a pod, and a pod of something that nobody reports.
async fn reported(platform: &Platform) {
    let token = platform.token().await;
    let rollout = (ARGO, "Rollout", "web");
    for (own, owner) in [
        // What is owned comes first: its owner is looked for when all is shown.
        (("v1", "Pod", "web-b-1"), Some((OF_APPS, "ReplicaSet", "web-b"))),
        (("v1", "Pod", "web-b-2"), Some((OF_APPS, "ReplicaSet", "web-b"))),
        (("v1", "Pod", "build-1"), Some((ARGO, "Workflow", "build"))),
        (("v1", "Pod", "stray"), Some((OF_APPS, "DaemonSet", "agent"))),
        ((OF_APPS, "ReplicaSet", "web-a"), Some(rollout)),
        ((OF_APPS, "ReplicaSet", "web-b"), Some(rollout)),
        ((ARGO, "AnalysisRun", "web-b-2"), Some(rollout)),
        (rollout, None),
        ((ARGO, "Workflow", "build"), None),
    ] {
        platform.post(&token, &object(own, owner)).await;
    }
}

#[tokio::test]
async fn what_an_application_lists_and_nobody_reported_yet_is_so_since_no_time() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    let listed = json!([{"version": "v1", "kind": "ConfigMap", "namespace": "cart", "name": "settings", "status": "OutOfSync",
        "health": {"status": "Missing"}}]);
    let object = json!({"apiVersion": ARGO, "kind": "Application",
        "metadata": {"name": "cart", "namespace": "argocd", "uid": "u", "resourceVersion": "1"},
        "status": {"resources": listed}});
    let body = json!({"data": {"timestamp": Timestamp::now().to_string(), "object": object}});
    platform.post(&platform.token().await, &body).await;
    let page = platform.page(&ada, "/applications/prod/argocd/cart?tab=resources").await;
    assert!(page.contains("ConfigMap/</span>settings") && !page.contains("1970-"), "{page}");
}

#[tokio::test]
async fn pods_stand_below_the_rollout_or_workflow_that_has_them() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    reported(&platform).await;
    let page = platform.page(&ada, PAGE).await;
    // Each with its column: the application stands in the first.
    let mut drawn: Vec<String> = page
        .split("<a class=\"node\"")
        .skip(1)
        .map(|node| {
            let title = node.split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
            let x = node.split("<rect x=\"").nth(1).unwrap().split('"').next().unwrap();
            format!("{} {title}", x.parse::<usize>().unwrap() / 204)
        })
        .collect();
    drawn.sort();
    let expected = [
        "1 Pod stray",
        "1 Rollout web, Healthy",
        "1 Workflow build, Healthy",
        "2 AnalysisRun web-b-2",
        "2 Pod build-1",
        "2 ReplicaSet · new web-b, Healthy: 2 of 2 pods are ready, revision 2",
        "2 ReplicaSet · old web-a, Progressing: 1 of 2 pods are ready, revision 1",
        "3 Pod web-b-1",
        "3 Pod web-b-2",
    ];
    assert_eq!(drawn, expected, "{page}");
    assert_eq!(page.matches("<path class=\"edge\"").count(), expected.len(), "an edge to each");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_with_owners_is_drawn_in_both_themes_and_keeps_nobody_out() {
    let platform = Platform::new().await;
    reported(&platform).await;
    let browser = platform.browser().await;
    let mut found = Vec::new();
    for (width, height, dark) in [(1_440, 900, false), (390, 844, true)] {
        browser.view(width, height, dark).await;
        browser.client.goto(&format!("{}{PAGE}", platform.url)).await.unwrap();
        browser.until("document.querySelectorAll('svg.tree a.node').length === 9").await;
        browser.until("document.documentElement.scrollWidth <= innerWidth").await;
        browser.what_keeps_out("a tree with owners", &mut found).await;
        browser.shot(&format!("tree-owned-{width}")).await;
    }
    assert!(found.is_empty(), "{found:#?}");
    browser.close().await;
}
