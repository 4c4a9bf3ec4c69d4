//! Reports of an application that is gone, of which nothing but the record is left.

use pipeline_core::{Attempt, Digest, Enriched, Event, Filtered, Record, Report, Version};
use pipeline_redact::Redactor;
use serde_json::{Value, json};

use super::{Settings, build, untold};
use crate::State;
use crate::application::Application;
use crate::labels;
use crate::object;
use crate::payload::{self, ObjectText, Payload, Source};

/// All that is to be told of an application that is gone and of which the event shows no state: of the life that the event is of,
/// and of an earlier one.
pub(super) fn gone(
    event: &Event,
    (known, earlier): (Option<&Record>, Option<&Record>),
    attempt: &Attempt,
    settings: &Settings,
    redactor: &Redactor,
) -> Enriched {
    // Of a life that came and went before it could be read, that it is over is all that can be told.
    let unseen = || (!event.uid.is_empty()).then(|| Record::new(event.uid.clone()));
    let remembered = known.cloned().or_else(unseen);
    let departed = |record| departed(event, record, attempt, settings, redactor);
    let former = earlier.map(|earlier| end(event, earlier, attempt, settings));
    let reports: Vec<_> = former.into_iter().chain(remembered.iter().flat_map(departed)).collect();
    let filtered = reports.is_empty().then_some(Filtered::NeverReported);
    Enriched { reports, settle: None, filtered, refetch: None }
}

/// All that is to be told of a life that is over: the ends of its operations that nobody was told of, then its own.
fn departed(
    event: &Event,
    record: &Record,
    attempt: &Attempt,
    settings: &Settings,
    redactor: &Redactor,
) -> Vec<Report> {
    // What was coalesced into the event is of the event's life.
    let ends = (record.uid == event.uid).then(|| untold(event, Some(record), None)).into_iter().flatten();
    let told = ends.filter_map(|(operation, digest)| {
        let app = Application::of_value(object_of(event, record)).ok()?;
        let app = app.with_operation_end(&operation, redactor);
        let object = object::application(&app, Some(&object::Marks::default()), None);
        let mut source = source_of(record, settings);
        source.actual_manifest.clone_from(&object.text);
        build::times(&mut source, &app);
        Some(report(event, record, attempt, Some(digest), &payload_of(object, source)))
    });
    told.chain([end(event, record, attempt, settings)]).collect()
}

/// The end of a life.
pub(super) fn end(event: &Event, record: &Record, attempt: &Attempt, settings: &Settings) -> Report {
    let text = |deleted: &str| {
        let mut object = object_of(event, record);
        object["metadata"]["deletionTimestamp"] = deleted.into();
        let app = Application::of_value(object);
        app.map(|app| object::application(&app, Some(&object::Marks::default()), None).text)
    };
    let object = ObjectText {
        text: text(&payload::seconds(attempt.now)).unwrap_or_default(),
        timeless: text("").ok(),
    };
    let payload = payload_of(object, source_of(record, settings));
    Report { ends: true, ..report(event, record, attempt, None, &payload) }
}

fn object_of(event: &Event, record: &Record) -> Value {
    let state = State::of(record);
    json!({
        "kind": "Application",
        "apiVersion": "argoproj.io/v1alpha1",
        "metadata": {
            "name": event.key.name(),
            "namespace": event.key.namespace(),
            "uid": &*record.uid,
        },
        "spec": {
            "source": {"repoURL": state.repo_url},
            "destination": {"server": state.server},
            "project": "",
        },
    })
}

fn source_of(record: &Record, settings: &Settings) -> Source {
    let State { repo_url, server, .. } = State::of(record);
    build::root_source(settings, &repo_url, &server)
}

fn payload_of(object: ObjectText, source: Source) -> Payload {
    Payload { object, source, errors: Vec::new(), app_versions: json!({}) }
}

fn report(
    event: &Event,
    record: &Record,
    attempt: &Attempt,
    fact: Option<Digest>,
    payload: &Payload,
) -> Report {
    Report {
        uid: record.uid.clone(),
        // Of another life the event's version says nothing.
        version: if record.uid == event.uid { event.version } else { Version(0) },
        decision: Digest::of(b"gone"),
        fact,
        body: payload.body(attempt.now),
        ..Report::of_object(event, labels::APP_REPORT, payload.content())
    }
}
