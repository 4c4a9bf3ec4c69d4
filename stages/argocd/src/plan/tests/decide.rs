//! Which events and which resources are worth a report.

use crate::{OperationEnd, RequestedOperation};
use pipeline_core::{Cause, Change, Event, Filtered, Version};
use serde_json::{Value, json};

use super::*;

fn changed(change: impl FnOnce(&mut Value)) -> Event {
    let mut store = store();
    store["metadata"]["resourceVersion"] = json!("11");
    change(&mut store);
    event(&store)
}

#[test]
fn a_first_report_is_of_the_application_and_of_every_resource() {
    let (enriched, asked) = run(&event(&store()), None, healthy);
    assert_eq!(kinds(&enriched), ["Application", "Service", "Deployment"]);
    assert_eq!(enriched.filtered, None);
    let mut calls = calls(&asked);
    calls.sort_unstable();
    assert_eq!(calls, ["managed_resources", "resource_tree", "revision_metadata"]);
}

#[test]
fn what_does_not_count_is_filtered() {
    let known = known_store();
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 8] = [
        ("reconciledAt", |app| app["status"]["reconciledAt"] = json!("2026-11-21T12:30:00Z")),
        ("project", |app| app["spec"]["project"] = json!("other")),
        ("generation", |app| app["metadata"]["generation"] = json!(4)),
        ("generateName", |app| app["metadata"]["generateName"] = json!("x-")),
        ("managedFields", |app| app["metadata"]["managedFields"] = json!([{"manager": "x"}])),
        ("last applied", |app| {
            app["metadata"]["annotations"] =
                json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
        }),
        ("resourceVersion", |_| {}),
        ("the order of members", |app| {
            let spec = app["spec"].as_object().unwrap().clone();
            app["spec"] = spec.into_iter().rev().collect();
        }),
    ];
    for (what, edit) in edits {
        let (enriched, asked) = run(&changed(edit), Some(&known), healthy);
        assert_eq!(enriched.filtered, Some(Filtered::Unchanged), "{what}");
        assert!(asked.is_empty(), "{what} costs no call");
    }
}

#[test]
fn the_time_of_a_condition_does_not_count_but_its_message_does() {
    let with = |message: &str, time: &str| {
        changed(|app| {
            app["status"]["conditions"] =
                json!([{"type": "SyncError", "message": message, "lastTransitionTime": time}]);
        })
    };
    let known = remember(None, &run(&with("a", "2026-11-21T10:00:00Z"), None, healthy).0);
    let (same, _) = run(&with("a", "2026-11-21T11:00:00Z"), known.as_ref(), healthy);
    assert_eq!(same.filtered, Some(Filtered::Unchanged));
    let (other, _) = run(&with("b", "2026-11-21T10:00:00Z"), known.as_ref(), healthy);
    assert_eq!(kinds(&other), ["Application"]);
}

#[test]
fn each_section_counts() {
    let known = known_store();
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 5] = [
        ("spec", |app| app["spec"]["syncPolicy"] = json!({})),
        ("status", |app| app["status"]["sourceType"] = json!("Helm")),
        ("operation", |app| app["operation"] = json!({"sync": {}})),
        ("a finalizer", |app| app["metadata"]["finalizers"] = json!(["x"])),
        ("a refresh", |app| app["metadata"]["annotations"] = json!({"argocd.argoproj.io/refresh": "normal"})),
    ];
    for (what, edit) in edits {
        let (enriched, _) = run(&changed(edit), Some(&known), healthy);
        assert_eq!(kinds(&enriched), ["Application"], "{what}");
    }
}

#[test]
fn a_resource_is_reported_when_its_entry_or_the_revision_changed() {
    let known = known_store();
    let entry = changed(|app| app["status"]["resources"][1]["health"] = json!({"status": "Degraded"}));
    assert_eq!(kinds(&run(&entry, Some(&known), healthy).0), ["Application", "Deployment"]);
    let revision = changed(|app| app["status"]["history"] = json!([{"id": 4, "revision": "2"}]));
    assert_eq!(kinds(&run(&revision, Some(&known), healthy).0), ["Application", "Service", "Deployment"]);
    let said = changed(|app| {
        // A synced entry without health counts as healthy.
        app["status"]["resources"][0].as_object_mut().unwrap().remove("health");
    });
    assert_eq!(kinds(&run(&said, Some(&known), healthy).0), ["Application"]);
}

#[test]
fn becoming_healthy_looks_at_every_resource_and_sends_those_with_news() {
    let known = known_store();
    let event = changed(|app| {
        app["status"]["health"] = json!({"status": "Healthy"});
        app["status"]["resources"][1]["health"] = json!({"status": "Healthy"});
    });
    let news = |fetch: &Fetch| match fetch {
        Fetch::ManagedResources { .. } => body(json!({"items": [
            managed("", "Service", "web", &manifest("v1", "Service", "web", "news")),
            managed("apps", "Deployment", "web", &manifest("apps/v1", "Deployment", "web", "live")),
        ]})),
        fetch => healthy(fetch),
    };
    let (enriched, _) = run(&event, Some(&known), news);
    assert_eq!(kinds(&enriched), ["Application", "Service", "Deployment"]);
    // The service's entry did not change: without news its report would repeat the last.
    let (enriched, _) = run(&event, Some(&known), healthy);
    assert_eq!(kinds(&enriched), ["Application", "Deployment"]);
    assert_eq!(enriched.settle.as_ref().unwrap().unsent.len(), 1);
    let after = remember(Some(known), &enriched).unwrap();
    assert!(crate::State::of(&after).healthy);
    let (again, _) = run(&event, Some(&after), healthy);
    assert_eq!(again.filtered, Some(Filtered::Unchanged));
}

#[test]
fn an_older_state_is_stale_unless_it_was_read_on_purpose() {
    let known = known_store();
    let mut older = changed(|app| app["spec"]["syncPolicy"] = json!({}));
    older.version = Version(9);
    assert_eq!(run(&older, Some(&known), healthy).0.filtered, Some(Filtered::Stale));
    older.cause = Cause::Read;
    assert_eq!(kinds(&run(&older, Some(&known), healthy).0), ["Application"]);
}

#[test]
fn a_record_that_was_never_settled_sends_what_is_missing() {
    let event = event(&store());
    let (enriched, _) = run(&event, None, healthy);
    let part = enriched.reports.iter().take(2).fold(None, Record::acknowledge);
    let (rest, _) = run(&event, part.as_ref(), healthy);
    assert_eq!(kinds(&rest), ["Deployment"]);
}

#[test]
fn ends_of_coalesced_operations_are_reported_before_the_newest_state() {
    let known = known_store();
    let end = |phase: &str, at: &str| {
        OperationEnd {
            phase: phase.to_owned(),
            started_at: at.replace(":05Z", ":00Z"),
            finished_at: at.to_owned(),
            revision: "2".to_owned(),
            message: "it failed".to_owned(),
            revisions: Vec::new(),
            asked: RequestedOperation::default(),
        }
        .fact()
    };
    let mut event = changed(|app| {
        app["status"]["operationState"]["startedAt"] = json!("2026-11-21T11:30:00Z");
        app["status"]["operationState"]["finishedAt"] = json!("2026-11-21T11:30:05Z");
    });
    event.coalesced = vec![
        end("Succeeded", "2026-11-21T11:00:05Z"), // The one that is known.
        end("Failed", "2026-11-21T11:10:05Z"),
        end("Failed", "2026-11-21T11:20:05Z"),
        end("Succeeded", "2026-11-21T11:30:05Z"), // The one that the newest state shows.
    ];
    let (enriched, _) = run(&event, Some(&known), healthy);
    let told: Vec<_> = payloads(&enriched)
        .iter()
        .map(|(_, payload)| {
            let state = &object(payload)["status"]["operationState"];
            (payload["source"]["syncFinishedAt"].clone(), state["phase"].clone(), state["message"].clone())
        })
        .collect();
    assert_eq!(
        told,
        [
            (json!("2026-11-21T11:10:05Z"), json!("Failed"), json!("it failed")),
            (json!("2026-11-21T11:20:05Z"), json!("Failed"), json!("it failed")),
            (json!("2026-11-21T11:30:05Z"), json!("Succeeded"), json!("ok")),
        ]
    );
}

/// What a watch keeps of the operation that this object shows.
fn kept(app: &serde_json::Value) -> pipeline_core::Fact {
    let status: crate::Status = serde_json::from_value(app["status"].clone()).unwrap();
    status.operation_end(&Redactor::new(b"test")).unwrap().fact()
}

#[test]
fn a_coalesced_operation_is_told_as_its_own_and_not_with_what_the_next_one_was_asked_for() {
    const OTHER: &str = "0000000000000000000000000000000000000002";
    const CHANGE: &str = "0000000000000000000000000000000000000003";
    let first = {
        let mut app = store();
        app["status"]["operationState"] = json!({
            "phase": "Failed", "startedAt": "2026-11-21T11:10:00Z", "finishedAt": "2026-11-21T11:10:05Z", "message": "no",
            "operation": {
                "initiatedBy": {"automated": true},
                "sync": {"revision": REVISION, "prune": true, "changeRevision": CHANGE},
            },
            "syncResult": {"revision": REVISION, "resources": [{"kind": "Service", "name": "web", "status": "SyncFailed"}]},
        });
        app
    };
    let mut event = changed(|app| {
        app["status"]["operationState"] = json!({
            "phase": "Succeeded", "startedAt": "2026-11-21T11:30:00Z", "finishedAt": "2026-11-21T11:30:05Z",
            "message": "ok", "retryCount": 3,
            "operation": {"initiatedBy": {"username": "alice"}, "sync": {"revision": OTHER, "dryRun": true}},
            "syncResult": {"revision": OTHER, "resources": []},
        });
    });
    event.coalesced = vec![kept(&first)];
    let (enriched, asked) = run(&event, Some(&known_store()), healthy);
    let told = payloads(&enriched);
    assert_eq!(kinds(&enriched), ["Application", "Application", "Service", "Deployment"]);
    assert_eq!(
        object(&told[0].1)["status"]["operationState"],
        json!({
            "phase": "Failed", "startedAt": "2026-11-21T11:10:00Z", "finishedAt": "2026-11-21T11:10:05Z", "message": "no",
            "operation": {
                "initiatedBy": {"automated": true},
                "sync": {"revision": REVISION, "changeRevision": CHANGE},
            },
            "syncResult": {"revision": REVISION},
        })
    );
    assert_eq!(
        object(&told[1].1)["status"]["operationState"]["operation"]["initiatedBy"]["username"],
        "alice"
    );
    let commits: Vec<_> = asked
        .iter()
        .filter_map(|fetch| match fetch {
            Fetch::RevisionMetadata { revision, .. } => Some(revision.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(commits, [OTHER, REVISION, CHANGE], "each is told with its own commits");
}

#[test]
fn what_an_earlier_program_kept_of_an_operation_is_told_with_nothing_of_the_next_one() {
    let body = r#"{"phase":"Failed","started_at":"2026-11-21T10:10:00Z","finished_at":"2026-11-21T10:10:05Z",
        "revision":"abc","message":"no"}"#;
    let fact = pipeline_core::Fact { id: pipeline_core::Digest(7), body: body.into() };
    let event = Event { coalesced: vec![fact], ..event(&store()) };
    let (enriched, _) = run(&event, None, healthy);
    let operation = &object(&payloads(&enriched)[0].1)["status"]["operationState"]["operation"];
    assert_eq!(operation, &json!({"initiatedBy": {}, "sync": {"revision": "abc"}}));
}

#[test]
fn an_operation_that_is_tried_again_keeps_what_it_was_asked_for() {
    let mut event = event(&store());
    let mut tried = store();
    tried["status"]["operationState"]["phase"] = json!("Running");
    tried["status"]["operationState"]["finishedAt"] = json!("2026-11-21T11:00:02Z");
    event.coalesced = vec![kept(&tried)];
    let (enriched, _) = run(&event, None, healthy);
    let state = &object(&payloads(&enriched)[0].1)["status"]["operationState"];
    assert_eq!((&state["phase"], &state["syncResult"]["resources"]), (&json!("Running"), &json!([])));
}

#[test]
fn a_fact_that_cannot_be_read_is_found_and_the_others_are_told() {
    let bad = pipeline_core::Fact { id: pipeline_core::Digest(7), body: "not ours".into() };
    let event = Event { coalesced: vec![bad.clone(), failed()], ..changed(|_| ()) };
    assert_eq!(super::super::unreadable(&event).collect::<Vec<_>>(), [&bad]);
    assert_eq!(super::super::untold(&event, None, None).len(), 1);
}

#[test]
fn the_end_of_a_coalesced_operation_is_redacted_wherever_it_comes_from() {
    let secret = r#"{"apiVersion":"v1","data":{"password":"aHVudGVyMi1odW50ZXIy"},"kind":"Secret"}"#;
    for message in [
        "git fetch https://me:aHVudGVyMi1odW50ZXIy@git.example.com/x: it failed".to_owned(),
        format!("invalid object: {secret}"),
    ] {
        let mut event = event(&store());
        event.coalesced = vec![
            OperationEnd {
                phase: "Failed".to_owned(),
                started_at: "2026-11-21T10:10:00Z".to_owned(),
                finished_at: "2026-11-21T10:10:05Z".to_owned(),
                revision: REVISION.to_owned(),
                message,
                revisions: Vec::new(),
                asked: RequestedOperation::default(),
            }
            .fact(),
        ];
        let (enriched, _) = run(&event, None, healthy);
        let told = payloads(&enriched);
        let state = &object(&told[0].1)["status"]["operationState"];
        assert_eq!((&state["phase"], &state["syncResult"]["revision"]), (&json!("Failed"), &json!(REVISION)));
        assert_ne!(state["message"], "", "it is withheld, not forgotten");
        for report in &enriched.reports {
            let body = String::from_utf8_lossy(&report.body);
            assert!(!body.contains("aHVudGVyMi1odW50ZXIy"), "{body}");
        }
    }
}

#[test]
fn deletions() {
    let known = known_store();
    // Deleted, with its last state: one report, no resource, and the record ends.
    let (enriched, asked) = run(&deleted(&store()), Some(&known), healthy);
    assert_eq!(kinds(&enriched), ["Application"]);
    assert!(enriched.reports[0].ends && enriched.settle.is_none() && asked.is_empty());
    assert_eq!(remember(Some(known.clone()), &enriched), None);
    let deletion = payload(&enriched, "Application");
    assert_eq!(deletion["source"]["actualManifest"], "");
    assert_eq!(object(&deletion)["metadata"]["deletionTimestamp"], NOW);
    // Marked for deletion is not yet deleted.
    let going = changed(|app| app["metadata"]["deletionTimestamp"] = json!("2026-11-21T11:59:59Z"));
    let (enriched, _) = run(&going, Some(&known), healthy);
    assert!(!enriched.reports[0].ends);
    // Nobody saw it go: a stub of what is remembered.
    let gone = Event { change: Change::Deleted { body: None }, ..event(&store()) };
    let (enriched, _) = run(&gone, Some(&known), healthy);
    let stub = payload(&enriched, "Application");
    assert!(enriched.reports[0].ends);
    assert_eq!(stub["source"]["repoURL"], "https://git.example.com/mono.git");
    assert_eq!(stub["source"]["cluster"], "https://kubernetes.default.svc");
    assert_eq!(object(&stub)["metadata"]["uid"], "u1");
    assert_eq!(object(&stub)["metadata"]["deletionTimestamp"], NOW);
    // It came and went before it could be read: its end is told, and nothing else is known.
    let (enriched, asked) = run(&gone, None, healthy);
    assert!(enriched.reports[0].ends && enriched.reports.len() == 1 && asked.is_empty());
    let stub = payload(&enriched, "Application");
    assert_eq!(object(&stub)["metadata"]["uid"], "u1");
    assert_eq!(stub["source"]["repoURL"], "");
    let unknown = Event { uid: "".into(), ..gone };
    assert_eq!(run(&unknown, None, healthy).0.filtered, Some(Filtered::NeverReported));
    // A body that cannot be read does not hide the deletion.
    let unreadable = Event { change: Change::Deleted { body: Some("{".into()) }, ..event(&store()) };
    assert!(run(&unreadable, Some(&known), healthy).0.reports[0].ends);
}

/// The end of an operation that [`store`] does not show.
pub(super) fn failed() -> pipeline_core::Fact {
    OperationEnd {
        phase: "Failed".to_owned(),
        started_at: "2026-11-21T11:10:00Z".to_owned(),
        finished_at: "2026-11-21T11:10:05Z".to_owned(),
        revision: String::new(),
        message: String::new(),
        revisions: Vec::new(),
        asked: RequestedOperation::default(),
    }
    .fact()
}

#[test]
fn an_operation_that_ended_before_the_deletion_is_not_lost() {
    let known = known_store();
    let event = Event { coalesced: vec![failed()], ..deleted(&store()) };
    let (enriched, _) = run(&event, Some(&known), healthy);
    let ends: Vec<_> = enriched.reports.iter().map(|report| report.ends).collect();
    assert_eq!(ends, [false, true]);
    let told = payloads(&enriched);
    assert_ne!(told[0].1["source"]["actualManifest"], "");
    assert_eq!(object(&told[0].1)["metadata"].get("deletionTimestamp"), None);
    assert_eq!(object(&told[1].1)["metadata"]["deletionTimestamp"], NOW);
    assert_eq!(remember(Some(known), &enriched), None);
}

#[test]
fn a_retried_deletion_has_the_same_content() {
    let known = known_store();
    let content = |at: &str| {
        let (settings, redactor) = (settings(RawManifests::Absent), Redactor::new(b"test"));
        let attempt = Attempt::at(at.parse().unwrap());
        let event = deleted(&store());
        match FetchPlan::begin(&event, Some(&known), &attempt, &settings, &redactor).unwrap() {
            Begun::Go(plan) => plan.finish().unwrap().reports[0].content,
            Begun::Done(_) => panic!("a deletion is reported"),
        }
    };
    assert_eq!(content("2026-11-21T12:00:00Z"), content("2026-11-21T13:00:00Z"));
}

#[test]
fn another_life_begins_with_the_end_of_the_first() {
    let known = known_store();
    let event = changed(|app| app["metadata"]["uid"] = json!("u2"));
    let (enriched, _) = run(&event, Some(&known), healthy);
    assert_eq!(kinds(&enriched), ["Application", "Application", "Service", "Deployment"]);
    let lives: Vec<_> = enriched.reports.iter().map(|report| (&*report.uid, report.ends)).collect();
    assert_eq!(lives, [("u1", true), ("u2", false), ("u2", false), ("u2", false)]);
    assert_eq!(&*remember(Some(known), &enriched).unwrap().uid, "u2");
}

#[test]
fn a_late_event_of_an_earlier_life_does_not_end_the_later_one() {
    let known = known_store();
    let earlier = |version: &str| {
        let mut object = store();
        object["metadata"]["uid"] = json!("u0");
        object["metadata"]["resourceVersion"] = json!(version);
        object
    };
    let bodiless = |object: &Value| Event { change: Change::Deleted { body: None }, ..event(object) };
    // The record was acknowledged at 10.
    let late = earlier("9");
    for event in [deleted(&late), bodiless(&late)] {
        let (enriched, asked) = run(&event, Some(&known), healthy);
        assert_eq!(enriched.filtered, Some(Filtered::Stale));
        assert!(enriched.reports.is_empty() && enriched.settle.is_none() && asked.is_empty());
    }
    // What is there is there: a cluster that was built anew counts its versions from the start.
    let (enriched, _) = run(&event(&late), Some(&known), healthy);
    let lives: Vec<_> = enriched.reports.iter().map(|report| (&*report.uid, report.ends)).collect();
    assert_eq!(lives[..2], [("u1", true), ("u0", false)]);
    // A later state, or an unknown one, is of a later life: the remembered one has ended.
    for version in ["11", "0"] {
        let (enriched, _) = run(&deleted(&earlier(version)), Some(&known), healthy);
        assert_eq!((&*enriched.reports[0].uid, enriched.reports[0].ends), ("u1", true));
    }
}
