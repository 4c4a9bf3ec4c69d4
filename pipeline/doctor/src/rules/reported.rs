//! What a resource reporter reads, as the chart's template of its rules says it: the kinds that are reported, those above them, and
//! Applications.

use std::collections::BTreeMap;

use super::{Judged, Node};

/// Where its settings are, what counts more first.
const GROUPS: [&str; 2] = ["resourceReporter.config.resources", "resourceReporter"];
/// Those of the preset `incumbent`.
const PRESET: [&str; 20] = [
    "analysisruns.argoproj.io",
    "applications.argoproj.io",
    "applicationsets.argoproj.io",
    "clusterworkflowtemplates.argoproj.io",
    "configmaps",
    "deployments.apps",
    "eventsources.argoproj.io",
    "products.codefresh.io",
    "promotionflows.codefresh.io",
    "promotionpolicies.codefresh.io",
    "promotiontemplates.codefresh.io",
    "replicasets.apps",
    "restrictedgitsources.codefresh.io",
    "rollouts.argoproj.io",
    "sealedsecrets.bitnami.com",
    "sensors.argoproj.io",
    "services",
    "statefulsets.apps",
    "workflows.argoproj.io",
    "workflowtemplates.argoproj.io",
];
/// Kinds, and those above them.
const OWNERS: [(&str, &[&str]); 5] = [
    ("analysisruns.argoproj.io", &["experiments.argoproj.io", "rollouts.argoproj.io"]),
    ("experiments.argoproj.io", &["rollouts.argoproj.io"]),
    (
        "pods",
        &[
            "cronworkflows.argoproj.io",
            "deployments.apps",
            "experiments.argoproj.io",
            "replicasets.apps",
            "rollouts.argoproj.io",
            "statefulsets.apps",
            "workflows.argoproj.io",
        ],
    ),
    ("replicasets.apps", &["deployments.apps", "experiments.argoproj.io", "rollouts.argoproj.io"]),
    ("workflows.argoproj.io", &["cronworkflows.argoproj.io"]),
];

/// The verbs of each kind, as plural.group; nothing where nothing is reported.
pub(super) fn rights(judged: &Judged) -> BTreeMap<String, Vec<&'static str>> {
    let [own, other] = GROUPS;
    let mut rights: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for kind in kinds(judged) {
        let text = |key: &str| kind.get(key).and_then(Node::text).unwrap_or_default().trim();
        let named = kind.text().unwrap_or_else(|| text("kind"));
        let resource = named.split_once('@').map_or(named, |(resource, _)| resource);
        let verbs = rights.entry(resource.to_owned()).or_insert_with(reads);
        // What is selected is not read object by object.
        if !text("labelSelector").is_empty() || !text("fieldSelector").is_empty() {
            verbs.retain(|verb| *verb != "get");
        }
    }
    let preset = match judged.text(&format!("{own}.preset")) {
        "" => judged.text(&format!("{other}.preset")),
        preset => preset,
    };
    if preset == "incumbent" {
        for resource in PRESET {
            rights.entry(resource.to_owned()).or_insert_with(reads);
        }
    }
    if GROUPS.into_iter().any(|group| judged.truth(&format!("{group}.applications"))) {
        let owned = OWNERS.into_iter().filter(|(kind, _)| rights.contains_key(*kind));
        let owners: Vec<&str> = owned.flat_map(|(_, owners)| owners.iter().copied()).collect();
        for resource in owners.into_iter().chain(["applications.argoproj.io"]) {
            let verbs = rights.entry(resource.to_owned()).or_default();
            if !verbs.contains(&"get") {
                verbs.push("get");
            }
        }
    }
    rights
}

fn reads() -> Vec<&'static str> {
    vec!["get", "list", "watch"]
}

/// The kinds that are named. As Helm merges, an empty list stands above nothing.
fn kinds(judged: &Judged) -> &[Node] {
    let of =
        |group: &str| judged.at(&format!("{group}.kinds")).map(Node::items).filter(|all| !all.is_empty());
    GROUPS.into_iter().find_map(of).unwrap_or_default()
}
