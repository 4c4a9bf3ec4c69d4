//! One turn: from an event to acknowledged reports, and one read of a dirty key.

use std::slice;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use pipeline_core::{
    Cause, Enrich, Event, Filtered, Key, Reason, Record, Report, Shipment, Sink, Source, StageError,
    Timestamp, Turn, Version,
};

use super::Shared;
use super::round::{End, Round};
use crate::circuit::{Answer, Verdict};
use crate::lane::{Blame, Outcome, ReadResult, Refused, Start, Step, Trace};
use crate::metrics::ReportResult;

/// Runs one turn to its end.
pub(super) async fn turn<So: Source, En: Enrich, Si: Sink>(
    shared: &Shared<So, En, Si>,
    shard: u32,
    start: &Start,
    probe: Option<u64>,
) -> Outcome {
    let event = &*start.event;
    let known = shared.ledger.get(&event.key);
    if is_stale(event, known.as_ref()) {
        return Outcome::Filtered { why: Filtered::Stale, owed: None };
    }
    let turn = Turn { trying_for: start.trying_for, ..Turn::at(Timestamp::now()) };
    let enriched = match shared.enrich.enrich(event, known.as_ref(), &turn).await {
        Ok(enriched) => enriched,
        Err(error) => return not_enriched(event, &error, &start.refused),
    };
    let mut round = Round::new(enriched, known, &start.refused, shared.reports_per_key, turn.now);
    let mut flying = FuturesUnordered::new();
    loop {
        while let Some((report, counter)) = round.next() {
            if let Err(reason) = shared.breaker.may_send(probe) {
                round.halt(reason);
                break;
            }
            flying.push(ship(shared, Shipment::new(report, shared.ledger.id(), shared.sink.name(), counter)));
        }
        let Some((report, answer)) = flying.next().await else { break };
        let (answer, reason, after) = answer;
        let verdict = shared.breaker.answer(&event.key, answer, probe, shared.now());
        note(shared, shard, event, &report, verdict);
        if verdict == Verdict::Acked {
            shared.ledger.update(&event.key, |record| Record::acknowledge(record, &report));
        }
        round.settled(&report, verdict, reason, after);
    }
    let End { settle, outcome } = round.end();
    if let Some(settle) = settle {
        shared.ledger.update(&event.key, |record| Some(Record::settle(record, &settle)));
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

/// Sends one report. The sink answers once for each; one that does not is taken to have failed.
async fn ship<So, En, Si: Sink>(
    shared: &Shared<So, En, Si>,
    shipment: Shipment,
) -> (Report, (Answer, Reason, Option<Duration>)) {
    let answer = shared.sink.ship(slice::from_ref(&shipment)).await.pop();
    let report = shipment.report;
    let told = match answer {
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
    (report, told)
}

fn note<So, En, Si>(
    shared: &Shared<So, En, Si>,
    shard: u32,
    event: &Event,
    report: &Report,
    verdict: Verdict,
) {
    let result = match verdict {
        Verdict::Acked => ReportResult::Acknowledged,
        Verdict::Retry => ReportResult::Retried,
        Verdict::Reject => ReportResult::Rejected,
    };
    shared.metrics.report(report.kind, result);
    if verdict == Verdict::Acked {
        shared.tell(
            shard,
            Trace {
                key: event.key.clone(),
                version: event.version,
                trace: event.trace,
                step: Step::Reported { kind: report.kind, took: Duration::ZERO },
            },
        );
    }
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

/// Whether a watch only repeats what is acknowledged: a state that was acknowledged as a whole and of which
/// nothing is owed, or the end of a life before the acknowledged one.
fn is_stale(event: &Event, known: Option<&Record>) -> bool {
    let Some(known) = known.filter(|_| event.cause == Cause::Watch && event.version.0 != 0) else {
        return false;
    };
    if event.is_deleted() {
        return known.uid != event.uid && event.version < known.version;
    }
    known.uid == event.uid && event.version <= known.version && known.sections.is_some() && !known.is_owed()
}
