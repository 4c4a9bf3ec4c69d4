//! The contract: each of these holds on both databases.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{SecretString, Shutdown};
use serde_json::json;
use stages_platform_store::{Delivery, Outcome, Place, Retention, StoreError, Text, create_token};
use tempfile::TempDir;

use crate::fleet;
use crate::postgres::Server;
use crate::support::{KEEP_ALL, Opened, digest, open, open_with, operation, report, resource};

const HOUR: i64 = 3_600_000;

/// Runs the contract on a place that is new each time it is asked for.
async fn holds(place: &mut impl AsyncFnMut() -> Place) {
    tokens_are_known_and_others_are_not(&place().await).await;
    a_report_is_read_as_it_was_sent(open(&place().await).await).await;
    a_key_is_taken_once(open(&place().await).await).await;
    the_newest_version_is_the_state_whatever_came_last(open(&place().await).await).await;
    another_life_is_newer_by_its_creation(open(&place().await).await).await;
    what_differs_in_its_time_alone_is_one_transition(open(&place().await).await).await;
    an_older_epoch_is_refused(open(&place().await).await).await;
    an_object_alone_is_of_the_resource_that_an_application_has(open(&place().await).await).await;
    what_is_held_follows_the_keys(open(&place().await).await).await;
    a_delivery_is_kept_whole_and_many_at_once(open(&place().await).await).await;
    history_follows_operations_and_sync(open(&place().await).await).await;
    what_is_old_goes_and_the_state_stays(&place().await).await;
    what_one_report_spoils_spoils_no_other(open(&place().await).await).await;
    crate::accounts::hold(place).await;
    let listed = open(&place().await).await;
    fleet::a_list_is_grouped_and_ordered_and_its_neighbours_are_those_of_its_pages(listed).await;
    fleet::a_filter_leaves_what_it_says_and_takes_nothing_typed_for_more(open(&place().await).await).await;
    fleet::a_moment_is_shown_as_it_was(open(&place().await).await).await;
    fleet::resources_and_deployments_are_found_across_the_fleet(open(&place().await).await).await;
    fleet::what_needs_somebody_is_told_with_its_reason_and_its_time(open(&place().await).await).await;
    fleet::what_changed_is_told_from_a_place_on_or_is_too_much(open(&place().await).await).await;
}

#[tokio::test]
async fn the_contract_holds_on_sqlite() {
    let folder = TempDir::new().unwrap();
    let mut number = 0;
    holds(&mut async || {
        number += 1;
        Place::Sqlite(folder.path().join(format!("{number}.db")))
    })
    .await;
}

#[tokio::test]
async fn the_contract_holds_on_postgres() {
    let server = Server::start().await;
    holds(&mut async || Place::Postgres(server.database().await)).await;
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
    opened.keep(life("third", 2, 300, 5)).await;
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
        let held = opened.store.held(opened.runtime.id, None).await.unwrap();
        let one = opened.store.held(opened.runtime.id, Some(("argocd", "shop"))).await.unwrap();
        assert_eq!(held, one);
        held.into_values().next().map(|held| (held.uid, held.entities, held.digest))
    };
    opened.deliver(resource("d", 1, 1), "web", None).await;
    assert_eq!(held().await, None, "its application was not reported yet");
    opened.deliver(report("u", 1, 1), "one", None).await;
    assert_eq!(held().await, Some(("u".to_owned(), 2, key("web") ^ key("one"))));
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
                Delivery { runtime, key: digest(&format!("{number}/{of}")), keyed: true, epoch: None, report }
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

async fn what_is_old_goes_and_the_state_stays(place: &Place) {
    let opened = open(place).await;
    for version in 1..=250 {
        opened.deliver(report("u", version, version), &version.to_string(), None).await;
    }
    opened.close().await;
    let retention = Retention { history: Duration::ZERO, keys: Duration::ZERO, ..KEEP_ALL };
    let opened = open_with(place, retention).await;
    let stop = Shutdown::new();
    let retaining = tokio::spawn({
        let (store, stop) = (opened.store.clone(), stop.clone());
        async move { store.retain(stop).await }
    });
    while opened.timeline().await.len() > 1 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    retaining.await.unwrap();
    assert_eq!(opened.versions().await, (vec![250], 250));
    let state = opened.timeline().await[0].id;
    let payload = opened.store.payload(opened.runtime.id, state).await.unwrap().unwrap();
    assert_eq!(
        payload["source"]["gitManifest"], "kind: Deployment\n",
        "a text that others named too is still there"
    );
    opened.close().await;
}

async fn what_one_report_spoils_spoils_no_other(opened: Opened) {
    // A text with a zero byte, which Postgres has not, and a number that no column holds.
    let mut odd = report("u\0v", i64::MAX, i64::MAX);
    odd.health_message = Some("zero \0 byte".to_owned());
    odd.details = Some(Text::new("{\"a\":\"\\u0000\"}".to_owned()));
    assert_eq!(opened.keep(odd).await, Outcome::Kept);
    assert_eq!(opened.timeline().await[0].uid.replace('\u{fffd}', "\0"), "u\0v");
    let wrong =
        Delivery { runtime: 999, key: digest("x"), keyed: true, epoch: None, report: report("u", 1, 1) };
    let right = Delivery { runtime: opened.runtime.id, key: digest("y"), ..wrong.clone() };
    let (wrong, right) = tokio::join!(opened.store.keep(vec![wrong]), opened.store.keep(vec![right]));
    let error: Arc<StoreError> = wrong.unwrap_err();
    assert_eq!(error.to_string(), "the store refused a statement");
    assert_eq!(right.unwrap(), [Outcome::Kept]);
    opened.close().await;
}
