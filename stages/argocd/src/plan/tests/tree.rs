//! Health from the tree, and what is degraded below a resource.

use pipeline_core::Cause;
use serde_json::{Value, json};

use super::*;
use crate::labels;

fn tree(service: &Value, deployment: &str) -> Response {
    let mut nodes =
        vec![json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "store",
        "name": "web", "health": {"status": deployment}})];
    if *service != json!("gone") {
        nodes.push(json!({"version": "v1", "kind": "Service", "namespace": "store", "name": "web",
            "health": service}));
    }
    body(json!({"nodes": nodes}))
}

fn responses(service: Value, deployment: &str) -> impl FnMut(&Fetch) -> Response {
    move |fetch| match fetch {
        Fetch::ResourceTree { .. } => tree(&service, deployment),
        fetch => healthy(fetch),
    }
}

fn health(enriched: &Enriched, kind: &str) -> Value {
    payload(enriched, kind)["source"].get("healthStatus").cloned().unwrap_or_default()
}

#[test]
fn health_is_that_of_the_node() {
    let store = store_with_health_in_tree();
    let event = event(&store);
    let (enriched, _) = run(&event, None, responses(json!({"status": "Degraded"}), "Progressing"));
    assert_eq!(health(&enriched, "Service"), "Degraded");
    assert_eq!(health(&enriched, "Deployment"), "Progressing");
    // A node that has no health to have is healthy once it is synced.
    let (enriched, _) = run(&event, None, responses(Value::Null, "Healthy"));
    assert_eq!(health(&enriched, "Service"), "Healthy");
    // What is not in the tree is unknown, never healthy; likewise without a tree.
    let (enriched, _) = run(&event, None, responses(json!("gone"), "Healthy"));
    assert_eq!(health(&enriched, "Service"), "Unknown");
    let broken = |fetch: &Fetch| match fetch {
        Fetch::ResourceTree { .. } => Response::Failed(pipeline_core::Reason::Timeout),
        fetch => healthy(fetch),
    };
    let (enriched, _) = run(&event, None, broken);
    assert_eq!(health(&enriched, "Service"), "Unknown");
    assert_eq!(enriched.refetch, Some(Refetch::Incomplete));
    assert!(enriched.reports.iter().all(|report| report.incomplete));
}

#[test]
fn a_node_without_health_whose_entry_is_not_synced_has_none() {
    let mut store = store_with_health_in_tree();
    store["status"]["resources"][0]["status"] = json!("OutOfSync");
    let of = |node: Value| {
        let response = |fetch: &Fetch| match fetch {
            Fetch::ResourceTree { .. } => body(json!({"nodes": [node]})),
            fetch => healthy(fetch),
        };
        health(&run(&event(&store), None, response).0, "Service")
    };
    let node = json!({"version": "v1", "kind": "Service", "namespace": "store", "name": "web"});
    let mut live = node.clone();
    live["uid"] = json!("s1");
    live["createdAt"] = json!("2026-11-21T09:00:00Z");
    assert_eq!(of(live), Value::Null);
    // Of what is not in the cluster Argo CD before 3.2 tells no health.
    assert_eq!(of(node), "Missing");
}

#[test]
fn an_event_that_is_only_reconciled_reports_the_resources_whose_health_moved() {
    let store = store_with_health_in_tree();
    let healthy_service = || json!({"status": "Healthy"});
    let (enriched, _) = run(&event(&store), None, responses(healthy_service(), "Progressing"));
    let known = remember(None, &enriched).unwrap();
    let mut later = store;
    later["metadata"]["resourceVersion"] = json!("11");
    later["status"]["reconciledAt"] = json!("2026-11-21T12:30:00Z");
    let later = event(&later);
    let (same, asked) = run(&later, Some(&known), responses(healthy_service(), "Progressing"));
    assert_eq!(same.filtered, Some(labels::RECONCILED_ONLY));
    assert!(matches!(asked.as_slice(), [Fetch::ResourceTree { paced: true, .. }]), "{asked:?}");
    let (moved, asked) = run(&later, Some(&known), responses(healthy_service(), "Healthy"));
    assert_eq!(kinds(&moved), ["Deployment"]);
    assert_eq!(calls(&asked), ["resource_tree", "managed_resources", "revision_metadata"]);
    assert_eq!(remember(Some(known.clone()), &moved).unwrap().version.0, 11);
    // A tree that was not read, or not got, tells of no health that moved.
    for response in [Response::Skipped, Response::Failed(pipeline_core::Reason::Timeout)] {
        let again = match response {
            Response::Skipped => Refetch::Paced(Duration::from_secs(10)),
            _ => Refetch::Incomplete,
        };
        let (none, _) = run(&later, Some(&known), |_| response.clone());
        assert_eq!(none.filtered, Some(labels::RECONCILED_ONLY));
        assert_eq!(none.refetch, Some(again));
    }
    let refetch = pipeline_core::Event { cause: Cause::Refetch, ..later };
    let (_, asked) = run(&refetch, Some(&known), responses(healthy_service(), "Progressing"));
    assert!(matches!(asked.as_slice(), [Fetch::ResourceTree { paced: false, .. }]), "{asked:?}");
}

#[test]
fn health_that_was_told_stays_where_the_tree_cannot_be_read_once_and_is_unknown_where_it_cannot_be_read_again()
 {
    let store = store_with_health_in_tree();
    let well = || responses(json!({"status": "Healthy"}), "Healthy");
    let broken = |fetch: &Fetch| match fetch {
        Fetch::ResourceTree { .. } => Response::Failed(pipeline_core::Reason::Timeout),
        fetch => healthy(fetch),
    };
    let known = remember(None, &run(&event(&store), None, well()).0).unwrap();
    let later = |version: &str, refresh: &str| {
        let mut later = store.clone();
        later["metadata"]["resourceVersion"] = json!(version);
        later["metadata"]["annotations"] = json!({"argocd.argoproj.io/refresh": refresh});
        event(&later)
    };
    let first = later("11", "normal");
    let (once, _) = run(&first, Some(&known), broken);
    assert_eq!(kinds(&once), ["Application"]);
    assert_eq!(once.refetch, Some(Refetch::Incomplete));
    let known = remember(Some(known), &once).unwrap();
    let refetch = pipeline_core::Event { cause: Cause::Refetch, ..first };
    let degraded = responses(json!({"status": "Degraded"}), "Healthy");
    assert_eq!(health(&run(&refetch, Some(&known), degraded).0, "Service"), "Degraded");
    let (twice, _) = run(&later("12", "hard"), Some(&known), broken);
    assert_eq!(health(&twice, "Service"), "Unknown");
    // No waiting makes a tree smaller.
    let known = remember(None, &run(&event(&store), None, well()).0).unwrap();
    let large = |fetch: &Fetch| match fetch {
        Fetch::ResourceTree { .. } => Response::Failed(pipeline_core::Reason::TooLarge),
        fetch => healthy(fetch),
    };
    assert_eq!(health(&run(&later("11", "normal"), Some(&known), large).0, "Service"), "Unknown");
}

#[test]
fn a_healthy_change_costs_two_calls() {
    let store = store_with_health_in_tree();
    let (enriched, _) = run(&event(&store), None, responses(json!({"status": "Healthy"}), "Progressing"));
    let known = remember(None, &enriched).unwrap();
    let mut later = store;
    later["metadata"]["resourceVersion"] = json!("11");
    later["status"]["health"] = json!({"status": "Healthy"});
    let (enriched, asked) =
        run(&event(&later), Some(&known), responses(json!({"status": "Healthy"}), "Healthy"));
    assert_eq!(kinds(&enriched), ["Application", "Deployment"]);
    // Commits are kept for ever, so they cost nothing here.
    let calls: Vec<_> = calls(&asked).into_iter().filter(|call| *call != "revision_metadata").collect();
    assert_eq!(calls, ["resource_tree", "managed_resources"]);
}

#[test]
fn degraded_descendants_are_errors_in_the_order_of_the_tree() {
    let node = |kind: &str, name: &str, parent: Value, status: &str| {
        json!({"version": "v1", "kind": kind, "namespace": "store", "name": name, "parentRefs": [parent],
            "health": {"status": status, "message": format!("{name} says")}, "createdAt": "2026-11-21T09:00:00Z"})
    };
    let of = |group: &str, kind: &str, name: &str| json!({"group": group, "kind": kind, "namespace": "store", "name": name});
    let nodes = json!({"nodes": [
        node("Pod", "pod-2", of("", "ReplicaSet", "rs"), "Degraded"),
        node("ReplicaSet", "rs", of("apps", "Deployment", "web"), "Progressing"),
        node("Pod", "pod-1", of("", "ReplicaSet", "rs"), "Degraded"),
        node("Pod", "other", of("", "Service", "web"), "Degraded"),
        node("Pod", "fine", of("", "ReplicaSet", "rs"), "Healthy"),
        {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "store", "name": "web",
            "health": {"status": "Degraded", "message": "itself"}},
    ]});
    let response = |fetch: &Fetch| match fetch {
        Fetch::ResourceTree { .. } => body(nodes.clone()),
        fetch => healthy(fetch),
    };
    let (enriched, _) = run(&event(&store()), None, response);
    let error = |name: &str| {
        json!({"type": "health", "level": "error", "message": format!("{name} says"),
            "lastSeen": "2026-11-21T09:00:00Z"})
    };
    assert_eq!(payload(&enriched, "Deployment")["errors"], json!([error("pod-2"), error("pod-1")]));
    assert_eq!(payload(&enriched, "Service").get("errors"), None);
    let mut with_reference = [error("pod-2"), error("pod-1")];
    for error in &mut with_reference {
        error["sourceReference"] = json!({"group": "apps", "version": "v1", "kind": "Deployment",
            "name": "web", "namespace": "store"});
    }
    assert_eq!(payload(&enriched, "Application")["errors"], json!(with_reference));
}

#[test]
fn the_tree_is_not_read_where_everything_is_healthy_by_its_entries() {
    let mut store = store();
    store["status"]["resources"][1]["health"] = json!({"status": "Healthy"});
    let (_, asked) = run(&event(&store), None, healthy);
    assert!(!calls(&asked).contains(&"resource_tree"));
}

/// Argo CD names an owner with the namespace of what it owns, also one that stands in none.
#[test]
fn what_is_degraded_below_a_resource_without_a_namespace_is_found_by_uid() {
    let mut store = store();
    store["status"]["resources"] = json!([{"group": "example.com", "version": "v1", "kind": "Fleet",
        "name": "all", "status": "Synced", "health": {"status": "Degraded"}}]);
    let pod = |name: &str, parent: Value| {
        json!({"version": "v1", "kind": "Pod", "namespace": "store", "name": name, "uid": name,
            "parentRefs": [parent], "health": {"status": "Degraded", "message": name}, "createdAt": NOW})
    };
    let fleet = |uid: &str| json!({"group": "example.com", "kind": "Fleet", "namespace": "store", "name": "all", "uid": uid});
    let fleets = json!({"group": "example.com", "version": "v1", "kind": "Fleet", "name": "all", "uid": "f"});
    let set = json!({"group": "apps", "version": "v1", "kind": "ReplicaSet", "namespace": "store",
        "name": "web", "uid": "s", "parentRefs": [fleet("f")]});
    let of_set =
        json!({"group": "apps", "kind": "ReplicaSet", "namespace": "store", "name": "web", "uid": "s"});
    let nodes = [fleets, set, pod("own", fleet("f")), pod("of-set", of_set), pod("other", fleet("g"))];
    let response = |fetch: &Fetch| match fetch {
        Fetch::ResourceTree { .. } => body(json!({"nodes": nodes})),
        fetch => healthy(fetch),
    };
    let (enriched, _) = run(&event(&store), None, response);
    let errors = payload(&enriched, "Application")["errors"].clone();
    let messages: Vec<_> =
        errors.as_array().into_iter().flatten().map(|error| error["message"].clone()).collect();
    assert_eq!(messages, ["own", "of-set"]);
}
