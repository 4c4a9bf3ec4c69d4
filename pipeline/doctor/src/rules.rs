//! What may be wrong with values, and how it is found.

mod above;
mod access;
mod chart;
mod claims;
mod cluster;
mod doubtful;
mod installed;
mod kubernetes;
mod network;
mod parts;
mod peers;
mod pods;
mod reported;
mod rights;
mod roles;
mod routes;
mod schema;
mod typed;

use std::sync::Arc;

pub use self::cluster::Cluster;
use self::cluster::Place;
pub(crate) use self::cluster::quantity;
pub use self::network::{Certificate, Network, PeerResponse, Proxies, Request, Unreached, Way};
pub(crate) use self::network::{DAY, SOON, within};
pub(crate) use self::peers::{GIT_CREDENTIALS, GIVES_GIT_TOKEN};
pub use self::pods::is_own_volume;
use crate::chart::{Chart, FOREIGN};
use crate::finding::{Finding, Severity, Unmeasured, nearest, shown};
use crate::report::{Report, about};
use crate::tree::{File, Node, Value};
use crate::unreadable::Unreadable;

/// Every code, and what it is about. A code is never used for anything else.
pub(crate) const CODES: &[(&str, &str)] = &[
    ("GR0001", "a file of values cannot be read"),
    ("GR0002", "a key is unknown"),
    ("GR0003", "a key is of the incumbent's chart"),
    ("GR0004", "a value has the wrong type"),
    ("GR0005", "a value is not one of those that are allowed"),
    ("GR0006", "a value that the chart needs was taken away"),
    ("GR0007", "a value that Kubernetes does not take"),
    ("GR0010", "the runtime has no name"),
    ("GR0011", "the runtime's name is not of the form of new ones"),
    ("GR0020", "an Ingress has no host"),
    ("GR0021", "a host is empty or no host name"),
    ("GR0022", "an Ingress has no class, or one that does not lead everything in"),
    ("GR0023", "a tunnel needs the account"),
    ("GR0024", "the platform cannot reach the runtime"),
    ("GR0025", "an HTTPRoute attaches to no Gateway"),
    ("GR0026", "an HTTPRoute has no host name"),
    ("GR0027", "there are several ways to reach the runtime"),
    ("GR0028", "a tunnel does not reach another platform"),
    ("GR0029", "a VirtualService has no host name or no Gateway"),
    ("GR0030", "there is no user token to register with"),
    ("GR0031", "a reference to a Secret lacks its name or key"),
    ("GR0032", "a reference names a reserved Secret"),
    ("GR0033", "a secret stands in the values"),
    ("GR0034", "certificates are to be kept and none are given"),
    ("GR0035", "certificates are not in PEM"),
    ("GR0036", "a Git token has no user"),
    ("GR0037", "a Git token is of a kind that the platform does not take"),
    ("GR0040", "the reporter cannot log in to Argo CD so"),
    ("GR0041", "Argo CD has no address, or another"),
    ("GR0050", "image enrichment needs Argo Workflows"),
    ("GR0051", "a disruption budget says nothing"),
    ("GR0052", "replicas of the app proxy need a Redis"),
    ("GR0053", "the store of workflow logs needs the account"),
    ("GR0060", "replicas need a bus"),
    ("GR0061", "an existing bus has no address"),
    ("GR0062", "the fewest replicas are more than the most"),
    ("GR0063", "the bus does not take such credentials"),
    ("GR0064", "a single namespace excludes others"),
    ("GR0065", "the bus asks for no token"),
    ("GR0066", "a secret stands among the settings of a process"),
    ("GR0067", "a process refuses its settings"),
    ("GR0068", "the platform's Ingress has no host"),
    ("GR0069", "more replicas log in than Argo CD bears"),
    ("GR0070", "a tunnel's name is none that its server takes"),
    ("GR0071", "a tunnel leads nowhere"),
    ("GR0072", "a tunnel server has no domain or no host"),
    ("GR0073", "nothing says who may open a tunnel"),
    ("GR0074", "a source server has nothing to fetch, or nobody who may ask"),
    ("GR0075", "the platform is nobody to the provider that people sign in by"),
    ("GR0076", "a single namespace with a right that no namespace holds"),
    ("GR0077", "the app proxy cannot register the runtime"),
    ("GR0078", "a route reads a file that nothing mounts"),
    ("GR0079", "several runtimes in one release"),
    ("GR0080", "replicas come and go by a CPU that is not asked for"),
    ("GR0081", "a disruption budget lets no pod go"),
    ("GR0082", "two write to one claim"),
    ("GR0083", "values without effect"),
    ("GR0084", "a text that is still to be filled in"),
    ("GR0085", "an amount that nobody means"),
    ("GR0086", "rights for an account that others have as well"),
    ("GR0101", "the IngressClass"),
    ("GR0102", "Secrets that are referred to"),
    ("GR0103", "the rights of who installs"),
    ("GR0104", "Kubernetes 1.23 or newer"),
    ("GR0105", "2 CPU and 5,000 MB of nodes"),
    ("GR0106", "the storage class"),
    ("GR0107", "what is installed already"),
    ("GR0108", "Helm 3.8 or newer"),
    ("GR0109", "the Gateway API and its Gateways"),
    ("GR0110", "others that manage the same objects"),
    ("GR0111", "what an earlier installation left"),
    ("GR0112", "definitions and who owns them"),
    ("GR0113", "what an upgrade does not change by itself"),
    ("GR0114", "a cluster of OpenShift, or of IPv6"),
    ("GR0201", "the runtime's own address"),
    ("GR0202", "the platform's account, user and runtime"),
    ("GR0203", "what the Git token may do"),
    ("GR0204", "what the account's plan allows"),
    ("GR0205", "Argo CD's version and token"),
    ("GR0206", "the version of the existing bus"),
    ("GR0207", "an address is not reached"),
    ("GR0208", "a certificate ends soon"),
    ("GR0209", "a route leads to a NATS server without streams"),
];

/// Every code and what it is about, as a table in Markdown.
#[must_use]
pub fn codes() -> String {
    let row = |(code, text): &(&str, &str)| {
        let tier = match code {
            code if code.starts_with("GR00") => "files",
            code if code.starts_with("GR01") => "cluster",
            _ => "network",
        };
        format!("| {code} | {tier} | {text} |\n")
    };
    CODES
        .iter()
        .map(row)
        .fold("| code | told by | what |\n|---|---|---|\n".to_owned(), |text, row| text + &row)
}

/// What only a cluster or a network can tell.
const BEYOND: &[&str] = &[
    "GR0101", "GR0102", "GR0103", "GR0104", "GR0105", "GR0106", "GR0107", "GR0108", "GR0109", "GR0110",
    "GR0111", "GR0112", "GR0201", "GR0202", "GR0203", "GR0204", "GR0205", "GR0206",
];

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Tiers {
    /// The values themselves.
    pub files: bool,
    /// The cluster.
    pub cluster: bool,
    /// The platform, Git and Argo CD.
    pub network: bool,
}

impl Default for Tiers {
    fn default() -> Self {
        Self { files: true, cluster: true, network: true }
    }
}

/// Whom the doctor may ask.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Says what is wrong with settings of the reporter: the path of each, and why.
    pub settings: &'a dyn Fn(&serde_json::Value) -> Vec<(String, String)>,
    /// The cluster; `None` where there is none.
    pub cluster: Option<&'a dyn Cluster>,
    /// Peers; `None` where they are not to be asked.
    pub network: Option<&'a dyn Network>,
    /// Helm's version, or why it is not known.
    pub helm: Result<&'a str, &'a str>,
    /// Whether this is the chart's own hook: it has two rights, and none of those of whoever installs.
    pub is_hook: bool,
    /// The namespace that the chart is to be installed in; the runtime's name where none is given.
    pub namespace: Option<&'a str>,
}

/// Values that become settings of a process as they are, which it may refuse: where each stands, and what it becomes.
const SETTINGS: [(&str, &str); 10] = [
    ("appProxy.namespaces", "appProxy.namespaces"),
    ("nats.url", "bus.url"),
    ("reporter.applicationNamespaces", "kubernetes.applicationNamespaces"),
    ("resourceReporter.kinds", "resources.kinds"),
    ("resourceReporter.namespaces", "resources.namespaces"),
    ("router.trustedProxies", "router.trustedProxies"),
    ("router.webhooks", "router.webhooks.allow"),
    ("sourceServer.allowed", "sourceServer.git.allowed"),
    ("tunnelClient.allow", "tunnelClient.allow"),
    ("tunnelServer.trustedProxies", "tunnelServer.trustedProxies"),
];

/// Judges files of values, later over earlier as Helm lays them, over the chart's own. Where they are for a chart above that has this one
/// several times, each of these is judged.
#[must_use]
pub fn validate(files: &[(String, Result<File, Unreadable>)], tiers: Tiers, around: Around<'_>) -> Report {
    let keys = above::keys(files);
    let [first, others @ ..] = keys.as_slice() else { return one(files, None, tiers, around) };
    let mut report = one(files, Some(first), tiers, around);
    for key in others {
        let other = one(files, Some(key), tiers, around);
        report.findings.extend(other.findings);
        report.unmeasured.extend(other.unmeasured);
    }
    if tiers.files {
        above::several(&mut report.findings, files, &keys);
    }
    sort(&mut report.findings);
    report.unmeasured.sort_by_key(|unmeasured| unmeasured.code);
    report.unmeasured.dedup();
    report
}

/// Puts findings in the order of the files, each once.
fn sort(findings: &mut Vec<Finding>) {
    findings.sort_by_key(|finding| (finding.file.clone(), finding.line, finding.code));
    findings.dedup();
}

/// Judges the values of one runtime: those below this key of a chart above, where there is one.
fn one(
    files: &[(String, Result<File, Unreadable>)],
    key: Option<&str>,
    tiers: Tiers,
    around: Around<'_>,
) -> Report {
    let mut judged = read(files, key);
    let is_read = files.iter().all(|(_, file)| file.is_ok());
    // Of a file that cannot be read nobody knows what it would have given.
    if tiers.files && is_read {
        schema::missing(&mut judged);
        access::check(&mut judged);
        peers::check(&mut judged);
        chart::check(&mut judged);
        routes::check(&mut judged);
        kubernetes::check(&mut judged);
        pods::check(&mut judged);
        typed::check(&mut judged);
        parts::check(&mut judged);
        doubtful::check(&mut judged);
        check_settings(&mut judged, around.settings);
    } else if !tiers.files {
        judged.findings.clear();
    }
    let namespace = around.namespace.unwrap_or(judged.text("global.runtime.name")).to_owned();
    let place = around.cluster.filter(|_| tiers.cluster && is_read).map(|cluster| Place {
        cluster,
        namespace: &namespace,
        is_hook: around.is_hook,
    });
    let mut asked = place.as_ref().map(|place| cluster::check(&mut judged, place)).unwrap_or_default();
    if tiers.cluster && is_read {
        cluster::helm(&mut judged, &mut asked, around.helm);
    }
    if let Some(network) = around.network.filter(|_| tiers.network && is_read) {
        asked.extend(network::check(&mut judged, network, place.as_ref()));
    }
    let known = MeasuredTiers { cluster: place.is_some(), network: around.network.is_some(), is_read };
    above::name(&mut judged.findings, files, key);
    sort(&mut judged.findings);
    // What few have, such as routes, is told where it is there.
    let others = asked.keys().copied().filter(|code| !BEYOND.contains(code));
    let codes = BEYOND.iter().copied().chain(others);
    let unmeasured = codes.filter_map(|code| judged.unmeasured(code, tiers, known, &asked)).collect();
    Report { findings: judged.findings, unmeasured }
}

/// What the files give, later over earlier, with what the schema says of each.
fn read(files: &[(String, Result<File, Unreadable>)], key: Option<&str>) -> Judged {
    let mut judged = Judged::new();
    for (name, file) in files {
        match file {
            Ok(file) => {
                let values = above::values(file, key);
                judged.given.join(&values);
                schema::check(&mut judged, &values);
            }
            Err(error) => judged.findings.push(Finding {
                code: "GR0001",
                severity: Severity::Error,
                file: Some(name.as_str().into()),
                line: error.line,
                path: String::new(),
                found: error.why.to_owned(),
                wanted: "one YAML document that is a mapping".to_owned(),
                meant: None,
                todo: error.todo().to_owned(),
            }),
        }
    }
    judged.all.lay(&judged.given.clone());
    judged
}

/// Has the program's own settings checked that values hold.
fn check_settings(judged: &mut Judged, check: &dyn Fn(&serde_json::Value) -> Vec<(String, String)>) {
    // Of each component, as the chart has them.
    let is_settings = |path: &&str| path.split_once('.').is_some_and(|(_, below)| below == "config");
    for group in Chart::get().values.iter().map(|value| &*value.path).filter(is_settings) {
        let Some(given) = judged.given.at(group).map(Node::json) else { continue };
        for (path, why) in check(&given) {
            let path = format!("{group}.{path}");
            judged.error("GR0067", &path, &why, "gitops-runtime config print shows every setting");
        }
    }
    for (path, setting) in SETTINGS {
        let given = judged.given.at(path).map(Node::json).filter(|given| !given.is_null());
        let Some(given) = given else { continue };
        let settings = setting.rsplit('.').fold(given, |below, key| serde_json::json!({ key: below }));
        for (at, why) in check(&settings) {
            let path = format!("{path}{}", at.strip_prefix(setting).unwrap_or_default());
            judged.error("GR0067", &path, &why, "gitops-runtime config print shows what each setting is");
        }
    }
}

/// What there was to measure with: a cluster and a network that can be asked, and values that can be read.
#[derive(Clone, Copy)]
struct MeasuredTiers {
    cluster: bool,
    network: bool,
    is_read: bool,
}

/// Values that are being judged.
struct Judged {
    /// What was given, all files together.
    given: Node,
    /// The same over the chart's own values.
    all: Node,
    findings: Vec<Finding>,
}

impl Judged {
    fn new() -> Self {
        let given = Node { value: Value::Map(Vec::new()), line: 0, file: None };
        Self { given, all: Chart::get().defaults.clone(), findings: Vec::new() }
    }

    fn at(&self, path: &str) -> Option<&Node> {
        self.all.at(path)
    }

    fn text(&self, path: &str) -> &str {
        self.at(path).and_then(Node::text).unwrap_or_default()
    }

    fn truth(&self, path: &str) -> bool {
        self.at(path).is_some_and(|node| node.value == Value::Bool(true))
    }

    /// Whether a group of values is switched on: a component runs, as far as its own switch says.
    fn is_on(&self, group: &str) -> bool {
        self.truth(&format!("{group}.enabled"))
    }

    /// A number, also where it was given as a text.
    fn number(&self, path: &str) -> Option<f64> {
        match &self.at(path)?.value {
            Value::Number(number) => number.as_f64(),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Whether the values are for the incumbent's chart, which has defaults of its own.
    fn is_incumbent(&self) -> bool {
        let is_own = |key: &str| {
            let values = &Chart::get().values;
            !["global", "argo-cd"].contains(&key)
                && values.iter().any(|value| value.path.split('.').next() == Some(key))
        };
        let keys = || self.given.entries().iter().map(|(key, _)| key.as_str());
        keys().any(|key| FOREIGN.contains(&key)) && !keys().any(is_own)
    }

    /// Whether nothing stands at a path, or an empty value.
    fn is_empty(&self, path: &str) -> bool {
        self.at(path).is_none_or(|node| match &node.value {
            Value::Null => true,
            Value::Text(text) => text.is_empty(),
            Value::List(items) => items.is_empty(),
            Value::Map(entries) => entries.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        })
    }

    fn error(&mut self, code: &'static str, path: &str, wanted: &str, todo: &str) {
        self.add(Severity::Error, code, path, wanted, todo);
    }

    fn warning(&mut self, code: &'static str, path: &str, wanted: &str, todo: &str) {
        self.add(Severity::Warning, code, path, wanted, todo);
    }

    /// Adds a finding where the value stands, or else the nearest mapping around it that was given.
    fn add(
        &mut self,
        severity: Severity,
        code: &'static str,
        path: &str,
        wanted: &str,
        todo: &str,
    ) -> &mut Finding {
        let (file, line) = self.place(path);
        let found = shown(path, self.at(path));
        self.findings.push_mut(Finding {
            code,
            severity,
            file,
            line,
            path: path.to_owned(),
            found,
            wanted: wanted.to_owned(),
            meant: None,
            todo: todo.to_owned(),
        })
    }

    fn place(&self, path: &str) -> (Option<Arc<str>>, u64) {
        let mut around = path;
        loop {
            if let Some(node) = self.given.at(around) {
                return (node.file.clone(), node.line);
            }
            match around.rsplit_once('.') {
                Some((group, _)) => around = group,
                None => return (self.given.file.clone(), 0),
            }
        }
    }

    /// Why something was not looked at; `None` where it was.
    fn unmeasured(
        &self,
        code: &'static str,
        tiers: Tiers,
        known: MeasuredTiers,
        unanswered: &cluster::Unanswered,
    ) -> Option<Unmeasured> {
        let what = about(code);
        let is_cluster = code.starts_with("GR01");
        let (tier, wanted) = if is_cluster { ("cluster", tiers.cluster) } else { ("network", tiers.network) };
        let why = if !wanted {
            format!("skipped by --skip {tier}")
        } else if let Some(switch) = self.skips(code) {
            format!("skipped by {switch}")
        } else if !known.is_read {
            "the values cannot be read".to_owned()
        } else if !is_cluster && !known.network {
            "offline: no network was asked".to_owned()
        } else if is_cluster && !known.cluster && code != "GR0108" {
            "offline: no cluster was asked".to_owned()
        } else {
            unanswered.get(code)?.clone()
        };
        Some(Unmeasured { code, tier, what, why })
    }
}

/// How the reporter is let in by Argo CD: by password where that is new and nobody gave a token of it.
fn argocd_access(judged: &Judged) -> &'static str {
    const AUTH: &str = "global.integrations.argo-cd.server.auth";
    let is_new = judged.truth("argo-cd.enabled")
        && judged.is_empty(&format!("{AUTH}.token"))
        && judged.text(&format!("{AUTH}.tokenSecretKeyRef.name")) == "argocd-token";
    if is_new || judged.text(&format!("{AUTH}.type")) == "password" { "password" } else { "token" }
}
