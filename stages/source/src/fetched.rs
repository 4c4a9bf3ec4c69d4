//! Repositories that are fetched when they are asked about.
//!
//! Whoever asks names the address. Only addresses that the settings or the credentials name are fetched, so that nobody makes this
//! process call what they could not call themselves.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pipeline_core::async_trait;
use stages_git::remote::{Scoped, Tenant};
use stages_git::{Checkout, Checkouts, FetchError, RepositoryUrl, UrlPrefix};
use tokio::sync::watch;

use crate::repositories::{Directories, LocalCommit, Repositories, RepositoryError};

/// The most revisions that are fetched at a time.
const MAX_FETCHES: usize = 1_024;

type Key = (Scoped, String);
type Outcome = Option<Result<Checkout, Arc<FetchError>>>;
type Fetches = Mutex<HashMap<Key, watch::Receiver<Outcome>>>;

/// Repositories that are fetched into a bounded cache; those that stand in a directory are read there instead.
pub struct FetchedRepositories {
    kept: Directories,
    checkouts: Checkouts,
    allowed: Vec<UrlPrefix>,
    running: Arc<Fetches>,
}

impl fmt::Debug for FetchedRepositories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchedRepositories").field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl FetchedRepositories {
    /// A repository that `kept` has no directory of is fetched if its address has an allowed prefix, or there is a credential for it.
    pub fn new(kept: Directories, checkouts: Checkouts, allowed: Vec<UrlPrefix>) -> Self {
        Self { kept, checkouts, allowed, running: Arc::default() }
    }

    fn may_fetch(&self, url: &RepositoryUrl, of: Option<&Tenant>) -> bool {
        self.allowed.iter().any(|prefix| prefix.covers(url)) || self.checkouts.names(url, of)
    }

    /// Fetches a revision, by one task however many ask for it at a time. The task goes on when they have gone, so that a repository
    /// whose fetch takes longer than an answer may is there in the end.
    async fn fetch(&self, key: Key) -> Result<Checkout, RepositoryError> {
        let mut outcome = {
            let mut running = lock(&self.running);
            match running.get(&key) {
                Some(outcome) => outcome.clone(),
                None if running.len() >= MAX_FETCHES => return Err(RepositoryError::TooMany),
                None => {
                    let (tell, outcome) = watch::channel(None);
                    running.insert(key.clone(), outcome.clone());
                    let checkouts = self.checkouts.clone();
                    let done = RunningFetch { running: self.running.clone(), key };
                    tokio::spawn(async move {
                        let (repository, revision) = &done.key;
                        let found = checkouts.checkout_of(repository, revision).await;
                        tell.send_replace(Some(found));
                        drop(done);
                    });
                    outcome
                }
            }
        };
        // The sender is dropped unsent only when the process stops.
        let told = outcome.wait_for(Option::is_some).await.map_err(|_| RepositoryError::GivenUp)?;
        match &*told {
            Some(Ok(checkout)) => Ok(checkout.clone()),
            Some(Err(error)) => Err(RepositoryError::Fetch(error.clone())),
            None => Err(RepositoryError::GivenUp),
        }
    }
}

#[async_trait]
impl Repositories for FetchedRepositories {
    async fn hold(
        &self,
        repo_url: &str,
        revision: &str,
        of: Option<&Tenant>,
    ) -> Result<LocalCommit, RepositoryError> {
        match self.kept.hold(repo_url, revision, of).await {
            Err(RepositoryError::Unconfigured { .. }) => {}
            other => return other,
        }
        let url = RepositoryUrl::read(repo_url).map_err(|error| RepositoryError::Fetch(Arc::new(error)))?;
        // That an application may not read it is reported rather than that nobody allowed it.
        let repository = self.checkouts.scope(&url, of).map_err(Arc::new)?;
        if !self.may_fetch(&url, of) {
            return Err(RepositoryError::NotAllowed { url: url.to_string() });
        }
        let checkout = self.fetch((repository, revision.to_owned())).await?;
        let (directory, commit) = (checkout.directory().to_owned(), checkout.commit);
        Ok(LocalCommit { directory, commit, checkout: Some(checkout), series: self.checkouts.series() })
    }
}

/// A fetch that is under way; it is forgotten once this is dropped.
struct RunningFetch {
    running: Arc<Fetches>,
    key: Key,
}

impl Drop for RunningFetch {
    fn drop(&mut self) {
        lock(&self.running).remove(&self.key);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
