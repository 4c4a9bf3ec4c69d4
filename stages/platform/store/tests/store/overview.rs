//! What stands beside what needs somebody: clusters, and which applications move.

use stages_platform_store::{FleetCluster, FleetMover, Report, View, create_token};

use crate::support::{Opened, operation, report};

const HOUR: i64 = 3_600_000;

fn application(name: &str, cluster: &str, (health, sync): (&str, &str), at: i64) -> Report {
    let mut report = report(&format!("uid-{name}"), at, at);
    report.entity.app_name = name.to_owned();
    report.placement.cluster = cluster.to_owned();
    (report.health, report.sync) = (Some(health.to_owned()), Some(sync.to_owned()));
    report
}

pub(crate) async fn clusters_are_told_by_runtime_with_how_their_applications_are(opened: Opened) {
    let token = create_token(&opened.place, "other").await.unwrap();
    let other = opened.store.runtime(&token).await.unwrap().unwrap().id;
    let (well, out) = (("Healthy", "Synced"), ("Healthy", "OutOfSync"));
    for (at, (name, cluster, state)) in (1..).zip([
        ("a", "in-cluster", well),
        // By its address.
        ("b", "https://kubernetes.default.svc", out),
        ("c", "east", well),
        ("d", "east", ("Degraded", "OutOfSync")),
        ("e", "east", ("Missing", "Synced")),
        ("f", "east", ("Progressing", "Synced")),
        ("g", "", ("Degraded", "OutOfSync")),
    ]) {
        opened.keep(application(name, cluster, state, at)).await;
    }
    let mut gone = application("gone", "west", well, 8);
    opened.keep(gone.clone()).await;
    (gone.deleted, gone.at, gone.version) = (true, 9, Some(9));
    opened.keep(gone).await;
    opened.deliver_of(other, application("a", "in-cluster", well, 10)).await;

    let one =
        |runtime: &str, name: &str, [applications, healthy, unwell, out_of_sync]: [u64; 4]| FleetCluster {
            runtime: runtime.to_owned(),
            name: name.to_owned(),
            applications,
            healthy,
            unwell,
            out_of_sync,
        };
    let expected = [
        one("prod", "east", [4, 1, 2, 1]),
        one("prod", "in-cluster", [2, 2, 0, 1]),
        one("other", "in-cluster", [1, 1, 0, 0]),
    ];
    assert_eq!(opened.store.clusters(&View::ALL, 10).await.unwrap(), (expected.to_vec(), 3));
    assert_eq!(opened.store.clusters(&View::ALL, 1).await.unwrap(), (expected[..1].to_vec(), 3));
    assert_eq!(opened.store.clusters(&View::NOTHING, 10).await.unwrap(), (Vec::new(), 0));
    assert_eq!(
        opened.store.clusters(&View::of_runtime("other"), 10).await.unwrap(),
        (expected[2..].to_vec(), 1)
    );
    opened.close().await;
}

pub(crate) async fn applications_that_move_most_are_told_against_the_time_before(opened: Opened) {
    let day = 24 * HOUR;
    // Of each application when its deployments began, in hours, and how they ended; days two and three are looked at.
    let all: [(&str, &[(i64, &str)]); 5] = [
        ("often", &[(25, "Succeeded"), (26, "Failed"), (30, "Error"), (2, "Succeeded"), (23, "Succeeded")]),
        ("newly", &[(24, "Succeeded"), (47, "Succeeded")]),
        ("alike", &[(33, "Succeeded"), (34, "Succeeded"), (3, "Succeeded")]),
        ("before", &[(20, "Succeeded"), (21, "Succeeded")]),
        ("runs", &[(46, "Running"), (48, "Succeeded")]),
    ];
    let mut version = 0;
    for (name, deployments) in all {
        for (hour, phase) in deployments {
            version += 1;
            let mut report = application(name, "in-cluster", ("Healthy", "Synced"), version);
            let end = (*phase != "Running").then_some(hour * HOUR + 1);
            report.operation = operation(hour * HOUR, end, phase);
            opened.keep(report).await;
        }
    }
    let found = opened.store.movers(&View::ALL, (day, 2 * day), 10).await.unwrap();
    let told = |one: &FleetMover| (one.application.name.clone(), one.deployments, one.failed, one.before);
    let told: Vec<_> = found.iter().map(told).collect();
    let expected = [("often", 3, 2, 2), ("newly", 2, 0, 0), ("alike", 2, 0, 1)]
        .map(|(name, now, failed, before)| (name.to_owned(), now, failed, before));
    assert_eq!(told, expected);
    assert_eq!(opened.store.movers(&View::ALL, (day, 2 * day), 1).await.unwrap(), found[..1]);
    assert_eq!(opened.store.movers(&View::NOTHING, (day, 2 * day), 10).await.unwrap(), []);
    opened.close().await;
}
