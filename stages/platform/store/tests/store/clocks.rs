//! Times of several clocks, and of reports that come late.

use stages_platform_store::{Report, Text, View};

use crate::support::{Opened, name, report, resource};

const WEB: (&str, &str, &str, &str) = ("apps", "Deployment", "shop", "web");

pub(crate) async fn states_that_are_read_by_their_times_come_to_the_state(opened: Opened) {
    let store = &opened.store;
    let said = |one: Report, health: &str| Report { health: Some(health.to_owned()), ..one };
    // The newer one is of a clock that is behind; and a third, of what is over, comes late.
    let all = [(6, 102, "Progressing"), (7, 101, "Healthy"), (5, 200, "Degraded")];
    for (version, at, health) in all {
        opened.keep(said(report("u", version, at), health)).await;
        opened.keep(said(resource("d", version, at), health)).await;
    }
    let known = opened.shop().await;
    assert_eq!((&*known.listed.health, known.health_since, known.reported_at), ("Healthy", 102, 102));
    let shown = async |at: Option<i64>| {
        let resources = store.resources_at(known.id, at, None).await.unwrap();
        let health: Vec<_> = resources.into_iter().map(|one| one.health.unwrap()).collect();
        let object = store.object_at(known.id, at).await.unwrap().and_then(|one| one.object).unwrap();
        let manifests = store.manifests_at(known.id, WEB, at.unwrap_or(i64::MAX)).await.unwrap().unwrap();
        let version = |text: &str| text.split('"').rev().nth(1).unwrap().to_owned();
        (health.concat(), version(&object), version(&manifests.actual.unwrap()))
    };
    let state = |health: &str, version: &str| (health.to_owned(), version.to_owned(), version.to_owned());
    for at in [None, Some(102), Some(150), Some(200), Some(1_000)] {
        assert_eq!(shown(at).await, state("Healthy", "7"), "{at:?}");
    }
    assert_eq!(shown(Some(101)).await, state("Degraded", "5"));
    let expected = [("Degraded", 101), ("Progressing", 102), ("Healthy", 102)];
    let states = store.states(known.id, (0, 1_000)).await.unwrap();
    let told: Vec<_> = states.iter().map(|one| (one.health.as_deref().unwrap(), one.at)).collect();
    assert_eq!(told, expected);
    let steps = store.steps_between(known.id, (0, 1_000), true).await.unwrap();
    let told: Vec<_> = steps.iter().map(|one| (one.health.as_deref().unwrap(), one.at)).collect();
    assert_eq!(told, expected);
    // Each as it was reported, in the order in which they came.
    let own: Vec<_> = opened.timeline().await.into_iter().filter(|one| one.resource.is_none()).collect();
    let told: Vec<_> = own.iter().map(|one| (one.version.unwrap(), one.current)).collect();
    assert_eq!(told, [(6, false), (7, true), (5, false)]);
    let payload = store.payload(opened.runtime.id, own[1].id).await.unwrap().unwrap();
    assert_eq!(payload["timestamp"], "1970-01-01T00:00:00.101Z");
    opened.close().await;
}

pub(crate) async fn what_a_restored_cluster_says_is_the_state_whatever_its_versions(opened: Opened) {
    opened.keep(report("u", 100, 10)).await;
    opened.keep(resource("d", 100, 10)).await;
    // Within a minute: by its time nobody could tell it from a report that was late.
    opened.keep_in(1, report("u", 90, 60_000)).await;
    opened.keep_in(1, resource("d", 90, 60_000)).await;
    let states = async || -> Vec<_> {
        let all = opened.timeline().await.into_iter().filter(|one| one.current);
        all.map(|one| (one.resource.is_some(), one.version)).collect()
    };
    assert_eq!(states().await, [(false, Some(90)), (true, Some(90))]);
    // The era is kept with the entity: what is older within it is late again.
    opened.keep_in(1, report("u", 80, 61_000)).await;
    assert_eq!(states().await, [(false, Some(90)), (true, Some(90))]);
    opened.keep_in(1, report("u", 91, 62_000)).await;
    assert_eq!(states().await, [(true, Some(90)), (false, Some(91))]);
    opened.close().await;
}

pub(crate) async fn an_end_that_the_next_process_found_comes_after_what_a_clock_ahead_of_it_reported(
    opened: Opened,
) {
    opened.keep(report("u", 100, 60_000)).await;
    let end = Report { version: None, deleted: true, ..report("u", 0, 1_000) };
    opened.keep(end).await;
    assert_eq!(opened.versions().await, (vec![100, 0], 0), "what is over has no version");
    opened.close().await;
}

/// What follows a clock that is ahead is of one moment with it.
pub(crate) async fn drifts_of_one_moment_stand_in_the_order_in_which_they_came(opened: Opened) {
    let all = ["OutOfSync", "Synced", "OutOfSync", "OutOfSync", "Synced", "OutOfSync"];
    for (version, sync) in (1..).zip(all) {
        opened.keep(Report { sync: Some(sync.to_owned()), ..report("u", version, 10) }).await;
    }
    let drifts = opened.store.drifts(opened.runtime.id, ("argocd", "shop")).await.unwrap();
    let told: Vec<_> = drifts.iter().map(|one| (one.ended, one.repeats)).collect();
    assert_eq!(told, [(false, 1), (true, 2), (true, 1)], "the newest first");
    opened.close().await;
}

pub(crate) async fn a_resource_of_several_versions_of_its_api_is_as_it_was_told_last(opened: Opened) {
    let store = &opened.store;
    opened.keep(report("u", 1, 10)).await;
    let keep = async |version: i64, at: i64, api_version: &str| {
        let mut one = resource("d", version, at);
        api_version.clone_into(&mut one.entity.resource.as_mut().unwrap().api_version);
        opened.keep(one).await;
    };
    for (version, api_version) in [(1, "apps/v1beta1"), (2, "apps/v1"), (3, "apps/v1beta2")] {
        keep(version, 10, api_version).await;
    }
    let known = opened.shop().await;
    let manifests = store.manifests_at(known.id, WEB, 10).await.unwrap().unwrap();
    assert_eq!(manifests.actual.as_deref(), resource("d", 3, 10).object.as_ref().map(Text::as_str));
    let versions = async || {
        let all = store.resources_of(&View::ALL, &name("shop")).await.unwrap().unwrap();
        all.into_iter().map(|one| one.name.api_version).collect::<Vec<_>>()
    };
    assert_eq!(versions().await, ["apps/v1beta2"]);
    keep(4, 20, "apps/v1").await;
    assert_eq!(versions().await, ["apps/v1"]);
    opened.close().await;
}
