//! What the bus delivers to a shard, and what it is answered.

use std::sync::Arc;

use bytes::Bytes;
use pipeline_core::{Cause, Change, Event, Key, Record, Report, Timestamp};
use tokio::sync::mpsc::error::TrySendError;

use super::{AckedReport, BATCH, BusAnswer, Shard, Shared, input};
use crate::lane::Input;
use pipeline_bus::{Acker, DecodeError, Delivered, Message};
use pipeline_observe::metrics::Unreadable;

impl Shard {
    /// Takes a delivery in, and those that are there.
    pub(super) fn consume(&mut self, delivered: Delivered) {
        self.take(delivered);
        for _ in 1..BATCH {
            let Ok(delivered) = self.ports.deliveries.try_recv() else { break };
            self.take(delivered);
        }
    }

    /// Takes in what nobody would deliver again.
    pub(super) fn consume_last(&mut self) {
        while let Ok(delivered) = self.ports.deliveries.try_recv() {
            if matches!(delivered, Delivered::Message { acker: None, .. }) {
                self.take(delivered);
            }
        }
    }

    fn take(&mut self, delivered: Delivered) {
        let (message, again, acker) = match delivered {
            Delivered::Message { message, again, acker } => (message, again, acker),
            Delivered::Unreadable { sequence, why } => return self.unreadable(sequence, why),
        };
        if acker.is_some() {
            self.shared.metrics.bus().delivered();
        }
        let event = Arc::new(event(*message));
        // What is on its way is brought up to date by what follows it, whether or not that is the route's.
        let held = || self.lane.standing(&event.key, self.shared.now()).is_some();
        if !self.shared.takes(&event) && !held() {
            self.shared.running.skip(self.number);
            if let Some(unreported) = &self.shared.unreported {
                unreported.unmatched(&event);
            }
            return self.answer(acker.into_iter().collect());
        }
        let Some(acker) = acker else {
            return self.step(if event.again {
                let (ledger, key) = (&self.shared.ledger, event.key.clone());
                input(event, ledger.get(&key).as_ref(), ledger.done_before(key.kind()))
            } else {
                Input::Event(event)
            });
        };
        let now = self.shared.now();
        let known = self.shared.ledger.get(&event.key);
        self.shared.source.delivered(&event);
        self.receipts.hold(&event, acker, now);
        self.step(of_bus(event, known.as_ref(), again));
    }

    fn unreadable(&self, sequence: u64, why: DecodeError) {
        let metrics = self.shared.metrics.bus();
        let reason = match why {
            DecodeError::Newer { .. } => Unreadable::Newer,
            DecodeError::Garbage(_) => Unreadable::Garbage,
        };
        if metrics.unreadable(reason) {
            tracing::warn!(
                sequence, %why,
                "a message of the bus cannot be read: it is kept aside, as are those to come"
            );
        }
    }

    /// Something happened to `key`: when nothing is left to do for it, its messages are answered.
    pub(super) fn rests(&mut self, key: &Key) {
        if !self.receipts.holds(key) {
            return;
        }
        let standing = self.lane.standing(key, self.shared.now());
        // What is incomplete is known from the ledger.
        if standing.is_none_or(|standing| !standing.is_busy()) {
            let done = self.receipts.rests(key);
            self.answer(done);
        }
    }

    /// These messages are done with.
    pub(super) fn answer(&self, done: Vec<Arc<dyn Acker>>) {
        if let Some(answers) = self.ports.answers.as_ref().filter(|_| !done.is_empty()) {
            // Where nobody answers any more, they are delivered again.
            let _ = answers.to.send(BusAnswer::Done(self.number, done));
        }
    }

    /// Tells the bus, when it is time, that what is held is worked on.
    pub(super) fn worked_on(&mut self) {
        let busy = self.receipts.busy(self.shared.now());
        if let Some(answers) = self.ports.answers.as_ref().filter(|_| !busy.is_empty()) {
            let _ = answers.to.send(BusAnswer::Busy(busy));
        }
    }
}

impl Shared {
    /// Hands a report that was acknowledged to whoever publishes it. That is for other readers of the bus: nobody waits
    /// for it here, and what finds no room is counted.
    pub(super) fn acknowledged(&self, report: &Report) {
        let Some(results) = &self.results else { return };
        let acknowledged = AckedReport { report: report.clone(), at: Timestamp::now() };
        if let Err(TrySendError::Full(_)) = results.try_send(acknowledged) {
            self.metrics.bus().result_dropped();
        }
    }
}

/// What a lane is given of an event that the bus delivered, where the ledger knows `known` of the object: it is read again where it
/// may be older than what was reported since. The bus may bring a state, or an incarnation, behind a newer one: a watch that
/// was cut off publishes late. And facts that the bus did not take in their time come with a state which may have come before.
fn of_bus(event: Arc<Event>, known: Option<&Record>, again: bool) -> Input {
    let older = known.is_some_and(|known| event.version < known.version);
    let brings_facts = !event.is_deleted() && !event.coalesced.is_empty();
    if again || older || brings_facts { Input::Redelivered(event) } else { Input::Event(event) }
}

/// The event of a message; one without its body where that was too large for the bus.
fn event(message: Message) -> Event {
    message.into_event().unwrap_or_else(|message| {
        let Message { key, uid, version, observed, trace, fact, coalesced, labels, again, .. } = *message;
        let change = Change::Applied { body: Bytes::new() };
        let cause = Cause::Watch;
        Event { key, uid, version, change, labels, cause, again, observed, fact, coalesced, trace }
    })
}

#[cfg(test)]
mod tests {
    use pipeline_core::{Digest, Fact, Version};

    use super::*;

    #[test]
    fn what_may_be_older_than_what_was_reported_and_what_brings_facts_of_earlier_states_is_read_again() {
        let event = |version: u64| {
            let (key, change) = (Key::new("ns", "shop").unwrap(), Change::Applied { body: Bytes::new() });
            Event::watched(key, "u".into(), Version(version), change, Timestamp::UNIX_EPOCH)
        };
        let known = Record { version: Version(10), ..Record::new("u".into()) };
        let is_read =
            |event: Event, again| matches!(of_bus(event.into(), Some(&known), again), Input::Redelivered(_));
        assert!(!is_read(event(10), false) && !is_read(event(11), false));
        assert!(is_read(event(9), false) && is_read(event(11), true));
        let coalesced = vec![Fact { id: Digest(8), body: Bytes::new() }];
        let late = Event { coalesced, ..event(10) };
        assert!(is_read(late.clone(), false), "its state was reported without the fact");
        // An end is told whether its state is known or not.
        assert!(!is_read(Event { change: Change::Deleted { body: None }, ..late }, false));
    }
}
