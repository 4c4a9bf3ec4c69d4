//! What was sent and not answered for certain is reported again, whether it changed or not; and nothing else is.

use pipeline_core::{Cause, Event, Filtered, Reason, Report, Shipment};
use serde_json::{Value, json};

use super::*;
use crate::labels;

/// What is remembered when nothing of `enriched` was answered for certain.
fn unanswered(known: Record, reports: &[Report]) -> Record {
    reports.iter().fold(known, |record, report| Record::sending(Some(record), report, None).unwrap())
}

fn keys(enriched: &Enriched, known: &Record) -> Vec<String> {
    let key = |report: &Report| {
        let counter = known.counter(report.entity);
        Shipment::new(report.clone(), "ledger", "platform", counter).idempotency_key.to_string()
    };
    enriched.reports.iter().map(key).collect()
}

/// The state A is acknowledged, a report of B is not answered, and A returns.
fn there_and_back(
    a: &Value,
    b: &Value,
    mut response: impl FnMut(&Fetch, &Value) -> Response,
) -> (Vec<String>, Vec<String>) {
    let first = run(&event(a), None, |fetch| response(fetch, a)).0;
    let known = remember(None, &first).unwrap();
    let away = run(&event(b), Some(&known), |fetch| response(fetch, b)).0;
    let known = unanswered(known, &away.reports);
    let back = run(&event(a), Some(&known), |fetch| response(fetch, a)).0;
    assert_eq!(back.filtered, None);
    // The receiver may hold B: A comes under a key that it has not seen, until it is acknowledged.
    let keys = keys(&back, &known);
    assert!(first.reports.iter().all(|report| {
        let seen = Shipment::new(report.clone(), "ledger", "platform", 0).idempotency_key;
        !keys.contains(&seen.to_string())
    }));
    assert!(known.is_in_doubt());
    let known = remember(Some(known), &back).unwrap();
    assert!(!known.is_in_doubt());
    let same = run(&event(a), Some(&known), |fetch| response(fetch, a)).0;
    assert!(same.reports.is_empty(), "once it is acknowledged it is sure");
    (kinds(&away), kinds(&back))
}

#[test]
fn what_returns_to_its_acknowledged_state_is_reported_again() {
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut other = store();
        change(&mut other);
        other
    };
    let application = changed(&|app| app["status"]["sourceType"] = json!("Helm"));
    let resource = changed(&|app| app["status"]["resources"][1]["health"] = json!({"status": "Degraded"}));
    let mut child = store();
    child["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/tracking-id": "parent:argoproj.io/Application:argocd/store"});
    let mut other_child = child.clone();
    other_child["status"]["sourceType"] = json!("Helm");
    let responses = |fetch: &Fetch, _: &Value| match fetch {
        Fetch::Parent { .. } => body(store()),
        fetch => healthy(fetch),
    };
    for (what, a, b, told) in [
        ("the application", store(), application, vec!["Application"]),
        ("a resource", store(), resource, vec!["Application", "Deployment"]),
        ("a child application", child, other_child, vec!["Application"]),
    ] {
        let (away, back) = there_and_back(&a, &b, responses);
        assert_eq!(away, told, "{what}");
        assert_eq!(back, told, "{what}");
    }
}

#[test]
fn a_resource_whose_health_returns_in_the_tree_is_reported_again() {
    let health = |status: &str| {
        body(json!({"nodes": [
            {"version": "v1", "kind": "Service", "namespace": "store", "name": "web", "health": {"status": "Healthy"}},
            {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "store", "name": "web",
                "health": {"status": status}},
        ]}))
    };
    let response = |fetch: &Fetch, app: &Value| match fetch {
        Fetch::ResourceTree { .. } if app["status"]["reconciledAt"] == "2026-11-21T12:30:00Z" => {
            health("Degraded")
        }
        Fetch::ResourceTree { .. } => health("Healthy"),
        fetch => healthy(fetch),
    };
    let a = store_with_health_in_tree();
    let mut b = a.clone();
    b["status"]["reconciledAt"] = json!("2026-11-21T12:30:00Z");
    let (away, back) = there_and_back(&a, &b, response);
    assert_eq!((away, back), (vec!["Deployment".to_owned()], vec!["Deployment".to_owned()]));
}

/// The record of [`store_with_health_in_tree`], with one resource that nothing is sure of.
fn with_deployment_in_doubt(app: &Value) -> (Event, Record) {
    let event = event(app);
    let (enriched, _) = run(&event, None, healthy);
    let known = remember(None, &enriched).unwrap();
    (event, unanswered(known, &enriched.reports[2..]))
}

#[test]
fn a_retry_carries_the_same_key_and_only_what_is_not_sure_is_looked_at() {
    let (event, known) = with_deployment_in_doubt(&store());
    let (first, asked) = run(&event, Some(&known), healthy);
    assert_eq!(kinds(&first), ["Deployment"]);
    assert_eq!(calls(&asked), ["resource_tree", "managed_resources", "revision_metadata"]);
    let again = unanswered(known.clone(), &first.reports);
    let (second, _) = run(&event, Some(&again), healthy);
    assert_eq!(keys(&first, &known), keys(&second, &again));
    // Not sure of the application alone: no resource is forced.
    let mut application = known_store();
    application.object_mut().in_doubt = true;
    assert_eq!(kinds(&run(&event, Some(&application), healthy).0), ["Application"]);
    let mut all = application;
    all.doubt();
    assert_eq!(kinds(&run(&event, Some(&all), healthy).0), ["Application", "Service", "Deployment"]);
}

#[test]
fn a_tree_that_is_not_had_leaves_what_is_in_doubt_incomplete() {
    let (event, known) = with_deployment_in_doubt(&store_with_health_in_tree());
    // Never left out because it was read just before.
    let (_, asked) = run(&event, Some(&known), healthy);
    assert!(matches!(asked[0], Fetch::ResourceTree { paced: false, .. }), "{asked:?}");
    for response in [Response::Skipped, Response::Failed(Reason::Timeout)] {
        let (none, _) = run(&event, Some(&known), |fetch| match fetch {
            Fetch::ResourceTree { .. } => response.clone(),
            fetch => healthy(fetch),
        });
        assert!(none.reports.is_empty() && none.refetch.is_some(), "{response:?}");
        let known = remember(Some(known.clone()), &none).unwrap();
        assert!(known.is_in_doubt(), "only an acknowledgement makes it sure");
        let refetch = Event { cause: Cause::Refetch, ..event.clone() };
        assert_eq!(kinds(&run(&refetch, Some(&known), healthy).0), ["Deployment"]);
    }
}

#[test]
fn a_failed_tree_spoils_no_resource_when_only_the_application_is_not_sure() {
    let (event, mut known) = with_deployment_in_doubt(&store_with_health_in_tree());
    known.object_mut().in_doubt = true;
    let (enriched, _) = run(&event, Some(&known), |fetch| match fetch {
        Fetch::ResourceTree { .. } => Response::Failed(Reason::Timeout),
        fetch => healthy(fetch),
    });
    assert_eq!(kinds(&enriched), ["Application"]);
    assert!(enriched.refetch.is_some());
}

#[test]
fn a_resource_whose_state_cannot_be_had_stays_in_doubt() {
    let (event, known) = with_deployment_in_doubt(&store());
    let upstream = settings(RawManifests::Absent);
    let (result, _) =
        run_with(&event, Some(&known), &upstream, Duration::from_secs(300), |fetch| match fetch {
            Fetch::ManagedResources { .. } => Response::Failed(Reason::Timeout),
            fetch => healthy(fetch),
        });
    let enriched = result.unwrap();
    assert!(enriched.reports.is_empty() && enriched.refetch.is_some());
    let known = remember(Some(known), &enriched).unwrap();
    assert!(known.is_in_doubt() && known.is_incomplete());
    assert_eq!(kinds(&run(&event, Some(&known), healthy).0), ["Deployment"]);
}

#[test]
fn a_resource_that_left_is_not_waited_for() {
    let (_, known) = with_deployment_in_doubt(&store());
    let mut app = store();
    app["status"]["resources"].as_array_mut().unwrap().pop();
    let (enriched, _) = run(&event(&app), Some(&known), healthy);
    assert_eq!(kinds(&enriched), ["Application"]);
    let known = remember(Some(known), &enriched).unwrap();
    assert_eq!(run(&event(&app), Some(&known), healthy).0.filtered, Some(Filtered::Unchanged));
    assert!(kinds(&run(&event(&store()), Some(&known), healthy).0).contains(&"Deployment".to_owned()));
}

#[test]
fn an_older_state_does_not_overtake_the_one_that_is_not_sure() {
    let (mut event, mut known) = with_deployment_in_doubt(&store());
    event.version = Version(9);
    known.doubt();
    assert_eq!(run(&event, Some(&known), healthy).0.filtered, Some(Filtered::Stale));
    event.version = known.version;
    assert_eq!(run(&event, Some(&known), healthy).0.filtered, None);
}

fn end(minute: u32) -> pipeline_core::Fact {
    crate::OperationEnd {
        phase: "Failed".to_owned(),
        started_at: format!("2026-11-21T11:{minute}:00Z"),
        finished_at: format!("2026-11-21T11:{minute}:05Z"),
        revision: "2".to_owned(),
        message: "it failed".to_owned(),
        revisions: Vec::new(),
        asked: crate::RequestedOperation::default(),
    }
    .fact()
}

#[test]
fn an_end_that_was_acknowledged_is_not_told_again_wherever_the_delivery_was_cut_off() {
    let before = known_store();
    let mut app = store();
    app["status"]["operationState"]["startedAt"] = json!("2026-11-21T11:30:00Z");
    app["status"]["operationState"]["finishedAt"] = json!("2026-11-21T11:30:05Z");
    let event = Event { coalesced: vec![end(10), end(20)], ..event(&app) };
    let (all, _) = run(&event, Some(&before), healthy);
    let shown: Vec<_> = all.reports.iter().map(|report| report.fact).collect();
    assert!(matches!(shown[..], [Some(_), Some(_), None]), "{shown:?}");
    let first_keys = keys(&all, &before);
    for taken in 0..=all.reports.len() {
        let mut known = before.clone();
        for report in &all.reports[..taken] {
            known = Record::acknowledge(Some(known), report).unwrap();
        }
        // All but the last that was told the ledger takes out of the event.
        let coalesced = event.coalesced.iter().skip(taken.min(2).saturating_sub(1)).cloned().collect();
        let (rest, _) = run(&Event { coalesced, ..event.clone() }, Some(&known), healthy);
        let told: Vec<_> = rest.reports.iter().map(|report| report.fact).collect();
        match taken {
            // The application's decision has not moved, but its content has: nothing is sent again.
            3 => assert_eq!(rest.filtered, Some(Filtered::SameContent)),
            _ => assert_eq!(told, shown[taken..], "after {taken}"),
        }
    }
    // Taken, and the process died before it was noted: the same keys.
    assert_eq!(keys(&run(&event, Some(&before), healthy).0, &before), first_keys);
    // The delivery was settled, and the process died before the ends were struck off.
    let settled = remember(Some(before), &all).unwrap();
    let (again, _) = run(&event, Some(&settled), healthy);
    let again = keys(&again, &settled);
    assert_eq!(again[..2], first_keys[..2], "the end of an operation happens once");
}

#[test]
fn ends_of_a_life_that_nobody_saw_go_are_told_before_its_own() {
    let known = known_store();
    let mut event = event(&store());
    event.change = pipeline_core::Change::Deleted { body: None };
    event.coalesced = vec![end(10), end(20)];
    let (enriched, asked) = run(&event, Some(&known), healthy);
    assert!(asked.is_empty());
    let told: Vec<_> = enriched.reports.iter().map(|report| (report.kind, report.ends)).collect();
    assert_eq!(told, [(labels::APP_REPORT, false), (labels::APP_REPORT, false), (labels::APP_REPORT, true)]);
    let [(_, first), (_, second), (_, last)] = &payloads(&enriched)[..] else { panic!("three reports") };
    assert_eq!(first["source"]["syncFinishedAt"], "2026-11-21T11:10:05Z");
    assert_eq!(first["source"]["repoURL"], "https://git.example.com/mono.git");
    assert_eq!(object(second)["status"]["operationState"]["message"], "it failed");
    assert_eq!(object(second)["metadata"].get("deletionTimestamp"), None);
    assert_eq!(object(last)["metadata"]["deletionTimestamp"], NOW);
    assert_eq!(object(last)["status"].get("operationState"), None);
    // Not those that were acknowledged.
    let after = Record::acknowledge(Some(known), &enriched.reports[0]);
    assert_eq!(run(&event, after.as_ref(), healthy).0.reports.len(), 2);
    assert_eq!(remember(after, &enriched), None);
}

#[test]
fn a_deletion_has_one_key_however_it_is_told() {
    let known = known_store();
    let watched = run(&deleted(&store()), Some(&known), healthy).0;
    let unseen = Event { change: pipeline_core::Change::Deleted { body: None }, ..event(&store()) };
    let told = run(&unseen, Some(&known), healthy).0;
    assert_ne!(watched.reports[0].content, told.reports[0].content);
    assert_eq!(keys(&watched, &known), keys(&told, &known));
    let mut moved = known.clone();
    moved.object_mut().counter += 1;
    assert_eq!(keys(&watched, &known), keys(&told, &moved), "whatever was acknowledged before");
    let unsettled = run(&unseen, None, healthy).0;
    assert_eq!(keys(&watched, &known), keys(&unsettled, &Record::new("u1".into())));
}
