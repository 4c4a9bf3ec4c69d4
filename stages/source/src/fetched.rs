//! Repositories that are fetched when they are asked about.
//!
//! Whoever asks names the address, so that only those are called that the settings or the credentials name: nobody makes
//! this process call what they could not call themselves.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pipeline_core::async_trait;
use stages_git::remote::{Scoped, Tenant};
use stages_git::{Checkout, Checkouts, FetchError, RepositoryUrl, UrlPrefix};
use tokio::sync::watch;

use crate::repositories::{Directories, LocalCommit, NotHeld, Repositories};

/// Revisions that are fetched or waited for at the same time.
const MOST: usize = 1_024;

type Key = (Scoped, String);
type Outcome = Option<Result<Checkout, Arc<FetchError>>>;
type Fetches = Mutex<HashMap<Key, watch::Receiver<Outcome>>>;

/// Repositories elsewhere, in a cache that is bounded; those that stand in a directory are read there.
pub struct Fetched {
    kept: Directories,
    checkouts: Checkouts,
    allowed: Vec<UrlPrefix>,
    running: Arc<Fetches>,
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched").field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl Fetched {
    /// What is in no directory is fetched, where its address begins as one that is allowed, or there is a credential for it.
    pub fn new(kept: Directories, checkouts: Checkouts, allowed: Vec<UrlPrefix>) -> Self {
        Self { kept, checkouts, allowed, running: Arc::default() }
    }

    fn may_fetch(&self, url: &RepositoryUrl, of: Option<&Tenant>) -> bool {
        self.allowed.iter().any(|prefix| prefix.covers(url)) || self.checkouts.names(url, of)
    }

    /// A fetch goes on when whoever asked has gone: a repository that takes longer than one answer may is there in the end.
    /// However many ask for one revision at a time, one task fetches it.
    async fn fetch(&self, key: Key) -> Result<Checkout, NotHeld> {
        let mut outcome = {
            let mut running = lock(&self.running);
            match running.get(&key) {
                Some(outcome) => outcome.clone(),
                None if running.len() >= MOST => return Err(NotHeld::TooMany),
                None => {
                    let (tell, outcome) = watch::channel(None);
                    running.insert(key.clone(), outcome.clone());
                    let checkouts = self.checkouts.clone();
                    let done = Done { running: self.running.clone(), key };
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
        // The task that would tell is gone only when the process stops.
        let told = outcome.wait_for(Option::is_some).await.map_err(|_| NotHeld::GivenUp)?;
        match &*told {
            Some(Ok(checkout)) => Ok(checkout.clone()),
            Some(Err(error)) => Err(NotHeld::Fetch(error.clone())),
            None => Err(NotHeld::GivenUp),
        }
    }
}

#[async_trait]
impl Repositories for Fetched {
    async fn hold(
        &self,
        repo_url: &str,
        revision: &str,
        of: Option<&Tenant>,
    ) -> Result<LocalCommit, NotHeld> {
        match self.kept.hold(repo_url, revision, of).await {
            Err(NotHeld::Unconfigured { .. }) => {}
            other => return other,
        }
        let url = RepositoryUrl::read(repo_url).map_err(|error| NotHeld::Fetch(Arc::new(error)))?;
        // Why an application may not have it is said before that nobody named it.
        let repository = self.checkouts.scope(&url, of).map_err(Arc::new)?;
        if !self.may_fetch(&url, of) {
            return Err(NotHeld::NotAllowed { url: url.to_string() });
        }
        let checkout = self.fetch((repository, revision.to_owned())).await?;
        let (directory, commit) = (checkout.directory().to_owned(), checkout.commit);
        Ok(LocalCommit { directory, commit, checkout: Some(checkout), series: self.checkouts.series() })
    }
}

/// Forgets a fetch when it is over, however it ended.
struct Done {
    running: Arc<Fetches>,
    key: Key,
}

impl Drop for Done {
    fn drop(&mut self) {
        lock(&self.running).remove(&self.key);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
