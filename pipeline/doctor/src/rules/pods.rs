//! What the API server would refuse of parts of pods that the chart passes on as they are given: variables that come from nowhere,
//! volumes and paths that are there already, mounts of no volume, and what rules of scheduling lack.

use std::collections::BTreeSet;

use super::kubernetes::{amount, is_qualified, matches};
use super::{Chart, Judged, Node, Severity};

/// Volumes that the chart gives the pods of each component that takes further ones, in one mode or another.
const OWN: [(&str, &[&str]); 9] = [
    ("appProxy", &["argocd", "argocd-ca", "git-ca", "platform", "platform-ca", "settings", "tmp", "user"]),
    (
        "changeRevision",
        &["bus", "bus-ca", "git-ca", "git-hosts", "platform", "platform-ca", "settings", "state", "tmp"],
    ),
    ("platform", &["backups", "oidc", "oidc-ca", "postgres", "settings", "state", "tmp"]),
    (
        "reporter",
        &[
            "argocd",
            "argocd-ca",
            "bus",
            "bus-ca",
            "generated",
            "platform",
            "platform-ca",
            "redaction",
            "settings",
            "state",
            "tmp",
        ],
    ),
    (
        "resourceReporter",
        &["bus", "bus-ca", "platform", "platform-ca", "redaction", "settings", "state", "tmp"],
    ),
    ("router", &["settings", "tmp"]),
    (
        "sourceServer",
        &["bus", "bus-ca", "clones", "git-ca", "git-hosts", "platform", "platform-ca", "settings"],
    ),
    ("tunnelClient", &["ca", "settings", "tmp", "token"]),
    ("tunnelServer", &["bus", "bus-ca", "platform-ca", "settings", "tls", "tmp", "tokens"]),
];
/// Labels by which the chart finds its pods.
const LABELS: [&str; 4] = [
    "app.kubernetes.io/component",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
];
/// Where a variable may come from, and what has to be said of it.
const SOURCES: [(&str, &[&str]); 4] = [
    ("configMapKeyRef", &["key", "name"]),
    ("fieldRef", &["fieldPath"]),
    ("resourceFieldRef", &["resource"]),
    ("secretKeyRef", &["key", "name"]),
];
/// What of its pod a variable may tell.
const FIELDS: &str = "metadata\\.(name|namespace|uid)|metadata\\.(labels|annotations)\\['[^']+'\\]|\
                      spec\\.(nodeName|serviceAccountName)|status\\.(hostIP|hostIPs|podIP|podIPs)";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const CURE: &str = "write it as Kubernetes takes it: kubectl explain pod.spec says how";

/// What is wrong, and what is wanted.
type Wrong = Option<(String, &'static str)>;

/// Looks at what is set for pods of a component, which is named.
type Look = fn(&Judged, &str, &Node) -> Wrong;

/// Whether a volume of this name is one of the chart's own in the pods of a component.
#[must_use]
pub fn is_own_volume(group: &str, name: &str) -> bool {
    let own = OWN.iter().find(|(of, _)| *of == group);
    let is_of_git = ["changeRevision", "sourceServer"].contains(&group)
        && name.strip_prefix("git-").is_some_and(|number| number.parse::<u32>().is_ok());
    is_of_git || own.is_some_and(|(_, own)| own.contains(&name))
}

pub(super) fn check(judged: &mut Judged) {
    let looks: [(&str, Look); 11] = [
        ("affinity", |_, _, node| affinity(node)),
        ("extraEnv", variables),
        ("extraVolumes", volumes),
        ("extraVolumeMounts", mounts),
        ("livenessProbe", |_, _, node| succeeds_once(node)),
        ("pdb.maxUnavailable", |_, _, node| share(node)),
        ("pdb.minAvailable", |_, _, node| share(node)),
        ("podLabels", |_, _, node| labels(node)),
        ("startupProbe", |_, _, node| succeeds_once(node)),
        ("tolerations", |_, _, node| tolerations(node)),
        ("topologySpreadConstraints", |_, _, node| spread(node)),
    ];
    for value in &Chart::get().values {
        if value.path.ends_with("persistence.size") {
            tell(judged, &value.path, |_, _, node| size(node));
        }
        let Some((group, "nodeSelector")) = value.path.split_once('.') else { continue };
        for (key, look) in looks {
            tell(judged, &format!("{group}.{key}"), look);
        }
    }
}

fn tell(judged: &mut Judged, path: &str, look: Look) {
    let group = path.split('.').next().unwrap_or_default();
    if let Some((found, wanted)) = judged.at(path).and_then(|node| look(judged, group, node)) {
        judged.told(Severity::Error, "GR0007", path, found, wanted, CURE);
    }
}

fn text<'a>(node: &'a Node, key: &str) -> &'a str {
    node.get(key).and_then(Node::text).unwrap_or_default()
}

fn number(node: &Node, key: &str) -> Option<i64> {
    node.get(key)?.whole()
}

/// The first text that stands there twice.
fn twice<'a>(mut all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    all.find(|one| !one.is_empty() && !seen.insert(*one))
}

fn variables(judged: &Judged, group: &str, node: &Node) -> Wrong {
    let proxied = |path: &str| !judged.text(path).is_empty();
    let is_own = |name: &str| match name {
        "GITOPS_RUNTIME_CONFIG" => group == "platform",
        "GITOPS_RUNTIME_TUNNEL_SERVER__PEERS__ADDRESS" => group == "tunnelServer",
        "HTTP_PROXY" => proxied("global.httpProxy"),
        "HTTPS_PROXY" => proxied("global.httpsProxy"),
        "NO_PROXY" => proxied("global.httpProxy") || proxied("global.httpsProxy"),
        _ => false,
    };
    if let Some((name, _)) = node.entries().iter().find(|(name, _)| is_own(name)) {
        return Some((format!("the variable {name}, which the chart sets itself"), "others than those"));
    }
    let is_right = |value: &Node| {
        let Some(from) = value.get("valueFrom") else { return true };
        let [(source, given)] = from.entries() else { return false };
        let Some((_, needed)) = SOURCES.iter().find(|(name, _)| name == source) else { return false };
        needed.iter().all(|key| !text(given, key).is_empty())
            && (source != "fieldRef" || matches(FIELDS, text(given, "fieldPath")))
    };
    let (name, _) = node.entries().iter().find(|(_, value)| !is_right(value))?;
    Some((
        format!("the variable {name}, which comes from nowhere"),
        "one of secretKeyRef and configMapKeyRef with name and key, fieldRef with fieldPath, resourceFieldRef with resource",
    ))
}

fn volumes(_: &Judged, group: &str, node: &Node) -> Wrong {
    let names = || node.items().iter().map(|item| text(item, "name"));
    if let Some(name) = names().find(|name| is_own_volume(group, name)) {
        return Some((format!("the volume {name}, which is the chart's own"), "names of their own"));
    }
    if let Some(name) = twice(names()) {
        return Some((format!("the volume {name} twice"), "each once"));
    }
    let many = node.items().iter().find(|item| item.entries().len() > 2)?;
    Some((format!("the volume {} of more than one kind", text(many, "name")), "a name and one kind each"))
}

fn mounts(judged: &Judged, group: &str, node: &Node) -> Wrong {
    let given = judged.at(&format!("{group}.extraVolumes"));
    let is_given =
        |name: &str| given.is_some_and(|given| given.items().iter().any(|item| text(item, "name") == name));
    let is_there = |name: &str| name.is_empty() || is_own_volume(group, name) || is_given(name);
    let names = node.items().iter().map(|item| text(item, "name"));
    if let Some(name) = names.into_iter().find(|name| !is_there(name)) {
        return Some((format!("a mount of {name}, which is no volume"), "volumes of extraVolumes"));
    }
    let paths = || node.items().iter().map(|item| text(item, "mountPath"));
    if paths().any(str::is_empty) {
        return Some(("a mount without mountPath".to_owned(), "a mountPath each"));
    }
    let has = |name: &str| is_own_volume(group, name);
    let is_taken = |path: &str| match path {
        "/tmp" => has("tmp"),
        "/backups" => has("backups"),
        "/var/lib/gitops-runtime" => has("state") || has("clones"),
        path => path.strip_prefix("/etc/gitops-runtime/").is_some_and(has),
    };
    let taken = paths().find(|path| is_taken(path)).or_else(|| twice(paths()))?;
    Some((format!("the path {taken}, where something is mounted already"), "paths of their own"))
}

fn succeeds_once(node: &Node) -> Wrong {
    let more = number(node, "successThreshold").filter(|number| *number != 1)?;
    Some((format!("a successThreshold of {more}"), "1, as every probe of liveness and of startup has"))
}

fn share(node: &Node) -> Wrong {
    let percent = node.text()?.strip_suffix('%')?.parse::<u32>().ok()?;
    (percent > 100).then(|| (format!("{percent}%"), "at most 100%"))
}

fn size(node: &Node) -> Wrong {
    amount(node).filter(|size| *size <= 0.0).map(|_| ("nothing".to_owned(), "a size above 0"))
}

fn labels(node: &Node) -> Wrong {
    let (name, _) = node.entries().iter().find(|(name, _)| LABELS.contains(&name.as_str()))?;
    Some((format!("the label {name}, by which the chart finds its pods"), "others than those"))
}

fn tolerations(node: &Node) -> Wrong {
    let is_wrong =
        |item: &&Node| item.get("tolerationSeconds").is_some() && text(item, "effect") != "NoExecute";
    let at = node.items().iter().position(|item| is_wrong(&item))?;
    Some((format!("item {at} with tolerationSeconds"), "these with the effect NoExecute alone"))
}

fn spread(node: &Node) -> Wrong {
    let is_right = |item: &Node| {
        number(item, "maxSkew").is_some_and(|skew| skew > 0)
            && is_qualified(text(item, "topologyKey"))
            && ["DoNotSchedule", "ScheduleAnyway"].contains(&text(item, "whenUnsatisfiable"))
    };
    if let Some(at) = node.items().iter().position(|item| !is_right(item)) {
        let wanted =
            "each with topologyKey, maxSkew above 0, and whenUnsatisfiable DoNotSchedule or ScheduleAnyway";
        return Some((format!("item {at} that lacks something"), wanted));
    }
    let pairs: Vec<String> = node
        .items()
        .iter()
        .map(|item| format!("{} {}", text(item, "topologyKey"), text(item, "whenUnsatisfiable")))
        .collect();
    let pair = twice(pairs.iter().map(String::as_str))?;
    Some((format!("{pair} twice"), "each once"))
}

fn affinity(node: &Node) -> Wrong {
    for (kind, rules) in node.entries() {
        if let Some((rule, _)) =
            rules.entries().iter().find(|(rule, _)| rule != REQUIRED && rule != PREFERRED)
        {
            return Some((
                format!("{kind}.{rule}"),
                "no rules but those that are required or preferred during scheduling",
            ));
        }
        let is_weighed =
            |item: &Node| number(item, "weight").is_some_and(|weight| (1..=100).contains(&weight));
        let preferred = rules.get(PREFERRED).map(Node::items).unwrap_or_default();
        if let Some(at) = preferred.iter().position(|item| !is_weighed(item)) {
            return Some((
                format!("{kind}: preferred rule {at} without a weight"),
                "a weight from 1 to 100 each",
            ));
        }
        let lacks = match (kind.as_str(), rules.get(REQUIRED)) {
            ("nodeAffinity", Some(rule)) => {
                rule.get("nodeSelectorTerms").is_none_or(|terms| terms.items().is_empty())
            }
            (_, rule) => {
                let required = rule.map(Node::items).unwrap_or_default().iter();
                let all = required.chain(preferred.iter().filter_map(|item| item.get("podAffinityTerm")));
                kind != "nodeAffinity" && all.into_iter().any(|term| !is_qualified(text(term, "topologyKey")))
            }
        };
        if lacks {
            return Some((
                format!("{kind} without a place"),
                "a topologyKey each, of nodes nodeSelectorTerms",
            ));
        }
    }
    None
}
