//! Repositories elsewhere, fetched into a directory that is bounded.
//!
//! takes: the address of a repository and a branch, tag or commit - gives: a [`Checkout`], whose commit and all it follows
//! are on this machine - fails: with a [`FetchError`] that says what to do.
//!
//! One repository is fetched once at a time, however many ask; one that fails is asked again after a while and bothers
//! nobody else. Only what is asked for is fetched: branches that nobody names stay where they are. When the directory is
//! full, the clone that was used longest ago goes; one that is in use never does.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use git2::Oid;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use super::access::{Access, Scoped};
use super::bare::whole;
use super::clone_dir::{CloneDir, Reading};
use super::config::Config;
use super::credentials::{Credential, Credentials};
use super::github_tokens::GitHubApps;
use super::push::{Push, Pushed};
use super::session::{self, Reach};
use super::slots::Slots;
use super::tenant::Tenant;
use super::url::Scheme;
use super::{FetchError, RepositoryUrl, bare, blocking, lock};
use crate::series::Held;
use crate::{GitRepository, GitSeries};

/// Names that are remembered of one repository.
const MOST_NAMES: usize = 4_096;
/// So long is waited for the process that had the directory before.
const HANDED_OVER: Duration = Duration::from_secs(5);
/// A file whose age says when a clone was used last.
const USED: &str = "used";

/// Fetches repositories, and keeps them while they are used. Cloning shares everything.
#[derive(Clone)]
pub struct Checkouts {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    access: Mutex<Arc<Access>>,
    apps: GitHubApps,
    entries: Mutex<HashMap<Scoped, Arc<Entry>>>,
    slots: Slots,
    /// What it was last said to hold.
    counted: Mutex<Held>,
    // Another process that names the same directory is told so.
    _lock: File,
}

/// One repository of the cache.
struct Entry {
    clone: Arc<CloneDir>,
    used: Mutex<Instant>,
    state: tokio::sync::Mutex<State>,
    /// Whoever commits.
    turn: Semaphore,
}

#[derive(Default)]
struct State {
    names: HashMap<String, (Oid, Instant)>,
    failed: HashMap<String, (Arc<FetchError>, Instant)>,
}

/// A commit that is on this machine, with everything it follows, for as long as this is held.
#[derive(Clone)]
pub struct Checkout {
    /// The commit.
    pub commit: Oid,
    held: CloneGuard,
}

/// A clone that stays for as long as this is held.
#[derive(Clone)]
pub(super) struct CloneGuard {
    entry: Arc<Entry>,
    _reading: Arc<Reading>,
    url: RepositoryUrl,
    series: GitSeries,
}

impl fmt::Debug for Checkouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkouts").field("directory", &self.inner.config.directory).finish_non_exhaustive()
    }
}

impl fmt::Debug for Checkout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkout")
            .field("commit", &self.commit)
            .field("url", &self.held.url)
            .finish_non_exhaustive()
    }
}

/// What a repository has by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its branches.
    pub branches: Vec<String>,
    /// Its tags.
    pub tags: Vec<String>,
}

impl CloneGuard {
    /// Until it is dropped, nobody else of this process commits to the repository.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.entry.turn.acquire().await
    }

    fn open(&self) -> Result<GitRepository, FetchError> {
        GitRepository::open_bare(self.entry.clone.path())
            .map(|repository| repository.counted(self.series.clone()))
            .map_err(|source| FetchError::Read { url: self.url.to_string(), source })
    }

    /// Reads from the clone, on a thread that may block.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&GitRepository) -> T + Send + 'static,
    ) -> Result<T, FetchError> {
        let this = self.clone();
        blocking(move || Ok(read(&this.open()?))).await
    }
}

impl Checkout {
    /// The clone that holds it.
    pub(super) fn held(&self) -> &CloneGuard {
        &self.held
    }

    /// Opens the clone; work with it blocks.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> Result<GitRepository, FetchError> {
        self.held.open()
    }

    /// The clone's directory.
    pub fn directory(&self) -> &Path {
        self.held.entry.clone.path()
    }

    /// Reads from the clone, on a thread that may block.
    ///
    /// # Errors
    /// The clone cannot be opened, or the process is stopping.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&GitRepository, Oid) -> T + Send + 'static,
    ) -> Result<T, FetchError> {
        let commit = self.commit;
        self.held.read(move |repository| read(repository, commit)).await
    }
}

impl Checkouts {
    /// Opens the directory, removes what a killed process left in it, and takes it for this process alone.
    ///
    /// # Errors
    /// It cannot be written to, or another process has it.
    pub async fn new(config: Config) -> Result<Self, FetchError> {
        blocking(move || Self::open(config)).await
    }

    fn open(config: Config) -> Result<Self, FetchError> {
        let directory = &config.directory;
        let cannot = |error: std::io::Error| FetchError::cache(directory, error);
        fs::create_dir_all(directory).map_err(cannot)?;
        let lock = File::create(directory.join("lock")).map_err(cannot)?;
        let began = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                // The process before may be ending right now.
                Err(TryLockError::WouldBlock) if began.elapsed() < HANDED_OVER => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(FetchError::CacheInUse { directory: directory.display().to_string() });
                }
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
            }
        }
        for entry in fs::read_dir(directory).map_err(cannot)?.flatten() {
            let path = entry.path();
            match path.extension().and_then(|end| end.to_str()) {
                Some("git") => bare::sweep(&path),
                Some("gone") => {
                    let _ = fs::remove_dir_all(&path);
                }
                _ => {}
            }
        }
        let slots = Slots::new(config.concurrent);
        let (access, apps, entries) = (Mutex::default(), GitHubApps::new(config.pause), Mutex::default());
        let inner = Inner { config, access, apps, entries, slots, counted: Mutex::default(), _lock: lock };
        inner.evict();
        Ok(Self { inner: Arc::new(inner) })
    }

    /// From now on repositories are asked with these credentials, hosts and authorities. What was refused before is tried
    /// again at once.
    pub fn set_access(&self, access: Access) {
        *lock(&self.inner.access) = Arc::new(access);
        self.inner.apps.forget_failures();
        let all: Vec<Arc<Entry>> = lock(&self.inner.entries).values().cloned().collect();
        for entry in all {
            // One that is being fetched right now is asked with the former ones and pauses if that fails.
            if let Ok(mut state) = entry.state.try_lock() {
                state.failed.clear();
            }
        }
    }

    /// What is counted.
    pub fn series(&self) -> GitSeries {
        self.inner.config.series.clone()
    }

    /// Whether there is a credential for this address that an application, or somebody who is none, may use; or it is named by one
    /// that has nothing to show.
    pub fn names(&self, url: &RepositoryUrl, of: Option<&Tenant>) -> bool {
        lock(&self.inner.access).credentials.names(url, of.map_or("", Tenant::project))
    }

    /// The repository as an application may have it, or somebody who is none. What was fetched with the credentials of a project is kept apart: a commit
    /// that is there is given without asking anybody.
    ///
    /// # Errors
    /// The application's project does not permit it, or its credentials are of other projects alone.
    pub fn scope(&self, url: &RepositoryUrl, of: Option<&Tenant>) -> Result<Scoped, FetchError> {
        lock(&self.inner.access).scope(url, of)
    }

    /// The commit that a branch, a tag, `HEAD` or an (abbreviated) id means now; it is fetched.
    ///
    /// # Errors
    /// As [`Checkouts::checkout`].
    pub async fn resolve(&self, url: &RepositoryUrl, revision: &str) -> Result<Oid, Arc<FetchError>> {
        Ok(self.checkout(url, revision).await?.commit)
    }

    /// A commit of this whole id that is on this machine already; nobody is asked.
    pub async fn here(&self, of: &Scoped, revision: &str) -> Option<Checkout> {
        if !self.inner.config.reads(&of.url) {
            return None;
        }
        let entry = self.inner.entry(of);
        let (commit, reading) = here(&entry, whole(revision)?).await?;
        Some(Checkout { commit, held: self.held(&of.url, entry, reading) })
    }

    /// Has a commit on this machine. Of a commit's whole id that is there already nobody is asked; a branch or tag is asked
    /// for once it is older than `fresh`. An empty revision is `HEAD`.
    ///
    /// # Errors
    /// The repository cannot be fetched, or has no such revision. The same error is given to all who ask within `pause`.
    pub async fn checkout(&self, url: &RepositoryUrl, revision: &str) -> Result<Checkout, Arc<FetchError>> {
        self.checkout_of(&self.scope(url, None)?, revision).await
    }

    /// The same of a repository as an application may have it.
    ///
    /// # Errors
    /// As [`Checkouts::checkout`].
    pub async fn checkout_of(&self, of: &Scoped, revision: &str) -> Result<Checkout, Arc<FetchError>> {
        let url = &of.url;
        let revision = if revision.is_empty() { "HEAD" } else { revision };
        let config = &self.inner.config;
        if !config.reads(url) {
            return Err(Arc::new(FetchError::FilesRefused { url: url.to_string() }));
        }
        let entry = self.inner.entry(of);
        let done = |commit, reading| Ok(Checkout { commit, held: self.held(url, entry.clone(), reading) });
        if let Some(found) = self.here(of, revision).await {
            return Ok(found);
        }
        let mut state = entry.state.lock().await;
        let fresh = state.names.get(revision).filter(|(_, seen)| seen.elapsed() < config.fresh);
        if let Some(id) = whole(revision).or(fresh.map(|(commit, _)| *commit))
            && let Some((commit, reading)) = here(&entry, id).await
        {
            return done(commit, reading);
        }
        // A repository that cannot be had at all is remembered under no revision.
        for of in [revision, ""] {
            match state.failed.get(of) {
                Some((error, seen)) if seen.elapsed() < error.pause(config.pause) => {
                    return Err(error.clone());
                }
                _ => {}
            }
        }
        let access = lock(&self.inner.access).within(of);
        let fetched = self.fetch(url, &entry, revision, &access).await;
        let reading = entry.clone.read();
        // What was just fetched, or of which a part was, is in use, and stays.
        self.counted().await;
        state.names.retain(|_, (_, seen)| seen.elapsed() < config.fresh);
        state.failed.retain(|_, (error, seen)| seen.elapsed() < error.pause(config.pause));
        match fetched {
            Ok(commit) => {
                if state.names.len() < MOST_NAMES && whole(revision).is_none() {
                    state.names.insert(revision.to_owned(), (commit, Instant::now()));
                }
                done(commit, reading)
            }
            Err(error) => {
                let of = if error.is_of_revision() { revision } else { "" };
                let error = Arc::new(error);
                if state.failed.len() < MOST_NAMES {
                    state.failed.insert(of.to_owned(), (error.clone(), Instant::now()));
                }
                Err(error)
            }
        }
    }

    /// What a branch, tag or commit means now to whoever has a credential. Their server is asked each time, so that nobody
    /// reads of a clone what they may not fetch.
    ///
    /// # Errors
    /// They may not fetch it, or it is not there.
    pub async fn checkout_as(
        &self,
        url: &RepositoryUrl,
        revision: &str,
        who: &Credential,
    ) -> Result<Checkout, FetchError> {
        let access = self.access_of(url, who)?;
        let entry = self.inner.entry(&Scoped { url: url.clone(), project: None });
        let (commit, reading) = {
            let _state = entry.state.lock().await;
            (self.fetch(url, &entry, revision, &access).await?, entry.clone.read())
        };
        let checkout = Checkout { commit, held: self.held(url, entry, reading) };
        self.counted().await;
        Ok(checkout)
    }

    /// A clone of a repository that has no branch yet; `None`: it has one.
    pub(super) async fn empty_as(
        &self,
        url: &RepositoryUrl,
        who: &Credential,
    ) -> Result<Option<CloneGuard>, FetchError> {
        if !self.named_as(url, who).await?.branches.is_empty() {
            return Ok(None);
        }
        let entry = self.inner.entry(&Scoped { url: url.clone(), project: None });
        let reading = {
            let _state = entry.state.lock().await;
            let (clone, of) = (entry.clone.clone(), url.clone());
            blocking(move || bare::prepare(&clone, &of).map(drop)).await?;
            entry.clone.read()
        };
        self.counted().await;
        Ok(Some(self.held(url, entry, reading)))
    }

    fn held(&self, url: &RepositoryUrl, entry: Arc<Entry>, reading: Arc<Reading>) -> CloneGuard {
        CloneGuard { entry, _reading: reading, url: url.clone(), series: self.series() }
    }

    /// The branches and tags that whoever has a credential sees, sorted.
    ///
    /// # Errors
    /// They may not fetch it, or it is not there.
    pub async fn named_as(&self, url: &RepositoryUrl, who: &Credential) -> Result<Named, FetchError> {
        let access = self.access_of(url, who)?;
        let refs = self.within(url, session::refs(url, &self.reach(url, &access).await?)).await?;
        let of = |prefix: &str| {
            let names = refs.iter().filter_map(|of| of.name.strip_prefix(prefix));
            let mut names: Vec<String> = names.map(str::to_owned).collect();
            names.sort_unstable();
            names
        };
        Ok(Named { branches: of("refs/heads/"), tags: of("refs/tags/") })
    }

    pub(super) async fn push_as(
        &self,
        url: &RepositoryUrl,
        who: &Credential,
        push: &Push<'_>,
    ) -> Result<Pushed, FetchError> {
        let access = self.access_of(url, who)?;
        self.within(url, session::push(url, push, &self.reach(url, &access).await?)).await
    }

    /// What a server is reached with, once there is a slot for it.
    async fn reach<'a>(&'a self, url: &RepositoryUrl, access: &'a Access) -> Result<Reach<'a>, FetchError> {
        let slot = self.inner.slots.take(&url.host()).await?;
        Ok(Reach { config: &self.inner.config, access, apps: &self.inner.apps, slot })
    }

    /// What is asked with as somebody: their credential, and no other.
    fn access_of(&self, url: &RepositoryUrl, who: &Credential) -> Result<Access, FetchError> {
        if !matches!(url.scheme(), Scheme::Https | Scheme::Http) {
            return Err(FetchError::Address {
                why: "people's credentials are for https:// and http:// alone",
            });
        }
        let own = Credential { url: url.as_str().to_owned(), is_prefix: false, ..who.clone() };
        let access = lock(&self.inner.access).clone();
        Ok(Access { credentials: Credentials::new(vec![own]), ..(*access).clone() })
    }

    /// Makes room, and counts what is there.
    async fn counted(&self) {
        let inner = self.inner.clone();
        let _ = tokio::task::spawn_blocking(move || inner.evict()).await;
    }

    async fn within<T>(
        &self,
        url: &RepositoryUrl,
        doing: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        let limit = self.inner.config.timeout;
        let late = || FetchError::TooSlow { url: url.to_string(), limit };
        tokio::time::timeout(limit, doing).await.unwrap_or_else(|_| Err(late()))
    }

    async fn fetch(
        &self,
        url: &RepositoryUrl,
        entry: &Entry,
        revision: &str,
        access: &Access,
    ) -> Result<Oid, FetchError> {
        let config = &self.inner.config;
        let waits = config.series.waits();
        let reach = self.reach(url, access).await?;
        drop(waits);
        let fetching = session::fetch(url, &entry.clone, revision, reach);
        let started = Instant::now();
        let fetched = self.within(url, fetching).await;
        let took = started.elapsed();
        config.series.fetch(fetched.as_ref().err().map(FetchError::failure), took);
        let seconds = took.as_secs_f32();
        match &fetched {
            Ok(commit) => tracing::debug!(%url, revision, %commit, seconds, "fetched"),
            Err(error) => {
                tracing::debug!(%url, revision, error = error as &dyn std::error::Error, seconds, "not fetched");
            }
        }
        fetched
    }
}

impl Inner {
    fn entry(&self, of: &Scoped) -> Arc<Entry> {
        let mut entries = lock(&self.entries);
        let entry = entries.entry(of.clone()).or_insert_with(|| {
            let directory = of.url.directory(of.project.as_deref());
            Arc::new(Entry {
                clone: Arc::new(CloneDir::new(self.config.directory.join(directory))),
                used: Mutex::new(Instant::now()),
                state: tokio::sync::Mutex::default(),
                turn: Semaphore::new(1),
            })
        });
        *lock(&entry.used) = Instant::now();
        entry.clone()
    }

    /// Removes clones that nobody uses, the one that was used longest ago first, until the rest fits.
    fn evict(&self) {
        let mut all = Vec::new();
        let mut sum = 0;
        for entry in fs::read_dir(&self.config.directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "git") {
                let size = bare::size(&path, 0);
                let used = fs::metadata(path.join(USED)).and_then(|of| of.modified());
                sum += size;
                all.push((path, size, used.unwrap_or(SystemTime::UNIX_EPOCH)));
            }
        }
        {
            let entries = lock(&self.entries);
            for entry in entries.values() {
                let ago = lock(&entry.used).elapsed();
                let used = SystemTime::now().checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH);
                if let Some(of) = all.iter_mut().find(|(path, ..)| path == entry.clone.path()) {
                    of.2 = used;
                    // The next process is told so as well; nothing is lost if it is not.
                    let _ =
                        File::create(entry.clone.path().join(USED)).and_then(|file| file.set_modified(used));
                }
            }
        }
        all.sort_by_key(|(_, _, used)| *used);
        let (mut gone, clones) = (Vec::new(), all.len());
        for (path, size, _) in all {
            if sum <= self.config.bytes {
                break;
            }
            let mut entries = lock(&self.entries);
            let known = entries.iter().find(|(_, entry)| entry.clone.path() == path);
            // Held by the map alone: nobody can begin to use it while the map is locked.
            let unused = known.is_none_or(|(_, entry)| Arc::strong_count(entry) == 1);
            let to = path.with_extension("gone");
            if unused && fs::rename(&path, &to).is_ok() {
                entries.retain(|_, entry| entry.clone.path() != path);
                sum -= size;
                gone.push(to);
            }
        }
        let held = Held { bytes: sum, limit: self.config.bytes, clones: (clones - gone.len()) as u64 };
        let before = std::mem::replace(&mut *lock(&self.counted), held);
        self.config.series.cache(held, before, gone.len());
        for path in gone {
            let _ = fs::remove_dir_all(path);
        }
        // Addresses that were asked for and have no clone are forgotten some day.
        let mut entries = lock(&self.entries);
        if entries.len() > MOST_NAMES {
            entries.retain(|_, entry| Arc::strong_count(entry) > 1 || entry.clone.path().exists());
        }
    }
}

/// Keeps the clone if it has the commit that an id means.
async fn here(entry: &Entry, id: Oid) -> Option<(Oid, Arc<Reading>)> {
    let clone = entry.clone.clone();
    let look = move || {
        let mark = clone.mark();
        let commit =
            git2::Repository::open_bare(clone.path()).ok().and_then(|of| bare::commit_of(&of, id))?;
        let reading = if bare::is_damaged(clone.path()) { None } else { clone.read_marked(&mark) };
        Some((commit, reading?))
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}
