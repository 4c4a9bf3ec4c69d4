//! The definitions of others' kinds, created as their modules ship them.
//!
//! takes: a folder of YAML files, a CustomResourceDefinition each - gives: kinds that are served
//! calls: the API server, which reads the YAML itself: megabytes of it that nothing here has to understand - fails: when
//! it refuses one, or does not serve its kind within 60 s

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::http::{Request, StatusCode};
use loadtest_sim::PATIENCE;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=cluster";
/// The answer without the definition itself.
const NAME_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const ASK: Duration = Duration::from_millis(50);

/// The definition of a kind in namespaces of which nobody checks anything; what is stored is of the first version. Where it
/// `has_status`, that is written apart from the rest.
#[must_use]
pub fn unchecked(group: &str, kind: &str, plural: &str, versions: &[&str], has_status: bool) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let apart = if has_status { json!({"status": {}}) } else { json!({}) };
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": versions.first() == Some(name), "schema": schema, "subresources": apart,
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": versions.iter().map(version).collect::<Vec<_>>(),
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
        },
    })
}

/// Creates what is not there yet and waits until all of it is served. `given` comes first; a file of the folder whose
/// name is in `without` is left out.
pub(super) async fn define(
    client: &kube::Client,
    given: &[&str],
    folder: &Path,
    without: &[&str],
) -> anyhow::Result<()> {
    let act = || format!("read definitions of {}", folder.display());
    let mut entries = tokio::fs::read_dir(folder).await.with_context(act)?;
    let mut texts: Vec<Vec<u8>> = given.iter().map(|text| text.as_bytes().to_vec()).collect();
    while let Some(entry) = entries.next_entry().await.with_context(act)? {
        let name = entry.file_name();
        let name = name.to_str().with_context(act)?;
        if name.ends_with(".yaml") && name != "kustomization.yaml" && !without.contains(&name) {
            texts.push(tokio::fs::read(entry.path()).await.with_context(act)?);
        }
    }
    if texts.len() == given.len() {
        bail!("{}: there are none", act());
    }
    let names = futures::future::try_join_all(texts.into_iter().map(|text| create(client, text))).await;
    let names = names.with_context(|| format!("create definitions of {}", folder.display()))?;
    let served = async {
        while !all_served(client, &names).await {
            sleep(ASK).await;
        }
    };
    match timeout(PATIENCE, served).await {
        Ok(()) => Ok(()),
        Err(_) => bail!("wait for {}: not all of them are served after {PATIENCE:?}", names.join(", ")),
    }
}

/// Creates one definition and gives its name.
async fn create(client: &kube::Client, text: Vec<u8>) -> anyhow::Result<String> {
    let act = "create a definition";
    let request = Request::post(DEFINITIONS)
        .header("Content-Type", "application/yaml")
        .header("Accept", NAME_ONLY)
        .body(text)
        .context(act)?;
    let name = match client.request::<Value>(request).await {
        Ok(created) => created.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned),
        Err(kube::Error::Api(status)) if status.code == StatusCode::CONFLICT.as_u16() => {
            status.details.as_ref().map(|details| details.name.clone())
        }
        Err(error) => return Err(error).context(act),
    };
    name.context("read the name of a definition")
}

async fn all_served(client: &kube::Client, names: &[String]) -> bool {
    let groups: BTreeSet<&str> = names.iter().filter_map(|name| Some(name.split_once('.')?.1)).collect();
    let mut served = BTreeSet::new();
    for group in groups {
        for version in listed(client, &format!("/apis/{group}"), "versions", "groupVersion").await {
            let plurals = listed(client, &format!("/apis/{version}"), "resources", "name").await;
            served.extend(plurals.into_iter().map(|plural| format!("{plural}.{group}")));
        }
    }
    names.iter().all(|name| served.contains(name))
}

/// One text of each entry of a list that the API server gives; none while it does not.
async fn listed(client: &kube::Client, path: &str, list: &str, text: &str) -> Vec<String> {
    let Ok(request) = Request::get(path).body(Vec::new()) else { return Vec::new() };
    let Ok(answer) = client.request::<Value>(request).await else { return Vec::new() };
    let entries = answer.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(|entry| entry.get(text)?.as_str().map(str::to_owned)).collect()
}
