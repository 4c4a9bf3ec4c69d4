//! What is told of a runtime beside its reports: that it lives while nothing changes, and what of its requests was not taken.

use std::time::Duration;

use serde_json::json;
use stages_platform_store::{FleetRuntime, View};

use crate::support::{Platform, config, start};

/// The runtime as it is known, once that is so.
async fn until(platform: &Platform, is_so: impl Fn(&FleetRuntime) -> bool) -> FleetRuntime {
    let known = async {
        loop {
            let found = platform.store.runtimes(&View::ALL).await.unwrap().remove(0);
            if is_so(&found) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), known).await.unwrap()
}

#[tokio::test]
async fn a_runtime_of_which_nothing_changes_lives_as_long_as_its_digests_come() {
    let platform = start(config()).await;
    let known = until(&platform, |_| true).await;
    assert_eq!((known.heard_at, known.roles.len()), (None, 0), "nobody has heard of it");
    let before = jiff::Timestamp::now().as_millisecond();
    let digest = json!({"ledger": "l", "shard": 0, "shards": 1, "applications": 0, "entities": 0, "digest": "0".repeat(32)});
    let headers = [("authorization", &*platform.token), ("user-agent", "gitops-runtime/1.2.3")];
    let reply = platform.post("/2.0/api/events/digest", &headers, digest.to_string()).await;
    assert_eq!((reply.status, reply.body), (200, json!({"equal": true})));
    let known = until(&platform, |known| !known.roles.is_empty()).await;
    assert!(known.heard_at.is_some_and(|at| at >= before));
    assert_eq!(known.reported_at, None, "it has reported nothing");
    assert_eq!((&*known.roles[0].role, &*known.roles[0].version), ("reporter", "1.2.3"));
}

#[tokio::test]
async fn reports_of_resources_do_not_hide_that_the_reporter_is_silent() {
    let platform = start(config()).await;
    let own = [("authorization", &*platform.token)];
    let digest = json!({"ledger": "l", "shard": 0, "shards": 1, "applications": 0, "entities": 0, "digest": "0".repeat(32)});
    assert_eq!(platform.post("/2.0/api/events/digest", &own, digest.to_string()).await.status, 200);
    until(&platform, |known| !known.roles.is_empty()).await;
    // When any role of it was heard of, and when its reporter was.
    let heard = async || {
        let known = platform.store.registrations(None).await.unwrap().remove(0);
        (known.heard_at.unwrap(), known.reporter_at.unwrap())
    };
    let (first, told) = heard().await;
    assert_eq!(told, first);
    let object = |version: u32| {
        let metadata =
            json!({"name": "web", "namespace": "shop", "uid": "r", "resourceVersion": version.to_string()});
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": metadata})
    };
    let mut version = 0;
    while heard().await.0 == first {
        version += 1;
        let reply = platform.report(&json!({"data": {"object": object(version)}})).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // An Application may as well be told of by whoever watches resources.
    let mut application = crate::forms::application("w", 1);
    application["metadata"]["name"] = json!("watched");
    let reply = platform.report(&json!({"data": {"object": application}})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(heard().await.1, told);
    // The reporter lives as well once a report of its own comes, if only in one batch with others.
    let own_report = crate::forms::event(&object(version + 1), "01");
    let batch = json!({"reports": [
        {"idempotencyKey": "a", "data": own_report["data"]},
        {"idempotencyKey": "b", "data": {"object": object(version + 2)}},
    ]});
    let reply = platform.post("/2.0/api/events/batch", &own, batch.to_string()).await;
    assert_eq!(reply.body, json!({"results": [{"status": 200}, {"status": 200}]}));
    let (last, told) = heard().await;
    assert_eq!(told, last);
}

#[tokio::test]
async fn what_is_not_taken_is_counted_of_whoever_sent_it_and_of_nobody_where_that_is_not_known() {
    let platform = start(config()).await;
    let own = [("authorization", &*platform.token)];
    let counted = |known: &FleetRuntime| {
        known.refused.iter().map(|one| (one.reason.clone(), one.number)).collect::<Vec<_>>()
    };
    // A report of a batch counts as much as a request.
    let batch =
        json!({"reports": [{"idempotencyKey": "a", "data": {}}, {"idempotencyKey": "b", "data": {}}]});
    let reply = platform.post("/2.0/api/events/batch", &own, batch.to_string()).await;
    assert_eq!(reply.status, 200);
    // The first is written at once, and what comes soon after with what comes later.
    let known = until(&platform, |known| !known.refused.is_empty()).await;
    assert_eq!(counted(&known), [("malformed".to_owned(), 1)]);
    let mut sent = 2;
    let all = async {
        loop {
            let (reason, number) = counted(&until(&platform, |_| true).await).remove(0);
            assert!(reason == "malformed" && number <= sent, "{reason} {number} {sent}");
            if number > 2 {
                return;
            }
            platform.post("/2.0/api/events", &own, "{").await;
            // Whoever only looks sends nothing that could be taken.
            assert_eq!(platform.get("/api/v1/applications/a/b/timeline").await.status, 404);
            sent += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), all).await.unwrap();
    assert_eq!(platform.store.refused_of_nobody().await.unwrap(), []);
    let stranger = [("authorization", "gort_0123")];
    assert_eq!(platform.post("/2.0/api/events", &stranger, "{}").await.status, 401);
    let nobody = async {
        while platform.store.refused_of_nobody().await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), nobody).await.unwrap();
    let nobody = platform.store.refused_of_nobody().await.unwrap().remove(0);
    assert_eq!((&*nobody.reason, nobody.number), ("unauthorized", 1));
}
