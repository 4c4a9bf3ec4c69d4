//! Acts on Workflows, in a browser: what is said before, what is asked of the runtime, what makes no sense, and who may.

use fantoccini::key::Key;
use jiff::Timestamp;
use serde_json::{Value, json};
use stages_platform_store::{Action, Attribute, AttributeName, Entity};

use crate::acts::listen;
use crate::platform::Platform;
use crate::runtime::NEEDS_SERVER;

const PAGE: &str =
    "/applications/prod/argocd/shop?tab=resources&r=argoproj.io%2FWorkflow%2Fbatch%2Fnightly-x1";

/// The Workflow `batch/nightly-x1` of the application `shop`.
fn report(version: u32, spec: &Value, status: &Value) -> Value {
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "nightly-x1", "namespace": "batch", "uid": "uid-Workflow", "resourceVersion": version.to_string()},
        "spec": spec, "status": status,
    });
    let source = json!({
        "appName": "shop", "appNamespace": "argocd", "syncStatus": "Synced", "healthStatus": "Progressing",
        "actualManifest": object.to_string(),
    });
    json!({"data": {"timestamp": Timestamp::now().to_string(), "object": object, "source": source}})
}

fn why(act: &str) -> String {
    format!("document.querySelector('[data-act={act}-workflow]').dataset.why")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_is_suspended_resumed_ended_and_begun_again_and_says_what_makes_no_sense() {
    let platform = Platform::new().await;
    let token = platform.token().await;
    let waits = json!({"phase": "Running", "nodes": {"a": {"type": "Suspend", "phase": "Running"}}});
    platform.post(&token, &report(1, &json!({}), &waits)).await;
    let browser = platform.browser().await;
    browser.goto(&format!("{}{PAGE}", platform.url)).await;
    listen(&browser).await;
    let (enter, escape) = (char::from(Key::Enter).to_string(), char::from(Key::Escape).to_string());
    for (act, field, says) in [
        (
            "suspend",
            "suspendWorkflow",
            "Workflow nightly-x1 begins no further step. What runs goes on to its end.",
        ),
        (
            "resume",
            "resumeWorkflow",
            "Workflow nightly-x1 goes on, and so do its steps that wait for somebody.",
        ),
        ("stop", "stopWorkflow", "Workflow nightly-x1 ends. Its exit handlers still run."),
        ("terminate", "terminateWorkflow", "Workflow nightly-x1 ends at once, without its exit handlers."),
    ] {
        browser.tab_to(&format!("[data-act={act}-workflow]")).await;
        browser.keys(&enter).await;
        browser.until(&format!("document.querySelector('#act .body p')?.textContent === '{says}'")).await;
        browser.shot(&format!("act-workflow-{act}")).await;
        browser.keys(&enter).await;
        browser
            .until(&format!("!document.querySelector('#act') && window.said.includes('Workflow nightly-x1: {act} was asked for')"))
            .await;
        let came = platform.came();
        assert_eq!((came.len(), &*came[0].0), (1, "admin"), "{came:?}");
        assert!(came[0].1["query"].as_str().unwrap().contains(field), "{came:?}");
        assert_eq!(came[0].1["variables"], json!({"namespace": "batch", "name": "nightly-x1"}));
        let audit = platform.store.audit(i64::MAX, 1).await.unwrap();
        assert_eq!((&*audit[0].who, &*audit[0].subject), ("admin", &*format!("prod: {field}")));
    }

    // Which one was begun is said.
    browser.press("[data-act=resubmit-workflow]").await;
    browser.press("#act .primary").await;
    browser.until("window.said.includes('Workflow nightly-x2 was begun')").await;
    // Its lines, which are text.
    browser.press("[data-act=workflow-logs]").await;
    browser
        .until("document.querySelector('#act pre')?.textContent === 'web-1  one <img src=x>\\nweb-1  two\\n'")
        .await;
    browser.keys(&escape).await;
    browser.until("!document.querySelector('#act')").await;
    let retry = "It did not fail: there is nothing to retry.";
    browser.until(&format!("{} === '{retry}'", why("retry"))).await;
    browser.press("[data-act=retry-workflow]").await;
    browser.until(&format!("window.said.includes('{retry}')")).await;

    // It failed: the buttons follow while somebody looks, and what the runtime says against a retry stays where it was asked for.
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    platform.post(&token, &report(2, &json!({}), &json!({"phase": "Failed"}))).await;
    for act in ["suspend", "resume", "stop", "terminate"] {
        browser.until(&format!("{} === 'It is over.'", why(act))).await;
    }
    browser.until(&format!("{} === undefined && {} === undefined", why("retry"), why("resubmit"))).await;
    platform.came();
    browser.press("[data-act=retry-workflow]").await;
    browser.press("#act .primary").await;
    browser
        .until(&format!("document.querySelector('#act [role=alert]').textContent === '{NEEDS_SERVER}'"))
        .await;
    browser.shot("act-workflow-refused").await;
    browser.close().await;
}

#[tokio::test]
async fn rules_of_workflows_and_of_their_namespace_alone_say_who_may_what_to_a_workflow() {
    let platform = Platform::new().await;
    let token = platform.token().await;
    platform.post(&token, &report(1, &json!({}), &json!({"phase": "Running", "nodes": {}}))).await;
    let namespace =
        |value: &str| vec![Attribute { name: AttributeName::Namespace, key: None, value: value.to_owned() }];
    let rules = vec![
        (Entity::GitopsApplications, vec![Action::View, Action::Terminate, Action::Resubmit], Vec::new()),
        (Entity::Workflows, vec![Action::Stop, Action::AccessLogs], namespace("batch")),
        // Of another namespace.
        (Entity::Workflows, vec![Action::Terminate], namespace("shop")),
    ];
    let session = platform.lin(rules).await;
    let page = platform.page(&session, PAGE).await;
    let button = |word: &str| {
        let (_, from) =
            page.split_once(&format!("data-act=\"{word}\"")).unwrap_or_else(|| panic!("{word}: {page}"));
        from.split('>').next().unwrap().to_owned()
    };
    for act in ["suspend-workflow", "stop-workflow", "workflow-logs"] {
        assert!(!button(act).contains("aria-disabled"), "{}", button(act));
    }
    assert!(
        button("resume-workflow").contains("data-why=\"It is not suspended.\""),
        "{}",
        button("resume-workflow")
    );
    for (act, verb) in [
        ("terminate-workflow", "terminate workflows of this namespace"),
        ("resubmit-workflow", "begin workflows of this namespace again"),
        ("retry-workflow", "retry workflows of this namespace"),
    ] {
        let why = format!("data-why=\"No rule of your teams lets you {verb}: an admin can add one.\"");
        assert!(
            button(act).contains("aria-disabled=\"true\"") && button(act).contains(&why),
            "{}",
            button(act)
        );
    }
}
