//! What the journal lets go of before the lane does: lives whose end was acknowledged, and ends that were told.
//!
//! The record has moved by then. Were they still journaled when the process is killed, the next one would tell them
//! again after what follows them: an end of an operation after the end of its life brings it back to life at a
//! receiver that remembers keys. So the journal lets go of them together with the record's move, and does not take
//! them back while the lane has not heard of that yet.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

use pipeline_core::{Change, Digest, Event, Fact, Key, Names, Pending, Record, Short, Uid};

use super::state::State;
use super::tables::Table;
use super::{Ledger, stored};

/// Of each kind; far more than can be between an acknowledgement and the end of its turn.
const KEPT: usize = 4096;

/// What is over and told.
#[derive(Default)]
pub(super) struct Ended {
    /// By name and uid.
    lives: Recent,
    /// By name, uid and the end's digest.
    ends: Recent,
}

/// The latest of something, each once, in short.
#[derive(Default)]
struct Recent {
    all: HashSet<Short>,
    /// The latest last.
    order: VecDeque<Short>,
    names: Names,
}

impl Ledger {
    /// Whether this process, or in a bucket a former owner, was told that the end of a life has arrived: whoever notices it
    /// again has nothing to tell.
    #[must_use]
    pub fn has_ended(&self, key: &Key, uid: &Uid) -> bool {
        let here = self.inner.shared.lock().ended.lives.has(&(key, uid));
        here || self.was_told_before(key, uid, Digest::NONE)
    }

    /// The event without what was told, by this process or in a bucket by a former owner, beside what the application's
    /// record says, which is `known`; `None` when that is the event itself.
    ///
    /// What the journal and the bus both hold, or the bus delivers again, comes a second time after its round was settled:
    /// so an end of an operation. And a list that lacks a name names the life that whoever asked for it knew, which may be
    /// one of long ago: where its end was told, it is the known life that is over.
    #[must_use]
    pub fn without_told(&self, event: &Event, known: Option<&Record>) -> Option<Event> {
        let (key, uid) = (&event.key, &event.uid);
        let other = known.filter(|known| event.is_deleted() && known.uid != *uid);
        if let Some(other) = other.filter(|_| self.has_ended(key, uid)) {
            return Some(Event {
                uid: other.uid.clone(),
                change: Change::Deleted { body: None },
                fact: None,
                coalesced: Vec::new(),
                ..event.clone()
            });
        }
        let is_told = |end: &Fact| {
            let digest = end.id;
            self.inner.shared.lock().ended.ends.has(&(key, uid, digest))
                || self.was_told_before(key, uid, digest)
        };
        let told: Vec<bool> = event.coalesced.iter().map(is_told).collect();
        if !told.contains(&true) {
            return None;
        }
        let ends = event.coalesced.iter().zip(told).filter(|(_, told)| !told);
        Some(Event { coalesced: ends.map(|(end, _)| end.clone()).collect(), ..event.clone() })
    }

    fn was_told_before(&self, key: &Key, uid: &Uid, operation: Digest) -> bool {
        self.inner.bucket.as_ref().is_some_and(|held| held.has_told(key, uid, operation))
    }
}

impl State {
    /// The end of a life was acknowledged; returns whether the journal moved.
    pub(super) fn life_ended(&mut self, key: &Key, uid: &Uid) -> bool {
        self.ended.lives.add(&(key, uid));
        self.strike(key)
    }

    /// Something else of a life was acknowledged: if it was taken for over, it is not.
    pub(super) fn life_goes_on(&mut self, key: &Key, uid: &Uid) {
        self.ended.lives.forget(&(key, uid));
    }

    /// Ends of operations of a life were told; returns whether the journal moved.
    pub(super) fn told(&mut self, key: &Key, uid: &Uid, ends: impl IntoIterator<Item = Digest>) -> bool {
        ends.into_iter().filter(|end| !end.is_none()).for_each(|end| self.ended.ends.add(&(key, uid, end)));
        self.strike(key)
    }

    fn strike(&mut self, key: &Key) -> bool {
        let held = self.tables.journal.get(key).and_then(|bytes| stored::decode(bytes).ok());
        let Some(held) = held else { return false };
        let left = self.ended.without(key, held).map(|left| stored::encode(&left));
        self.put(Table::Journal, key, left)
    }
}

impl Ended {
    /// What of `pending` is still to be kept.
    pub(super) fn without(&self, key: &Key, mut pending: Pending) -> Option<Pending> {
        let over = |uid: &Uid| self.lives.has(&(key, uid));
        let told = |uid: &Uid, end: &Fact| !self.ends.all.is_empty() && self.ends.has(&(key, uid, end.id));
        pending.facts.retain(|(uid, _, end)| !over(uid) && !told(uid, end));
        pending.gone.retain(|(uid, _)| !over(uid));
        (!pending.facts.is_empty() || !pending.gone.is_empty()).then_some(pending)
    }
}

impl Recent {
    fn add(&mut self, one: &impl Hash) {
        let one = self.names.of(one);
        if !self.all.insert(one) {
            return;
        }
        self.order.push_back(one);
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }

    fn forget(&mut self, one: &impl Hash) {
        let one = self.names.of(one);
        if self.all.remove(&one) {
            self.order.retain(|held| *held != one);
        }
    }

    fn has(&self, one: &impl Hash) -> bool {
        !self.all.is_empty() && self.all.contains(&self.names.of(one))
    }
}

#[cfg(test)]
#[path = "ended_tests.rs"]
mod tests;
