//! The runtime's own logs, as they come.

use serde_json::{Value, json};

use crate::support::{Running, events};

const PODS: &str = "/api/v1/namespaces/argocd/pods";

fn path(pod: &str, more: &str) -> String {
    format!("{PODS}/{pod}/log?container=main&previous=false&timestamps=true&{more}")
}

/// A pod of a component, which was restarted, and its log as it is asked for.
fn pod(running: &Running, (name, component): (&str, &str), more: &str, log: Option<&str>) {
    let pod = json!({
        "metadata": {"name": name, "labels": {"app.kubernetes.io/component": component}},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"containerStatuses": [{"name": "main", "restartCount": 1}]},
    });
    let mut objects = running.cluster.objects.lock().unwrap();
    objects.insert(format!("{PODS}/{name}"), pod);
    if let Some(log) = log {
        objects.insert(path(name, more), log.into());
    }
}

/// All that comes, as an admin.
async fn all(running: &Running, arguments: &str) -> Vec<Value> {
    let query = format!(
        "subscription {{ componentLogs{arguments} {{ data {{ content componentName podName containerName timestamp }} error done }} }}"
    );
    let asked = running.client.post(format!("{}/app-proxy/api/graphql", running.url));
    let asked = asked.header("authorization", &running.admin).header("accept", "text/event-stream");
    let text = asked.json(&json!({"query": query})).send().await.unwrap().text().await.unwrap();
    let item = |data: &String| serde_json::from_str::<Value>(data).unwrap()["data"]["componentLogs"].clone();
    events(&text).iter().map(item).collect()
}

fn line(pod: &str, component: &str, at: Option<&str>, content: &str) -> Value {
    let data = json!({
        "content": content, "componentName": component, "podName": pod, "containerName": "main", "timestamp": at,
    });
    json!({"data": data, "error": null, "done": null})
}

fn end(error: Option<&str>) -> Value {
    json!({"data": null, "error": error, "done": true})
}

#[tokio::test]
async fn lines_come_of_all_components_or_of_one_and_what_cannot_be_read_is_told() {
    let running = Running::start().await;
    let usual = "tailLines=1000&follow=false";
    let log = "2026-01-01T00:00:00.5Z began\nwithout a time\n2026-01-01T00:00:01Z and no end";
    pod(&running, ("a-1", "router"), usual, Some(log));
    pod(&running, ("b-2", "reporter"), usual, None);
    pod(&running, ("c-3", "reporter"), usual, Some("2026-01-02T00:00:00Z last\n"));
    let of_a = [
        line("a-1", "router", Some("2026-01-01T00:00:00.5Z"), "began"),
        line("a-1", "router", None, "without a time"),
        line("a-1", "router", Some("2026-01-01T00:00:01Z"), "and no end"),
    ];
    let unread = json!({"data": null, "error": "b-2/main.log: the API server answered 400", "done": null});
    let last = line("c-3", "reporter", Some("2026-01-02T00:00:00Z"), "last");
    let [one, two, three] = of_a.clone();
    assert_eq!(all(&running, "").await, [one, two, three, unread, last, end(None)]);
    let of_one = all(&running, r#"(componentName: "router")"#).await;
    assert_eq!(of_one, [&of_a[..], &[end(None)]].concat());
    let row = |place: &str| ("ada".to_owned(), "componentLogs".to_owned(), format!("prod/{place}: done"));
    assert_eq!(running.audit(2).await, [row("component router"), row("")]);
}

#[tokio::test]
async fn what_is_followed_comes_of_all_at_once_and_as_was_asked() {
    let running = Running::start().await;
    let more = "tailLines=5&sinceSeconds=60&follow=true";
    pod(&running, ("a-1", "router"), more, Some("one\n"));
    pod(&running, ("b-2", "reporter"), more, Some("two\n"));
    let mut found = all(&running, "(options: {follow: true, tailLines: 5, sinceSeconds: 60})").await;
    assert_eq!(found.pop(), Some(end(None)));
    found.sort_by_key(|item| item["data"]["podName"].as_str().unwrap().to_owned());
    assert_eq!(found, [line("a-1", "router", None, "one"), line("b-2", "reporter", None, "two")]);
    let said = "that would be 65 logs, and 64 are followed at most: name a component";
    for number in 0..63 {
        pod(&running, (&format!("more-{number}"), "more"), more, None);
    }
    let many = "subscription { componentLogs(options: {follow: true}) { done } }";
    running.wrong(many, said).await;
}

#[tokio::test]
async fn no_secret_of_a_line_is_told_nor_any_line_of_a_private_key() {
    let running = Running::start().await;
    let body = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0MjQyNDI0MjQyNDI0MjQyNDI0MjQyNDI0".repeat(2);
    let log = format!(
        "2026-01-01T00:00:00Z clone https://ada:canary-of-a-log@git.example.com/x\n\
         2026-01-01T00:00:01Z -----BEGIN PRIVATE KEY-----\n2026-01-01T00:00:01Z {body}\n\
         2026-01-01T00:00:01Z -----END PRIVATE KEY-----\n2026-01-01T00:00:02Z after\n\
         2026-01-01T00:00:03Z -----BEGIN PRIVATE KEY-----\n2026-01-01T00:00:03Z {body}\n"
    );
    pod(&running, ("a-1", "router"), "tailLines=1000&follow=false", Some(&log));
    let found = all(&running, "").await;
    let text = Value::from(found.clone()).to_string();
    assert!(!text.contains("canary") && !text.contains(&body), "{text}");
    let times: Vec<_> =
        found.iter().map(|item| item["data"]["timestamp"].as_str().unwrap_or_default()).collect();
    let expected =
        ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z", ""];
    assert_eq!(times, expected);
    assert_eq!(found[2]["data"]["content"], "after");
}

#[tokio::test]
async fn a_line_that_is_too_long_ends_its_log_and_no_other() {
    let running = Running::start().await;
    let usual = "tailLines=1000&follow=false";
    pod(&running, ("a-1", "router"), usual, Some(&format!("first\n{}", "x".repeat(200 << 10))));
    pod(&running, ("b-2", "router"), usual, Some("second\n"));
    let long = json!({"data": null, "error": "a-1/main.log: a line is longer than 128 KiB", "done": null});
    let expected =
        [line("a-1", "router", None, "first"), long, line("b-2", "router", None, "second"), end(None)];
    assert_eq!(all(&running, "").await, expected);
}

#[tokio::test]
async fn nothing_is_read_for_whoever_may_not_nor_of_a_component_that_is_not_there() {
    let running = Running::start().await;
    pod(&running, ("a-1", "router"), "", None);
    let query = r#"subscription { componentLogs(componentName: "rooter") { done } }"#;
    running.allow("VIEW_POD_LOGS", "gitopsApplications", "").await;
    let admins = "'lin' may not: no rule allows this, it is for admins";
    running.refuses(&running.member, query, admins, "FORBIDDEN").await;
    let none = "no pod of the runtime is of the component rooter";
    running.refuses(&running.admin, query, none, "NOT_FOUND").await;
    assert!(running.cluster.logs.lock().unwrap().is_empty());
}
