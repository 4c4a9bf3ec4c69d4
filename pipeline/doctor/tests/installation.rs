//! What is said of a running installation: one that is well, and each trouble laid over it.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use pipeline_doctor::{Cluster, Installation, Looked, Verdict, installation};
use serde_json::{Value as Json, json};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/runtime/deployments?labelSelector=app.kubernetes.io%2Fpart-of%3Dcodefresh-gitops-runtime";
const SETS: &str = "/apis/apps/v1/namespaces/runtime/statefulsets?labelSelector=app.kubernetes.io%2Fpart-of%3Dcodefresh-gitops-runtime";
const PODS: &str = "/api/v1/namespaces/runtime/pods";
const CLAIMS: &str = "/api/v1/namespaces/runtime/persistentvolumeclaims";
const EVENTS: &str = "/api/v1/namespaces/runtime/events";
const RELEASES: &str = "/api/v1/namespaces/runtime/secrets?labelSelector=owner%3Dhelm";

/// Answers at these paths, a text for why it does not say.
struct Simulated(BTreeMap<&'static str, Json>);

impl Cluster for Simulated {
    fn get(&self, path: &str) -> Result<Option<Json>, String> {
        match self.0.get(path) {
            Some(Json::String(why)) => Err(why.clone()),
            found => Ok(found.cloned()),
        }
    }

    fn metadata(&self, path: &str) -> Result<Option<Json>, String> {
        self.get(path)
    }

    fn may(&self, _: &str, _: &str, _: &str, _: Option<&str>) -> Result<bool, String> {
        Ok(true)
    }
}

fn of(component: &str) -> Json {
    json!({"app.kubernetes.io/component": component, "app.kubernetes.io/instance": "prod"})
}

fn workload(component: &str) -> Json {
    json!({
        "metadata": {"name": format!("prod-{component}"), "labels": {"app.kubernetes.io/instance": "prod"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": of(component)}},
        "status": {"readyReplicas": 1, "updatedReplicas": 1},
    })
}

fn pod(component: &str) -> Json {
    json!({
        "metadata": {"name": format!("prod-{component}-1"), "labels": of(component)},
        "spec": {"volumes": [{"name": "state", "persistentVolumeClaim": {"claimName": format!("prod-{component}")}}]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": component, "image": "gitops-runtime:0.1.0", "ready": true, "restartCount": 0}],
        },
    })
}

fn claim(component: &str) -> Json {
    json!({"metadata": {"name": format!("prod-{component}")}, "status": {"phase": "Bound"}})
}

/// A reporter and a bus that run.
fn well() -> BTreeMap<&'static str, Json> {
    BTreeMap::from([
        ("/version", json!({"gitVersion": "v1.34.1"})),
        (DEPLOYMENTS, json!({"items": [workload("reporter")]})),
        (SETS, json!({"items": [workload("nats")]})),
        (PODS, json!({"items": [pod("reporter"), pod("nats")]})),
        (CLAIMS, json!({"items": [claim("reporter"), claim("nats")]})),
        (
            RELEASES,
            json!({"items": [
                {"metadata": {"labels": {"name": "prod", "version": "2", "status": "deployed"}}},
                {"metadata": {"labels": {"name": "prod", "version": "1", "status": "superseded"}}},
                {"metadata": {"labels": {"name": "other", "version": "9", "status": "failed"}}},
            ]}),
        ),
        ("/api/v1/namespaces/runtime/configmaps/codefresh-cm", json!({"data": {"version": "0.1.0"}})),
    ])
}

fn looked(held: BTreeMap<&'static str, Json>) -> Installation {
    let cluster = Simulated(held);
    installation(&Looked { cluster: Ok(&cluster), namespace: "runtime", release: None, version: "0.1.0" })
}

/// With the reporter's pod not ready, changed so.
fn unready(change: impl FnOnce(&mut Json)) -> BTreeMap<&'static str, Json> {
    let mut held = well();
    held.get_mut(DEPLOYMENTS).unwrap()["items"][0]["status"] = json!({"updatedReplicas": 1});
    let pod = &mut held.get_mut(PODS).unwrap()["items"][0];
    pod["status"]["conditions"][0]["status"] = json!("False");
    pod["status"]["containerStatuses"][0]["ready"] = json!(false);
    change(pod);
    held
}

/// What is said of the reporter where it fails.
fn failing(held: BTreeMap<&'static str, Json>) -> (String, String) {
    let found = looked(held);
    let part = found.failing().unwrap_or_else(|| panic!("nothing fails: {}", found.table()));
    assert_eq!(part.part, "Deployment prod-reporter");
    assert!(found.table().ends_with("Begin with Deployment prod-reporter.\n"), "{}", found.table());
    (part.found.clone(), part.todo.clone())
}

#[test]
fn an_installation_that_is_well_is_said_to_be() {
    let found = looked(well());
    assert_eq!(
        found.table(),
        "  works       Kubernetes: v1.34.1\n  works       release prod: revision 2 is deployed\n  works       version: 0.1.0, as \
         this program\n  works       StatefulSet prod-nats: 1 of 1 ready\n  works       Deployment prod-reporter: 1 of 1 \
         ready\nEverything is well.\n"
    );
    let json: Json = serde_json::from_str(&found.json()).unwrap();
    assert_eq!((&json["failing"], &json["parts"][0]["verdict"]), (&Json::Null, &json!("works")));
}

#[test]
fn why_a_pod_is_not_ready_is_said_with_what_to_do() {
    let waiting = |reason: &str, message: &str| {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        unready(move |pod| pod["status"]["containerStatuses"][0]["state"] = state)
    };
    let (found, todo) = failing(waiting("ImagePullBackOff", "401 Unauthorized"));
    assert_eq!(found, "0 of 1 ready: the image gitops-runtime:0.1.0 is not pulled: 401 Unauthorized");
    assert!(todo.contains("global.imagePullSecrets"), "{todo}");
    let (found, todo) = failing(waiting("CreateContainerConfigError", "secret \"user\" not found"));
    assert_eq!(found, "0 of 1 ready: the container reporter is not made: secret \"user\" not found");
    assert!(todo.contains("helm get notes"), "{todo}");
    let crashed = |reason: &str, code: i64| {
        let mut held = waiting("CrashLoopBackOff", "back-off");
        let container = &mut held.get_mut(PODS).unwrap()["items"][0]["status"]["containerStatuses"][0];
        container["lastState"] = json!({"terminated": {"reason": reason, "exitCode": code}});
        held
    };
    let (found, todo) = failing(crashed("OOMKilled", 137));
    assert_eq!(found, "0 of 1 ready: the container reporter ends again and again: OOMKilled (137)");
    assert!(todo.contains("resources.limits.memory"), "{todo}");
    let (_, todo) = failing(crashed("Error", 1));
    assert_eq!(todo, "see kubectl logs prod-reporter-1 -n runtime --previous: its last line says why");
    let unscheduled =
        json!({"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"});
    let (found, _) =
        failing(unready(|pod| pod["status"]["conditions"].as_array_mut().unwrap().push(unscheduled)));
    assert_eq!(found, "0 of 1 ready: no node takes the pod prod-reporter-1: 0/3 nodes are available");
    let (found, _) = failing(unready(|_| {}));
    assert_eq!(found, "0 of 1 ready: the pod prod-reporter-1 is not ready yet");
}

#[test]
fn what_a_pod_does_not_say_the_newest_warning_about_it_does() {
    let warning = |time: &str, message: &str| json!({"type": "Warning", "lastTimestamp": time, "message": message, "involvedObject": {"name": "prod-reporter-1"}});
    let missing = "MountVolume.SetUp failed for volume \"platform\" : secret \"codefresh-token\" not found";
    let mut held = unready(|_| {});
    held.insert(
        EVENTS,
        json!({"items": [
            warning("2026-11-26T10:00:02Z", missing),
            warning("2026-11-26T10:00:01Z", "older"),
            {"type": "Normal", "lastTimestamp": "2026-11-26T10:00:03Z", "message": "pulled", "involvedObject": {"name": "prod-reporter-1"}},
        ]}),
    );
    let (found, todo) = failing(held.clone());
    assert_eq!(found, format!("0 of 1 ready: {missing}"));
    assert!(todo.contains("helm get notes"), "{todo}");
    held.insert(EVENTS, json!({"items": [warning("2026-11-26T10:00:01Z", "Readiness probe failed: 503")]}));
    let (found, todo) = failing(held);
    assert_eq!(found, "0 of 1 ready: Readiness probe failed: 503");
    assert_eq!(todo, "see kubectl logs prod-reporter-1 -n runtime: it says what it lacks");
}

#[test]
fn a_claim_that_nobody_binds_is_named() {
    let mut held = unready(|_| {});
    held.get_mut(CLAIMS).unwrap()["items"][0]["status"]["phase"] = json!("Pending");
    held.insert(
        EVENTS,
        json!({"items": [{"type": "Warning", "lastTimestamp": "1", "message": "no storage class", "involvedObject": {"name": "prod-reporter"}}]}),
    );
    let (found, todo) = failing(held.clone());
    assert_eq!(found, "0 of 1 ready: the claim prod-reporter is Pending: no storage class");
    assert!(todo.contains("kubectl get storageclass"), "{todo}");
    held.insert(CLAIMS, json!({"items": []}));
    assert_eq!(failing(held).0, "0 of 1 ready: there is no claim prod-reporter: no storage class");
}

#[test]
fn what_runs_and_is_not_as_it_should_be_is_doubted() {
    let doubted = |held: BTreeMap<&'static str, Json>| {
        let found = looked(held);
        assert!(found.failing().is_none(), "{}", found.table());
        assert!(
            found.table().ends_with("Everything runs, and not all is as it should be.\n"),
            "{}",
            found.table()
        );
        let part = found.parts.iter().find(|part| part.verdict == Verdict::Doubtful).unwrap();
        format!("{}: {}", part.part, part.found)
    };
    let mut held = well();
    let container = &mut held.get_mut(PODS).unwrap()["items"][0]["status"]["containerStatuses"][0];
    container["restartCount"] = json!(7);
    container["lastState"] = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}});
    assert_eq!(
        doubted(held),
        "Deployment prod-reporter: 1 of 1 ready, but the pod prod-reporter-1 was started 7 times again: OOMKilled"
    );
    let mut held = well();
    held.get_mut(DEPLOYMENTS).unwrap()["items"][0]["spec"]["replicas"] = json!(0);
    assert_eq!(doubted(held), "Deployment prod-reporter: is scaled to none");
    let mut held = well();
    held.get_mut(DEPLOYMENTS).unwrap()["items"][0]["status"]["updatedReplicas"] = json!(0);
    assert_eq!(doubted(held), "Deployment prod-reporter: 1 of 1 ready, 0 of them as it is to be now");
    let mut held = well();
    held.get_mut(RELEASES).unwrap()["items"][0]["metadata"]["labels"]["status"] = json!("pending-upgrade");
    assert_eq!(doubted(held), "release prod: revision 2 is pending-upgrade");
    let mut held = well();
    held.insert("/api/v1/namespaces/runtime/configmaps/codefresh-cm", json!({"data": {"version": "0.0.9"}}));
    assert_eq!(doubted(held), "version: 0.0.9 is installed, and this program is 0.1.0");
}

/// With a newer pod of the reporter beside the one that is ready, in this state.
fn updating(state: &Json) -> BTreeMap<&'static str, Json> {
    let mut held = well();
    let workload = &mut held.get_mut(DEPLOYMENTS).unwrap()["items"][0];
    workload["status"] = json!({"readyReplicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1});
    let pods = held.get_mut(PODS).unwrap()["items"].as_array_mut().unwrap();
    let mut newer = pods[0].clone();
    for (pod, hash, made) in
        [(&mut pods[0], "a", "2026-11-26T10:00:00Z"), (&mut newer, "b", "2026-11-27T10:00:00Z")]
    {
        pod["metadata"]["labels"]["pod-template-hash"] = json!(hash);
        pod["metadata"]["creationTimestamp"] = json!(made);
    }
    newer["metadata"]["name"] = json!("prod-reporter-2");
    newer["status"]["conditions"][0]["status"] = json!("False");
    newer["status"]["containerStatuses"][0]["ready"] = json!(false);
    newer["status"]["containerStatuses"][0]["state"] = state.clone();
    pods.push(newer);
    held
}

fn waits(reason: &str) -> Json {
    json!({"waiting": {"reason": reason, "message": "not found"}})
}

#[test]
fn an_update_whose_new_pods_do_not_start_fails_though_the_old_ones_are_ready() {
    let (found, _) = failing(updating(&waits("ErrImagePull")));
    assert_eq!(found, "1 of 1 ready, but the image gitops-runtime:0.1.0 is not pulled: not found");
    let (found, todo) = failing(updating(&waits("CrashLoopBackOff")));
    let again = "the container reporter ends again and again: for no reason that is known (0)";
    assert_eq!(found, format!("1 of 1 ready, but {again}"));
    assert!(todo.contains("kubectl logs prod-reporter-2"), "{todo}");
    // What the old pods lack is over with them.
    let mut held = updating(&waits("CrashLoopBackOff"));
    let pods = held.get_mut(PODS).unwrap()["items"].as_array_mut().unwrap();
    for (pod, made) in [(0, "2026-11-27T10:00:00Z"), (2, "2026-11-26T10:00:00Z")] {
        pods[pod]["metadata"]["creationTimestamp"] = json!(made);
    }
    assert!(looked(held).failing().is_none());
}

#[test]
fn an_update_that_kubernetes_has_given_up_fails_and_one_that_goes_on_is_waited_for() {
    let starts = json!({"running": {}});
    let found = looked(updating(&starts));
    assert!(found.failing().is_none(), "{}", found.table());
    let part = found.unsettled().unwrap();
    assert_eq!((part.part.as_str(), part.verdict), ("Deployment prod-reporter", Verdict::Doubtful));
    assert_eq!(part.found, "1 of 1 ready, but the pod prod-reporter-2 is not ready yet");
    let given_up = json!([{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "False",
        "reason": "ProgressDeadlineExceeded", "message": "ReplicaSet \"prod-reporter\" has timed out progressing."}]);
    let mut held = updating(&starts);
    held.get_mut(DEPLOYMENTS).unwrap()["items"][0]["status"]["conditions"] = given_up.clone();
    assert_eq!(failing(held).0, "1 of 1 ready, but the pod prod-reporter-2 is not ready yet");
    let mut held = well();
    held.get_mut(DEPLOYMENTS).unwrap()["items"][0]["status"]["conditions"] = given_up;
    let (found, todo) = failing(held);
    let said = "its update has stopped: ReplicaSet \"prod-reporter\" has timed out progressing.";
    assert_eq!(found, format!("1 of 1 ready, but {said}"));
    assert_eq!(todo, "see kubectl describe deployment prod-reporter -n runtime");
    assert!(looked(well()).unsettled().is_none());
    for (status, said) in [
        (json!({"readyReplicas": 1}), "1 of 1 ready, 0 of them as it is to be now"),
        (
            json!({"readyReplicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1}),
            "1 of 1 ready, 1 not available yet",
        ),
    ] {
        let mut held = well();
        held.get_mut(DEPLOYMENTS).unwrap()["items"][0]["status"] = status;
        assert_eq!(looked(held).unsettled().unwrap().found, said);
    }
}

#[test]
fn a_change_that_kubernetes_has_not_taken_up_is_not_ready() {
    let mut held = well();
    let workload = &mut held.get_mut(DEPLOYMENTS).unwrap()["items"][0];
    workload["metadata"]["generation"] = json!(2);
    workload["status"]["observedGeneration"] = json!(1);
    let (found, _) = failing(held.clone());
    assert_eq!(found, "1 of 1 ready, but Kubernetes has not taken up its newest change");
    held.get_mut(DEPLOYMENTS).unwrap()["items"][0]["status"]["observedGeneration"] = json!(2);
    assert!(looked(held).failing().is_none());
}

#[test]
fn pods_that_are_over_hide_no_cause() {
    for (phase, reason) in [("Failed", "Evicted"), ("Succeeded", "Completed")] {
        let mut held = unready(|pod| pod["status"]["containerStatuses"][0]["state"] = waits("ErrImagePull"));
        let mut over = pod("reporter");
        over["metadata"]["name"] = json!("prod-reporter-0");
        over["status"] = json!({"phase": phase, "reason": reason});
        let pods = held.get_mut(PODS).unwrap()["items"].as_array_mut().unwrap();
        pods.insert(0, over.clone());
        assert_eq!(failing(held).0, "0 of 1 ready: the image gitops-runtime:0.1.0 is not pulled: not found");
        let mut held = well();
        held.get_mut(PODS).unwrap()["items"].as_array_mut().unwrap().insert(0, over);
        assert!(looked(held).table().ends_with("Everything is well.\n"));
    }
}

#[test]
fn where_no_workload_can_be_read_nothing_is_said_to_be_well() {
    let denied = || json!("the API server answered 403");
    for paths in [&[DEPLOYMENTS, SETS][..], &[DEPLOYMENTS, SETS, PODS, CLAIMS, RELEASES], &[PODS]] {
        let mut held = well();
        held.extend(paths.iter().map(|path| (*path, denied())));
        let found = looked(held);
        assert!(found.failing().is_none() && !found.is_seen(), "{}", found.table());
        assert!(found.table().ends_with("No workload could be looked at: nobody knows whether they run.\n"));
        assert_eq!(found.unsettled().unwrap().verdict, Verdict::Unmeasured);
    }
    let mut held = well();
    held.insert(SETS, denied());
    assert!(
        looked(held.clone()).is_seen()
            && looked(held).table().ends_with("Nothing that was looked at fails.\n")
    );
}

#[test]
fn a_failed_release_and_one_that_is_not_there_fail() {
    let mut held = well();
    held.get_mut(RELEASES).unwrap()["items"][0]["metadata"]["labels"]["status"] = json!("failed");
    let found = looked(held);
    let part = found.failing().unwrap();
    assert_eq!((part.part.as_str(), part.found.as_str()), ("release prod", "revision 2 is failed"));
    assert!(part.todo.contains("helm rollback prod"), "{}", part.todo);
    let nothing = BTreeMap::from([("/version", json!({"gitVersion": "v1.34.1"}))]);
    let found = looked(nothing);
    assert_eq!(found.failing().unwrap().found, "nothing is in namespace runtime");
}

#[test]
fn what_may_not_be_read_is_said_and_fails_nothing_and_without_a_cluster_all_does() {
    let mut held = well();
    held.insert(SETS, json!("the API server answered 403"));
    held.insert(RELEASES, json!("the API server answered 403"));
    let found = looked(held);
    let unmeasured: Vec<&str> = found
        .parts
        .iter()
        .filter(|part| part.verdict == Verdict::Unmeasured)
        .map(|part| part.part.as_str())
        .collect();
    assert_eq!(unmeasured, ["statefulsets", "release"]);
    assert!(found.table().ends_with("Nothing that was looked at fails.\n"), "{}", found.table());
    let wanted = Looked {
        cluster: Err("there is no kubeconfig"),
        namespace: "runtime",
        release: Some("prod"),
        version: "0.1.0",
    };
    assert_eq!(installation(&wanted).failing().unwrap().found, "there is no kubeconfig");
    let away = BTreeMap::from([("/version", json!("offline: it is not reached"))]);
    assert_eq!(looked(away).failing().unwrap().part, "Kubernetes");
}

#[test]
fn pods_that_nobody_may_make_are_told_with_who_refuses_them() {
    let why = "pods \"prod-reporter-1\" is forbidden: exceeded quota: compute";
    let condition = json!([{"type": "ReplicaFailure", "status": "True", "message": why}]);
    let mut held = unready(|_| ());
    held.insert(PODS, json!({"items": [pod("nats")]}));
    held.get_mut(DEPLOYMENTS).unwrap()["items"][0]["status"]["conditions"] = condition.clone();
    let (found, todo) = failing(held);
    assert_eq!(found, format!("0 of 1 ready: its pods are not made: {why}"));
    assert!(todo.contains("Pod Security or quota"), "{todo}");
    // Of an update too, while the pods of before go on.
    let mut held = well();
    held.get_mut(DEPLOYMENTS).unwrap()["items"][0]["status"] =
        json!({"readyReplicas": 1, "conditions": condition});
    assert_eq!(failing(held).0, format!("1 of 1 ready: its pods are not made: {why}"));
    // What was refused once is over where all are there.
    let mut held = well();
    held.get_mut(DEPLOYMENTS).unwrap()["items"][0]["status"]["conditions"] =
        json!([{"type": "ReplicaFailure", "status": "True", "message": why}]);
    assert_eq!(looked(held).failing(), None);
    // A StatefulSet has no such condition.
    let mut held = well();
    held.get_mut(SETS).unwrap()["items"][0]["status"] = json!({"updatedReplicas": 1});
    held.insert(PODS, json!({"items": [pod("reporter")]}));
    held.insert(
        EVENTS,
        json!({"items": [{"type": "Warning", "involvedObject": {"name": "prod-nats"}, "message": "violates PodSecurity"}]}),
    );
    let found = looked(held);
    assert_eq!(found.failing().unwrap().found, "0 of 1 ready: its pods are not made: violates PodSecurity");
}
