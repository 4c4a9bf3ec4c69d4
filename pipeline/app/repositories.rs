//! What repositories are asked with: of files and of the settings themselves, and of the cluster, which is asked for Argo CD's
//! Secrets and its ConfigMaps of certificates and SSH hosts only where the settings say so. Files are looked at every two
//! seconds, the cluster every half minute.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pipeline_core::Shutdown;
use serde_json::Value;
use stages_git::remote::{Access, Credential, Credentials, KnownHosts, Projects, SECRET_TYPE};
use stages_git::{Checkouts, GitSeries};
use stages_kube::{Reader, Right, Scope};

use super::credential_files::CredentialFiles;
use super::{Following, build, nothing_to_follow};
use crate::config::{Config, Repositories};

const CERTIFICATES: &str = "argocd-tls-certs-cm";
const HOSTS: &str = "argocd-ssh-known-hosts-cm";
/// Where Argo CD has its settings.
const SETTINGS: &str = "argocd-cm";
/// How often files are looked at.
const FILES_EVERY: Duration = Duration::from_secs(2);
/// At every how many looks at files the cluster is asked: every half minute.
const CLUSTER_EVERY: u64 = 15;

/// What reading them needs to be allowed. Secrets can be found by their label only by whoever may list them; what these hold is used
/// for applications as their AppProjects say, which are listed as well.
pub(super) fn rights(config: &Config, of: &Repositories) -> Vec<Right> {
    let scope = Scope::Namespace(config.kubernetes.namespace.to_string());
    let right =
        |group, resource, verbs| Right { group, resource, verbs, names: Vec::new(), scope: scope.clone() };
    let (mut rights, mut names) = (Vec::new(), Vec::new());
    if of.argocd_secrets {
        rights.push(right("", "secrets", &["list"]));
        rights.push(right("argoproj.io", "appprojects", &["list"]));
        names.push(SETTINGS.to_owned());
    }
    if of.argocd_certificates {
        names.extend([CERTIFICATES.to_owned(), HOSTS.to_owned()]);
    }
    if !names.is_empty() {
        rights.push(Right { names, ..right("", "configmaps", &["get"]) });
    }
    rights
}

/// What was found in one place.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// Of what it was read of, by which two readings are told apart.
    pub(super) versions: Vec<String>,
    pub(super) credentials: Vec<Credential>,
    /// PEM by host.
    pub(super) authorities: BTreeMap<String, String>,
    /// PEM of authorities that are trusted for every host.
    pub(super) everywhere: Vec<String>,
    /// As in OpenSSH's `known_hosts`.
    pub(super) hosts: String,
    /// What AppProjects permit.
    pub(super) projects: Option<Projects>,
}

impl Found {
    /// Together with what was found elsewhere; of two credentials for one address its own holds.
    fn access(&self, other: &Self) -> Access {
        let credentials = self.credentials.iter().chain(&other.credentials).cloned().collect();
        Access {
            credentials: Credentials::new(credentials),
            hosts: KnownHosts::read(&format!("{}\n{}", self.hosts, other.hosts)),
            authorities: self
                .authorities
                .iter()
                .chain(&other.authorities)
                .map(|(host, pem)| (host.clone(), pem.clone()))
                .collect(),
            everywhere: self.everywhere.iter().chain(&other.everywhere).cloned().collect(),
            projects: self.projects.clone().or_else(|| other.projects.clone()),
        }
    }
}

/// Opens the clones, in `otherwise` where the settings name no directory, and gives what follows the credentials until `stop`.
pub(super) async fn open(
    config: &Config,
    of: &Repositories,
    otherwise: PathBuf,
    series: GitSeries,
    stop: &Shutdown,
) -> anyhow::Result<(Checkouts, Following)> {
    let clones = stages_git::remote::Config { series, ..of.checkouts(otherwise) };
    let checkouts = Checkouts::new(clones).await.context("open the clones of repositories")?;
    let following = follow(config, of, checkouts.clone(), stop.clone()).await?;
    Ok((checkouts, following))
}

/// Reads credentials once, and gives what reads them again until `stop`.
async fn follow(
    config: &Config,
    of: &Repositories,
    checkouts: Checkouts,
    stop: Shutdown,
) -> anyhow::Result<Following> {
    let cluster = match of.argocd_secrets || of.argocd_certificates {
        true => Some(ArgoCd {
            reader: build::watch(config).cluster.reader().await.context("find the cluster")?,
            namespace: config.kubernetes.namespace.to_string(),
            secrets: of.argocd_secrets,
            certificates: of.argocd_certificates,
        }),
        false => None,
    };
    read_again(CredentialFiles::new(of), cluster, checkouts, stop).await
}

/// Trusts the authorities of a file beside the system's, and gives what reads it again until `stop`.
pub(super) async fn trust(
    file: &Option<PathBuf>,
    checkouts: Checkouts,
    stop: Shutdown,
) -> anyhow::Result<Following> {
    match file.clone() {
        Some(file) => read_again(CredentialFiles::authorities(file), None, checkouts, stop).await,
        None => Ok(nothing_to_follow()),
    }
}

/// Reads what stands there once, and gives what reads it again until `stop`.
async fn read_again(
    files: CredentialFiles,
    cluster: Option<ArgoCd>,
    checkouts: Checkouts,
    stop: Shutdown,
) -> anyhow::Result<Following> {
    let mut here = files.read().await?;
    let mut there = match &cluster {
        Some(cluster) => cluster.read().await?,
        None => Found::default(),
    };
    checkouts.set_access(here.access(&there));
    if cluster.is_none() && !files.may_change() {
        return Ok(nothing_to_follow());
    }
    Ok(Box::pin(async move {
        let following = async {
            let mut complained = false;
            for turn in 1_u64.. {
                tokio::time::sleep(FILES_EVERY).await;
                let asked = cluster.as_ref().filter(|_| turn.is_multiple_of(CLUSTER_EVERY));
                let found = async {
                    let here = files.read().await?;
                    let there = match asked {
                        Some(cluster) => Some(cluster.read().await?),
                        None => None,
                    };
                    anyhow::Ok((here, there))
                };
                match found.await {
                    Ok((now, of_cluster)) => {
                        complained &= asked.is_none() && cluster.is_some();
                        let of_cluster = of_cluster.unwrap_or_else(|| there.clone());
                        if now.versions != here.versions || of_cluster.versions != there.versions {
                            (here, there) = (now, of_cluster);
                            checkouts.set_access(here.access(&there));
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
}

impl ArgoCd {
    /// What stands there now.
    async fn read(&self) -> anyhow::Result<Found> {
        let namespace = &self.namespace;
        let mut found = Found::default();
        if self.secrets {
            let path = format!(
                "/api/v1/namespaces/{namespace}/secrets?labelSelector=argocd.argoproj.io%2Fsecret-type%20in%20(repository%2Crepo-creds)"
            );
            let list = self.reader.get(&path).await.with_context(|| {
                format!("list the secrets of repositories in `{namespace}`: the service account needs `list` on secrets there")
            })?;
            for secret in list.iter().flat_map(|list| list["items"].as_array()).flatten() {
                found.versions.push(secret["metadata"]["resourceVersion"].to_string());
                found.credentials.extend(credential(namespace, secret));
            }
            let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/appprojects");
            let list = self.reader.get(&path).await.with_context(|| {
                format!("list the appprojects in `{namespace}`: the service account needs `list` on appprojects there")
            })?;
            let projects = list.as_ref().and_then(|list| list["items"].as_array()).map(Vec::as_slice);
            let projects = projects.unwrap_or_default();
            found.versions.extend(projects.iter().map(|of| of["metadata"]["resourceVersion"].to_string()));
            let settings = self.config_map(SETTINGS, &mut found.versions).await?;
            let global = settings["data"]["globalProjects"].as_str().unwrap_or_default();
            found.projects = Some(Projects::read(namespace, projects, global));
        }
        if self.certificates {
            let map = self.config_map(CERTIFICATES, &mut found.versions).await?;
            for (host, pem) in map["data"].as_object().into_iter().flatten() {
                found.authorities.insert(host.clone(), pem.as_str().unwrap_or_default().to_owned());
            }
            let map = self.config_map(HOSTS, &mut found.versions).await?;
            map["data"]["ssh_known_hosts"].as_str().unwrap_or_default().clone_into(&mut found.hosts);
        }
        Ok(found)
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
    use std::sync::{Arc, Mutex};

    use axum::extract::{Path, State};
    use axum::routing::get;
    use axum::{Json, Router};
    use serde_json::{Value, json};

    use super::{ArgoCd, credential};
    use crate::config::{Config, Given, Variables};

    const KEY: &str =
        "git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

    /// The ConfigMaps of an API server.
    type Maps = Arc<Mutex<Value>>;

    async fn config_map(
        State(maps): State<Maps>,
        Path(name): Path<String>,
    ) -> Result<Json<Value>, axum::http::StatusCode> {
        maps.lock().unwrap().get(&name).cloned().map(Json).ok_or(axum::http::StatusCode::NOT_FOUND)
    }

    #[tokio::test]
    async fn authorities_and_the_keys_of_hosts_are_those_of_argo_cds_config_maps() {
        let maps: Maps = Arc::new(Mutex::new(json!({})));
        let router = Router::new()
            .route("/api/v1/namespaces/argocd/configmaps/{name}", get(config_map))
            .with_state(maps.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        stages_client::install_crypto();
        let token = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(token.path(), "any").unwrap();
        let flags = [
            ("kubernetes.server", server.as_str()),
            ("kubernetes.namespace", "argocd"),
            ("kubernetes.tokenFile", token.path().to_str().unwrap()),
        ];
        let flags = flags.map(|(path, text)| (path.to_owned(), "--set".to_owned(), text.to_owned())).to_vec();
        let config = Config::load_given(&Given { file: None, flags }, &Variables::new()).unwrap();
        let argocd = ArgoCd {
            reader: super::build::watch(&config).cluster.reader().await.unwrap(),
            namespace: "argocd".to_owned(),
            secrets: false,
            certificates: true,
        };
        let none = argocd.read().await.unwrap();
        assert_eq!((none.authorities.len(), none.hosts.as_str()), (0, ""), "neither is there");
        *maps.lock().unwrap() = json!({
            "argocd-tls-certs-cm": {
                "metadata": {"resourceVersion": "7"}, "data": {"git.example.com": "a certificate"},
            },
            "argocd-ssh-known-hosts-cm": {"metadata": {"resourceVersion": "8"}, "data": {"ssh_known_hosts": KEY}},
        });
        let found = argocd.read().await.unwrap();
        assert_ne!(found.versions, none.versions, "they are told apart");
        assert_eq!(found.authorities["git.example.com"], "a certificate");
        assert_eq!(found.hosts, KEY);
        let access = found.access(&none);
        assert_eq!(access.authorities["git.example.com"], "a certificate");
        assert!(access.hosts.knows("git.example.com", 22) && !access.hosts.knows("other.example.com", 22));
    }

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
