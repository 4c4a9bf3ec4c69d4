//! Credentials that a plug-in of the kubeconfig gives, and fails to give: what it was told and what it said is
//! for nobody else.

use std::path::Path;

use pipeline_core::{Key, Reason, Source as _, Version};
use serde_json::json;
use stages_kube::{Cluster, Config};

use crate::fake::{Answer, Fake, app};
use crate::harness::build;
use crate::reach::refused;
use crate::said::Log;

const CANARY: &str = "canary-hunter2";
/// Runs out at once, so that the next request asks the plug-in again.
const EXPIRED: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"s3same","expirationTimestamp":"2020-01-01T00:00:00Z"}}"#;

/// A kubeconfig whose user is what the plug-in `command` prints.
fn kubeconfig(directory: &Path, server: &str, command: &[&str]) -> Config {
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": command[0], "args": command[1..], "env": [{"name": "KEY", "value": CANARY}],
    });
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"exec": exec}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "me"}}],
    });
    let path = directory.join("kubeconfig");
    std::fs::write(&path, text.to_string()).unwrap();
    Config { cluster: Cluster::Kubeconfig { path: Some(path), context: None }, ..crate::harness::usual() }
}

#[tokio::test]
async fn a_plug_in_that_fails_at_the_start_is_not_quoted() {
    let (log, _guard) = Log::start();
    let directory = tempfile::tempdir().unwrap();
    let broken = format!("echo 'status: {{token: {CANARY}'; echo ' : :'");
    for (command, what) in [
        (
            vec!["sh", "-c", "echo $KEY; echo $KEY >&2; exit 1"],
            "the exec plug-in of the kubeconfig failed, run its command by hand",
        ),
        (vec!["sh", "-c", &broken], "what the exec plug-in of the kubeconfig printed cannot be read"),
        (vec!["/nowhere/plug-in", CANARY], "the exec plug-in of the kubeconfig cannot be started"),
    ] {
        let config = kubeconfig(directory.path(), "http://127.0.0.1:1", &command);
        assert_eq!(refused(config).await, format!("kubernetes credentials cannot be had: {what}"));
    }
    assert!(!log.text().contains(CANARY), "{}", log.text());
}

#[tokio::test]
async fn a_plug_in_that_fails_later_is_not_quoted() {
    let (log, _guard) = Log::start();
    let fake = Fake::start(|_| Answer::Json(app("home", "a", "u1", 1))).await;
    let directory = tempfile::tempdir().unwrap();
    let allowed = directory.path().join("allowed");
    std::fs::write(&allowed, "").unwrap();
    let script = format!(
        "test -e {} && echo '{EXPIRED}' || {{ echo $KEY; echo $KEY >&2; exit 1; }}",
        allowed.display()
    );
    let config = kubeconfig(directory.path(), &format!("http://{}", fake.address), &["sh", "-c", &script]);
    let (watch, _, _) = build(config).await;
    let key = Key::new("home", "a").unwrap();
    assert!(watch.read(&key, Version(1)).await.unwrap().is_some());
    std::fs::remove_file(&allowed).unwrap();
    let error = watch.read(&key, Version(1)).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Unauthorized);
    assert_eq!(
        error.to_string(),
        "get widget: the credentials cannot be had: \
         the exec plug-in of the kubeconfig failed, run its command by hand"
    );
    assert!(!format!("{error:?}").contains(CANARY), "{error:?}");
    assert!(!log.text().contains(CANARY), "{}", log.text());
    assert_eq!(fake.asked("get").len(), 1, "nothing is sent without credentials");
    std::fs::write(&allowed, "").unwrap();
    assert!(watch.read(&key, Version(1)).await.unwrap().is_some(), "they may be had again");
}
