//! A client of Argo CD's API server.

use std::fmt;

use anyhow::{Context as _, anyhow};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::ArgoCd;
use loadtest_sim::{PATIENCE, local_client};

/// Letters of a refusal that are told.
const TOLD: usize = 300;

/// What a sync is asked for; all of it may be left out.
#[derive(Debug, Clone, Default)]
pub struct SyncRequest {
    /// The revision, else that of the application.
    pub revision: Option<String>,
    /// Whether what is no longer desired is deleted.
    pub prune: bool,
    /// E.g. `Replace=true`.
    pub sync_options: Vec<String>,
    /// Only these resources (`group`, `kind`, `name`, `namespace`), when any are named.
    pub resources: Vec<Value>,
}

/// Calls with the rights of one account. All applications are those of [`ArgoCd::NAMESPACE`].
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A client of loopback: no proxy stands between.
pub(crate) fn http() -> anyhow::Result<reqwest::Client> {
    local_client().build().context("make a client of Argo CD")
}

impl Client {
    /// A client with `token`; an empty one is not sent.
    #[must_use]
    pub fn new(http: reqwest::Client, url: &str, token: &str) -> Self {
        Self { http, url: url.to_owned(), token: token.to_owned() }
    }

    /// `GET` of a path with its query, e.g. `/api/v1/settings`.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.call(Method::GET, path, None).await
    }

    /// `POST` of JSON to a path.
    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// The application, compared anew first: `normal` or `hard`.
    pub async fn refreshed(&self, name: &str, how: &str) -> anyhow::Result<Value> {
        self.get(&format!("{}&refresh={how}", of(name, ""))).await
    }

    /// Begins a sync.
    pub async fn sync(&self, name: &str, request: &SyncRequest) -> anyhow::Result<Value> {
        let mut body = json!({
            "appNamespace": ArgoCd::NAMESPACE,
            "prune": request.prune,
            "strategy": { "hook": {} },
        });
        if let Some(revision) = &request.revision {
            body["revision"] = json!(revision);
        }
        if !request.sync_options.is_empty() {
            body["syncOptions"] = json!({ "items": request.sync_options });
        }
        if !request.resources.is_empty() {
            body["resources"] = json!(request.resources);
        }
        self.post(&of(name, "/sync"), &body).await
    }

    /// Begins a roll back to the entry `id` of the history.
    pub async fn rollback(&self, name: &str, id: i64) -> anyhow::Result<Value> {
        let body = json!({ "appNamespace": ArgoCd::NAMESPACE, "id": id });
        self.post(&of(name, "/rollback"), &body).await
    }

    /// Ends the running operation.
    pub async fn terminate(&self, name: &str) -> anyhow::Result<()> {
        self.call(Method::DELETE, &of(name, "/operation"), None).await.map(|_| ())
    }

    /// Asks for the application's deletion; all that it made goes first.
    pub async fn delete(&self, name: &str) -> anyhow::Result<()> {
        self.call(Method::DELETE, &format!("{}&cascade=true", of(name, "")), None).await.map(|_| ())
    }

    /// Live and desired states of all resources: `{"items": [...]}`.
    pub async fn managed_resources(&self, name: &str) -> anyhow::Result<Value> {
        self.get(&of(name, "/managed-resources")).await
    }

    /// The resources and what they own: `{"nodes": [...]}`.
    pub async fn resource_tree(&self, name: &str) -> anyhow::Result<Value> {
        self.get(&of(name, "/resource-tree")).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let place = path.split('?').next().unwrap_or_default();
        let act = || format!("{method} {place} of Argo CD");
        let mut request = self.http.request(method.clone(), format!("{}{path}", self.url)).timeout(PATIENCE);
        if !self.token.is_empty() {
            request = request.bearer_auth(&self.token);
        }
        request = match (body, method == Method::GET) {
            (Some(body), _) => request.json(body),
            // It answers 415 to a change that says no type.
            (None, false) => request.header("content-type", "application/json"),
            (None, true) => request,
        };
        let answer = request.send().await.with_context(act)?;
        let status = answer.status();
        let text = answer.bytes().await.with_context(act)?;
        if status != StatusCode::OK {
            return Err(refused(status, &text)).with_context(act);
        }
        serde_json::from_slice(&text).with_context(act)
    }
}

fn of(name: &str, call: &str) -> String {
    let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
    format!("/api/v1/applications/{name}{call}?appNamespace={}", ArgoCd::NAMESPACE)
}

/// The first of what it says.
fn refused(status: StatusCode, body: &[u8]) -> anyhow::Error {
    let said = serde_json::from_slice::<Value>(body).ok();
    let said = said.as_ref().and_then(|said| said.get("message")).and_then(Value::as_str).unwrap_or_default();
    let line = said.lines().next().unwrap_or_default();
    let line: String = line.chars().take(TOLD).collect();
    anyhow!("argo cd answers {}: {line}", status.as_u16())
}
