//! What a source emits into.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;

use crate::{Event, Key, Remembered, SourceNote, Version};

type Wants = dyn Fn(&Key) -> bool + Send + Sync;
type Emit = dyn Fn(Event) -> BoxFuture<'static, bool> + Send + Sync;
type TakeNote = dyn Fn(SourceNote) + Send + Sync;
type Recall = dyn Fn() -> BoxFuture<'static, Vec<Remembered>> + Send + Sync;
type AwaitCapacity = dyn Fn(u64) -> BoxFuture<'static, ()> + Send + Sync;

/// What a source emits into: each event goes to the shard that owns its key.
///
/// Emitting waits for the bus where that is slow, and never for a sink: a lane takes events in at once, and makes a dirty
/// entry of a key whose queue is full.
#[derive(Clone)]
pub struct Emitter {
    wants: Arc<Wants>,
    emit: Arc<Emit>,
    note: Arc<TakeNote>,
    known: Arc<Recall>,
    emitted: Arc<AtomicU64>,
    pace: Option<Arc<AwaitCapacity>>,
    progress: Option<Arc<dyn Progress>>,
}

/// How far what a source has shown is done with, so that a later process can go on from there.
pub trait Progress: Send + Sync {
    /// Of all that was shown of a kind up to such a version a former process left nothing undone on a route: one for each route
    /// of which that is known. What the watch shows of a kind after the oldest of them, and a route may know, is to be marked
    /// as shown again ([`Event::again`]).
    fn done(&self, kind: &str) -> Vec<Version>;

    /// All that there is of a kind up to this version was emitted.
    fn reached(&self, kind: &str, version: Version);
}

impl Emitter {
    /// `wants` says which keys are not another process's, and `emit` takes their events; it answers `false` when nobody
    /// takes any more.
    pub fn new(
        wants: impl Fn(&Key) -> bool + Send + Sync + 'static,
        emit: impl Fn(Event) -> BoxFuture<'static, bool> + Send + Sync + 'static,
        note: impl Fn(SourceNote) + Send + Sync + 'static,
    ) -> Self {
        Self {
            wants: Arc::new(wants),
            emit: Arc::new(emit),
            note: Arc::new(note),
            known: Arc::new(|| Box::pin(std::future::ready(Vec::new()))),
            emitted: Arc::default(),
            pace: None,
            progress: None,
        }
    }

    /// The same, for a source that can go on where a former process ended.
    #[must_use]
    pub fn progressing(self, progress: Option<Arc<dyn Progress>>) -> Self {
        Self { progress, ..self }
    }

    /// How far a former process came, and who is told how far this one comes; `None` where nothing outlives the process.
    #[must_use]
    pub fn progress(&self) -> Option<&Arc<dyn Progress>> {
        self.progress.as_ref()
    }

    /// The same, but `note` hears what is told beside events.
    #[must_use]
    pub fn noting(self, note: impl Fn(SourceNote) + Send + Sync + 'static) -> Self {
        Self { note: Arc::new(note), ..self }
    }

    /// The same, with what the ledger knows, so that the first list finds what vanished before the process started. It is
    /// asked for when it is needed: what was journaled may be reported, and go, before the first list is complete.
    #[must_use]
    pub fn knowing<K: Future<Output = Vec<Remembered>> + Send + 'static>(
        self,
        known: impl Fn() -> K + Send + Sync + 'static,
    ) -> Self {
        Self { known: Arc::new(move || Box::pin(known())), ..self }
    }

    /// The same, but a first list is held back between its pages: `pace` is given how many events were emitted so far,
    /// and is over when the list may go on.
    #[must_use]
    pub fn paced<W: Future<Output = ()> + Send + 'static>(
        self,
        pace: impl Fn(u64) -> W + Send + Sync + 'static,
    ) -> Self {
        Self { pace: Some(Arc::new(move |emitted| Box::pin(pace(emitted)))), ..self }
    }

    /// Waits, between two pages of a first list, until the next one may be read: what was not read yet takes no room.
    pub async fn wait_for_capacity(&self) {
        if let Some(pace) = &self.pace {
            pace(self.emitted.load(Ordering::Relaxed)).await;
        }
    }

    /// Whether this process owns `key`; events of other keys are not even built.
    #[must_use]
    pub fn wants(&self, key: &Key) -> bool {
        (self.wants)(key)
    }

    /// Hands one event over. Returns `false` when nobody takes it any more: the process is stopping.
    pub async fn emit(&self, event: Event) -> bool {
        if !self.wants(&event.key) {
            return true;
        }
        self.emitted.fetch_add(1, Ordering::Relaxed);
        (self.emit)(event).await
    }

    /// Tells something beside events.
    pub fn note(&self, note: SourceNote) {
        (self.note)(note);
    }

    /// What the ledger knows, whichever process works on it.
    pub async fn known(&self) -> Vec<Remembered> {
        (self.known)().await
    }
}

impl fmt::Debug for Emitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter").field("emitted", &self.emitted).finish_non_exhaustive()
    }
}
