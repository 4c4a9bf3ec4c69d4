//! Keeps the source running, and what it shows going to where it belongs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Emitter, Event, Key, Note, Remembered, Shutdown, Version};
use tokio::sync::{mpsc, watch};

use super::listing::Listing;
use super::stream::publisher::Publisher;
use super::table::Table;
use super::{Config, INBOX, spawn};
use crate::shard::Shared;
use crate::supervise::supervise;
use pipeline_ledger::Ledger;

/// Between tries to read what others remember.
const AGAIN: Duration = Duration::from_millis(500);

/// Keeps the source running; `place` names the inbox of a key, or `None` for what this process leaves to others. A first
/// list waits for the shards of `table`, where they are fed from memory. Where it is `for_all`, what this process does not
/// hold counts too.
pub(super) async fn watch(
    config: Config,
    shared: Arc<Shared>,
    inboxes: Arc<[mpsc::Sender<Event>]>,
    place: impl Fn(&Key) -> Option<usize> + Copy + Send + Sync + 'static,
    table: Option<Arc<Table>>,
    for_all: bool,
    stop: Shutdown,
) {
    let note = |shared: &Shared, note: &Note| {
        shared.metrics.note(note);
        shared.health.note(note, std::time::Instant::now());
    };
    let broken = |reason| note(&shared, &Note::Broken(reason));
    let start = || {
        let (told, ledger) = (shared.clone(), shared.ledger.clone());
        let known = move || {
            let ledger = ledger.clone();
            async move {
                let journaled = ledger.journaled().into_iter();
                let mut known: HashMap<_, _> = journaled
                    .filter_map(|(key, pending)| Some((key, (pending.latest()?.clone(), Version(0)))))
                    .collect();
                let remembered = if for_all { remembered_by_all(&ledger).await } else { ledger.remembered() };
                known.extend(remembered.into_iter().map(|(key, uid, version)| (key, (uid, version))));
                let known = known.into_iter().filter(|(key, _)| place(key).is_some());
                known.map(|(key, (uid, version))| (key, uid, version)).collect()
            }
        };
        let emitter = Emitter::new(inboxes.clone(), place, move |what| note(&told, &what), Arc::default());
        let mut emitter = emitter.knowing(known);
        if let Some(table) = &table {
            let listing = Arc::new(Listing::new(table.clone()));
            emitter = emitter.paced(move |emitted| {
                let listing = listing.clone();
                async move { listing.wait_for_capacity(emitted).await }
            });
        }
        shared.source.run(emitter, stop.clone())
    };
    supervise(shared.source.name(), config.restart, &stop, broken, start).await;
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

/// A watch whose events are published.
pub(super) struct Published {
    pub(super) config: Config,
    pub(super) shared: Arc<Shared>,
    /// Shards come and go: this process watches for all, while it does.
    pub(super) leased: bool,
}

impl Published {
    /// Watches whenever it is to (`watches`), from the start each time the stream was made anew (`made`), until `stop`.
    pub(super) async fn run(
        self,
        outlet: Publisher,
        mut made: watch::Receiver<u64>,
        mut watches: watch::Receiver<bool>,
        stop: Shutdown,
    ) {
        let Self { config, shared, leased } = self;
        let (out, events) = mpsc::channel(INBOX);
        let outlet = spawn(outlet.run(events, watches.clone(), stop.clone()));
        let inboxes: Arc<[mpsc::Sender<Event>]> = [out].into();
        while !stop.is_cancelled() {
            made.mark_unchanged();
            if *watches.borrow_and_update() {
                let ends = stop.child_token();
                let place = move |key: &Key| {
                    (leased || config.owned.lane(config.sharding, key).is_some()).then_some(0)
                };
                let watching =
                    watch(config, shared.clone(), inboxes.clone(), place, None, leased, ends.clone());
                let mut watching = std::pin::pin!(watching);
                tokio::select! {
                    () = &mut watching => continue,
                    Ok(()) = made.changed() => shared.metrics.bus().made_anew(),
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
        drop(inboxes);
        let _ = outlet.await;
    }
}
