//! One attempt: from an event to acknowledged reports, and one read of a dirty key.

use std::slice;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use pipeline_core::{
    Attempt, Cause, Enriched, Event, Filtered, Key, Outcome as CallOutcome, Peer, Reason, Record, Refused,
    Report, Sample, Shipment, StageError, Step, Timestamp, Trace, Version, traced,
};
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

use super::delivery::{Delivery, End};
use super::history::Moments;
use super::{Moment, Shared};
use crate::circuit::{SinkResponse, Verdict};
use crate::lane::{Blame, Outcome, ReadResult, Start};
use pipeline_ledger::Ledger;
use pipeline_observe::metrics::ReportResult;
use pipeline_observe::spans::AttemptSpans;
use pipeline_observe::top::Tally;
use pipeline_ownership::Fence;

/// The most that a stage may remember of one object, in bytes.
const MOST_STATE: usize = 64 << 10;

/// What happened in an attempt, for the shard once it is over.
pub(super) struct AttemptLog {
    pub(super) moments: Moments,
    pub(super) tally: Tally,
    pub(super) spans: Option<Box<AttemptSpans>>,
}

/// Tells what happens in an attempt: at once to whoever listens, and in the end to the shard.
struct Teller<'a> {
    shared: &'a Shared,
    shard: u32,
    event: &'a Event,
    log: &'a mut AttemptLog,
}

impl Teller<'_> {
    /// Enriches the event, and tells what that called and what came of it.
    async fn enrich(&mut self, known: Option<&Record>, attempt: &Attempt) -> Result<Enriched, StageError> {
        let began = Instant::now();
        let header = self.log.spans.as_ref().and_then(|spans| spans.traceparent());
        let enriched = traced(header, self.shared.enrich.enrich(self.event, known, attempt)).await;
        let calls = attempt.calls.take_ended();
        self.enriched(began, &calls, &enriched);
        self.fetched(calls);
        let enriched = enriched.and_then(bounded)?;
        self.tell(Step::Enriched { reports: enriched.reports.len(), took: began.elapsed() });
        Ok(enriched)
    }

    fn tell(&mut self, step: Step) {
        let Event { key, version, trace, .. } = self.event;
        let moment = Moment { at: Timestamp::now(), version: *version, trace: *trace, step };
        self.log.moments.push(self.shared.now(), moment);
        self.shared.tell(self.shard, || Trace { key: key.clone(), version: *version, trace: *trace, step });
    }

    fn fetched(&mut self, calls: Vec<(std::time::Instant, Sample)>) {
        for (_, sample) in calls {
            self.log.tally.call(&sample);
            let Sample { call, outcome, took, .. } = sample;
            let (took, failed) = match outcome {
                CallOutcome::Ok => (took, None),
                CallOutcome::Cached => (Duration::ZERO, None),
                CallOutcome::Failed(reason) => (took, Some(reason)),
            };
            self.tell(Step::Fetched { call, took, failed });
        }
    }

    fn enriched(
        &mut self,
        began: Instant,
        calls: &[(std::time::Instant, Sample)],
        enriched: &Result<Enriched, StageError>,
    ) {
        if let Some(spans) = &mut self.log.spans {
            let reports = enriched.as_ref().map_or(0, |enriched| enriched.reports.len());
            let failed = enriched.as_ref().err().map(StageError::reason);
            spans.enriched(began.into_std(), calls, reports, failed);
        }
    }

    fn answered(&mut self, report: &Report, verdict: Verdict, took: Duration) {
        let kind = report.kind;
        let (result, step) = match verdict {
            Verdict::Acked => (ReportResult::Acknowledged, Step::Reported { kind, took }),
            Verdict::Retry { reason, .. } => (ReportResult::Retried, Step::NotTaken { kind, reason, took }),
            Verdict::Reject { reason } => (ReportResult::Rejected, Step::NotTaken { kind, reason, took }),
        };
        self.shared.metrics.report(kind, result);
        let sink = Peer::new(self.shared.sink.name());
        self.log.tally.report(sink, verdict.reason().map_or(Ok(()), Err));
        self.tell(step);
    }
}

/// Runs one attempt to its end; what happens in it is told as well, step by step and in figures.
///
/// Before a report is sent its entity becomes in doubt in the ledger, and an acknowledgement makes it sure again. An attempt
/// that is dropped in between, and a report that is not taken, leave it in doubt. So does one that is refused for good:
/// an earlier try of the same report may have arrived although its answer was lost, and the price is at most one
/// report more when the state returns to what was acknowledged.
pub(super) async fn attempt(
    shared: &Shared,
    shard: u32,
    fence: Option<&Fence>,
    start: &Start,
    probe: Option<u64>,
    log: &mut AttemptLog,
) -> Outcome {
    let event = &*start.event;
    let known = shared.ledger.get(&event.key);
    if is_told(event, known.as_ref(), &shared.ledger) || is_stale(event, known.as_ref()) {
        return Outcome::Filtered { why: Filtered::Stale, refetch: None, settled: false };
    }
    // What was read again shows what the route takes.
    if !shared.takes(event) {
        return Outcome::Filtered { why: Filtered::Unmatched, refetch: None, settled: true };
    }
    let untold = shared.ledger.without_reported(event, known.as_ref()).map(Box::new);
    let event = untold.as_deref().unwrap_or(event);
    let mut teller = Teller { shared, shard, event, log };
    let attempt = Attempt { trying_for: start.trying_for, ..Attempt::at(Timestamp::now()) };
    let enriched = match teller.enrich(known.as_ref(), &attempt).await {
        Ok(enriched) => enriched,
        Err(error) => return not_enriched(event, &error, &start.refused),
    };
    let state = enriched.settle.as_ref().map(|settle| settle.state.clone());
    let mut delivery = Delivery::new(enriched, known, &start.refused, shared.reports_per_key, attempt.now)
        .of_watched(start.watched);
    let mut flying = FuturesUnordered::new();
    loop {
        while let Some((report, counter)) = delivery.next() {
            if let Err(reason) = shared.breaker.may_send(probe) {
                delivery.halt(reason);
                break;
            }
            let ledger = shared.ledger.id_of(&event.key);
            let shipment = Shipment::new(report, &ledger, shared.ledger.sink(), counter);
            let shipment = shipment.with_epoch(fence.map(Fence::epoch));
            flying.push(ship(shared, fence, probe, state.as_ref(), shipment));
        }
        let Some(shipped) = flying.next().await else { break };
        // An answer frees its place when the circuit has heard it: whoever gets it then sees what the answer did.
        let Shipped { report, answer, sent, took, place: _place } = match shipped {
            Ok(shipped) => shipped,
            Err(Unsent(report, reason)) => {
                // Nothing was sent, and so nothing is said of the sink.
                delivery.settled(&report, Verdict::Retry { reason, after: None });
                delivery.halt(reason);
                continue;
            }
        };
        let verdict = shared.breaker.answer(&event.key, answer, probe, shared.now());
        if verdict == Verdict::Acked {
            shared.ledger.acknowledge(&event.key, &report);
            shared.acknowledged(&report);
        }
        teller.answered(&report, verdict, took);
        if let Some((spans, (began, id))) = teller.log.spans.as_mut().zip(sent) {
            spans.reported((began, took), report.kind, id, verdict.reason());
        }
        delivery.settled(&report, verdict);
    }
    let End { settle, outcome } = delivery.end();
    if let Some(settle) = settle {
        shared.ledger.checkpoint(&event.key, &settle, &start.event.coalesced);
    }
    outcome
}

/// Reads one object again.
pub(super) async fn read(shared: &Shared, key: &Key, not_older_than: Version) -> ReadResult {
    match shared.source.read(key, not_older_than).await {
        Ok(Some(event)) => ReadResult::Found(event.into()),
        Ok(None) => {
            let uid = shared.ledger.get(key).map(|record| record.uid);
            ReadResult::Gone { uid, observed: Timestamp::now() }
        }
        Err(error) => {
            let reason = error.reason();
            let cause: &dyn std::error::Error = &error;
            tracing::warn!(%key, reason = reason.as_str(), error = cause, "cannot read an object again");
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
struct Shipped<'a> {
    report: Report,
    answer: SinkResponse,
    /// When it was sent, and as which span.
    sent: Option<(std::time::Instant, u64)>,
    /// How long the sink took.
    took: Duration,
    /// Its place among the reports under way.
    place: Option<SemaphorePermit<'a>>,
}

/// A report that was not sent, and why: another process may own the shard by the time of the answer, or the circuit
/// has opened.
struct Unsent(Report, Reason);

/// Sends one report, when there is a place for it. The sink answers once for each; one that does not is taken to have
/// failed.
async fn ship<'a>(
    shared: &'a Shared,
    fence: Option<&Fence>,
    probe: Option<u64>,
    state: Option<&bytes::Bytes>,
    shipment: Shipment,
) -> Result<Shipped<'a>, Unsent> {
    let may_send = || fence.is_none_or(Fence::may_send);
    let report = &shipment.report;
    if !may_send() || !shared.ledger.sending(&report.key, report, state).await {
        return Err(Unsent(shipment.report, Reason::Stopping));
    }
    // Never closed; if it were, the bound alone would be lost.
    let place = shared.places.acquire().await.ok();
    // To write the note, and to get the place, may have taken long.
    if !may_send() {
        return Err(Unsent(shipment.report, Reason::Stopping));
    }
    if let Err(reason) = shared.breaker.may_send(probe) {
        return Err(Unsent(shipment.report, reason));
    }
    let began = Instant::now();
    let sent = shared.tap.is_some().then(|| (began.into_std(), shipment.span()));
    let shipping = shared.sink.ship(slice::from_ref(&shipment));
    let answer = match fence {
        None => shipping.await.pop(),
        // Whatever the sink waits for, it ends before the lease does.
        Some(fence) => match tokio::time::timeout(fence.post_timeout(), shipping).await {
            Ok(mut answers) => answers.pop(),
            Err(_) => {
                Some(Err(StageError::retry(Reason::Timeout, "the sink took longer than a lease allows")))
            }
        },
    };
    let took = began.elapsed();
    let report = shipment.report;
    let answer = match answer {
        Some(Ok(())) => SinkResponse::Accepted,
        Some(Err(error)) => {
            let reason = error.reason();
            let cause: &dyn std::error::Error = &error;
            let kind = report.kind.as_str();
            tracing::debug!(key = %report.key, kind, reason = reason.as_str(), error = cause, "report not taken");
            match error {
                StageError::Retry { after, .. } => SinkResponse::Failed { reason, after },
                StageError::Reject { .. } => SinkResponse::Refused { reason },
            }
        }
        None => SinkResponse::Failed { reason: Reason::Malformed, after: None },
    };
    Ok(Shipped { report, answer, sent, took, place })
}

/// What a stage remembers of one object stands in memory for each, and in one record.
fn bounded(enriched: Enriched) -> Result<Enriched, StageError> {
    match &enriched.settle {
        Some(settle) if settle.state.len() > MOST_STATE => Err(StageError::reject(
            Reason::TooLarge,
            "the stage would remember more than 64 KiB of the object",
        )),
        _ => Ok(enriched),
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
            let (after, blame, refused) = (*after, Blame::Enrich, refused.clone());
            Outcome::Retry { reason, after, blame, refused, told: Vec::new() }
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
/// incomplete and no report's fate is unknown, or the end of a life before the acknowledged one. Or a read shows that a life is
/// over of which nothing but its name was remembered, and whose place another has taken since: its end was told then,
/// and says nothing of the other's. Or a watch shows an end again of which nothing is remembered: it was told, or nothing of
/// its life ever was, since what is shown before it was told by then.
pub(crate) fn is_stale(event: &Event, known: Option<&Record>) -> bool {
    if event.again && event.is_deleted() && known.is_none() && event.coalesced.is_empty() {
        return true;
    }
    if event.is_deleted() && event.cause == Cause::Read && event.version.0 == 0 {
        return known.is_some_and(|known| known.uid != event.uid);
    }
    let Some(known) = known.filter(|_| event.cause == Cause::Watch && event.version.0 != 0) else {
        return false;
    };
    if event.is_deleted() {
        return known.uid != event.uid && event.version < known.version;
    }
    known.uid == event.uid
        && event.version <= known.version
        && known.is_settled()
        && !known.is_incomplete()
        && !known.is_in_doubt()
}
