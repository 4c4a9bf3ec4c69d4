//! Workflows that are begun of a template, in a browser: what it asks for, what is asked of the runtime, and who may.

use fantoccini::key::Key;
use jiff::Timestamp;
use serde_json::json;
use stages_platform_store::{Action, Attribute, AttributeName, Entity};

use crate::acts::listen;
use crate::platform::Platform;

const PAGE: &str =
    "/applications/prod/argocd/shop?tab=resources&r=argoproj.io%2FWorkflowTemplate%2Fbatch%2Fbuild";

/// The WorkflowTemplate `batch/build` of the application `shop`.
async fn reported(platform: &Platform) {
    let parameters = json!([
        {"name": "branch", "value": "main", "description": "What is built <img src=x>"},
        {"name": "size", "enum": ["s", "m"], "value": "m"},
        {"name": "who"},
        {"name": "secret", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
    ]);
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTemplate",
        "metadata": {"name": "build", "namespace": "batch", "uid": "uid-Template", "resourceVersion": "1"},
        "spec": {"arguments": {"parameters": parameters}},
    });
    let source = json!({
        "appName": "shop", "appNamespace": "argocd", "syncStatus": "Synced", "actualManifest": object.to_string(),
    });
    let report =
        json!({"data": {"timestamp": Timestamp::now().to_string(), "object": object, "source": source}});
    platform.post(&platform.token().await, &report).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_is_begun_of_a_template_with_what_somebody_says_for_its_parameters() {
    let platform = Platform::new().await;
    reported(&platform).await;
    let browser = platform.browser().await;
    browser.goto(&format!("{}{PAGE}", platform.url)).await;
    listen(&browser).await;
    let enter = char::from(Key::Enter).to_string();
    browser.tab_to("[data-act=submit-workflow]").await;
    browser.keys(&enter).await;
    let says = "This begins a workflow of WorkflowTemplate build, which stays as it is.";
    browser.until(&format!("document.querySelector('#act .body p')?.textContent === '{says}'")).await;
    let focus =
        "document.activeElement?.name === 'generateName' && document.activeElement.value === 'build-'";
    browser.until(focus).await;
    let fields = "[...document.querySelectorAll('#act [name]')].map((one) => one.name).join()";
    browser.until(&format!("{fields} === 'generateName,branch,size,who'")).await;
    let mut found = Vec::new();
    browser.what_keeps_out("a workflow that is to be", &mut found).await;
    browser.shot("act-submit").await;
    // What nothing says has to be said.
    platform.came();
    browser.press("#act .primary").await;
    browser.until("document.activeElement?.name === 'who'").await;
    browser.keys("ada").await;
    browser.tab_to("#act [name=branch]").await;
    let end = char::from(Key::End);
    browser.keys(&format!("{end}-2")).await;
    browser.keys(&enter).await;
    browser
        .until("!document.querySelector('#act') && window.said.includes('Workflow build-x1 was begun')")
        .await;
    let came = platform.came();
    assert_eq!((came.len(), &*came[0].0), (1, "admin"), "{came:?}");
    let parameter = |name: &str, value: &str| json!({"name": name, "value": value});
    let args = json!({
        "namespace": "batch", "workflowTemplateName": "build", "generateName": "build-",
        "parameters": [parameter("branch", "main-2"), parameter("size", "m"), parameter("who", "ada")],
    });
    assert_eq!(came[0].1["variables"]["args"], args);
    let audit = platform.store.audit(i64::MAX, 1).await.unwrap();
    assert_eq!(audit[0].subject, "prod: createWorkflowFromTemplate");
    for (width, height, dark) in [(390, 844, true)] {
        browser.view(width, height, dark).await;
        browser.press("[data-act=submit-workflow]").await;
        browser.until("document.querySelector('#act [name=who]')").await;
        browser.until("document.documentElement.scrollWidth <= innerWidth").await;
        browser.what_keeps_out("a workflow that is to be", &mut found).await;
        browser.shot("act-submit-390").await;
    }
    assert!(found.is_empty(), "{found:#?}");
    browser.close().await;
}

#[tokio::test]
async fn a_rule_of_workflows_in_the_namespace_of_a_template_says_who_may_begin_one() {
    let platform = Platform::new().await;
    reported(&platform).await;
    let namespace = vec![Attribute { name: AttributeName::Namespace, key: None, value: "batch".to_owned() }];
    let view = (Entity::GitopsApplications, vec![Action::View, Action::Create], Vec::new());
    let button = |page: String| {
        let (_, from) = page.split_once("data-act=\"submit-workflow\"").unwrap();
        from.split('>').next().unwrap().to_owned()
    };
    let session = platform.lin(vec![view.clone()]).await;
    let why = "data-why=\"No rule of your teams lets you begin workflows in this namespace: an admin can add one.\"";
    let seen = button(platform.page(&session, PAGE).await);
    assert!(seen.contains("aria-disabled=\"true\"") && seen.contains(why), "{seen}");
    let other = Platform::new().await;
    reported(&other).await;
    let session = other.lin(vec![view, (Entity::Workflows, vec![Action::Create], namespace)]).await;
    let seen = button(other.page(&session, PAGE).await);
    assert!(!seen.contains("aria-disabled"), "{seen}");
}
