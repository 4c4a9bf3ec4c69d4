//! The settings of a node's programs, and the objects that it brings: nothing here does anything.

use std::path::Path;

use serde_json::{Value, json};

use super::{BUSYBOX, NAME, PAUSE, VOLUMES};
use crate::network::Network;

/// containerd's socket, inside.
pub(super) const SOCKET: &str = "/run/containerd/containerd.sock";

/// What containerd is told; `plugins` is the folder of the distribution's network plugins.
pub(super) fn containerd(folder: &Path, plugins: &Path) -> String {
    let folder = folder.display();
    let plugins = plugins.display();
    format!(
        r#"version = 2
root = "{folder}/containerd"
state = "/run/containerd"
oom_score = 0
# What this machine may not have, and nothing here needs.
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
address = "{SOCKET}"

[plugins."io.containerd.internal.v1.opt"]
path = "/run/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
# Some machines do not let anybody make a process less likely to be ended.
restrict_oom_score_adj = true
disable_apparmor = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{folder}/network"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{folder}/registries"
"#
    )
}

/// The network of pods: each has a link to the node, and the node leads everywhere, so that Services work without a kernel
/// that filters bridges.
pub(super) fn pod_network(network: Network) -> Value {
    json!({
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/addresses",
                    "ranges": [[{"subnet": network.pods()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

pub(super) fn kubelet(folder: &Path, group: &str, network: Network, authority: &Path) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": network.node(),
        "healthzBindAddress": "127.0.0.1",
        // The API server alone has a certificate of that authority.
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": false},
            "x509": {"clientCAFile": authority},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": group,
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        "oomScoreAdj": 0,
        // No controller attaches volumes.
        "enableControllerAttachDetach": false,
        // A full disk of this machine is not for the node to clear.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "clusterDNS": [network.dns()],
        "clusterDomain": "cluster.local",
        "resolvConf": folder.join("resolv.conf"),
        "podLogsDir": folder.join("logs"),
        "volumePluginDir": folder.join("plugins"),
    })
}

pub(super) fn kubelet_flags(folder: &Path, network: Network) -> Vec<String> {
    vec![
        format!("--config={}", folder.join("kubelet.json").display()),
        format!("--kubeconfig={}", folder.join("kubeconfig").display()),
        format!("--root-dir={}", folder.join("kubelet").display()),
        format!("--cert-dir={}", folder.join("kubelet/pki").display()),
        format!("--hostname-override={NAME}"),
        format!("--node-ip={}", network.node()),
    ]
}

pub(super) fn proxy_flags(folder: &Path, network: Network) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", folder.join("kubeconfig").display()),
        format!("--hostname-override={NAME}"),
        "--proxy-mode=iptables".to_owned(),
        format!("--cluster-cidr={}", network.pods()),
        "--healthz-bind-address=127.0.0.1:10256".to_owned(),
        "--metrics-bind-address=127.0.0.1:10249".to_owned(),
        "--oom-score-adj=0".to_owned(),
        // These are the whole machine's.
        "--conntrack-max-per-core=0".to_owned(),
        "--conntrack-tcp-timeout-established=0s".to_owned(),
        "--conntrack-tcp-timeout-close-wait=0s".to_owned(),
    ]
}

/// How containerd reaches a registry that speaks HTTP.
pub(super) fn registry(address: &str) -> String {
    format!(
        "server = \"http://{address}\"\n\n[host.\"http://{address}\"]\ncapabilities = [\"pull\", \"resolve\"]\n"
    )
}

/// The name server, the storage class and its volumes; `programs` is the folder that holds `coredns`.
pub(super) fn objects(folder: &Path, network: Network, programs: &Path) -> Vec<Value> {
    let mut objects = vec![json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    })];
    objects.extend((0..VOLUMES).map(|number| volume(folder, number)));
    objects.extend(name_server(network, programs));
    objects
}

fn volume(folder: &Path, number: u8) -> Value {
    let here = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [NAME]});
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": format!("local-{number}")},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "local",
            "local": {"path": folder.join(format!("volumes/{number}"))},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    })
}

/// Names of the cluster are known, and hosts of tunnels lead to the tunnel server of the release prod in the namespace runtime;
/// all others are not: nothing outside is asked.
const ZONES: &str = "\
tunnels.example.com:53 {
    errors
    rewrite name regex .* prod-gitops-runtime-tunnel-server.runtime.svc.cluster.local answer auto
    kubernetes cluster.local
}
cluster.local:53 in-addr.arpa:53 {
    errors
    ready
    kubernetes cluster.local in-addr.arpa
}
.:53 {
    template ANY ANY {
        rcode NXDOMAIN
    }
}
";

fn name_server(network: Network, programs: &Path) -> [Value; 6] {
    let labels = json!({"k8s-app": "kube-dns"});
    let named = |name: &str| json!({"name": name, "namespace": "kube-system", "labels": labels});
    let reads = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]});
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"});
    let account = json!({"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"});
    let pod = json!({
        "serviceAccountName": "coredns",
        "dnsPolicy": "Default",
        "containers": [{
            "name": "coredns",
            "image": BUSYBOX,
            "command": ["/programs/coredns", "-conf", "/etc/coredns/Corefile"],
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
            "volumeMounts": [
                {"name": "programs", "mountPath": "/programs", "readOnly": true},
                {"name": "zones", "mountPath": "/etc/coredns"},
            ],
        }],
        "volumes": [
            {"name": "programs", "hostPath": {"path": programs, "type": "Directory"}},
            {"name": "zones", "configMap": {"name": "coredns"}},
        ],
    });
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named("coredns")}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "system:coredns"},
            "rules": [
                reads("", &["services", "pods", "namespaces"]),
                reads("discovery.k8s.io", &["endpointslices"]),
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "system:coredns"},
            "roleRef": role,
            "subjects": [account],
        }),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("coredns"), "data": {"Corefile": ZONES}}),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": named("kube-dns"),
            "spec": {
                "clusterIP": network.dns(),
                "selector": labels,
                "ports": [
                    {"name": "dns", "port": 53, "protocol": "UDP"},
                    {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
                ],
            },
        }),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": named("coredns"),
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }),
    ]
}
