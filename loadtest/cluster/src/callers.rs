//! Who is let in by the source server as the chart installs it, with the account and the rights that it renders, on a real API
//! server that is asked whose a token is.
//!
//! takes: what the chart renders - gives: what is wrong with who is let in
//! calls: kubectl, which makes the accounts and their rights; the API server for tokens; the source server as a process - fails:
//! when any of them cannot be asked

use std::path::Path;

use anyhow::Context as _;
use loadtest_sim::process::{Process, Start};
use loadtest_sim::{PATIENCE, local_client};
use serde_json::{Value, json};

use super::control::Control;

/// What the accounts and their rights are.
const KINDS: [&str; 5] = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
const NAMESPACE: &str = "runtime";
const REPORTER: &str = "prod-gitops-runtime-reporter";
const SERVER: &str = "prod-gitops-runtime-source-server";

/// The documents that make accounts and rights, of what is rendered.
pub(super) fn rights(rendered: &str) -> String {
    let is_wanted = |document: &&str| {
        let kind = document.lines().find_map(|line| line.strip_prefix("kind: "));
        kind.is_some_and(|kind| KINDS.contains(&kind.trim()))
    };
    rendered.split("\n---\n").filter(is_wanted).collect::<Vec<_>>().join("\n---\n")
}

/// What is wrong with whom it lets in; the accounts are there.
pub(super) async fn judge(
    program: &Path,
    control: &Control,
    rendered: &str,
    folder: &Path,
) -> anyhow::Result<Vec<String>> {
    let folder = folder.join("source-server");
    tokio::fs::create_dir_all(&folder).await.context("make a folder for the source server")?;
    let config = folder.join("config.yaml");
    tokio::fs::write(&config, settings(rendered)?)
        .await
        .context("write the settings of the source server")?;
    let own = control.account(NAMESPACE, SERVER).await?;
    let kubeconfig = folder.join("kubeconfig");
    control.kubeconfig(SERVER, &own, &kubeconfig).await?;
    let set = [
        "sourceServer.listen=127.0.0.1:0".to_owned(),
        // There is no platform here, and no volume.
        "sourceServer.versions.askPlatform=false".to_owned(),
        format!("sourceServer.git.repositories.directory={}", folder.join("clones").display()),
        format!("kubernetes.kubeconfig={}", kubeconfig.display()),
    ];
    let args = ["source-server".as_ref(), "--config".as_ref(), config.as_os_str()];
    let mut process = Process::start(&Start::with_settings(program, args, set, &folder))?;
    let address = process.address(PATIENCE).await?;
    let reporter = control.account(NAMESPACE, REPORTER).await?;
    // What is asked is no question, which only those are told who may ask.
    let let_in = (400, "the query is no question: /openapi.json describes it");
    let refused = (403, "whoever has this token may not ask here");
    let mut wrong = Vec::new();
    let not_for =
        (403, "whoever asks may not ask for commit: sourceServer.callers says who may ask for what");
    for (who, token, what, expected) in [
        ("the reporter", Some(reporter.as_str()), "manifests", let_in),
        ("the reporter, of a commit,", Some(reporter.as_str()), "commit", not_for),
        ("another account", Some(own.as_str()), "manifests", refused),
        ("a token that nobody made", Some("not.a.token"), "manifests", refused),
        ("nobody", None, "manifests", (401, "no token: send it as authorization: Bearer TOKEN")),
    ] {
        let (status, why) = ask(&format!("http://{address}/v1/{what}"), token).await?;
        if (status, why.as_str()) != expected {
            wrong
                .push(format!("{who} is answered {status} ({why}), and not {} ({})", expected.0, expected.1));
        }
    }
    process.stop_cleanly("the source server").await?;
    Ok(wrong)
}

/// The settings that the chart renders for it.
fn settings(rendered: &str) -> anyhow::Result<String> {
    for document in rendered.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(document).unwrap_or_default();
        if object["kind"] == "ConfigMap" && object["metadata"]["name"] == json!(SERVER) {
            let settings = object["data"]["config.yaml"].as_str();
            return settings.map(str::to_owned).context("find the settings of the source server");
        }
    }
    anyhow::bail!("the chart renders no settings of the source server")
}

/// Status and error of an answer.
async fn ask(url: &str, token: Option<&str>) -> anyhow::Result<(u16, String)> {
    let client = local_client().timeout(PATIENCE).build().context("make a client")?;
    let request = client.get(url);
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    let answer = request.send().await.context("ask the source server")?;
    let status = answer.status().as_u16();
    let told: Value = answer.json().await.context("read what the source server answers")?;
    Ok((status, told["error"].as_str().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{rights, settings};

    const RENDERED: &str = "---\n# Source: a\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n---\napiVersion: v1\nkind: \
                            ConfigMap\nmetadata: {name: prod-gitops-runtime-source-server}\ndata: {config.yaml: \"x: 1\"}\n---\napiVersion: \
                            rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: b}\nrules: []";

    #[test]
    fn accounts_and_rights_are_made_and_nothing_else() {
        let found = rights(RENDERED);
        assert_eq!(found.matches("kind: ").count(), 2, "{found}");
        assert!(found.contains("kind: ServiceAccount") && found.contains("kind: ClusterRole"), "{found}");
    }

    #[test]
    fn the_settings_are_those_of_the_chart() {
        assert_eq!(settings(RENDERED).unwrap(), "x: 1");
        let refused = settings("kind: Secret").unwrap_err().to_string();
        assert_eq!(refused, "the chart renders no settings of the source server");
    }
}
