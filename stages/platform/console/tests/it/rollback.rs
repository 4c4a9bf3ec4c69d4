//! What a deployment is chosen by that somebody goes back to: in an incident nobody knows revisions by heart.

use fantoccini::key::Key;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::platform::Platform;
use crate::runtime::COMMITS;

/// Never answers what the platform knows of deployments.
const HANGS: &str = r#"
    const { fetch: ask } = window;
    window.fetch = (url, more) => {
        if (!String(url).includes("/deployments?")) return ask(url, more);
        return new Promise((_, fails) => more.signal.addEventListener("abort", () => fails(more.signal.reason)));
    };
"#;

/// The application `shop` once it was deployed so, as its reporter tells it.
fn deployed(
    version: u32,
    result: &Value,
    (message, tag): (&str, &str),
    (began, phase): (&str, &str),
) -> Value {
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
            "sync": {"status": "Synced"}, "health": {"status": "Healthy"},
            "summary": {"images": [format!("registry.example.com/team/shop:{tag}"), "envoy:1.31.2"]},
            "operationState": {
                "phase": phase, "startedAt": began.to_string(), "finishedAt": began.to_string(), "syncResult": result,
            },
        },
    });
    let source = json!({
        "appName": "shop", "appNamespace": "argocd", "syncStatus": "Synced", "healthStatus": "Healthy",
        "actualManifest": object.to_string(),
    });
    json!({"data": {"timestamp": Timestamp::now().to_string(), "object": object, "source": source}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_to_go_back_to_is_told_by_its_commit_its_images_and_when_and_by_whom_it_was_done() {
    let platform = Platform::new().await;
    let token = platform.token().await;
    let [last, before] = COMMITS.map(|commit| json!({"revision": commit}));
    for (version, result, what, began) in [
        // Of two sources, the second of which tells no revision.
        (2, &json!({"revisions": ["10.20.31", ""]}), ("first <b>chart", "2.13.0"), "2026-11-24T09:56:00Z"),
        (3, &before, ("bump <b>shop", "2.14.0"), "2026-11-24T09:57:00Z"),
        // The same once more, which is not the one that the runtime remembers.
        (4, &before, ("bump <b>shop", "2.14.1"), "2026-11-24T09:58:00Z"),
        (5, &last, ("enable retries", "2.15.0"), "2026-11-24T09:59:00Z"),
    ] {
        platform.post(&token, &deployed(version, result, what, (began, "Succeeded"))).await;
    }
    let browser = platform.browser().await;
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
        for (index, parts, absents) in [
            (
                0,
                &[
                    "3f9c1e2",
                    "ada",
                    "deployed last",
                    "enable retries",
                    "Ada Byron",
                    "shop:2.15.0",
                    "envoy:1.31.2",
                ][..],
                ["2.14", "3f9c1e2a"],
            ),
            (
                1,
                &["a0d17be", "ada", "bump <b>shop", "Ada Byron", "shop:2.14.0"],
                ["deployed last", "a0d17bea"],
            ),
            (2, &["10.20.31", "ada", "first <b>chart", "shop:2.13.0"], ["deployed last", "10.20.31,"]),
        ] {
            let choice = choices[index].as_str().unwrap();
            for part in parts {
                assert!(choice.contains(part), "{part}: {choice}");
            }
            for absent in absents.into_iter().chain(["more of it"]) {
                assert!(!choice.contains(absent), "{absent}: {choice}");
            }
        }
        // When, as the console tells every time: by the minute, in the zone of whoever looks.
        browser.until("[...document.querySelectorAll('#act time')].every((one) => one.title && /\\d\\d:\\d\\d$/.test(one.textContent))").await;
    }
    assert!(found.is_empty(), "{found:#?}");
    // By the keyboard: the one before is chosen, what was deployed last and is there cannot be.
    browser.until("document.querySelector('#act [name=id]').disabled").await;
    platform.came();
    browser.tab_to("#act [name=id]:checked").await;
    browser.keys(&char::from(Key::Down).to_string()).await;
    browser.tab_to("#act .primary").await;
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser.until("document.querySelector('#act [role=alert]').textContent").await;
    assert_eq!(platform.came()[0].1["variables"]["options"], json!({"id": 6}));

    // What failed half-way is there now: what was deployed last is the one to go back to.
    let failed = deployed(6, &before, ("bump <b>shop", "2.16.0"), ("2026-11-24T10:30:00Z", "Failed"));
    platform.post(&token, &failed).await;
    let shop = format!("{}/applications/prod/argocd/shop", platform.url);
    browser.goto(&shop).await;
    browser.press("[data-act=rollback]").await;
    browser.until("document.querySelector('#act [name=id]:checked')?.value === '8'").await;
    browser.until("!document.querySelector('#act [name=id]:disabled')").await;
    let first = browser.find("#act .choice").await.text().await.unwrap();
    assert!(first.contains("deployed last") && first.contains("shop:2.15.0"), "{first}");

    // What the platform knows is not needed, and not waited for.
    browser.run_first(HANGS).await;
    browser.goto(&shop).await;
    browser.press("[data-act=rollback]").await;
    browser.until("document.querySelectorAll('#act [name=id]').length === 3").await;
    browser.until("document.querySelector('#act [name=id]:disabled')?.value === '8' && !document.querySelector('#act').textContent.includes('Ada Byron')").await;
    browser.close().await;
}
