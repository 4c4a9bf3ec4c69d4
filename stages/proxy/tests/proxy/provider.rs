//! Git providers: real HTTP on a free port, which says of tokens what GitHub (`GET /user`, the header X-OAuth-Scopes) and GitLab
//! (`GET /personal_access_tokens/self`, `GET /user`) document.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use tokio::net::TcpListener;

/// A token that may enough: never to be seen elsewhere.
pub(crate) const TOKEN: &str = "canary-of-git";

#[derive(Clone, Default)]
pub(crate) struct Provider {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let provider = Self { url, ..Self::default() };
        let router = Router::new().fallback(answer).with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        provider
    }

    /// The paths that were asked for since the last look.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

async fn answer(State(provider): State<Provider>, uri: Uri, headers: HeaderMap) -> Response {
    provider.asked.lock().unwrap().push(uri.path().to_owned());
    let given = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, token) = given.split_once(' ').unwrap_or_default();
    let scopes = match token {
        TOKEN => Some("gist, repo, read_api, write_repository"),
        "all" => Some("repo, api"),
        "reads" => Some("public_repo, read:user, read_api, read_repository"),
        "silent" => None,
        "project" => Some("api"),
        "broken" => return (StatusCode::OK, "<html>").into_response(),
        "moved" => {
            let to = [("location", "http://127.0.0.1:1/user")];
            return (StatusCode::FOUND, to, "").into_response();
        }
        _ => return (StatusCode::UNAUTHORIZED, r#"{"message": "Bad credentials"}"#).into_response(),
    };
    match (scheme, uri.path()) {
        ("token", "/api/v3/user") => {
            let body = json!({"id": 7, "login": "ada-lovelace", "email": null}).to_string();
            match scopes {
                Some(scopes) => ([("x-oauth-scopes", scopes)], body).into_response(),
                None => body.into_response(),
            }
        }
        ("Bearer", "/api/v4/personal_access_tokens/self") => {
            let scopes: Vec<&str> = scopes.into_iter().flat_map(|all| all.split(", ")).collect();
            json!({"id": 4, "name": "mine", "active": true, "scopes": scopes}).to_string().into_response()
        }
        ("Bearer", "/api/v4/user") => {
            let (bot, name) = match token {
                "project" => (true, "project_7_bot_4ffca233d8298ea1"),
                _ => (false, "ada.lovelace"),
            };
            json!({"id": 7, "username": name, "bot": bot}).to_string().into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
