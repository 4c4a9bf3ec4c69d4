//! The dirty entry of a key: what must survive of the events that were folded into one read.
//!
//! State may coalesce, because the object can be read again; a deletion and a fact cannot
//! be read again, so the dirty entry keeps them.

use std::time::Duration;

use pipeline_core::{Cause, Change, Event, Fact, Key, Pending, Timestamp, Uid, Version};

use super::pending::Gathered;

/// Facts kept of one key: more than the phases and steps of a long rollout.
pub(crate) const KEPT_FACTS: usize = 64;
/// Lives that are over, kept of one key.
pub(super) const KEPT_LIVES: usize = 8;

/// Why a key is dirty, and what is known of what was folded into it.
#[derive(Debug, Clone)]
pub(super) struct DirtyEntry {
    /// [`Cause::Refetch`] while nothing but that is noted, else [`Cause::Read`].
    pub(super) cause: Cause,
    /// The time of a refetch has come, or somebody asks, whatever else was noted since.
    refetch: bool,
    /// Since when something of the key is unreported.
    pub(super) since: Duration,
    /// The newest life noted.
    pub(super) uid: Option<Uid>,
    /// The newest state noted.
    pub(super) version: Version,
    /// The newest state that this process was shown: what is read must not be older. What was journaled does not
    /// count, since a cluster that was built anew meanwhile may never come to such a version.
    pub(super) floor: Version,
    /// Trace id of the newest event noted.
    pub(super) trace: u128,
    /// The life whose end was shown last: nothing more will be shown of it.
    shown_over: Option<Uid>,
    gone: Vec<(Uid, Version)>,
    facts: Vec<KeptFact>,
}

/// A fact, and the state that showed it.
#[derive(Debug, Clone)]
struct KeptFact {
    uid: Uid,
    version: Version,
    fact: Fact,
}

impl KeptFact {
    /// Whether both are the same fact of the same life.
    fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid && self.fact.is_same(&other.fact)
    }
}

/// What a read that found nothing makes of a dirty entry.
#[derive(Debug)]
pub(super) struct Gone {
    /// Of every life that was known.
    pub(super) deletions: Vec<Event>,
    /// What the read cannot cover.
    pub(super) rest: Option<Box<DirtyEntry>>,
    /// The newest of these lives, if the watch has yet to show that it is over, and may show states of it before.
    pub(super) ahead: Option<Uid>,
}

/// Facts that came into a dirty entry or left it, to keep the lane's sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) facts: u64,
    pub(super) bytes: u64,
}

impl DirtyEntry {
    pub(super) fn new(cause: Cause, since: Duration) -> Self {
        let none = Version(0);
        Self {
            cause,
            refetch: cause == Cause::Refetch,
            since,
            uid: None,
            version: none,
            floor: none,
            trace: 0,
            shown_over: None,
            gone: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// The dirty entry of a key that is looked at again without anything being noted of it. What could not be fetched for it
    /// has a time of its own.
    pub(super) fn look(since: Duration) -> Self {
        Self { refetch: false, ..Self::new(Cause::Refetch, since) }
    }

    /// Somebody asks for a look: nothing is left out for having been looked at just before.
    pub(super) fn ask(&mut self) {
        (self.cause, self.refetch) = (Cause::Read, true);
    }

    /// The dirty entry of a key of which something was journaled, with how many things had to be given up. The life that
    /// it names is the newest noted, unless that one is over.
    pub(super) fn restored(pending: Pending, since: Duration, spare: u64) -> (Self, u64) {
        let mut entry = Self::new(Cause::Read, since);
        let (mut dropped, mut left) = (0, spare);
        for (uid, version) in pending.gone {
            dropped += entry.delete(uid, version);
        }
        for (uid, version, fact) in pending.facts {
            if !entry.is_over(&uid) {
                dropped += entry.advance(&uid, version);
            }
            dropped += entry.keep(&uid, version, &fact, &mut left);
        }
        let last = entry.gone.last().map_or(Version(0), |(_, version)| *version);
        if entry.version < last {
            if let Some(former) = entry.uid.take() {
                dropped += entry.delete(former, entry.version);
            }
            entry.version = last;
        }
        entry.floor = Version(0);
        (entry, dropped)
    }

    /// The oldest state of which something is unreported; 0 for none, and for what is merely looked at again.
    pub(super) fn oldest_version(&self) -> Version {
        if self.cause == Cause::Refetch {
            return Version(0);
        }
        let kept =
            self.facts.iter().map(|kept| kept.version).chain(self.gone.iter().map(|(_, version)| *version));
        kept.fold(self.version, Version::older)
    }

    /// Adds what must outlive the process, the newest first.
    pub(super) fn gather(&self, pending: &mut Gathered) {
        for kept in self.facts.iter().rev() {
            pending.fact(&kept.uid, kept.version, &kept.fact);
        }
        for (uid, version) in self.gone.iter().rev() {
            pending.over(uid, *version);
        }
    }

    /// Notes that a state of this version was shown.
    pub(super) fn shown(&mut self, version: Version) {
        self.version = self.version.max(version);
        self.floor = self.floor.max(version);
    }

    /// Folds an event in. `known` is the fact that the newest queued state shows: it need not be kept.
    /// `spare` bytes may be used for facts. Returns how many things had to be given up.
    pub(super) fn note(&mut self, event: &Event, known: Option<&Fact>, spare: u64) -> u64 {
        let mut dropped = 0;
        self.cause = Cause::Read;
        self.refetch |= event.cause == Cause::Refetch;
        self.trace = event.trace;
        // What a watch shows again may be older than what was journaled, in the same store: that of a later life, or that of its
        // own end.
        let later = event.again && event.version < self.version;
        dropped += match &self.uid {
            None if later && self.is_over(&event.uid) => 0,
            known if later && known.as_ref() != Some(&event.uid) => {
                self.delete(event.uid.clone(), event.version)
            }
            _ => self.advance(&event.uid, event.version),
        };
        if event.is_deleted() {
            self.shown_over = Some(event.uid.clone());
            dropped += self.delete(event.uid.clone(), event.version);
        }
        let mut left = spare;
        for fact in event.coalesced.iter().chain(&event.fact) {
            if known.is_some_and(|known| known.is_same(fact)) {
                continue;
            }
            dropped += self.keep(&event.uid, event.version, fact, &mut left);
        }
        dropped
    }

    /// Whether nothing but facts of the life of `event`, which goes on, is noted: whoever reports that event, with them, need
    /// not read.
    pub(super) fn waits_for(&self, event: &Event) -> bool {
        let same = |uid: &Uid| *uid == event.uid;
        let own = self.uid.as_ref().is_none_or(same) && self.facts.iter().all(|kept| same(&kept.uid));
        own && self.gone.is_empty() && !self.refetch && !event.is_deleted()
    }

    /// Hands its facts over to the event that they lead to.
    pub(super) fn join(self, event: &mut Event) {
        let (shown, rest) = (event.fact.clone(), std::mem::take(&mut event.coalesced));
        let own = |fact: &Fact| shown.iter().chain(&rest).any(|known| known.is_same(fact));
        let facts = self.facts.into_iter().map(|kept| kept.fact);
        event.coalesced = facts.filter(|fact| !own(fact)).collect();
        event.coalesced.extend(rest);
    }

    /// Notes a state; of two lives the one with the older state is over. What this process is shown is newer than
    /// what was journaled.
    fn advance(&mut self, uid: &Uid, version: Version) -> u64 {
        let Some(known) = self.uid.clone().filter(|known| known != uid) else {
            self.uid = Some(uid.clone());
            self.shown(version);
            return 0;
        };
        if version < self.floor {
            return self.delete(uid.clone(), version);
        }
        let dropped = self.delete(known, self.version);
        self.uid = Some(uid.clone());
        self.version = version;
        self.floor = version;
        dropped
    }

    fn is_over(&self, uid: &Uid) -> bool {
        self.gone.iter().any(|(gone, _)| gone == uid)
    }

    fn delete(&mut self, uid: Uid, version: Version) -> u64 {
        let full = !self.is_over(&uid) && self.gone.len() >= KEPT_LIVES;
        if full {
            self.gone.remove(0);
        }
        put(&mut self.gone, uid, version);
        u64::from(full)
    }

    fn keep(&mut self, uid: &Uid, version: Version, fact: &Fact, left: &mut u64) -> u64 {
        if self.facts.iter().any(|kept| kept.uid == *uid && kept.fact.is_same(fact)) {
            return 0;
        }
        let mut dropped = 0;
        let size = fact.size() as u64;
        while !self.facts.is_empty() && (self.facts.len() >= KEPT_FACTS || *left < size) {
            *left = left.saturating_add(self.facts.remove(0).fact.size() as u64);
            dropped += 1;
        }
        if *left < size {
            return dropped + 1;
        }
        *left -= size;
        let at = self.facts.partition_point(|kept| kept.version <= version);
        // Of most keys one is noted, while thousands of keys may have a dirty entry.
        self.facts.reserve_exact(1);
        self.facts.insert(at, KeptFact { uid: uid.clone(), version, fact: fact.clone() });
        dropped
    }

    /// Folds a newer dirty entry in. Returns how many things had to be given up.
    pub(super) fn absorb(&mut self, newer: Self) -> u64 {
        let mut dropped = 0;
        let floor = self.floor.max(newer.floor);
        if newer.cause == Cause::Read {
            self.cause = Cause::Read;
        }
        self.refetch |= newer.refetch;
        // A life of which nothing but its name is known succeeds none: whoever asked for a replay named it.
        let named = newer.version.0 == 0 && self.uid.is_some();
        if let Some(uid) = newer.uid.as_ref().filter(|_| !named) {
            dropped += self.advance(uid, newer.version);
            self.trace = newer.trace;
        }
        self.since = self.since.min(newer.since);
        self.shown_over = newer.shown_over.or(self.shown_over.take());
        for (uid, version) in newer.gone {
            dropped += self.delete(uid, version);
        }
        let mut left = u64::MAX;
        for kept in newer.facts {
            dropped += self.keep(&kept.uid, kept.version, &kept.fact, &mut left);
        }
        self.floor = floor;
        dropped
    }

    pub(super) fn load(&self) -> Load {
        Load {
            facts: self.facts.len() as u64,
            bytes: self.facts.iter().map(|kept| kept.fact.size() as u64).sum(),
        }
    }

    /// Deletions noted.
    pub(super) fn deletions(&self) -> u64 {
        self.gone.len() as u64
    }

    /// What a read that found `event` makes of this dirty entry, and of what was noted while it was being read:
    /// deletions of earlier lives, then the event with the facts that it covers. What the read cannot cover
    /// remains a dirty entry.
    pub(super) fn found(
        mut self,
        mut later: Option<Box<Self>>,
        event: &mut Event,
    ) -> (Vec<Event>, Option<Box<Self>>) {
        if self.trace == 0 {
            self.trace = event.trace;
        }
        let mut lives = self.lives(None);
        if let Some(later) = &mut later {
            // A life that came and went before the one that was read is told before it, or never.
            later.hand_over(&mut lives, |(uid, version)| *uid != event.uid && *version < event.version);
        }
        lives.retain(|(uid, _)| *uid != event.uid);
        let told = |uid: &Uid| lives.iter().any(|(known, _)| known == uid);
        let covered = |later: &Self| {
            later.gone.iter().all(|(uid, _)| told(uid))
                && later.uid.as_ref().is_some_and(|uid| *uid == event.uid || told(uid))
                && later.floor <= event.version
        };
        // A fact is told with the first state that shows it or a later one.
        let shown = |kept: &KeptFact| kept.uid == event.uid && kept.version <= event.version;
        self.take_facts(&mut later, |kept| told(&kept.uid) || shown(kept));
        if let Some(entry) = later.take_if(|later| covered(later)) {
            self.refetch |= entry.refetch;
            self.adopt(entry.facts);
        }
        event.cause = if self.refetch { Cause::Refetch } else { Cause::Read };
        let before = self.deletions_of(&event.key, lives, event.observed);
        let shown = event.fact.clone();
        event.coalesced.extend(
            self.facts
                .into_iter()
                .filter(|kept| kept.uid == event.uid)
                .map(|kept| kept.fact)
                .filter(|fact| !shown.as_ref().is_some_and(|shown| shown.is_same(fact))),
        );
        (before, later)
    }

    /// What a read that found nothing makes of this dirty entry: the deletion of every life that it knows, and of
    /// `fallback`, the life that the ledger knows.
    pub(super) fn gone(
        mut self,
        key: &Key,
        mut later: Option<Box<Self>>,
        fallback: Option<Uid>,
        observed: Timestamp,
    ) -> Gone {
        let mut lives = self.lives(fallback);
        if let (Some(later), Some((_, last))) = (&mut later, lives.last().cloned()) {
            // What a watch shows again of a life before the last one is told before the end of that, or never.
            later.hand_over(&mut lives, |(_, version)| *version < last);
        }
        let told = |uid: &Uid| lives.iter().any(|(known, _)| known == uid);
        let covered = |later: &Self| {
            later.uid.as_ref().is_some_and(told) && later.gone.iter().all(|(uid, _)| told(uid))
        };
        let shown = |uid: &Uid| {
            let entries = std::iter::once(&self).chain(later.as_deref());
            entries.filter_map(|entry| entry.shown_over.as_ref()).any(|over| over == uid)
        };
        let newest = self.uid.as_ref().or(lives.last().map(|(uid, _)| uid));
        let ahead = newest.cloned().filter(|uid| !shown(uid));
        self.take_facts(&mut later, |kept| told(&kept.uid));
        later.take_if(|later| covered(later));
        Gone { deletions: self.deletions_of(key, lives, observed), rest: later, ahead }
    }

    /// The lives noted, the newest last, then `fallback`, which may be one of them.
    fn lives(&mut self, fallback: Option<Uid>) -> Vec<(Uid, Version)> {
        let mut lives = std::mem::take(&mut self.gone);
        for uid in self.uid.iter().cloned().chain(fallback) {
            if !lives.iter().any(|(known, _)| *known == uid) {
                lives.push((uid, self.version));
            }
        }
        lives
    }

    /// Lives that go by then join those that are told, in their order.
    fn hand_over(&mut self, lives: &mut Vec<(Uid, Version)>, goes: impl Fn(&(Uid, Version)) -> bool) {
        for (uid, version) in self.gone.extract_if(.., |life| goes(life)) {
            put(lives, uid, version);
        }
        let newest = self.uid.clone().map(|uid| (uid, self.version)).filter(|life| goes(life));
        if let Some((uid, version)) = newest.filter(|(uid, _)| !lives.iter().any(|(known, _)| known == uid)) {
            put(lives, uid, version);
        }
    }

    /// Takes over the facts that what was read goes with, which `later` noted while this dirty entry was being read.
    fn take_facts(&mut self, later: &mut Option<Box<Self>>, goes: impl Fn(&KeptFact) -> bool) {
        if let Some(later) = later {
            later.facts.retain(|kept| !self.facts.iter().any(|known| known.is_same(kept)));
            let taken: Vec<_> = later.facts.extract_if(.., |kept| goes(kept)).collect();
            self.adopt(taken);
        }
    }

    /// Adds facts, each once and in its place: what was being read may be delivered again meanwhile, and what was before it.
    fn adopt(&mut self, facts: Vec<KeptFact>) {
        for fact in facts {
            if !self.facts.iter().any(|known| known.is_same(&fact)) {
                let at = self.facts.partition_point(|kept| kept.version <= fact.version);
                self.facts.insert(at, fact);
            }
        }
    }

    fn deletions_of(&self, key: &Key, lives: Vec<(Uid, Version)>, observed: Timestamp) -> Vec<Event> {
        let event = |(uid, version): (Uid, Version)| {
            let own = self.facts.iter().filter(|kept| kept.uid == uid);
            let coalesced = own.map(|kept| kept.fact.clone()).collect();
            let gone = Change::Deleted { body: None };
            let event = Event::watched(key.clone(), uid, version, gone, observed);
            Event { cause: Cause::Read, coalesced, trace: self.trace, ..event }
        };
        lives.into_iter().map(event).collect()
    }
}

/// A life that is over joins others, in their order. A list ends the life that it knew, however many followed: the earliest word
/// of a life's end says best when that was.
fn put(lives: &mut Vec<(Uid, Version)>, uid: Uid, version: Version) {
    let known = lives.iter().position(|(known, _)| *known == uid).map(|at| lives.remove(at).1);
    let version = known.map_or(version, |known| known.min(version));
    let at = lives.iter().position(|(_, known)| *known > version).unwrap_or(lives.len());
    lives.insert(at, (uid, version));
}
