//! Answers what Git says, within bounds: so much work at a time, each within its time, what was answered kept for a while.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use stages_git::application::{Application, Source};
use stages_git::remote::Tenant;
use stages_git::{Commit, GitError, MAX_SOURCES, Snapshot, in_one_line};
use tokio::sync::Semaphore;

use crate::asked::{Asked, AskedSource, File, ManifestsResponse, tenant};
use crate::changed::{AskedChange, Between, ToldChange, changed};
use crate::compiled::Compiled;
use crate::describe::{Checkout, describe, versions_of};
use crate::provenance::{At, Listed, Provenance, listed};
use crate::provider::{Links, links};
use crate::repositories::{LocalCommit, NotHeld, Repositories};
use crate::version_sources::{KEPT, VersionSources};
use crate::versions::{VersionSource, Versions};

/// Compiled manifests that are asked about at once.
const MAX_COMPILED: usize = 20_000;

/// Bounds of the work.
#[derive(Debug, Clone)]
pub struct LibraryConfig {
    /// Answers that are worked out at the same time.
    pub concurrency: usize,
    /// One answer is worked out within this time, the wait for its turn included.
    pub timeout: Duration,
    /// Bytes of answers that are kept.
    pub cache_bytes: u64,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// What is asked is nothing that can be answered.
    #[error("{0}")]
    Asked(&'static str),
    /// The repository, or the revision, cannot be had.
    #[error(transparent)]
    NotHeld(#[from] NotHeld),
    /// The repository cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Its version cannot be told.
    #[error("{0}")]
    Version(String),
    /// There is too much to do.
    #[error("it was not answered within {0:?}: ask again later")]
    Busy(Duration),
    /// The work was given up.
    #[error("the work was given up")]
    GivenUp,
    /// What another who asked the same was told.
    #[error("{0}")]
    Shared(Arc<SourceError>),
}

/// A commit, and where more is said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToldCommit {
    /// What it says of itself.
    #[serde(flatten)]
    pub commit: Commit,
    /// Where its provider shows it; of providers that are known.
    #[serde(flatten)]
    pub links: Links,
}

/// The files that differ between two commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToldChanges {
    /// The older commit.
    pub from: String,
    /// The newer one.
    pub to: String,
    /// The files; at most a hundred.
    pub files: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

/// Answers what Git says. Cloning shares everything.
#[derive(Debug, Clone)]
pub struct Library {
    repositories: Arc<dyn Repositories>,
    versions: Arc<dyn VersionSources>,
    turns: Arc<Semaphore>,
    timeout: Duration,
    told: Cache<[u8; 32], Arc<ManifestsResponse>>,
}

impl LibraryConfig {
    /// Builds it.
    pub fn build(self, repositories: Arc<dyn Repositories>, versions: Arc<dyn VersionSources>) -> Library {
        let told = Cache::builder()
            .max_capacity(self.cache_bytes)
            .weigher(|_, told: &Arc<ManifestsResponse>| u32::try_from(size(told)).unwrap_or(u32::MAX))
            // Who says where a version stands may say something else; all else of a commit never changes.
            .time_to_live(KEPT)
            .build();
        Library {
            repositories,
            versions,
            turns: Arc::new(Semaphore::new(self.concurrency.max(1))),
            timeout: self.timeout,
            told,
        }
    }
}

/// Bytes that an answer is charged with.
fn size(told: &ManifestsResponse) -> usize {
    let files: usize = told.files.iter().map(|file| file.path.len() + file.text.len()).sum();
    let objects = told.objects.iter().filter_map(Provenance::origin);
    let objects: usize = objects.map(|origin| 256 + origin.path.len() + origin.manifest.len()).sum();
    let listed: usize = told.listed.iter().map(|listed| 512 + listed.origin.manifest.len()).sum();
    512 + files + objects + listed
}

impl Library {
    /// What Git says of an application: which file makes each compiled manifest, and what it packages.
    ///
    /// # Errors
    /// [`SourceError`] says why not.
    pub async fn describe(&self, asked: Asked) -> Result<Arc<ManifestsResponse>, SourceError> {
        self.within(async {
            let sources = read(&asked.sources)?;
            if asked.compiled.len() > MAX_COMPILED {
                return Err(SourceError::Asked("more than 20000 compiled manifests are asked about at once"));
            }
            let held = self.hold(&sources, &asked.tenant()).await?;
            let revisions: Vec<String> = held
                .iter()
                .map(|held| held.as_ref().map_or_else(String::new, |held| held.commit.to_string()))
                .collect();
            let version_source = self.versions.of(&asked.metadata).await;
            let key = key(&asked, &revisions, &version_source);
            let work = async {
                let sources: Vec<Source> = sources.into_iter().map(|of| of.source).collect();
                self.blocking(move || {
                    let mut checkouts = Vec::with_capacity(sources.len());
                    for (source, held) in sources.into_iter().zip(&held) {
                        let open =
                            |held: &LocalCommit| -> Result<_, GitError> { Ok((held.open()?, held.commit)) };
                        checkouts.push(Checkout { source, at: held.as_ref().map(open).transpose()? });
                    }
                    told(&checkouts, &asked, revisions, version_source.as_ref())
                })
                .await
                .map(Arc::new)
            };
            self.told.try_get_with(key, work).await.map_err(SourceError::Shared)
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
        sources: &[AskedSource],
    ) -> Result<Option<Versions>, SourceError> {
        self.within(async {
            let sources = read(sources)?;
            let held = self.hold(&sources, &tenant(metadata, project)).await?;
            let version_source = self.versions.of(metadata).await;
            self.blocking(move || {
                let mut opened = Vec::with_capacity(sources.len());
                for (of, held) in sources.into_iter().zip(held) {
                    let repository = held.as_ref().map(LocalCommit::open).transpose()?;
                    opened.push((of.source, repository, held));
                }
                let mut snapshots = Vec::with_capacity(opened.len());
                for (_, repository, held) in &opened {
                    let files = repository.as_ref().zip(held.as_ref());
                    snapshots
                        .push(files.map(|(repository, held)| repository.snapshot(held.commit)).transpose()?);
                }
                let at: Vec<At<'_, '_>> = opened
                    .iter()
                    .zip(&snapshots)
                    .map(|((source, ..), files)| At { source, files: files.as_ref() })
                    .collect();
                versions_of(&at, version_source.as_ref())
                    .map_err(|error| SourceError::Version(in_one_line(&error)))
            })
            .await
        })
        .await
    }

    /// What a commit says of itself.
    ///
    /// # Errors
    /// [`SourceError`] says why not.
    pub async fn commit(&self, repo_url: &str, revision: &str) -> Result<ToldCommit, SourceError> {
        self.within(async {
            let held = self.repositories.hold(repo_url, revision, None).await?;
            let commit = self.blocking(move || Ok(held.open()?.tagged(held.commit)?)).await?;
            let links = links(repo_url, &commit);
            Ok(ToldCommit { commit, links })
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
    ) -> Result<ToldChanges, SourceError> {
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
                Ok(ToldChanges { from: old.commit.to_string(), to: new.commit.to_string(), files, more })
            })
            .await
        })
        .await
    }

    /// Which commits changed an application between two revisions, and which of its files differ between them.
    ///
    /// # Errors
    /// [`SourceError`] says why not.
    pub async fn changed(&self, asked: AskedChange) -> Result<ToldChange, SourceError> {
        self.within(async {
            let application =
                Application::read(&asked.app).ok_or(SourceError::Asked("app is no Application"))?;
            let source = application
                .sources
                .get(asked.source)
                .ok_or(SourceError::Asked("the application has no source at this position"))?;
            if !source.has_commits() {
                return Err(SourceError::Asked(match source.chart {
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
                    // After a forced push.
                    Err(error) if error.is_no_revision() => (None, true),
                    Err(error) => return Err(error.into()),
                },
            };
            self.blocking(move || {
                let from = from.as_ref().map(|held| held.commit);
                let between = Between { from, from_unknown, to: to.commit };
                Ok(changed(&to.open()?, &application, asked.source, between)?)
            })
            .await
        })
        .await
    }

    async fn hold(&self, sources: &[Wanted], of: &Tenant) -> Result<Vec<Option<LocalCommit>>, SourceError> {
        let mut held = Vec::with_capacity(sources.len());
        for Wanted { source, revision, is_looked_at } in sources {
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

    /// Works in a thread that may block, in turn.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
    ) -> Result<T, SourceError> {
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| SourceError::GivenUp)?;
        let work = move || {
            // Whoever asked may be gone; the turn lasts as long as the work does.
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| SourceError::GivenUp)?
    }
}

/// A source that is asked about.
struct Wanted {
    source: Source,
    revision: String,
    /// It has commits, and nobody else tells of them.
    is_looked_at: bool,
}

/// The sources that are asked about, each with its revision.
fn read(sources: &[AskedSource]) -> Result<Vec<Wanted>, SourceError> {
    if sources.is_empty() {
        return Err(SourceError::Asked("it names no source"));
    }
    if sources.len() > MAX_SOURCES {
        return Err(SourceError::Asked("it names more than 64 sources"));
    }
    let read = |asked: &AskedSource| {
        let source = Source::read(asked.source.clone()).ok_or(SourceError::Asked("a source is no object"))?;
        let revision = if asked.revision.is_empty() { &source.target_revision } else { &asked.revision };
        let revision = revision.clone();
        let is_looked_at = source.has_commits() && !asked.elsewhere;
        Ok(Wanted { source, revision, is_looked_at })
    };
    sources.iter().map(read).collect()
}

fn told(
    checkouts: &[Checkout],
    asked: &Asked,
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
            files.push(File { source: *source, path: origin.path.clone(), text: origin.file.to_string() });
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

fn listed_of(checkouts: &[Checkout]) -> Result<(Vec<Listed>, Vec<String>), GitError> {
    let mut snapshots: Vec<Option<Snapshot<'_>>> = Vec::with_capacity(checkouts.len());
    for checkout in checkouts {
        snapshots
            .push(checkout.at.as_ref().map(|(repository, commit)| repository.snapshot(*commit)).transpose()?);
    }
    let at: Vec<At<'_, '_>> = checkouts
        .iter()
        .zip(&snapshots)
        .map(|(checkout, files)| At { source: &checkout.source, files: files.as_ref() })
        .collect();
    listed(&at)
}

/// Of all that an answer depends on.
fn key(asked: &Asked, revisions: &[String], version_source: &Option<VersionSource>) -> [u8; 32] {
    let sources: Vec<&Value> = asked.sources.iter().map(|asked| &asked.source).collect();
    let all = (&asked.namespace, sources, &asked.compiled, revisions, version_source);
    // Texts and JSON are always JSON.
    Sha256::digest(serde_json::to_vec(&all).unwrap_or_default()).into()
}

#[cfg(test)]
mod tests;
