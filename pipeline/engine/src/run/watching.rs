//! Keeps the source of a pipeline running, and what it shows going to the bus.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Emitter, Event, Key, Progress, Remembered, Shutdown, SourceNote, Uid, Version};
use tokio::sync::watch;

use super::done::Done;
use super::feed::{Emit, Feed};
use super::listing::Listing;
use super::{Config, spawn};
use crate::shard::Shared;
use crate::supervise::supervise;
use pipeline_ledger::Ledger;

/// Between tries to read what others remember.
const AGAIN: Duration = Duration::from_millis(500);

/// The watch of one pipeline.
pub(super) struct Watching {
    pub(super) config: Config,
    pub(super) feed: Feed,
    /// What the shards of each route share.
    pub(super) routes: Vec<Arc<Shared>>,
    /// Shards come and go: this process watches for all, while it does.
    pub(super) leased: bool,
    /// Cancelled when the shards have ended, with what was in flight: what is done then is kept.
    pub(super) worked_off: Shutdown,
}

impl Watching {
    /// Watches whenever it is to (`watches`), from the start each time the bus was made anew, until `stop`.
    pub(super) async fn run(self, mut watches: watch::Receiver<bool>, stop: Shutdown) {
        let Some(first) = self.routes.first() else { return };
        let (emit, publishing) = self.feed.open(&first.metrics, watches.clone(), stop.clone());
        let done = self.done();
        let over = Shutdown::new();
        let keeping = done.clone().map(|done| {
            let over = over.clone();
            spawn(async move { done.keep(over).await })
        });
        let mut made = self.feed.bus.made();
        while !stop.is_cancelled() {
            made.mark_unchanged();
            if *watches.borrow_and_update() {
                let ends = stop.child_token();
                let mut watching = std::pin::pin!(self.watch(&emit, done.as_ref(), ends.clone()));
                tokio::select! {
                    () = &mut watching => continue,
                    Ok(()) = made.changed() => first.metrics.bus().made_anew(),
                    Ok(()) = watches.changed() => {}
                }
                ends.cancel();
                // It ends at its next step; what it still shows is published.
                if tokio::time::timeout(super::SOURCE_END, watching).await.is_err() {
                    tracing::warn!("the source did not stop in time");
                }
            } else {
                tokio::select! {
                    () = stop.cancelled() => {}
                    Ok(()) = watches.changed() => {}
                    else => break,
                }
            }
        }
        drop(emit);
        if let Some(keeping) = keeping {
            self.worked_off.cancelled().await;
            over.cancel();
            let _ = keeping.await;
        }
        if let Some(publishing) = publishing {
            let _ = publishing.await;
        }
    }

    /// What is kept of how far the source came: where one process alone works on what it watches.
    fn done(&self) -> Option<Arc<Done>> {
        let alone = self.feed.bus.is_lossless() && !self.leased;
        alone.then(|| Arc::new(Done::new(self.config.sharding, &self.routes)))
    }

    /// Keeps the source running. A first list waits for the shards where nothing stores what they have not taken yet.
    async fn watch(&self, emit: &Emit, done: Option<&Arc<Done>>, stop: Shutdown) {
        let Self { config, feed, routes, leased, .. } = self;
        let (config, leased) = (*config, *leased);
        let wants = move |key: &Key| leased || config.owned.owns(config.sharding, key);
        let shared: Arc<[Arc<Shared>]> = routes.as_slice().into();
        let broken = |reason| note(&shared, &SourceNote::Broken(reason));
        let start = || {
            let (told, remembering, emit) = (shared.clone(), shared.clone(), emit.clone());
            let counting = done.cloned();
            let emit = move |event: Event| {
                counting.iter().for_each(|done| done.emits(&event.key));
                emit(event)
            };
            let emitter = Emitter::new(wants, emit, move |what| note(&told, &what));
            let emitter = emitter.progressing(done.cloned().map(|done| done as Arc<dyn Progress>));
            let mut emitter = emitter.knowing(move || {
                let shared = remembering.clone();
                async move { known(&shared, leased, wants).await }
            });
            if feed.bus.is_lossless() {
                let routes = routes.iter().map(|shared| shared.running.clone()).collect();
                let listing = Arc::new(Listing::new(routes));
                emitter = emitter.paced(move |emitted| {
                    let listing = listing.clone();
                    async move { listing.wait_for_capacity(emitted).await }
                });
            }
            feed.source.run(emitter, stop.clone())
        };
        supervise(feed.source.name(), config.restart, &stop, broken, start).await;
        note(&shared, &SourceNote::Ended);
    }
}

/// Every route depends on the watch.
fn note(routes: &[Arc<Shared>], note: &SourceNote) {
    for shared in routes {
        shared.metrics.note(note);
        shared.health.note(note, std::time::Instant::now());
    }
}

/// What any route remembers, of what is wanted: of several the newest. Where it is `for_all`, what this process does not
/// hold counts too.
async fn known(routes: &[Arc<Shared>], for_all: bool, wants: impl Fn(&Key) -> bool) -> Vec<Remembered> {
    let mut known: HashMap<Key, (Uid, Version)> = HashMap::new();
    for shared in routes {
        let ledger = &shared.ledger;
        let remembered = if for_all { remembered_by_all(ledger).await } else { ledger.remembered() };
        for (key, uid, version) in remembered {
            if known.get(&key).is_none_or(|(_, newest)| *newest <= version) {
                known.insert(key, (uid, version));
            }
        }
        for (key, pending) in ledger.journaled() {
            if let Some(uid) = pending.latest() {
                known.entry(key).or_insert_with(|| (uid.clone(), Version(0)));
            }
        }
    }
    let known = known.into_iter().filter(|(key, _)| wants(key));
    known.map(|(key, (uid, version))| (key, uid, version)).collect()
}

/// What all shards remember, trying until the bus answers: measured by less, a list might not show that the cluster's
/// versions went back.
async fn remembered_by_all(ledger: &Ledger) -> Vec<Remembered> {
    let mut said = false;
    loop {
        match ledger.remembered_by_all().await {
            Ok(remembered) => return remembered,
            Err(error) => {
                if !std::mem::replace(&mut said, true) {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "cannot read what other shards remember: the watch begins once that is read"
                    );
                }
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}
