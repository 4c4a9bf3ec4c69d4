//! The reports of an event, and what is remembered of them.

use pipeline_core::{
    Checkpoint, Digest, Enriched, EntityId, EntityRow, Filtered, Hasher, Record, Refetch, Report, ReportKind,
    Timestamp,
};
use serde_json::{Map, Value, json};

use super::{ChangedBy, FetchPlan, PACE, Parsed, Settings, Which, stub};
use crate::application::{Application, Entry, Health};
use crate::faults;
use crate::labels;
use crate::object;
use crate::payload::{Moment, Payload, Source};
use crate::responses::Tree;
use crate::{Sections, State};

/// A report, before it is known whether its content is new.
pub(super) struct Draft {
    pub(super) entity: EntityId,
    pub(super) kind: ReportKind,
    pub(super) decision: Digest,
    /// Something of it could not be had, and is fetched again.
    pub(super) incomplete: bool,
    pub(super) fact: Option<Digest>,
    pub(super) payload: Payload,
}

impl FetchPlan {
    pub(super) fn build(self) -> Enriched {
        let mut reports: Vec<Report> = Vec::new();
        if let Some(earlier) = &self.earlier {
            reports.push(stub::end(&self.event, earlier, &self.attempt, &self.settings));
        }
        let incomplete = self.scope.application && self.report_application(&mut reports);
        if self.event.is_deleted() {
            return Enriched { reports, settle: None, filtered: None, refetch: None };
        }
        let changed = self.changed();
        let mut missing = incomplete || self.is_left_incomplete(&changed) || self.is_untold_of_drift();
        let mut unsent = Vec::new();
        missing |= self.report_resources(changed, &mut reports, &mut unsent);
        if self.is_untold_of_drift() && !self.scope.quiet {
            // What was merged into this event may have changed them.
            let rows = self.drifting().filter_map(|entry| self.row(entry));
            let rows: Vec<_> = rows.filter(|row| !unsent.iter().any(|(id, ..)| *id == row.id)).collect();
            unsent.extend(rows.into_iter().map(|row| (row.id, row.decision, true)));
        }
        let responses = [self.tree_response(), self.managed_response()];
        let skipped = responses.iter().any(|response| matches!(response, Some(Parsed::Skipped)));
        missing |= matches!(self.tree_response(), Some(Parsed::Failed(_) | Parsed::NotHeld));
        let again = if skipped { Refetch::Paced(PACE) } else { Refetch::Incomplete };
        let filtered = reports.is_empty().then(|| self.why_filtered(!unsent.is_empty()));
        Enriched {
            filtered,
            settle: Some(self.settle(incomplete, unsent)),
            reports,
            refetch: (missing || skipped).then_some(again),
        }
    }

    /// Adds the reports of the application itself; whether something of its newest state could not be had.
    fn report_application(&self, reports: &mut Vec<Report>) -> bool {
        let own = self.known.as_ref().map(Record::object);
        for (app, digest) in &self.ended {
            let mut draft = self.application(app, None);
            draft.fact = Some(*digest);
            let content = draft.payload.content();
            // A delivery that was cut off may have told it as the state that it was then.
            let known = own.filter(|known| reports.is_empty() && !known.in_doubt);
            if known.is_none_or(|known| known.content != content) {
                reports.push(self.report(&draft, content, false));
            }
        }
        let gone = self.event.is_deleted();
        let draft = self.application(&self.app, gone.then_some(self.attempt.now));
        // An operation's end reported just before is the predecessor then, and never equal.
        let told = reports.iter().any(|report| report.uid == self.event.uid);
        let sure = own.filter(|known| !told && !known.in_doubt);
        let known = sure.map_or(Digest::NONE, |known| known.content);
        let content = draft.payload.content();
        if gone || content != known {
            reports.push(self.report(&draft, content, gone));
        }
        draft.incomplete
    }

    /// Adds the reports of changed resources, and to `unsent` those whose report would equal its predecessor, or cannot be made;
    /// whether something of any could not be had.
    fn report_resources(
        &self,
        changed: Vec<(&Entry, Option<Health>)>,
        reports: &mut Vec<Report>,
        unsent: &mut Vec<(EntityId, Digest, bool)>,
    ) -> bool {
        let mut missing = false;
        for (entry, health) in changed {
            let row = self.row(entry);
            let Some(draft) = self.resource(entry, health) else {
                missing = true;
                unsent.push((entry.id, row.map_or(Digest::NONE, |row| row.decision), true));
                continue;
            };
            missing |= draft.incomplete;
            let content = draft.payload.content();
            if row.is_some_and(|row| row.content == content && !row.in_doubt) {
                unsent.push((entry.id, draft.decision, draft.incomplete));
            } else {
                reports.push(self.report(&draft, content, false));
            }
        }
        missing
    }

    /// Whether something that was not looked at is still to be fetched again.
    fn is_left_incomplete(&self, changed: &[(&Entry, Option<Health>)]) -> bool {
        let Some(known) = &self.known else { return false };
        let here = |id| self.app.entries.iter().any(|entry| entry.id == id);
        let left = |row: &EntityRow| {
            row.incomplete && here(row.id) && !changed.iter().any(|(entry, _)| entry.id == row.id)
        };
        (known.object().incomplete && !self.scope.application) || known.listed().any(left)
    }

    fn why_filtered(&self, same_content: bool) -> Filtered {
        if self.scope.application || same_content { Filtered::SameContent } else { labels::RECONCILED_ONLY }
    }

    fn settle(&self, incomplete: bool, unsent: Vec<(EntityId, Digest, bool)>) -> Checkpoint {
        let app = &self.app;
        // What was not looked at stays as it is remembered.
        let incomplete = if self.scope.application {
            incomplete
        } else {
            self.known.as_ref().is_some_and(|known| known.object().incomplete)
        };
        let state = State {
            sections: self.sections,
            healthy: app.health.is_healthy(),
            repo_url: app.repo_url().to_owned(),
            server: app.server.clone(),
        };
        Checkpoint {
            fact: app.operation.as_ref().map_or(Digest::NONE, |operation| operation.digest()),
            incomplete,
            unsent,
            present: app.entries.iter().map(|entry| entry.id).collect(),
            ..Checkpoint::new(self.event.uid.clone(), self.event.version, state.encode())
        }
    }

    fn report(&self, draft: &Draft, content: Digest, ends: bool) -> Report {
        Report {
            key: self.event.key.clone(),
            uid: self.event.uid.clone(),
            version: self.event.version,
            entity: draft.entity,
            kind: draft.kind,
            decision: draft.decision,
            content,
            incomplete: draft.incomplete,
            ends,
            fact: draft.fact,
            body: draft.payload.body(self.attempt.now),
            trace: self.event.trace,
        }
    }

    /// The report of the application itself: of `app`, which is its newest state but perhaps for the
    /// operation. `gone`: when its deletion was seen, if it was.
    fn application(&self, app: &Application, gone: Option<Timestamp>) -> Draft {
        let marks = self.marks(app);
        let versions = self.versions();
        let failed = |parsed: Option<&Parsed>| match parsed {
            Some(Parsed::Manifests(manifests)) => manifests.sources_unknown,
            parsed => matches!(parsed, Some(Parsed::Failed(_) | Parsed::NotHeld)),
        };
        let incomplete = !self.event.is_deleted()
            && (failed(versions)
                || failed(self.tree_response())
                || matches!(self.changed_by, ChangedBy::NotKnown)
                || self.lacks_commits(app));
        // They are of what the newest operation brought.
        let is_newest = app.brought() == self.app.brought();
        let versions = versions
            .filter(|_| is_newest)
            .and_then(Parsed::manifests)
            .and_then(|manifests| manifests.versions.as_ref());
        let versions = versions.map_or_else(|| json!({}), |versions| self.app_versions(versions));
        let decision = decision(&self.sections);
        let (kind, payload, of_parent) = match self.parent_app() {
            Some(parent) => {
                let (payload, incomplete) = self.child(app, parent, &marks, gone, versions);
                (labels::CHILD_APP_REPORT, payload, incomplete)
            }
            None => {
                let payload = self.root(app, &marks, gone, versions);
                (labels::APP_REPORT, payload, self.lacking().next().is_some())
            }
        };
        let payload = self.redacted(payload);
        let (entity, fact) = (EntityId::OBJECT, None);
        Draft { entity, kind, decision, incomplete: incomplete || of_parent, fact, payload }
    }

    /// `appVersions`: the texts of the chart's files; absent parts stay absent.
    fn app_versions(&self, versions: &Value) -> Value {
        let file = |of: &Value, name: &str| {
            let text = of.get(name)?.as_str().filter(|text| !text.is_empty())?;
            Some((name.to_owned(), Value::String(self.redactor.raw(text).into_owned())))
        };
        let mut out = Map::new();
        let version = versions.get("appVersion").and_then(Value::as_str);
        if let Some(version) = version.filter(|version| !version.is_empty()) {
            out.insert("appVersion".to_owned(), self.redactor.text(version).into());
        }
        if let Some(files) = versions.get("dependencies").filter(|files| files.is_object()) {
            let names = ["deps", "lock", "requirements"];
            let files: Map<String, Value> = names.iter().filter_map(|name| file(files, name)).collect();
            out.insert("dependencies".to_owned(), files.into());
        }
        out.into()
    }

    /// Free texts may name what nobody should read; manifests were redacted where they came in.
    pub(super) fn redacted(&self, mut payload: Payload) -> Payload {
        let source = &mut payload.source;
        let messages = payload.errors.iter_mut().map(|fault| &mut fault.message);
        let health = source.health.as_mut().map(|(_, message)| message);
        for text in messages.chain(health).chain([&mut source.repo_url]) {
            if let std::borrow::Cow::Owned(redacted) = self.redactor.text(text) {
                *text = redacted;
            }
        }
        payload
    }

    fn root(
        &self,
        app: &Application,
        marks: &object::Marks,
        gone: Option<Timestamp>,
        app_versions: Value,
    ) -> Payload {
        let object = object::application(app, Some(marks), gone);
        let actual = if app.deleting || gone.is_some() { String::new() } else { object.text.clone() };
        let mut errors = faults::of_conditions(app);
        errors.extend(self.faults_below(app));
        let health = (app.health.status.clone(), app.health.message.clone());
        let mut source = root_source(&self.settings, app.repo_url(), &app.server);
        source.actual_manifest = actual;
        source.sync_status.clone_from(&app.sync_status);
        source.health = Some(health);
        times(&mut source, app);
        Payload { object, source, errors, app_versions }
    }

    /// What is degraded below the application's unhealthy resources.
    pub(super) fn faults_below(&self, app: &Application) -> Vec<crate::payload::Fault> {
        let none = Tree::default();
        let tree = self.tree().unwrap_or(&none);
        let entries = app.entries.iter().map(|entry| (entry, self.health_or_none(entry)));
        faults::of_resources(entries, tree, &self.redactor)
    }

    /// Health as far as it is known; where there is nothing to look it up in, nothing is unhealthy.
    fn health_or_none(&self, entry: &Entry) -> Option<Health> {
        if self.scope.resources == Which::None { None } else { self.health(entry) }
    }
}

/// When the application's operation began and ended.
pub(super) fn times(source: &mut Source, app: &Application) {
    if let Some(operation) = &app.operation {
        source.sync_started_at = Moment::or_now(&operation.started_at);
        source.sync_finished_at = crate::payload::time(&operation.finished_at).map(Moment::At);
    }
}

fn decision(sections: &Sections) -> Digest {
    let mut hasher = Hasher::default();
    for Digest(section) in [sections.spec, sections.status, sections.operation, sections.metadata] {
        hasher.write(&section.to_be_bytes());
    }
    hasher.finish()
}

/// The `source` of a root application, before its state is filled in.
pub(super) fn root_source(settings: &Settings, repo_url: &str, cluster: &str) -> Source {
    Source {
        repo_url: repo_url.to_owned(),
        app_labels: Some(Map::new()),
        health: Some((String::new(), String::new())),
        cluster: cluster.to_owned(),
        app_instance_label_key: settings.instance_label_key.clone(),
        tracking_method: settings.tracking_method.as_str(),
        ..Source::default()
    }
}
