//! How the reporter asks what Git says: in this process, or of the source server, over HTTP or the bus.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use futures::future::BoxFuture;
use pipeline_core::{Requests, Shutdown, async_trait};
use prometheus::Registry;
use reqwest::Method;
use stages_argocd::sources::{Described, SourceFile, Sources, SourcesAt};
use stages_client::{Client, Fault, HttpError, Target, Token};
use stages_git::RepositoryUrl;
use stages_kube::Right;
use stages_source::{
    Asked, AskedSource, Directories, Fetched, Heard, HeardObject, Library, LibraryConfig, OneForAll, OverBus,
    PromotionTemplates, Repositories, VersionSources, Versions,
};

use super::{build, repositories};
use crate::config::{Config, SourcesFrom};

const ACT: &str = "ask the source server";
/// Bytes of an answer of the source server's: twice the files of an application.
const LARGEST: usize = 64 << 20;

/// What reading the credentials of repositories needs to be allowed.
pub(super) fn rights(config: &Config) -> Vec<Right> {
    repositories::rights(config, &config.source_server.git.repositories)
}

/// Answers from the repositories of the settings, and gives what follows their credentials until `stop`.
pub(super) async fn library(
    config: &Config,
    registry: &Registry,
    stop: &Shutdown,
) -> anyhow::Result<(Library, BoxFuture<'static, ()>)> {
    let settings = &config.source_server;
    let places = settings.repositories.iter();
    let directories: Vec<(&str, PathBuf)> =
        places.map(|place| (place.address.as_str(), place.directory.clone())).collect();
    let library = LibraryConfig {
        concurrency: settings.concurrency,
        timeout: *settings.timeout,
        cache_bytes: settings.cache.0,
    };
    let versions: Arc<dyn VersionSources> = match settings.asks_platform() {
        true => Arc::new(templates(config).await?),
        false => Arc::new(OneForAll(settings.version_source())),
    };
    let series = repositories::counted(registry)?;
    let directories = Directories::new(directories).counted(series.clone());
    if !settings.git.is_used() {
        let following = Box::pin(std::future::ready(()));
        return Ok((library.build(Arc::new(directories), versions), following));
    }
    let git = &settings.git;
    let otherwise = std::env::temp_dir().join("gitops-runtime-sources");
    let (checkouts, following) = repositories::open(config, &git.repositories, otherwise, series, stop)
        .await
        .context("have repositories (settings under `sourceServer.git`)")?;
    let allowed = git.allowed.iter().map(|prefix| (**prefix).clone()).collect();
    let repositories: Arc<dyn Repositories> = Arc::new(Fetched::new(directories, checkouts, allowed));
    Ok((library.build(repositories, versions), following))
}

/// Where versions stand, as the platform says.
async fn templates(config: &Config) -> anyhow::Result<PromotionTemplates> {
    let platform = &config.platform;
    let token = build::token(&platform.token()).context("the token of the platform")?;
    let token = token.context(
        "no token for the platform, which sourceServer.versions.askPlatform asks: set platform.tokenFile",
    )?;
    let url = platform.url.as_ref().context("platform.url is not set")?;
    let http = stages_client::Config {
        ca_file: platform.ca_file.clone(),
        insecure_skip_verify: platform.insecure,
        ..stages_client::Config::new(*config.source_server.timeout / 2, 1 << 20)
    };
    let client = http.build(Target::new(url.as_str(), "")?).await.context("reach the platform")?;
    Ok(PromotionTemplates::new(client, token))
}

/// Whom the reporter asks, if it asks anybody, and what follows the credentials that this needs.
pub(super) async fn of(
    config: &Config,
    registry: &Registry,
    bus: Option<Arc<dyn Requests>>,
    stop: &Shutdown,
) -> anyhow::Result<(Option<Arc<dyn Sources>>, BoxFuture<'static, ()>)> {
    let settings = &config.reporter.sources;
    let nothing: BoxFuture<'static, ()> = Box::pin(std::future::ready(()));
    Ok(match settings.from {
        SourcesFrom::None => (None, nothing),
        SourcesFrom::Here => {
            let (library, following) = library(config, registry, stop).await?;
            (Some(Arc::new(Here(library))), following)
        }
        SourcesFrom::Server => {
            let url = settings.url.as_ref().context("reporter.sources.url is not set")?;
            let path = settings.token_file.as_ref().context("reporter.sources.tokenFile is not set")?;
            let http = stages_client::Config {
                ca_file: settings.ca_file.clone(),
                ..stages_client::Config::new(*settings.timeout, LARGEST)
            };
            let client =
                http.build(Target::new(url.as_str(), "")?).await.context("reach the source server")?;
            (Some(Arc::new(There { client, token: Token::file(path) })), nothing)
        }
        SourcesFrom::Bus => {
            let bus = bus.context("reporter.sources.from is bus, and bus.url is not set")?;
            (Some(Arc::new(OnBus(OverBus::new(bus, *settings.timeout)))), nothing)
        }
    })
}

/// What is asked of the sources of an application; `None` when that is no JSON, which it always is.
fn asked(of: &SourcesAt, compiled: &[String]) -> Option<Asked> {
    let source = |at: &stages_argocd::sources::SourceAt| {
        Some(AskedSource { source: serde_json::from_str(&at.source).ok()?, revision: at.revision.clone() })
    };
    Some(Asked {
        metadata: serde_json::from_str(&of.metadata).ok()?,
        namespace: of.namespace.clone(),
        sources: of.sources.iter().map(source).collect::<Option<_>>()?,
        compiled: compiled.to_vec(),
    })
}

/// The repositories of an application for a log; one whose address holds a password is left out.
fn repositories_of(of: &SourcesAt) -> String {
    let address = |at: &stages_argocd::sources::SourceAt| {
        let source: serde_json::Value = serde_json::from_str(&at.source).ok()?;
        Some(RepositoryUrl::read(source["repoURL"].as_str()?).ok()?.to_string())
    };
    of.sources.iter().filter_map(address).collect::<Vec<_>>().join(", ")
}

/// As reports carry it.
fn described(
    objects: Vec<HeardObject>,
    files: Vec<stages_source::File>,
    versions: Option<Versions>,
) -> Described {
    let texts: HashMap<(usize, String), Arc<str>> =
        files.into_iter().map(|file| ((file.source, file.path), file.text.into())).collect();
    let file = |HeardObject { source, path }: HeardObject| {
        let path = path?;
        let text = texts.get(&(source, path.clone())).cloned().unwrap_or_default();
        Some(SourceFile { path, text })
    };
    Described {
        files: objects.into_iter().map(file).collect(),
        versions: versions.and_then(|versions| serde_json::to_value(versions).ok()),
    }
}

/// In this process.
#[derive(Debug)]
struct Here(Library);

#[async_trait]
impl Sources for Here {
    async fn describe(&self, of: &SourcesAt, compiled: &[String]) -> Option<Described> {
        match self.0.describe(asked(of, compiled)?).await {
            Ok(told) => {
                let heard = |answer: &stages_source::Answer| HeardObject {
                    source: answer.source().unwrap_or_default(),
                    path: answer.origin().map(|origin| origin.path.clone()),
                };
                let objects = told.objects.iter().map(heard).collect();
                Some(described(objects, told.files.clone(), told.versions.clone()))
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(
                    error,
                    "a repository could not be asked; what it says is missing in a report, and asked for again"
                );
                None
            }
        }
    }
}

/// Of the source server.
#[derive(Debug)]
struct There {
    client: Client,
    token: Token,
}

impl There {
    async fn ask(&self, asked: &Asked) -> Result<Heard, HttpError> {
        let request = self.client.request(ACT, Method::POST, &["v1", "manifests"])?.json(asked);
        let request = self.client.authorize(ACT, request, &self.token, "Bearer ").await?;
        let reply = self.client.send(ACT, request).await?.checked()?;
        serde_json::from_slice(reply.body()).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            reply.into_error(Fault::Json { line, column })
        })
    }
}

#[async_trait]
impl Sources for There {
    async fn describe(&self, of: &SourcesAt, compiled: &[String]) -> Option<Described> {
        match self.ask(&asked(of, compiled)?).await {
            Ok(heard) => Some(described(heard.objects, heard.files, heard.versions)),
            Err(error) => {
                let is_refusal = error.status().is_some_and(|status| (400..500).contains(&status));
                unanswered(&error, is_refusal, of);
                None
            }
        }
    }
}

/// Of the source server, over the bus.
#[derive(Debug)]
struct OnBus(OverBus);

#[async_trait]
impl Sources for OnBus {
    async fn describe(&self, of: &SourcesAt, compiled: &[String]) -> Option<Described> {
        match self.0.describe(asked(of, compiled)?).await {
            Ok(heard) => Some(described(heard.objects, heard.files, heard.versions)),
            Err(error) => {
                unanswered(&error, error.is_refusal(), of);
                None
            }
        }
    }
}

/// Says that the source server did not say it, or refused: a repository that it was not told of, or one of its own machine
/// (`file://`) that it does not read.
fn unanswered(error: &(dyn std::error::Error + 'static), is_refusal: bool, of: &SourcesAt) {
    if is_refusal {
        let repositories = repositories_of(of);
        tracing::warn!(
            error,
            repositories,
            "the source server refused; what it says is missing in a report, and asked for again"
        );
    } else {
        tracing::warn!(
            error,
            "the source server did not answer; what it says is missing in a report, and asked for again"
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_that_makes_many_objects_is_carried_once_and_stands_with_each() {
        let heard: Heard = serde_json::from_value(json!({
            "revisions": ["abc"], "gaps": [],
            "objects": [{"source": 0, "tool": "directory", "path": "a.yaml", "firstLine": 1, "lastLine": 2, "manifest": "x"},
                {"unknown": "why"}, {"source": 0, "path": "a.yaml"}, {"source": 1, "path": "chart/Chart.yaml"}],
            "files": [{"source": 0, "path": "a.yaml", "text": "all"}],
            "versions": {"appVersion": "1", "dependencies": {"deps": "d"}},
        }))
        .unwrap();
        let described = described(heard.objects, heard.files, heard.versions);
        let shown: Vec<Option<(&str, &str)>> = described
            .files
            .iter()
            .map(|file| file.as_ref().map(|file| (file.path.as_str(), &*file.text)))
            .collect();
        assert_eq!(
            shown,
            [Some(("a.yaml", "all")), None, Some(("a.yaml", "all")), Some(("chart/Chart.yaml", ""))]
        );
        assert_eq!(described.versions, Some(json!({"appVersion": "1", "dependencies": {"deps": "d"}})));
    }
}
