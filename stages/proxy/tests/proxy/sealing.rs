//! Secrets that are sealed: that they open again is tested where they are sealed.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Value, json};
use stages_proxy::ProxyConfig;
use tokio::net::{TcpListener, TcpSocket};

use crate::support::{Running, SOON};

const CERTIFICATE: &str = include_str!("../../../../pipeline/seal/tests/seal/controller.pem");

/// What stands in Secrets that are sealed.
pub(crate) const VALUE: &str = "canary-of-a-secret";

/// A controller of sealed-secrets; gives its address.
pub(crate) async fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().route("/v1/cert.pem", get(async || CERTIFICATE));
    let routes = routes.route("/other/v1/cert.pem", get(async || (StatusCode::FORBIDDEN, "canary")));
    let routes = routes.route("/page/v1/cert.pem", get(async || "<html>canary</html>"));
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}

fn asked(secret: &str, namespace: &str) -> String {
    let (secret, namespace) = (json!(secret), json!(namespace));
    format!("mutation {{ sealSecret(args: {{secret: {secret}, namespace: {namespace}}}) {{ output }} }}")
}

#[tokio::test]
async fn a_secret_is_sealed_for_its_namespace_with_the_certificate_of_the_controller() {
    let running = Running::start().await;
    let shown = running.data(&running.admin, "{ sealingCertificate { pem } }").await;
    assert_eq!(shown["sealingCertificate"]["pem"], CERTIFICATE);
    let secret =
        "{apiVersion: v1, kind: Secret, metadata: {name: db}, stringData: {password: canary-of-a-secret}}";
    let sealed = running.data(&running.admin, &asked(secret, "shop")).await;
    let sealed = sealed["sealSecret"]["output"].as_str().unwrap();
    assert!(!sealed.contains("canary"), "{sealed}");
    let sealed: Value = serde_saphyr::from_str(sealed).unwrap();
    assert_eq!(sealed["kind"], "SealedSecret");
    assert_eq!(sealed["metadata"], json!({"name": "db", "namespace": "shop"}));
    assert!(sealed["spec"]["encryptedData"]["password"].is_string());
    let wrong = secret.replace("v1", "v2");
    let said = "that is no Secret: its apiVersion is to be v1, its kind Secret";
    running.wrong(&asked(&wrong, "shop"), said).await;
    let said = "that is no name of a namespace in Kubernetes";
    running.wrong(&asked(secret, "../x"), said).await;
    let row = |what: &str| ("ada".to_owned(), "sealSecret".to_owned(), what.to_owned());
    let recorded = running.audit(2).await;
    assert_eq!(recorded, [row("prod/shop: failed: BAD_REQUEST"), row("prod/shop: done")]);
}

#[tokio::test]
async fn without_a_controller_that_answers_it_is_said_what_to_set() {
    let controller = start().await;
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: db}, stringData: {a: b}}";
    let refused = async |url: Option<String>| {
        let http = stages_client::Config::new(SOON, 1 << 20);
        let sealed_secrets = url.map(|url| (url, http));
        let running = Running::made(Duration::ZERO, |config| ProxyConfig { sealed_secrets, ..config }).await;
        let of_certificate = running.refused(&running.admin, "{ sealingCertificate { pem } }").await;
        assert_eq!(running.refused(&running.admin, &asked(secret, "shop")).await, of_certificate);
        of_certificate
    };
    let told = |said: &str, code: &str| (said.to_owned(), code.to_owned());
    let none = "this runtime is not told of a controller of sealed-secrets: set appProxy.sealedSecrets.url";
    assert_eq!(refused(None).await, told(none, "BAD_REQUEST"));
    let other = "the controller of sealed-secrets refused to show its certificate (403): see appProxy.sealedSecrets.url: it is to be \
                 the controller's Service";
    assert_eq!(refused(Some(format!("{controller}/other"))).await, told(other, "PEER_REFUSED"));
    let page = "the controller of sealed-secrets answered what cannot be read";
    assert_eq!(refused(Some(format!("{controller}/page"))).await, told(page, "PEER_AWAY"));
    // Bound, so that nobody else is given the port, and not listening.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = taken.local_addr().unwrap();
    let (said, code) = refused(Some(format!("http://{closed}"))).await;
    assert!(said.starts_with("the controller of sealed-secrets did not show its certificate: "), "{said}");
    assert_eq!(code, "PEER_AWAY");
}
