//! Attempts: how they begin, and what their ends do.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{
    Cause, Change, Digest, Fact, Filtered, Folded, Key, LaneCounts, Reason, Refused, Step, Timestamp,
};

use super::input::{Action, Blame, Outcome, Start};
use super::key_state::{HeldEvent, KeyState, Retry, State};
use super::refetch_times::RefetchTimes;
use super::take::{charge, fold};
use super::{Lane, tell};

impl Lane {
    /// Begins the attempt or the read of a key that was in line. `false` when the rate limit delays it.
    pub(super) fn begin(&mut self, key: &Key, probe: bool, now: Duration, out: &mut Vec<Action>) -> bool {
        let Some(slot) = self.keys.get(key) else { return false };
        let paid = slot.retry.is_some() || slot.queue.front().is_some_and(|head| head.paid);
        if !paid && let Some(wait) = self.limit(key, now) {
            self.delay(key, wait, now, out);
            return false;
        }
        let Some(slot) = self.keys.get_mut(key) else { return false };
        slot.probe = probe;
        slot.begun = now;
        if let Some(held) = slot.queue.pop_front() {
            self.counts.queued -= 1;
            self.counts.in_flight += 1;
            slot.state = State::Running;
            let retry = slot.retry.as_deref();
            let start = Start {
                event: held.event.clone(),
                watched: slot.watched_up_to(&held.event),
                attempt: retry.map_or(0, |retry| retry.failures),
                trying_for: retry.map_or(Duration::ZERO, |retry| now.saturating_sub(retry.first)),
                refused: retry.map(|retry| retry.refused.clone()).unwrap_or_default(),
                probe,
            };
            out.push(tell(&held.event, Step::Started { attempt: start.attempt }));
            out.push(Action::Start(start));
            slot.running = Some(held);
        } else if let Some(entry) = slot.dirty.take() {
            self.counts.reading += 1;
            self.counts.reads += 1;
            slot.state = State::Reading;
            out.push(Action::Tell(entry.tell(key, Step::Reading)));
            out.push(Action::Read { key: key.clone(), not_older_than: entry.floor, probe });
            slot.asked = Some(entry);
        }
        true
    }

    fn limit(&mut self, key: &Key, now: Duration) -> Option<Duration> {
        let limiter = self.limiters.of(key)?;
        let wait = limiter.take(key, now).err()?;
        if limiter.learning() {
            self.counts.limited_learning += 1;
            return None;
        }
        self.counts.limited += 1;
        Some(wait)
    }

    /// Delays a key; what stands behind its head is folded, since only the newest state will be of use.
    fn delay(&mut self, key: &Key, wait: Duration, now: Duration, out: &mut Vec<Action>) {
        let Some(slot) = self.keys.get_mut(key) else { return };
        slot.limited = Some(now + wait);
        slot.state = State::Idle;
        match slot.queue.front_mut() {
            Some(head) => {
                head.paid = false;
                slot.shown.clone_from(&head.event.fact);
                out.push(tell(&head.event, Step::Limited(wait)));
            }
            None => {
                out.extend(
                    slot.dirty.as_ref().map(|entry| Action::Tell(entry.tell(key, Step::Limited(wait)))),
                );
            }
        }
        for held in slot.queue.drain(1.min(slot.queue.len())..).collect::<Vec<_>>() {
            self.counts.queued -= 1;
            self.counts.bytes -= held.size;
            fold(slot, &held.event, held.since, &self.config, &mut self.counts);
            out.push(tell(&held.event, Step::Coalesced(Folded::Limited)));
        }
        self.schedule(key, now);
    }

    pub(super) fn attempted(
        &mut self,
        key: &Key,
        outcome: Outcome,
        seed: u64,
        now: Duration,
        out: &mut Vec<Action>,
    ) {
        #[cfg(test)]
        let outcome = self.heard(outcome);
        let Some(slot) = self.keys.get_mut(key) else { return };
        let Some(held) = slot.running.take() else { return };
        slot.state = State::Idle;
        slot.probe = false;
        self.counts.in_flight -= 1;
        let backoff = (self.config.refetch, seed);
        let mut looked_at_in = None;
        let step = match outcome {
            Outcome::Acked { refetch } => {
                self.counts.acked += 1;
                looked_at_in =
                    note_refetch(slot, &mut self.counts, now, |slot| slot.brought(refetch, now, backoff.0));
                self.parked.remove(key);
                Step::Acked { after: now.saturating_sub(held.since) }
            }
            Outcome::Filtered { why, refetch, settled } => {
                self.counts.filtered += 1;
                if settled || refetch.is_some() {
                    let was_refetch = held.event.cause == Cause::Refetch;
                    let vain =
                        |slot: &mut RefetchTimes| slot.brought_nothing(refetch, was_refetch, now, backoff);
                    looked_at_in = note_refetch(slot, &mut self.counts, now, vain);
                }
                if why != Filtered::Stale {
                    self.parked.remove(key);
                }
                Step::Filtered(why)
            }
            Outcome::Reject { reason, refused, at } => {
                self.park(key, Some(&held.event), (reason, at), refused);
                Step::Parked(reason)
            }
            Outcome::Retry { reason, after, blame, refused, told } => {
                let wait = self.config.backoff.wait(slot.failures() + 1, after, seed);
                slot.fail(now + wait, blame, refused);
                self.counts.retried += 1;
                out.push(tell(&held.event, Step::Retried { reason, after: wait }));
                let held = self.without(held, &told);
                self.put_back(key, held, now, out);
                return;
            }
        };
        out.push(tell(&held.event, step));
        if let Some(after) = looked_at_in {
            out.push(tell(&held.event, Step::Refetch(after)));
        }
        self.counts.bytes -= held.size;
        if let Some(slot) = self.keys.get_mut(key) {
            slot.retry = None;
        }
        self.schedule(key, now);
    }

    /// The event without facts that were told.
    fn without(&mut self, mut held: HeldEvent, told: &[Digest]) -> HeldEvent {
        if told.is_empty() {
            return held;
        }
        self.counts.bytes -= held.size;
        Arc::make_mut(&mut held.event).coalesced.retain(|fact| !told.contains(&fact.id));
        let held = HeldEvent::new(held.event, held.since, held.paid);
        self.counts.bytes += held.size;
        held
    }

    /// Puts an event that must be retried back at the head of its key, or, when the lane holds too much,
    /// lets its state go: it is shown by the next event, or is read again.
    fn put_back(&mut self, key: &Key, mut held: HeldEvent, now: Duration, out: &mut Vec<Action>) {
        let Some(slot) = self.keys.get_mut(key) else { return };
        held.paid = true;
        let held_events = (self.counts.queued + self.counts.waiting) as usize;
        let full = held_events >= self.config.queue_events || self.counts.bytes > self.config.queue_bytes;
        let heir = slot.queue.front().is_some_and(|next| next.event.uid == held.event.uid);
        if full && held.event.is_deleted() {
            self.counts.bytes -= held.size;
            let event = Arc::make_mut(&mut held.event);
            event.change = Change::Deleted { body: None };
            // The body would have told of it.
            event.coalesced.extend(event.fact.take());
            held = HeldEvent::new(held.event, held.since, true);
            self.counts.bytes += held.size;
        } else if full && (heir || slot.queue.is_empty()) {
            self.counts.bytes -= held.size;
            out.push(tell(&held.event, Step::Coalesced(Folded::Retried)));
            match slot.queue.front_mut() {
                Some(next) => {
                    self.counts.coalesced += 1;
                    self.counts.bytes -= next.size;
                    inherit(next, &held);
                    self.counts.bytes += next.size;
                }
                None => {
                    slot.shown = None;
                    fold(slot, &held.event, held.since, &self.config, &mut self.counts);
                }
            }
            self.schedule(key, now);
            return;
        }
        slot.queue.push_front(held);
        self.counts.queued += 1;
        self.schedule(key, now);
    }

    pub(super) fn refuse(&mut self, key: &Key, reason: Reason, at: Timestamp) {
        let Some(slot) = self.keys.get_mut(key) else { return };
        slot.retry = None;
        if let Some(entry) = slot.asked.take() {
            let load = entry.load();
            charge(&mut self.counts, load, Default::default());
            self.counts.summaries_dropped += load.facts + entry.deletions();
            self.counts.dirty -= u64::from(slot.dirty.is_none());
        }
        self.counts.observed += 1;
        self.park(key, None, (reason, at), Refused::default());
    }
}

impl KeyState {
    pub(super) fn failures(&self) -> u32 {
        self.retry.as_ref().map_or(0, |retry| retry.failures)
    }

    /// Notes a failed try.
    pub(super) fn fail(&mut self, due: Duration, blame: Blame, refused: Refused) {
        let first = self.retry.as_ref().map_or(self.begun, |retry| retry.first);
        let failures = self.failures().saturating_add(1);
        self.retry = Some(Box::new(Retry { failures, first, due, blame, refused }));
    }
}

/// Folds `former` into the event that comes after it in the same life: it leaves as coalesced by `next`.
fn inherit(next: &mut HeldEvent, former: &HeldEvent) {
    let event = Arc::make_mut(&mut next.event);
    let shown = event.fact.clone();
    let known = |fact: &Fact| shown.as_ref().is_some_and(|shown| shown.is_same(fact));
    let mut facts: Vec<_> = former
        .event
        .coalesced
        .iter()
        .chain(&former.event.fact)
        .filter(|fact| !known(fact))
        .cloned()
        .collect();
    facts.append(&mut event.coalesced);
    facts.dedup_by(|a, b| a.is_same(b));
    event.coalesced = facts;
    // It stands for what was not told, too.
    event.again = false;
    *next = HeldEvent::new(next.event.clone(), former.since, true);
}

/// Notes what an attempt brought of what was incomplete. Returns in how long it is looked at again.
fn note_refetch(
    slot: &mut KeyState,
    counts: &mut LaneCounts,
    now: Duration,
    note: impl FnOnce(&mut RefetchTimes),
) -> Option<Duration> {
    let was = slot.refetch.is_some();
    note(&mut slot.refetch);
    counts.incomplete = counts.incomplete + u64::from(slot.refetch.is_some()) - u64::from(was);
    slot.refetch.next().map(|at| at.saturating_sub(now))
}
