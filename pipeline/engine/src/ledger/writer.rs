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

use super::LedgerOptions;
use super::error::{Failure, LedgerError};
use super::file::{Committed, Store};
use super::sending::Flight;
use super::state::{Shared, State};
use super::tables::Row;

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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
        flight: Arc<Flight>,
        options: LedgerOptions,
    ) -> Result<Self, LedgerError> {
        let path = store.path().to_owned();
        let (tell, ended) = watch::channel(false);
        let work = move || {
            // Dropped last, whatever happens: the word that both files are let go of.
            let _closed = Closed { shared: shared.clone(), tell };
            Work { shared, flight: Held(flight), store, options, pause: None }.run();
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
        let mut state = self.shared.lock();
        state.closed = true;
        state.failing |= std::thread::panicking();
        let waiting = state.waiting();
        for (_, waiter) in state.waiters.drain(..) {
            let _ = waiter.send(Err(LedgerError::Closed { waiting }));
        }
        drop(state);
        self.tell.send_replace(true);
    }
}

/// Lets go of the flight file when it is dropped.
struct Held(Arc<Flight>);

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
    options: LedgerOptions,
    /// While commits fail: how long, and until when.
    pause: Option<(Duration, Instant)>,
}

/// What one commit is about.
struct Group {
    rows: Vec<Row>,
    since: Option<Instant>,
    /// Changes made when it began: once it is written, so are they.
    target: u64,
    /// Its number, which is higher than that of any note made before it began.
    number: u64,
    closing: bool,
}

impl Work {
    fn run(mut self) {
        loop {
            let group = self.next();
            let closing = group.closing;
            if !group.rows.is_empty() {
                self.commit(group);
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
            let due = self.due(&state, now);
            if state.closing || due.is_some_and(|due| due <= now) {
                break;
            }
            state = match due {
                Some(due) => wait(&shared, state, due.saturating_duration_since(now)),
                None => shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        let slots = std::mem::take(&mut state.dirty);
        let rows = state.image(slots.into_iter());
        state.committing = rows.len();
        let since = state.dirty_since.take();
        state.noted += 1;
        Group { rows, since, target: state.changed, number: state.noted, closing: state.closing }
    }

    /// When the next commit is to begin; `None` while nothing waits.
    fn due(&self, state: &State, now: Instant) -> Option<Instant> {
        let since = state.dirty_since?;
        if !state.waiters.is_empty() {
            return Some(now);
        }
        if let Some((_, until)) = self.pause {
            return Some(until);
        }
        let full = state.dirty.len() >= self.shared.group_size;
        Some(if full { now } else { since + self.options.group_time })
    }

    fn commit(&mut self, group: Group) {
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
            Ok(()) => self.succeeded(&mut state, group.target),
            Err(failure) => self.failed(&mut state, group, failure),
        }
    }

    fn succeeded(&mut self, state: &mut State, target: u64) {
        state.commits += 1;
        state.committed = target;
        state.last_commit = Some(Instant::now());
        for (_, waiter) in state.waiters.extract_if(.., |(wanted, _)| *wanted <= target) {
            let _ = waiter.send(Ok(()));
        }
        self.pause = None;
        if std::mem::take(&mut state.failing) {
            tracing::info!("the ledger is written again");
        }
    }

    fn failed(&mut self, state: &mut State, group: Group, failure: Failure) {
        state.errors += 1;
        state.dirty.extend(group.rows.into_iter().map(|(slot, _)| slot));
        state.dirty_since = group.since.or(state.dirty_since);
        let waiting = state.waiting();
        let failure = Arc::new(failure);
        for (_, waiter) in state.waiters.drain(..) {
            let _ = waiter.send(Err(LedgerError::Write { waiting, source: failure.clone() }));
        }
        let pause = self.pause.map_or(self.options.retry, |(pause, _)| (pause * 2).min(LONGEST_PAUSE));
        self.pause = Some((pause, Instant::now() + pause));
        if !std::mem::replace(&mut state.failing, true) {
            tracing::error!(
                error = &*failure as &dyn std::error::Error,
                waiting,
                "cannot write the ledger: it is kept in memory and tried again"
            );
        }
    }
}

fn wait<'a>(shared: &'a Shared, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
    shared.wake.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
}
