//! One turn: from an event to acknowledged reports, and one read of a dirty key.

use std::slice;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use pipeline_core::{
    Cause, Enrich, Event, Filtered, Key, Outcome as CallOutcome, Reason, Record, Report, Sample, Shipment,
    Sink, Source, StageError, Stub, Timestamp, Turn, Version,
};
use tokio::time::Instant;

use super::history::Moments;
use super::round::{End, Round};
use super::{Moment, Shared};
use crate::circuit::{Answer, Verdict};
use crate::lane::{Blame, Outcome, ReadResult, Refused, Start, Step, Trace};
use crate::ledger::Ledger;
use crate::metrics::ReportResult;

/// Tells what happens in a turn: at once to whoever listens, and in the end to the shard.
struct Teller<'a, So, En, Si> {
    shared: &'a Shared<So, En, Si>,
    shard: u32,
    event: &'a Event,
    moments: &'a mut Moments,
}

impl<So, En, Si> Teller<'_, So, En, Si> {
    fn tell(&mut self, step: Step) {
        let Event { key, version, trace, .. } = self.event;
        let moment = Moment { at: Timestamp::now(), version: *version, trace: *trace, step };
        self.moments.push(self.shared.now(), moment);
        self.shared.tell(self.shard, || Trace { key: key.clone(), version: *version, trace: *trace, step });
    }

    fn fetched(&mut self, calls: Vec<Sample>) {
        for Sample { call, outcome, took, .. } in calls {
            let (took, failed) = match outcome {
                CallOutcome::Ok => (took, None),
                CallOutcome::Cached => (Duration::ZERO, None),
                CallOutcome::Failed(reason) => (took, Some(reason)),
            };
            self.tell(Step::Fetched { call, took, failed });
        }
    }

    fn answered(&mut self, report: &Report, verdict: Verdict, reason: Reason, took: Duration) {
        let kind = report.kind;
        let (result, step) = match verdict {
            Verdict::Acked => (ReportResult::Acknowledged, Step::Reported { kind, took }),
            Verdict::Retry => (ReportResult::Retried, Step::NotTaken { kind, reason, took }),
            Verdict::Reject => (ReportResult::Rejected, Step::NotTaken { kind, reason, took }),
        };
        self.shared.metrics.report(kind, result);
        self.tell(step);
    }
}

/// Runs one turn to its end; what happens in it goes to `moments` as well.
///
/// Before a report is sent its entity becomes unsure in the ledger, and an acknowledgement makes it sure again. A turn
/// that is dropped in between, and a report that is not taken, leave it unsure. So does one that is refused for good:
/// an earlier try of the same report may have arrived although its answer was lost, and the price is at most one
/// report more when the state returns to what was acknowledged.
pub(super) async fn turn<So: Source, En: Enrich, Si: Sink>(
    shared: &Shared<So, En, Si>,
    shard: u32,
    start: &Start,
    probe: Option<u64>,
    moments: &mut Moments,
) -> Outcome {
    let event = &*start.event;
    let known = shared.ledger.get(&event.key);
    if is_told(event, known.as_ref(), &shared.ledger) || is_stale(event, known.as_ref()) {
        return Outcome::Filtered { why: Filtered::Stale, owed: None };
    }
    let mut teller = Teller { shared, shard, event, moments };
    let turn = Turn { trying_for: start.trying_for, ..Turn::at(Timestamp::now()) };
    let began = Instant::now();
    let enriched = shared.enrich.enrich(event, known.as_ref(), &turn).await;
    teller.fetched(turn.calls.take());
    let enriched = match enriched {
        Ok(enriched) => enriched,
        Err(error) => return not_enriched(event, &error, &start.refused),
    };
    teller.tell(Step::Enriched { reports: enriched.reports.len(), took: began.elapsed() });
    let stub = enriched.settle.as_ref().map(|settle| settle.stub.clone());
    let mut round = Round::new(enriched, known, &start.refused, shared.reports_per_key, turn.now);
    let mut flying = FuturesUnordered::new();
    loop {
        while let Some((report, counter)) = round.next() {
            if let Err(reason) = shared.breaker.may_send(probe) {
                round.halt(reason);
                break;
            }
            let shipment = Shipment::new(report, shared.ledger.id(), shared.ledger.sink(), counter);
            flying.push(ship(shared, &event.key, stub.as_ref(), shipment));
        }
        let Some(Shipped { report, answer, reason, after, took }) = flying.next().await else { break };
        let verdict = shared.breaker.answer(&event.key, answer, probe, shared.now());
        if verdict == Verdict::Acked {
            shared.ledger.acknowledge(&event.key, &report);
        }
        teller.answered(&report, verdict, reason, took);
        round.settled(&report, verdict, reason, after);
    }
    let End { settle, outcome } = round.end();
    if let Some(settle) = settle {
        shared.ledger.settle(&event.key, &settle, &event.coalesced_ends);
    }
    outcome
}

/// Reads one object again.
pub(super) async fn read<So: Source, En: Enrich, Si: Sink>(
    shared: &Shared<So, En, Si>,
    key: &Key,
    not_older_than: Version,
) -> ReadResult {
    match shared.source.read(key, not_older_than).await {
        Ok(Some(event)) => ReadResult::Found(event.into()),
        Ok(None) => {
            let uid = shared.ledger.get(key).map(|record| record.uid);
            ReadResult::Gone { uid, observed: Timestamp::now() }
        }
        Err(error) => {
            let reason = error.reason();
            let cause: &dyn std::error::Error = &error;
            tracing::warn!(%key, reason = reason.as_str(), error = cause, "cannot read an application again");
            match error {
                StageError::Retry { after, .. } => ReadResult::Failed { reason, after },
                // A missing right says nothing about the object.
                StageError::Reject { .. } if matches!(reason, Reason::Unauthorized | Reason::Forbidden) => {
                    ReadResult::Failed { reason, after: None }
                }
                StageError::Reject { .. } => ReadResult::Refused { reason, at: Timestamp::now() },
            }
        }
    }
}

/// A report that was sent.
struct Shipped {
    report: Report,
    answer: Answer,
    /// Why it was not taken, if it was not.
    reason: Reason,
    /// The sink's `Retry-After`.
    after: Option<Duration>,
    /// How long the sink took.
    took: Duration,
}

/// Sends one report. The sink answers once for each; one that does not is taken to have failed.
async fn ship<So, En, Si: Sink>(
    shared: &Shared<So, En, Si>,
    key: &Key,
    stub: Option<&Stub>,
    shipment: Shipment,
) -> Shipped {
    shared.ledger.sending(key, &shipment.report, stub).await;
    let began = Instant::now();
    let answer = shared.sink.ship(slice::from_ref(&shipment)).await.pop();
    let took = began.elapsed();
    let report = shipment.report;
    let (answer, reason, after) = match answer {
        Some(Ok(())) => (Answer::Accepted, Reason::Refused, None),
        Some(Err(error)) => {
            let reason = error.reason();
            let cause: &dyn std::error::Error = &error;
            let kind = report.kind.as_str();
            tracing::debug!(key = %report.key, kind, reason = reason.as_str(), error = cause, "report not taken");
            match error {
                StageError::Retry { after, .. } => (Answer::Failed { reason, after }, reason, after),
                StageError::Reject { .. } => (Answer::Refused { reason }, reason, None),
            }
        }
        None => {
            let reason = Reason::Malformed;
            (Answer::Failed { reason, after: None }, reason, None)
        }
    };
    Shipped { report, answer, reason, after, took }
}

fn not_enriched(event: &Event, error: &StageError, refused: &Refused) -> Outcome {
    let reason = error.reason();
    let cause: &dyn std::error::Error = error;
    let key = &event.key;
    // Said for each event only where people look for the one: whoever calls a peer says once that it is away.
    tracing::debug!(%key, reason = reason.as_str(), error = cause, "cannot enrich an event");
    match error {
        StageError::Retry { after, .. } => {
            Outcome::Retry { reason, after: *after, blame: Blame::Enrich, refused: refused.clone() }
        }
        StageError::Reject { .. } => {
            Outcome::Reject { reason, refused: refused.clone(), at: Timestamp::now() }
        }
    }
}

/// Whether the end of a life was told by this process already, and nothing is known that it ends: neither the same
/// life, which came back, nor another one (a list that lacks a name ends whatever life of it is known).
pub(crate) fn is_told(event: &Event, known: Option<&Record>, ledger: &Ledger) -> bool {
    let ends = |known: &Record| known.uid == event.uid || event.version >= known.version;
    event.is_deleted() && !known.is_some_and(ends) && ledger.has_ended(&event.key, &event.uid)
}

/// Whether a watch only repeats what is acknowledged: a state that was acknowledged as a whole, of which nothing is
/// owed and no report's fate is unknown, or the end of a life before the acknowledged one.
pub(crate) fn is_stale(event: &Event, known: Option<&Record>) -> bool {
    let Some(known) = known.filter(|_| event.cause == Cause::Watch && event.version.0 != 0) else {
        return false;
    };
    if event.is_deleted() {
        return known.uid != event.uid && event.version < known.version;
    }
    known.uid == event.uid
        && event.version <= known.version
        && known.is_settled()
        && !known.is_owed()
        && !known.is_unsure()
}
