//! What Argo CD needs in the cluster before it starts, and the tokens of its accounts afterwards.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::ArgoCd;
use super::client::Client;
use crate::definitions::{define, unchecked};
use crate::objects::{Objects, Reference};
use loadtest_sim::PATIENCE;

const ASK: Duration = Duration::from_millis(20);
/// Applies the definitions and settings as Argo CD ships them, and this cluster's own settings on top.
pub(super) async fn install(client: &kube::Client, objects: &Objects, share: &Path) -> anyhow::Result<()> {
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}\n", ArgoCd::NAMESPACE);
    objects.apply(&namespace, ArgoCd::NAMESPACE).await.context("make the namespace of Argo CD")?;
    let (definitions, settings) = (share.join("crds"), share.join("config"));
    // Hardly any is made here: Argo CD's own definition is a megabyte that the API server takes seconds and a hundred megabytes to
    // understand.
    let sets = unchecked("argoproj.io", "ApplicationSet", "applicationsets", &["v1alpha1"], true).to_string();
    let given = [sets.as_str()];
    let define = define(client, &given, &definitions, &["applicationset-crd.yaml"]);
    futures::try_join!(define, objects.apply_folder(&settings, ArgoCd::NAMESPACE))
        .context("install Argo CD")?;
    for (name, data) in own() {
        let reference = Reference::new("v1", "ConfigMap", Some(ArgoCd::NAMESPACE), name);
        objects
            .patch(&reference, &json!({ "data": data }), None)
            .await
            .with_context(|| format!("set {name}"))?;
    }
    Ok(())
}

/// The accounts and their rights.
fn own() -> [(&'static str, Value); 2] {
    let account = format!("accounts.{}", ArgoCd::REPORTER);
    let policy =
        format!("p, role:reporter, applications, get, */*, allow\ng, {}, role:reporter\n", ArgoCd::REPORTER);
    [
        ("argocd-cm", json!({ account: "apiKey" })),
        // Without a default role, an account may do what stands here and nothing else.
        ("argocd-rbac-cm", json!({ "policy.csv": policy, "policy.default": "" })),
    ]
}

/// Logs in with the password that Argo CD made for its administrator, and makes a token for the reporter: a token of
/// the administrator, and one of the reporter.
pub(super) async fn tokens(
    objects: &Objects,
    http: &reqwest::Client,
    url: &str,
) -> anyhow::Result<(String, String)> {
    let secret = Reference::new("v1", "Secret", Some(ArgoCd::NAMESPACE), "argocd-initial-admin-secret");
    let secret = objects.get(&secret).await?.context("find the password of the administrator of Argo CD")?;
    let password = secret.pointer("/data/password").and_then(Value::as_str);
    let password =
        password.and_then(|text| STANDARD.decode(text).ok()).and_then(|bytes| String::from_utf8(bytes).ok());
    let password = password.context("read the password of the administrator of Argo CD")?;

    let nobody = Client::new(http.clone(), url, "");
    let login = json!({ "username": ArgoCd::ADMIN, "password": password });
    let admin = token(&nobody.post("/api/v1/session", &login).await.context("log in to Argo CD")?)?;

    let client = Client::new(http.clone(), url, &admin);
    let path = format!("/api/v1/account/{}/token", ArgoCd::REPORTER);
    let asked = json!({ "name": ArgoCd::REPORTER, "id": "reporter", "expiresIn": 0 });
    let reporter = token(&client.post(&path, &asked).await.context("make a token of the reporter")?)?;

    let client = Client::new(http.clone(), url, &reporter);
    let known = async {
        while client.get("/api/v1/applications?name=none").await.is_err() {
            sleep(ASK).await;
        }
    };
    if timeout(PATIENCE, known).await.is_err() {
        bail!("wait until Argo CD knows the token of the reporter: it does not after {PATIENCE:?}");
    }
    Ok((admin, reporter))
}

fn token(answer: &Value) -> anyhow::Result<String> {
    answer.get("token").and_then(Value::as_str).map(str::to_owned).context("read the token that Argo CD gave")
}
