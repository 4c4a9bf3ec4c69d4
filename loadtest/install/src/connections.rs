//! Every connection of the pods of the release, as the node's kernel saw it, against the policies of the chart: this network
//! enforces none.
//!
//! takes: an installed release - gives: connections that no policy allows, and rules that none used
//! calls: `conntrack` beside the node, `kubectl` for who had which address - fails: when one of them missed something
//!
//! A connection counts with the address and port behind a Service, as most networks judge it; one to a Service that nobody stood
//! behind in that moment went nowhere, and is only counted. Argo CD, which runs outside, counts as the pod that it is elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use loadtest_cluster::Cluster;
use loadtest_cluster::argocd::ArgoCd;
use loadtest_cluster::progress::Progress;
use loadtest_judge::screen::say;
use loadtest_sim::child::{Child, Spec};
use loadtest_sim::local_client;
use serde_json::{Value, json};

use crate::ground::{Ground, NAME, NAMESPACE};
use crate::policies::Pod;
use crate::rights;

/// What `conntrack` says of itself when it was too slow.
const MISSED: &str = "ENOBUFS";
const CONNECTIONS: &str = "connections";
const PODS: &str = "pods";
/// What is printed of a pod: address, namespace, name, labels. Tabs would become spaces.
const SHOWN: &str = "--output=jsonpath={.status.podIP}{\"|\"}{.metadata.namespace}{\"|\"}{.metadata.name}{\"|\"}\
                     {.metadata.labels}{\"\\n\"}";
/// Rules that no connection of this cluster can use, by whose they are and what stands in them alone: those for servers of
/// repositories and their names, those for providers of Git, that for the controller of sealed-secrets, and that for runtimes elsewhere.
const IDLE: [(&str, &str); 7] = [
    ("-source-server: egress", "\"port\":22,"),
    ("-source-server: egress", "\"port\":53,"),
    ("-change-revision: egress", "\"port\":22,"),
    ("-change-revision: egress", "\"port\":53,"),
    ("-app-proxy: egress", "\"port\":8080,"),
    ("-app-proxy: egress", "\"port\":443,"),
    ("-platform: egress", "\"port\":443,"),
];

/// One or more connections from one address to one address and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Connection {
    pub(crate) protocol: String,
    pub(crate) from: IpAddr,
    /// Behind the Service, where it went to one that somebody stood behind.
    pub(crate) to: IpAddr,
    pub(crate) port: u16,
}

/// Those who look on from the beginning.
#[derive(Debug)]
pub(crate) struct Watch {
    folder: PathBuf,
    connections: Child,
    pods: Child,
}

impl Watch {
    /// Starts them; what they see is kept in `folder`.
    pub(crate) fn start(cluster: &Cluster, folder: &Path) -> anyhow::Result<Self> {
        let node = cluster.node.as_ref().context("find the node of the cluster")?;
        let connections = Child::start(&node.connections(CONNECTIONS, folder))?;
        let kubeconfig = format!("--kubeconfig={}", cluster.control.admin_kubeconfig().display());
        let pods = Spec::new(PODS, cluster.programs().join("kubectl"), folder).args([
            &kubeconfig,
            "get",
            "pods",
            "--all-namespaces",
            "--watch",
            SHOWN,
        ]);
        let pods = Child::start(&pods)?;
        Ok(Self { folder: folder.to_path_buf(), connections, pods })
    }

    /// What was seen so far.
    fn seen(&self) -> anyhow::Result<(BTreeSet<Connection>, BTreeMap<IpAddr, Pod>)> {
        for child in [&self.connections, &self.pods] {
            ensure!(child.is_running(), "{} ended: {:?}", child.name(), child.last_lines(5));
        }
        let read = |name: &str| {
            let file = self.folder.join(format!("{name}.log"));
            std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))
        };
        Ok((connections(&read(CONNECTIONS)?)?, pods(&read(PODS)?)?))
    }
}

/// Uses every component that no step before has used, and judges.
pub(crate) async fn take(ground: &mut Ground) -> anyhow::Result<Vec<String>> {
    let local = json!({"storageClass": "local"});
    Progress.step("definitions of Rollouts and workflows", ground.define_argo()).await?;
    ground
        .upgrade(&json!({
            "resourceReporter": {"enabled": true, "persistence": local},
            "changeRevision": {"enabled": true, "persistence": local},
            "sourceServer": {"enabled": true, "allowed": ["https://git.example.com/"]},
        }))
        .await?;
    let (mut wrong, _) = ground.applications.follow().await?;
    ground.helm("test", &[]).await?;
    scraped(ground).await?;
    wrong.extend(let_in(ground).await?);
    for component in ["change-revision", "resource-reporter", "source-server"] {
        wrong.extend(rights::judged(ground, component).await?);
    }
    wrong.extend(rights::strangers(ground).await?);

    let (connections, pods) = ground.watch.seen()?;
    let network = ground.node()?.network();
    let (nowhere, connections): (BTreeSet<_>, BTreeSet<_>) =
        connections.into_iter().partition(|one| network.is_service(one.to));
    let argocd = ground.argocd_at();
    let who = |address: IpAddr, port: u16| {
        if (address, port) == (argocd.ip(), argocd.port()) {
            let name = "argocd-server".to_owned();
            // The one label that the manifests of Argo CD give these pods.
            let labels = BTreeMap::from([("app.kubernetes.io/name".to_owned(), name.clone())]);
            return Some(Pod { namespace: ArgoCd::NAMESPACE.to_owned(), name, labels });
        }
        pods.get(&address).cloned()
    };
    let verdict =
        ground.policies.judge(&connections, &who, &[network.node(), network.gateway()].map(IpAddr::from));
    say(&format!(
        "  {} connections and {} to Services with nobody behind them, {} refused; {} rules used, {} not",
        connections.len(),
        nowhere.len(),
        verdict.refused.len(),
        verdict.used,
        verdict.unused.len()
    ));
    wrong.extend(verdict.refused);
    for rule in verdict.unused {
        if IDLE.iter().any(|(whose, port)| rule.contains(whose) && rule.contains(port)) {
            say(&format!("  not used, as what it is for is not here: {rule}"));
        } else {
            wrong.push(format!("no connection uses {rule}"));
        }
    }
    Ok(wrong)
}

/// Whether the source server asks whose a token is, and says to an account that may not that it may not.
async fn let_in(ground: &Ground) -> anyhow::Result<Vec<String>> {
    let token = ["create", "token", "default", "--namespace", NAMESPACE];
    let token = ground.tools.run("kubectl", &token).await?;
    let service = ground.object("v1", "Service", &format!("{NAME}-source-server")).await?;
    let service = service.context("find the Service of the source server")?;
    let address = service["spec"]["clusterIP"].as_str().context("find the address of the source server")?;
    let url = format!("http://{address}:{}/v1/manifests", service["spec"]["ports"][0]["port"]);
    let http = local_client().build().context("make a client")?;
    let answer =
        http.get(&url).bearer_auth(token.trim()).send().await.with_context(|| format!("ask {url}"))?;
    let status = answer.status().as_u16();
    let told = answer.text().await.context("read what the source server answers")?;
    let is_refused = status == 403 && told.contains("whoever has this token may not ask here");
    Ok(if is_refused { Vec::new() } else { vec![format!("another account is answered {status}: {told}")] })
}

/// Reads the metrics of every pod of the release from outside, as Prometheus would: at a port for them alone where there is one.
pub(crate) async fn scraped(ground: &Ground) -> anyhow::Result<()> {
    let selector = "app.kubernetes.io/name=gitops-runtime";
    let args = ["get", "pods", "--namespace", NAMESPACE, "--selector", selector, "--output=json"];
    let list = ground.tools.json("kubectl", &args).await?;
    let http = local_client().build().context("make a client")?;
    for pod in list["items"].as_array().context("read pods")? {
        let Some(address) = pod["status"]["podIP"].as_str() else { continue };
        let containers = pod["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ports = containers.iter().filter_map(|container| container["ports"].as_array());
        let all: Vec<&Value> = ports.flatten().collect();
        let named = |name: &str| all.iter().find(|port| port["name"] == name);
        let Some(port) = named("metrics").or_else(|| named("health")).or_else(|| named("pages")) else {
            continue;
        };
        let url = format!("http://{address}:{}/metrics", port["containerPort"]);
        http.get(&url).send().await.with_context(|| format!("ask {url} of {NAME}"))?;
    }
    Ok(())
}

/// Reads what `conntrack --event` printed.
fn connections(log: &str) -> anyhow::Result<BTreeSet<Connection>> {
    ensure!(!log.contains(MISSED), "conntrack missed connections");
    let mut all = BTreeSet::new();
    for line in log.lines().filter(|line| line.contains("[NEW]")) {
        let protocol = line.split_whitespace().nth(1).unwrap_or_default();
        if !["tcp", "udp"].contains(&protocol) {
            continue;
        }
        let values = |key: &str| -> Vec<&str> {
            line.split_whitespace().filter_map(|word| word.strip_prefix(key)?.strip_prefix('=')).collect()
        };
        // First as it was sent, then as an answer to it comes.
        let (sources, ports) = (values("src"), values("sport"));
        let read = || {
            let (from, to) = (sources.first()?.parse().ok()?, sources.get(1)?.parse().ok()?);
            let port = ports.get(1)?.parse().ok()?;
            Some(Connection { protocol: protocol.to_ascii_uppercase(), from, to, port })
        };
        all.insert(read().with_context(|| format!("read the connection {line}"))?);
    }
    ensure!(!all.is_empty(), "conntrack saw no connection");
    Ok(all)
}

/// Reads who had which address; nobody has one that another had before.
fn pods(log: &str) -> anyhow::Result<BTreeMap<IpAddr, Pod>> {
    let mut all: BTreeMap<IpAddr, Pod> = BTreeMap::new();
    for line in log.lines() {
        let [address, namespace, name, labels] = line.splitn(4, '|').collect::<Vec<_>>()[..] else {
            continue;
        };
        let Ok(address) = address.parse() else { continue };
        let labels = serde_json::from_str(labels).with_context(|| format!("read the labels of {name}"))?;
        let pod = Pod { namespace: namespace.to_owned(), name: name.to_owned(), labels };
        let before = all.insert(address, pod.clone());
        let is_same = before.as_ref().is_none_or(|before| before.labels == pod.labels);
        ensure!(is_same, "{address} is that of {before:?}, and then of {pod:?}");
    }
    ensure!(!all.is_empty(), "no pod has an address");
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_to_a_service_is_one_to_the_pod_behind_it() {
        let log = "    [NEW] tcp      6 120 SYN_SENT src=198.18.2.5 dst=198.18.1.7 sport=41000 dport=80 [UNREPLIED] \
                   src=198.18.2.9 dst=198.18.2.5 sport=8080 dport=41000\n    [NEW] udp      17 30 src=198.18.2.5 \
                   dst=198.18.1.10 sport=50000 dport=53 [UNREPLIED] src=198.18.2.2 dst=198.18.2.5 sport=53 \
                   dport=50000\n    [NEW] icmp     1 30 src=198.18.2.5 dst=198.18.0.1 type=8 code=0 id=1\n";
        let address = |text: &str| text.parse().unwrap();
        let expected =
            [("TCP", "198.18.2.9", 8080), ("UDP", "198.18.2.2", 53)].map(|(protocol, to, port)| Connection {
                protocol: protocol.to_owned(),
                from: address("198.18.2.5"),
                to: address(to),
                port,
            });
        assert_eq!(connections(log).unwrap(), BTreeSet::from(expected));
        let error = connections(&format!("{log}WARNING: We have hit ENOBUFS! We are losing events.\n"));
        assert_eq!(error.unwrap_err().to_string(), "conntrack missed connections");
        assert_eq!(connections("").unwrap_err().to_string(), "conntrack saw no connection");
    }

    #[test]
    fn the_last_line_of_a_pod_tells_its_address_which_no_other_may_have_had() {
        let log = "|shop|one|{\"app\":\"front\"}\n10.0.0.1|shop|one|{\"app\":\"front\"}\n";
        let found = pods(log).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found.values().next().unwrap().name, "one");
        let error = pods(&format!("{log}10.0.0.1|shop|two|{{\"app\":\"back\"}}\n")).unwrap_err();
        assert!(error.to_string().starts_with("10.0.0.1 is that of "), "{error}");
        assert_eq!(pods("10.0.0.1   shop   one   {}\n").unwrap_err().to_string(), "no pod has an address");
    }
}
