//! What is looked at again though nothing says that it changed: when, and how often.
//!
//! What could not be fetched is asked for again after a minute, and less and less often while that brings nothing; what
//! is missing may be gone for good (a repository that was deleted). It may be missing for a thousand objects, so
//! these refetches go one after the other, each as long after the one before as that made calls in vain. One that found
//! all that was missing, as they do once a peer is back from an outage, lets the next one begin at once.

use std::collections::VecDeque;
use std::time::Duration;

use pipeline_core::{Backoff, Cause, Key, LaneCounts, Refetch};

use super::Lane;
use super::dirty_entry::DirtyEntry;
use super::key_state::{KeyState, State};

/// A refetch is taken to make at most so many calls.
const MOST_CALLS: u32 = 100;

/// When a key is looked at again.
#[derive(Debug, Default)]
pub(super) struct RefetchTimes {
    /// What was looked at just before.
    paced: Option<Duration>,
    /// What could not be fetched.
    refetch: Option<Duration>,
    /// Refetches in a row that brought nothing.
    failures: u32,
    /// In line for a refetch.
    lined: bool,
}

impl RefetchTimes {
    pub(super) fn is_some(&self) -> bool {
        self.paced.is_some() || self.refetch.is_some()
    }

    /// When the key is looked at next, or lines up for that.
    pub(super) fn next(&self) -> Option<Duration> {
        self.paced.into_iter().chain(self.refetch).min()
    }

    /// When something is to be done about it, beside what its place in line brings.
    pub(super) fn timer(&self) -> Option<Duration> {
        self.paced.into_iter().chain(self.refetch.filter(|_| !self.lined)).min()
    }

    /// An attempt brought reports: the object changed, or a refetch brought something.
    pub(super) fn brought(&mut self, refetch: Option<Refetch>, now: Duration, backoff: Backoff) {
        self.failures = 0;
        match refetch {
            None => self.clear(),
            Some(Refetch::Paced(after)) => self.pace(now + after),
            Some(Refetch::Incomplete) => self.refetch_by(now + backoff.min),
        }
    }

    /// An attempt brought nothing. One that was no refetch, of which there are as many as an object is refreshed, changes
    /// nothing about when the next one is.
    pub(super) fn brought_nothing(
        &mut self,
        refetch: Option<Refetch>,
        was_refetch: bool,
        now: Duration,
        (backoff, seed): (Backoff, u64),
    ) {
        match refetch {
            None => self.clear(),
            Some(Refetch::Paced(after)) => self.pace(now + after),
            Some(Refetch::Incomplete) => {
                self.failures = self.failures.saturating_add(u32::from(was_refetch));
                if was_refetch || self.refetch.is_none() {
                    let wait = match self.failures {
                        0 => backoff.min,
                        failures => backoff.wait(failures.saturating_add(1), None, seed).max(backoff.min),
                    };
                    self.refetch_by(now + wait);
                }
            }
        }
    }

    /// What was fetched in full is not refetched.
    fn clear(&mut self) {
        *self = Self { lined: self.lined, ..Self::default() };
    }

    /// An earlier time stays: each change of a busy object would put it off once more.
    fn pace(&mut self, at: Duration) {
        self.paced = Some(self.paced.map_or(at, |earlier| earlier.min(at)));
    }

    fn refetch_by(&mut self, at: Duration) {
        self.refetch = Some(self.refetch.map_or(at, |earlier| earlier.min(at)));
    }

    /// Whether the time has come for what was looked at just before; it is over then.
    pub(super) fn take_paced(&mut self, now: Duration) -> bool {
        self.paced.take_if(|at| *at <= now).is_some()
    }

    /// Whether the time has come to line up for a refetch.
    pub(super) fn lines_up(&mut self, now: Duration) -> bool {
        let is_due = !self.lined && self.refetch.is_some_and(|at| at <= now);
        self.lined |= is_due;
        is_due
    }

    fn take_refetch(&mut self, now: Duration) -> bool {
        self.refetch.take_if(|at| *at <= now).is_some()
    }
}

/// The refetches of a lane, one after the other.
#[derive(Debug, Default)]
pub(super) struct Refetches {
    line: VecDeque<Key>,
    /// When the next one may begin.
    free: Duration,
}

impl Refetches {
    pub(super) fn join(&mut self, key: Key) {
        self.line.push_back(key);
    }

    /// A refetch has made so many calls, each of which is to take `every`; one of them was charged when it began. None
    /// are charged where nothing lacks any more: its key leaves the line for good.
    pub(super) fn took(&mut self, calls: u32, lacking: bool, every: Duration) {
        let charged = if lacking { calls.clamp(1, MOST_CALLS) } else { 0 };
        self.free = (self.free + every.saturating_mul(charged)).saturating_sub(every);
    }

    /// When there is something to begin.
    pub(super) fn next(&self) -> Option<Duration> {
        (!self.line.is_empty()).then_some(self.free)
    }

    fn take(&mut self, now: Duration) -> Option<Key> {
        if self.free <= now { self.line.pop_front() } else { None }
    }

    fn begin(&mut self, now: Duration, every: Duration) {
        self.free = now + every;
    }
}

impl Lane {
    /// Has the first in line read again, if it is time.
    pub(super) fn refetch(&mut self, now: Duration) {
        while let Some(key) = self.refetches.take(now) {
            let Some(slot) = self.keys.get_mut(&key) else { continue };
            slot.refetch.lined = false;
            let rests = slot.state == State::Idle && slot.queue.is_empty() && !slot.is_dirty();
            // What is busy lines up again when that is over, if it is still incomplete then.
            if rests {
                if slot.refetch.take_refetch(now) {
                    self.refetches.begin(now, self.config.refetch_every);
                    slot.look(DirtyEntry::new(Cause::Refetch, now), &mut self.counts);
                }
                self.schedule(&key, now);
            }
        }
    }
}

impl KeyState {
    /// Has the key read again.
    pub(super) fn look(&mut self, mut entry: DirtyEntry, counts: &mut LaneCounts) {
        counts.incomplete -= u64::from(!self.refetch.is_some());
        if let Some((uid, version)) = &self.newest {
            entry.uid = Some(uid.clone());
            entry.shown(*version);
        }
        self.dirty = Some(Box::new(entry));
        counts.dirty += 1;
    }
}
