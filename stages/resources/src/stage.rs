//! Turns one event into the reports of its object.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use pipeline_core::{
    Attempt, Cause, Checkpoint, Digest, Enrich, Enriched, Event, Fact, Filtered, Reason, Record, Report,
    StageError, Version, async_trait,
};
use pipeline_redact::Redactor;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::application::{Application, Applications, LookupError, TrackingMarks};
use crate::filter::Filter;
use crate::kind::{KnownKind, NOTHING};
use crate::nodes::{self, Nodes};
use crate::state::State;
use crate::warnings::WarningLimit;
use crate::{budget, labels, payload, phase};

/// The most bytes of an object that is worked on in the calling thread; a larger one gets a thread of its own.
const SMALL: usize = 32 * 1024;
/// The most KiB that objects under work and their reports take, on all routes together.
const MEMORY_KIB: u32 = 48 * 1024;
/// The least KiB of [`MEMORY_KIB`] that a route has.
const MIN_ROUTE_KIB: u32 = 8 * 1024;
/// How many times its size an object takes while it is worked on.
const MEMORY_FACTOR: usize = 4;

/// The event's body is no JSON object.
#[derive(Debug, thiserror::Error)]
#[error("the object cannot be read as JSON")]
struct Malformed;

/// The process ends.
#[derive(Debug, thiserror::Error)]
#[error("the process is stopping")]
struct Stopping;

/// A kind whose objects are reported.
#[derive(Debug, Clone)]
pub struct ReportedKind {
    /// What the table knows of it.
    pub known: KnownKind,
    /// Which of its objects are reported; `None`: all.
    pub filter: Option<Filter>,
}

/// What reports contain of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportOptions {
    /// Whether they contain `metadata.managedFields`.
    pub managed_fields: bool,
    /// The most bytes of an object's text; members of a larger one are cut. Compressed nodes are unpacked up to this size as well.
    pub largest: usize,
}

/// Whether a route takes the objects of an application.
pub type TakesApplication = Arc<dyn Fn(&Application) -> bool + Send + Sync>;

/// Makes the reports of objects. Cloning shares everything.
#[derive(Clone)]
pub struct ResourceEnrichment {
    inner: Arc<Enricher>,
    /// The KiB that are free for objects under work.
    memory: Arc<Semaphore>,
    /// All KiB of `memory`.
    room: u32,
    applications: Option<Applications>,
    takes: Option<TakesApplication>,
}

#[derive(Debug)]
struct Enricher {
    /// The kinds, by their names in keys.
    kinds: HashMap<String, ReportedKind>,
    shown: ReportOptions,
    redactor: Redactor,
    unanswered: WarningLimit,
}

/// The reports of an event, and the marks of its object.
#[derive(Debug)]
struct EnrichedObject {
    enriched: Enriched,
    /// `None`: the event has no object that can be read.
    marks: Option<TrackingMarks>,
}

/// An object as reports contain it.
struct ShownObject {
    object: Value,
    text: String,
    nodes: Option<Nodes>,
    /// Why it is not reported on its own: nothing of it runs, or the filter does not take it.
    unused: Option<Filtered>,
    /// Paths that were cut.
    cut: Vec<String>,
}

impl ResourceEnrichment {
    /// Reports objects of these kinds.
    #[must_use]
    pub fn new(
        kinds: impl IntoIterator<Item = ReportedKind>,
        shown: ReportOptions,
        redactor: Redactor,
    ) -> Self {
        let kinds = kinds.into_iter().map(|kind| (kind.known.name.clone(), kind)).collect();
        let inner = Enricher { kinds, shown, redactor, unanswered: WarningLimit::default() };
        let memory = Arc::new(Semaphore::new(MEMORY_KIB as usize));
        Self { inner: Arc::new(inner), memory, room: MEMORY_KIB, applications: None, takes: None }
    }

    /// Adds the application of an object to its reports.
    #[must_use]
    pub fn linked(self, applications: Applications) -> Self {
        Self { applications: Some(applications), ..self }
    }

    /// The same for one of so many routes, with memory of its own, so that routes do not wait for the sinks of others. With `takes`
    /// only objects of such applications are reported, and those that were reported before.
    #[must_use]
    pub fn for_route(&self, routes: u32, takes: Option<TakesApplication>) -> Self {
        let room = (MEMORY_KIB / routes.max(1)).max(MIN_ROUTE_KIB);
        Self { memory: Arc::new(Semaphore::new(room as usize)), room, takes, ..self.clone() }
    }

    /// The application that an object belongs to by its marks, if one is found.
    async fn application(
        &self,
        event: &Event,
        marks: Option<TrackingMarks>,
    ) -> Result<Option<Arc<Application>>, LookupError> {
        match (&self.applications, marks, self.inner.kind(event)) {
            (Some(applications), Some(marks), Some(kind)) => {
                applications.of(&kind.known, event.key.namespace(), marks).await
            }
            _ => Ok(None),
        }
    }

    /// The bytes that an event takes while it is worked on, about.
    fn needs(&self, event: &Event) -> usize {
        let packed = event.body().is_some_and(|body| nodes::may_be_packed(body));
        (event.size() + if packed { self.inner.shown.largest } else { 0 }) * MEMORY_FACTOR
    }

    async fn work(
        &self,
        event: &Event,
        known: Option<&Record>,
        small: bool,
    ) -> Result<EnrichedObject, StageError> {
        if small {
            return self.inner.work(event, known);
        }
        let (inner, event, known) = (self.inner.clone(), event.clone(), known.cloned());
        let work = tokio::task::spawn_blocking(move || inner.work(&event, known.as_ref()));
        work.await.unwrap_or_else(|_| Err(stopping()))
    }
}

impl fmt::Debug for ResourceEnrichment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceEnrichment")
            .field("shown", &self.inner.shown)
            .field("by_application", &self.takes.is_some())
            .finish_non_exhaustive()
    }
}

fn stopping() -> StageError {
    StageError::retry(Reason::Stopping, Stopping)
}

#[async_trait]
impl Enrich for ResourceEnrichment {
    async fn enrich(
        &self,
        event: &Event,
        known: Option<&Record>,
        attempt: &Attempt,
    ) -> Result<Enriched, StageError> {
        let needs = self.needs(event);
        let room = u32::try_from(needs / 1024).unwrap_or(u32::MAX).clamp(1, self.room);
        let room = self.memory.clone().acquire_many_owned(room).await.map_err(|_| stopping())?;
        attempt.memory.hold(room);
        let mut application = None;
        if let (Some(takes), None) = (&self.takes, known.filter(|known| known.uid == event.uid)) {
            // Where its application cannot be found out, the event is tried again rather than left out.
            let found =
                self.application(event, event.body().and_then(|body| TrackingMarks::read(body))).await;
            application = found.map_err(|unread| StageError::retry(unread.0, unread))?;
            if !application.as_ref().is_some_and(|application| takes(application)) {
                return Ok(self.inner.untaken(event, known));
            }
        }
        let EnrichedObject { mut enriched, marks } =
            self.work(event, known, needs <= SMALL * MEMORY_FACTOR).await?;
        if application.is_none() && !enriched.reports.is_empty() {
            application = self.application(event, marks).await.ok().flatten();
        }
        if let Some(application) = application {
            for report in enriched.reports.iter_mut().filter(|report| report.uid == event.uid) {
                report.body = payload::with_application(&report.body, &application);
            }
        }
        Ok(enriched)
    }
}

impl Enricher {
    /// Reads the text of an event's object, and makes its reports.
    fn work(&self, event: &Event, known: Option<&Record>) -> Result<EnrichedObject, StageError> {
        let object = event.body().and_then(object_of);
        let never_told = known.is_none() && event.coalesced.is_empty();
        if never_told && object.as_ref().is_some_and(|object| self.known(event).is_idle(object)) {
            // Most ReplicaSets are idle: they are left out before anything else is done.
            return Ok(EnrichedObject { enriched: Enriched::filtered(labels::IDLE), marks: None });
        }
        let marks = object.as_ref().and_then(TrackingMarks::of);
        Ok(EnrichedObject { enriched: self.enrich(event, known, object)?, marks })
    }

    fn enrich(
        &self,
        event: &Event,
        known: Option<&Record>,
        object: Option<Value>,
    ) -> Result<Enriched, StageError> {
        let (known, earlier) = match known {
            Some(record) if record.uid == event.uid => (Some(record), None),
            other => (None, other),
        };
        // The end of an earlier incarnation is reported before this one.
        let mut reports: Vec<Report> = earlier.map(|record| self.end_of(event, record)).into_iter().collect();
        if event.is_deleted() {
            return Ok(self.deleted(event, known, object, reports));
        }
        if event.cause == Cause::Watch
            && known.is_some_and(|known| known.is_settled() && event.version < known.version)
        {
            return Ok(Enriched::filtered(Filtered::Stale));
        }
        let seen = self.show(event, object);
        let seen = seen.ok_or_else(|| StageError::reject(Reason::Malformed, Malformed))?;
        let shown = event.fact.as_ref().map_or(Digest::NONE, |fact| fact.id);
        let body = payload::of(&seen.text, false, seen.nodes, &seen.cut);
        let untold = Record::unreported(known, &event.coalesced).filter(|fact| fact.id != shown);
        let untold: Vec<Report> = untold.filter_map(|fact| self.former(event, &seen, fact)).collect();
        let state = State::new(&seen.object, seen.unused.is_some());
        let (decision, content) = (self.decision(event, seen.object), Digest::of(&body));
        let untold = each_once(untold, Some(decision));
        let sure = known.filter(|known| !known.is_in_doubt());
        let row = sure.map(Record::object);
        let same = row.is_some_and(|row| row.decision == decision);
        let is_told = same && row.is_some_and(|row| row.content == content);
        if reports.is_empty() && untold.is_empty() {
            let why = sure.filter(|known| known.is_settled()).and_then(|known| match (same, is_told) {
                (true, true) => Some(Filtered::Unchanged),
                (true, false) => Some(labels::HEARTBEAT),
                (false, _) => seen.unused.filter(|_| State::of(known).unused),
            });
            let never = seen.unused.filter(|_| known.is_none());
            if let Some(why) = why.or(never) {
                return Ok(Enriched::filtered(why));
            }
        }
        // A report that was acknowledged just before the process was killed is settled now.
        let only_settles = is_told && reports.is_empty() && untold.is_empty();
        reports.extend(untold);
        if !only_settles {
            reports.push(Report { decision, body, ..Report::of_object(event, labels::OBJECT, content) });
        }
        let filtered = only_settles.then_some(Filtered::Unchanged);
        let settle = Checkpoint::new(event.uid.clone(), event.version, state.encode());
        let settle = Checkpoint { fact: shown, ..settle };
        Ok(Enriched { reports, settle: Some(settle), filtered, refetch: None })
    }

    /// What comes of an object of another application: only the end of an earlier incarnation that was reported.
    fn untaken(&self, event: &Event, earlier: Option<&Record>) -> Enriched {
        let reports: Vec<Report> = earlier.map(|record| self.end_of(event, record)).into_iter().collect();
        let filtered = reports.is_empty().then_some(labels::OTHER_APPLICATION);
        Enriched { reports, settle: None, filtered, refetch: None }
    }

    fn kind(&self, event: &Event) -> Option<&ReportedKind> {
        self.kinds.get(event.key.kind())
    }

    /// What the table knows of the kind of an object.
    fn known(&self, event: &Event) -> &KnownKind {
        self.kind(event).map_or(&NOTHING, |kind| &kind.known)
    }

    /// The object as reports contain it; the text of the API server is kept where nothing was changed.
    fn show(&self, event: &Event, object: Option<Value>) -> Option<ShownObject> {
        let (text, mut object) = (std::str::from_utf8(event.body()?).ok()?, object?);
        let nodes = nodes::unpack(&mut object, self.shown.largest);
        let dropped = !self.shown.managed_fields && drop_managed_fields(&mut object);
        // Nodes are unpacked before this, so that they are redacted too.
        let redacted = self.redactor.value(&mut object);
        let unpacked = nodes.is_some_and(|nodes| nodes != Nodes::Offloaded);
        let unused = self.unused(event, &object);
        let text = match dropped || redacted || unpacked {
            true => object.to_string(),
            false => text.to_owned(),
        };
        if text.len() <= self.shown.largest {
            return Some(ShownObject { object, text, nodes, unused, cut: Vec::new() });
        }
        let (text, cut) = budget::fit(&mut object, self.known(event), self.shown.largest);
        Some(ShownObject { object, text, nodes, unused, cut })
    }

    /// Why an object is not reported on its own: nothing of it runs, or the filter of its kind does not take it.
    fn unused(&self, event: &Event, object: &Value) -> Option<Filtered> {
        let ReportedKind { known, filter } = self.kind(event)?;
        if known.is_idle(object) {
            return Some(labels::IDLE);
        }
        match filter.as_ref()?.takes(object) {
            Ok(true) => None,
            Ok(false) => Some(labels::EXCLUDED),
            Err(why) => {
                if self.unanswered.due() {
                    tracing::warn!(key = %event.key, %why, "the filter of a kind has no answer for an object, which is left out");
                }
                Some(labels::UNANSWERED)
            }
        }
    }

    /// The decision digest: of everything whose change a person would call a change.
    fn decision(&self, event: &Event, mut object: Value) -> Digest {
        self.known(event).silence(&mut object);
        Digest::of(object.to_string().as_bytes())
    }

    /// The report of a former phase: the object as it is, with the phase and step that a fact tells, if it is to be reported so.
    fn former(&self, event: &Event, seen: &ShownObject, fact: &Fact) -> Option<Report> {
        let mut object = seen.object.clone();
        if !phase::apply(&fact.body, &mut object) || self.unused(event, &object).is_some() {
            return None;
        }
        let body = payload::of(&object.to_string(), false, seen.nodes, &seen.cut);
        let decision = self.decision(event, object);
        let report = Report::of_object(event, labels::OBJECT, Digest::of(&body));
        Some(Report { decision, fact: Some(fact.id), body, ..report })
    }

    /// The reports of an incarnation that is over: its unreported phases, and then its end.
    fn deleted(
        &self,
        event: &Event,
        known: Option<&Record>,
        object: Option<Value>,
        mut reports: Vec<Report>,
    ) -> Enriched {
        let had_state = event.body().is_some();
        let seen = self.show(event, object).unwrap_or_else(|| {
            let object = stub(event, &known.map(State::of).unwrap_or_default(), &event.uid);
            let text = object.to_string();
            ShownObject { object, text, nodes: None, unused: None, cut: Vec::new() }
        });
        let untold = Record::unreported(known, &event.coalesced);
        let untold = untold.filter_map(|fact| self.former(event, &seen, fact)).collect();
        let untold = each_once(untold, None);
        if known.is_none() && untold.is_empty() {
            if reports.is_empty()
                && let Some(why) = seen.unused.filter(|_| had_state)
            {
                return Enriched::filtered(why);
            }
            if !had_state {
                // Nothing of this incarnation was reported: only the end of an earlier one may be.
                let filtered = reports.is_empty().then_some(Filtered::NeverReported);
                return Enriched { reports, settle: None, filtered, refetch: None };
            }
        }
        reports.extend(untold);
        let body = payload::of(&seen.text, true, seen.nodes, &seen.cut);
        let content = Digest::of(&body);
        let fact = known.map(Record::stay);
        reports.push(Report { ends: true, fact, body, ..Report::of_object(event, labels::OBJECT, content) });
        Enriched { reports, settle: None, filtered: None, refetch: None }
    }

    /// The report of the end of an earlier incarnation, of which only the record is left.
    fn end_of(&self, event: &Event, record: &Record) -> Report {
        let body = payload::of(&stub(event, &State::of(record), &record.uid).to_string(), true, None, &[]);
        let content = Digest::of(&body);
        let (uid, version, fact) = (record.uid.clone(), Version(0), Some(record.stay()));
        Report { uid, version, ends: true, fact, body, ..Report::of_object(event, labels::OBJECT, content) }
    }
}

/// Leaves out reports whose decision digest equals that of the next one (`next` follows the last): two states that differ in times
/// alone are reported once.
fn each_once(mut reports: Vec<Report>, mut next: Option<Digest>) -> Vec<Report> {
    for at in (0..reports.len()).rev() {
        let decision = reports[at].decision;
        if next.replace(decision) == Some(decision) {
            reports.remove(at);
        }
    }
    reports
}

/// Reads a text that is a JSON object.
fn object_of(text: &Bytes) -> Option<Value> {
    serde_json::from_slice(text).ok().filter(Value::is_object)
}

/// Removes `metadata.managedFields`; `false` if there were none.
fn drop_managed_fields(object: &mut Value) -> bool {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.is_some_and(|metadata| metadata.remove("managedFields").is_some())
}

/// An object that is gone, as far as its key and record tell it.
fn stub(event: &Event, state: &State, uid: &str) -> Value {
    let mut metadata = json!({"name": event.key.name(), "uid": uid});
    if !event.key.namespace().is_empty() {
        metadata["namespace"] = event.key.namespace().into();
    }
    json!({"apiVersion": state.api_version, "kind": state.kind, "metadata": metadata})
}

#[cfg(test)]
mod tests;
