//! How the reporter asks what Git says: in this process, or of the source server, over HTTP or the bus; about each repository as
//! the settings say.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use pipeline_core::{Requests, Shutdown, async_trait};
use reqwest::Method;
use stages_argocd::sources::{Described, SourceFile, Sources, SourcesAt};
use stages_client::{Client, HttpError, Target, Token};
use stages_git::{GitSeries, RepositoryUrl, UrlPrefix};
use stages_kube::Right;
use stages_source::{
    Directories, FetchedRepositories, FixedVersionSource, Library, LibraryConfig, ManifestsRequest, OverBus,
    PromotionTemplates, ReceivedManifests, ReceivedObject, Repositories, RequestedSource, VersionSources,
    Versions,
};

use super::{Following, build, nothing_to_follow, repositories};
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
    series: GitSeries,
    stop: &Shutdown,
) -> anyhow::Result<(Library, Following)> {
    let settings = &config.source_server;
    let places = settings.repositories.iter();
    let directories: Vec<(&str, PathBuf)> =
        places.map(|place| (place.address.as_str(), place.directory.clone())).collect();
    for (_, directory) in directories.iter().filter(|(_, directory)| !directory.is_dir()) {
        tracing::warn!(
            directory = %directory.display(),
            "a directory of sourceServer.repositories is not there: mount it, or correct the path; until then what \
             is asked of its repository is refused"
        );
    }
    let library = LibraryConfig {
        concurrency: settings.concurrency,
        timeout: *settings.timeout,
        cache_bytes: settings.cache.0,
    };
    let versions: Arc<dyn VersionSources> = match settings.asks_platform() {
        true => Arc::new(templates(config).await?),
        false => Arc::new(FixedVersionSource(settings.version_source())),
    };
    let directories = Directories::new(directories).counted(series.clone());
    if !settings.git.is_used() {
        return Ok((library.build(Arc::new(directories), versions), nothing_to_follow()));
    }
    let git = &settings.git;
    let otherwise = std::env::temp_dir().join("gitops-runtime-sources");
    let (checkouts, following) = repositories::open(config, &git.repositories, otherwise, series, stop)
        .await
        .context("have repositories (settings under `sourceServer.git`)")?;
    let allowed = git.allowed.iter().map(|prefix| (**prefix).clone()).collect();
    let repositories: Arc<dyn Repositories> =
        Arc::new(FetchedRepositories::new(directories, checkouts, allowed));
    Ok((library.build(repositories, versions), following))
}

/// Where versions stand, as the platform says.
async fn templates(config: &Config) -> anyhow::Result<PromotionTemplates> {
    let token = build::token(&config.platform.token()).context("the token of the platform")?;
    let token = token.context(
        "no token for the platform, which sourceServer.versions.askPlatform asks: set platform.tokenFile",
    )?;
    let url = build::platform_url(config)?;
    let http = build::platform_http(config, *config.source_server.timeout / 2, 1 << 20);
    let client = http.build(Target::new(url.as_str(), "")?).await.context("reach the platform")?;
    Ok(PromotionTemplates::new(client, token))
}

/// Whom the reporter asks, if it asks anybody, and what follows the credentials that this needs.
pub(super) async fn of(
    config: &Config,
    series: GitSeries,
    bus: Option<Arc<dyn Requests>>,
    stop: &Shutdown,
) -> anyhow::Result<(Option<Arc<dyn Sources>>, Following)> {
    let settings = &config.reporter.sources;
    let mut following = nothing_to_follow();
    let mut origins: Vec<(SourcesFrom, Box<dyn Origin>)> = Vec::new();
    if settings.asks(SourcesFrom::Here).is_some() {
        let (library, follows) = library(config, series, stop).await?;
        following = follows;
        origins.push((SourcesFrom::Here, Box::new(Here(library))));
    }
    if settings.asks(SourcesFrom::Server).is_some() {
        let url = settings.url.as_ref().context("reporter.sources.url is not set")?;
        let path = settings.token_file.as_ref().context("reporter.sources.tokenFile is not set")?;
        let http = stages_client::Config {
            ca_file: settings.ca_file.clone(),
            ..stages_client::Config::new(*settings.timeout, LARGEST)
        };
        let client = http.build(Target::new(url.as_str(), "")?).await.context("reach the source server")?;
        origins.push((SourcesFrom::Server, Box::new(There { client, token: Token::file(path) })));
    }
    if let Some(setting) = settings.asks(SourcesFrom::Bus) {
        let bus = bus.with_context(|| format!("{setting} says bus, and bus.url is not set"))?;
        origins.push((SourcesFrom::Bus, Box::new(OnBus(OverBus::new(bus, *settings.timeout)))));
    }
    if origins.is_empty() {
        return Ok((None, following));
    }
    let by_prefix = settings.repositories.iter().map(|of| (of.prefix.clone(), of.from));
    let choice = Choice::new(settings.from, by_prefix);
    Ok((Some(Arc::new(ByRepository { choice, origins })), following))
}

/// Who is asked about which repository.
#[derive(Debug)]
struct Choice {
    from: SourcesFrom,
    /// The longest first.
    by_prefix: Vec<(UrlPrefix, SourcesFrom)>,
}

impl Choice {
    fn new(from: SourcesFrom, by_prefix: impl Iterator<Item = (UrlPrefix, SourcesFrom)>) -> Self {
        let mut by_prefix: Vec<_> = by_prefix.collect();
        by_prefix.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.as_str().len()));
        Self { from, by_prefix }
    }

    /// Of a repository, as an application names it. What is no address is in none that begins as one.
    fn of(&self, repo_url: &str) -> SourcesFrom {
        let url = RepositoryUrl::read(repo_url).ok();
        let covers = |(prefix, _): &&(UrlPrefix, _)| url.as_ref().is_some_and(|url| prefix.covers(url));
        self.by_prefix.iter().find(covers).map_or(self.from, |(_, from)| *from)
    }
}

/// Somebody who says what Git says.
#[async_trait]
trait Origin: std::fmt::Debug + Send + Sync {
    /// Says it; `None` when it cannot be had now. `of` is what it is asked about, for a log.
    async fn ask(&self, asked: ManifestsRequest, of: &SourcesAt) -> Option<Described>;
}

/// Asks whoever is to be asked about each repository; of those that Argo CD is to tell of, nobody.
#[derive(Debug)]
struct ByRepository {
    choice: Choice,
    origins: Vec<(SourcesFrom, Box<dyn Origin>)>,
}

#[async_trait]
impl Sources for ByRepository {
    fn is_asked_of(&self, repo_url: &str) -> bool {
        self.choice.of(repo_url) != SourcesFrom::ArgoCd
    }

    async fn describe(&self, of: &SourcesAt, compiled: &[String]) -> Option<Described> {
        let asked = asked(of, compiled)?;
        let repo_url = |of: &RequestedSource| of.source["repoURL"].as_str().unwrap_or_default().to_owned();
        let choices: Vec<SourcesFrom> =
            asked.sources.iter().map(|of| self.choice.of(&repo_url(of))).collect();
        let mut all = Described { files: vec![None; compiled.len()], versions: None };
        for (place, from) in choices.iter().enumerate() {
            let is_first = !choices.iter().take(place).any(|other| other == from);
            let Some((_, origin)) = self.origins.iter().find(|(other, _)| is_first && other == from) else {
                continue;
            };
            let mut own = asked.clone();
            for (source, choice) in own.sources.iter_mut().zip(&choices) {
                source.elsewhere = choice != from;
            }
            let told = origin.ask(own, of).await?;
            for (file, told) in all.files.iter_mut().zip(told.files) {
                *file = file.take().or(told);
            }
            all.versions = all.versions.or(told.versions);
        }
        Some(all)
    }
}

/// What is asked of the sources of an application; `None` when that is no JSON, which it always is.
fn asked(of: &SourcesAt, compiled: &[String]) -> Option<ManifestsRequest> {
    let source = |at: &stages_argocd::sources::SourceAt| {
        let source = serde_json::from_str(&at.source).ok()?;
        Some(RequestedSource { source, revision: at.revision.clone(), ..RequestedSource::default() })
    };
    Some(ManifestsRequest {
        metadata: serde_json::from_str(&of.metadata).ok()?,
        project: of.project.clone(),
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
    objects: Vec<ReceivedObject>,
    files: Vec<stages_source::ManifestFile>,
    versions: Option<Versions>,
) -> Described {
    let texts: HashMap<(usize, String), Arc<str>> =
        files.into_iter().map(|file| ((file.source, file.path), file.text.into())).collect();
    let file = |ReceivedObject { source, path }: ReceivedObject| {
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
impl Origin for Here {
    async fn ask(&self, asked: ManifestsRequest, _: &SourcesAt) -> Option<Described> {
        match self.0.describe(asked).await {
            Ok(told) => {
                let heard = |answer: &stages_source::Provenance| ReceivedObject {
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
    async fn heard(&self, asked: &ManifestsRequest) -> Result<ReceivedManifests, HttpError> {
        let request = self.client.request(ACT, Method::POST, &["v1", "manifests"])?.json(asked);
        let request = self.client.authorize(ACT, request, &self.token, "Bearer ").await?;
        self.client.send(ACT, request).await?.checked()?.json()
    }
}

#[async_trait]
impl Origin for There {
    async fn ask(&self, asked: ManifestsRequest, of: &SourcesAt) -> Option<Described> {
        match self.heard(&asked).await {
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
impl Origin for OnBus {
    async fn ask(&self, asked: ManifestsRequest, of: &SourcesAt) -> Option<Described> {
        match self.0.describe(asked).await {
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
    fn the_longest_beginning_of_an_address_says_who_is_asked() {
        let prefix = |text: &str| UrlPrefix::read(text).unwrap();
        let by_prefix = [
            (prefix("https://git.example.com"), SourcesFrom::Server),
            (prefix("https://git.example.com/team/mono"), SourcesFrom::ArgoCd),
            (prefix("https://git.example.com/team"), SourcesFrom::Here),
        ];
        let choice = Choice::new(SourcesFrom::Bus, by_prefix.into_iter());
        for (url, from) in [
            ("https://git.example.com/team/mono.git", SourcesFrom::ArgoCd),
            ("https://git.example.com/team/monorepo", SourcesFrom::Here),
            ("https://git.example.com/team2", SourcesFrom::Server),
            ("https://git.example.org/team", SourcesFrom::Bus),
            ("oci://charts", SourcesFrom::Bus),
            ("", SourcesFrom::Bus),
        ] {
            assert_eq!(choice.of(url), from, "{url}");
        }
    }

    #[test]
    fn a_file_that_makes_many_objects_is_carried_once_and_stands_with_each() {
        let heard: ReceivedManifests = serde_json::from_value(json!({
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
