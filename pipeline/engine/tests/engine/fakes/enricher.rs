//! An enrichment that remembers what the ledger says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use pipeline_core::{
    Attempt, Call, Cause, Checkpoint, Digest, Enrich, Enriched, EntityId, Event, Fact, Filtered, Key,
    Meter as _, Outcome, Peer, Record, Refetch, Report, ReportKind, Sample, Settled, StageError, async_trait,
};

const CALL: Call = Call::new(Peer::new("peer"), "call");
const OBJECT: ReportKind = ReportKind::of_object("object");
const LISTED: ReportKind = ReportKind::of_listed("listed");

/// Reports the object and `resources` resources whenever the version moved, or the receiver's state is not
/// known; leaves out what the ledger says was acknowledged. A report's body is the time of the operation's end that it
/// shows.
#[derive(Clone, Default)]
pub(crate) struct Enricher {
    pub(crate) resources: u64,
    /// Objects whose enrichment panics that many times.
    pub(crate) panics: Arc<Mutex<BTreeMap<Key, u32>>>,
    /// Objects that owe something after their first report.
    pub(crate) lacking: Arc<Mutex<BTreeSet<Key>>>,
    /// While it is on, no enrichment ends; those that did not.
    pub(crate) hangs: Arc<AtomicBool>,
    pub(crate) hanging: Arc<Mutex<Vec<Key>>>,
    pub(crate) tries: Arc<Mutex<Vec<(Key, Cause, Duration)>>>,
}

#[async_trait]
impl Enrich for Enricher {
    async fn enrich(
        &self,
        event: &Event,
        known: Option<&Record>,
        attempt: &Attempt,
    ) -> Result<Enriched, StageError> {
        self.tries.lock().unwrap().push((event.key.clone(), event.cause, attempt.trying_for));
        if event.key.name().starts_with(QUIET) {
            return Ok(Enriched::filtered(Filtered::Unchanged));
        }
        if self.hangs.load(Ordering::SeqCst) {
            self.hanging.lock().unwrap().push(event.key.clone());
            while self.hangs.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        let took = Duration::from_millis(1);
        tokio::time::sleep(took).await;
        attempt.calls.record(Sample { call: CALL, outcome: Outcome::Ok, took });
        let panics = match self.panics.lock().unwrap().get_mut(&event.key) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        };
        assert!(!panics, "a bug in the enrichment");
        let known = known.filter(|known| known.uid == event.uid);
        let refetch = event.cause == Cause::Refetch;
        let mut reports: Vec<_> = Record::unreported(known, &event.coalesced)
            .map(|end| self.end_of_operation(event, end))
            .collect();
        if event.is_deleted() {
            return Ok(match known {
                Some(_) => {
                    reports.push(Report { ends: true, ..self.report(event, EntityId::OBJECT, 0) });
                    Enriched { reports, settle: None, filtered: None, refetch: None }
                }
                None => Enriched::filtered(Filtered::NeverReported),
            });
        }
        let unchanged = |known: &Record| {
            known.settled != Settled::Never && known.version >= event.version && !known.is_in_doubt()
        };
        if !refetch && reports.is_empty() && known.is_some_and(unchanged) {
            return Ok(Enriched::filtered(Filtered::Unchanged));
        }
        let first = std::iter::once(EntityId::OBJECT);
        let entities = first.chain((1..=self.resources).map(EntityId));
        let differs = |report: &Report| {
            let row = known.and_then(|known| known.entity(report.entity));
            row.is_none_or(|row| row.content != report.content || row.in_doubt)
        };
        // What was missing is there by now.
        let completed = refetch && known.is_some_and(Record::is_incomplete);
        let states = entities.map(|entity| self.report(event, entity, u64::from(completed)));
        reports.extend(states.filter(differs));
        let incomplete = !refetch && self.lacking.lock().unwrap().contains(&event.key);
        let settle = Checkpoint {
            fact: event.fact.as_ref().map_or(Digest::NONE, |end| end.id),
            incomplete,
            present: (1..=self.resources).map(EntityId).collect(),
            ..Checkpoint::new(event.uid.clone(), event.version, "state".into())
        };
        Ok(Enriched {
            reports,
            settle: Some(settle),
            filtered: None,
            refetch: incomplete.then_some(Refetch::Incomplete),
        })
    }
}

/// Names that begin so are of objects of which nothing is new, which is seen at once.
pub(crate) const QUIET: &str = "quiet-";

impl Enricher {
    fn report(&self, event: &Event, entity: EntityId, extra: u64) -> Report {
        let content = event.body().map_or(0, |body| std::str::from_utf8(body).unwrap().parse().unwrap());
        let shown = event.fact.as_ref().filter(|_| entity == EntityId::OBJECT);
        Report {
            entity,
            decision: Digest(event.version.0),
            body: shown.map_or_else(|| Bytes::from_static(b"{}"), |end| end.body.clone()),
            ..Report::of_object(
                event,
                if entity.is_object() { OBJECT } else { LISTED },
                Digest(content + extra),
            )
        }
    }

    fn end_of_operation(&self, event: &Event, end: &Fact) -> Report {
        Report {
            content: end.id,
            fact: Some(end.id),
            body: end.body.clone(),
            ..self.report(event, EntityId::OBJECT, 0)
        }
    }
}
