//! Turns an event of an Application into the report of what changed it.

use bytes::Bytes;
use futures::future::join_all;
use pipeline_core::{
    Attempt, Cause, Checkpoint, Digest, Enrich, Enriched, Event, Filtered, Reason, Record, Refetch, Report,
    StageError, async_trait,
};
use pipeline_redact::Redactor;
use serde_json::{Value, json};
use stages_git::application::Application;
use stages_git::remote::Tenant;
use stages_git::{MAX_SOURCES, synced_sources};

use crate::sync::{ReportedSync, is_dry_run, started_at, waits_to_begin};
use crate::{ChangeReport, FileDiff, ShownSource, Synced, Walks, labels, synced};

/// Bytes of differences of files that all sources of one application have together: whoever takes a report takes a megabyte, and
/// text as JSON is longer than it is.
const DIFFS: usize = 256 * 1024;

/// What is no Application.
#[derive(Debug, thiserror::Error)]
#[error("the object cannot be read as an Application")]
struct Malformed;

fn malformed() -> StageError {
    StageError::reject(Reason::Malformed, Malformed)
}

/// Reports what changed applications.
#[derive(Clone)]
pub struct RevisionEnrichment {
    walks: Walks,
    redactor: Redactor,
}

impl RevisionEnrichment {
    /// Asks these walks.
    #[must_use]
    pub fn new(walks: Walks, redactor: Redactor) -> Self {
        Self { walks, redactor }
    }

    /// What changed an Application.
    async fn changes(
        &self,
        event: &Event,
        application: &Application,
        (all, told): (&[Synced], &[Option<ReportedSync>]),
        (project, started_at): (&str, Option<&str>),
    ) -> ChangeReport {
        let tenant = Tenant::new(project, event.key.namespace());
        // One whose repository hangs keeps nobody from the others.
        let sources = join_all(all.iter().map(|of| {
            let told = told.get(of.index).and_then(Option::as_ref);
            let previous = of.since(told, started_at, &self.redactor);
            self.walks.source(application, &tenant, (of, previous), true)
        }));
        let sources = sources.await;
        let revisions: Vec<String> =
            sources.iter().map(|of| of.change_revision.clone().unwrap_or_default()).collect();
        ChangeReport {
            namespace: event.key.namespace().to_owned(),
            name: event.key.name().to_owned(),
            uid: event.uid.to_string(),
            started_at: started_at.map(str::to_owned),
            change_revision: revisions.first().filter(|of| !of.is_empty()).cloned(),
            change_revisions: revisions,
            sources,
        }
    }

    /// What was told of each source last, as far as that is remembered.
    fn reported(&self, known: Option<&Record>) -> Vec<Option<ReportedSync>> {
        let mut told: Vec<Option<ReportedSync>> =
            known.and_then(|known| serde_json::from_slice(&known.state).ok()).unwrap_or_default();
        told.iter_mut().flatten().for_each(|told| told.redact(&self.redactor));
        told
    }

    /// A report as it is sent: without secrets, which the differences of files do not have.
    fn redacted(&self, mut report: ChangeReport) -> Result<Value, StageError> {
        let diffs = taken(&mut report);
        let mut report = serde_json::to_value(report).map_err(|_| malformed())?;
        self.redactor.value(&mut report);
        put_back(&mut report, &diffs);
        Ok(report)
    }
}

#[async_trait]
impl Enrich for RevisionEnrichment {
    async fn enrich(
        &self,
        event: &Event,
        known: Option<&Record>,
        _: &Attempt,
    ) -> Result<Enriched, StageError> {
        let known = known.filter(|known| known.uid == event.uid);
        if event.is_deleted() {
            return Ok(known.map_or_else(|| Enriched::filtered(Filtered::NeverReported), |_| gone(event)));
        }
        let looked_at = event.cause != Cause::Watch;
        if !looked_at && known.is_some_and(|known| known.is_settled() && event.version < known.version) {
            return Ok(Enriched::filtered(Filtered::Stale));
        }
        let (object, application) = read(event).ok_or_else(malformed)?;
        let stands = known.is_some_and(|known| !known.is_incomplete());
        let refetch = known.is_some_and(Record::is_incomplete).then_some(Refetch::Incomplete);
        if waits_to_begin(&object) || (stands && is_dry_run(&object)) {
            return Ok(Enriched { refetch, ..Enriched::filtered(labels::NOT_BEGUN) });
        }
        let all = synced(&object);
        if all.iter().all(|of| of.current.is_none()) {
            return Ok(Enriched::filtered(labels::NEVER_SYNCED));
        }
        let started_at = started_at(&object, &all);
        let started_at = started_at.as_deref();
        let decision = decision(&object, &all, started_at);
        let sure = known.filter(|known| !known.is_in_doubt());
        let settled = sure.filter(|known| known.is_settled());
        if let Some(known) = settled.filter(|known| known.object().decision == decision)
            && !(looked_at && known.is_incomplete())
        {
            // What lacked something is built anew when it is looked at again, and not at each event.
            return Ok(Enriched { refetch, ..Enriched::filtered(Filtered::Unchanged) });
        }
        let told = self.reported(known);
        let project = object["spec"]["project"].as_str().unwrap_or_default();
        let mut found = self.changes(event, &application, (&all, &told), (project, started_at)).await;
        let incomplete = found.sources.iter().any(|of| of.error.is_some());
        found.sources.extend(untold(&object));
        let next: Vec<Option<ReportedSync>> = match incomplete {
            // It is told later, from where it was told last.
            true => told,
            false => all.iter().map(|of| of.told(started_at, &self.redactor)).collect(),
        };
        let state = serde_json::to_vec(&next).map_err(|_| malformed())?;
        let body = self.redacted(found)?.to_string();
        let report = Report { incomplete, ..report(event, decision, body.into()) };
        let refetch = incomplete.then_some(Refetch::Incomplete);
        let is_told = sure.is_some_and(|known| {
            known.object().decision == decision && known.object().content == report.content
        });
        if is_told && incomplete && settled.is_some() {
            return Ok(Enriched { refetch, ..Enriched::filtered(Filtered::SameContent) });
        }
        let settle =
            Checkpoint { incomplete, ..Checkpoint::new(event.uid.clone(), event.version, state.into()) };
        // What was acknowledged when the process was killed, a moment before that was settled, is settled now.
        let (reports, filtered) = match is_told && settled.is_none() {
            true => (Vec::new(), Some(Filtered::SameContent)),
            false => (vec![report], None),
        };
        Ok(Enriched { reports, settle: Some(settle), filtered, refetch })
    }
}

/// The object of an event, and what is read of it as an Application.
fn read(event: &Event) -> Option<(Value, Application)> {
    let object: Value = serde_json::from_slice(event.body()?).ok()?;
    let application = Application::read(&object)?;
    Some((object, application))
}

/// What stands in the place of the sources that are too many: that they are not told, which no later try changes.
fn untold(object: &Value) -> Option<ShownSource> {
    let more = synced_sources(&object["spec"]).all.len().saturating_sub(MAX_SOURCES);
    let why = format!(
        "{more} more sources are not told, as one application is told with {MAX_SOURCES}: make several applications of them"
    );
    (more > 0).then(|| ShownSource { error: Some(why), ..ShownSource::default() })
}

/// Takes the differences of files out of a report, as many as a report has room for: they have no secrets, and lines of a file no longer tell what was one.
fn taken(report: &mut ChangeReport) -> Vec<Vec<FileDiff>> {
    let changes = report.sources.iter_mut().flat_map(|source| &mut source.changes);
    let mut room = DIFFS;
    let mut all = Vec::new();
    for change in changes {
        let mut diffs = std::mem::take(&mut change.diffs);
        diffs.retain(|file| {
            // After one that finds no room there is none for any: what is told are the first of its paths.
            room = room.saturating_sub(file.path.len() + file.text.len() + 1);
            room > 0
        });
        all.push(diffs);
    }
    all
}

/// Puts them back where they were.
fn put_back(report: &mut Value, diffs: &[Vec<FileDiff>]) {
    let sources = report["sources"].as_array_mut().into_iter().flatten();
    let changes = sources.filter_map(|source| source["changes"].as_array_mut()).flatten();
    for (change, diffs) in changes.zip(diffs).filter(|(_, diffs)| !diffs.is_empty()) {
        change["diffs"] = json!(diffs);
    }
}

/// That an application is gone is told by whoever reports applications; here its record ends.
fn gone(event: &Event) -> Enriched {
    let body = json!({"namespace": event.key.namespace(), "name": event.key.name(), "deleted": true});
    let report = report(event, Digest::NONE, body.to_string().into());
    Enriched { reports: vec![Report { ends: true, ..report }], settle: None, filtered: None, refetch: None }
}

/// Of all that the answer depends on: between which revisions each source went and in which sync, what it is made of, and where
/// it is said which paths count.
fn decision(object: &Value, all: &[Synced], started_at: Option<&str>) -> Digest {
    let between: Vec<_> = all.iter().map(|of| (&of.repo_url, &of.current, &of.previous)).collect();
    let spec = &object["spec"];
    let source = match &spec["sourceHydrator"]["syncSource"] {
        synced if synced.is_object() => synced,
        _ => &spec["source"],
    };
    let paths = &object["metadata"]["annotations"]["argocd.argoproj.io/manifest-generate-paths"];
    let of = json!([between, source, spec["sources"], paths, started_at]);
    Digest::of(of.to_string().as_bytes())
}

fn report(event: &Event, decision: Digest, body: Bytes) -> Report {
    let report = Report::of_object(event, labels::CHANGE, Digest::of(&body));
    Report { decision, body, ..report }
}

#[cfg(test)]
mod tests;
