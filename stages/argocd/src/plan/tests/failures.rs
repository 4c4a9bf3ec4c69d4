//! What failed calls do to a plan.

use pipeline_core::{Cause, Event, Reason};
use serde_json::{Value, json};

use super::super::needs::MOST_BY_THEMSELVES;
use super::*;

fn failing(which: &'static str) -> impl FnMut(&Fetch) -> Response {
    move |fetch| {
        if fetch.call().as_str() == which { Response::Failed(Reason::Timeout) } else { healthy(fetch) }
    }
}

#[test]
fn managed_resources_are_waited_for_and_then_done_without() {
    let event = event(&store());
    let upstream = settings(RawManifests::Absent);
    let run_for = |seconds| {
        let trying = Duration::from_secs(seconds);
        run_with(&event, None, &upstream, trying, failing("managed_resources")).0
    };
    let error = run_for(0).unwrap_err();
    assert!(error.is_retry());
    assert_eq!((error.to_string().as_str(), error.reason()), ("read managed resources", Reason::Timeout));
    let enriched = run_for(300).unwrap();
    assert_eq!(kinds(&enriched), ["Application"]);
    assert_eq!(enriched.refetch, Some(Refetch::Incomplete));
    // The resources are incomplete: looked at again though nothing changed.
    let known = remember(None, &enriched).unwrap();
    assert!(known.is_incomplete());
    let refetch = Event { cause: Cause::Refetch, ..event };
    let (later, _) = run(&refetch, Some(&known), healthy);
    assert_eq!(kinds(&later), ["Service", "Deployment"]);
    assert!(!remember(Some(known), &later).unwrap().is_incomplete());
}

#[test]
fn an_application_that_is_not_compared_is_reported_at_once_and_its_resources_when_it_is_again() {
    for (major, app) in [(2, store()), (3, store_with_health_in_tree())] {
        let mut app = app;
        app["status"]["resources"][0]["status"] = json!("OutOfSync");
        let known = remember(None, &run(&event(&app), None, healthy).0).unwrap();
        let mut invalid = app.clone();
        invalid["metadata"]["resourceVersion"] = json!("11");
        invalid["status"]["sync"]["status"] = json!("Unknown");
        invalid["status"]["health"]["status"] = json!("Unknown");
        invalid["status"]["conditions"] = json!([{"type": "InvalidSpecError", "message": "not permitted"}]);
        // Argo CD empties the tree and drops the states.
        let not_compared = |fetch: &Fetch| match fetch {
            Fetch::ManagedResources { .. } => Response::NotCompared,
            Fetch::ResourceTree { .. } => body(json!({})),
            fetch => healthy(fetch),
        };
        let (enriched, asked) = run(&event(&invalid), Some(&known), not_compared);
        assert_eq!(kinds(&enriched), ["Application"], "Argo CD {major}");
        assert!(!calls(&asked).contains(&"resource"), "Argo CD {major} knows of none");
        let known = remember(Some(known), &enriched).unwrap();
        // The next change does not wait either.
        invalid["spec"]["syncPolicy"] = json!({});
        let (next, _) = run(&event(&invalid), Some(&known), not_compared);
        assert_eq!(kinds(&next), ["Application"], "Argo CD {major}");
        let known = remember(Some(known), &next).unwrap();
        app["metadata"]["resourceVersion"] = json!("12");
        app["status"]["resources"][1]["status"] = json!("OutOfSync");
        let (again, _) = run(&event(&app), Some(&known), healthy);
        assert_eq!(kinds(&again), ["Application", "Deployment"], "Argo CD {major}");
    }
}

fn with_managed(response: Response) -> impl FnMut(&Fetch) -> Response {
    move |fetch| match fetch {
        Fetch::ManagedResources { .. } => response.clone(),
        fetch => healthy(fetch),
    }
}

#[test]
fn an_application_whose_states_are_not_held_is_reported_at_once_and_its_resources_once_they_are() {
    // As Argo CD answers whose cache holds nothing, where a project does not allow the application, and where it is another's or a
    // right is missing.
    let failures = [Reason::Refused, Reason::Forbidden].map(Response::Failed);
    for response in [Response::NotHeld].into_iter().chain(failures) {
        for (major, app) in [(2, store()), (3, store_with_health_in_tree())] {
            let event = event(&app);
            let (enriched, _) = run(&event, None, with_managed(response.clone()));
            assert_eq!(kinds(&enriched), ["Application"], "Argo CD {major}: {response:?}");
            assert_eq!(enriched.refetch, Some(Refetch::Incomplete), "Argo CD {major}: {response:?}");
            let known = remember(None, &enriched).unwrap();
            let refetch = Event { cause: Cause::Refetch, ..event };
            let (later, _) = run(&refetch, Some(&known), healthy);
            assert_eq!(kinds(&later), ["Service", "Deployment"], "Argo CD {major}: {response:?}");
            assert!(!remember(Some(known), &later).unwrap().is_incomplete());
        }
    }
}

#[test]
fn resources_whose_states_together_are_too_large_are_reported_as_they_are_one_by_one() {
    let one_by_one = |fetch: &Fetch| match fetch {
        Fetch::ManagedResources { .. } => Response::Failed(Reason::TooLarge),
        Fetch::Resource { resource, .. } if resource.kind == "Service" => {
            body(json!({"manifest": manifest("v1", "Service", "web", "live").to_string()}))
        }
        Fetch::Resource { .. } => Response::NotFound,
        fetch => healthy(fetch),
    };
    for (major, app) in [(2, store()), (3, store_with_health_in_tree())] {
        let mut app = app;
        app["status"]["resources"][0]["status"] = json!("OutOfSync");
        let (enriched, asked) = run(&event(&app), None, one_by_one);
        assert_eq!(kinds(&enriched), ["Application", "Service", "Deployment"], "Argo CD {major}");
        assert_eq!(calls(&asked).iter().filter(|call| **call == "resource").count(), 2, "Argo CD {major}");
        let service = payload(&enriched, "Service");
        let source = |name: &str| -> Value {
            serde_json::from_str(service["source"][name].as_str().unwrap()).unwrap()
        };
        assert_eq!(source("actualManifest")["spec"]["state"], "live", "Argo CD {major}");
        assert_eq!(source("desiredManifest")["spec"]["state"], "desired", "Argo CD {major}");
        // It is all there is to tell: nothing is asked for again.
        assert_eq!(enriched.refetch, None, "Argo CD {major}");
        let known = remember(None, &enriched).unwrap();
        assert!(!known.is_incomplete(), "Argo CD {major}");
        app["metadata"]["resourceVersion"] = json!("11");
        app["status"]["reconciledAt"] = json!("2026-11-21T12:01:00Z");
        let (quiet, _) = run(&event(&app), Some(&known), one_by_one);
        assert!(quiet.reports.is_empty() && quiet.refetch.is_none(), "Argo CD {major}");
        app["metadata"]["resourceVersion"] = json!("12");
        app["status"]["resources"][0]["status"] = json!("Synced");
        let (later, _) = run(&event(&app), Some(&known), one_by_one);
        assert_eq!(kinds(&later), ["Application", "Service"], "Argo CD {major}");
    }
}

#[test]
fn of_more_states_than_are_asked_for_one_by_one_the_rest_are_had_when_it_is_looked_at_again() {
    let one = |n: usize| {
        let name = format!("c{n}");
        json!({"version": "v1", "kind": "ConfigMap", "namespace": "store", "name": name, "status": "Synced"})
    };
    let mut app = store();
    app["status"]["resources"] = (0..=MOST_BY_THEMSELVES).map(one).collect();
    let one_by_one = |fetch: &Fetch| match fetch {
        Fetch::ManagedResources { .. } => Response::Failed(Reason::TooLarge),
        Fetch::Resource { .. } => Response::NotFound,
        fetch => healthy(fetch),
    };
    let by_themselves = |asked: &[Fetch]| calls(asked).iter().filter(|call| **call == "resource").count();
    let (first, asked) = run(&event(&app), None, one_by_one);
    assert_eq!((first.reports.len(), by_themselves(&asked)), (1 + MOST_BY_THEMSELVES, MOST_BY_THEMSELVES));
    assert_eq!(first.refetch, Some(Refetch::Incomplete));
    let known = remember(None, &first).unwrap();
    let refetch = Event { cause: Cause::Refetch, ..event(&app) };
    let (rest, asked) = run(&refetch, Some(&known), one_by_one);
    assert_eq!((rest.reports.len(), by_themselves(&asked)), (1, 1));
    assert_eq!(rest.refetch, None);
    assert!(!remember(Some(known), &rest).unwrap().is_incomplete());

    // What is new goes before what is only looked at again.
    let mut incomplete = remember(None, &first).unwrap();
    for row in incomplete.entities.iter_mut().filter(|row| !row.id.is_object()) {
        row.incomplete = true;
    }
    let (new, _) = run(&refetch, Some(&incomplete), one_by_one);
    assert_eq!(new.reports.len(), 1, "of that which was never reported");
}

#[test]
fn neither_states_nor_health_of_what_is_not_held_are_made_up() {
    let unheld = |fetch: &Fetch| match fetch {
        Fetch::ManagedResources { .. } | Fetch::ResourceTree { .. } | Fetch::Resource { .. } => {
            Response::NotHeld
        }
        fetch => healthy(fetch),
    };
    let mut app = store_with_health_in_tree();
    let hook = json!({"group": "batch", "version": "v1", "kind": "Job", "namespace": "store", "name": "hook", "hook": true});
    app["status"]["resources"].as_array_mut().unwrap().push(hook);
    let known = remember(None, &run(&event(&app), None, healthy).0).unwrap();
    app["metadata"]["resourceVersion"] = json!("11");
    app["metadata"]["annotations"] = json!({"argocd.argoproj.io/refresh": "normal"});
    let (enriched, _) = run(&event(&app), Some(&known), unheld);
    assert_eq!(kinds(&enriched), ["Application"]);
    assert_eq!(enriched.refetch, Some(Refetch::Incomplete));
    let known = remember(Some(known), &enriched).unwrap();
    // Only reconciled: nothing is known of health that moved, and it is looked at again.
    app["metadata"]["resourceVersion"] = json!("12");
    app["status"]["reconciledAt"] = json!("2026-11-21T12:01:00Z");
    let (quiet, _) = run(&event(&app), Some(&known), unheld);
    assert!(quiet.reports.is_empty());
    assert_eq!(quiet.refetch, Some(Refetch::Incomplete));
}

#[test]
fn what_may_have_drifted_is_looked_at_again_where_its_states_are_not_held() {
    let mut app = store();
    app["status"]["resources"][0]["status"] = json!("OutOfSync");
    let known = remember(None, &run(&event(&app), None, healthy).0).unwrap();
    app["metadata"]["resourceVersion"] = json!("11");
    app["status"]["reconciledAt"] = json!("2026-11-21T12:01:00Z");
    let (enriched, _) = run(&event(&app), Some(&known), with_managed(Response::NotHeld));
    assert!(enriched.reports.is_empty());
    assert_eq!(enriched.refetch, Some(Refetch::Incomplete));
}

#[test]
fn a_child_whose_parent_is_refused_is_a_root_until_it_is_not() {
    let mut child = store();
    child["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/tracking-id": "parent:argoproj.io/Application:argocd/store"});
    let refused = |fetch: &Fetch| match fetch {
        Fetch::Parent { .. } => Response::Failed(Reason::Refused),
        fetch => healthy(fetch),
    };
    let (enriched, _) = run(&event(&child), None, refused);
    assert_eq!(enriched.reports[0].kind, crate::labels::APP_REPORT);
    assert!(enriched.reports[0].incomplete);
    assert_eq!(enriched.refetch, Some(Refetch::Incomplete));
}

#[test]
fn a_report_without_its_commit_is_incomplete_and_made_up_for() {
    let event = event(&store());
    let (enriched, _) = run(&event, None, failing("revision_metadata"));
    assert_eq!(kinds(&enriched).len(), 3);
    assert!(enriched.reports.iter().all(|report| report.incomplete));
    assert_eq!(enriched.refetch, Some(Refetch::Incomplete));
    let known = remember(None, &enriched).unwrap();
    let refetch = Event { cause: Cause::Refetch, ..event };
    let (later, _) = run(&refetch, Some(&known), healthy);
    assert_eq!(kinds(&later), ["Application", "Service", "Deployment"]);
    assert_eq!(payload(&later, "Service")["source"]["commitMessage"], "Add web");
    assert_eq!(later.refetch, None);
    let known = remember(Some(known), &later).unwrap();
    assert!(!known.is_incomplete());
    // Still missing, and nothing else to say: nothing is sent.
    let again = remember(None, &enriched).unwrap();
    let (same, _) = run(&refetch, Some(&again), failing("revision_metadata"));
    assert!(same.reports.is_empty() && same.refetch.is_some());
    assert!(remember(Some(again), &same).unwrap().is_incomplete());
}

#[test]
fn a_resource_that_cannot_be_read_is_left_out_and_not_remembered() {
    let mut app = store();
    app["status"]["resources"] = json!([{"group": "batch", "version": "v1", "kind": "Job",
        "namespace": "store", "name": "hook", "hook": true}]);
    let event = event(&app);
    let (enriched, _) = run(&event, None, failing("resource"));
    assert_eq!(kinds(&enriched), ["Application"]);
    assert!(enriched.refetch.is_some());
    let known = remember(None, &enriched).unwrap();
    let refetch = Event { cause: Cause::Refetch, ..event };
    assert_eq!(kinds(&run(&refetch, Some(&known), healthy).0), ["Job"]);
}

#[test]
fn manifests_that_fail_fall_back_to_the_target_state() {
    let event = event(&store());
    let fork = settings(RawManifests::Served);
    let (result, _) = run_with(&event, None, &fork, Duration::ZERO, failing("manifests"));
    let enriched = result.unwrap();
    let service = payload(&enriched, "Service");
    let desired: Value =
        serde_json::from_str(service["source"]["desiredManifest"].as_str().unwrap()).unwrap();
    assert_eq!(desired["spec"]["state"], "desired");
    assert!(enriched.refetch.is_some());
}

#[test]
fn not_found_is_an_answer() {
    let event = event(&store());
    let (enriched, asked) = run(&event, None, |_| Response::NotFound);
    assert_eq!(kinds(&enriched), ["Application", "Service", "Deployment"]);
    assert_eq!(enriched.refetch, None);
    assert!(!calls(&asked).contains(&"resource"), "an application that is gone has no resources to ask for");
}

#[test]
fn a_body_that_is_not_what_it_should_be_is_a_failed_call() {
    let nonsense = |fetch: &Fetch| match fetch {
        Fetch::RevisionMetadata { .. } => Response::Body("<html>".into()),
        fetch => healthy(fetch),
    };
    let (enriched, _) = run(&event(&store()), None, nonsense);
    assert!(enriched.refetch.is_some());
}

#[test]
fn what_manifests_are_like_is_learned() {
    let responses = [
        (json!({"manifests": ["{}"]}), Some(RawManifests::Absent)),
        (json!({"manifests": [{"compiledManifest": "{}"}]}), Some(RawManifests::Served)),
        (json!({"manifests": [], "applicationVersions": {}}), Some(RawManifests::Served)),
        (json!({"manifests": []}), None),
        (json!({}), None),
    ];
    for (response, learned) in responses {
        let (settings, redactor) = (Settings::default(), Redactor::new(b"test"));
        let (store, attempt) = (store(), attempt(Duration::ZERO));
        let event = event(&store);
        let Ok(Begun::Go(mut plan)) = FetchPlan::begin(&event, None, &attempt, &settings, &redactor) else {
            panic!("a first report is begun");
        };
        let fetches = plan.fetches();
        let fetch = fetches.iter().find(|fetch| matches!(fetch, Fetch::Manifests { .. })).unwrap();
        plan.respond(fetch, body(response.clone()));
        assert_eq!(plan.learned(), learned, "{response}");
    }
}
