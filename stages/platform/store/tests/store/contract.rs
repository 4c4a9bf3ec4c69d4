//! The contract: each of these holds on both databases, of which `databases.rs` has a test for each part.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{SecretString, Shutdown};
use serde_json::json;
use stages_platform_store::{
    By, Delivery, ObjectState, Outcome, Place, Retention, RetentionDays, StoreError, Text, View, create_token,
};

use crate::alike;
use crate::changes;
use crate::clocks;
use crate::drifted;
use crate::fleet;
use crate::group;
use crate::letters;
use crate::matrix;
use crate::narrowed;
use crate::overview;
use crate::owners;
use crate::ranges;
use crate::shipping;
use crate::support::{KEEP_ALL, Opened, digest, on, open, operation, report, resource};

const HOUR: i64 = 3_600_000;
/// Of random reports.
const SEEDS: u64 = 2;

/// Each part runs on a place that is new each time it is asked for.
pub(crate) async fn what_is_reported_holds(place: &mut impl AsyncFnMut() -> Place) {
    Box::pin(tokens_are_known_and_others_are_not(&place().await)).await;
    on(place, a_report_is_read_as_it_was_sent).await;
    on(place, a_key_is_taken_once).await;
    on(place, the_newest_version_is_the_state_whatever_came_last).await;
    on(place, another_life_is_newer_by_its_creation).await;
    on(place, what_differs_in_its_time_alone_is_one_transition).await;
    on(place, an_older_epoch_is_refused).await;
    on(place, an_object_alone_is_of_the_resource_that_an_application_has).await;
    on(place, what_is_held_follows_the_keys).await;
    on(place, ranges::applications_are_found_by_a_range_of_their_keys).await;
    on(place, a_delivery_is_kept_whole_and_many_at_once).await;
    on(place, history_follows_operations_and_sync).await;
    on(place, changes::what_changed_stands_with_its_sync_whatever_comes_first).await;
    on(place, changes::differences_of_files_are_read_of_one_sync_and_stay_when_less_is_told).await;
    on(place, what_one_report_spoils_spoils_no_other).await;
    on(place, what_waited_is_no_cluster_that_was_restored).await;
    on(place, names_as_long_as_they_may_be_are_kept).await;
}

pub(crate) async fn what_is_kept_together_holds(place: &mut impl AsyncFnMut() -> Place) {
    on(place, group::a_key_that_stands_twice_in_a_delivery_is_taken_once).await;
    on(place, group::a_runtime_that_sends_much_keeps_no_other_waiting).await;
    on(place, group::texts_that_many_reports_of_a_delivery_name_stay_for_as_long_as_one_does).await;
    on(place, group::whose_an_object_alone_is_follows_what_the_reports_before_it_changed).await;
    for seed in 0..SEEDS {
        let another = place().await;
        on(place, async |together| {
            let alone = open(&another).await;
            alike::reports_of_one_group_leave_what_each_alone_leaves(together, alone, seed).await;
        })
        .await;
    }
    on(place, alike::a_group_takes_few_statements_and_a_repeat_of_it_hardly_any).await;
}

pub(crate) async fn what_goes_and_whose_it_is_holds(place: &mut impl AsyncFnMut() -> Place) {
    on(place, changes::what_changed_goes_with_the_history_that_it_is_of).await;
    on(place, what_is_old_goes_and_the_state_stays).await;
    on(place, shipping::what_was_deployed_before_the_time_that_is_kept_is_no_change_when_it_comes_again)
        .await;
    on(place, what_ended_goes_whole_and_what_is_alive_stays).await;
    on(place, what_a_runtime_reported_goes_when_it_was_taken_away_for_so_long).await;
    on(place, group::an_object_alone_is_of_the_application_that_it_names).await;
    on(place, letters::a_label_is_found_however_many_images_there_are).await;
}

pub(crate) async fn what_is_read_across_the_fleet_holds(place: &mut impl AsyncFnMut() -> Place) {
    on(place, fleet::a_list_is_grouped_and_ordered_and_its_neighbours_are_those_of_its_pages).await;
    on(place, fleet::a_filter_leaves_what_it_says_and_takes_nothing_typed_for_more).await;
    on(place, shipping::figures_are_what_was_generated_and_what_a_slow_reading_finds).await;
    on(place, fleet::a_moment_is_shown_as_it_was).await;
    on(place, fleet::resources_and_deployments_are_found_across_the_fleet).await;
    on(place, fleet::a_dry_run_changes_nothing_of_how_the_last_operation_stands).await;
    on(place, fleet::what_needs_somebody_is_told_with_its_reason_and_its_time).await;
    on(place, matrix::an_application_is_one_name_in_each_of_its_environments).await;
    on(place, overview::clusters_are_told_by_runtime_with_how_their_applications_are).await;
    on(place, overview::applications_that_move_most_are_told_against_the_time_before).await;
    on(place, clocks::states_that_are_read_by_their_times_come_to_the_state).await;
    on(place, clocks::what_a_restored_cluster_says_is_the_state_whatever_its_versions).await;
    on(place, clocks::an_end_that_the_next_process_found_comes_after_what_a_clock_ahead_of_it_reported).await;
    on(place, clocks::drifts_of_one_moment_stand_in_the_order_in_which_they_came).await;
    on(place, clocks::a_resource_of_several_versions_of_its_api_is_as_it_was_told_last).await;
    on(place, drifted::each_drift_is_told_with_the_manifests_that_it_began_with).await;
    on(place, drifted::of_two_drifts_that_began_within_one_moment_each_is_told_with_its_own_manifests).await;
    on(place, drifted::an_application_is_told_to_drift_however_many_of_its_resources_do).await;
    on(place, drifted::what_was_pruned_is_not_told_to_differ_now).await;
    on(place, letters::a_search_is_for_letters_whether_or_not_they_are_capitals).await;
    on(place, owners::what_owns_a_resource_is_what_its_newest_report_with_an_owner_says).await;
    on(place, narrowed::a_narrow_user_sees_exactly_theirs_everywhere).await;
    on(place, fleet::what_changed_is_told_from_a_place_on_or_is_too_much).await;
}

async fn tokens_are_known_and_others_are_not(place: &Place) {
    let opened = open(place).await;
    // Beside the process that has the store open.
    let second = create_token(place, "prod").await.unwrap();
    assert_eq!(opened.store.runtime(&second).await.unwrap(), Some(opened.runtime.clone()));
    let other = create_token(place, "staging2").await.unwrap();
    assert_eq!(opened.store.runtime(&other).await.unwrap().unwrap().name, "staging2");
    for wrong in ["", "gort_", "gort_00", &format!("gort_{}", "0".repeat(64)), &"é".repeat(40)] {
        assert_eq!(opened.store.runtime(&SecretString::from(wrong)).await.unwrap(), None, "{wrong}");
    }
    let long = "a".repeat(39);
    for name in ["", "1a", "A", "a-b", &long] {
        let text = format!(
            "'{name}' is no name of a runtime: lower-case letters and digits, a letter first, at most 38"
        );
        assert_eq!(create_token(place, name).await.unwrap_err().to_string(), text);
    }
    opened.close().await;
}

async fn a_report_is_read_as_it_was_sent(opened: Opened) {
    let at = 1_795_261_728_688;
    let mut plain = resource("d", 7, at);
    plain.object_is_json = true;
    opened.keep(report("u", 5, at)).await;
    opened.keep(plain).await;
    let all = opened.timeline().await;
    let application = opened.store.payload(opened.runtime.id, all[0].id).await.unwrap().unwrap();
    let object = "eyJtZXRhZGF0YSI6eyJ1aWQiOiJ1IiwicmVzb3VyY2VWZXJzaW9uIjoiNSJ9fQ==";
    let expected = json!({
        "timestamp": "2026-11-21T11:48:48.688Z",
        "object": object,
        "source": {
            "repoURL": "http://git",
            "gitManifest": "kind: Deployment\n",
            "actualManifest": r#"{"metadata":{"uid":"u","resourceVersion":"5"}}"#,
        },
    });
    assert_eq!(application, expected);
    let resource = opened.store.payload(opened.runtime.id, all[1].id).await.unwrap().unwrap();
    assert_eq!(resource["object"], json!({"metadata": {"uid": "d", "resourceVersion": "7"}}));
    assert_eq!(
        opened.store.payload(opened.runtime.id + 1, all[0].id).await.unwrap(),
        None,
        "of another runtime"
    );
    let shown = opened.store.applications(opened.runtime.id, ("", ""), 10).await.unwrap();
    assert_eq!(
        (shown.len(), shown[0].name.as_str(), shown[0].health.as_deref()),
        (1, "shop", Some("Healthy"))
    );
    assert_eq!(opened.store.applications(opened.runtime.id, ("argocd", "shop"), 10).await.unwrap(), []);
    opened.close().await;
}

async fn a_key_is_taken_once(opened: Opened) {
    assert_eq!(opened.deliver(report("u", 1, 1), "k", None).await, Outcome::Kept);
    assert_eq!(opened.deliver(report("u", 2, 2), "k", None).await, Outcome::Repeated);
    assert_eq!(opened.versions().await, (vec![1], 1));
    opened.close().await;
}

async fn the_newest_version_is_the_state_whatever_came_last(opened: Opened) {
    for version in [3, 1, 5, 4] {
        opened.keep(report("u", version, version)).await;
    }
    assert_eq!(opened.versions().await, (vec![3, 1, 5, 4], 5));
    // A cluster that was restored counts from a lower version on.
    opened.keep(report("u", 4, HOUR)).await;
    assert_eq!(opened.versions().await.1, 4, "what is said again is the state as well");
    opened.keep(report("u", 2, 2 * HOUR)).await;
    assert_eq!(opened.versions().await.1, 2);
    opened.close().await;
}

async fn another_life_is_newer_by_its_creation(opened: Opened) {
    let life = |uid: &str, version, created, at| {
        let mut report = report(uid, version, at);
        report.created_at = Some(created);
        report
    };
    opened.keep(life("second", 9, 200, 10)).await;
    opened.keep(life("first", 50, 100, 20)).await;
    assert_eq!(opened.versions().await, (vec![9, 50], 9));
    // The cluster was restored, or the application moved back to another one.
    opened.keep(life("first", 51, 100, HOUR)).await;
    assert_eq!(opened.versions().await.1, 51);
    opened.keep(life("third", 2, 300, HOUR - 5)).await;
    assert_eq!(opened.versions().await.1, 2);
    opened.close().await;
}

async fn what_differs_in_its_time_alone_is_one_transition(opened: Opened) {
    for at in [10, 20, 30] {
        opened.keep(report("u", 1, at)).await;
    }
    opened.keep(report("u", 2, 40)).await;
    opened.keep(report("u", 1, 15)).await;
    let all = opened.timeline().await;
    let told: Vec<_> = all.iter().map(|one| (one.at, one.last_at, one.reports, one.current)).collect();
    assert_eq!(told, [(10, 30, 3, false), (40, 40, 1, true), (15, 15, 1, false)]);
    opened.close().await;
}

async fn an_older_epoch_is_refused(opened: Opened) {
    assert_eq!(opened.deliver(report("u", 1, 1), "a", Some(7)).await, Outcome::Kept);
    assert_eq!(opened.deliver(report("u", 2, 2), "b", Some(6)).await, Outcome::Outdated);
    assert_eq!(opened.deliver(resource("d", 2, 2), "c", Some(6)).await, Outcome::Outdated);
    assert_eq!(opened.deliver(report("u", 2, 2), "b", Some(7)).await, Outcome::Kept, "its key was not taken");
    assert_eq!(opened.deliver(report("u", 3, 3), "d", None).await, Outcome::Kept);
    assert_eq!(opened.versions().await, (vec![1, 2, 3], 3));
    opened.close().await;
}

async fn an_object_alone_is_of_the_resource_that_an_application_has(opened: Opened) {
    let alone = |version, at| {
        let mut alone = resource("d", version, at);
        alone.entity.app_namespace.clear();
        alone.entity.app_name.clear();
        alone.has_source = false;
        alone.object_is_json = true;
        (alone.sync, alone.health) = (None, None);
        (alone.actual, alone.desired, alone.git, alone.details) = (None, None, None, None);
        alone
    };
    // Nobody has it yet.
    opened.keep(alone(1, 1)).await;
    assert_eq!(opened.store.entities(opened.runtime.id).await.unwrap().len(), 1);
    opened.keep(resource("d", 3, 3)).await;
    opened.keep(alone(2, 4)).await;
    assert_eq!(opened.versions().await, (vec![3, 2], 3), "it is older");
    opened.keep(alone(5, 5)).await;
    let (versions, current) = opened.versions().await;
    assert_eq!((versions, current), (vec![3, 2, 5], 5));
    let last = opened.timeline().await.pop().unwrap();
    assert_eq!(last.sync.as_deref(), Some("Synced"), "what the application said of it stays");
    let payload = opened.store.payload(opened.runtime.id, last.id).await.unwrap().unwrap();
    assert_eq!(
        (&payload["object"]["metadata"]["resourceVersion"], &payload["source"]["repoURL"]),
        (&json!("5"), &json!("http://git"))
    );
    // The object as it was last, which is all that is told of its end.
    let mut end = alone(5, 6);
    end.deleted = true;
    opened.keep(end).await;
    assert!(opened.timeline().await.pop().unwrap().deleted);
    opened.close().await;
}

async fn what_is_held_follows_the_keys(opened: Opened) {
    let key = |key: &str| u128::from_be_bytes(digest(key)[..16].try_into().unwrap());
    let held = async || {
        let placed = opened.store.numbered_applications(opened.runtime.id).await.unwrap();
        let names = [("argocd", "none"), ("argocd", "shop")];
        let found = opened.store.find(opened.runtime.id, &names).await.unwrap();
        assert_eq!(found, [None, placed.first().cloned()]);
        assert_eq!(placed.len(), found.iter().flatten().count());
        let held = opened.store.held(&placed.iter().collect::<Vec<_>>()).await.unwrap();
        held.into_iter().flatten().next().map(|held| (held.uid, held.entities, held.digest))
    };
    opened.deliver(resource("d", 1, 1), "web", None).await;
    assert_eq!(held().await, None, "its application was not reported yet");
    opened.deliver(report("u", 1, 1), "one", None).await;
    let both = Some(("u".to_owned(), 2, key("web") ^ key("one")));
    assert_eq!(held().await, both);
    let mut alone = resource("d", 2, 2);
    alone.has_source = false;
    (alone.entity.app_namespace, alone.entity.app_name) = (String::new(), String::new());
    opened.deliver(alone, "of another reporter", None).await;
    assert_eq!(held().await, both, "who reports the object alone is not who compares");
    let object = |uid, version| ObjectState { namespace: "shop", name: "web", uid, version };
    let objects = [object("d", 3), object("d", 2), object("e", 1), object("d", 0)];
    let holds = opened.store.holds(opened.runtime.id, &objects).await.unwrap();
    assert_eq!(holds, [false, true, false, true]);
    let mut empty = report("u", 2, 2);
    empty.listed.clear();
    opened.deliver(empty, "two", None).await;
    assert_eq!(held().await, Some(("u".to_owned(), 1, key("two"))), "it lists no resource any more");
    opened.deliver(report("v", 3, 3), "three", None).await;
    assert_eq!(
        held().await,
        Some(("v".to_owned(), 1, key("three"))),
        "another life has nothing of the former"
    );
    let mut end = report("v", 4, 4);
    end.deleted = true;
    opened.deliver(end, "four", None).await;
    assert_eq!(held().await, None);
    opened.close().await;
}

async fn a_delivery_is_kept_whole_and_many_at_once(opened: Opened) {
    let all = (0..40_i64).map(|number| {
        let (store, runtime) = (opened.store.clone(), opened.runtime.id);
        tokio::spawn(async move {
            let delivery = |of: i64| {
                let mut report = report("u", of, of);
                report.entity.app_name = format!("shop-{number}");
                Delivery {
                    runtime,
                    key: digest(&format!("{number}/{of}")),
                    keyed: true,
                    epoch: None,
                    era: 0,
                    report,
                }
            };
            store.keep(vec![delivery(1), delivery(2)]).await.unwrap()
        })
    });
    for kept in all.collect::<Vec<_>>() {
        assert_eq!(kept.await.unwrap(), [Outcome::Kept, Outcome::Kept]);
    }
    assert_eq!(opened.store.applications(opened.runtime.id, ("", ""), 100).await.unwrap().len(), 40);
    opened.close().await;
}

async fn history_follows_operations_and_sync(opened: Opened) {
    let state = |version, sync: &str, operation| {
        let mut report = report("u", version, version * 1_000);
        report.sync = Some(sync.to_owned());
        report.operation = operation;
        report
    };
    opened.keep(state(1, "OutOfSync", None)).await;
    opened.keep(state(2, "OutOfSync", operation(2_000, None, "Running"))).await;
    opened.keep(state(3, "Synced", operation(2_000, Some(3_000), "Succeeded"))).await;
    opened.keep(state(4, "Synced", operation(4_000, Some(4_500), "Failed"))).await;
    opened.keep(state(5, "OutOfSync", operation(4_000, Some(4_500), "Failed"))).await;
    // It comes after what followed it.
    opened.keep(state(3, "Synced", operation(1_000, Some(1_500), "Succeeded"))).await;
    let shop = ("argocd", "shop");
    let deployments = opened.store.deployments(opened.runtime.id, shop).await.unwrap();
    let told: Vec<_> = deployments.iter().map(|one| (one.started_at, &*one.phase, one.ended)).collect();
    assert_eq!(told, [(4_000, "Failed", true), (2_000, "Succeeded", true), (1_000, "Succeeded", true)]);
    assert_eq!(deployments[0].initiated_by, "ada");
    let drifts = opened.store.drifts(opened.runtime.id, shop).await.unwrap();
    let told: Vec<_> = drifts.iter().map(|one| (one.onset, one.ended, one.repeats)).collect();
    assert_eq!(told, [(5_000, false, 1), (1_000, true, 2)]);
    opened.close().await;
}

async fn what_is_old_goes_and_the_state_stays(opened: Opened) {
    for version in 1..=250 {
        opened.deliver(report("u", version, version), &version.to_string(), None).await;
    }
    let retention = Retention { history: Duration::ZERO, keys: Duration::ZERO, ..KEEP_ALL };
    retained(&opened, retention, async || opened.timeline().await.len() == 1).await;
    assert_eq!(opened.versions().await, (vec![250], 250));
    let state = opened.timeline().await[0].id;
    let payload = opened.store.payload(opened.runtime.id, state).await.unwrap().unwrap();
    assert_eq!(
        payload["source"]["gitManifest"], "kind: Deployment\n",
        "a text that others named too is still there"
    );
    opened.close().await;
}

/// Runs retention until `done`, beside reports.
pub(crate) async fn retained(opened: &Opened, retention: Retention, done: impl AsyncFn() -> bool) {
    let stop = Shutdown::new();
    let retaining = tokio::spawn({
        let (store, stop) = (opened.store.clone(), stop.clone());
        async move { store.retain(stop).await }
    });
    // It runs already, and looks again only in an hour.
    let days = |age: Duration| u32::try_from(age.as_secs() / 86_400).unwrap();
    let days = RetentionDays { history: days(retention.history), keys: days(retention.keys) };
    opened.store.keep_retention_days(&crate::accounts::by(), Some(days), 0).await.unwrap();
    let until = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(240), until).await.expect("what is too old goes");
    stop.cancel();
    retaining.await.unwrap();
}

async fn what_ended_goes_whole_and_what_is_alive_stays(opened: Opened) {
    let of = |mut report: stages_platform_store::Report, name: &str| {
        report.entity.app_name = name.to_owned();
        report
    };
    // One that ended, with a resource, a drift, and operations whose ends nobody told.
    for version in 1..=300 {
        let mut one = of(report("u", version, version), "gone");
        one.sync = Some(if version % 2 == 0 { "Synced" } else { "OutOfSync" }.to_owned());
        one.operation = operation(version, None, "Running");
        opened.keep(one).await;
    }
    opened.keep(of(resource("d", 1, 1), "gone")).await;
    let mut end = of(report("u", 400, 400), "gone");
    end.deleted = true;
    opened.keep(end).await;
    // One that goes on, has lost a resource, and drifts.
    opened.keep(resource("d", 1, 1)).await;
    let mut other = resource("e", 1, 1);
    other.entity.resource.as_mut().unwrap().name = "unlisted".to_owned();
    opened.keep(other).await;
    // What others own is listed by no application: it is there for as long as they are.
    for (name, owner) in [("web-a", "apps/Deployment/web"), ("gone-a", "apps/Deployment/gone")] {
        let mut owned = resource("h", 1, 1);
        let of = owned.entity.resource.as_mut().unwrap();
        (of.kind, of.name) = ("ReplicaSet".to_owned(), name.to_owned());
        owned.owner = owner.to_owned();
        opened.keep(owned).await;
    }
    let mut alive = report("u", 1, 1);
    alive.sync = Some("OutOfSync".to_owned());
    alive.operation = operation(1, None, "Running");
    opened.keep(alive).await;
    let mut deleted = of(resource("f", 1, 1), "");
    deleted.entity.app_namespace.clear();
    deleted.deleted = true;
    opened.keep(deleted).await;
    let mut alone = of(resource("g", 1, 1), "");
    alone.entity.app_namespace.clear();
    alone.entity.resource.as_mut().unwrap().name = "alone".to_owned();
    opened.keep(alone).await;
    assert_eq!(opened.store.entities(opened.runtime.id).await.unwrap().len(), 9);

    let retention = Retention { history: Duration::ZERO, keys: Duration::ZERO, ..KEEP_ALL };
    let names = async || {
        let all = opened.store.entities(opened.runtime.id).await.unwrap();
        let name = |name: stages_platform_store::EntityName| {
            (name.app_name, name.resource.map_or(String::new(), |resource| resource.name))
        };
        all.into_iter().map(|(entity, _)| name(entity)).collect::<std::collections::BTreeSet<_>>()
    };
    retained(&opened, retention, async || names().await.len() <= 4).await;
    let expected = [("", "alone"), ("shop", ""), ("shop", "web"), ("shop", "web-a")];
    let expected = expected.map(|(application, name)| (application.to_owned(), name.to_owned()));
    assert_eq!(names().await, expected.into());
    let shop = ("argocd", "shop");
    assert_eq!(opened.store.deployments(opened.runtime.id, shop).await.unwrap().len(), 1, "it may still run");
    assert_eq!(opened.store.drifts(opened.runtime.id, shop).await.unwrap().len(), 1, "it has not ended");
    assert_eq!(opened.store.deployments(opened.runtime.id, ("argocd", "gone")).await.unwrap(), []);
    let found = opened.store.find(opened.runtime.id, &[("argocd", "gone")]).await.unwrap();
    assert_eq!(found, [None], "nothing of it is left");
    // A name that comes again begins anew.
    opened.keep(of(report("v", 1, 500), "gone")).await;
    assert_eq!(opened.store.entities(opened.runtime.id).await.unwrap().len(), 5);
    opened.close().await;
}

async fn what_a_runtime_reported_goes_when_it_was_taken_away_for_so_long(opened: Opened) {
    let store = &opened.store;
    let token = create_token(&opened.place, "other").await.unwrap();
    let other = store.runtime(&token).await.unwrap().unwrap().id;
    let mut alone = resource("g", 1, 1);
    (alone.entity.app_namespace, alone.entity.app_name) = (String::new(), String::new());
    let mut running = report("u", 1, 1);
    running.operation = operation(1, None, "Running");
    for runtime in [opened.runtime.id, other] {
        for one in [running.clone(), resource("d", 1, 1), alone.clone()] {
            opened.deliver_of(runtime, one).await;
        }
    }
    let by = By { who: "ada".to_owned(), how: "session" };
    assert!(store.unregister(&by, "other", 0).await.unwrap());
    assert_eq!(store.entities(other).await.unwrap().len(), 3, "it stays until it is too old");
    let retention = Retention { history: Duration::ZERO, keys: Duration::ZERO, ..KEEP_ALL };
    let names = async || {
        let all = store.runtimes(&View::ALL).await.unwrap();
        all.into_iter().map(|one| one.name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names().await, "other prod");
    retained(&opened, retention, async || names().await == "prod").await;
    assert_eq!(store.entities(other).await.unwrap(), []);
    assert_eq!(store.entities(opened.runtime.id).await.unwrap().len(), 3, "whoever has a token is there");
    opened.close().await;
}

async fn what_one_report_spoils_spoils_no_other(opened: Opened) {
    // A text with a zero byte, which Postgres has not, and a number that no column holds.
    let mut odd = report("u\0v", i64::MAX, i64::MAX);
    odd.health_message = Some("zero \0 byte".to_owned());
    odd.details = Some(Text::new("{\"a\":\"\\u0000\"}".to_owned()));
    assert_eq!(opened.keep(odd).await, Outcome::Kept);
    assert_eq!(opened.timeline().await[0].uid.replace('\u{fffd}', "\0"), "u\0v");
    let wrong = Delivery {
        runtime: 999,
        key: digest("x"),
        keyed: true,
        epoch: None,
        era: 0,
        report: report("u", 1, 1),
    };
    let right = Delivery { runtime: opened.runtime.id, key: digest("y"), ..wrong.clone() };
    let (wrong, right) = tokio::join!(opened.store.keep(vec![wrong]), opened.store.keep(vec![right]));
    let error: Arc<StoreError> = wrong.unwrap_err();
    assert_eq!(error.to_string(), "the store refused a statement");
    assert_eq!(right.unwrap(), [Outcome::Kept]);
    opened.close().await;
}

async fn what_waited_is_no_cluster_that_was_restored(opened: Opened) {
    opened.keep(report("u", 5, 5)).await;
    // It does not say when: it was received an hour later.
    let mut late = report("u", 4, HOUR);
    late.timed = false;
    opened.keep(late).await;
    assert_eq!(opened.versions().await, (vec![5, 4], 5));
    opened.close().await;
}

/// Text that no compression makes shorter than half.
fn dense(length: usize) -> String {
    let digits = (0..).map(|number: u32| {
        format!("{:x}", u128::from_be_bytes(digest(&number.to_string())[..16].try_into().unwrap()))
    });
    digits.flat_map(|digits| digits.into_bytes()).map(char::from).take(length).collect()
}

async fn names_as_long_as_they_may_be_are_kept(opened: Opened) {
    let all = dense(4_096);
    let part = |from: usize, to: usize| all.get(from..to).unwrap().to_owned();
    let mut long = resource("d", 1, 1);
    long.entity.app_namespace = part(0, 253);
    long.entity.app_name = part(0, 1_024);
    let name = long.entity.resource.as_mut().unwrap();
    name.kind = part(0, 253);
    name.namespace = part(500, 753);
    name.name = part(1_000, 2_024);
    name.api_version = part(3_000, 3_512);
    let expected = long.entity.clone();
    assert_eq!(opened.keep(long).await, Outcome::Kept);
    assert_eq!(opened.store.entities(opened.runtime.id).await.unwrap()[0].0, expected);
    opened.close().await;
}

pub(crate) async fn what_cannot_be_indexed_is_unfit_and_spoils_no_other(opened: Opened) {
    let delivery = |key: &str, report| Delivery {
        runtime: opened.runtime.id,
        key: digest(key),
        keyed: true,
        epoch: None,
        era: 0,
        report,
    };
    let mut endless = report("u", 1, 1);
    endless.entity.app_name = dense(20_000);
    let batch =
        vec![delivery("a", report("u", 1, 1)), delivery("b", endless), delivery("c", resource("d", 2, 2))];
    let alone = vec![delivery("d", report("u", 3, 3))];
    let (batch, alone) = tokio::join!(opened.store.keep(batch), opened.store.keep(alone));
    assert_eq!(batch.unwrap(), [Outcome::Kept, Outcome::Unfit, Outcome::Kept]);
    assert_eq!(alone.unwrap(), [Outcome::Kept]);
    assert!(opened.store.is_writable());
    let mut versions = opened.versions().await.0;
    versions.sort_unstable();
    assert_eq!(versions, [1, 2, 3]);
    opened.close().await;
}
