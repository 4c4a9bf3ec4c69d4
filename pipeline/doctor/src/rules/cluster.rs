//! What a cluster tells: whether what the values refer to is there, and whether the chart can be installed.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use super::doubtful::volumes;
use super::kubernetes::amount_of;
use super::peers::{ALWAYS, GIT_CREDENTIALS, REFERENCES};
use super::rights::{COMPONENTS, runs};
use super::{Judged, Node, Severity, Value};
use super::{claims, installed, rights};

/// A cluster that can be asked. An error says why there is no answer, and nothing of one.
pub trait Cluster {
    /// The object at a path of the API, `None` where there is none.
    ///
    /// # Errors
    /// When that is not said.
    fn get(&self, path: &str) -> Result<Option<Json>, String>;

    /// The objects at a path that lists some, without what they hold.
    ///
    /// # Errors
    /// When that is not said.
    fn metadata(&self, path: &str) -> Result<Option<Json>, String>;

    /// Whether whoever asks may do this: verb, group, resource; in a namespace, or in the whole cluster.
    ///
    /// # Errors
    /// When that is not said.
    fn may(&self, verb: &str, group: &str, resource: &str, namespace: Option<&str>) -> Result<bool, String>;
}

/// Where the chart is to be installed.
pub(super) struct Place<'a> {
    pub(super) cluster: &'a dyn Cluster,
    pub(super) namespace: &'a str,
    /// Whether the chart's own hook asks, which has rights of its own.
    pub(super) is_hook: bool,
}

/// What could not be measured: code and why.
pub(super) type Unanswered = BTreeMap<&'static str, String>;

/// Lists of Secrets with a credential of repositories each, which say by this key whom it is for.
const CREDENTIALS: [&str; 2] = ["changeRevision.git.credentialSecrets", "sourceServer.git.credentialSecrets"];
const WHOM: &str = "url";
/// Secrets that the chart makes itself of what stands in the values: made by hand before, they would keep it from being installed.
const MADE: [&str; 5] = [
    "codefresh-tls-certs",
    "codefresh-user-token",
    "codefresh-workflow-pipelines-tls",
    "gitops-runtime-argo-cd-password",
    "gitops-runtime-argo-cd-token",
];

/// What the incumbent's documentation asks of all nodes together.
const CPU: f64 = 2.0;
const MEMORY: f64 = 5_000e6;
/// Nodes of one answer: each names the images that it holds.
const NODES: u32 = 100;

/// Asks all there is to ask.
pub(super) fn check(judged: &mut Judged, place: &Place<'_>) -> Unanswered {
    let mut unanswered = Unanswered::new();
    let rules: [(&'static str, Rule); 13] = [
        ("GR0101", class),
        ("GR0102", secrets),
        ("GR0103", rights::check),
        ("GR0104", version),
        ("GR0105", nodes),
        ("GR0106", storage),
        ("GR0107", installed::argocd),
        ("GR0109", gateways),
        ("GR0110", installed::rivals),
        ("GR0111", installed::leftovers),
        ("GR0112", installed::definitions),
        ("GR0113", claims::check),
        ("GR0114", kind_of_cluster),
    ];
    for (code, rule) in rules {
        if !judged.is_skipped(code)
            && let Err(why) = rule(judged, place)
        {
            unanswered.insert(code, why);
        }
    }
    unanswered
}

type Rule = fn(&mut Judged, &Place<'_>) -> Result<(), String>;

/// Judges Helm's version.
pub(super) fn helm(judged: &mut Judged, unanswered: &mut Unanswered, version: Result<&str, &str>) {
    if judged.is_skipped("GR0108") {
        return;
    }
    let number = |text: &str| {
        let mut parts = text.trim().trim_start_matches('v').split('.');
        Some((parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?))
    };
    match version.map(|text| (number(text), text)) {
        Ok((Some(found), _)) if found < (3, 8) => {
            let found = format!("Helm {}.{}", found.0, found.1);
            judged.told(Severity::Error, "GR0108", "", found, "3.8 or newer", "upgrade Helm");
        }
        Ok((Some(_), _)) => {}
        Ok((None, _)) => drop(unanswered.insert("GR0108", "helm version says none".to_owned())),
        Err(why) => drop(unanswered.insert("GR0108", why.to_owned())),
    }
}

fn gateways(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    let mesh = "global.runtime.virtualService.enabled";
    if judged.truth(mesh) && place.cluster.get("/apis/networking.istio.io/v1beta1")?.is_none() {
        let found = "no kind of networking.istio.io/v1beta1 in the cluster".to_owned();
        judged.told(
            Severity::Error,
            "GR0109",
            mesh,
            found,
            "Istio's definitions",
            "install it, or use an Ingress",
        );
    }
    let groups = [
        ("global.runtime.httpRoute", judged.is_on("global.runtime.httpRoute")),
        ("platform.httpRoute", judged.is_on("platform") && judged.is_on("platform.httpRoute")),
        ("tunnelServer.httpRoute", judged.is_on("tunnelServer") && judged.is_on("tunnelServer.httpRoute")),
    ];
    for (group, _) in groups.into_iter().filter(|(_, is_on)| *is_on) {
        of_route(judged, place, group)?;
    }
    Ok(())
}

/// Whether the cluster has what the HTTPRoute of a group of values attaches to.
fn of_route(judged: &mut Judged, place: &Place<'_>, group: &str) -> Result<(), String> {
    let mut version = "v1";
    if place.cluster.get("/apis/gateway.networking.k8s.io/v1")?.is_none() {
        version = "v1beta1";
        if place.cluster.get("/apis/gateway.networking.k8s.io/v1beta1")?.is_none() {
            let found = "no Gateway API in the cluster".to_owned();
            let (path, todo) = (format!("{group}.enabled"), "install it, or use an Ingress");
            judged.told(Severity::Error, "GR0109", &path, found, "its definitions", todo);
            return Ok(());
        }
    }
    let path = format!("{group}.parentRefs");
    let parents = judged.at(&path).map(Node::json).unwrap_or_default();
    for parent in parents.as_array().into_iter().flatten() {
        let name = parent["name"].as_str().unwrap_or_default();
        let namespace = parent["namespace"].as_str().unwrap_or(place.namespace);
        if parent["kind"].as_str().is_some_and(|kind| kind != "Gateway") || name.is_empty() {
            continue;
        }
        let at = format!("/apis/gateway.networking.k8s.io/{version}/namespaces/{namespace}/gateways/{name}");
        if place.cluster.get(&at)?.is_none() {
            let found = format!("no Gateway {name} in namespace {namespace}");
            let todo = "see kubectl get gateways --all-namespaces";
            judged.told(Severity::Error, "GR0109", &path, found, "Gateways that are there", todo);
        }
    }
    Ok(())
}

fn class(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    let path = "global.runtime.ingress.className";
    let name = judged.text(path).to_owned();
    if judged.truth("global.runtime.ingress.enabled")
        && !name.is_empty()
        && place.cluster.get(&format!("/apis/networking.k8s.io/v1/ingressclasses/{name}"))?.is_none()
    {
        judged.error("GR0101", path, "an IngressClass that the cluster has", "see kubectl get ingressclass");
    }
    Ok(())
}

fn secrets(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    const AUTH: &str = "global.integrations.argo-cd.server.auth";
    let kind = super::argocd_access(judged);
    let inline = !judged.is_empty(&format!("{AUTH}.{kind}"));
    let reports = judged.text("reporter.sink") == "platform";
    let (runs, has_platform) = (judged.truth("reporter.enabled"), judged.truth("platform.enabled"));
    let tunnels = super::access::way(judged) == Some("tunnel");
    let opens = tunnels && judged.is_empty("tunnelClient.tokenSecretKeyRef");
    let asks = judged.truth("sourceServer.enabled") && judged.truth("sourceServer.askPlatform");
    for path in ALWAYS.iter().chain(REFERENCES) {
        let unused = match *path {
            // The chart's own platform gives it once it runs: the notes say how.
            "global.codefresh.runtimeToken.secretKeyRef" => {
                // So does its registration.
                judged.truth("appProxy.register")
                    || ((!((reports && runs) || asks) || has_platform) && !opens)
            }
            "global.integrations.argo-cd.server.auth.tokenSecretKeyRef" => inline || !runs || kind != "token",
            "global.integrations.argo-cd.server.auth.passwordSecretKeyRef" => {
                // A new Argo CD makes that of its admin.
                let made = judged.text(&format!("{path}.name")) == "argocd-initial-admin-secret";
                inline || !runs || kind != "password" || (made && judged.truth("argo-cd.enabled"))
            }
            _ => !is_used(judged, path),
        };
        let (name, key) = (judged.text(&format!("{path}.name")), judged.text(&format!("{path}.key")));
        if unused || name.is_empty() || key.is_empty() {
            continue;
        }
        let (name, key) = (name.to_owned(), key.to_owned());
        let found = has(judged, place, path, &name, &key)?;
        let embeds = judged.text("nats.mode") == "embedded" && runs;
        let is_token = *path == "nats.auth.tokenSecretKeyRef" && embeds;
        if is_token && found.is_some_and(|token| !is_quotable(&token)) {
            let found = format!(
                "a quote, a backslash, or white space at an end, in the key {key} of the Secret {name}"
            );
            let wanted = "a token that embedded servers take as clients do, who cut white space off";
            let todo =
                "make it without a line's end: kubectl create secret generic NAME --from-literal=KEY=TOKEN";
            judged.told(Severity::Error, "GR0102", path, found, wanted, todo);
        }
    }
    for path in CREDENTIALS {
        if !is_used(judged, path) {
            continue;
        }
        let names = judged.at(path).map(Node::json).unwrap_or_default();
        for name in names.as_array().into_iter().flatten().filter_map(Json::as_str) {
            has(judged, place, path, name, WHOM)?;
        }
    }
    // The hook may read those alone that the chart's own values name.
    if place.is_hook { Ok(()) } else { further_secrets(judged, place) }
}

/// Secrets that images are pulled with, and those of further variables and volumes.
fn further_secrets(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    const PULLS: &str = "global.imagePullSecrets";
    let mut wanted: Vec<(String, Json, Json)> = Vec::new();
    let all = |judged: &Judged, path: &str| judged.at(path).map(Node::json).unwrap_or_default();
    for one in all(judged, PULLS).as_array().into_iter().flatten() {
        // Of an older kind, as OpenShift makes them, the key is .dockercfg.
        wanted.push((PULLS.to_owned(), one["name"].clone(), Json::Null));
    }
    for group in COMPONENTS.into_iter().filter(|group| runs(judged, group)) {
        let path = format!("{group}.extraEnv");
        for from in all(judged, &path).as_object().into_iter().flat_map(|variables| variables.values()) {
            let from = &from["valueFrom"]["secretKeyRef"];
            if from["optional"] != true {
                wanted.push((path.clone(), from["name"].clone(), from["key"].clone()));
            }
        }
        let path = format!("{group}.extraVolumes");
        for volume in all(judged, &path).as_array().into_iter().flatten() {
            let from = &volume["secret"];
            if from["optional"] != true {
                wanted.push((path.clone(), from["secretName"].clone(), from["items"][0]["key"].clone()));
            }
        }
    }
    for (path, name, key) in wanted {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty() && !MADE.contains(name)) {
            has(judged, place, &path, name, key.as_str().unwrap_or_default())?;
        }
    }
    Ok(())
}

/// Whether what a Secret is given to is switched on.
fn is_used(judged: &Judged, path: &str) -> bool {
    match path.split('.').next().unwrap_or_default() {
        "global" => !path.starts_with(GIT_CREDENTIALS),
        "nats" => judged.text("nats.mode") != "none",
        // Both redact by one key.
        "reporter" => judged.is_on("reporter") || judged.is_on("resourceReporter"),
        "tunnelClient" => super::access::way(judged) == Some("tunnel"),
        role => judged.is_on(role),
    }
}

/// Whether a Secret is there, with a key in it where one is given; gives what the key holds, in base64.
fn has(
    judged: &mut Judged,
    place: &Place<'_>,
    path: &str,
    name: &str,
    key: &str,
) -> Result<Option<String>, String> {
    let namespace = place.namespace;
    let found = match place.cluster.get(&format!("/api/v1/namespaces/{namespace}/secrets/{name}"))? {
        None => format!("no Secret {name} in namespace {namespace}"),
        Some(_) if key.is_empty() => return Ok(None),
        Some(secret) => match secret["data"].get(key) {
            None => format!("no key {key} in the Secret {name} in namespace {namespace}"),
            Some(held) => return Ok(held.as_str().map(str::to_owned)),
        },
    };
    let todo = "make it before you install";
    judged.told(Severity::Error, "GR0102", path, found, "that Secret with that key", todo);
    Ok(None)
}

/// Whether a token, in base64, is the same in quotes in the settings of a NATS server as in a file of a client's, which takes it
/// without white space around it.
fn is_quotable(token: &str) -> bool {
    let Ok(token) = STANDARD.decode(token) else { return true };
    !token.iter().any(|byte| b"\"\\".contains(byte)) && token.trim_ascii().len() == token.len()
}

fn version(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    let version = place.cluster.get("/version")?.unwrap_or_default();
    let number = |name: &str| -> Option<u32> {
        let digits: String = version[name].as_str()?.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let found = number("major").zip(number("minor")).ok_or("the API server tells no version")?;
    if found < (1, 23) {
        let found = format!("Kubernetes {}.{}", found.0, found.1);
        judged.told(Severity::Error, "GR0104", "", found, "1.23 or newer", "upgrade the cluster");
    }
    Ok(())
}

/// Clusters in which no pod of the chart's defaults is let in, or none is found to be well.
fn kind_of_cluster(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    const CODE: &str = "GR0114";
    let path = "openshift.enabled";
    if !judged.truth(path) && place.cluster.get("/apis/security.openshift.io/v1")?.is_some() {
        let found = "false in a cluster of OpenShift, which gives pods their users itself".to_owned();
        let todo = "set it to true, unless the accounts of the chart may use the constraint nonroot-v2: no pod is let in else";
        judged.told(Severity::Warning, CODE, path, found, "true", todo);
    }
    let path = "ipv6.enabled";
    let own = place.cluster.get("/api/v1/namespaces/default/services/kubernetes")?.unwrap_or_default();
    // Its family is the one that pods are asked by whether they are well.
    let is_of_ipv6 = own["spec"]["clusterIP"].as_str().is_some_and(|address| address.contains(':'));
    if !judged.truth(path) && is_of_ipv6 {
        let found = "false in a cluster whose first addresses are of IPv6".to_owned();
        let todo = "set it to true: programs that listen on IPv4 alone are found to be dead there";
        judged.told(Severity::Error, CODE, path, found, "true", todo);
    }
    Ok(())
}

fn nodes(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    let (mut cpu, mut memory) = (0.0, 0.0);
    let mut more = String::new();
    // The nodes of a large cluster are more than one answer may hold, and the first may be room enough.
    while cpu < CPU || memory < MEMORY {
        let nodes = place.cluster.get(&format!("/api/v1/nodes?limit={NODES}{more}"))?.unwrap_or_default();
        for node in nodes["items"].as_array().into_iter().flatten() {
            let room = &node["status"]["allocatable"];
            if node["spec"]["unschedulable"] != true {
                cpu += quantity(&room["cpu"]);
                memory += quantity(&room["memory"]);
            }
        }
        match nodes["metadata"]["continue"].as_str().filter(|next| !next.is_empty()) {
            Some(next) => more = format!("&continue={next}"),
            None => break,
        }
    }
    if cpu < CPU || memory < MEMORY {
        let found = format!("{cpu:.1} CPU and {:.0} MB on nodes that take pods", memory / 1e6);
        let todo = "the reporter alone fits into less; a whole runtime does not";
        judged.told(Severity::Warning, "GR0105", "", found, "2 CPU and 5000 MB", todo);
    }
    Ok(())
}

fn storage(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    let of_bus = ("nats.persistence", judged.text("nats.mode") == "embedded");
    for (group, _) in volumes(judged).into_iter().chain([of_bus]).filter(|(_, needed)| *needed) {
        let path = format!("{group}.existingClaim");
        let claim = judged.text(&path).to_owned();
        if !claim.is_empty() {
            let claims = format!("/api/v1/namespaces/{}/persistentvolumeclaims/{claim}", place.namespace);
            if place.cluster.get(&claims)?.is_none() {
                judged.error("GR0106", &path, "a claim in the namespace", "make it before you install");
            }
            continue;
        }
        let path = format!("{group}.storageClass");
        let name = judged.text(&path).to_owned();
        if name.is_empty() {
            let all = place.cluster.get(classes)?.unwrap_or_default();
            // Kubernetes takes either.
            let is_default = |class: &Json| {
                ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"].iter().any(|prefix| {
                    class["metadata"]["annotations"][&*format!("{prefix}/is-default-class")] == "true"
                })
            };
            if !all["items"].as_array().into_iter().flatten().any(is_default) {
                let found = "no default storage class in the cluster".to_owned();
                let wanted = "the name of a storage class";
                judged.told(
                    Severity::Error,
                    "GR0106",
                    &path,
                    found,
                    wanted,
                    "name one: kubectl get storageclass",
                );
            }
        } else if place.cluster.get(&format!("{classes}/{name}"))?.is_none() {
            let wanted = "a storage class that the cluster has";
            judged.error("GR0106", &path, wanted, "see kubectl get storageclass");
        }
    }
    Ok(())
}

/// The namespace of Argo CD: that of the release, or what is said of one that is there, or of a new one.
pub(super) fn argocd(judged: &Judged, place: &Place<'_>) -> String {
    let given = |path: &str| judged.at(path).and_then(Node::text).filter(|name| !name.is_empty());
    let new = judged.truth("argo-cd.enabled").then(|| given("argo-cd.namespaceOverride")).flatten();
    given("global.integrations.argo-cd.namespace").or(new).unwrap_or(place.namespace).to_owned()
}

/// The same for the app proxy, whose settings stand above what the other values say.
pub(super) fn argocd_of_app_proxy(judged: &Judged, place: &Place<'_>) -> String {
    match judged.text("appProxy.config.argocd.namespace") {
        "" => argocd(judged, place),
        told => told.to_owned(),
    }
}

/// A quantity of Kubernetes, such as 1930m, 16Gi or 4; 0 for what is none.
pub(crate) fn quantity(value: &Json) -> f64 {
    value.as_f64().or_else(|| amount_of(value.as_str()?)).unwrap_or_default()
}

/// The setting of the app proxy by which nobody asks what a Git token may do.
pub(super) const SKIPS_GIT: &str = "appProxy.config.appProxy.skipGitPermissionValidation";

impl Judged {
    /// Adds a finding whose text says what was found.
    pub(super) fn told(
        &mut self,
        severity: Severity,
        code: &'static str,
        path: &str,
        found: String,
        wanted: &str,
        todo: &str,
    ) {
        self.add(severity, code, path, wanted, todo).found = found;
    }

    /// The value that says not to look, where one does.
    pub(super) fn skips(&self, code: &str) -> Option<&'static str> {
        let own: &[&'static str] = match code {
            "GR0101" | "GR0109" | "GR0201" => &["global.runtime.ingress.skipValidation"],
            "GR0203" => &[SKIPS_GIT, "app-proxy.config.skipGitPermissionValidation"],
            "GR0204" => &["installer.skipUsageValidation"],
            _ => &[],
        };
        let is_on = |path: &&str| {
            self.at(path).is_some_and(|node| match &node.value {
                Value::Bool(truth) => *truth,
                Value::Text(text) => text == "true",
                _ => false,
            })
        };
        own.iter().copied().chain(["installer.skipValidation"]).find(is_on)
    }

    pub(super) fn is_skipped(&self, code: &str) -> bool {
        self.skips(code).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        let read = |text: &str| quantity(&Json::from(text));
        assert_eq!([read("1930m"), read("4"), read("2Ki"), read("1.5G")], [1.93, 4.0, 2048.0, 1.5e9]);
        assert_eq!([read("12e6"), read("1Ei"), read("+4"), read("many")], [12e6, 1024_f64.powi(6), 4.0, 0.0]);
        assert_eq!(quantity(&Json::from(4)), 4.0);
    }
}
