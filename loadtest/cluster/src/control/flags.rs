//! The flags of the control plane's programs, and the objects they need: nothing here does anything.

use std::path::Path;

use serde_json::{Value, json};

use super::files::Files;
use crate::network::Network;

/// The node that every pod runs on.
pub(super) const NODE_NAME: &str = "node";

/// As kwok takes one over: it has no kubelet, and room for every pod.
pub(super) fn node(network: Option<Network>) -> Value {
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NODE_NAME,
            "labels": {"kubernetes.io/hostname": NODE_NAME, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        },
    });
    if network.is_some() {
        node["spec"] =
            json!({"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]});
    }
    node
}

/// What applications of the scenarios need; each controller more is watches and memory.
const CONTROLLERS: [&str; 16] = [
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
];

/// What real containers need beside them: the authority and volumes in pods, and somebody who sees that a node is gone.
const NODE_CONTROLLERS: [&str; 7] = [
    "horizontal-pod-autoscaler-controller",
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "root-ca-certificate-publisher-controller",
    "taint-eviction-controller",
];

/// `ServiceAccount` would refuse pods until their namespace's account is made; `TaintNodesByCondition` would keep pods
/// off a node that no controller watches. Real containers need both.
const REFUSED_PLUGINS: &str = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition";

pub(super) fn api_server(files: &Files, etcd: &str, port: u16, network: Option<Network>) -> Vec<String> {
    let mut flags = vec![
        format!("--etcd-servers={etcd}"),
        // What is compacted, and when, is the tests' to say.
        "--etcd-compaction-interval=0".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", files.server_certificate().display()),
        format!("--tls-private-key-file={}", files.server_key().display()),
        format!("--token-auth-file={}", files.tokens().display()),
        "--anonymous-auth=false".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", files.accounts_public_key().display()),
        format!("--service-account-signing-key-file={}", files.accounts_key().display()),
        // Its bookkeeping slows the start, and tests have no one to be fair to.
        "--enable-priority-and-fairness=false".to_owned(),
        "--profiling=false".to_owned(),
        format!("--audit-policy-file={}", files.audit_policy().display()),
        format!("--audit-log-path={}", files.audit_log().display()),
        // Written before the answer is sent, so that a killed API server leaves no request out.
        "--audit-log-mode=blocking-strict".to_owned(),
        // In megabytes: never rotated, so that one file holds everything.
        "--audit-log-maxsize=100000".to_owned(),
    ];
    let Some(network) = network else {
        flags.extend([
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            REFUSED_PLUGINS.to_owned(),
        ]);
        return flags;
    };
    flags.extend([
        format!("--bind-address={}", network.host()),
        // The endpoint of the Service `kubernetes`.
        format!("--advertise-address={}", network.host()),
        format!("--service-cluster-ip-range={}", network.services()),
        "--allow-privileged=true".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        // The kubelet lets in whom the same authority signed.
        format!("--kubelet-client-certificate={}", files.server_certificate().display()),
        format!("--kubelet-client-key={}", files.server_key().display()),
    ]);
    flags
}

pub(super) fn controllers(files: &Files, network: Option<Network>) -> Vec<String> {
    let more: &[&str] = if network.is_some() { &NODE_CONTROLLERS } else { &[] };
    let controllers = CONTROLLERS.iter().chain(more).copied().collect::<Vec<_>>().join(",");
    vec![
        format!("--kubeconfig={}", files.parts_kubeconfig().display()),
        format!("--controllers={controllers}"),
        // What pods trust.
        format!("--root-ca-file={}", files.authority().display()),
        "--use-service-account-credentials=false".to_owned(),
        "--leader-elect=false".to_owned(),
        // Nobody asks it anything.
        "--secure-port=0".to_owned(),
        "--profiling=false".to_owned(),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]
}

pub(super) fn scheduler(files: &Files) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", files.parts_kubeconfig().display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--profiling=false".to_owned(),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]
}

pub(super) fn kwok(files: &Files, port: u16, network: Option<Network>) -> Vec<String> {
    // Without a real node no controller asks whether this one is still there.
    let lease = if network.is_some() { 40 } else { 0 };
    vec![
        format!("--kubeconfig={}", files.parts_kubeconfig().display()),
        format!("--config={}", files.stages().display()),
        format!("--manage-single-node={NODE_NAME}"),
        format!("--node-lease-duration-seconds={lease}"),
        "--node-ip=127.0.0.1".to_owned(),
        format!("--server-address=127.0.0.1:{port}"),
    ]
}

/// Logs that a request was made and how it was answered, not what was in it, and of these users and this group alone.
pub(super) fn audit_policy(users: &[&str], group: &str) -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            { "level": "Metadata", "users": users },
            { "level": "Metadata", "userGroups": [group] },
            { "level": "None" },
        ],
    })
}

/// Who a token is: `token,user,uid,"group"`, a line each.
pub(super) fn tokens(admin: &str, parts: &str) -> String {
    format!(
        "{admin},admin,admin,\"system:masters\"\n{parts},control-plane,control-plane,\"system:masters\"\n"
    )
}

/// A kubeconfig that holds all it needs.
pub(super) fn kubeconfig(url: &str, authority: &str, user: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "cluster", "cluster": { "server": url, "certificate-authority-data": authority } }],
        "users": [{ "name": user, "user": { "token": token } }],
        "contexts": [{ "name": user, "context": { "cluster": "cluster", "user": user, "namespace": "argocd" } }],
        "current-context": user,
    })
}

/// The files of kwok's stages, in the folder that its module ships.
pub(super) fn stage_files(folder: &Path) -> Vec<std::path::PathBuf> {
    [
        "node/fast/node-initialize.yaml",
        "pod/fast/pod-ready.yaml",
        "pod/fast/pod-complete.yaml",
        "pod/fast/pod-delete.yaml",
    ]
    .into_iter()
    .map(|file| folder.join(file))
    .collect()
}
