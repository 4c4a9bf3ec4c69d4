//! What Kubernetes takes where a value of the chart goes as it is: names, labels, quantities, parts of pods. The schema
//! of the chart says that they are texts, lists and mappings; what the API server would refuse of them is found here.

use regex::Regex;

use super::peers::{ALWAYS, REFERENCES};
use super::{Chart, Judged, Node, Severity, Value};

pub(super) const CURE: &str = "write it as Kubernetes takes it: kubectl explain says how";

/// What has to stand at a path.
#[derive(Clone, Copy)]
enum Shape {
    /// The name of an object, or nothing.
    Name,
    /// A list of names of objects.
    Names,
    /// The name of a port, a volume or a part of another name, or nothing.
    Part,
    /// What stands within a name, or nothing.
    Middle,
    /// A key of a Secret, or nothing.
    Key,
    /// An amount, such as 10Gi.
    Quantity,
    /// A number or a percentage, or nothing.
    Share,
    /// Labels: both sides are short names.
    Labels,
    /// Annotations: any text under a short name.
    Annotations,
    /// Certificates by host: any text under a key of a Secret.
    Files,
    /// Variables: a text, a number, a truth, or where it comes from.
    Variables,
    /// Requests and limits.
    Resources,
    /// Numbers under these keys, this much at least.
    Numbers(&'static [(&'static str, i64)]),
    /// A mapping with no keys but these.
    Keys(&'static [&'static str]),
    /// A list of mappings.
    Items(&'static Items),
    /// A list of ports.
    Ports,
}

/// What each mapping of a list must be.
struct Items {
    /// The only keys that one may have; any, where there are none.
    keys: &'static [&'static str],
    /// Whether its key `name` is the name of a part, with at least one key beside it.
    is_named: bool,
    /// What holds for its values.
    is_right: fn(&Node) -> bool,
    /// The same in words, behind the keys.
    wanted: &'static str,
}

impl Items {
    const fn of(keys: &'static [&'static str]) -> Self {
        Self { keys, is_named: false, is_right: |_| true, wanted: "" }
    }

    fn takes(&self, item: &Node) -> bool {
        let Value::Map(entries) = &item.value else { return false };
        let has_known_keys =
            self.keys.is_empty() || entries.iter().all(|(key, _)| self.keys.contains(&key.as_str()));
        let name = item.get("name").and_then(Node::text);
        let is_part = |name: &str| matches("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name);
        let has_name = !self.is_named || (entries.len() > 1 && name.is_some_and(is_part));
        !entries.is_empty() && has_known_keys && has_name && (self.is_right)(item)
    }

    fn wanted(&self) -> String {
        match self.keys {
            [] => self.wanted.to_owned(),
            keys => format!("mappings with no keys but {}{}", keys.join(", "), self.wanted),
        }
    }
}

const TLS: Items = Items {
    is_right: is_tls,
    wanted: ": a list of hosts, and the name of a Secret",
    ..Items::of(&["hosts", "secretName"])
};
const PARENT: Items = Items::of(&["name", "namespace", "sectionName", "port", "kind", "group"]);
const TOLERATION: Items = Items {
    is_right: is_toleration,
    wanted: ": Exists or Equal; NoSchedule, PreferNoSchedule or NoExecute; no value with Exists",
    ..Items::of(&["key", "operator", "value", "effect", "tolerationSeconds"])
};
const SPREAD: Items = Items::of(&[
    "topologyKey",
    "whenUnsatisfiable",
    "maxSkew",
    "labelSelector",
    "matchLabelKeys",
    "minDomains",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
]);
/// Of any kind: the types of Kubernetes tell of what else is wrong with one.
const VOLUME: Items = Items {
    is_named: true,
    wanted: "volumes: a name of lower-case letters, digits and -, and what each is",
    ..Items::of(&[])
};
const MOUNT: Items = Items {
    is_named: true,
    ..Items::of(&[
        "name",
        "mountPath",
        "mountPropagation",
        "readOnly",
        "recursiveReadOnly",
        "subPath",
        "subPathExpr",
    ])
};
const EGRESS: Items = Items::of(&["to", "ports"]);
const PEER: Items = Items::of(&["podSelector", "namespaceSelector", "ipBlock"]);
const AFFINITY: &[&str] = &["nodeAffinity", "podAffinity", "podAntiAffinity"];
const PROBE: &[(&str, i64)] = &[
    ("initialDelaySeconds", 0),
    ("periodSeconds", 1),
    ("timeoutSeconds", 1),
    ("successThreshold", 1),
    ("failureThreshold", 1),
    ("terminationGracePeriodSeconds", 1),
];

const SHAPES: &[(&str, Shape)] = &[
    ("nameOverride", Shape::Middle),
    ("fullnameOverride", Shape::Part),
    ("global.codefresh.tls.caCerts.secret.annotations", Shape::Annotations),
    ("global.codefresh.tls.caCerts.secret.key", Shape::Key),
    ("global.codefresh.tls.workflowPipelinesGitWebhooks.annotations", Shape::Annotations),
    ("global.codefresh.tls.workflowPipelinesGitWebhooks.certificates", Shape::Files),
    ("global.integrations.argo-cd.server.svc", Shape::Part),
    ("global.runtime.httpRoute.annotations", Shape::Annotations),
    ("global.runtime.httpRoute.labels", Shape::Labels),
    ("global.runtime.ingress.annotations", Shape::Annotations),
    ("global.runtime.ingress.className", Shape::Name),
    ("global.runtime.ingress.labels", Shape::Labels),
    ("global.runtime.ingress.tls", Shape::Items(&TLS)),
    ("global.runtime.httpRoute.parentRefs", Shape::Items(&PARENT)),
    ("global.runtime.virtualService.annotations", Shape::Annotations),
    ("global.runtime.virtualService.labels", Shape::Labels),
    ("metrics.dashboards.annotations", Shape::Annotations),
    ("metrics.dashboards.labels", Shape::Labels),
    ("metrics.rules.labels", Shape::Labels),
    ("metrics.serviceMonitor.labels", Shape::Labels),
    ("networkPolicy.extraEgress", Shape::Items(&EGRESS)),
    ("networkPolicy.kubernetesApiPorts", Shape::Ports),
    ("changeRevision.git.credentialSecrets", Shape::Names),
    ("sourceServer.git.credentialSecrets", Shape::Names),
    ("platform.backup.persistence.existingClaim", Shape::Name),
    ("platform.backup.persistence.size", Shape::Quantity),
    ("platform.backup.persistence.storageClass", Shape::Name),
    ("platform.httpRoute.annotations", Shape::Annotations),
    ("platform.httpRoute.host", Shape::Name),
    ("platform.httpRoute.parentRefs", Shape::Items(&PARENT)),
    ("platform.ingress.annotations", Shape::Annotations),
    ("platform.ingress.className", Shape::Name),
    ("platform.ingress.host", Shape::Name),
    ("platform.ingress.tlsSecretName", Shape::Name),
    ("tunnelServer.domain", Shape::Name),
    ("tunnelServer.httpRoute.annotations", Shape::Annotations),
    ("tunnelServer.httpRoute.host", Shape::Name),
    ("tunnelServer.httpRoute.parentRefs", Shape::Items(&PARENT)),
    ("tunnelServer.ingress.annotations", Shape::Annotations),
    ("tunnelServer.ingress.className", Shape::Name),
    ("tunnelServer.ingress.host", Shape::Name),
    ("tunnelServer.ingress.tlsSecretName", Shape::Name),
    ("tunnelServer.tls.secretName", Shape::Name),
];

/// What a kind of pod may have, below its own group.
const OF_PODS: &[(&str, Shape)] = &[
    ("affinity", Shape::Keys(AFFINITY)),
    ("extraEnv", Shape::Variables),
    ("extraVolumeMounts", Shape::Items(&MOUNT)),
    ("extraVolumes", Shape::Items(&VOLUME)),
    ("livenessProbe", Shape::Numbers(PROBE)),
    ("nodeSelector", Shape::Labels),
    ("pdb.maxUnavailable", Shape::Share),
    ("pdb.minAvailable", Shape::Share),
    ("persistence.existingClaim", Shape::Name),
    ("persistence.size", Shape::Quantity),
    ("persistence.storageClass", Shape::Name),
    ("podAnnotations", Shape::Annotations),
    ("podLabels", Shape::Labels),
    ("priorityClassName", Shape::Name),
    ("readinessProbe", Shape::Numbers(PROBE)),
    ("resources", Shape::Resources),
    ("service.annotations", Shape::Annotations),
    ("service.name", Shape::Part),
    ("serviceAccount.annotations", Shape::Annotations),
    ("serviceAccount.name", Shape::Name),
    ("startupProbe", Shape::Numbers(PROBE)),
    ("tolerations", Shape::Items(&TOLERATION)),
    ("topologySpreadConstraints", Shape::Items(&SPREAD)),
];

/// The part of an object's name that goes before a slash, and one that has none.
pub(super) const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUANTITY: &str =
    "\\+?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][-+]?[0-9]+)?";
const SHORT: &str = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";

pub(super) fn check(judged: &mut Judged) {
    for (path, shape) in SHAPES {
        of(judged, path, *shape);
    }
    for value in &Chart::get().values {
        match value.path.split_once('.') {
            // Every kind of pod has one, and so has what all of them share.
            Some((group, "nodeSelector")) => {
                for (key, shape) in OF_PODS {
                    of(judged, &format!("{group}.{key}"), *shape);
                }
            }
            Some(("networkPolicy", key)) if key.ends_with("From") || key.ends_with("To") => {
                of(judged, &value.path, Shape::Items(&PEER));
            }
            _ => {}
        }
    }
    for path in REFERENCES.iter().chain(&ALWAYS) {
        of(judged, &format!("{path}.name"), Shape::Name);
        of(judged, &format!("{path}.key"), Shape::Key);
    }
}

fn of(judged: &mut Judged, path: &str, shape: Shape) {
    let is_of_texts = matches!(shape, Shape::Labels | Shape::Annotations | Shape::Files);
    if is_of_texts
        && judged.at(path).is_some_and(|node| node.entries().iter().any(|entry| kind(entry).is_some()))
    {
        return unquoted(judged, path);
    }
    if let Some((found, wanted)) = judged.at(path).and_then(|node| wrong(node, shape)) {
        judged.told(Severity::Error, "GR0007", path, found, &wanted, CURE);
    }
}

/// What an entry is that YAML took for no text.
fn kind((_, value): &(String, Node)) -> Option<&'static str> {
    match value.value {
        Value::Number(_) => Some("a number"),
        Value::Bool(_) => Some("true or false"),
        _ => None,
    }
}

/// Tells of each entry that YAML took for no text, where it stands.
fn unquoted(judged: &mut Judged, path: &str) {
    let entries = judged.at(path).map(|node| node.entries().to_vec()).unwrap_or_default();
    for entry in &entries {
        let Some(kind) = kind(entry) else { continue };
        let (key, value) = (plain(&entry.0), &entry.1);
        let found = format!("the entry {key}, which YAML takes for {kind}");
        let finding = judged.add(Severity::Error, "GR0007", path, "a text", "write it in quotes");
        finding.found = found;
        if value.line > 0 {
            (finding.file, finding.line) = (value.file.clone(), value.line);
        }
    }
}

pub(super) fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(&format!("^({pattern})$")).is_ok_and(|regex| regex.is_match(text))
}

/// Whether a text is the key of a label or of an annotation.
pub(super) fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        Some((before, name)) => is_subdomain(before) && matches(SHORT, name),
        None => matches(SHORT, text),
    }
}

fn is_quantity(node: &Node) -> bool {
    match &node.value {
        Value::Number(number) => number.as_f64().is_some_and(|number| number >= 0.0),
        Value::Text(text) => matches(QUANTITY, text),
        _ => false,
    }
}

/// How much a quantity is, in its unit; none where it is none.
pub(super) fn amount(node: &Node) -> Option<f64> {
    match &node.value {
        Value::Number(number) => number.as_f64(),
        Value::Text(text) => amount_of(text),
        _ => None,
    }
}

/// As [`amount`], of a text such as 1930m, 16Gi, 12e6 or 4.
pub(crate) fn amount_of(text: &str) -> Option<f64> {
    if !matches(QUANTITY, text) {
        return None;
    }
    let text = text.trim_start_matches('+');
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let (thousand, kibi) = (1e3_f64, 1024_f64);
    let factor = match unit {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => thousand,
        "M" => thousand.powi(2),
        "G" => thousand.powi(3),
        "T" => thousand.powi(4),
        "P" => thousand.powi(5),
        "E" => thousand.powi(6),
        "Ki" => kibi,
        "Mi" => kibi.powi(2),
        "Gi" => kibi.powi(3),
        "Ti" => kibi.powi(4),
        "Pi" => kibi.powi(5),
        "Ei" => kibi.powi(6),
        // An exponent, such as 12e6.
        _ => return text.parse().ok(),
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// What of requests and limits is no amount of what a container is given.
fn no_amount(node: &Node) -> Option<(String, String)> {
    let is_known = |key: &str| {
        ["cpu", "memory", "ephemeral-storage"].contains(&key)
            || key.contains('/')
            || key.starts_with("hugepages-")
    };
    let found = node.entries().iter().find_map(|(kind, group)| {
        if !["requests", "limits"].contains(&kind.as_str()) || !matches!(group.value, Value::Map(_)) {
            return Some(format!("the entry {}", plain(kind)));
        }
        let wrong = group.entries().iter().find(|(key, amount)| !is_known(key) || !is_quantity(amount));
        wrong.map(|(key, amount)| format!("{} of {kind}: {}", plain(key), super::shown("size", Some(amount))))
    })?;
    Some((
        found,
        "requests and limits of cpu, memory and ephemeral-storage, such as 500m and 256Mi".to_owned(),
    ))
}

/// A request of resources that is more than its limit, which may be the chart's own.
fn above_its_limit(node: &Node) -> Option<(String, String)> {
    let (requests, limits) = (node.get("requests")?, node.get("limits")?);
    let is_above = |(name, request): &&(String, Node)| {
        limits.get(name).and_then(amount).zip(amount(request)).is_some_and(|(limit, request)| request > limit)
    };
    let (name, _) = requests.entries().iter().find(is_above)?;
    Some((
        format!("a request of {} above its limit", plain(name)),
        "requests of at most the limits".to_owned(),
    ))
}

/// What is wrong with a value, and what is wanted. What has another type is told of by the schema.
fn wrong(node: &Node, shape: Shape) -> Option<(String, String)> {
    let text = |is_right: &dyn Fn(&str) -> bool, wanted: &str| {
        let text = node.text().filter(|text| !text.is_empty() && !is_right(text))?;
        Some((
            super::shown("name", Some(&Node { value: Value::Text(text.to_owned()), ..node.clone() })),
            wanted.to_owned(),
        ))
    };
    let entries = |is_key: &dyn Fn(&str) -> bool, is_value: &dyn Fn(&Node) -> bool, wanted: &str| {
        let found = node.entries().iter().find(|(key, value)| !is_key(key) || !is_value(value))?;
        Some((format!("the entry {}", plain(&found.0)), wanted.to_owned()))
    };
    match shape {
        Shape::Name => text(&is_subdomain, "a name of lower-case letters, digits, - and ."),
        Shape::Names => {
            // The schema tells of other types, and of nothing at all.
            let is_name = |item: &Node| item.text().is_none_or(|text| text.is_empty() || is_subdomain(text));
            let number = wrong_item(node, is_name)?;
            Some((
                format!("item {number} that is no name"),
                "names of lower-case letters, digits, - and .".to_owned(),
            ))
        }
        Shape::Part => text(
            &|text| text.len() <= 63 && matches("[a-z]([-a-z0-9]*[a-z0-9])?", text),
            "a name of at most 63 lower-case letters, digits and -",
        ),
        Shape::Middle => {
            text(&|text| matches("[a-z0-9]([-a-z0-9]*[a-z0-9])?", text), "lower-case letters, digits and -")
        }
        Shape::Key => text(
            &|text| text.len() <= 253 && matches("[-._a-zA-Z0-9]+", text),
            "a key of letters, digits, -, _ and .",
        ),
        Shape::Quantity => (!is_quantity(node))
            .then(|| (super::shown("size", Some(node)), "a quantity such as 10Gi".to_owned())),
        Shape::Share => text(&|text| matches("[0-9]{1,9}%?", text), "a number or a percentage"),
        Shape::Labels => entries(
            &is_qualified,
            &|value| value.text().is_some_and(|text| text.is_empty() || matches(SHORT, text)),
            "labels: names and texts of at most 63 letters, digits, -, _ and .",
        ),
        Shape::Annotations => entries(
            &is_qualified,
            &|value| value.text().is_some(),
            "annotations: texts under names of at most 63 letters, digits, -, _ and .",
        ),
        Shape::Files => entries(
            &|key| matches("[-._a-zA-Z0-9]{1,253}", key),
            &|value| value.text().is_some(),
            "texts under names of hosts",
        ),
        Shape::Variables => entries(
            &|key| matches("[-._a-zA-Z][-._a-zA-Z0-9]*", key),
            &|value| match &value.value {
                Value::Map(entries) => {
                    entries.iter().all(|(key, _)| key == "valueFrom") && !entries.is_empty()
                }
                Value::List(_) | Value::Null => false,
                _ => true,
            },
            "variables: names of letters, digits, -, _ and ., each with a text or {valueFrom: ...}",
        ),
        Shape::Resources => no_amount(node).or_else(|| above_its_limit(node)),
        Shape::Numbers(known) => {
            let least = |key: &str| known.iter().find(|(name, _)| *name == key).map(|(_, least)| *least);
            let is_right = |(key, value): &(String, Node)| match &value.value {
                Value::Number(number) => {
                    least(key).zip(number.as_i64()).is_some_and(|(least, number)| number >= least)
                }
                _ => false,
            };
            let found = node.entries().iter().find(|entry| !is_right(entry))?;
            let names: Vec<String> =
                known.iter().map(|(name, least)| format!("{name} ({least} or more)")).collect();
            Some((format!("the entry {}", plain(&found.0)), names.join(", ")))
        }
        Shape::Keys(known) => {
            let wanted = format!("no keys but {}", known.join(", "));
            entries(&|key| known.contains(&key), &|value| matches!(value.value, Value::Map(_)), &wanted)
        }
        Shape::Items(known) => {
            let number = wrong_item(node, |item| known.takes(item))?;
            Some((format!("item {number} that is none of these"), known.wanted()))
        }
        Shape::Ports => {
            let is_port = |item: &Node| match &item.value {
                Value::Number(number) => number.as_i64().is_some_and(|port| (1..=65_535).contains(&port)),
                // The schema tells of other types.
                _ => true,
            };
            let number = wrong_item(node, is_port)?;
            Some((format!("item {number} that is no port"), "ports from 1 to 65535".to_owned()))
        }
    }
}

/// Which item of a list is the first that is not right.
fn wrong_item(node: &Node, is_right: impl Fn(&Node) -> bool) -> Option<usize> {
    node.items().iter().position(|item| !is_right(item))
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && matches(SUBDOMAIN, text)
}

fn is_tls(item: &Node) -> bool {
    let is_name = |node: &Node| node.text().is_some_and(is_subdomain);
    let is_host =
        |node: &Node| node.text().is_some_and(|text| is_subdomain(text.strip_prefix("*.").unwrap_or(text)));
    let hosts = item.get("hosts").is_none_or(|hosts| match &hosts.value {
        Value::List(hosts) => hosts.iter().all(is_host),
        _ => false,
    });
    hosts && item.get("secretName").is_none_or(is_name)
}

fn is_toleration(item: &Node) -> bool {
    let text = |key: &str| item.get(key).and_then(Node::text).unwrap_or_default();
    let has_key = !text("key").is_empty();
    let operator = text("operator");
    let effects = ["", "NoSchedule", "PreferNoSchedule", "NoExecute"];
    (has_key || operator == "Exists")
        && (!has_key || is_qualified(text("key")))
        && ["", "Exists", "Equal"].contains(&operator)
        && effects.contains(&text("effect"))
        && (operator != "Exists" || text("value").is_empty())
}

fn plain(key: &str) -> String {
    let clean: String = key.chars().map(|c| if c.is_control() { ' ' } else { c }).take(80).collect();
    format!("\"{clean}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_whatever_kubernetes_takes_for_one() {
        let of = |text: &str| amount(&Node { value: Value::Text(text.to_owned()), line: 0, file: None });
        for (text, is) in [
            (".5", 0.5),
            ("5.", 5.0),
            ("+1", 1.0),
            ("1e-1", 0.1),
            ("1e+9", 1e9),
            ("12E6", 12e6),
            ("250m", 0.25),
            ("2Ki", 2048.0),
        ] {
            assert_eq!(of(text), Some(is), "{text}");
        }
        for (text, is) in [("100u", 1e-4), ("100n", 1e-7)] {
            assert!(of(text).is_some_and(|amount| (amount - is).abs() < 1e-12), "{text}");
        }
        for text in ["", ".", "-1", "1e", "1 Gi", "512MB", "1mm", "++1", "1e1.5", "lots"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
