//! Walks over the histories of repositories: whoever asks of one while a walk over it is under way is served by the next,
//! together with all others who do. Who asks of what is not on this machine waits for a fetch, and nobody else does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pipeline_redact::Redactor;
use stages_git::application::Application;
use stages_git::remote::{Scoped, Tenant};
use stages_git::walk::{self, Changes, WalkLimits};
use stages_git::{Checkout, Checkouts, FetchError, GitError, GitRepository, Oid, RepositoryUrl, in_one_line};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::diffs::Diffs;
use crate::{ShownChange, ShownSource, Synced};

/// So long a report waits for the repository of a source. It is fetched all the same, for when it is asked for again.
const FETCHED_WITHIN: Duration = Duration::from_secs(30);

/// Why it is not known which commits changed a source. Whoever waited for the same walk is given the same.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WalkError {
    /// The repository cannot be had.
    #[error(transparent)]
    Fetch(#[from] Arc<FetchError>),
    /// What was fetched cannot be read.
    #[error(transparent)]
    Read(#[from] Arc<GitError>),
    /// Its repository takes longer than is waited for it.
    #[error("its repository is not here after {} s, and is waited for no longer", FETCHED_WITHIN.as_secs())]
    TooSlow,
    /// The process is stopping.
    #[error("the walk over the repository's history was given up")]
    GivenUp,
}

impl From<FetchError> for WalkError {
    fn from(error: FetchError) -> Self {
        Self::Fetch(Arc::new(error))
    }
}

impl From<GitError> for WalkError {
    fn from(error: GitError) -> Self {
        Self::Read(Arc::new(error))
    }
}

/// What is asked of one source of an application.
#[derive(Debug, Clone)]
pub struct SourceQuestion {
    /// The application.
    pub application: Application,
    /// As whom it may read repositories.
    pub tenant: Tenant,
    /// Which of its sources.
    pub source: usize,
    /// Where its repository is.
    pub repo_url: String,
    /// The revision it stands at.
    pub current: String,
    /// The revision it stood at before.
    pub previous: Option<String>,
    /// Whether it is also asked what the commits are and what they changed; else which one is the newest, alone.
    pub in_full: bool,
}

impl SourceQuestion {
    fn revisions(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

/// One question, and who waits for its answer.
struct Waiting {
    asked: SourceQuestion,
    /// Gone once its revisions were fetched, or cannot be.
    fetching: Option<oneshot::Sender<()>>,
    answer: oneshot::Sender<Result<ShownSource, WalkError>>,
}

impl Waiting {
    /// Whether whoever asked still waits.
    fn is_awaited(&self) -> bool {
        !self.answer.is_closed()
    }

    /// Whether all its revisions are on this machine.
    fn is_here(&self, revisions: &Revisions) -> bool {
        self.asked.revisions().all(|of| revisions.get(of).is_some_and(Result::is_ok))
    }

    /// Whether all is known of its revisions that its answer depends on.
    fn is_ready(&self, revisions: &Revisions) -> bool {
        let has_current = revisions.get(&self.asked.current).is_some_and(Result::is_ok);
        !has_current || self.asked.previous.as_ref().is_none_or(|of| revisions.contains_key(of))
    }

    /// Whoever asked may be gone by now.
    fn tell(self, answer: Result<ShownSource, WalkError>) {
        let _ = self.answer.send(answer);
    }
}

/// What each revision is on this machine, or why it is not.
type Revisions = BTreeMap<String, Result<Checkout, Arc<FetchError>>>;

/// Walks over repositories. Cloning shares everything.
#[derive(Clone)]
pub struct Walks {
    inner: Arc<Inner>,
}

/// What is told of each source.
#[derive(Clone)]
struct Telling {
    limits: WalkLimits,
    /// Bytes of what its commits changed in files.
    diffs: usize,
    redactor: Redactor,
}

struct Inner {
    checkouts: Checkouts,
    telling: Telling,
    /// Who waits for a walk over what is here.
    waiting: Queues,
    /// Who waits for a fetch, and a walk after it.
    absent: Queues,
}

/// Of each repository that somebody works on, as those may have it who ask: who waits until that is done.
#[derive(Default)]
struct Queues(Mutex<HashMap<Scoped, Vec<Waiting>>>);

impl Queues {
    fn all(&self) -> MutexGuard<'_, HashMap<Scoped, Vec<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has them wait; gives whether nobody works on the repository yet, which whoever called is to do.
    fn put(&self, repository: &Scoped, more: Vec<Waiting>) -> bool {
        let mut all = self.all();
        let begins = !all.contains_key(repository);
        let waiting = all.entry(repository.clone()).or_default();
        waiting.retain(Waiting::is_awaited);
        waiting.extend(more);
        begins
    }

    /// Those who wait for a repository; with `None` nobody works on it any more.
    fn next(&self, repository: &Scoped) -> Option<Vec<Waiting>> {
        let mut all = self.all();
        let mut next = all.get_mut(repository).map(std::mem::take).unwrap_or_default();
        next.retain(Waiting::is_awaited);
        if next.is_empty() {
            all.remove(repository);
            return None;
        }
        Some(next)
    }
}

impl Walks {
    /// Walks over what these checkouts hold; of each source at most so many commits are told, and so many bytes of what they changed
    /// in files, without the secrets that `redactor` finds there.
    #[must_use]
    pub fn new(checkouts: Checkouts, commits: usize, diffs: usize, redactor: Redactor) -> Self {
        let limits = WalkLimits { changes: commits, ..WalkLimits::default() };
        let telling = Telling { limits, diffs, redactor };
        let (waiting, absent) = (Queues::default(), Queues::default());
        Self { inner: Arc::new(Inner { checkouts, telling, waiting, absent }) }
    }

    /// What is told of one source of an application, which stood at `previous` before; why it is not known stands in it.
    pub(crate) async fn source(
        &self,
        application: &Application,
        tenant: &Tenant,
        (of, previous): (&Synced, Option<String>),
        in_full: bool,
    ) -> ShownSource {
        let known = ShownSource {
            repo_url: of.repo_url.clone(),
            revision: of.current.clone(),
            previous_revision: previous.clone(),
            ..ShownSource::default()
        };
        match &of.current {
            // Of a chart of a Helm repository the version is what changes, and of what a registry holds the digest.
            Some(version) if !of.has_commits => {
                ShownSource { change_revision: Some(version.clone()), ..known }
            }
            Some(current) => {
                let asked = SourceQuestion {
                    application: application.clone(),
                    tenant: tenant.clone(),
                    source: of.index,
                    repo_url: of.repo_url.clone(),
                    current: current.clone(),
                    previous,
                    in_full,
                };
                match self.ask(asked).await {
                    Ok(found) => found,
                    Err(error) => ShownSource { error: Some(in_one_line(&error)), ..known },
                }
            }
            None => known,
        }
    }

    /// The commits that changed one source.
    ///
    /// # Errors
    /// Why they are not known.
    pub async fn ask(&self, asked: SourceQuestion) -> Result<ShownSource, WalkError> {
        let url = RepositoryUrl::read(&asked.repo_url)?;
        let of = self.inner.checkouts.scope(&url, Some(&asked.tenant))?;
        let (answer, answered) = oneshot::channel();
        let (fetching, fetched) = oneshot::channel();
        let waiting = Waiting { asked, fetching: Some(fetching), answer };
        if self.inner.waiting.put(&of, vec![waiting]) {
            // It lives on when whoever began it goes: others wait for it too.
            tokio::spawn(walk(self.inner.clone(), of));
        }
        // A walk over what is here comes to its end, and a fetch may not.
        if timeout(FETCHED_WITHIN, fetched).await.is_err() {
            return Err(WalkError::TooSlow);
        }
        answered.await.unwrap_or(Err(WalkError::GivenUp))
    }
}

/// Answers from what is here until nobody waits any more; for the rest it is fetched.
async fn walk(inner: Arc<Inner>, repository: Scoped) {
    while let Some(all) = inner.waiting.next(&repository) {
        let mut revisions = Revisions::new();
        inner.look(&repository, all.iter().flat_map(|of| of.asked.revisions()), &mut revisions).await;
        let (here, absent): (Vec<_>, Vec<_>) = all.into_iter().partition(|of| of.is_here(&revisions));
        if !absent.is_empty() && inner.absent.put(&repository, absent) {
            tokio::spawn(fetch_and_walk(inner.clone(), repository.clone()));
        }
        inner.answer(here, &revisions).await;
    }
}

/// Fetches, and answers from that, until nobody waits for a fetch any more.
async fn fetch_and_walk(inner: Arc<Inner>, repository: Scoped) {
    while let Some(all) = inner.absent.next(&repository) {
        let mut revisions = Revisions::new();
        inner.fetch(&repository, &all, |asked| Some(&asked.current), &mut revisions).await;
        // Where a revision came from, the one before it is as a rule.
        let previous = all.iter().filter_map(|of| of.asked.previous.as_ref());
        inner.look(&repository, previous, &mut revisions).await;
        let (ready, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|of| of.is_ready(&revisions));
        inner.answer(ready, &revisions).await;
        inner.fetch(&repository, &rest, |asked| asked.previous.as_ref(), &mut revisions).await;
        inner.answer(rest, &revisions).await;
    }
}

impl Inner {
    /// Looks which revisions are on this machine, each once; nobody is asked.
    async fn look(
        &self,
        repository: &Scoped,
        wanted: impl Iterator<Item = &String>,
        revisions: &mut Revisions,
    ) {
        for revision in wanted.collect::<BTreeSet<_>>() {
            if !revisions.contains_key(revision)
                && let Some(found) = self.checkouts.here(repository, revision).await
            {
                revisions.insert(revision.clone(), Ok(found));
            }
        }
    }

    /// Has revisions on this machine, each once, however many stand at it, and none that nobody waits for any more.
    async fn fetch(
        &self,
        repository: &Scoped,
        all: &[Waiting],
        wanted: fn(&SourceQuestion) -> Option<&String>,
        revisions: &mut Revisions,
    ) {
        for of in all {
            if let Some(revision) = wanted(&of.asked)
                && !revisions.contains_key(revision)
                && of.is_awaited()
            {
                let found = self.checkouts.checkout_of(repository, revision).await;
                revisions.insert(revision.clone(), found);
            }
        }
    }

    /// Answers all who still wait, from one walk.
    async fn answer(&self, mut all: Vec<Waiting>, revisions: &Revisions) {
        all.retain(Waiting::is_awaited);
        if all.is_empty() {
            return;
        }
        for of in &mut all {
            of.fetching = None;
        }
        let (revisions, telling) = (revisions.clone(), self.telling.clone());
        // Where this does not run to its end, whoever waits is told so.
        let _ = tokio::task::spawn_blocking(move || blocking(all, &revisions, &telling)).await;
    }
}

/// Answers all who wait, from one walk.
fn blocking(all: Vec<Waiting>, revisions: &Revisions, telling: &Telling) {
    let Some(clone) = revisions.values().find_map(|found| found.as_ref().ok()) else {
        for of in all {
            let why = revisions.get(&of.asked.current).and_then(|found| found.as_ref().err());
            let why = why.map_or(WalkError::GivenUp, |error| error.clone().into());
            of.tell(Err(why));
        }
        return;
    };
    let repository = match clone.open() {
        Ok(repository) => repository,
        Err(error) => {
            let error = WalkError::from(error);
            return all.into_iter().for_each(|of| of.tell(Err(error.clone())));
        }
    };
    let (mut ready, mut wanted) = (Vec::new(), Vec::new());
    for of in all {
        match wanted_of(&of.asked, revisions, &repository) {
            Ok(asked) => {
                wanted.push(asked);
                ready.push(of);
            }
            Err(error) => of.tell(Err(error)),
        }
    }
    let mut diffs = Diffs::new(&repository, &telling.redactor);
    match repository.changes(&wanted, telling.limits) {
        Ok(found) => {
            for (of, found) in ready.into_iter().zip(found) {
                let mut answer = shown(&repository, &of.asked, found);
                // What was told of an earlier sync is not told once more, and nothing to whoever is gone.
                if let Ok(source) = &mut answer
                    && !source.none_is_new
                    && !of.answer.is_closed()
                {
                    diffs.tell(&mut source.changes, telling.diffs);
                }
                of.tell(answer);
            }
        }
        Err(error) => {
            let error = WalkError::from(error);
            ready.into_iter().for_each(|of| of.tell(Err(error.clone())));
        }
    }
}

/// What is asked of the walk.
fn wanted_of(
    asked: &SourceQuestion,
    revisions: &Revisions,
    repository: &GitRepository,
) -> Result<walk::WalkRequest, WalkError> {
    let commit = |revision: &String| match revisions.get(revision) {
        Some(Ok(checkout)) => Ok(checkout.commit),
        Some(Err(error)) => Err(error.clone()),
        None => Err(Arc::new(FetchError::Stopping)),
    };
    let to = commit(&asked.current)?;
    let since = match asked.previous.as_ref().map(|previous| (previous, commit(previous))) {
        None => None,
        Some((_, Ok(commit))) => Some(commit),
        // After a forced push, which a server may not say, everything counts as new, and that is said.
        Some((previous, Err(error))) if error.is_of_revision() && !error.is_transient() => {
            Some(Oid::from_str(previous).unwrap_or(Oid::ZERO_SHA1))
        }
        Some((_, Err(error))) => return Err(error.into()),
    };
    let files = repository.snapshot(to)?;
    let paths = asked.application.paths(asked.source, &files)?;
    Ok(walk::WalkRequest { to, since, paths })
}

fn shown(
    repository: &GitRepository,
    asked: &SourceQuestion,
    found: Changes,
) -> Result<ShownSource, WalkError> {
    let none_is_new = found.since.is_empty();
    // What no commit ever changed stands as it was synced.
    let change_revision =
        found.newest.as_ref().map_or_else(|| asked.current.clone(), |of| of.commit.to_string());
    let changes = match asked.in_full {
        true if none_is_new => found.newest.into_iter().collect(),
        true => found.since,
        false => Vec::new(),
    };
    let changes = changes.into_iter().map(|change| {
        let commit = repository.commit(change.commit)?;
        let made_from = match asked.application.is_hydrated() {
            true => repository.beside_parent(change.commit)?.made_from()?,
            false => None,
        };
        Ok(ShownChange {
            revision: commit.revision,
            author: commit.author,
            date: commit.date,
            message: commit.message,
            made_from,
            paths: change.paths,
            more_paths: change.more_paths,
            diffs: Vec::new(),
        })
    });
    Ok(ShownSource {
        repo_url: asked.repo_url.clone(),
        revision: Some(asked.current.clone()),
        previous_revision: asked.previous.clone(),
        change_revision: Some(change_revision),
        changes: changes.collect::<Result<_, WalkError>>()?,
        none_is_new,
        more: found.more,
        previous_unknown: found.since_unknown,
        error: None,
    })
}

#[cfg(test)]
mod tests;
