//! The one thread that commits: it waits for a group of changed keys, writes what memory holds of them then,
//! and tells those who wait for it.
//!
//! A group is one image: its keys are taken out of the waiting set, and what memory holds of them is taken with them,
//! under one lock. What moved together is written together, and a change during the commit puts its key back: no
//! change is missed, and none needs a copy while it waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::error::LedgerError;
use super::file::{Committed, Store};
use super::intent_file::IntentFile;
use super::pace::{Group, Pace};
use super::state::{Shared, State};

/// The thread, seen from outside.
pub(super) struct Writer {
    thread: Mutex<Option<JoinHandle<()>>>,
    ended: watch::Receiver<bool>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn spawn(
        shared: Arc<Shared>,
        store: Store,
        flight: Arc<IntentFile>,
        pace: Pace,
    ) -> Result<Self, LedgerError> {
        let path = store.path().to_owned();
        let (tell, ended) = watch::channel(false);
        let work = move || {
            // Dropped last, whatever happens: the word that both files are let go of.
            let _closed = Closed { shared: shared.clone(), tell };
            Work { shared, flight: Held(flight), store, pace }.run();
        };
        let thread = std::thread::Builder::new().name("ledger".to_owned()).spawn(work).map_err(|source| {
            LedgerError::Io { act: "start writing", path, source: Box::new(redb::Error::Io(source)) }
        })?;
        Ok(Self { thread: Mutex::new(Some(thread)), ended })
    }

    /// Waits for the thread's end without blocking.
    pub(super) async fn ended(&self) {
        // An error means that the sender is gone, and so is the thread.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// Waits for the thread's end.
    pub(super) fn join(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the ledger's writer stopped unexpectedly");
        }
    }
}

/// Says that the thread has ended, so that nobody waits for it.
struct Closed {
    shared: Arc<Shared>,
    tell: watch::Sender<bool>,
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.shared.lock().close(std::thread::panicking());
        self.tell.send_replace(true);
    }
}

/// Lets go of the flight file when it is dropped.
struct Held(Arc<IntentFile>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Fields are dropped in their order: the flight file is let go of while the ledger file is still locked, so that no
/// other process writes the one while this one does.
struct Work {
    shared: Arc<Shared>,
    flight: Held,
    store: Store,
    pace: Pace,
}

impl Work {
    fn run(mut self) {
        loop {
            let group = self.next();
            let closing = group.closing;
            if !group.rows.is_empty() {
                self.commit(&group);
            }
            if closing {
                return;
            }
        }
    }

    /// Waits for the next group.
    fn next(&self) -> Group {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        loop {
            let now = Instant::now();
            let due = self.pace.due(&state, shared.group_size, now);
            if state.closing || due.is_some_and(|due| due <= now) {
                break;
            }
            state = match due {
                Some(due) => wait(&shared, state, due.saturating_duration_since(now)),
                None => shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state.group()
    }

    fn commit(&mut self, group: &Group) {
        let result = match self.store.commit(&group.rows, group.number) {
            Ok(Committed::Rows) => Ok(()),
            Ok(Committed::Nothing) => {
                let all = {
                    let state = self.shared.lock();
                    state.image(state.tables.slots())
                };
                self.store.commit_all(&all, group.number)
            }
            Err(failure) => Err(failure),
        };
        let bytes = self.store.bytes();
        match result {
            Ok(()) => self.flight.0.covered(group.number),
            Err(_) => self.flight.0.sync(),
        }
        let shared = self.shared.clone();
        let mut state = shared.lock();
        state.committing = 0;
        state.file_bytes = bytes;
        match result {
            Ok(()) => self.pace.succeeded(&mut state, group),
            Err(failure) => {
                let slots = group.rows.iter().map(|(slot, _)| slot.clone());
                self.pace.failed(&mut state, group, slots, failure, true);
            }
        }
    }
}

fn wait<'a>(shared: &'a Shared, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
    shared.wake.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
}
