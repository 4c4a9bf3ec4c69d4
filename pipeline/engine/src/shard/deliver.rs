//! What the bus delivers to a shard, and what it is answered.

use std::sync::Arc;

use pipeline_core::{Key, Report, Timestamp};
use tokio::sync::mpsc::error::TrySendError;

use super::{Acknowledged, BATCH, BusAnswer, Delivered, Shard, Shared, Taken};
use crate::lane::Input;
use pipeline_bus::jetstream::Acker;

impl Shard {
    /// Takes a delivery in, and those that are there.
    pub(super) fn deliver(&mut self, delivered: Delivered) {
        self.delivered(delivered);
        for _ in 1..BATCH {
            let Ok(delivered) = self.ports.deliveries.try_recv() else { break };
            self.delivered(delivered);
        }
    }

    fn delivered(&mut self, Delivered { what, acker }: Delivered) {
        let now = self.shared.now();
        let (Taken::Event(event) | Taken::Again(event)) = &what;
        // The bus may bring a state, or a life, behind a newer one: a watch that was cut off publishes late.
        let older = self.shared.ledger.get(&event.key).is_some_and(|known| event.version < known.version);
        self.shared.source.delivered(event);
        self.receipts.hold(event.key.clone(), event.uid.clone(), event.version, acker, now);
        match what {
            Taken::Event(event) if !older => self.step(Input::Event(Arc::from(event))),
            Taken::Event(event) | Taken::Again(event) => self.step(Input::Again(Arc::from(event))),
        }
    }

    /// Something happened to `key`: when nothing is left to do for it, its messages are answered.
    pub(super) fn rests(&mut self, key: &Key) {
        if !self.receipts.holds(key) {
            return;
        }
        let standing = self.lane.standing(key, self.shared.now());
        // What is owed is known from the ledger.
        let busy = standing.is_some_and(|it| it.state != "idle" || it.events > 0 || it.dirty);
        if !busy {
            let done = self.receipts.rests(key);
            self.answer(done);
        }
    }

    /// These messages are done with.
    pub(super) fn answer(&self, done: Vec<Arc<Acker>>) {
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
