//! The client against a server that tells what it was asked.

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::{Value, json};

use super::*;

/// Answers every call with what it was, but for the application `gone` and text at `text`.
async fn server() -> String {
    let echo = async |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let call = format!("{method} {uri}");
        let answer = json!({
            "call": call, "token": header("authorization"), "type": header("content-type"), "body": body,
        });
        if uri.path().ends_with("/gone") {
            let said = json!({ "message": format!("permission denied\nsecond line{}", "x".repeat(400)) });
            return (StatusCode::FORBIDDEN, said.to_string());
        }
        if uri.path().ends_with("/text") {
            return (StatusCode::OK, "no JSON".to_owned());
        }
        (StatusCode::OK, answer.to_string())
    };
    let router = Router::new().fallback(echo);
    loadtest_sim::server::serve(router).await.unwrap()
}

async fn client(token: &str) -> Client {
    Client::new(client::http().unwrap(), &server().await, token)
}

#[tokio::test]
async fn calls_name_the_application_its_namespace_and_the_token() {
    let client = client("secret").await;
    let answer = client.application("a b", Some("hard")).await.unwrap();
    assert_eq!(answer["call"], "GET /api/v1/applications/a%20b?appNamespace=argocd&refresh=hard");
    assert_eq!(answer["token"], "Bearer secret");
    assert_eq!(answer["type"], Value::Null);
    let answer = client.resource_tree("web").await.unwrap();
    assert_eq!(answer["call"], "GET /api/v1/applications/web/resource-tree?appNamespace=argocd");
    let answer = client.managed_resources("web").await.unwrap();
    assert_eq!(answer["call"], "GET /api/v1/applications/web/managed-resources?appNamespace=argocd");
    assert_eq!(client.settings().await.unwrap()["call"], "GET /api/v1/settings");
}

#[tokio::test]
async fn a_sync_says_what_is_wanted() {
    let client = client("secret").await;
    let answer = client.sync("web", &SyncRequest::default()).await.unwrap();
    assert_eq!(answer["call"], "POST /api/v1/applications/web/sync?appNamespace=argocd");
    assert_eq!(
        answer["body"],
        json!({ "appNamespace": "argocd", "prune": false, "dryRun": false, "strategy": { "hook": {} } })
    );
    let request: SyncRequest = serde_json::from_value(json!({
        "prune": true, "revision": "abc", "syncOptions": ["Replace=true"], "resources": [{ "kind": "ConfigMap" }],
        "strategy": { "apply": { "force": true } },
    }))
    .unwrap();
    let body = client.sync("web", &request).await.unwrap()["body"].clone();
    assert_eq!(body["prune"], true);
    assert_eq!(body["revision"], "abc");
    assert_eq!(body["syncOptions"], json!({ "items": ["Replace=true"] }));
    assert_eq!(body["resources"], json!([{ "kind": "ConfigMap" }]));
    assert_eq!(body["strategy"], json!({ "apply": { "force": true } }));
    let answer = client.rollback("web", 3).await.unwrap();
    assert_eq!(answer["body"], json!({ "appNamespace": "argocd", "id": 3 }));
}

#[tokio::test]
async fn a_refusal_is_told_by_its_first_line() {
    let client = client("secret").await;
    let error = client.application("gone", None).await.unwrap_err();
    let refused = error.downcast_ref::<Refused>().unwrap();
    assert_eq!(refused, &Refused { status: 403, message: "permission denied".to_owned() });
    assert_eq!(
        format!("{error:#}"),
        "GET /api/v1/applications/gone of Argo CD: argo cd answers 403: permission denied"
    );
    assert!(client.get("/text").await.is_err());
}

#[tokio::test]
async fn a_token_does_not_stand_in_what_is_printed() {
    let client = client("secret-token").await;
    assert!(!format!("{client:?}").contains("secret-token"));
}
