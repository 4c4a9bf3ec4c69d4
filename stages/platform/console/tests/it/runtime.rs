//! A runtime's app proxy, as the platform passes on to it what people ask for: it remembers that, knows whoever the platform says,
//! and answers as one does; some it refuses.

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use jiff::Timestamp;
use serde_json::{Value, json};
use stages_platform_store::Store;

/// What is said of a Workflow that the server of Argo Workflows alone could change.
pub(crate) const NEEDS_SERVER: &str =
    "this takes the server of Argo Workflows: set appProxy.workflows.url, and appProxy.workflows.tokenFile";
/// What is said of a rollback.
pub(crate) const NO_ROLLBACK: &str =
    "'admin' may not: rule 4 allows APP_ROLLBACK of gitopsApplications, and not of this one";

/// Commits that it remembers to have deployed.
pub(crate) const COMMITS: [&str; 2] =
    ["3f9c1e2aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a0d17beaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"];

/// The runtime `prod`. Cloning shares.
#[derive(Clone)]
pub(crate) struct Runtime {
    store: Store,
    /// What was asked: by whom, by the platform's word, and what.
    came: Arc<Mutex<Vec<(String, Value)>>>,
    git: Arc<Mutex<Git>>,
}

/// What it knows of Git.
struct Git {
    is_registered: bool,
    /// What stands in the one file.
    data: String,
    /// How many pull requests it still refuses.
    refused: u32,
}

impl Runtime {
    pub(crate) fn new(store: Store) -> Self {
        let git = Git { is_registered: false, data: "replicas: 2\nimage: web\n".to_owned(), refused: 1 };
        Self { store, came: Arc::default(), git: Arc::new(Mutex::new(git)) }
    }

    pub(crate) fn router(&self) -> Router {
        Router::new().route("/app-proxy/api/graphql", post(answer)).with_state(self.clone())
    }

    /// What was asked since the last time, with who did.
    pub(crate) fn came(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.came.lock().unwrap())
    }

    /// Whether somebody's token is registered.
    pub(crate) fn register(&self, is_registered: bool) {
        self.git.lock().unwrap().is_registered = is_registered;
    }
}

async fn answer(State(runtime): State<Runtime>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let token = headers["authorization"].to_str().unwrap().into();
    let pass = runtime.store.pass(&token, Timestamp::now().as_millisecond()).await.unwrap();
    let pass = pass.expect("the platform's pass");
    assert_eq!(pass.runtime, "prod");
    let query = body["query"].as_str().unwrap().to_owned();
    let field = query.split('{').nth(1).unwrap().trim().split(['(', ' ']).next().unwrap().to_owned();
    let variables = body["variables"].clone();
    runtime.came.lock().unwrap().push((pass.access.who, body));
    let answered = match &*field {
        "applicationLogs" | "workflowLogs" => return lines(&field),
        "rollbackApplication" => Err(NO_ROLLBACK.to_owned()),
        "retryWorkflow" => Err(NEEDS_SERVER.to_owned()),
        _ => of_git(&runtime, &field, &variables).unwrap_or_else(|| Ok(of_cluster(&field, &variables))),
    };
    match answered {
        Ok(value) => Json(json!({ "data": { field: value } })).into_response(),
        Err(why) => Json(json!({"data": null, "errors": [{"message": why}]})).into_response(),
    }
}

fn of_cluster(field: &str, variables: &Value) -> Value {
    match field {
        "applicationDiff" => json!([
            {"kind": "Deployment", "name": "web", "live": "kind: Deployment\nreplicas: 2\n", "target": "kind: Deployment\nreplicas: 3\n"},
            {"kind": "Secret", "name": "<b>old", "live": "kind: Secret\n", "target": null},
        ]),
        "applicationHistory" => {
            let entry = |id: i64, revision: Option<&str>, several: &[&str], began: Option<&str>| json!({"id": id, "revision": revision, "revisions": several, "deployStartedAt": began, "deployedAt": "2026-11-24T10:00:00Z", "initiatedBy": "ada"});
            json!([
                entry(8, Some(COMMITS[0]), &[], None),
                entry(7, Some(COMMITS[1]), &[], Some("2026-11-24T09:57:00Z")),
                entry(6, None, &["10.20.31", ""], None),
            ])
        }
        "createWorkflowFromTemplate" => json!({"newWorkflowName": "build-x1"}),
        "resubmitWorkflow" => json!({"newWorkflowName": "nightly-x2"}),
        "applicationEvents" if variables["resource"].is_null() => json!([]),
        "applicationEvents" => {
            let of = json!({"kind": "Pod", "name": "web-1"});
            json!([
                {"type": "Warning", "reason": "BackOff", "message": "restarting <img src=x>", "count": 7,
                    "lastTimestamp": "2026-11-24T10:00:00Z", "involvedObject": of},
                {"type": "Normal", "reason": "Pulled", "message": null, "count": null, "lastTimestamp": null,
                    "firstTimestamp": "2026-11-24T09:59:00Z", "involvedObject": of},
            ])
        }
        _ => json!({"metadata": {"name": "shop"}}),
    }
}

/// What is asked of Git, if it is.
fn of_git(runtime: &Runtime, field: &str, variables: &Value) -> Option<Result<Value, String>> {
    let mut git = runtime.git.lock().unwrap();
    let args = &variables["args"];
    let wrong = |why: &str| Some(Err(why.to_owned()));
    Some(Ok(match field {
        "gitIntegrations" => {
            let own = json!({"userId": "admin", "isValid": true, "expiresAt": "2126-11-24T10:00:00Z"});
            let users = if git.is_registered { json!([own]) } else { json!([]) };
            let of = |name: &str, provider: &str, url: &str, users: &Value| json!({"name": name, "provider": provider, "apiUrl": url, "sharingPolicy": "ALL_USERS_IN_ACCOUNT", "users": users});
            json!([
                of("default", "GITHUB", "https://api.github.com", &users),
                of("<b>lab", "GITLAB", "https://gitlab.com/api/v4", &json!([])),
            ])
        }
        "beginGitAuth" => json!({"url": "https://runtime.example.com/app-proxy/api/git-auth/github?state=s"}),
        "finishGitAuth" if args["line"] != "sealed" => {
            return wrong("this was not begun here, or more than 10 minutes ago: begin again");
        }
        "registerToGitIntegration" if args["token"] != "secret-of-ada" => {
            return wrong("GitHub refuses the token");
        }
        "finishGitAuth" | "registerToGitIntegration" | "deregisterFromGitIntegration" => {
            git.is_registered = field != "deregisterFromGitIntegration";
            json!({"name": "default"})
        }
        "gitToken" => json!({"username": "octocat", "expiresAt": null}),
        "repositoryFiles" if args["path"] == "web" => json!({"files": [
            {"path": "web/base", "isDirectory": true},
            {"path": "web/values.yaml", "isDirectory": false},
        ]}),
        "repositoryFiles" => json!({"files": [{"path": "web", "isDirectory": true}]}),
        "readFile" => json!({"path": args["path"], "revision": "3f9c1e2aaa", "data": git.data}),
        "commitFiles" if args["targetBranch"] == "v1" => return wrong("v1 is a tag: name a branch"),
        "commitFiles" => {
            if args["baseRef"].is_null() {
                git.data = args["files"][0]["data"].as_str().unwrap().to_owned();
            }
            json!({"sha": "c0ffee1aaaaa"})
        }
        "createPullRequest" if git.refused > 0 => {
            git.refused -= 1;
            return wrong("GitHub does not answer");
        }
        "createPullRequest" => json!({"number": 7, "url": "https://github.com/team/mono/pull/7"}),
        _ => return None,
    }))
}

/// Two lines, as a stream.
fn lines(field: &str) -> Response {
    let line = |text: &str| {
        let entry = json!({"data": {"content": text, "podName": "web-1"}, "error": null, "done": null});
        json!({"data": {field: entry}})
    };
    let text = format!(
        "event: next\ndata: {}\n\nevent: next\ndata: {}\n\nevent: complete\ndata:\n\n",
        line("one <img src=x>"),
        line("two")
    );
    ([("content-type", "text/event-stream")], text).into_response()
}
