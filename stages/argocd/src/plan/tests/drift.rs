//! A resource that is not in sync may drift further, of which nothing in its application tells.

use pipeline_core::{Cause, Filtered, Reason};
use serde_json::{Value, json};

use super::*;
use crate::labels;

const MINUTE: Duration = Duration::from_secs(60);

/// The service is not in sync, as an Argo CD of this major version says it.
fn drifted(major: u32) -> Value {
    let mut app = if major == 2 { store() } else { store_with_health_in_tree() };
    app["status"]["sync"]["status"] = json!("OutOfSync");
    app["status"]["resources"][0]["status"] = json!("OutOfSync");
    app
}

/// The same after a refresh that found nothing else.
fn refreshed(app: &Value) -> Event {
    let mut app = app.clone();
    app["metadata"]["resourceVersion"] = json!("11");
    app["status"]["reconciledAt"] = json!("2026-11-21T12:30:00Z");
    event(&app)
}

/// The service lives and is wanted so; `ready` stands in its status.
fn states(live: &str, wanted: &str, ready: u32) -> impl FnMut(&Fetch) -> Response {
    let mut item = managed("", "Service", "web", &manifest("v1", "Service", "web", "live"));
    let mut text = manifest("v1", "Service", "web", live);
    text["status"] = json!({"ready": ready});
    text["metadata"]["resourceVersion"] = json!(ready.to_string());
    item["liveState"] = json!(text.to_string());
    item["targetState"] = json!(manifest("v1", "Service", "web", wanted).to_string());
    move |fetch| match fetch {
        Fetch::ManagedResources { .. } => body(json!({"items": [
            item, managed("apps", "Deployment", "web", &manifest("apps/v1", "Deployment", "web", "live")),
        ]})),
        fetch => healthy(fetch),
    }
}

fn reported(app: &Value) -> Record {
    let (enriched, _) = run(&event(app), None, states("one", "wanted", 1));
    assert_eq!(kinds(&enriched), ["Application", "Service", "Deployment"]);
    remember(None, &enriched).unwrap()
}

#[test]
fn a_refresh_shows_that_what_is_not_in_sync_has_drifted_further() {
    for major in [2, 3] {
        let app = drifted(major);
        let known = reported(&app);
        let (moved, _) = run(&refreshed(&app), Some(&known), states("two", "wanted", 1));
        assert_eq!(kinds(&moved), ["Service"], "Argo CD {major}");
        assert_eq!(object(&payload(&moved, "Service"))["spec"]["state"], "two");
        let known = remember(Some(known), &moved).unwrap();
        // Once is enough, and back is a change too.
        let (same, _) = run(&refreshed(&app), Some(&known), states("two", "wanted", 1));
        assert_eq!((same.filtered, same.refetch), (Some(labels::RECONCILED_ONLY), None), "Argo CD {major}");
        assert_eq!(kinds(&run(&refreshed(&app), Some(&known), states("one", "wanted", 1)).0), ["Service"]);
        assert_eq!(kinds(&run(&refreshed(&app), Some(&known), states("two", "another", 1)).0), ["Service"]);
    }
}

#[test]
fn what_the_cluster_counts_is_no_drift_and_what_is_in_sync_cannot_drift() {
    let app = drifted(2);
    let known = reported(&app);
    let (same, asked) = run(&refreshed(&app), Some(&known), states("one", "wanted", 2));
    assert_eq!((same.filtered, calls(&asked)), (Some(labels::RECONCILED_ONLY), vec!["managed_resources"]));
    let known = known_store();
    let (same, asked) = run(&refreshed(&store()), Some(&known), states("two", "wanted", 1));
    assert_eq!((same.filtered, asked), (Some(Filtered::Unchanged), vec![]));
}

#[test]
fn an_event_shows_the_drift_beside_what_else_it_shows() {
    let app = drifted(2);
    let known = reported(&app);
    let mut later = app;
    later["metadata"]["resourceVersion"] = json!("11");
    later["spec"]["syncPolicy"] = json!({});
    let (moved, _) = run(&event(&later), Some(&known), states("two", "wanted", 1));
    assert_eq!(kinds(&moved), ["Application", "Service"]);
    let (same, _) = run(&event(&later), Some(&known), states("one", "wanted", 1));
    assert_eq!(kinds(&same), ["Application"]);
}

#[test]
fn a_look_at_what_may_have_drifted_is_paced_unless_somebody_asks_for_it() {
    for (major, first) in [(2, "managed_resources"), (3, "resource_tree")] {
        let app = drifted(major);
        let known = reported(&app);
        let skipping = |fetch: &Fetch| match fetch {
            Fetch::ManagedResources { paced: true, .. } | Fetch::ResourceTree { paced: true, .. } => {
                Response::Skipped
            }
            fetch => states("two", "wanted", 1)(fetch),
        };
        let (skipped, asked) = run(&refreshed(&app), Some(&known), skipping);
        assert_eq!((skipped.filtered, calls(&asked)), (Some(labels::RECONCILED_ONLY), vec![first]));
        assert_eq!(skipped.refetch, Some(Refetch::Paced(Duration::from_secs(10))));
        assert_eq!(remember(Some(known.clone()), &skipped).unwrap().entities, known.entities);
        let asked_for = Event { cause: Cause::Refetch, ..refreshed(&app) };
        assert_eq!(kinds(&run(&asked_for, Some(&known), skipping).0), ["Service"], "Argo CD {major}");
    }
}

#[test]
fn states_that_cannot_be_had_hold_up_what_changed_and_nothing_else() {
    let app = drifted(2);
    let known = reported(&app);
    let failing = |fetch: &Fetch| match fetch {
        Fetch::ManagedResources { .. } => Response::Failed(Reason::Timeout),
        fetch => healthy(fetch),
    };
    let (quiet, _) = run(&refreshed(&app), Some(&known), failing);
    assert_eq!((quiet.filtered, quiet.refetch), (Some(labels::RECONCILED_ONLY), Some(Refetch::Incomplete)));
    let mut later = app;
    later["status"]["sync"]["revision"] = json!("2");
    let upstream = settings(RawManifests::Absent);
    let (waits, _) = run_with(&event(&later), Some(&known), &upstream, Duration::ZERO, failing);
    assert_eq!(waits.unwrap_err().to_string(), "read managed resources");
    let (enriched, _) = run_with(&event(&later), Some(&known), &upstream, 5 * MINUTE, failing);
    let enriched = enriched.unwrap();
    assert_eq!(
        (kinds(&enriched), enriched.refetch),
        (vec!["Application".to_owned()], Some(Refetch::Incomplete))
    );
    let known = remember(Some(known), &enriched).unwrap();
    assert!(known.is_incomplete());
    let again = Event { cause: Cause::Refetch, ..event(&later) };
    let (made_good, _) = run(&again, Some(&known), states("two", "wanted", 1));
    assert_eq!(kinds(&made_good), ["Service"]);
    assert!(!remember(Some(known), &made_good).unwrap().is_incomplete());
}

#[test]
fn a_refresh_of_an_application_that_argo_cd_does_not_know_tells_nothing_of_drift() {
    let app = drifted(2);
    let known = reported(&app);
    let unknown = |fetch: &Fetch| match fetch {
        Fetch::ManagedResources { .. } => Response::NotFound,
        fetch => healthy(fetch),
    };
    let (same, _) = run(&refreshed(&app), Some(&known), unknown);
    assert_eq!((same.filtered, same.refetch), (Some(labels::RECONCILED_ONLY), None));
}
