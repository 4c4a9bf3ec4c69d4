//! Turns one event into the reports of its object.

use std::collections::HashMap;
use std::sync::Arc;

use pipeline_core::{
    Cause, Checkpoint, Digest, Enrich, Enriched, EntityId, Event, Fact, Filtered, Reason, Record, Report,
    StageError, Turn, Version, async_trait,
};
use pipeline_redact::Redactor;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::kind::KnownKind;
use crate::state::State;
use crate::{labels, payload, phase};

/// A larger object is worked on in a thread of its own.
const SMALL: usize = 32 * 1024;
/// KiB that the objects that are worked on and their reports may take together.
const HELD: u32 = 48 * 1024;
/// How many times its size an object takes while it is worked on.
const TIMES: usize = 4;

/// What is no object.
#[derive(Debug, thiserror::Error)]
#[error("the object cannot be read as JSON")]
struct Malformed;

/// The process ends.
#[derive(Debug, thiserror::Error)]
#[error("the process is stopping")]
struct Stopping;

/// Reports objects as they are. Cloning shares everything.
#[derive(Debug, Clone)]
pub struct ResourceEnrichment {
    inner: Arc<Inner>,
    held: Arc<Semaphore>,
}

#[derive(Debug)]
struct Inner {
    /// By what keys call them.
    kinds: HashMap<String, KnownKind>,
    redactor: Redactor,
}

impl ResourceEnrichment {
    /// Reports objects of these kinds.
    #[must_use]
    pub fn new(kinds: impl IntoIterator<Item = KnownKind>, redactor: Redactor) -> Self {
        let kinds = kinds.into_iter().map(|kind| (kind.name.clone(), kind)).collect();
        Self { inner: Arc::new(Inner { kinds, redactor }), held: Arc::new(Semaphore::new(HELD as usize)) }
    }
}

#[async_trait]
impl Enrich for ResourceEnrichment {
    async fn enrich(
        &self,
        event: &Event,
        known: Option<&Record>,
        turn: &Turn,
    ) -> Result<Enriched, StageError> {
        let size = event.size();
        let room = u32::try_from(size * TIMES / 1024).unwrap_or(u32::MAX).clamp(1, HELD);
        let stopping = || StageError::retry(Reason::Stopping, Stopping);
        let room = self.held.clone().acquire_many_owned(room).await.map_err(|_| stopping())?;
        turn.room.hold(room);
        if size <= SMALL {
            return self.inner.enrich(event, known);
        }
        let (inner, event, known) = (self.inner.clone(), event.clone(), known.cloned());
        let work = tokio::task::spawn_blocking(move || inner.enrich(&event, known.as_ref()));
        work.await.unwrap_or_else(|_| Err(stopping()))
    }
}

impl Inner {
    fn enrich(&self, event: &Event, known: Option<&Record>) -> Result<Enriched, StageError> {
        let (known, earlier) = match known {
            Some(record) if record.uid == event.uid => (Some(record), None),
            other => (None, other),
        };
        // Its end is told before the life that followed it.
        let mut reports: Vec<Report> = earlier.map(|record| self.end_of(event, record)).into_iter().collect();
        if event.is_deleted() {
            return Ok(self.deleted(event, known, reports));
        }
        if event.cause == Cause::Watch
            && known.is_some_and(|known| known.is_settled() && event.version < known.version)
        {
            return Ok(Enriched::filtered(Filtered::Stale));
        }
        let (object, text) =
            self.read(event).ok_or_else(|| StageError::reject(Reason::Malformed, Malformed))?;
        let idle = self.kind(event).is_some_and(|kind| kind.is_idle(&object));
        let shown = event.fact.as_ref().map_or(Digest::NONE, |fact| fact.id);
        let untold: Vec<&Fact> =
            Record::unreported(known, &event.coalesced).filter(|fact| fact.id != shown).collect();
        let body = payload::of(&text, false);
        let (decision, content) = (self.decision(event, object.clone()), Digest::of(&body));
        let sure = known.filter(|known| !known.is_in_doubt());
        if reports.is_empty() && untold.is_empty() {
            let why = sure.filter(|known| known.is_settled()).and_then(|known| {
                let row = known.object();
                let same = row.decision == decision;
                match (same, row.content == content) {
                    (true, true) => Some(Filtered::Unchanged),
                    (true, false) => Some(labels::HEARTBEAT),
                    (false, _) => (idle && State::of(known).idle).then_some(labels::IDLE),
                }
            });
            let never = (idle && known.is_none()).then_some(labels::IDLE);
            if let Some(why) = why.or(never) {
                return Ok(Enriched::filtered(why));
            }
        }
        reports.extend(untold.into_iter().filter_map(|fact| self.former(event, &object, fact)));
        reports.push(Report { decision, content, body, ..report(event) });
        let settle = Checkpoint {
            uid: event.uid.clone(),
            version: event.version,
            state: State::new(&object, idle).encode(),
            fact: shown,
            incomplete: false,
            unsent: Vec::new(),
            present: Vec::new(),
        };
        Ok(Enriched { reports, settle: Some(settle), filtered: None, refetch: None })
    }

    fn kind(&self, event: &Event) -> Option<&KnownKind> {
        self.kinds.get(event.key.kind())
    }

    /// The object without secrets, and its text: as the API server sent it where it held none.
    fn read(&self, event: &Event) -> Option<(Value, String)> {
        let text = std::str::from_utf8(event.body()?).ok()?;
        let mut object: Value = serde_json::from_str(text).ok().filter(Value::is_object)?;
        let text = match self.redactor.value(&mut object) {
            true => object.to_string(),
            false => text.to_owned(),
        };
        Some((object, text))
    }

    /// Of all that a person would call a change.
    fn decision(&self, event: &Event, mut object: Value) -> Digest {
        self.kind(event).cloned().unwrap_or_default().silence(&mut object);
        Digest::of(object.to_string().as_bytes())
    }

    /// The object as it is, with the phase and the step that it had.
    fn former(&self, event: &Event, object: &Value, fact: &Fact) -> Option<Report> {
        let mut object = object.clone();
        phase::lay(&fact.body, &mut object).then(|| {
            let body = payload::of(&object.to_string(), false);
            let decision = self.decision(event, object);
            Report { decision, content: Digest::of(&body), fact: Some(fact.id), body, ..report(event) }
        })
    }

    /// All that is to be told of a life that is over: the phases that nobody was told of, then its end.
    fn deleted(&self, event: &Event, known: Option<&Record>, mut reports: Vec<Report>) -> Enriched {
        let last = self.read(event);
        let (object, text) = match (last, known) {
            (Some(last), _) => last,
            (None, known) => {
                let stub = stub(event, &known.map(State::of).unwrap_or_default(), &event.uid);
                let text = stub.to_string();
                (stub, text)
            }
        };
        let untold: Vec<&Fact> = Record::unreported(known, &event.coalesced).collect();
        let idle = || self.kind(event).is_some_and(|kind| kind.is_idle(&object));
        if known.is_none() && untold.is_empty() && reports.is_empty() {
            match event.body() {
                None => return Enriched::filtered(Filtered::NeverReported),
                Some(_) if idle() => return Enriched::filtered(labels::IDLE),
                Some(_) => {}
            }
        }
        reports.extend(untold.into_iter().filter_map(|fact| self.former(event, &object, fact)));
        let body = payload::of(&text, true);
        let content = Digest::of(&body);
        reports.push(Report { decision: content, content, ends: true, body, ..report(event) });
        Enriched { reports, settle: None, filtered: None, refetch: None }
    }

    /// The end of an earlier life, of which nothing but its record is left.
    fn end_of(&self, event: &Event, record: &Record) -> Report {
        let body = payload::of(&stub(event, &State::of(record), &record.uid).to_string(), true);
        let content = Digest::of(&body);
        let (uid, version) = (record.uid.clone(), Version(0));
        Report { uid, version, decision: content, content, ends: true, body, ..report(event) }
    }
}

/// All that is left of an object that is gone.
fn stub(event: &Event, state: &State, uid: &str) -> Value {
    let mut metadata = json!({"name": event.key.name(), "uid": uid});
    if !event.key.namespace().is_empty() {
        metadata["namespace"] = event.key.namespace().into();
    }
    json!({"apiVersion": state.api_version, "kind": state.kind, "metadata": metadata})
}

fn report(event: &Event) -> Report {
    Report {
        key: event.key.clone(),
        uid: event.uid.clone(),
        version: event.version,
        entity: EntityId::OBJECT,
        kind: labels::OBJECT,
        decision: Digest::NONE,
        content: Digest::NONE,
        incomplete: false,
        ends: false,
        fact: None,
        body: bytes::Bytes::new(),
        trace: event.trace,
    }
}

#[cfg(test)]
mod tests;
