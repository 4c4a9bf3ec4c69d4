//! What a sync brought is told by another role than the sync, and later: a page that is open shows it as it comes.

use fantoccini::key::Key;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::platform::Platform;

/// The application `shop` was synced.
async fn deployed(platform: &Platform, token: &str, began: Timestamp) {
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
    platform.post(token, &report).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commits_of_a_deployment_appear_in_an_open_timeline_when_they_are_reported() {
    let platform = Platform::new().await;
    let token = platform.token().await;
    let began = Timestamp::now() - SignedDuration::from_secs(20);
    deployed(&platform, &token, began).await;

    let browser = platform.browser().await;
    let page = format!("{}/applications/prod/argocd/shop?tab=timeline", platform.url);
    browser.goto(&page).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_commit_changed_in_files_is_found_by_the_keyboard_and_comes_into_an_open_page() {
    let platform = Platform::new().await;
    let token = platform.token().await;
    let began = Timestamp::now() - SignedDuration::from_secs(20);
    deployed(&platform, &token, began).await;
    let (newer, older) = ("b".repeat(40), "a".repeat(40));
    let changes = |diffs: Value| {
        let commit = |revision: &str, message: &str, diffs: Value| {
            json!({
                "revision": revision, "author": "Ada <ada@example.com>", "message": message, "date": began.to_string(),
                "paths": ["shop/values.yaml", "shop/more.yaml"], "diffs": diffs,
            })
        };
        let one = json!([{"path": "shop/values.yaml", "text": "@@ -7,2 +7,2 @@\n replicas: 2\n-memory: 256Mi\n+memory: 512Mi\n"}]);
        let commits = [commit(&newer, "Raise the limit", one), commit(&older, "Add a probe", diffs)];
        json!({"data": {
            "namespace": "argocd", "name": "shop", "startedAt": began.to_string(),
            "sources": [{"repoURL": "https://git.example.com/mono.git", "revision": "3f9c1e2aaa", "changes": commits}],
        }})
    };
    platform.post_to("/2.0/api/events/changes", &token, &changes(json!([]))).await;
    let browser = platform.browser().await;
    let page = format!("{}/applications/prod/argocd/shop?q=shop&tab=timeline", platform.url);
    browser.client.goto(&page).await.unwrap();
    browser.until("document.querySelector('[data-live]')?.dataset.state === 'live'").await;

    browser.tab_to(".commits .what").await;
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser.until("document.querySelector('h1')?.textContent === 'Raise the limit'").await;
    let lines = "[...document.querySelectorAll('.diff tr')].map((row) => [row.className, ...[...row.cells].map((cell) => cell.textContent)].join('|')).join('\\n')";
    let shown = browser.client.execute(&format!("return {lines}"), vec![]).await.unwrap();
    assert_eq!(shown, "same|7| |replicas: 2\ngone|8|-removed|memory: 256Mi\nnew|8|+added|memory: 512Mi");
    browser.until("document.querySelector('section[aria-label=\"Further files\"]')?.textContent.includes('shop/more.yaml')").await;
    // The commit before it, of whose files nothing is told yet.
    browser.keys("]").await;
    browser.until("document.querySelector('h1')?.textContent === 'Add a probe'").await;
    browser.until("document.querySelector('.empty')?.textContent.includes('changeRevision.diffs')").await;
    browser.until("window.stays = true").await;
    let told = json!([{"path": "shop/values.yaml", "untold": "unreadable"}]);
    platform.post_to("/2.0/api/events/changes", &token, &changes(told)).await;
    browser
        .until("document.querySelector('.file')?.textContent.includes('nothing of it left its cluster')")
        .await;
    browser.until("window.stays").await;
    browser.keys("[").await;
    browser.until("document.querySelector('h1')?.textContent === 'Raise the limit'").await;
    browser.keys(&char::from(Key::Escape).to_string()).await;
    browser.until("location.pathname === '/applications/prod/argocd/shop' && location.search === '?q=shop&tab=timeline'").await;
    browser.until("document.querySelector('.brought')").await;
    browser.close().await;
}
