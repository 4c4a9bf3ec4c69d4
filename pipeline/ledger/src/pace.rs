//! When a group of changes is written, and what its end means to those who wait for it: the same for a file and a bucket.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::{Failure, LedgerError};
use super::state::State;
use super::tables::{Row, Slot};

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What one commit is about.
pub(super) struct Group {
    pub(super) rows: Vec<Row>,
    since: Option<Instant>,
    /// Changes made when it began: once it is written, so are they.
    target: u64,
    /// Its number, which is higher than that of any note made before it began.
    pub(super) number: u64,
    pub(super) closing: bool,
}

/// How changes are grouped, and for how long a failure is waited out.
pub(super) struct Pace {
    group_time: Duration,
    retry: Duration,
    /// While commits fail: how long, and until when.
    pause: Option<(Duration, Instant)>,
}

impl Pace {
    pub(super) fn new(group_time: Duration, retry: Duration) -> Self {
        Self { group_time, retry, pause: None }
    }

    /// When the next commit is to begin; `None` while nothing waits.
    pub(super) fn due(&self, state: &State, group_size: usize, now: Instant) -> Option<Instant> {
        let since = state.dirty_since?;
        if !state.waiters.is_empty() {
            return Some(now);
        }
        if let Some((_, until)) = self.pause {
            return Some(until);
        }
        let full = state.dirty.len() >= group_size;
        Some(if full { now } else { since + self.group_time })
    }

    /// The group was written.
    pub(super) fn succeeded(&mut self, state: &mut State, group: &Group) {
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

    /// These of the group's slots were not written; `pauses` unless the next group may do better at once.
    pub(super) fn failed(
        &mut self,
        state: &mut State,
        group: &Group,
        slots: impl IntoIterator<Item = Slot>,
        failure: Failure,
        pauses: bool,
    ) {
        state.errors += 1;
        state.dirty.extend(slots);
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

impl State {
    /// Takes everything that waits, as it is at this moment.
    pub(super) fn group(&mut self) -> Group {
        let slots = std::mem::take(&mut self.dirty);
        let rows = self.image(slots.into_iter());
        self.committing = rows.len();
        self.noted += 1;
        let (target, number, closing) = (self.changed, self.noted, self.closing);
        Group { rows, since: self.dirty_since.take(), target, number, closing }
    }

    /// Nothing is written any more.
    pub(super) fn close(&mut self, failed: bool) {
        self.closed = true;
        self.failing |= failed;
        let waiting = self.waiting();
        for (_, waiter) in self.waiters.drain(..) {
            let _ = waiter.send(Err(LedgerError::Closed { waiting }));
        }
    }
}
