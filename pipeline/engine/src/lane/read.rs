//! What reading a dirty key brings.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Event, Key, Step, Timestamp, Trace, Uid};

use super::dirty_entry::{DirtyEntry, Gone, Load};
use super::input::{Action, Blame, ReadResult};
use super::key_state::{Awaited, HeldEvent, Over, State};
use super::take::charge;
use super::{Lane, tell};

impl Lane {
    pub(super) fn read(
        &mut self,
        key: &Key,
        result: ReadResult,
        seed: u64,
        now: Duration,
        out: &mut Vec<Action>,
    ) {
        let Some(slot) = self.keys.get_mut(key).filter(|slot| slot.state == State::Reading) else { return };
        slot.state = State::Idle;
        let probe = std::mem::take(&mut slot.probe);
        let awaits = slot.awaits.take();
        self.counts.reading -= 1;
        match result {
            ReadResult::Found(event) => self.found(key, event, probe, now, out),
            ReadResult::Gone { uid, observed } => self.gone(key, uid, observed, probe, now, out),
            ReadResult::Failed { reason, after } => {
                let wait = self.config.backoff.wait(slot.failures() + 1, after, seed);
                let refused = slot.retry.as_ref().map(|retry| retry.refused.clone()).unwrap_or_default();
                slot.fail(now + wait, Blame::Source, refused);
                // Who cannot be asked shows nothing either.
                slot.awaits = awaits.map(|awaited| Awaited::from(now, awaited.in_doubt));
                self.counts.retried += 1;
                if let Some(mut entry) = slot.asked.take() {
                    out.push(Action::Tell(entry.tell(key, Step::Retried { reason, after: wait })));
                    if let Some(later) = slot.dirty.take() {
                        let before = sum(entry.load(), later.load());
                        self.counts.summaries_dropped += entry.absorb(*later);
                        charge(&mut self.counts, before, entry.load());
                    }
                    slot.dirty = Some(entry);
                }
                self.schedule(key, now);
            }
            ReadResult::Refused { reason, at } => {
                let told = slot.asked.as_ref().map(|entry| entry.tell(key, Step::Parked(reason)));
                out.extend(told.map(Action::Tell));
                self.refuse(key, reason, at);
                self.schedule(key, now);
            }
        }
    }

    fn found(&mut self, key: &Key, event: Arc<Event>, probe: bool, now: Duration, out: &mut Vec<Action>) {
        let Some(slot) = self.keys.get_mut(key) else { return };
        let Some(asked) = slot.asked.take() else { return };
        let since = asked.since;
        let later = slot.dirty.take();
        let before = sum(asked.load(), later.as_deref().map(DirtyEntry::load).unwrap_or_default());
        let mut event = Arc::unwrap_or_clone(event);
        let (deletions, rest) = asked.found(later, &mut event);
        charge(&mut self.counts, before, rest.as_deref().map(DirtyEntry::load).unwrap_or_default());
        slot.dirty = rest;
        self.counts.dirty -= u64::from(slot.dirty.is_none());
        slot.carry(&event);
        slot.saw(&event);
        slot.shown.clone_from(&event.fact);
        self.run(key, deletions.into_iter().chain([event]), since, probe, now, out);
    }

    fn gone(
        &mut self,
        key: &Key,
        uid: Option<Uid>,
        observed: Timestamp,
        probe: bool,
        now: Duration,
        out: &mut Vec<Action>,
    ) {
        let Some(slot) = self.keys.get_mut(key) else { return };
        let Some(asked) = slot.asked.take() else { return };
        let (since, last) = (asked.since, asked.version);
        let later = slot.dirty.take();
        let before = sum(asked.load(), later.as_deref().map(DirtyEntry::load).unwrap_or_default());
        let Gone { deletions, rest, ahead } = asked.gone(key, later, uid, observed);
        charge(&mut self.counts, before, rest.as_deref().map(DirtyEntry::load).unwrap_or_default());
        slot.dirty = rest;
        self.counts.dirty -= u64::from(slot.dirty.is_none());
        slot.watched = slot.newest.as_ref().map_or(last, |(_, version)| *version);
        slot.shown = None;
        if let Some(uid) = ahead {
            slot.over = Some(Over { uid, version: last, until: None });
        }
        if deletions.is_empty() {
            // Nobody ever heard of it: there is nothing to refuse any more.
            self.parked.remove(key);
        }
        self.run(key, deletions.into_iter(), since, probe, now, out);
    }

    /// Queues what was read, and begins with it at once: its place was the read's.
    fn run(
        &mut self,
        key: &Key,
        events: impl Iterator<Item = Event>,
        since: Duration,
        probe: bool,
        now: Duration,
        out: &mut Vec<Action>,
    ) {
        let Some(slot) = self.keys.get_mut(key) else { return };
        for event in events {
            self.counts.observed += 1;
            self.counts.queued += 1;
            out.push(tell(&event, Step::Observed));
            let held = HeldEvent::new(Arc::new(event), since, true);
            self.counts.bytes += held.size;
            slot.queue.push_back(held);
        }
        if slot.queue.is_empty() {
            slot.retry = None;
        } else if !self.stopped && (probe || !self.counts.paused) {
            self.begin(key, probe, now, out);
            return;
        }
        self.schedule(key, now);
    }
}

impl DirtyEntry {
    pub(super) fn tell(&self, key: &Key, step: Step) -> Trace {
        Trace { key: key.clone(), version: self.version, trace: self.trace, step }
    }
}

fn sum(a: Load, b: Load) -> Load {
    Load { facts: a.facts + b.facts, bytes: a.bytes + b.bytes }
}
