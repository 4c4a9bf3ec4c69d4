//! A simulated platform as whoever registers a runtime meets it: who the user is, which runtimes there are, what the
//! plan allows.
//!
//! `GET /api/ping`, and `POST /2.0/api/graphql` with the operations `me`, `Runtime` and `limits`, `Authorization` as it is.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

/// What the platform knows.
#[derive(Debug, Clone)]
pub struct Account {
    /// The user's API key.
    pub user_token: String,
    /// The token of each runtime that is registered.
    pub runtime_token: String,
    /// The names of the runtimes.
    pub runtimes: Vec<String>,
    /// Whether the user is an administrator.
    pub is_admin: bool,
    /// The kind of Git server, by the platform's name; empty for none.
    pub git_provider: String,
    /// Where its API is.
    pub git_api: String,
    /// Used and allowed clusters, where the plan is enforced.
    pub clusters: Option<(u64, u64)>,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            user_token: "user-token".to_owned(),
            runtime_token: "runtime-token".to_owned(),
            runtimes: Vec::new(),
            is_admin: true,
            git_provider: String::new(),
            git_api: String::new(),
            clusters: None,
        }
    }
}

impl Account {
    /// Its routes.
    pub fn routes(self) -> Router {
        Router::new()
            .route("/api/ping", get(async || "pong"))
            .route("/2.0/api/graphql", post(answer))
            .with_state(Arc::new(self))
    }

    fn me(&self) -> Value {
        json!({
            "id": "user-1",
            "name": "ada",
            "isAdmin": self.is_admin,
            "activeAccount": {
                "id": "account-1",
                "name": "acme",
                "gitProvider": self.git_provider,
                "gitApiUrl": self.git_api,
                "features": {"gitopsPlanEnforcement": self.clusters.is_some()},
            },
        })
    }
}

async fn answer(
    State(account): State<Arc<Account>>,
    headers: HeaderMap,
    Json(asked): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let token = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_user = token == account.user_token;
    if !is_user && token != account.runtime_token {
        return (StatusCode::UNAUTHORIZED, Json(json!({"message": "Unauthorized"})));
    }
    let query = asked["query"].as_str().unwrap_or_default();
    let operation = query.split([' ', '(', '{']).nth(1).unwrap_or_default();
    let body = match operation {
        "me" if is_user => json!({"data": {"me": account.me()}}),
        "limits" if is_user => {
            let (used, allowed) = account.clusters.unwrap_or_default();
            let status = json!({
                "usage": {"clusters": used, "applications": 0},
                "limits": {"clusters": allowed, "applications": null},
            });
            json!({"data": {"me": account.me(), "limitsStatus": status}})
        }
        "Runtime" => {
            let name = asked["variables"]["name"].as_str().unwrap_or_default();
            if account.runtimes.iter().any(|known| known == name) {
                json!({"data": {"runtime": {"metadata": {"name": name}}}})
            } else {
                let message = format!("runtime \"{name}\" does not exist");
                json!({"data": null, "errors": [{"message": message}]})
            }
        }
        _ => json!({"data": null, "errors": [{"message": "the operation is not allowed"}]}),
    };
    (StatusCode::OK, Json(body))
}
