//! A runtime that somebody adds, in a browser: the page waits until it is heard of, and then says what is left.

use fantoccini::key::Key;
use jiff::Timestamp;
use pipeline_core::ExposeSecret as _;
use serde_json::json;

use crate::platform::{Platform, by};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_adds_a_runtime_sees_it_come_and_what_is_left_beside_the_token_that_is_shown_once() {
    let platform = Platform::new().await;
    let browser = platform.browser().await;
    browser.client.goto(&format!("{}/runtimes/add", platform.url)).await.unwrap();
    browser.type_into("#name", &format!("eu1{}", char::from(Key::Enter))).await;
    browser.until("document.querySelector('h1')?.textContent === 'Install eu1'").await;
    browser.until("document.querySelector('#progress [role=status]').textContent.includes('Waiting')").await;
    browser.shot("added-waits").await;
    let now = Timestamp::now();
    let token = platform.store.add_token(&by(), "eu1", now.as_millisecond()).await.unwrap().unwrap();
    let token = token.expose_secret().to_owned();

    // Its digest is all that comes of a runtime that has no application.
    let digest = json!({"ledger": "l", "shard": 0, "shards": 1, "applications": 0, "entities": 0, "digest": "0".repeat(32)});
    let url = format!("{}/2.0/api/events/digest", platform.url);
    let asked = platform.client.post(url).header("authorization", &token);
    let asked = asked.header("user-agent", "gitops-runtime/1.2.3").body(digest.to_string());
    assert_eq!(asked.send().await.unwrap().status(), 200);
    let status = "document.querySelector('#progress [role=status]')";
    let heard = "eu1 is heard of, version 1.2.3. It has reported no application yet.";
    browser
        .until(&format!("{status}.textContent.includes('{heard}') && {status}.querySelector('.ok')"))
        .await;
    browser.shot("added-heard").await;

    // What a role tells is not left any more.
    let changes = json!({"data": {"namespace": "argocd", "name": "mail", "sources": []}});
    platform.post_to("/2.0/api/events/changes", &token, &changes).await;
    browser
        .until("document.querySelector('#progress').textContent.includes('Done: change-revision runs.')")
        .await;
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "mail", "namespace": "argocd", "uid": "u", "resourceVersion": "1"},
    });
    platform.post(&token, &json!({"data": {"timestamp": now.to_string(), "object": object}})).await;
    browser.until(&format!("{status}.textContent.includes('It reports 1 application: look at them.')")).await;
    assert_eq!(browser.find("h1").await.text().await.unwrap(), "Install eu1", "what is shown once stays");
    let token_is_there = "document.body.textContent.includes('--from-literal=token=gort_')";
    browser.until(token_is_there).await;
    browser.shot("added-reports").await;
    // The way back to it stands beside the runtime for as long as nobody can act on its cluster.
    browser.goto(&format!("{}/runtimes", platform.url)).await;
    browser.until("document.querySelector('[data-row] a[href=\"/runtimes/add/eu1\"]')").await;
    browser.client.goto(&format!("{}/runtimes/add/eu1", platform.url)).await.unwrap();
    browser.view(390, 844, true).await;
    browser.until("document.documentElement.scrollWidth <= innerWidth").await;
    browser.shot("added-390").await;
    browser.close().await;
}
