//! What the journal lets go of before the lane does: lives whose end was acknowledged, and ends that were told.
//!
//! The record has moved by then. Were they still journaled when the process is killed, the next one would tell them
//! again after what follows them: an end of an operation after the end of its life brings it back to life at a
//! receiver that remembers keys. So the journal lets go of them together with the record's move, and does not take
//! them back while the lane has not heard of that yet.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use pipeline_core::{Digest, Key, OperationEnd, Uid};

use super::state::State;
use super::tables::Table;
use super::{Ledger, journal};
use crate::lane::Pending;

/// Of each kind; far more than can be between an acknowledgement and the end of its turn.
const KEPT: usize = 4096;

/// What is over and told.
#[derive(Default)]
pub(super) struct Ended {
    lives: Recent<(Key, Uid)>,
    ends: Recent<(Key, Uid, Digest)>,
}

/// The latest of something, each once.
struct Recent<T> {
    all: HashSet<T>,
    /// The latest last.
    order: VecDeque<T>,
}

impl Ledger {
    /// Whether this process was told that the end of a life has arrived: whoever notices it again has nothing to tell.
    pub(crate) fn has_ended(&self, key: &Key, uid: &Uid) -> bool {
        self.inner.shared.lock().ended.lives.has(&(key.clone(), uid.clone()))
    }
}

impl State {
    /// The end of a life was acknowledged; returns whether the journal moved.
    pub(super) fn life_ended(&mut self, key: &Key, uid: &Uid) -> bool {
        self.ended.lives.add((key.clone(), uid.clone()));
        self.strike(key)
    }

    /// Something else of a life was acknowledged: if it was taken for over, it is not.
    pub(super) fn life_goes_on(&mut self, key: &Key, uid: &Uid) {
        self.ended.lives.forget(&(key.clone(), uid.clone()));
    }

    /// Ends of operations of a life were told; returns whether the journal moved.
    pub(super) fn told(&mut self, key: &Key, uid: &Uid, ends: impl Iterator<Item = Digest>) -> bool {
        ends.filter(|end| !end.is_none())
            .for_each(|end| self.ended.ends.add((key.clone(), uid.clone(), end)));
        self.strike(key)
    }

    fn strike(&mut self, key: &Key) -> bool {
        let held = self.tables.journal.get(key).and_then(|bytes| journal::decode_pending(bytes).ok());
        let Some(held) = held else { return false };
        let left = self.ended.without(key, held).map(|left| journal::encode_pending(&left));
        self.put(Table::Journal, key, left)
    }
}

impl Ended {
    /// What of `pending` is still to be kept.
    pub(super) fn without(&self, key: &Key, mut pending: Pending) -> Option<Pending> {
        let over = |uid: &Uid| self.lives.has(&(key.clone(), uid.clone()));
        let told = |uid: &Uid, end: &Arc<OperationEnd>| {
            !self.ends.all.is_empty() && self.ends.has(&(key.clone(), uid.clone(), end.digest()))
        };
        pending.ends.retain(|(uid, _, end)| !over(uid) && !told(uid, end));
        pending.gone.retain(|(uid, _)| !over(uid));
        (!pending.ends.is_empty() || !pending.gone.is_empty()).then_some(pending)
    }
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { all: HashSet::new(), order: VecDeque::new() }
    }
}

impl<T: Clone + Eq + Hash> Recent<T> {
    fn add(&mut self, one: T) {
        if !self.all.insert(one.clone()) {
            return;
        }
        self.order.push_back(one);
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }

    fn forget(&mut self, one: &T) {
        if self.all.remove(one) {
            self.order.retain(|held| held != one);
        }
    }

    fn has(&self, one: &T) -> bool {
        self.all.contains(one)
    }
}

#[cfg(test)]
#[path = "ended_tests.rs"]
mod tests;
