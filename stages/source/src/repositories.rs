//! Where repositories are, for whoever reads them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use pipeline_core::async_trait;
use stages_git::remote::Tenant;
use stages_git::{Address, Checkout, FetchError, GitError, GitRepository, GitSeries, Oid};

/// A commit, and the repository on this machine that holds it.
#[derive(Debug, Clone)]
pub struct LocalCommit {
    /// Where the repository is.
    pub directory: PathBuf,
    /// The commit that the revision names.
    pub commit: Oid,
    /// What keeps a clone of the cache where it is: it may go once this is dropped.
    pub checkout: Option<Checkout>,
    /// What walks over it are counted by.
    pub series: GitSeries,
}

impl LocalCommit {
    /// Opens the repository, which blocks. What is held must outlive the work with it.
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

/// Why a commit cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotHeld {
    /// Nobody said where this repository is.
    #[error("no repository is configured for {address}: add it to sourceServer.repositories")]
    Unconfigured {
        /// The repository, without user and password.
        address: String,
    },
    /// Nobody said that it may be fetched.
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
    /// So many others are being fetched.
    #[error("1024 revisions are being fetched: ask again later")]
    TooMany,
    /// The work was given up.
    #[error("read the repository: the work was given up")]
    GivenUp,
}

impl NotHeld {
    /// Whether the repository is there, and has no such revision.
    pub fn is_no_revision(&self) -> bool {
        match self {
            Self::Git(error) => matches!(error, GitError::NoRevision { .. }),
            Self::Fetch(error) => matches!(**error, FetchError::NoRevision { .. }),
            _ => false,
        }
    }
}

/// Holds repositories, or fetches them.
#[async_trait]
pub trait Repositories: std::fmt::Debug + Send + Sync {
    /// The commit of a revision (a branch, a tag, a commit's id; empty is `HEAD`), in a repository that can be read until the
    /// answer is dropped; as an application may have it, or somebody who is none.
    async fn hold(&self, repo_url: &str, revision: &str, of: Option<&Tenant>)
    -> Result<LocalCommit, NotHeld>;
}

/// Repositories that somebody else keeps up to date: directories of this machine.
#[derive(Debug, Clone, Default)]
pub struct Directories {
    all: HashMap<Address, PathBuf>,
    series: GitSeries,
}

impl Directories {
    /// By address and directory.
    pub fn new<'a>(all: impl IntoIterator<Item = (&'a str, PathBuf)>) -> Self {
        let all = all.into_iter().map(|(url, directory)| (Address::read(url), directory)).collect();
        Self { all, series: GitSeries::default() }
    }

    /// Walks over them are counted so.
    #[must_use]
    pub fn counted(self, series: GitSeries) -> Self {
        Self { series, ..self }
    }
}

#[async_trait]
impl Repositories for Directories {
    async fn hold(&self, repo_url: &str, revision: &str, _: Option<&Tenant>) -> Result<LocalCommit, NotHeld> {
        let address = Address::read(repo_url);
        let Some(directory) = self.all.get(&address).cloned() else {
            return Err(NotHeld::Unconfigured { address: address.to_string() });
        };
        let revision = if revision.is_empty() { "HEAD".to_owned() } else { revision.to_owned() };
        let series = self.series.clone();
        let held = move || -> Result<LocalCommit, GitError> {
            let commit = GitRepository::open(&directory)?.resolve(&revision)?;
            Ok(LocalCommit { directory, commit, checkout: None, series })
        };
        let held = tokio::task::spawn_blocking(held).await.map_err(|_| NotHeld::GivenUp)?;
        Ok(held?)
    }
}
