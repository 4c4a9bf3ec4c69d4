//! Applications that a test makes itself, with all that Argo CD says of them.

use loadtest::sim::argocd::Kind;
use loadtest::sim::kube::Collection;
use loadtest::sim::{Setup, Simulation};
use serde_json::{Value, json};

use crate::runtime::merge;

/// The commit that everything is deployed from.
pub(crate) const REVISION: &str = "a3f0c1d2e4b5968778695a4b3c2d1e0f00112233";
/// Reports of an application of [`put`]: its own, its ConfigMap's and its hook's.
pub(crate) const REPORTS: u64 = 3;

/// Simulators that say only what they are told.
pub(crate) async fn world(more: impl FnOnce(&mut Setup)) -> Simulation {
    let mut setup = Setup { tls: [None; 3], ..Setup::default() };
    setup.keep.last = true;
    more(&mut setup);
    Simulation::start(setup).await.unwrap()
}

/// A ConfigMap, as lists of resources name it.
pub(crate) fn thing() -> Value {
    json!({"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "thing"})
}

/// An application with one managed resource and one hook of the same kind.
pub(crate) fn application(name: &str, resource: &Value) -> Value {
    let mut entry = resource.clone();
    merge(&mut entry, &json!({"status": "OutOfSync", "health": {"status": "Degraded"}}));
    let mut hook = resource.clone();
    merge(&mut hook, &json!({"name": "hook", "hook": true}));
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "project": "default", "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
            "source": {"repoURL": "https://git.example/repo.git", "path": "shop", "targetRevision": "main"},
        },
        "status": {
            "sync": {"status": "OutOfSync", "revision": REVISION},
            "health": {"status": "Degraded"},
            "history": [{"id": 1, "revision": REVISION, "deployedAt": "2026-01-01T00:00:00Z"}],
            "resources": [entry, hook],
        },
    })
}

/// `managed-resources` of one resource.
pub(crate) fn managed(resource: &Value, live: &str, target: &str) -> Value {
    let mut item = resource.clone();
    merge(
        &mut item,
        &json!({
            "liveState": live, "targetState": target, "normalizedLiveState": live, "predictedLiveState": target,
            "resourceVersion": "7", "modified": true,
        }),
    );
    json!({"items": [item]})
}

/// `resource-tree` of one resource with a degraded Pod below it.
pub(crate) fn tree(resource: &Value, message: &str) -> Value {
    let mut node = resource.clone();
    let degraded = json!({"status": "Degraded", "message": message});
    merge(&mut node, &json!({"health": degraded, "createdAt": "2026-01-01T00:00:00Z"}));
    let child = json!({
        "version": "v1", "kind": "Pod", "namespace": "shop", "name": "pod", "parentRefs": [resource],
        "health": degraded, "createdAt": "2026-01-01T00:00:00Z",
    });
    json!({"nodes": [node, child]})
}

/// Puts an application into the cluster, and all answers about it into Argo CD.
pub(crate) fn put(simulation: &Simulation, name: &str) {
    put_object(simulation, application(name, &thing()));
}

/// As [`put`], with a parent of the same state, which is in the cluster too.
pub(crate) fn put_with_parent(simulation: &Simulation, name: &str, parent: &str) {
    put(simulation, parent);
    let above = application(parent, &thing());
    simulation.argocd.set(Kind::Application, parent, 200, above.to_string());
    let mut child = application(name, &thing());
    let id = format!("{parent}:argoproj.io/Application:argocd/{name}");
    child["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": id});
    put_object(simulation, child);
}

/// Changes an application so that it is reported again.
pub(crate) fn change(simulation: &Simulation, name: &str, message: &str) {
    let mut object = application(name, &thing());
    object["status"]["health"]["message"] = json!(message);
    simulation.kube.apply(Collection::Applications, object).unwrap();
}

/// As [`put`], with an object of the test's own.
pub(crate) fn put_object(simulation: &Simulation, object: Value) {
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    answer(simulation, &name);
    simulation.kube.apply(Collection::Applications, object).unwrap();
}

/// Puts all answers about an application into Argo CD.
pub(crate) fn answer(simulation: &Simulation, name: &str) {
    let of = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}})
            .to_string()
    };
    let (plain, hook) = (of("thing"), of("hook"));
    let commit = json!({"author": "A <a@example.com>", "date": "2026-01-01T00:00:00Z", "message": "first"});
    for (kind, body) in [
        (Kind::ManagedResources, managed(&thing(), &plain, &plain)),
        (Kind::ResourceTree, tree(&thing(), "crashed")),
        (
            Kind::Manifests,
            json!({"manifests": [plain, hook], "revision": REVISION, "sourceType": "Directory"}),
        ),
        (Kind::Resource, json!({"manifest": hook})),
        (Kind::RevisionMetadata, commit),
    ] {
        simulation.argocd.set(kind, name, 200, body.to_string());
    }
}
