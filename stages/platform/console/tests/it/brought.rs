//! What a sync brought is told by another role than the sync, and later: a page that is open shows it as it comes.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::browser::Browser;
use crate::platform::Platform;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commits_of_a_deployment_appear_in_an_open_timeline_when_they_are_reported() {
    let platform = Platform::new().await;
    let token = platform.token().await;
    let began = Timestamp::now() - SignedDuration::from_secs(20);
    let ended = began + SignedDuration::from_secs(5);
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop", "namespace": "argocd", "uid": "uid-Application", "resourceVersion": "2"},
        "spec": {"source": {"repoURL": "https://git.example.com/mono.git", "path": "shop"}},
        "status": {"operationState": {
            "phase": "Succeeded", "startedAt": began.to_string(), "finishedAt": ended.to_string(),
            "operation": {"sync": {"revision": "3f9c1e2aaa"}}, "syncResult": {"revision": "3f9c1e2aaa"},
        }},
    });
    let source = json!({
        "appName": "shop", "appNamespace": "argocd", "syncStatus": "Synced", "healthStatus": "Healthy",
        "actualManifest": object.to_string(), "revision": "3f9c1e2aaa",
    });
    let report = json!({"data": {"timestamp": ended.to_string(), "object": object, "source": source}});
    platform.post(&token, &report).await;

    let browser = Browser::open(1_440, 900).await;
    platform.sign_in(&browser).await;
    let page = format!("{}/applications/prod/argocd/shop?tab=timeline", platform.url);
    browser.client.goto(&page).await.unwrap();
    browser.until("document.documentElement.dataset.ready").await;
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    browser.until("document.querySelector('main').textContent.includes('3f9c1e2')").await;
    browser.until("window.stays = !document.querySelector('.brought')").await;

    let commit = |revision: char, message: &str| {
        json!({
            "revision": revision.to_string().repeat(40), "author": "Ada <ada@example.com>", "message": message,
            "date": began.to_string(), "paths": ["shop/values.yaml"],
        })
    };
    let changes = |commits: Vec<serde_json::Value>| {
        json!({"data": {
            "namespace": "argocd", "name": "shop", "startedAt": began.to_string(),
            "sources": [{"repoURL": "https://git.example.com/mono.git", "revision": "3f9c1e2aaa", "changes": commits}],
        }})
    };
    let first = changes(vec![commit('a', "Raise the limit")]);
    platform.post_to("/2.0/api/events/changes", &token, &first).await;
    browser.until("document.querySelector('.brought')?.textContent.includes('Raise the limit')").await;

    // More is known later, of the same sync.
    let both = changes(vec![commit('b', "Add a probe"), commit('a', "Raise the limit")]);
    platform.post_to("/2.0/api/events/changes", &token, &both).await;
    browser.until("document.querySelector('.brought')?.textContent.includes('Add a probe')").await;
    browser.until("window.stays").await;
    browser.close().await;
}
