//! Taking events in: queued while there is room, else folded into the key's dirty entry.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Cause, Event, Fact, Filtered, Folded, Key, LaneCounts, Step, Uid};

use super::dirty_entry::{DirtyEntry, Load};
use super::input::Action;
use super::key_state::{Awaited, HeldEvent, KeyState};
use super::{Config, Lane, tell};

/// What an event is, measured by what the lane already knows of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    New,
    /// The watch delivered it, or something newer of that life, before.
    Stale,
    /// Not delivered before, but a read already showed a newer state of that life.
    Overtaken,
    /// A state of a life that is over.
    Former,
}

impl Lane {
    /// Takes an event in; one that may be older than what was reported since is `doubted`, and its object read again.
    pub(super) fn take(&mut self, event: Arc<Event>, doubted: bool, now: Duration, out: &mut Vec<Action>) {
        self.counts.observed += 1;
        out.push(tell(&event, Step::Observed));
        let key = event.key.clone();
        let (parked, led_to_parked) = (self.is_parked(&event), self.led_to_parked(&event));
        let slot = self.keys.entry(key.clone()).or_insert_with(KeyState::boxed);
        let ends =
            event.is_deleted() && slot.dirty.as_ref().is_none_or(|entry| event.version >= entry.version);
        let mut event = event;
        // All that led to it was shown.
        let shown = |awaited: &mut Awaited| !event.again || ends || (awaited.in_doubt && !doubted);
        if slot.awaits.take_if(shown).is_some() && !parked {
            slot.joins(&mut event, &mut self.counts);
        }
        if let Some(uid) = slot.missed(&event) {
            Arc::make_mut(&mut event).uid = uid;
        }
        let age = match slot.age(&event) {
            // Its state is known, and what it brings along may not be.
            Age::Stale if doubted && (event.fact.is_some() || !event.coalesced.is_empty()) => Age::New,
            age => age,
        };
        if age == Age::New && !event.is_deleted() && slot.is_over(&event.uid) {
            slot.over = None;
        }
        if matches!(age, Age::Stale | Age::Overtaken) {
            slot.watched = slot.watched.max(event.version);
        }
        let counts = &mut self.counts;
        match age {
            Age::Stale => {
                counts.filtered += 1;
                counts.stale += 1;
                out.push(tell(&event, Step::Filtered(Filtered::Stale)));
            }
            Age::New if parked && led_to_parked => {
                // The state stays refused; what happened on the way to it is told with the newest.
                fold(slot, &event, now, &self.config, counts);
                slot.saw(&event);
                out.push(tell(&event, Step::Coalesced(Folded::Overtaken)));
            }
            Age::New if parked => {
                counts.filtered += 1;
                out.push(tell(&event, Step::Filtered(Filtered::Parked)));
            }
            Age::Former => {
                if event.is_deleted() && slot.is_over(&event.uid) {
                    slot.over = None;
                }
                counts.coalesced += 1;
                out.push(tell(&event, Step::Coalesced(Folded::Former)));
            }
            Age::Overtaken => {
                let event = slot.without_carried(event);
                if slot.hides_fact_of(&event) || slot.dirty.is_some() {
                    fold(slot, &event, now, &self.config, counts);
                } else {
                    counts.coalesced += 1;
                }
                out.push(tell(&event, Step::Coalesced(Folded::Overtaken)));
            }
            Age::New => {
                let limited = slot.limited.is_some();
                let dirty = slot.is_dirty() || limited || doubted;
                if !dirty && has_room(slot, &event, &self.config, counts) {
                    slot.enqueue(event, now, counts);
                } else {
                    counts.overflowed += u64::from(!dirty);
                    #[cfg(test)]
                    if !dirty && self.mutant == Some(super::Mutant::DropsOnFull) {
                        counts.coalesced += 1;
                        slot.saw(&event);
                        return self.schedule(&key, now);
                    }
                    fold(slot, &event, now, &self.config, counts);
                    slot.saw(&event);
                    let folded = match (limited, dirty) {
                        _ if doubted => Folded::Doubted,
                        (true, _) => Folded::Limited,
                        (false, true) => Folded::Dirty,
                        (false, false) => Folded::Full,
                    };
                    out.push(tell(&event, Step::Coalesced(folded)));
                }
            }
        }
        self.schedule(&key, now);
    }

    /// Takes in a state that is shown again and led to one that may have arrived: it waits for that. What is being done for the
    /// object, or waits already, brings it up to date by itself.
    pub(super) fn take_in_doubt(&mut self, event: Arc<Event>, now: Duration, out: &mut Vec<Action>) {
        let idle = self.standing(&event.key, now).is_none();
        let slot = self.keys.entry(event.key.clone()).or_insert_with(KeyState::boxed);
        if idle {
            slot.awaits = Some(Awaited::from(now, true));
        }
        let waits = slot.awaits.is_some_and(|awaited| awaited.in_doubt);
        self.take(event, waits, now, out);
    }

    /// Counts an event of which nothing is to be done.
    pub(super) fn pass_over(&mut self, event: &Event, out: &mut Vec<Action>) {
        self.counts.observed += 1;
        self.counts.filtered += 1;
        self.counts.stale += 1;
        out.extend([Step::Observed, Step::Filtered(Filtered::Stale)].map(|step| tell(event, step)));
    }

    pub(super) fn replay(&mut self, key: &Key, uid: Option<Uid>, now: Duration) {
        let slot = self.keys.entry(key.clone()).or_insert_with(KeyState::boxed);
        slot.awaits = None;
        let was = slot.is_dirty();
        let entry = slot.dirty.get_or_insert_with(|| Box::new(DirtyEntry::new(Cause::Read, now)));
        entry.ask();
        if entry.uid.is_none() {
            entry.uid = match &slot.newest {
                Some((known, version)) => {
                    // Of a life that is over a read that lags would show the last state once more: one that asks for no
                    // version is given the newest.
                    if slot.over.as_ref().is_some_and(|over| over.uid == *known) {
                        entry.version = *version;
                    } else {
                        entry.shown(*version);
                    }
                    Some(known.clone())
                }
                None => uid,
            };
        }
        self.counts.dirty += u64::from(!was);
        self.schedule(key, now);
    }
}

impl KeyState {
    /// The life whose end it is when a list lacks a name: the one that a read has shown since, before the watch did. Of
    /// the one that the watch had shown before, that read told.
    fn missed(&self, event: &Event) -> Option<Uid> {
        let (uid, version) = self.newest.as_ref()?;
        let listed = event.is_deleted() && event.body().is_none() && event.cause == Cause::Watch;
        let since = *uid != event.uid && self.is_ahead() && *version <= event.version;
        (listed && since).then(|| uid.clone())
    }

    /// What waited for this event goes along with it, where that needs no read: facts of the same life.
    fn joins(&mut self, event: &mut Arc<Event>, counts: &mut LaneCounts) {
        let waits = |entry: &mut Box<DirtyEntry>| self.asked.is_none() && entry.waits_for(event);
        let Some(entry) = self.dirty.take_if(waits) else { return };
        charge(counts, entry.load(), Load::default());
        counts.dirty -= 1;
        self.retry = None;
        entry.join(Arc::make_mut(event));
    }

    /// Whether an event shows a fact that the newest one does not.
    fn hides_fact_of(&self, event: &Event) -> bool {
        let shown = |fact: &Fact| self.shown.as_ref().is_some_and(|shown| shown.is_same(fact));
        event.fact.as_ref().is_some_and(|fact| !shown(fact))
    }

    /// Queues an event that the watch shows.
    fn enqueue(&mut self, event: Arc<Event>, now: Duration, counts: &mut LaneCounts) {
        self.saw(&event);
        self.shown.clone_from(&event.fact);
        counts.queued += 1;
        let held = HeldEvent::new(event, now, false);
        counts.bytes += held.size;
        self.queue.push_back(held);
    }

    fn age(&self, event: &Event) -> Age {
        if event.cause != Cause::Watch || event.version.0 == 0 {
            return Age::New;
        }
        let followed = self.newest.as_ref().is_some_and(|(uid, _)| *uid != event.uid);
        // A store that was restored may show again what was over.
        let restored = event.version.era() > self.watched.era() && !event.is_deleted();
        if self.is_over(&event.uid) && !restored && !(event.is_deleted() && followed) {
            // A list that says once more that a former life is over may say so of the one that a read showed since.
            return Age::Former;
        }
        if event.again && self.over.as_ref().is_some_and(|over| event.version < over.version) {
            return Age::Former;
        }
        match &self.newest {
            // A read showed a later life, and with it the end of this one.
            Some((uid, newest)) if *uid != event.uid && event.version < *newest => Age::Former,
            // A deletion is never a redelivery: whoever knows better finds nothing to report.
            _ if event.is_deleted() => Age::New,
            Some((uid, newest)) if *uid == event.uid && event.version <= *newest => {
                if event.version <= self.watched { Age::Stale } else { Age::Overtaken }
            }
            _ => Age::New,
        }
    }
}

fn has_room(slot: &KeyState, event: &Event, config: &Config, counts: &LaneCounts) -> bool {
    let events = (counts.queued + counts.waiting) as usize;
    let bytes = counts.bytes + event.size() as u64;
    events < config.queue_events
        && slot.queue.len() < config.queue_events_per_key
        && (bytes <= config.queue_bytes || counts.bytes == 0)
}

/// Folds an event into the key's dirty entry; it leaves as coalesced.
pub(super) fn fold(
    slot: &mut KeyState,
    event: &Event,
    since: Duration,
    config: &Config,
    counts: &mut LaneCounts,
) {
    counts.coalesced += 1;
    counts.dirty += u64::from(!slot.is_dirty());
    let entry = slot.dirty.get_or_insert_with(|| Box::new(DirtyEntry::new(Cause::Read, since)));
    entry.since = entry.since.min(since);
    let before = entry.load();
    let spare = config.summary_bytes.saturating_sub(counts.summary_bytes);
    counts.summaries_dropped += entry.note(event, slot.shown.as_ref(), spare);
    if let Some((uid, newest)) = &slot.newest
        && *uid == event.uid
    {
        // A read may have been ahead of the event: what is read next must not fall behind it.
        entry.shown(*newest);
    }
    charge(counts, before, entry.load());
}

/// Replaces one load by another in the lane's sums.
pub(super) fn charge(counts: &mut LaneCounts, before: Load, after: Load) {
    counts.summaries = counts.summaries + after.facts - before.facts;
    counts.summary_bytes = counts.summary_bytes + after.bytes - before.bytes;
}
