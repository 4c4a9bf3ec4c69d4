//! What runs beside what Git says: what is not there yet, and what a cluster fills in by itself, are no differences.

use jiff::Timestamp;
use serde_json::{Value, json};
use stages_platform_store::Role;

use crate::platform::Platform;

/// The Deployment `web`, as its reporter tells it: one that is nowhere is told by what it should be, in its namespace.
fn reported(desired: &Value, live: Option<&Value>, (status, health): (&str, &str)) -> Value {
    let mut object = live.unwrap_or(desired).clone();
    object["metadata"]["namespace"] = "shop".into();
    let source = json!({
        "appName": "shop", "appNamespace": "argocd", "syncStatus": status, "healthStatus": health,
        "desiredManifest": desired.to_string(), "actualManifest": live.map(Value::to_string).unwrap_or_default(),
    });
    json!({"data": {"timestamp": Timestamp::now().to_string(), "object": object, "source": source}})
}

fn desired() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}},
    })
}

fn live(version: u32, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-live", "resourceVersion": version.to_string()},
        "spec": {"replicas": replicas, "revisionHistoryLimit": 10, "template": {"spec": {
            "containers": [{"name": "web", "image": "web:1", "imagePullPolicy": "IfNotPresent"}], "dnsPolicy": "ClusterFirst",
        }}},
        "status": {"readyReplicas": 2},
    })
}

const PAGE: &str = "/applications/prod/argocd/shop?tab=resources&r=apps%2FDeployment%2Fshop%2Fweb";

#[tokio::test]
async fn what_git_has_and_no_cluster_is_told_as_what_would_be_made() {
    let platform = Platform::new().await;
    let (ada, token) = (platform.session("ada", Role::Admin).await, platform.token().await);
    platform.post(&token, &reported(&desired(), None, ("OutOfSync", "Missing"))).await;
    let page = platform.page(&ada, PAGE).await;
    for part in
        ["It is not on the cluster: a sync would make this.", "<pre class=\"manifest\">", "replicas: 2"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    for part in [
        "live (+) against desired",
        "<table class=\"diff\"",
        "What runs is what Git says",
        "restart-workload",
    ] {
        assert!(!page.contains(part), "{part}: {page}");
    }
    // Of one that nobody says is missing it is not known.
    platform.post(&token, &reported(&desired(), None, ("OutOfSync", "Unknown"))).await;
    let page = platform.page(&ada, PAGE).await;
    assert!(page.contains("What runs of it was not reported") && !page.contains("on the cluster"), "{page}");
    assert!(page.contains("restart-workload"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_that_git_does_not_name_are_folded_and_no_change() {
    let platform = Platform::new().await;
    let (ada, token) = (platform.session("ada", Role::Admin).await, platform.token().await);
    platform.post(&token, &reported(&desired(), Some(&live(2, 2)), ("Synced", "Healthy"))).await;
    let page = platform.page(&ada, PAGE).await;
    assert!(
        page.contains("What runs is what Git says.") && !page.contains("<table class=\"diff\""),
        "{page}"
    );
    assert!(page.contains("6 fields that Git does not name"), "{page}");
    let (_, folded) = page.split_once("<details").unwrap();
    assert!(
        folded.contains("imagePullPolicy: IfNotPresent") && folded.contains("readyReplicas: 2"),
        "{page}"
    );

    // Of what Argo CD calls out of sync it is not said that nothing is to change.
    platform.post(&token, &reported(&desired(), Some(&live(3, 2)), ("OutOfSync", "Healthy"))).await;
    let page = platform.page(&ada, PAGE).await;
    assert!(page.contains("Nothing that Git names differs. What it does not name stands below."), "{page}");
    assert!(!page.contains("No change") && !page.contains("What runs is what Git says"), "{page}");

    // What Git names and is another is a change, and stands alone.
    platform.post(&token, &reported(&desired(), Some(&live(4, 3)), ("OutOfSync", "Healthy"))).await;
    let browser = platform.browser().await;
    let mut found = Vec::new();
    for (width, height, dark) in [(1_440, 900, true), (390, 844, false)] {
        browser.client.goto(&format!("{}{PAGE}", platform.url)).await.unwrap();
        browser.view(width, height, dark).await;
        browser.until("document.documentElement.dataset.ready").await;
        let changed = "[...document.querySelectorAll('.diff :is(.gone, .new)')].map((one) => one.lastElementChild.textContent.trim()).join()";
        browser.until(&format!("{changed} === 'replicas: 2,replicas: 3'")).await;
        browser.until("!document.querySelector('details[data-fold] pre').checkVisibility()").await;
        browser.shot(&format!("manifests-{width}")).await;
        browser.press("details[data-fold] summary").await;
        browser.until("document.querySelector('details[data-fold] pre').checkVisibility()").await;
        browser.shot(&format!("manifests-{width}-open")).await;
        browser.what_keeps_out("a live manifest", &mut found).await;
        browser.until("document.documentElement.scrollWidth <= innerWidth").await;
    }
    assert!(found.is_empty(), "{found:#?}");
    browser.close().await;
}
