//! Answers questions from repositories: with bounded concurrency and time, and a cache of answers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use stages_git::application::{Application, Source};
use stages_git::remote::Tenant;
use stages_git::{Commit, GitError, MAX_SOURCES, in_one_line};
use tokio::sync::Semaphore;

use crate::changed::{ChangesRequest, ChangesResponse, CommitRange, changed};
use crate::compiled::Compiled;
use crate::describe::{Checkout, describe, snapshots, source_files, versions_of};
use crate::manifests::{ManifestFile, ManifestsRequest, ManifestsResponse, RequestedSource, tenant};
use crate::provenance::{ListedObject, Provenance, listed};
use crate::provider::{Links, links};
use crate::repositories::{LocalCommit, Repositories, RepositoryError};
use crate::version_sources::{KEPT, VersionSources};
use crate::versions::{VersionSource, Versions};

/// The most compiled manifests of one question.
const MAX_COMPILED: usize = 20_000;

/// Bounds of the work.
#[derive(Debug, Clone)]
pub struct LibraryConfig {
    /// The most answers that are worked out at a time.
    pub concurrency: usize,
    /// How long an answer may take, with the wait for its turn.
    pub timeout: Duration,
    /// The most bytes of answers that are cached.
    pub cache_bytes: u64,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The question is malformed.
    #[error("{0}")]
    BadRequest(&'static str),
    /// The repository or the revision is not there, or cannot be fetched.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The repository cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The version cannot be read; the text says why.
    #[error("{0}")]
    Version(String),
    /// It was not answered within this time.
    #[error("it was not answered within {0:?}: ask again later")]
    Busy(Duration),
    /// The work was given up.
    #[error("the work was given up")]
    GivenUp,
    /// The error of the same question, which was asked at the same time.
    #[error("{0}")]
    Shared(Arc<SourceError>),
}

/// A commit, and the pages of its provider about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitResponse {
    /// Its author, message, date and tags.
    #[serde(flatten)]
    pub commit: Commit,
    /// The pages of its provider about it, where the provider is known.
    #[serde(flatten)]
    pub links: Links,
}

/// The files that differ between two commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesResponse {
    /// The older commit.
    pub from: String,
    /// The newer one.
    pub to: String,
    /// The files; at most a hundred.
    pub files: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

/// Answers questions from repositories. Cloning shares everything.
#[derive(Debug, Clone)]
pub struct Library {
    repositories: Arc<dyn Repositories>,
    versions: Arc<dyn VersionSources>,
    turns: Arc<Semaphore>,
    timeout: Duration,
    answers: Cache<[u8; 32], Arc<ManifestsResponse>>,
}

impl LibraryConfig {
    /// Builds it.
    pub fn build(self, repositories: Arc<dyn Repositories>, versions: Arc<dyn VersionSources>) -> Library {
        let answers = Cache::builder()
            .max_capacity(self.cache_bytes)
            .weigher(|_, told: &Arc<ManifestsResponse>| u32::try_from(size(told)).unwrap_or(u32::MAX))
            // The place of a version may change; everything else of a commit never does.
            .time_to_live(KEPT)
            .build();
        Library {
            repositories,
            versions,
            turns: Arc::new(Semaphore::new(self.concurrency.max(1))),
            timeout: self.timeout,
            answers,
        }
    }
}

/// The bytes that an answer takes of the cache, about.
fn size(told: &ManifestsResponse) -> usize {
    let files: usize = told.files.iter().map(|file| file.path.len() + file.text.len()).sum();
    let objects = told.objects.iter().filter_map(Provenance::origin);
    let objects: usize = objects.map(|origin| 256 + origin.path.len() + origin.manifest.len()).sum();
    let listed: usize = told.listed.iter().map(|listed| 512 + listed.origin.manifest.len()).sum();
    512 + files + objects + listed
}

impl Library {
    /// Which file makes each compiled manifest of an application, and the versions that it packages.
    ///
    /// # Errors
    /// [`SourceError`] says why not.
    pub async fn describe(&self, asked: ManifestsRequest) -> Result<Arc<ManifestsResponse>, SourceError> {
        self.within(async {
            let sources = read(&asked.sources)?;
            if asked.compiled.len() > MAX_COMPILED {
                return Err(SourceError::BadRequest(
                    "more than 20000 compiled manifests are asked about at once",
                ));
            }
            let held = self.hold(&sources, &asked.tenant()).await?;
            let revisions: Vec<String> = held
                .iter()
                .map(|held| held.as_ref().map_or_else(String::new, |held| held.commit.to_string()))
                .collect();
            let version_source = self.versions.of(&asked.metadata).await;
            let key = key(&asked, &revisions, &version_source);
            let work = async {
                self.blocking(move || {
                    let checkouts = open_all(sources, &held)?;
                    manifests_of(&checkouts, &asked, revisions, version_source.as_ref())
                })
                .await
                .map(Arc::new)
            };
            self.answers.try_get_with(key, work).await.map_err(SourceError::Shared)
        })
        .await
    }

    /// The versions of an Application, at `revision` where one is given for its only source.
    ///
    /// # Errors
    /// [`SourceError`] says why not.
    pub async fn versions(
        &self,
        metadata: &Value,
        project: &str,
        sources: &[RequestedSource],
    ) -> Result<Option<Versions>, SourceError> {
        self.within(async {
            let sources = read(sources)?;
            let held = self.hold(&sources, &tenant(metadata, project)).await?;
            let version_source = self.versions.of(metadata).await;
            self.blocking(move || {
                let checkouts = open_all(sources, &held)?;
                let snapshots = snapshots(&checkouts)?;
                versions_of(&source_files(&checkouts, &snapshots), version_source.as_ref())
                    .map_err(|error| SourceError::Version(in_one_line(&error)))
            })
            .await
        })
        .await
    }

    /// Author, message, date and tags of a commit.
    ///
    /// # Errors
    /// [`SourceError`] says why not.
    pub async fn commit(&self, repo_url: &str, revision: &str) -> Result<CommitResponse, SourceError> {
        self.within(async {
            let held = self.repositories.hold(repo_url, revision, None).await?;
            let commit = self.blocking(move || Ok(held.open()?.tagged(held.commit)?)).await?;
            let links = links(repo_url, &commit);
            Ok(CommitResponse { commit, links })
        })
        .await
    }

    /// The files that differ between two revisions, below these paths; of the whole repository where there are none.
    ///
    /// # Errors
    /// [`SourceError`] says why not.
    pub async fn changes(
        &self,
        repo_url: &str,
        from: &str,
        to: &str,
        paths: Vec<String>,
    ) -> Result<FilesResponse, SourceError> {
        self.within(async {
            let old = self.repositories.hold(repo_url, from, None).await?;
            let new = self.repositories.hold(repo_url, to, None).await?;
            let paths = if paths.is_empty() { vec![String::new()] } else { paths };
            self.blocking(move || {
                let repository = new.open()?;
                let change = repository.differing(old.commit, new.commit, &[paths.into()])?;
                let change = change.into_iter().next().flatten();
                let (files, more) =
                    change.map_or((Vec::new(), 0), |change| (change.paths, change.more_paths));
                Ok(FilesResponse { from: old.commit.to_string(), to: new.commit.to_string(), files, more })
            })
            .await
        })
        .await
    }

    /// Which commits changed an application between two revisions, and which of its files differ between them.
    ///
    /// # Errors
    /// [`SourceError`] says why not.
    pub async fn changed(&self, asked: ChangesRequest) -> Result<ChangesResponse, SourceError> {
        self.within(async {
            let application =
                Application::read(&asked.app).ok_or(SourceError::BadRequest("app is no Application"))?;
            let source = application
                .sources
                .get(asked.source)
                .ok_or(SourceError::BadRequest("the application has no source at this position"))?;
            if !source.has_commits() {
                return Err(SourceError::BadRequest(match source.chart {
                    Some(_) => "the source is a chart of a Helm repository, which has no commits",
                    None => "the source is an artifact of an OCI registry, which has no commits",
                }));
            }
            let project = asked.app["spec"]["project"].as_str().unwrap_or_default();
            let of = &tenant(&asked.app["metadata"], project);
            let to = self.repositories.hold(&source.repo_url, &asked.to, Some(of)).await?;
            let (from, from_unknown) = match asked.from.as_str() {
                "" => (None, false),
                from => match self.repositories.hold(&source.repo_url, from, Some(of)).await {
                    Ok(held) => (Some(held), false),
                    // A forced push may have taken the older commit away.
                    Err(error) if error.is_no_revision() => (None, true),
                    Err(error) => return Err(error.into()),
                },
            };
            self.blocking(move || {
                let from = from.as_ref().map(|held| held.commit);
                let between = CommitRange { from, from_unknown, to: to.commit };
                Ok(changed(&to.open()?, &application, asked.source, between)?)
            })
            .await
        })
        .await
    }

    async fn hold(
        &self,
        sources: &[ResolvedSource],
        of: &Tenant,
    ) -> Result<Vec<Option<LocalCommit>>, SourceError> {
        let mut held = Vec::with_capacity(sources.len());
        for ResolvedSource { source, revision, is_looked_at } in sources {
            held.push(match is_looked_at {
                false => None,
                true => Some(self.repositories.hold(&source.repo_url, revision, Some(of)).await?),
            });
        }
        Ok(held)
    }

    async fn within<T>(&self, work: impl Future<Output = Result<T, SourceError>>) -> Result<T, SourceError> {
        let busy = |_| SourceError::Busy(self.timeout);
        tokio::time::timeout(self.timeout, work).await.map_err(busy)?
    }

    /// Runs work in a thread that may block, once there is a turn for it.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
    ) -> Result<T, SourceError> {
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| SourceError::GivenUp)?;
        let work = move || {
            // The turn is held until the work ends, whether or not the caller still waits.
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| SourceError::GivenUp)?
    }
}

/// A source of a question, with its revision resolved.
struct ResolvedSource {
    source: Source,
    revision: String,
    /// Whether its repository is read: it has commits, and no other server answers for them.
    is_looked_at: bool,
}

/// The sources that are asked about, each with its revision.
fn read(sources: &[RequestedSource]) -> Result<Vec<ResolvedSource>, SourceError> {
    if sources.is_empty() {
        return Err(SourceError::BadRequest("it names no source"));
    }
    if sources.len() > MAX_SOURCES {
        return Err(SourceError::BadRequest("it names more than 64 sources"));
    }
    let read = |asked: &RequestedSource| {
        let source =
            Source::read(asked.source.clone()).ok_or(SourceError::BadRequest("a source is no object"))?;
        let revision = if asked.revision.is_empty() { &source.target_revision } else { &asked.revision };
        let revision = revision.clone();
        let is_looked_at = source.has_commits() && !asked.elsewhere;
        Ok(ResolvedSource { source, revision, is_looked_at })
    };
    sources.iter().map(read).collect()
}

/// Opens the repositories of sources, each at the commit that is held for it.
fn open_all(sources: Vec<ResolvedSource>, held: &[Option<LocalCommit>]) -> Result<Vec<Checkout>, GitError> {
    let mut checkouts = Vec::with_capacity(sources.len());
    for (of, held) in sources.into_iter().zip(held) {
        let at = match held {
            Some(held) => Some((held.open()?, held.commit)),
            None => None,
        };
        checkouts.push(Checkout { source: of.source, at });
    }
    Ok(checkouts)
}

/// Works out the answer about manifests.
fn manifests_of(
    checkouts: &[Checkout],
    asked: &ManifestsRequest,
    revisions: Vec<String>,
    version_source: Option<&VersionSource>,
) -> Result<ManifestsResponse, SourceError> {
    let compiled: Vec<Compiled> =
        asked.compiled.iter().map(|text| Compiled::read(text).unwrap_or_default()).collect();
    let described = describe(checkouts, &asked.namespace, &compiled, version_source)?;
    let (listed, gaps) =
        if compiled.is_empty() { listed_of(checkouts)? } else { (Vec::new(), described.provenances.gaps) };
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    for provenance in &described.provenances.objects {
        if let Provenance::Made { source, origin, .. } = provenance
            && !origin.file.is_empty()
            && seen.insert((*source, origin.path.clone()))
        {
            files.push(ManifestFile {
                source: *source,
                path: origin.path.clone(),
                text: origin.file.to_string(),
            });
        }
    }
    Ok(ManifestsResponse {
        revisions,
        objects: described.provenances.objects,
        listed,
        files,
        gaps,
        versions: described.versions,
        version_error: described.version_error.map(|error| in_one_line(&error)),
    })
}

fn listed_of(checkouts: &[Checkout]) -> Result<(Vec<ListedObject>, Vec<String>), GitError> {
    let snapshots = snapshots(checkouts)?;
    listed(&source_files(checkouts, &snapshots))
}

/// The key of an answer in the cache: a digest of everything that it depends on.
fn key(asked: &ManifestsRequest, revisions: &[String], version_source: &Option<VersionSource>) -> [u8; 32] {
    let sources: Vec<&Value> = asked.sources.iter().map(|asked| &asked.source).collect();
    let all = (&asked.namespace, sources, &asked.compiled, revisions, version_source);
    // Texts and JSON are always JSON.
    Sha256::digest(serde_json::to_vec(&all).unwrap_or_default()).into()
}

#[cfg(test)]
mod tests;
