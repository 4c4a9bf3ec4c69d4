//! What the bus delivers to a shard, and what it is answered.

use std::sync::Arc;

use bytes::Bytes;
use pipeline_core::{Cause, Change, Event, Key, Report, Timestamp};
use tokio::sync::mpsc::error::TrySendError;

use super::{Acknowledged, BATCH, BusAnswer, Shard, Shared, input};
use crate::lane::Input;
use pipeline_bus::{Acker, DecodeError, Delivered, Message};
use pipeline_observe::metrics::Unreadable;

impl Shard {
    /// Takes a delivery in, and those that are there.
    pub(super) fn deliver(&mut self, delivered: Delivered) {
        self.delivered(delivered);
        for _ in 1..BATCH {
            let Ok(delivered) = self.ports.deliveries.try_recv() else { break };
            self.delivered(delivered);
        }
    }

    /// Takes in what nobody would deliver again.
    pub(super) fn deliver_last(&mut self) {
        while let Ok(delivered) = self.ports.deliveries.try_recv() {
            if matches!(delivered, Delivered::Message { acker: None, .. }) {
                self.delivered(delivered);
            }
        }
    }

    fn delivered(&mut self, delivered: Delivered) {
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
            self.shared.table.skip(self.number);
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
        // The bus may bring a state, or an incarnation, behind a newer one: a watch that was cut off publishes late.
        let older = self.shared.ledger.get(&event.key).is_some_and(|known| event.version < known.version);
        self.shared.source.delivered(&event);
        self.receipts.hold(event.key.clone(), event.uid.clone(), event.version, acker, now);
        self.step(if older || again { Input::Redelivered(event) } else { Input::Event(event) });
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
        let busy = standing.is_some_and(|it| it.state != "idle" || it.events > 0 || it.dirty);
        if !busy {
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
        let acknowledged = Acknowledged { report: report.clone(), at: Timestamp::now() };
        if let Err(TrySendError::Full(_)) = results.try_send(acknowledged) {
            self.metrics.bus().result_dropped();
        }
    }
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
