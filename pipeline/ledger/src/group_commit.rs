//! Writes what changed in groups, and tells those who wait for it.
//!
//! A group is one image: its rows are taken out of the waiting set, and what memory holds of them is taken with them,
//! under one lock. What moved together is written together, and a change during the commit puts its row back: no
//! change is missed, and none needs a copy while it waits.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::bucket::ClaimedShard;
use super::error::LedgerError;
use super::state::{Shared, State};
use super::store::{Store, Unwritten};
use super::tables::Row;

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What one commit is about.
pub(super) struct Group {
    pub(super) rows: Vec<Row>,
    /// What was reported recently, of each shard where that changed.
    pub(super) recent: Vec<(u32, Vec<u8>)>,
    /// The shards that were held when it was taken.
    pub(super) held: HashMap<u32, ClaimedShard>,
    since: Option<Instant>,
    /// Changes made when it began: once it is written, so are they.
    target: u64,
    /// Its number, which is higher than that of any intent made before it began.
    pub(super) number: u64,
    closing: bool,
}

/// When a group is written, and for how long a failure is waited out.
pub(super) struct GroupCommit {
    shared: Arc<Shared>,
    store: Arc<dyn Store>,
    group_time: Duration,
    retry: Duration,
    /// While commits fail: how long, and until when.
    pause: Option<(Duration, Instant)>,
}

/// The one that runs, seen from outside.
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    pub(super) tasks: Vec<AbortHandle>,
    /// Its sender is dropped when nothing is written any more.
    ended: watch::Receiver<()>,
}

impl Writer {
    /// Writes in a thread of its own, as a store that blocks needs it. It ends after [`Shared::stop`].
    pub(super) fn thread(work: GroupCommit) -> std::io::Result<Self> {
        let (tell, ended) = watch::channel(());
        let shared = work.shared.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let run = move || runtime.block_on(work.run(tell));
        let thread = std::thread::Builder::new().name("ledger".to_owned()).spawn(run)?;
        Ok(Self { shared, thread: Some(thread), tasks: Vec::new(), ended })
    }

    /// Writes in a task, which is aborted with this.
    pub(super) fn task(work: GroupCommit) -> Self {
        let (tell, ended) = watch::channel(());
        let shared = work.shared.clone();
        let task = tokio::spawn(work.run(tell));
        Self { shared, thread: None, tasks: vec![task.abort_handle()], ended }
    }

    /// Waits for its end without blocking.
    pub(super) async fn ended(&self) {
        // It is never told anything: an error means that the sender is gone.
        let _ = self.ended.clone().changed().await;
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        let Some(thread) = self.thread.take() else { return };
        self.shared.stop();
        if thread.join().is_err() {
            tracing::error!("the ledger's writer stopped unexpectedly");
        }
    }
}

/// Says that nothing is written any more, so that nobody waits for it; and that nothing may be sent of which a store would
/// have to know.
struct Closed {
    shared: Arc<Shared>,
    store: Arc<dyn Store>,
    _tell: watch::Sender<()>,
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.store.stop();
        self.shared.lock().close(std::thread::panicking());
    }
}

impl GroupCommit {
    pub(super) fn new(
        shared: Arc<Shared>,
        store: Arc<dyn Store>,
        group_time: Duration,
        retry: Duration,
    ) -> Self {
        Self { shared, store, group_time, retry, pause: None }
    }

    /// Writes until the ledger is closed, and then what waits, once.
    async fn run(mut self, tell: watch::Sender<()>) {
        // Dropped last, whatever happens.
        let _closed = Closed { shared: self.shared.clone(), store: self.store.clone(), _tell: tell };
        loop {
            let group = self.next().await;
            self.commit(&group).await;
            if group.closing {
                return self.store.close().await;
            }
        }
    }

    /// Waits for the next group.
    async fn next(&self) -> Group {
        loop {
            let woken = self.shared.wake.notified();
            let wait = {
                let mut state = self.shared.lock();
                let now = Instant::now();
                let due = self.due(&state, now);
                if state.closing || due.is_some_and(|due| due <= now) {
                    return state.group();
                }
                due.map(|due| due.saturating_duration_since(now))
            };
            match wait {
                Some(wait) => drop(tokio::time::timeout(wait, woken).await),
                None => woken.await,
            }
        }
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
        Some(if full { now } else { since + self.group_time })
    }

    /// Writes what waits at this moment; whether that worked.
    #[cfg(any(test, feature = "simulated"))]
    pub(super) async fn once(&mut self) -> bool {
        let group = self.shared.lock().group();
        self.commit(&group).await
    }

    async fn commit(&mut self, group: &Group) -> bool {
        if group.rows.is_empty() {
            return true;
        }
        let result = self.store.commit(group).await;
        let shared = self.shared.clone();
        let mut state = shared.lock();
        state.committing = 0;
        match result {
            Err(mut unwritten) => {
                // What was let go of meanwhile is another's.
                unwritten.row_ids.retain(|(_, key)| state.held(key) == group.held(&state, key));
                if unwritten.row_ids.is_empty() {
                    self.succeeded(&mut state, group);
                } else {
                    self.failed(&mut state, group, unwritten);
                }
                false
            }
            Ok(()) => {
                self.succeeded(&mut state, group);
                true
            }
        }
    }

    fn succeeded(&mut self, state: &mut State, group: &Group) {
        state.commits += 1;
        // What was forgotten meanwhile is waited for by nobody.
        state.committed = if state.dirty.is_empty() { state.changed } else { group.target };
        state.last_commit = Some(Instant::now());
        let committed = state.committed;
        for (_, waiter) in state.waiters.extract_if(.., |(wanted, _)| *wanted <= committed) {
            let _ = waiter.send(Ok(()));
        }
        self.pause = None;
        if std::mem::take(&mut state.failing) {
            tracing::info!("the ledger is written again");
        }
    }

    fn failed(&mut self, state: &mut State, group: &Group, unwritten: Unwritten) {
        let Unwritten { row_ids, failure, pauses } = unwritten;
        state.errors += 1;
        state.dirty.extend(row_ids);
        state.dirty_since = if pauses { group.since.or(state.dirty_since) } else { Some(Instant::now()) };
        let waiting = state.waiting();
        let failure = Arc::new(failure);
        for (_, waiter) in state.waiters.drain(..) {
            let _ = waiter.send(Err(LedgerError::Write { waiting, source: failure.clone() }));
        }
        self.pause = pauses.then(|| {
            let pause = self.pause.map_or(self.retry, |(pause, _)| (pause * 2).min(LONGEST_PAUSE));
            (pause, Instant::now() + pause)
        });
        if !std::mem::replace(&mut state.failing, true) {
            tracing::error!(
                error = &*failure as &dyn std::error::Error,
                waiting,
                "cannot write the ledger: it is kept in memory and tried again"
            );
        }
    }
}

impl Group {
    /// The claim under which `key` was held when it was taken.
    fn held(&self, state: &State, key: &pipeline_core::Key) -> Option<u64> {
        self.held.get(&state.shard(key)).map(|held| held.sequence)
    }
}

impl State {
    /// Takes everything that waits, as it is at this moment.
    fn group(&mut self) -> Group {
        let row_ids = std::mem::take(&mut self.dirty);
        let rows = self.image(row_ids.into_iter());
        let held = self.shards.as_ref().map(|shards| shards.held.clone()).unwrap_or_default();
        self.committing = rows.len();
        self.numbered += 1;
        Group {
            // Where everything is held nobody else is ever to know it.
            recent: if rows.is_empty() || held.is_empty() { Vec::new() } else { self.recent.take_changed() },
            rows,
            held,
            since: self.dirty_since.take(),
            target: self.changed,
            number: self.numbered,
            closing: self.closing,
        }
    }

    /// The claim under which `key` is held.
    fn held(&self, key: &pipeline_core::Key) -> Option<u64> {
        self.shards.as_ref()?.of(key).map(|held| held.sequence)
    }

    /// Nothing is written any more.
    fn close(&mut self, failed: bool) {
        self.closed = true;
        self.failing |= failed;
        let waiting = self.waiting();
        for (_, waiter) in self.waiters.drain(..) {
            let _ = waiter.send(Err(LedgerError::Closed { waiting }));
        }
    }
}

#[cfg(test)]
mod tests;
