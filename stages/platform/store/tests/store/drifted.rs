//! What drifted of an application, and which manifests there were when it began.

use stages_platform_store::{Delivery, MOST_DRIFTS, Report, Text};

use crate::support::{Opened, digest, report, resource};

fn with(sync: &str, live: &str, of: Report) -> Report {
    let text = |replicas: &str| Some(Text::new(format!(r#"{{"replicas":"{replicas}"}}"#)));
    Report { sync: Some(sync.to_owned()), actual: text(live), desired: text("6"), ..of }
}

async fn number(opened: &Opened) -> i64 {
    opened.shop().await.id
}

pub(crate) async fn each_drift_is_told_with_the_manifests_that_it_began_with(opened: Opened) {
    // Twice within one sync of the application, then gone, and made again with another uid.
    opened.keep(with("OutOfSync", "6", report("u", 1, 10))).await;
    let states = [
        ("d", 1, 11, "OutOfSync", "9"),
        ("d", 2, 12, "OutOfSync", "8"),
        ("d", 3, 13, "Synced", "6"),
        ("d", 4, 14, "OutOfSync", "7"),
    ];
    for (uid, version, at, sync, live) in states {
        opened.keep(with(sync, live, resource(uid, version, at))).await;
    }
    opened.keep(Report { deleted: true, ..with("OutOfSync", "7", resource("d", 5, 15)) }).await;
    opened.keep(with("Synced", "6", report("u", 2, 16))).await;
    let again = Report { created_at: Some(17), ..with("OutOfSync", "5", resource("other", 1, 17)) };
    opened.keep(again).await;

    let id = number(&opened).await;
    let drifts = opened.store.drifts_between(id, (0, 100)).await.unwrap();
    let told: Vec<_> = drifts.iter().map(|one| (one.resource.is_some(), one.onset, one.ended)).collect();
    let expected = [(false, 10, Some(16)), (true, 17, None), (true, 14, Some(15)), (true, 11, Some(13))];
    assert_eq!(told, expected);
    let mut live = Vec::new();
    for drift in &drifts[1..] {
        let (actual, desired) = opened.store.drift_manifests(&drift.manifests).await.unwrap();
        assert_eq!(desired.as_deref(), Some(r#"{"replicas":"6"}"#));
        live.push(actual.unwrap());
    }
    assert_eq!(live, ["5", "7", "9"].map(|replicas| format!(r#"{{"replicas":"{replicas}"}}"#)));
    opened.close().await;
}

pub(crate) async fn of_two_drifts_that_began_within_one_moment_each_is_told_with_its_own_manifests(
    opened: Opened,
) {
    opened.keep(with("OutOfSync", "6", report("u", 1, 10))).await;
    for (version, sync, live) in [(1, "OutOfSync", "9"), (2, "Synced", "6"), (3, "OutOfSync", "8")] {
        opened.keep(with(sync, live, resource("d", version, 11))).await;
    }
    let drifts = opened.store.drifts_between(number(&opened).await, (0, 100)).await.unwrap();
    let mut told = Vec::new();
    for drift in drifts.iter().filter(|one| one.resource.is_some()) {
        let (actual, _) = opened.store.drift_manifests(&drift.manifests).await.unwrap();
        told.push((drift.onset, drift.ended, actual.unwrap()));
    }
    let live = |replicas: &str| format!(r#"{{"replicas":"{replicas}"}}"#);
    assert_eq!(told, [(11, None, live("8")), (11, Some(11), live("9"))]);
    opened.close().await;
}

pub(crate) async fn an_application_is_told_to_drift_however_many_of_its_resources_do(opened: Opened) {
    opened.keep(with("OutOfSync", "6", report("u", 1, 10))).await;
    let one = |index: u32| {
        let mut report = with("OutOfSync", "9", resource(&format!("d{index}"), 1, 20));
        report.entity.resource.as_mut().unwrap().name = format!("web-{index}");
        let key = digest(&format!("drifted {index}"));
        Delivery { runtime: opened.runtime.id, key, keyed: true, epoch: None, era: 0, report }
    };
    opened.store.keep((0..MOST_DRIFTS + 5).map(one).collect()).await.unwrap();
    let drifts = opened.store.drifts_between(number(&opened).await, (0, 100)).await.unwrap();
    assert_eq!((drifts[0].resource.as_ref(), drifts[0].onset), (None, 10));
    assert_eq!(drifts.len(), MOST_DRIFTS as usize + 1);
    opened.close().await;
}

pub(crate) async fn what_was_pruned_is_not_told_to_differ_now(opened: Opened) {
    // Nobody reports that it is gone: it differs with its application, which is in sync then, and differs by another.
    opened.keep(with("OutOfSync", "9", resource("old", 1, 10))).await;
    opened.keep(with("OutOfSync", "6", report("u", 1, 20))).await;
    opened.keep(with("Synced", "6", report("u", 2, 30))).await;
    opened.keep(with("OutOfSync", "6", report("u", 3, 100_000))).await;
    let id = number(&opened).await;
    let drifting = async || opened.store.drifting(&[id], 0).await.unwrap().remove(&id).unwrap();
    let known = drifting().await;
    assert_eq!((known.times, known.last), (2, None));
    let mut other = with("OutOfSync", "7", resource("other", 1, 90_000));
    other.entity.resource.as_mut().unwrap().name = "other".to_owned();
    opened.keep(other).await;
    assert_eq!(drifting().await.last.map(|last| last.name).as_deref(), Some("other"));
    opened.close().await;
}
