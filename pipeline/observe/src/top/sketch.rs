//! The applications with the largest sums, found in little room: the space-saving algorithm of Metwally, Agrawal and
//! El Abbadi ("Efficient computation of frequent and top-k elements in data streams", 2005) with weights.
//!
//! Whoever has no place takes that of the smallest sum, and inherits it as what may be too much. So at any moment, with
//! `n` places and a total weight `w`: no sum is missed that is larger than `w / n`; what is told of one is too small by
//! nothing and too large by its error, which is `w / n` at most.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use pipeline_core::Key;
use seahash::SeaHasher;

/// What is kept beside the sum of an application for as long as it has a place.
pub(super) trait Detail: Default + Clone {
    /// Adds what an earlier sketch kept of the same application.
    fn add(&mut self, earlier: &Self);
}

/// One application of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranked<D> {
    /// The application.
    pub key: Key,
    /// Its sum is this or more: what was added since it has its place.
    pub at_least: u64,
    /// Its sum is this or less.
    pub at_most: u64,
    /// What was counted beside it in the same time.
    pub detail: D,
}

/// Sums of the applications with the largest ones.
#[derive(Debug)]
pub(super) struct Sketch<D> {
    places: usize,
    /// Apart from the entries, so that the smallest is found in a few cache lines.
    sums: Vec<u64>,
    entries: Vec<Entry<D>>,
    index: HashMap<Key, usize, BuildHasherDefault<SeaHasher>>,
    /// No sum is smaller.
    floor: u64,
    /// Sums that were passed in looking for one that is no larger.
    passed: usize,
}

#[derive(Debug)]
struct Entry<D> {
    key: Key,
    /// The sum that it inherited.
    error: u64,
    detail: D,
}

impl<D: Detail> Sketch<D> {
    pub(super) fn new(places: usize) -> Self {
        Self {
            places: places.max(1),
            sums: Vec::new(),
            entries: Vec::new(),
            index: HashMap::default(),
            floor: 0,
            passed: 0,
        }
    }

    /// Adds to the sum of an application; gives what is kept beside it.
    pub(super) fn add(&mut self, key: &Key, weight: u64) -> &mut D {
        let at = match self.index.get(key) {
            Some(at) => *at,
            None if self.entries.len() < self.places => self.join(key),
            None => self.replace(key),
        };
        self.sums[at] = self.sums[at].saturating_add(weight);
        &mut self.entries[at].detail
    }

    /// What is kept beside the sum of an application, if it has a place or one is free.
    pub(super) fn detail(&mut self, key: &Key) -> Option<&mut D> {
        let at = match self.index.get(key) {
            Some(at) => *at,
            None if self.entries.len() < self.places => self.join(key),
            None => return None,
        };
        Some(&mut self.entries[at].detail)
    }

    /// Forgets everything, and keeps the room.
    pub(super) fn clear(&mut self) {
        self.sums.clear();
        self.entries.clear();
        self.index.clear();
        (self.floor, self.passed) = (0, 0);
    }

    /// What an application without a place may have.
    fn floor(&self) -> u64 {
        if self.entries.len() < self.places { 0 } else { self.sums.iter().copied().min().unwrap_or_default() }
    }

    fn join(&mut self, key: &Key) -> usize {
        let at = self.entries.len();
        self.sums.push(0);
        self.entries.push(Entry { key: key.clone(), error: 0, detail: D::default() });
        self.index.insert(key.clone(), at);
        at
    }

    fn replace(&mut self, key: &Key) -> usize {
        let at = self.smallest();
        let entry = Entry { key: key.clone(), error: self.sums[at], detail: D::default() };
        let former = std::mem::replace(&mut self.entries[at], entry);
        self.index.remove(&former.key);
        self.index.insert(key.clone(), at);
        at
    }

    /// Which sum is the smallest. Sums only grow: those before `passed` are larger than `floor`, or are found in the next
    /// pass, so that many applications that are alike cost no more than one.
    fn smallest(&mut self) -> usize {
        let rest = self.sums.get(self.passed..).unwrap_or_default();
        let found = rest.iter().position(|sum| *sum == self.floor).map(|at| self.passed + at);
        let at = found.unwrap_or_else(|| {
            self.floor = self.sums.iter().copied().min().unwrap_or_default();
            self.sums.iter().position(|sum| *sum == self.floor).unwrap_or_default()
        });
        self.passed = at + 1;
        at
    }

    fn ranked(&self) -> impl Iterator<Item = Ranked<D>> {
        self.entries.iter().zip(&self.sums).map(|(entry, sum)| Ranked {
            key: entry.key.clone(),
            at_least: sum - entry.error,
            at_most: *sum,
            detail: entry.detail.clone(),
        })
    }
}

/// The `limit` applications with the largest sums of two sketches together, the largest first. What is certain decides:
/// of many applications that are all alike none looks larger than it is.
pub(super) fn largest<D: Detail>(now: &Sketch<D>, before: &Sketch<D>, limit: usize) -> Vec<Ranked<D>> {
    let (floor_now, floor_before) = (now.floor(), before.floor());
    let mut both: Vec<Ranked<D>> = now
        .ranked()
        .map(|mut ranked| {
            match before.index.get(&ranked.key) {
                Some(at) => {
                    let (sum, earlier) = (before.sums[*at], &before.entries[*at]);
                    ranked.at_least = ranked.at_least.saturating_add(sum - earlier.error);
                    ranked.at_most = ranked.at_most.saturating_add(sum);
                    ranked.detail.add(&earlier.detail);
                }
                None => ranked.at_most = ranked.at_most.saturating_add(floor_before),
            }
            ranked
        })
        .collect();
    let earlier = before.ranked().filter(|ranked| !now.index.contains_key(&ranked.key));
    both.extend(earlier.map(|ranked| {
        let at_most = ranked.at_most.saturating_add(floor_now);
        Ranked { at_most, ..ranked }
    }));
    both.sort_unstable_by(|left, right| {
        let order = (right.at_least, right.at_most).cmp(&(left.at_least, left.at_most));
        order.then_with(|| left.key.cmp(&right.key))
    });
    both.truncate(limit);
    both
}

#[cfg(test)]
mod tests;
