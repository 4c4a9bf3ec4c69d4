//! The mark of a dirty key: what must survive of the events that were folded into one read.
//!
//! State may coalesce, because the object can be read again; a deletion and the end of an operation cannot
//! be read again, so the mark keeps them.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Cause, Change, Event, Key, OperationEnd, Timestamp, Uid, Version};

use super::input::same_end;

/// Summaries and deletions kept for one key.
pub(super) const KEPT: usize = 8;

/// One remembered end of an operation.
#[derive(Debug, Clone)]
struct End {
    uid: Uid,
    version: Version,
    end: Arc<OperationEnd>,
}

/// Why a key is dirty, and what is known of what was folded into it.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    /// What the event of the read is caused by.
    pub(super) cause: Cause,
    /// Since when something of the key is unreported.
    pub(super) since: Duration,
    /// The newest life noted.
    pub(super) uid: Option<Uid>,
    /// The newest state noted.
    pub(super) version: Version,
    /// Trace id of the newest event noted.
    pub(super) trace: u128,
    gone: Vec<(Uid, Version)>,
    ends: Vec<End>,
}

/// Summaries that came into a mark or left it, to keep the lane's sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) ends: u64,
    pub(super) bytes: u64,
}

impl Mark {
    pub(super) fn new(cause: Cause, since: Duration) -> Self {
        Self { cause, since, uid: None, version: Version(0), trace: 0, gone: Vec::new(), ends: Vec::new() }
    }

    /// Folds an event in. `known` is the end that the newest queued state shows: it needs no summary.
    /// `spare` bytes may be used for summaries. Returns how many things had to be given up.
    pub(super) fn note(&mut self, event: &Event, known: Option<&OperationEnd>, spare: u64) -> u64 {
        let mut dropped = 0;
        self.cause = Cause::Read;
        self.trace = event.trace;
        dropped += self.advance(&event.uid, event.version);
        if event.is_deleted() {
            dropped += self.delete(event.uid.clone(), event.version);
        }
        let mut left = spare;
        for end in event.coalesced_ends.iter().chain(&event.operation) {
            if known.is_some_and(|known| same_end(known, end)) {
                continue;
            }
            dropped += self.keep(&event.uid, event.version, end, &mut left);
        }
        dropped
    }

    /// Notes a state; of two lives the one with the older state is over.
    fn advance(&mut self, uid: &Uid, version: Version) -> u64 {
        let Some(known) = self.uid.clone().filter(|known| known != uid) else {
            self.uid = Some(uid.clone());
            self.version = self.version.max(version);
            return 0;
        };
        if version < self.version {
            return self.delete(uid.clone(), version);
        }
        let dropped = self.delete(known, self.version);
        self.uid = Some(uid.clone());
        self.version = version;
        dropped
    }

    fn delete(&mut self, uid: Uid, version: Version) -> u64 {
        if self.gone.iter().any(|(known, _)| *known == uid) {
            return 0;
        }
        let full = self.gone.len() >= KEPT;
        if full {
            self.gone.remove(0);
        }
        let at = self.gone.partition_point(|(_, known)| *known <= version);
        self.gone.insert(at, (uid, version));
        u64::from(full)
    }

    fn keep(&mut self, uid: &Uid, version: Version, end: &Arc<OperationEnd>, left: &mut u64) -> u64 {
        if self.ends.iter().any(|kept| kept.uid == *uid && same_end(&kept.end, end)) {
            return 0;
        }
        let mut dropped = 0;
        let size = end.size() as u64;
        while !self.ends.is_empty() && (self.ends.len() >= KEPT || *left < size) {
            *left += self.ends.remove(0).end.size() as u64;
            dropped += 1;
        }
        if *left < size {
            return dropped + 1;
        }
        *left -= size;
        let at = self.ends.partition_point(|kept| kept.version <= version);
        self.ends.insert(at, End { uid: uid.clone(), version, end: end.clone() });
        dropped
    }

    /// Folds a newer mark in. Returns how many things had to be given up.
    pub(super) fn absorb(&mut self, newer: Self) -> u64 {
        let mut dropped = 0;
        if newer.cause == Cause::Read {
            self.cause = Cause::Read;
        }
        if let Some(uid) = &newer.uid {
            dropped += self.advance(uid, newer.version);
            self.trace = newer.trace;
        }
        self.since = self.since.min(newer.since);
        for (uid, version) in newer.gone {
            dropped += self.delete(uid, version);
        }
        let mut left = u64::MAX;
        for end in newer.ends {
            dropped += self.keep(&end.uid, end.version, &end.end, &mut left);
        }
        dropped
    }

    pub(super) fn load(&self) -> Load {
        Load {
            ends: self.ends.len() as u64,
            bytes: self.ends.iter().map(|kept| kept.end.size() as u64).sum(),
        }
    }

    /// Deletions noted.
    pub(super) fn deletions(&self) -> u64 {
        self.gone.len() as u64
    }

    /// Whether the newest life noted is also noted as deleted.
    fn ends_deleted(&self) -> bool {
        self.uid.as_ref().is_some_and(|uid| self.gone.iter().any(|(gone, _)| gone == uid))
    }

    /// What a read that found `event` makes of this mark, and of what was noted while it was being read:
    /// deletions of earlier lives, then the event with the ends that it covers. What the read cannot cover
    /// remains a mark.
    pub(super) fn found(
        mut self,
        mut later: Option<Box<Self>>,
        event: &mut Event,
    ) -> (Vec<Event>, Option<Box<Self>>) {
        event.cause = self.cause;
        let mut lives = self.lives(None);
        lives.retain(|(uid, _)| *uid != event.uid);
        let told = |uid: &Uid| lives.iter().any(|(known, _)| known == uid);
        let covered = |later: &Self| {
            later.gone.iter().all(|(uid, _)| told(uid))
                && later.uid.as_ref().is_some_and(|uid| *uid == event.uid || told(uid))
                && later.version <= event.version
        };
        self.take_ends(&mut later, told);
        if let Some(mark) = later.take_if(|later| covered(later)) {
            self.ends.extend(mark.ends);
            if mark.cause == Cause::Read {
                event.cause = Cause::Read;
            }
        }
        let before = self.deletions_of(&event.key, lives, event.observed);
        let shown = event.operation.clone();
        event.coalesced_ends.extend(
            self.ends
                .into_iter()
                .filter(|kept| kept.uid == event.uid)
                .map(|kept| kept.end)
                .filter(|end| !shown.as_ref().is_some_and(|shown| same_end(shown, end))),
        );
        (before, later)
    }

    /// What a read that found nothing makes of this mark: the deletion of every life that it knows, or of
    /// `fallback`, the life that the ledger knows.
    pub(super) fn gone(
        mut self,
        key: &Key,
        mut later: Option<Box<Self>>,
        fallback: Option<Uid>,
        observed: Timestamp,
    ) -> (Vec<Event>, Option<Box<Self>>) {
        let lives = self.lives(fallback);
        let told = |uid: &Uid| lives.iter().any(|(known, _)| known == uid);
        let covered = |later: &Self| later.ends_deleted() && later.gone.iter().all(|(uid, _)| told(uid));
        self.take_ends(&mut later, told);
        later.take_if(|later| covered(later));
        (self.deletions_of(key, lives, observed), later)
    }

    /// The lives noted, the newest (or else `fallback`) last.
    fn lives(&mut self, fallback: Option<Uid>) -> Vec<(Uid, Version)> {
        let mut lives = std::mem::take(&mut self.gone);
        if let Some(uid) = self.uid.clone().or(fallback)
            && !lives.iter().any(|(known, _)| *known == uid)
        {
            lives.push((uid, self.version));
        }
        lives
    }

    /// Takes over the ends of lives that are over, which `later` noted while this mark was being read.
    fn take_ends(&mut self, later: &mut Option<Box<Self>>, over: impl Fn(&Uid) -> bool) {
        if let Some(later) = later {
            self.ends.extend(later.ends.extract_if(.., |kept| over(&kept.uid)));
        }
    }

    fn deletions_of(&self, key: &Key, lives: Vec<(Uid, Version)>, observed: Timestamp) -> Vec<Event> {
        let event = |(uid, version): (Uid, Version)| Event {
            key: key.clone(),
            version,
            change: Change::Deleted { body: None },
            cause: Cause::Read,
            observed,
            operation: None,
            coalesced_ends: self
                .ends
                .iter()
                .filter(|kept| kept.uid == uid)
                .map(|kept| kept.end.clone())
                .collect(),
            trace: self.trace,
            uid,
        };
        lives.into_iter().map(event).collect()
    }
}
