//! What only the server of Argo Workflows does: over real HTTP, with the paths, parameters and shapes of its published description
//! (`WorkflowService_WorkflowLogs`, `WorkflowService_RetryWorkflow` and its neighbours), which streams JSON lines.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use serde_json::{Value, json};
use stages_client::Token;
use tokio::net::TcpListener;

use crate::support::{Running, SOON, events};

const TOKEN: &str = "token-of-a-service-account";

/// A server of Argo Workflows that keeps what it is asked.
#[derive(Clone, Default)]
pub(crate) struct ArgoServer(Arc<Mutex<Vec<String>>>);

impl ArgoServer {
    async fn start() -> (Self, String) {
        let server = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        (server, url)
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

async fn answer(
    State(server): State<ArgoServer>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    _body: String,
) -> Response {
    let refused = |status: StatusCode, code: u8, said: &str| {
        (status, json!({"code": code, "message": said}).to_string()).into_response()
    };
    if headers.get("authorization").is_none_or(|value| value != format!("Bearer {TOKEN}").as_str()) {
        return refused(StatusCode::UNAUTHORIZED, 16, "token not valid");
    }
    server.0.lock().unwrap().push(format!("{method} {uri}"));
    if (method.as_str(), uri.path()) == ("POST", "/api/v1/workflows/default/submit") {
        return json!({"metadata": {"name": "ship-x7k2p"}}).to_string().into_response();
    }
    let Some((name, what)) =
        uri.path().strip_prefix("/api/v1/workflows/default/").and_then(|rest| rest.split_once('/'))
    else {
        return refused(StatusCode::NOT_FOUND, 5, "Not Found");
    };
    if !matches!(name, "build" | "broken") {
        return refused(StatusCode::NOT_FOUND, 5, "workflows.argoproj.io \"canary-parameter\" not found");
    }
    let line =
        |content: &str, pod: &str| format!("{}\n", json!({"result": {"content": content, "podName": pod}}));
    match (method.as_str(), what) {
        ("PUT", "resubmit") => {
            json!({"metadata": {"name": format!("{name}-x7k2p")}}).to_string().into_response()
        }
        ("PUT", "retry" | "suspend" | "resume" | "stop" | "terminate") => {
            json!({"metadata": {"name": name}}).to_string().into_response()
        }
        ("GET", "log") => {
            let first = line("2026-01-01T00:00:00.000000001Z  compiling", "build-compile-1");
            let rest = match name {
                "build" => line("2026-01-01T00:00:02Z done", "build-test-2"),
                _ => format!("{}\n", json!({"error": {"grpc_code": 13, "message": "canary of an error"}})),
            };
            // In pieces that end within a line.
            let text = first + &rest;
            let pieces: Vec<std::io::Result<Vec<u8>>> =
                text.as_bytes().chunks(41).map(|piece| Ok(piece.to_vec())).collect();
            Body::from_stream(futures::stream::iter(pieces).boxed()).into_response()
        }
        _ => refused(StatusCode::NOT_FOUND, 5, "Not Found"),
    }
}

pub(crate) async fn running() -> (Running, ArgoServer) {
    let (server, url) = ArgoServer::start().await;
    let http = stages_client::Config::new(SOON, 1 << 20);
    let workflows = Some((url, Token::literal(TOKEN), http));
    let running =
        Running::made(Duration::ZERO, |config| stages_proxy::ProxyConfig { workflows, ..config }).await;
    (running, server)
}

/// All items of a log.
async fn items(running: &Running, token: &str, query: &str) -> Vec<Value> {
    let asked = running.client.post(format!("{}/api/graphql", running.url)).header("authorization", token);
    let response =
        asked.header("accept", "text/event-stream").json(&json!({"query": query})).send().await.unwrap();
    let text = response.text().await.unwrap();
    assert!(text.trim_end().ends_with("event: complete"), "{text}");
    let item = |data: &String| serde_json::from_str::<Value>(data).unwrap()["data"]["workflowLogs"].clone();
    events(&text).iter().map(item).collect()
}

fn logs(name: &str, more: &str) -> String {
    format!(
        r#"subscription {{ workflowLogs(namespace: "default", workflowName: "{name}"{more}) {{
            data {{ podName timestamp content }} error done }} }}"#
    )
}

#[tokio::test]
async fn lines_of_a_workflow_come_with_their_pod_and_when_they_were_written() {
    let (running, server) = running().await;
    running.allow("ACCESS_LOGS", "workflows", "default").await;
    let line = |pod: &str, at: &str, content: &str| json!({"data": {"podName": pod, "timestamp": at, "content": content}, "error": null, "done": null});
    let expected = [
        line("build-compile-1", "2026-01-01T00:00:00.000000001Z", " compiling"),
        line("build-test-2", "2026-01-01T00:00:02Z", "done"),
        json!({"data": null, "error": null, "done": true}),
    ];
    for token in [&running.admin, &running.member, &running.reads] {
        assert_eq!(items(&running, token, &logs("build", "")).await, expected);
    }
    let usual = "GET /api/v1/workflows/default/build/log?logOptions.container=main&logOptions.follow=false&\
                 logOptions.tailLines=1000&logOptions.timestamps=true";
    assert_eq!(server.take(), [usual; 3]);
    let more = r#", podName: "build-test-2", container: "wait", options: {follow: true, grep: "a|b", sinceSeconds: 60, tailLines: 5}"#;
    items(&running, &running.admin, &logs("build", more)).await;
    let asked = "GET /api/v1/workflows/default/build/log?logOptions.container=wait&podName=build-test-2&logOptions.follow=true&\
                 logOptions.tailLines=5&logOptions.timestamps=true&grep=a%7Cb&logOptions.sinceSeconds=60";
    assert_eq!(server.take(), [asked]);
    let row = |who: &str, what: &str| (who.to_owned(), "workflowLogs".to_owned(), what.to_owned());
    let recorded = running.audit(4).await;
    assert_eq!(recorded[0], row("ada", "prod/default/build Pod build-test-2: done"));
    assert_eq!(recorded[2], row("lin", "prod/default/build: done"));
}

#[tokio::test]
async fn a_log_that_cannot_be_had_says_why_and_repeats_nothing_of_the_server() {
    let (running, server) = running().await;
    let told = |message: &str, code: &str| (message.to_owned(), code.to_owned());
    let refused = async |query: &str| running.refused(&running.admin, query).await;
    let missing = "Argo Workflows refused to read logs (404): there is no such workflow or template";
    assert_eq!(refused(&logs("none", "")).await, told(missing, "PEER_REFUSED"));
    let broken = items(&running, &running.admin, &logs("broken", "")).await;
    let end = json!({"data": null, "error": "Argo Workflows cannot read the log any further", "done": true});
    assert_eq!((broken.len(), broken.last()), (2, Some(&end)));
    server.take();
    let when = r#", options: {sinceTime: "yesterday"}"#;
    let said = "a time is to be written as 2026-01-31T12:00:00Z";
    assert_eq!(refused(&logs("build", when)).await, told(said, "BAD_REQUEST"));
    let pod = "that is no name of a pod in Kubernetes";
    assert_eq!(refused(&logs("build", r#", podName: "../x""#)).await, told(pod, "BAD_REQUEST"));
    let path = "that is no name of a workflow in Kubernetes";
    assert_eq!(refused(&logs("../../secrets", "")).await, told(path, "BAD_REQUEST"));
    assert!(server.take().is_empty(), "nothing is asked of what is no name");
}

#[tokio::test]
async fn workflows_are_changed_and_made_by_the_server_where_there_is_one() {
    let (running, server) = running().await;
    for what in ["suspend", "resume", "stop", "terminate"] {
        let act = format!(
            r#"mutation {{ {what}Workflow(namespace: "default", workflowName: "build") {{ metadata {{ name }} }} }}"#
        );
        running.data(&running.admin, &act).await;
        assert_eq!(server.take(), [format!("PUT /api/v1/workflows/default/build/{what}")]);
    }
    let again =
        r#"mutation { resubmitWorkflow(namespace: "default", workflowName: "build") { newWorkflowName } }"#;
    let done = running.data(&running.admin, again).await;
    assert_eq!(done, json!({"resubmitWorkflow": {"newWorkflowName": "build-x7k2p"}}));
    assert_eq!(server.take(), ["PUT /api/v1/workflows/default/build/resubmit"]);
    let new = r#"mutation { createWorkflowFromTemplate(args: {namespace: "default", workflowTemplateName: "ship"}) { newWorkflowName } }"#;
    let done = running.data(&running.admin, new).await;
    assert_eq!(done, json!({"createWorkflowFromTemplate": {"newWorkflowName": "ship-x7k2p"}}));
    assert_eq!(server.take(), ["POST /api/v1/workflows/default/submit"]);
    assert!(running.cluster.take().is_empty(), "the API server is not asked to do it, too");
}

#[tokio::test]
async fn a_workflow_is_retried_by_the_server() {
    let (running, server) = running().await;
    let retry =
        r#"mutation { retryWorkflow(namespace: "default", workflowName: "build") { metadata { name } } }"#;
    let done = running.data(&running.admin, retry).await;
    assert_eq!(done, json!({"retryWorkflow": {"metadata": {"name": "build"}}}));
    assert_eq!(server.take(), ["PUT /api/v1/workflows/default/build/retry"]);
}
