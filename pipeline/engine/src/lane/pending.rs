//! What of a key must outlive the process, and how it comes back.
//!
//! Whatever the cluster still shows is read again after a restart. Facts that a newer one may
//! cover, and lives that are over, it does not show for ever: they are journaled while they are unreported, and
//! come back as a dirty entry.

use std::time::Duration;

use pipeline_core::{Event, Fact, Key, Pending, Uid, Version};

use super::Lane;
use super::dirty_entry::{DirtyEntry, KEPT_FACTS, KEPT_LIVES, Load};
use super::key_state::{Awaited, KeyState};
use super::take::charge;

impl Lane {
    /// What of a key is unreported and cannot be read again, at most the newest 64 facts and 8 lives; `None` when
    /// there is nothing of that kind. Costs as much as the key holds.
    #[must_use]
    pub fn pending(&self, key: &Key) -> Option<Pending> {
        let slot = self.keys.get(key)?;
        let mut pending = Gathered::default();
        if let (Some(asked), Some(entry)) = (&slot.asked, &slot.dirty) {
            entry.gather(&mut pending);
            pending.succeeded(asked, entry);
            asked.gather(&mut pending);
        } else if let Some(entry) = slot.asked.as_ref().or(slot.dirty.as_ref()) {
            entry.gather(&mut pending);
        }
        for held in slot.queue.iter().rev().chain(&slot.running) {
            pending.gather(&held.event);
        }
        let mut pending = pending.0.if_any()?;
        debug_assert!(self.may_be_pending(key), "what would be left unwritten");
        pending.facts.reverse();
        pending.gone.reverse();
        pending.gone.sort_by_key(|(_, version)| *version);
        Some(pending)
    }

    /// Whether [`Lane::pending`] may have anything to say of a key; costs little.
    #[must_use]
    pub fn may_be_pending(&self, key: &Key) -> bool {
        let Some(slot) = self.keys.get(key) else { return false };
        slot.is_dirty() || slot.queue.iter().chain(&slot.running).any(|held| held.event.must_be_told())
    }

    /// Goes on with what was journaled. Where it is `awaited` the watch shows more first, which is folded in: were it read at
    /// once, what led to the newest state would be told after it.
    pub(super) fn restore(&mut self, key: &Key, pending: Pending, awaited: bool, now: Duration) {
        let slot = self.keys.entry(key.clone()).or_insert_with(KeyState::boxed);
        slot.awaits = awaited.then(|| Awaited::from(now, false));
        self.counts.dirty += u64::from(!slot.is_dirty());
        let before = slot.dirty.as_deref().map_or_else(Load::default, DirtyEntry::load);
        let spare = self.config.summary_bytes.saturating_sub(self.counts.summary_bytes);
        let (mut entry, mut dropped) = DirtyEntry::restored(pending, now, spare);
        if let Some(later) = slot.dirty.take() {
            dropped += entry.absorb(*later);
        }
        self.counts.summaries_dropped += dropped;
        charge(&mut self.counts, before, entry.load());
        slot.dirty = Some(Box::new(entry));
        self.schedule(key, now);
    }
}

/// What is being gathered, the newest first: what is too much is the oldest.
#[derive(Default)]
pub(super) struct Gathered(Pending);

impl Gathered {
    fn gather(&mut self, event: &Event) {
        for fact in event.fact.iter().chain(event.coalesced.iter().rev()) {
            self.fact(&event.uid, event.version, fact);
        }
        if event.is_deleted() {
            self.over(&event.uid, event.version);
        }
    }

    /// The life of a dirty entry that is being read is over when a later one has been noted since.
    fn succeeded(&mut self, asked: &DirtyEntry, later: &DirtyEntry) {
        if let (Some(uid), Some(next)) = (&asked.uid, &later.uid)
            && uid != next
            && asked.version < later.version
            && !self.0.gone.iter().any(|(known, _)| known == uid)
        {
            self.over(uid, asked.version);
        }
    }

    pub(super) fn fact(&mut self, uid: &Uid, version: Version, fact: &Fact) {
        let known = |(life, _, kept): &(Uid, Version, Fact)| life == uid && kept.is_same(fact);
        if self.0.facts.len() < KEPT_FACTS && !self.0.facts.iter().any(known) {
            self.0.facts.push((uid.clone(), version, fact.clone()));
        }
    }

    /// The earliest word of a life's end says best when that was. Of one of which only the name is known, since the ledger has it, it was before all others.
    pub(super) fn over(&mut self, uid: &Uid, version: Version) {
        if let Some((_, known)) = self.0.gone.iter_mut().find(|(life, _)| life == uid) {
            *known = version.min(*known);
        } else if self.0.gone.len() < KEPT_LIVES {
            self.0.gone.push((uid.clone(), version));
        }
    }
}
