//! What nobody gives is made once, against an API server that keeps versions as the real one does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pipeline_core::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use stages_kube::{Cluster, EnsureError, Generated};

const PATH: &str = "/api/v1/namespaces/runtime/secrets/prod-generated";

struct Secret {
    version: u64,
    data: BTreeMap<String, String>,
    /// Changes that were refused because another one was first.
    conflicts: u32,
    patched: u32,
    answer: Option<StatusCode>,
}

#[derive(Clone)]
struct Server(Arc<Mutex<Secret>>);

impl Server {
    fn new(data: &[(&str, &str)]) -> Self {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), STANDARD.encode(value))).collect();
        Self(Arc::new(Mutex::new(Secret { version: 1, data, conflicts: 0, patched: 0, answer: None })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Secret) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    async fn serve(&self) -> Cluster {
        let server = self.clone();
        let app = axum::Router::new().fallback(move |request: Request| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Cluster::Server { url, token: Some(SecretString::from("t")), token_file: None, ca_file: None }
    }

    async fn answer(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        assert_eq!(parts.uri.path(), PATH);
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        self.with(|secret| {
            if let Some(status) = secret.answer {
                return status.into_response();
            }
            if parts.method == Method::PATCH {
                assert_eq!(parts.headers["content-type"], "application/merge-patch+json");
                let change: Value = serde_json::from_slice(&body).unwrap();
                let version = secret.version.to_string();
                if change["metadata"]["resourceVersion"] != version.as_str() {
                    secret.conflicts += 1;
                    return StatusCode::CONFLICT.into_response();
                }
                for (key, value) in change["data"].as_object().unwrap() {
                    secret.data.insert(key.clone(), value.as_str().unwrap().to_owned());
                }
                secret.version += 1;
                secret.patched += 1;
            } else {
                assert_eq!(parts.method, Method::GET);
            }
            let metadata = json!({"name": "prod-generated", "resourceVersion": secret.version.to_string()});
            axum::Json(json!({"metadata": metadata, "data": secret.data})).into_response()
        })
    }
}

fn generated(keys: &[&str]) -> Generated {
    Generated {
        namespace: "runtime".to_owned(),
        name: "prod-generated".to_owned(),
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
    }
}

fn random() -> std::io::Result<SecretString> {
    Ok(SecretString::from(format!("canary-{:032x}", fastrand::u128(..))))
}

async fn ensure(cluster: &Cluster, keys: &[&str]) -> Result<BTreeMap<String, String>, EnsureError> {
    let values = generated(keys).ensure(cluster, random).await?;
    Ok(values.into_iter().map(|(key, value)| (key, value.expose_secret().to_owned())).collect())
}

#[tokio::test]
async fn replicas_that_begin_at_once_end_with_one_value() {
    let server = Server::new(&[]);
    let cluster = server.serve().await;
    let all = (0..8).map(|_| ensure(&cluster, &["nats-token", "redaction-key"]));
    let values: Vec<_> = futures::future::join_all(all).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(server.with(|secret| secret.patched), 1);
    assert!(values.iter().all(|other| *other == values[0]), "{values:?}");
    assert_ne!(values[0]["nats-token"], values[0]["redaction-key"]);
}

#[tokio::test]
async fn a_change_for_an_older_version_is_refused_and_read_again() {
    let server = Server::new(&[]);
    let cluster = server.serve().await;
    let other = server.clone();
    // Somebody else writes between what is read and what is written.
    let first = std::sync::atomic::AtomicBool::new(true);
    let values = generated(&["nats-token"])
        .ensure(&cluster, || {
            if first.swap(false, std::sync::atomic::Ordering::Relaxed) {
                other.with(|secret| {
                    secret.version += 1;
                    secret.data.insert("nats-token".to_owned(), STANDARD.encode("theirs"));
                });
            }
            random()
        })
        .await
        .unwrap();
    assert_eq!(values["nats-token"].expose_secret(), "theirs");
    assert_eq!(server.with(|secret| (secret.conflicts, secret.patched)), (1, 0));
}

#[tokio::test]
async fn what_is_there_stays_and_only_what_is_missing_is_made() {
    let server = Server::new(&[("redaction-key", "kept"), ("nats-token", "")]);
    let cluster = server.serve().await;
    let first = ensure(&cluster, &["nats-token", "redaction-key"]).await.unwrap();
    assert_eq!(first["redaction-key"], "kept");
    assert!(first["nats-token"].starts_with("canary-"));
    assert_eq!(ensure(&cluster, &["nats-token", "redaction-key"]).await.unwrap(), first);
    assert_eq!(server.with(|secret| secret.patched), 1);
}

#[tokio::test]
async fn each_refusal_says_what_to_do_and_no_value() {
    let server = Server::new(&[]);
    let cluster = server.serve().await;
    let said = async |status| {
        server.with(|secret| secret.answer = Some(status));
        ensure(&cluster, &["nats-token"]).await.unwrap_err().to_string()
    };
    assert_eq!(
        said(StatusCode::NOT_FOUND).await,
        "there is no secret `prod-generated` in `runtime`; the chart makes an empty one, and so does `kubectl create \
         secret generic prod-generated --namespace runtime`"
    );
    assert_eq!(
        said(StatusCode::FORBIDDEN).await,
        "the secret `prod-generated` in `runtime` may not be read and written: grant what `gitops-runtime rbac print \
         --role secrets --secret prod-generated` prints"
    );
    assert_eq!(
        said(StatusCode::INTERNAL_SERVER_ERROR).await,
        "cannot make what the secret `prod-generated` in `runtime` lacks"
    );
    let right = generated(&[]).right();
    assert_eq!((right.verbs, right.names), (&["get", "patch"][..], vec!["prod-generated".to_owned()]));
}
