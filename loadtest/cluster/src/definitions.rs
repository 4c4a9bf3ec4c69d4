//! The definitions of Argo's kinds, created as their modules ship them.
//!
//! takes: a folder of YAML files, a CustomResourceDefinition each - gives: kinds that are served
//! calls: the API server, which reads the YAML itself: megabytes of it that nothing here has to understand - fails: when
//! it refuses one, or does not serve its kind within 60 s

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::http::{Request, StatusCode};
use serde_json::Value;
use tokio::time::{sleep, timeout};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=cluster";
/// The group of all of them, with its version.
const GROUP: &str = "argoproj.io";
const SERVED: &str = "/apis/argoproj.io/v1alpha1";
/// The answer without the definition itself.
const NAME_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const SERVED_WITHIN: Duration = Duration::from_secs(300);
const ASK: Duration = Duration::from_millis(50);

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
    match timeout(SERVED_WITHIN, served).await {
        Ok(()) => Ok(()),
        Err(_) => bail!("wait for {}: not all of them are served after {SERVED_WITHIN:?}", names.join(", ")),
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
    let Ok(request) = Request::get(SERVED).body(Vec::new()) else { return false };
    let Ok(list) = client.request::<Value>(request).await else { return false };
    let resources = list.get("resources").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let plurals: Vec<_> = resources.iter().filter_map(|one| one.get("name")?.as_str()).collect();
    names.iter().all(|name| {
        name.split_once('.').is_some_and(|(plural, group)| group == GROUP && plurals.contains(&plural))
    })
}

#[cfg(test)]
mod tests;
