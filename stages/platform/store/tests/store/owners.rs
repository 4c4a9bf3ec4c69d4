//! What owns a resource, as its reports say.

use stages_platform_store::Report;

use crate::support::{Opened, report, resource};

/// A Pod of the application `shop`, with its owner.
fn pod(name: &str, (uid, version): (&str, i64), owner: &str) -> Report {
    let mut pod = resource(uid, version, version);
    let of = pod.entity.resource.as_mut().unwrap();
    (of.api_version, of.kind, of.name) = ("v1".to_owned(), "Pod".to_owned(), name.to_owned());
    pod.owner = owner.to_owned();
    pod
}

pub(crate) async fn what_owns_a_resource_is_what_its_newest_report_with_an_owner_says(opened: Opened) {
    let store = &opened.store;
    opened.keep(report("u", 1, 1)).await;
    opened.keep(pod("web-1", ("p", 5), "apps/ReplicaSet/web-a")).await;
    opened.keep(pod("web-2", ("q", 5), "")).await;
    let known = opened.shop().await.id;
    let owners = async |at: Option<i64>| {
        let all = store.resources_at(known, at, None).await.unwrap();
        all.into_iter().map(|one| format!("{} {}", one.name.name, one.owner)).collect::<Vec<_>>()
    };
    let expected = ["web-1 apps/ReplicaSet/web-a", "web-2 "];
    assert_eq!(owners(None).await, expected);
    assert_eq!(owners(Some(6)).await, expected);
    // What says none, as Git does, or is older, changes nothing.
    opened.keep(pod("web-1", ("p", 6), "")).await;
    opened.keep(pod("web-1", ("p", 4), "apps/ReplicaSet/older")).await;
    assert_eq!(owners(None).await, expected);
    // Another life has another; and what was not said before is said now.
    opened.keep(pod("web-1", ("r", 7), "apps/StatefulSet/web")).await;
    opened.keep(pod("web-2", ("q", 5), "apps/ReplicaSet/web-a")).await;
    assert_eq!(owners(None).await, ["web-1 apps/StatefulSet/web", "web-2 apps/ReplicaSet/web-a"]);
    opened.close().await;
}
