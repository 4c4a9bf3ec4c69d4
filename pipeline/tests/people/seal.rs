//! Secrets that are sealed where they are typed: that they open again is tested where sealing stands.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use loadtest::sim::server::serve;
use serde_json::json;

use crate::app_proxy::AppProxy;
use crate::desk::{Desk, told};

const CERTIFICATE: &str = include_str!("../../seal/tests/seal/controller.pem");
const SECRET: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: shop}
stringData: {password: canary-of-a-secret}
";

fn is_sealed(out: &str) {
    assert!(out.contains("kind: SealedSecret\n") && out.contains("    password: "), "{out}");
    assert!(!out.contains("canary"), "{out}");
}

#[tokio::test]
async fn a_secret_is_sealed_here_with_the_certificate_of_the_runtime() {
    let (desk, proxy) = (Desk::signed_in().await, AppProxy::start().await);
    proxy.answers("sealingCertificate", &[json!({"pem": CERTIFICATE})]);
    let base = ["seal", "--runtime", "prod", "--app-proxy", &proxy.url];
    is_sealed(&desk.typed(&base, SECRET).await.done());
    let file = desk.file("secret.yaml");
    std::fs::write(&file, SECRET).unwrap();
    let of_a_file = [&base[..], &["-f", "secret.yaml", "--scope", "cluster"]].concat();
    let sealed = desk.run(&of_a_file).await.done();
    is_sealed(&sealed);
    assert_eq!(sealed.matches("sealedsecrets.bitnami.com/cluster-wide: \"true\"").count(), 2, "{sealed}");
    let asked = proxy.asked();
    assert!(
        asked.iter().all(|(field, variables, _)| (&**field, variables) == ("sealingCertificate", &json!({})))
    );
    assert_eq!(asked.len(), 2, "the Secret stays here");
    let missing = desk.run(&[&base[..], &["-f", "none.yaml"]].concat()).await.refused();
    let said = "cannot read the Secret of none.yaml: No such file or directory (os error 2)";
    assert_eq!(missing, (1, told(said)));
    proxy.refuses("sealingCertificate", "this runtime is not told of a controller of sealed-secrets");
    let host = proxy.url.strip_prefix("http://").unwrap();
    let said = format!(
        "cannot fetch the certificate at {host}: this runtime is not told of a controller of sealed-secrets"
    );
    assert_eq!(desk.typed(&base, SECRET).await.refused(), (1, told(&said)));
    desk.stop().await;
}

#[tokio::test]
async fn with_a_certificate_of_ones_own_nobody_is_signed_in_to() {
    let desk = Desk::start().await;
    std::fs::write(desk.file("cert.pem"), CERTIFICATE).unwrap();
    let seal = async |cert: &str, secret: &str| desk.typed(&["seal", "--cert", cert], secret).await;
    is_sealed(&seal("cert.pem", SECRET).await.done());
    let routes = Router::new().route("/v1/cert.pem", get(async || CERTIFICATE));
    let routes = routes.route("/closed", get(async || StatusCode::FORBIDDEN));
    let url = serve(routes).await.unwrap();
    let host = url.strip_prefix("http://").unwrap();
    is_sealed(&seal(&format!("{url}/v1/cert.pem"), SECRET).await.done());
    let closed = seal(&format!("{url}/closed"), SECRET).await.refused();
    let said =
        format!("cannot fetch the certificate at {host}: it answered 403: is that where its certificate is?");
    assert_eq!(closed, (1, told(&said)));
    std::fs::write(desk.file("other.pem"), "canary").unwrap();
    let none =
        "that is no certificate in PEM: give what the controller of sealed-secrets serves at /v1/cert.pem";
    assert_eq!(seal("other.pem", SECRET).await.refused(), (1, told(none)));
    let kind = "that is no Secret: its apiVersion is to be v1, its kind Secret";
    assert_eq!(seal("cert.pem", "canary: 1").await.refused(), (2, told(kind)));
    let base64 = "a value under data is no base64: put plain texts under stringData";
    let plain = SECRET.replace("stringData", "data");
    assert_eq!(seal("cert.pem", &plain).await.refused(), (2, told(base64)));
    let other = desk.typed(&["seal", "--cert", "cert.pem", "--namespace", "ci"], SECRET).await.refused();
    let said = "metadata.namespace is another namespace than the Secret is to be sealed for";
    assert_eq!(other, (2, told(said)));
    let unsigned = desk.typed(&["seal"], SECRET).await;
    assert_eq!(unsigned.code, 1, "without a certificate somebody has to be asked: {unsigned:?}");
    desk.stop().await;
}
