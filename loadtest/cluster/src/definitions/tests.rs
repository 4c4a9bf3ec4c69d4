//! Definitions against a server that takes them as the API server does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// What was created, by its name, and how often the list of what is served was asked for.
#[derive(Clone, Default)]
struct Api(Arc<Mutex<(BTreeMap<String, String>, usize)>>);

async fn create_one(State(api): State<Api>, headers: HeaderMap, body: Bytes) -> Response {
    assert_eq!(headers["content-type"], "application/yaml");
    let text = String::from_utf8(body.to_vec()).unwrap();
    let name = text.lines().find_map(|line| line.strip_prefix("name: ")).unwrap_or_default().to_owned();
    let refuse = |code: u16, reason: &str| {
        let status = json!({
            "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason,
            "details": { "name": name, "kind": "customresourcedefinitions" },
        });
        (StatusCode::from_u16(code).unwrap(), status.to_string()).into_response()
    };
    if name == "bad.argoproj.io" {
        return refuse(422, "Invalid");
    }
    let known = api.0.lock().unwrap().0.insert(name.clone(), text);
    if known.is_some() {
        return refuse(409, "AlreadyExists");
    }
    (StatusCode::CREATED, json!({ "metadata": { "name": name } }).to_string()).into_response()
}

/// Serves nothing at first, and everything from the second time on.
async fn served(State(api): State<Api>) -> String {
    let mut api = api.0.lock().unwrap();
    api.1 += 1;
    let is_late = api.1 > 1;
    let names = api.0.keys().filter(|_| is_late).map(|name| json!({ "name": name.split('.').next() }));
    json!({ "resources": names.collect::<Vec<_>>() }).to_string()
}

async fn versions() -> String {
    let versions =
        ["argoproj.io/v1", "argoproj.io/v1alpha1"].map(|version| json!({ "groupVersion": version }));
    json!({ "versions": versions }).to_string()
}

async fn server() -> (Api, kube::Client) {
    let api = Api::default();
    let router = Router::new()
        .route("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", post(create_one))
        .route("/apis/argoproj.io", get(versions))
        .route("/apis/argoproj.io/v1", get(|| async { json!({ "resources": [] }).to_string() }))
        .route("/apis/argoproj.io/v1alpha1", get(served))
        .with_state(api.clone());
    let url = loadtest_sim::server::serve(router).await.unwrap();
    // Another test of this process may have done it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = kube::Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
    (api, client)
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[tokio::test]
async fn all_files_but_those_left_out_are_created_as_they_are_and_waited_for() {
    let (api, client) = server().await;
    let folder = folder(&[
        ("one.yaml", "name: ones.argoproj.io\n# as it is\n"),
        ("two.yaml", "name: twos.argoproj.io\n"),
        ("large.yaml", "name: larges.argoproj.io\n"),
        ("kustomization.yaml", "resources: []\n"),
        ("README.md", "name: none\n"),
    ]);
    define(&client, &["name: threes.argoproj.io\n"], folder.path(), &["large.yaml"]).await.unwrap();
    let state = api.0.lock().unwrap();
    let names: Vec<_> = state.0.keys().map(String::as_str).collect();
    assert_eq!(names, ["ones.argoproj.io", "threes.argoproj.io", "twos.argoproj.io"]);
    assert_eq!(state.0["ones.argoproj.io"], "name: ones.argoproj.io\n# as it is\n");
    assert_eq!(state.1, 2, "it asks until they are served");
}

#[tokio::test]
async fn what_is_there_already_is_left_as_it_is() {
    let (_, client) = server().await;
    let folder = folder(&[("one.yaml", "name: ones.argoproj.io\n")]);
    define(&client, &[], folder.path(), &[]).await.unwrap();
    define(&client, &[], folder.path(), &[]).await.unwrap();
}

#[tokio::test]
async fn a_refusal_and_an_empty_folder_are_told() {
    let (_, client) = server().await;
    let bad = folder(&[("one.yaml", "name: bad.argoproj.io\n")]);
    let error = define(&client, &[], bad.path(), &[]).await.unwrap_err();
    assert!(
        format!("{error:#}")
            .starts_with(&format!("create definitions of {}: create a definition: ", bad.path().display())),
        "{error:#}"
    );
    let empty = folder(&[("kustomization.yaml", "resources: []\n")]);
    let error = define(&client, &[], empty.path(), &[]).await.unwrap_err();
    assert_eq!(error.to_string(), format!("read definitions of {}: there are none", empty.path().display()));
}
