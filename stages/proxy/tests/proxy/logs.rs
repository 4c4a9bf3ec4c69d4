//! Logs as they come.

use serde_json::{Value, json};

use crate::operations::asked;
use crate::support::{Running, events};

#[tokio::test]
async fn lines_come_as_events_until_the_log_has_ended() {
    let running = Running::start().await;
    let query = asked(
        r#"subscription { applicationLogs(application: APP, podName: "web-1", container: "web",
            resource: {kind: "Pod", namespace: "default", name: "web-1"},
            options: {follow: true, filter: "st", sinceSeconds: 60, tailLines: 5}) { data { content podName timestamp } error done } }"#,
    );
    let asked =
        running.client.post(format!("{}/api/graphql", running.url)).header("x-access-token", &running.admin);
    let response =
        asked.header("accept", "text/event-stream").json(&json!({"query": query})).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    assert!(text.trim_end().ends_with("event: complete"), "{text}");
    let items: Vec<Value> = events(&text)
        .iter()
        .map(|data| serde_json::from_str::<Value>(data).unwrap()["data"]["applicationLogs"].clone())
        .collect();
    let line = |content: &str, at: Value| json!({"data": {"content": content, "podName": "web-1", "timestamp": at}, "error": null, "done": null});
    let end = json!({"data": null, "error": null, "done": true});
    assert_eq!(items, [line("first", json!("2026-01-01T00:00:00Z")), line("second", Value::Null), end]);
    let (_, path, _) = running.argocd.take().remove(0);
    let expected = "/api/v1/applications/shop/logs?appNamespace=argocd&namespace=default&podName=web-1&container=web&follow=true&\
                    tailLines=5&filter=st&sinceSeconds=60";
    assert_eq!(path, expected);
    let recorded = running.audit(1).await;
    assert_eq!(
        recorded[0],
        ("ada".to_owned(), "applicationLogs".to_owned(), "prod/argocd/shop Pod web-1: done".to_owned())
    );
}

#[tokio::test]
async fn the_pods_are_those_that_are_named_or_all_of_the_application() {
    let running = Running::start().await;
    for (given, asked_for) in [
        ("", ""),
        (r#", podName: "web-1""#, "&podName=web-1"),
        (
            ", resource: DEPLOYMENT",
            "&group=apps&version=v1&kind=Deployment&namespace=default&resourceName=web",
        ),
    ] {
        let query =
            asked(&format!("subscription {{ applicationLogs(application: APP{given}) {{ error done }} }}"));
        assert_eq!(running.ask(&running.admin, &query).await.get("errors"), None, "{given}");
        let (_, path, _) = running.argocd.take().remove(0);
        let rest = "follow=false&tailLines=1000";
        assert_eq!(path, format!("/api/v1/applications/shop/logs?appNamespace=argocd{asked_for}&{rest}"));
    }
}

#[tokio::test]
async fn whoever_says_no_time_is_told_so() {
    let running = Running::start().await;
    let when = asked(
        r#"subscription { applicationLogs(application: APP, resource: DEPLOYMENT, options: {sinceTime: "now"}) { done } }"#,
    );
    assert_eq!(
        running.refused(&running.admin, &when).await.0,
        "a time is to be written as 2026-01-31T12:00:00Z"
    );
}
