//! Repositories on this machine, and why one cannot be read.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use pipeline_core::async_trait;
use stages_git::remote::Tenant;
use stages_git::{Address, Checkout, FetchError, GitError, GitRepository, GitSeries, Oid};

/// A commit, and the repository on this machine that has it.
#[derive(Debug, Clone)]
pub struct LocalCommit {
    /// The directory of the repository.
    pub directory: PathBuf,
    /// The commit that the revision names.
    pub commit: Oid,
    /// Keeps a clone in the cache; `None`: it is no clone of the cache.
    pub checkout: Option<Checkout>,
    /// The metrics of walks over it.
    pub series: GitSeries,
}

impl LocalCommit {
    /// Opens the repository, which blocks. This must outlive the work with it, since it keeps a clone in the cache.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> Result<GitRepository, GitError> {
        let opened = match &self.checkout {
            Some(_) => GitRepository::open_bare(&self.directory),
            None => GitRepository::open(&self.directory),
        };
        opened.map(|repository| repository.counted(self.series.clone()))
    }
}

/// Why a commit cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// No directory is configured for the repository.
    #[error("no repository is configured for {address}: add it to sourceServer.repositories")]
    Unconfigured {
        /// The repository, without user and password.
        address: String,
    },
    /// Nothing allows that it is fetched.
    #[error(
        "{url} may not be fetched: add how it begins to sourceServer.git.allowed, or give Argo CD a Secret for it that \
         sourceServer.git.repositories.argocdSecrets reads"
    )]
    NotAllowed {
        /// The repository.
        url: String,
    },
    /// It cannot be read, or has no such revision.
    #[error(transparent)]
    Git(#[from] GitError),
    /// It cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] Arc<FetchError>),
    /// Too many revisions are being fetched.
    #[error("1024 revisions are being fetched: ask again later")]
    TooMany,
    /// The process stopped, or the work panicked.
    #[error("read the repository: the work was given up")]
    GivenUp,
}

impl RepositoryError {
    /// Whether the repository is there, and has no such revision.
    pub fn is_no_revision(&self) -> bool {
        match self {
            Self::Git(error) => matches!(error, GitError::NoRevision { .. }),
            Self::Fetch(error) => matches!(**error, FetchError::NoRevision { .. }),
            _ => false,
        }
    }
}

/// Finds commits in repositories, which are there or are fetched.
#[async_trait]
pub trait Repositories: std::fmt::Debug + Send + Sync {
    /// The commit of a revision (a branch, a tag, or a commit's id; empty is `HEAD`), in a repository that can be read until the
    /// answer is dropped. With a tenant, the commit is read as that; without one, as somebody who is no application.
    async fn hold(
        &self,
        repo_url: &str,
        revision: &str,
        of: Option<&Tenant>,
    ) -> Result<LocalCommit, RepositoryError>;
}

/// Repositories in directories of this machine, which others keep up to date.
#[derive(Debug, Clone, Default)]
pub struct Directories {
    all: HashMap<Address, PathBuf>,
    series: GitSeries,
}

impl Directories {
    /// Repositories, each by its address and its directory.
    pub fn new<'a>(all: impl IntoIterator<Item = (&'a str, PathBuf)>) -> Self {
        let all = all.into_iter().map(|(url, directory)| (Address::read(url), directory)).collect();
        Self { all, series: GitSeries::default() }
    }

    /// Counts walks over them with these metrics.
    #[must_use]
    pub fn counted(self, series: GitSeries) -> Self {
        Self { series, ..self }
    }
}

#[async_trait]
impl Repositories for Directories {
    async fn hold(
        &self,
        repo_url: &str,
        revision: &str,
        _: Option<&Tenant>,
    ) -> Result<LocalCommit, RepositoryError> {
        let address = Address::read(repo_url);
        let Some(directory) = self.all.get(&address).cloned() else {
            return Err(RepositoryError::Unconfigured { address: address.to_string() });
        };
        let revision = if revision.is_empty() { "HEAD".to_owned() } else { revision.to_owned() };
        let series = self.series.clone();
        let held = move || -> Result<LocalCommit, GitError> {
            let commit = GitRepository::open(&directory)?.resolve(&revision)?;
            Ok(LocalCommit { directory, commit, checkout: None, series })
        };
        let held = tokio::task::spawn_blocking(held).await.map_err(|_| RepositoryError::GivenUp)?;
        Ok(held?)
    }
}
