//! What is sealed, opened with the private key of a controller: this side of it is written here, and knows nothing of the other.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod opened;

use pipeline_seal::{Certificate, Scope, SealError, seal};
use serde_json::{Value, json};

use crate::opened::open;

pub(crate) const CERTIFICATE: &str = include_str!("controller.pem");

fn certificate() -> Certificate {
    Certificate::read(CERTIFICATE).unwrap()
}

fn sealed(secret: &Value, namespace: Option<&str>, scope: Option<Scope>) -> Value {
    let text = seal(&secret.to_string(), namespace, scope, &certificate()).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn secret(more: &Value) -> Value {
    let mut secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}});
    secret.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    secret
}

fn value<'a>(sealed: &'a Value, key: &str) -> &'a str {
    sealed["spec"]["encryptedData"][key].as_str().unwrap()
}

#[test]
fn every_value_opens_with_the_private_key_and_the_label_of_its_place() {
    let long = "x".repeat(100_000);
    let given = secret(&json!({
        "data": {"user": "YWRh", "both": "b2xk", "none": "", "folded": "YW\nRh"},
        "stringData": {"password": "geheim \u{1f511}", "both": "new", "long": long},
    }));
    let sealed = sealed(&given, None, None);
    let all = [
        ("user", "ada"),
        ("both", "new"),
        ("none", ""),
        ("folded", "ada"),
        ("password", "geheim \u{1f511}"),
        ("long", &long),
    ];
    assert_eq!(sealed["spec"]["encryptedData"].as_object().unwrap().len(), all.len());
    for (key, plain) in all {
        assert_eq!(open(value(&sealed, key), "shop/db").as_deref(), Some(plain.as_bytes()), "{key}");
        assert_eq!(open(value(&sealed, key), "shop/other"), None, "{key} opens at another place");
    }
    let again = self::sealed(&given, None, None);
    assert_ne!(value(&again, "user"), value(&sealed, "user"), "a session key is used once");
}

#[test]
fn the_scope_says_where_it_opens_and_stands_in_the_annotations() {
    let data = json!({"stringData": {"a": "b"}});
    for (scope, label, annotation) in [
        (Scope::Strict, "shop/db", None),
        (Scope::Namespace, "shop", Some("sealedsecrets.bitnami.com/namespace-wide")),
        (Scope::Cluster, "", Some("sealedsecrets.bitnami.com/cluster-wide")),
    ] {
        let made = sealed(&secret(&data), None, Some(scope));
        assert_eq!(open(value(&made, "a"), label).as_deref(), Some(&b"b"[..]), "{scope:?}");
        let annotations = annotation.map_or(Value::Null, |key| json!({key: "true"}));
        assert_eq!(made["metadata"]["annotations"], annotations);
        assert_eq!(made["spec"]["template"]["metadata"]["annotations"], annotations);
        // What the annotations of a Secret say holds where nothing else is said.
        let metadata = json!({"name": "db", "namespace": "shop", "annotations": annotations});
        let of_itself = sealed(&secret(&json!({"metadata": metadata, "stringData": {"a": "b"}})), None, None);
        assert_eq!(open(value(&of_itself, "a"), label).as_deref(), Some(&b"b"[..]), "{scope:?}");
        let strict = sealed(
            &secret(&json!({"metadata": metadata, "stringData": {"a": "b"}})),
            None,
            Some(Scope::Strict),
        );
        assert_eq!(strict["spec"]["template"]["metadata"].get("annotations"), None);
    }
}

#[test]
fn what_a_secret_is_beside_its_values_stands_in_the_template() {
    let text = "\
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
immutable: true
metadata:
  name: web.tls
  creationTimestamp: null
  uid: 1234
  labels: {team: shop}
  annotations:
    note: kept
    kubectl.kubernetes.io/last-applied-configuration: '{\"stringData\": {\"tls.key\": \"canary\"}}'
stringData: {tls.key: canary}
";
    let made = seal(text, Some("shop"), None, &certificate()).unwrap();
    assert!(!made.contains("canary"), "{made}");
    let mut made: Value = serde_saphyr::from_str(&made).unwrap();
    let data = made["spec"].as_object_mut().unwrap().remove("encryptedData").unwrap();
    assert_eq!(open(data["tls.key"].as_str().unwrap(), "shop/web.tls").as_deref(), Some(&b"canary"[..]));
    let expected = json!({
        "apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
        "metadata": {"name": "web.tls", "namespace": "shop"},
        "spec": {"template": {
            "type": "kubernetes.io/tls", "immutable": true,
            "metadata": {"name": "web.tls", "namespace": "shop", "labels": {"team": "shop"}, "annotations": {"note": "kept"}},
        }},
    });
    assert_eq!(made, expected);
}

#[test]
fn empty_documents_around_a_secret_are_none() {
    let text = secret(&json!({"stringData": {"a": "b"}})).to_string();
    for around in [("", "\n---\n"), ("---\n", "\n---\n# end\n---\n")] {
        assert!(
            seal(&format!("{}{text}{}", around.0, around.1), None, None, &certificate()).is_ok(),
            "{around:?}"
        );
    }
}

#[test]
fn what_cannot_be_sealed_is_refused_and_nothing_of_it_told() {
    let refused = |text: &str, namespace: Option<&str>| {
        let error = seal(text, namespace, None, &certificate()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        error.to_string()
    };
    let of = |more: Value| refused(&secret(&more).to_string(), None);
    let unread = "the Secret cannot be read: it is neither YAML nor JSON of one object";
    assert_eq!(refused("canary: [", None), unread);
    assert_eq!(refused("a: canary\n---\nb: canary\n", None), unread);
    let kind = "that is no Secret: its apiVersion is to be v1, its kind Secret";
    assert_eq!(refused("canary", None), kind);
    assert_eq!(of(json!({"kind": "ConfigMap", "data": {"a": "canary"}})), kind);
    let name = "metadata.name is to be the name of a Secret in Kubernetes";
    for wrong in [Value::Null, json!("Canary"), json!("shop/canary"), json!("-canary")] {
        assert_eq!(of(json!({"metadata": {"name": wrong, "namespace": "shop"}})), name);
    }
    let namespace = "a namespace is needed: give it in metadata.namespace, or beside the Secret";
    for wrong in ["", "a.canary", "Canary"] {
        assert_eq!(of(json!({"metadata": {"name": "db", "namespace": wrong}})), namespace);
    }
    let other = "metadata.namespace is another namespace than the Secret is to be sealed for";
    assert_eq!(refused(&secret(&json!({"stringData": {"a": "canary"}})).to_string(), Some("ci")), other);
    let empty = "the Secret has no value under data or stringData: there is nothing to seal";
    assert_eq!(of(json!({"data": {}})), empty);
    let base64 = "a value under data is no base64: put plain texts under stringData";
    assert_eq!(of(json!({"data": {"a": "canary!"}})), base64);
    let text = "a value under data or stringData is no text";
    assert_eq!(of(json!({"data": {"a": {"b": "canary"}}})), text);
    assert_eq!(of(json!({"stringData": {"a": 7}})), text);
    let texts: serde_json::Map<_, _> = (0..1_001).map(|n| (format!("canary{n}"), json!(""))).collect();
    assert_eq!(of(json!({"stringData": texts})), "the Secret has more than 1000 values: make several of it");
    let long = "the Secret is longer than 1 MiB, which Kubernetes does not keep";
    assert_eq!(refused(&"canary".repeat(200_000), None), long);
}

#[test]
fn a_certificate_that_is_none_or_has_ended_is_refused() {
    let refused = |pem: &str| Certificate::read(pem).unwrap_err().to_string();
    let none =
        "that is no certificate in PEM: give what the controller of sealed-secrets serves at /v1/cert.pem";
    let broken = CERTIFICATE.replacen("MII", "AAA", 1);
    for wrong in ["", "<html>", include_str!("controller.key"), &broken] {
        assert_eq!(refused(wrong), none);
    }
    let curve =
        "the certificate's key is none of RSA with at most 4096 bits, which sealed-secrets seals with";
    assert_eq!(refused(include_str!("curve.pem")), curve);
    let several = format!("a text before\n{CERTIFICATE}{}", include_str!("curve.pem"));
    assert!(Certificate::read(&several).is_ok(), "the first counts");
    let holds = |at: &str| certificate().holds(at.parse().unwrap());
    assert_eq!(holds("2100-01-01T00:00:00Z"), Ok(()));
    let ended = holds("2200-01-01T00:00:00Z").unwrap_err();
    assert!(matches!(ended, SealError::Ended(_)));
    let said = ended.to_string();
    assert!(
        said.starts_with("the certificate has ended on 2126-")
            && said.ends_with(": fetch the controller's newest"),
        "{said}"
    );
}
