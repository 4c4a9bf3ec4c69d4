//! Watches the objects of several kinds, each by a [`Watch`] of its own, as one source.
//!
//! takes: nothing - gives: an event for every object of every kind that is served
//! calls: as [`Watch`] does, and before it what tells whether a kind is served ([`crate::discovery`]) - fails: never for
//! good, and no kind for another: one that is not installed, or that may not be read, is waited for while the others go on

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures::future::join_all;
use pipeline_core::{
    Emitter, Event, Key, KindState, ObjectIndex, Reason, Remembered, Shutdown, Source, SourceNote,
    StageError, Survey, SurveyResult, Version, async_trait,
};
use tracing::{info, warn};

use crate::connection::Connection;
use crate::failure_tracker::FailureTracker;
use crate::kind::{Kind, Mapping};
use crate::watch::{Deps, Watch};
use crate::{Config, ConfigError, Namespaces, Selector, discovery};

/// A kind that is to be watched.
pub struct Wanted<M> {
    /// Its group and names; the version counts only where it is pinned. Keys call it by its singular: no two of the same source may
    /// have the same.
    pub kind: Kind,
    /// Only this version is taken, and not the one that the server prefers.
    pub pinned: bool,
    /// Patterns of the only namespaces, of those that are watched at all; none for all.
    pub only: Vec<String>,
    /// Patterns of namespaces that are left out.
    pub except: Vec<String>,
    /// Which of its objects the server is asked for.
    pub selector: Selector,
    /// Makes what is made of its objects, once its version is known.
    pub mapping: Box<dyn Fn(Kind) -> M + Send + Sync>,
}

/// The source of the events of several kinds.
pub struct Watches<M> {
    config: Config,
    connection: Connection,
    every: Duration,
    deps: Deps,
    entries: Vec<WatchedKind<M>>,
}

impl<M> std::fmt::Debug for Watches<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watches").field("kinds", &self.entries.len()).finish_non_exhaustive()
    }
}

/// One kind, and its watch while it is served.
struct WatchedKind<M> {
    wanted: Wanted<M>,
    namespaces: Namespaces,
    /// What its watches have seen, whatever version they asked for.
    seen: ObjectIndex,
    watch: RwLock<Option<Arc<Watch<M>>>>,
}

impl<M> WatchedKind<M> {
    fn watch(&self) -> Option<Arc<Watch<M>>> {
        self.watch.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, watch: Option<Arc<Watch<M>>>) {
        *self.watch.write().unwrap_or_else(PoisonError::into_inner) = watch;
    }
}

/// Which kind is asked for that no watch is open for.
#[derive(Debug, thiserror::Error)]
#[error("objects of this kind are not served by the api server now")]
struct NotServed;

/// How each kind of a source stands, so that all can be told as one.
#[derive(Debug)]
struct Standing {
    kinds: Vec<State>,
    listed: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Nothing of it is still to be listed before the source is ready.
    settled: bool,
    objects: usize,
    broken: bool,
}

impl Standing {
    /// What is told of the source when kind `at` tells `note`. While one kind is broken the others are no sign of life:
    /// what is broken shows for as long as it is. That all is listed is told once, when every kind is listed, is not there,
    /// or cannot be read for now.
    fn take(&mut self, at: usize, note: SourceNote) -> Vec<SourceNote> {
        let mut told = Vec::new();
        if let Some(kind) = self.kinds.get_mut(at) {
            match note {
                SourceNote::Broken(_) => (kind.broken, kind.settled) = (true, true),
                SourceNote::Listed { objects } => *kind = State { settled: true, objects, broken: false },
                SourceNote::Alive | SourceNote::Page { .. } => kind.broken = false,
                SourceNote::Listing
                | SourceNote::Malformed
                | SourceNote::Ended
                | SourceNote::Kind { .. }
                | SourceNote::Gap { .. } => {}
            }
        }
        let broken = self.kinds.iter().any(|kind| kind.broken);
        match note {
            SourceNote::Listed { .. } => {}
            SourceNote::Alive | SourceNote::Page { .. } if broken => {}
            note => told.push(note),
        }
        told.extend(self.all_listed());
        told
    }

    /// Kind `at` is not there.
    fn absent(&mut self, at: usize) -> Option<SourceNote> {
        if let Some(kind) = self.kinds.get_mut(at) {
            *kind = State { settled: true, ..State::default() };
        }
        self.all_listed()
    }

    fn all_listed(&mut self) -> Option<SourceNote> {
        if self.listed || !self.kinds.iter().all(|kind| kind.settled) {
            return None;
        }
        self.listed = true;
        Some(SourceNote::Listed { objects: self.kinds.iter().map(|kind| kind.objects).sum() })
    }
}

impl Config {
    /// Prepares the watches of several kinds; nothing is sent yet. `every`: how often it is asked for a kind that is not
    /// there.
    ///
    /// # Errors
    /// [`ConfigError`] as for one.
    pub async fn build_kinds<M: Mapping>(
        self,
        wanted: Vec<Wanted<M>>,
        every: Duration,
        deps: Deps,
    ) -> Result<Watches<M>, ConfigError> {
        self.check()?;
        let namespaces = Namespaces::new(&self.namespace, &self.namespaces)?;
        let connection = self.cluster.connection().await?;
        let entry = |wanted: Wanted<M>| {
            let namespaces = namespaces.narrowed(&wanted.only, &wanted.except)?;
            Ok(WatchedKind { wanted, namespaces, seen: ObjectIndex::default(), watch: RwLock::new(None) })
        };
        let entries: Result<_, ConfigError> = wanted.into_iter().map(entry).collect();
        Ok(Watches { config: self, connection, every, deps, entries: entries? })
    }
}

impl<M: Mapping> Watches<M> {
    /// The keys of all that is there.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        self.entries.iter().flat_map(|entry| entry.seen.keys()).collect()
    }

    fn entry(&self, key: &Key) -> Option<&WatchedKind<M>> {
        self.entries.iter().find(|entry| entry.wanted.kind.singular == key.kind())
    }

    fn watch_of(&self, key: &Key) -> Option<Arc<Watch<M>>> {
        self.entry(key)?.watch()
    }

    /// Waits for one kind and watches it, again and again.
    async fn follow(&self, at: usize, out: &Emitter, standing: &Arc<Mutex<Standing>>) {
        let Some(entry) = self.entries.get(at) else { return };
        let (mut failures, mut said) = (FailureTracker::default(), false);
        let wanted = entry.wanted.kind;
        let kind = wanted.singular;
        let stands = |state| out.note(SourceNote::Kind { kind, state });
        loop {
            let pinned = entry.wanted.pinned.then_some(wanted.version);
            match discovery::served(&self.connection, wanted, pinned).await {
                Ok(Some(version)) => {
                    failures.over(wanted);
                    let kind = Kind::interned(wanted.group, &version, wanted.plural, wanted.singular);
                    info!(resource = %kind, version = kind.version, "watching");
                    said = false;
                    self.watch(at, kind, out, standing).await;
                    entry.set(None);
                    // What says that it is served and what serves it may disagree for a while.
                    tokio::time::sleep(self.every).await;
                }
                Ok(None) => {
                    failures.over(wanted);
                    if !std::mem::replace(&mut said, true) {
                        info!(
                            resource = %wanted,
                            "the api server serves no such objects: they are reported once they are installed"
                        );
                    }
                    stands(KindState::Absent);
                    let note = lock(standing).absent(at);
                    note.into_iter().for_each(|note| out.note(note));
                    tokio::time::sleep(self.every).await;
                }
                Err(failure) => {
                    stands(KindState::Unreadable);
                    let notes = lock(standing).take(at, SourceNote::Broken(failure.reason()));
                    notes.into_iter().for_each(|note| out.note(note));
                    failures.add(&failure, wanted, &self.config);
                    tokio::time::sleep(failures.wait(&failure, &self.config)).await;
                }
            }
        }
    }

    /// Watches one kind until the server serves it no more.
    async fn watch(&self, at: usize, kind: Kind, out: &Emitter, standing: &Arc<Mutex<Standing>>) {
        let Some(entry) = self.entries.get(at) else { return };
        let deps = Deps { seen: entry.seen.clone(), ..self.deps.clone() };
        let mapping = (entry.wanted.mapping)(kind);
        let which = (entry.namespaces.clone(), entry.wanted.selector.clone());
        let watch = Arc::new(self.config.clone().watch(self.connection.clone(), which, mapping, deps));
        entry.set(Some(watch.clone()));
        let gone = Shutdown::new();
        let (notes, knows, ended) = (out.clone(), out.clone(), gone.clone());
        let (standing, named) = (standing.clone(), entry.wanted.kind.singular);
        let emitter = out.clone().noting(move |note| {
            // What defines the kind may be gone.
            if note == SourceNote::Broken(Reason::NotFound) {
                ended.cancel();
                return;
            }
            lock(&standing).take(at, note).into_iter().for_each(|note| notes.note(note));
        });
        let emitter = emitter.knowing(move || {
            let out = knows.clone();
            async move { out.known().await.into_iter().filter(|(key, ..)| key.kind() == named).collect() }
        });
        // A watch ends when it is told to, and by nothing else.
        let _ = watch.run(emitter, gone).await;
    }
}

fn lock(standing: &Mutex<Standing>) -> std::sync::MutexGuard<'_, Standing> {
    standing.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl<M: Mapping> Source for Watches<M> {
    fn name(&self) -> &'static str {
        "resources"
    }

    async fn run(&self, out: Emitter, stop: Shutdown) -> Result<(), StageError> {
        let kinds = vec![State::default(); self.entries.len()];
        let standing = Arc::new(Mutex::new(Standing { kinds, listed: false }));
        let all = join_all((0..self.entries.len()).map(|at| self.follow(at, &out, &standing)));
        stop.run_until_cancelled(Box::pin(all)).await;
        Ok(())
    }

    async fn read(&self, key: &Key, not_older_than: Version) -> Result<Option<Event>, StageError> {
        match self.watch_of(key) {
            Some(watch) => watch.read(key, not_older_than).await,
            None => Err(StageError::retry(Reason::NotFound, NotServed)),
        }
    }

    fn delivered(&self, event: &Event) {
        if let Some(watch) = self.watch_of(&event.key) {
            watch.delivered(event);
        }
    }

    fn as_survey(&self) -> Option<&dyn Survey> {
        Some(self)
    }
}

#[async_trait]
impl<M: Mapping> Survey for Watches<M> {
    /// Of a kind that is not served no list says anything.
    fn watches(&self, key: &Key) -> bool {
        self.watch_of(key).is_some_and(|watch| watch.watches(key))
    }

    fn watches_kind(&self, kind: &str) -> bool {
        self.entries.iter().any(|entry| entry.wanted.kind.singular == kind)
    }

    /// One kind that cannot be listed takes nothing from the others: it is left out, and said.
    async fn survey(&self, known: Vec<Remembered>) -> Result<SurveyResult, StageError> {
        let mut all = SurveyResult::default();
        let (mut is_any_listed, mut failed) = (false, None);
        for entry in &self.entries {
            let Some(watch) = entry.watch() else { continue };
            let of_kind = known.iter().filter(|(key, ..)| key.kind() == entry.wanted.kind.singular).cloned();
            match watch.survey(of_kind.collect()).await {
                Ok(found) => {
                    is_any_listed = true;
                    all.objects.extend(found.objects);
                }
                Err(failure) => {
                    let error: &dyn std::error::Error = &failure;
                    warn!(resource = %watch.kind, error, "cannot list a kind: it is left out of the survey");
                    all.unlisted.insert(entry.wanted.kind.singular);
                    failed = Some(failure);
                }
            }
        }
        if let Some(failure) = failed.filter(|_| !is_any_listed) {
            return Err(failure);
        }
        all.objects.sort_unstable();
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_listed_once_every_kind_is_or_is_not_there_or_cannot_be_read() {
        let mut standing = Standing { kinds: vec![State::default(); 3], listed: false };
        assert_eq!(standing.take(0, SourceNote::Listing), [SourceNote::Listing]);
        assert_eq!(standing.take(0, SourceNote::Listed { objects: 4 }), []);
        assert_eq!(standing.absent(1), None);
        let broken = SourceNote::Broken(Reason::Forbidden);
        assert_eq!(standing.take(2, broken), [broken, SourceNote::Listed { objects: 4 }]);
        assert_eq!(standing.take(0, SourceNote::Alive), [], "what is broken shows for as long as it is");
        assert_eq!(standing.take(2, SourceNote::Alive), [SourceNote::Alive]);
        assert_eq!(standing.take(2, SourceNote::Listed { objects: 1 }), [], "it was told once");
    }
}
