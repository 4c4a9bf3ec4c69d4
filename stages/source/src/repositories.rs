//! Where repositories are, for whoever reads them.

use std::collections::HashMap;
use std::path::PathBuf;

use pipeline_core::async_trait;
use stages_git::{Address, GitError, GitRepository, Oid};

/// A commit, and the repository on this machine that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Where the repository is.
    pub directory: PathBuf,
    /// The commit that the revision names.
    pub commit: Oid,
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
    /// It cannot be read, or has no such revision.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The work was given up.
    #[error("read the repository: the work was given up")]
    GivenUp,
}

/// Holds repositories, or fetches them.
#[async_trait]
pub trait Repositories: std::fmt::Debug + Send + Sync {
    /// The commit of a revision (a branch, a tag, a commit's id; empty is `HEAD`), in a repository that can be read until the
    /// answer is dropped.
    async fn hold(&self, repo_url: &str, revision: &str) -> Result<Held, NotHeld>;
}

/// Repositories that somebody else keeps up to date: directories of this machine.
#[derive(Debug, Clone, Default)]
pub struct Directories {
    all: HashMap<Address, PathBuf>,
}

impl Directories {
    /// By address and directory.
    pub fn new<'a>(all: impl IntoIterator<Item = (&'a str, PathBuf)>) -> Self {
        Self { all: all.into_iter().map(|(url, directory)| (Address::read(url), directory)).collect() }
    }
}

#[async_trait]
impl Repositories for Directories {
    async fn hold(&self, repo_url: &str, revision: &str) -> Result<Held, NotHeld> {
        let address = Address::read(repo_url);
        let Some(directory) = self.all.get(&address).cloned() else {
            return Err(NotHeld::Unconfigured { address: address.to_string() });
        };
        let revision = if revision.is_empty() { "HEAD".to_owned() } else { revision.to_owned() };
        let held = move || -> Result<Held, GitError> {
            let commit = GitRepository::open(&directory)?.resolve(&revision)?;
            Ok(Held { directory, commit })
        };
        let held = tokio::task::spawn_blocking(held).await.map_err(|_| NotHeld::GivenUp)?;
        Ok(held?)
    }
}
