//! An attempt, as a machine that goes from one await to the next. Its effects come in the order of the real one: the
//! ledger notes that a report is about to be sent, the report is sent, the circuit judges the answer, the ledger moves,
//! the delivery goes on. At every await the process may end, and the attempt may panic.

use std::time::Duration;

use fastrand::Rng;
use pipeline_core::{Enriched, Event, Filtered, Key, Reason, Record, Shipment, Timestamp};

use super::books::Books;
use super::check::Check;
use super::enrich::{Facts, enrich};
use super::receiver::Receiver;
use super::show;
use crate::circuit::{Circuit, SinkResponse, Verdict};
use crate::lane::{Blame, Outcome, Start};
use crate::shard::attempt::{is_stale, is_told};
use crate::shard::delivery::{Delivery, End};

/// Everything that an attempt touches.
pub(super) struct Around<'a> {
    pub(super) books: &'a mut Books,
    pub(super) circuit: &'a mut Circuit,
    pub(super) receiver: &'a mut Receiver,
    pub(super) check: &'a mut Check,
    pub(super) rng: &'a mut Rng,
    pub(super) now: Duration,
    /// Of a hundred tries to fetch something, so many fail in some way.
    pub(super) failing: u8,
    /// Reports of one object that may be on their way at a time.
    pub(super) reports: usize,
    /// Broken on purpose: the ledger moves before the answer is there.
    pub(super) marks_before_ack: bool,
    /// The watch goes on where a former process ended: see [`Facts::stubs`].
    pub(super) goes_on: bool,
}

/// One attempt under way.
pub(super) struct SimulatedAttempt {
    pub(super) number: u64,
    pub(super) start: Start,
    pub(super) probe: Option<u64>,
    stage: Stage,
}

enum Stage {
    Begun,
    /// Calls are out, for what was known when they were made.
    Fetching(Option<Record>),
    Sending(Box<Sending>),
    Over(Outcome),
}

struct Sending {
    delivery: Delivery,
    state: Option<bytes::Bytes>,
    flying: Vec<Flight>,
}

/// A report on its way.
struct Flight {
    shipment: Shipment,
    counter: u64,
    leg: Leg,
}

#[derive(Debug)]
enum Leg {
    /// Nothing was done yet.
    Packed,
    /// The ledger knows that it is about to be sent.
    Noted,
    /// The answer is there, and nobody has looked at it.
    Answered(SinkResponse),
}

impl std::fmt::Display for SimulatedAttempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "attempt {} of {} at {}", self.number, self.key(), self.event().version.0)?;
        match &self.stage {
            Stage::Begun => write!(f, " begun"),
            Stage::Fetching(_) => write!(f, " fetches for {}", show::event(self.event())),
            Stage::Over(outcome) => write!(f, " came to {}", show::outcome(outcome)),
            Stage::Sending(sending) => {
                sending.flying.iter().try_for_each(|Flight { shipment, counter, leg }| {
                    let key: String = shipment.idempotency_key.chars().take(4).collect();
                    write!(f, ", {leg:?} {key} #{counter} {}", show::report(&shipment.report))
                })
            }
        }
    }
}

impl SimulatedAttempt {
    pub(super) fn new(number: u64, start: Start, probe: Option<u64>) -> Self {
        Self { number, start, probe, stage: Stage::Begun }
    }

    pub(super) fn key(&self) -> &Key {
        &self.start.event.key
    }

    fn event(&self) -> &Event {
        &self.start.event
    }

    /// The outcome, once it is over.
    pub(super) fn outcome(&self) -> Option<&Outcome> {
        match &self.stage {
            Stage::Over(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// The attempt panics here: what is on its way may still arrive, and nobody hears the answer.
    pub(super) fn panics(&mut self, around: &mut Around<'_>) -> Result<(), String> {
        self.abandoned(around)?;
        let refused = self.start.refused.clone();
        let (reason, after, blame) = (Reason::Malformed, None, Blame::Enrich);
        self.stage = Stage::Over(Outcome::Retry { reason, after, blame, refused, told: Vec::new() });
        Ok(())
    }

    /// Nobody waits for the answers any more; what is on its way may still arrive.
    pub(super) fn abandoned(&mut self, around: &mut Around<'_>) -> Result<(), String> {
        let Stage::Sending(sending) = &mut self.stage else { return Ok(()) };
        for flight in &sending.flying {
            if matches!(flight.leg, Leg::Noted) && around.rng.bool() {
                let sent = (&flight.shipment, flight.counter, self.number);
                let (came, _) = around.receiver.handle(sent.0, sent.1, sent.2, around.rng);
                around.check.came(around.receiver, sent.0, &came)?;
            }
        }
        Ok(())
    }

    /// Goes on to the next await.
    pub(super) fn advance(&mut self, around: &mut Around<'_>) -> Result<(), String> {
        let stage = std::mem::replace(&mut self.stage, Stage::Begun);
        self.stage = match stage {
            Stage::Begun => {
                let known = around.books.get(self.key());
                let event = self.event();
                if is_told(event, known.as_ref(), &around.books.ledger) || is_stale(event, known.as_ref()) {
                    Stage::Over(Outcome::Filtered { why: Filtered::Stale, refetch: None, settled: false })
                } else {
                    Stage::Fetching(known)
                }
            }
            Stage::Fetching(known) => self.fetched(known, around),
            Stage::Sending(sending) => self.sent(sending, around)?,
            over @ Stage::Over(_) => over,
        };
        Ok(())
    }

    fn fetched(&self, known: Option<Record>, around: &mut Around<'_>) -> Stage {
        let fails = around.rng.u8(..100) < around.failing;
        if fails && around.rng.bool() {
            let (reason, after, blame) = (Reason::Timeout, None, Blame::Enrich);
            let refused = self.start.refused.clone();
            return Stage::Over(Outcome::Retry { reason, after, blame, refused, told: Vec::new() });
        }
        let facts = if fails { Facts::draw(around.rng) } else { Facts::ALL };
        let facts = Facts { stubs: !around.goes_on, ..facts };
        let untold = around.books.ledger.without_reported(self.event(), known.as_ref());
        let event = untold.as_ref().unwrap_or_else(|| self.event());
        let enriched: Enriched = enrich(event, known.as_ref(), &facts);
        let state = enriched.settle.as_ref().map(|settle| settle.state.clone());
        let delivery =
            Delivery::new(enriched, known, &self.start.refused, around.reports, Timestamp::UNIX_EPOCH)
                .of_watched(self.start.watched);
        self.fill(Box::new(Sending { delivery, state, flying: Vec::new() }), around)
    }

    /// Sends what may be sent now; when nothing is on its way then, the attempt is over.
    fn fill(&self, mut sending: Box<Sending>, around: &mut Around<'_>) -> Stage {
        while let Some((report, counter)) = sending.delivery.next() {
            if let Err(reason) = around.circuit.may_send(self.probe) {
                sending.delivery.halt(reason);
                break;
            }
            let shipment =
                Shipment::new(report, around.books.ledger.id(), around.books.ledger.sink(), counter);
            sending.flying.push(Flight { shipment, counter, leg: Leg::Packed });
        }
        if !sending.flying.is_empty() {
            return Stage::Sending(sending);
        }
        let End { settle, outcome } = sending.delivery.end();
        if let Some(settle) = settle {
            around.books.checkpoint(self.key(), &settle, &self.event().coalesced);
        }
        Stage::Over(outcome)
    }

    fn sent(&self, mut sending: Box<Sending>, around: &mut Around<'_>) -> Result<Stage, String> {
        let at = around.rng.usize(..sending.flying.len());
        let flight = &mut sending.flying[at];
        let Flight { shipment, counter, leg } = flight;
        match leg {
            Leg::Packed => {
                around.check.sending(around.books, &shipment.report);
                around.books.sending(self.key(), &shipment.report, sending.state.as_ref());
                *leg = Leg::Noted;
            }
            Leg::Noted => {
                if around.marks_before_ack {
                    self.acknowledge(shipment, around);
                }
                let (came, answer) = around.receiver.handle(shipment, *counter, self.number, around.rng);
                around.check.came(around.receiver, shipment, &came)?;
                *leg = Leg::Answered(answer);
            }
            Leg::Answered(answer) => {
                let answer = *answer;
                let seed = around.rng.u64(..);
                let verdict = around.circuit.answer(self.key(), answer, self.probe, around.now, seed);
                let Flight { shipment, .. } = sending.flying.swap_remove(at);
                if verdict == Verdict::Acked && !around.marks_before_ack {
                    self.acknowledge(&shipment, around);
                }
                sending.delivery.settled(&shipment.report, verdict);
                return Ok(self.fill(sending, around));
            }
        }
        Ok(Stage::Sending(sending))
    }

    fn acknowledge(&self, shipment: &Shipment, around: &mut Around<'_>) {
        around.books.acknowledge(self.key(), &shipment.report);
        if let Some(taken) = around.receiver.of_key(&shipment.idempotency_key) {
            taken.acked = true;
        }
    }
}
