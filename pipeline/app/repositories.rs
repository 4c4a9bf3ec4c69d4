//! What repositories are asked with, read of the cluster: Argo CD's Secrets and its ConfigMaps of certificates and SSH hosts, only
//! where the settings say so, and again every half minute.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use pipeline_core::Shutdown;
use prometheus::Registry;
use serde_json::Value;
use stages_git::remote::{Access, Credential, Credentials, KnownHosts, SECRET_TYPE};
use stages_git::{Checkouts, GitSeries};
use stages_kube::{Reader, Right, Scope};

use super::build;
use crate::config::{Config, Repositories};

const CERTIFICATES: &str = "argocd-tls-certs-cm";
const HOSTS: &str = "argocd-ssh-known-hosts-cm";
const EVERY: Duration = Duration::from_secs(30);

/// What reading them needs to be allowed. Secrets can be found by their label only by whoever may list them.
pub(super) fn rights(config: &Config, of: &Repositories) -> Vec<Right> {
    let scope = || Scope::Namespace(config.kubernetes.namespace.to_string());
    let mut rights = Vec::new();
    if of.argocd_secrets {
        rights.push(Right {
            group: "",
            resource: "secrets",
            verbs: &["list"],
            names: Vec::new(),
            scope: scope(),
        });
    }
    if of.argocd_certificates {
        let names = vec![CERTIFICATES.to_owned(), HOSTS.to_owned()];
        rights.push(Right { group: "", resource: "configmaps", verbs: &["get"], names, scope: scope() });
    }
    rights
}

/// Opens the clones, in `otherwise` where the settings name no directory, and gives what follows the credentials until `stop`.
pub(super) async fn open(
    config: &Config,
    of: &Repositories,
    otherwise: PathBuf,
    series: GitSeries,
    stop: &Shutdown,
) -> anyhow::Result<(Checkouts, BoxFuture<'static, ()>)> {
    let clones = stages_git::remote::Config { series, ..of.checkouts(otherwise) };
    let checkouts = Checkouts::new(clones).await.context("open the clones of repositories")?;
    let following = follow(config, of, checkouts.clone(), stop.clone()).await?;
    Ok((checkouts, following))
}

/// What fetches and walks are counted by, shown with all else that a process counts.
pub(super) fn counted(registry: &Registry) -> anyhow::Result<GitSeries> {
    let series = GitSeries::default();
    series.register(registry).context("count what is fetched")?;
    Ok(series)
}

/// Reads credentials once, and gives what reads them again until `stop`.
async fn follow(
    config: &Config,
    of: &Repositories,
    checkouts: Checkouts,
    stop: Shutdown,
) -> anyhow::Result<BoxFuture<'static, ()>> {
    let everywhere = match &*of.ca_file {
        Some(path) => {
            vec![tokio::fs::read_to_string(path).await.with_context(|| format!("read {}", path.display()))?]
        }
        None => Vec::new(),
    };
    if !of.argocd_secrets && !of.argocd_certificates {
        checkouts.set_access(Access { everywhere, ..Access::default() });
        return Ok(Box::pin(std::future::ready(())));
    }
    let cluster = ArgoCd {
        reader: build::watch(config).cluster.reader().await.context("find the cluster")?,
        namespace: config.kubernetes.namespace.to_string(),
        secrets: of.argocd_secrets,
        certificates: of.argocd_certificates,
        everywhere,
    };
    let (mut last, access) = cluster.read().await?;
    checkouts.set_access(access);
    Ok(Box::pin(async move {
        let following = async {
            let mut complained = false;
            loop {
                tokio::time::sleep(EVERY).await;
                match cluster.read().await {
                    Ok((now, access)) => {
                        complained = false;
                        if now != last {
                            checkouts.set_access(access);
                            last = now;
                            tracing::info!(
                                "other credentials or certificates of repositories are used from now on"
                            );
                        }
                    }
                    Err(error) if !std::mem::replace(&mut complained, true) => {
                        let error: &dyn std::error::Error = error.as_ref();
                        tracing::warn!(
                            error,
                            "what was read of the credentials of repositories stays in use"
                        );
                    }
                    Err(_) => {}
                }
            }
        };
        stop.run_until_cancelled(following).await;
    }))
}

struct ArgoCd {
    reader: Reader,
    namespace: String,
    secrets: bool,
    certificates: bool,
    everywhere: Vec<String>,
}

impl ArgoCd {
    /// What stands there now, and the versions of what it was read of, by which two readings are told apart.
    async fn read(&self) -> anyhow::Result<(Vec<String>, Access)> {
        let namespace = &self.namespace;
        let (mut versions, mut all) = (Vec::new(), Vec::new());
        if self.secrets {
            let path = format!(
                "/api/v1/namespaces/{namespace}/secrets?labelSelector=argocd.argoproj.io%2Fsecret-type%20in%20(repository%2Crepo-creds)"
            );
            let list = self.reader.get(&path).await.with_context(|| {
                format!("list the secrets of repositories in `{namespace}`: the service account needs `list` on secrets there")
            })?;
            for secret in list.iter().flat_map(|list| list["items"].as_array()).flatten() {
                versions.push(secret["metadata"]["resourceVersion"].to_string());
                all.extend(credential(namespace, secret));
            }
        }
        let (mut authorities, mut hosts) = (BTreeMap::new(), KnownHosts::default());
        if self.certificates {
            let map = self.config_map(CERTIFICATES, &mut versions).await?;
            for (host, pem) in map["data"].as_object().into_iter().flatten() {
                authorities.insert(host.clone(), pem.as_str().unwrap_or_default().to_owned());
            }
            let map = self.config_map(HOSTS, &mut versions).await?;
            hosts = KnownHosts::read(map["data"]["ssh_known_hosts"].as_str().unwrap_or_default());
        }
        let credentials = Credentials::new(all);
        Ok((versions, Access { credentials, hosts, authorities, everywhere: self.everywhere.clone() }))
    }

    /// A ConfigMap of Argo CD, nothing where there is none, and its version.
    async fn config_map(&self, name: &str, versions: &mut Vec<String>) -> anyhow::Result<Value> {
        let namespace = &self.namespace;
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        let map = self.reader.get(&path).await.with_context(|| {
            format!("read the configmap `{name}` in `{namespace}`: the service account needs `get` on it")
        })?;
        let map = map.unwrap_or_default();
        versions.push(map["metadata"]["resourceVersion"].to_string());
        Ok(map)
    }
}

fn credential(namespace: &str, secret: &Value) -> Option<Credential> {
    let metadata = &secret["metadata"];
    let data = secret["data"]
        .as_object()?
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), STANDARD.decode(value.as_str()?).ok()?)));
    let name = format!("{namespace}/{}", metadata["name"].as_str()?);
    Credential::of_argo_cd(&name, metadata["labels"][SECRET_TYPE].as_str()?, &data.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::credential;

    #[test]
    fn a_secret_of_argo_cd_is_a_credential_and_another_secret_is_none() {
        let mut secret = json!({
            "metadata": {"name": "team", "labels": {"argocd.argoproj.io/secret-type": "repo-creds"}},
            "data": {"url": "aHR0cHM6Ly9leGFtcGxlLmNvbQ==", "password": "aGlkZGVu"},
        });
        let found = credential("argocd", &secret).unwrap();
        assert_eq!(
            (&*found.from, &*found.url, found.is_prefix),
            ("the Secret argocd/team", "https://example.com", true)
        );
        secret["metadata"]["labels"] = json!({"argocd.argoproj.io/secret-type": "cluster"});
        assert!(credential("argocd", &secret).is_none());
    }
}
