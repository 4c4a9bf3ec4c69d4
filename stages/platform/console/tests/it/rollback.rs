//! What a deployment is chosen by that somebody goes back to: in an incident nobody knows revisions by heart.

use fantoccini::key::Key;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::platform::Platform;

/// The application `shop` once it was deployed so, as its reporter tells it.
fn deployed(version: u32, revision: &str, (message, tag): (&str, &str), began: &str) -> Value {
    let began: Timestamp = began.parse().unwrap();
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": "shop", "namespace": "argocd", "uid": "uid-Application", "resourceVersion": version.to_string(),
            "labels": {
                "app.meta.commit-message": format!("{message}\n\nmore of it"),
                "app.meta.commit-author": "Ada Byron <ada@example.com>",
            },
        },
        "status": {
            "sync": {"status": "Synced", "revision": revision}, "health": {"status": "Healthy"},
            "summary": {"images": [format!("registry.example.com/team/shop:{tag}"), "envoy:1.31.2"]},
            "operationState": {
                "phase": "Succeeded", "startedAt": began.to_string(), "finishedAt": began.to_string(),
                "syncResult": {"revision": revision},
            },
        },
    });
    let source = json!({
        "appName": "shop", "appNamespace": "argocd", "syncStatus": "Synced", "healthStatus": "Healthy", "revision": revision,
        "actualManifest": object.to_string(),
    });
    json!({"data": {"timestamp": Timestamp::now().to_string(), "object": object, "source": source}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_to_go_back_to_is_told_by_its_commit_its_images_and_when_and_by_whom_it_was_done() {
    let platform = Platform::new().await;
    let token = platform.token().await;
    for (version, revision, what, began) in [
        (2, "a0d17beaaa", ("bump <b>shop", "2.14.0"), "2026-11-20T09:00:00Z"),
        // The same was deployed once more after that one.
        (3, "a0d17beaaa", ("bump <b>shop", "2.14.1"), "2026-11-24T09:58:00Z"),
        (4, "3f9c1e2aaa", ("enable retries", "2.15.0"), "2026-11-24T09:59:00Z"),
        (5, "a0d17beaaa", ("bump <b>shop", "2.16.0"), "2026-11-24T10:30:00Z"),
    ] {
        platform.post(&token, &deployed(version, revision, what, began)).await;
    }
    let browser = Browser::open(1_440, 900).await;
    platform.sign_in(&browser).await;
    let mut found = Vec::new();
    for (width, height, dark) in [(1_440, 900, false), (390, 844, true)] {
        browser.client.goto(&format!("{}/applications/prod/argocd/shop", platform.url)).await.unwrap();
        browser.view(width, height, dark).await;
        browser.until("document.documentElement.dataset.ready").await;
        browser.press("[data-act=rollback]").await;
        browser.until("document.querySelectorAll('#act [name=id]').length === 3").await;
        browser.shot(&format!("rollback-{width}")).await;
        browser.what_keeps_out("a rollback", &mut found).await;
        browser.until("document.documentElement.scrollWidth <= innerWidth").await;
        let choices = "return [...document.querySelectorAll('#act .choice')].map((one) => one.textContent.replace(/\\s+/g, ' ').trim())";
        let choices = browser.client.execute(choices, vec![]).await.unwrap();
        for (index, parts, absent) in [
            (
                0,
                &[
                    "3f9c1e2",
                    "ada",
                    "there now",
                    "enable retries",
                    "Ada Byron",
                    "shop:2.15.0",
                    "envoy:1.31.2",
                ][..],
                "2.14",
            ),
            (1, &["a0d17be", "ada", "bump <b>shop", "Ada Byron", "shop:2.14.1"], "there now"),
            // Of this one the platform was told nothing.
            (2, &["77e2c04", "ada"], "shop"),
        ] {
            let choice = choices[index].as_str().unwrap();
            for part in parts {
                assert!(choice.contains(part), "{part}: {choice}");
            }
            assert!(!choice.contains(absent) && !choice.contains("more of it"), "{choice}");
        }
        // When, as the console tells every time: by the minute, in the zone of whoever looks.
        browser.until("[...document.querySelectorAll('#act time')].every((one) => one.title && /\\d\\d:\\d\\d$/.test(one.textContent))").await;
    }
    assert!(found.is_empty(), "{found:#?}");
    // By the keyboard: the one before is chosen, what is there now cannot be.
    browser.until("document.querySelector('#act [name=id]').disabled").await;
    platform.came();
    browser.tab_to("#act [name=id]:checked").await;
    browser.keys(&char::from(Key::Down).to_string()).await;
    browser.tab_to("#act .primary").await;
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser.until("document.querySelector('#act [role=alert]').textContent").await;
    assert_eq!(platform.came()[0].1["variables"]["options"], json!({"id": 6}));
    browser.close().await;
}
