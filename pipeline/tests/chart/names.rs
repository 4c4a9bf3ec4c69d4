//! Names of objects: whatever a release or an alias of the chart is called, they are names that Kubernetes takes.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::helm::{chart, template_of};
use crate::texts::described;

/// What makes an object of each kind.
const ALL: &[&str] = &[
    "global.runtime.name=prod",
    "global.runtime.ingressUrl=https://runtime.example.com",
    "appProxy.enabled=true",
    "changeRevision.enabled=true",
    "metrics.dashboards.enabled=true",
    "metrics.rules.enabled=true",
    "metrics.serviceMonitor.enabled=true",
    "nats.mode=embedded",
    "platform.enabled=true",
    "resourceReporter.enabled=true",
    "sourceServer.argocdCredentials=true",
    "sourceServer.enabled=true",
    "tunnelServer.domain=tunnels.example.com",
    "tunnelServer.enabled=true",
    "validation.enabled=true",
];

/// How long the name of an object may be: what is made of it, its pods and what counts their versions, is called after it.
fn most(kind: &str) -> usize {
    match kind {
        "CronJob" | "StatefulSet" => 52,
        "Deployment" | "Job" | "Service" => 63,
        _ => 253,
    }
}

fn names_are_taken(release: &str, chart: &Path) {
    let output = template_of(release, chart, &["--set", &ALL.join(",")]);
    assert!(output.status.success(), "{release}: {}", String::from_utf8_lossy(&output.stderr));
    let objects: Vec<Value> = serde_saphyr::from_multiple(str::from_utf8(&output.stdout).unwrap()).unwrap();
    let (mut kinds, mut names) = (BTreeSet::new(), BTreeSet::new());
    for object in objects.iter().filter(|object| !object.is_null()) {
        let kind = object["kind"].as_str().unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        let at = format!("{release}: {kind} {name}");
        assert!(names.insert((kind, name)), "{at} twice");
        assert!(name.len() <= most(kind), "{at} has {} letters", name.len());
        // Roles may be called almost anything.
        let is_role = kind.ends_with("Role") || kind.ends_with("RoleBinding");
        let is_right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        assert!(is_role || name.chars().all(is_right), "{at}");
        if kind == "Service" {
            assert!(name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.contains('.'), "{at}");
        }
        kinds.insert(kind);
    }
    for kind in ["CronJob", "Deployment", "Job", "Service", "StatefulSet"] {
        assert!(kinds.contains(kind), "{release} has no {kind}");
    }
}

#[test]
fn a_release_may_be_called_as_helm_lets_it() {
    for release in
        ["prod", "team.prod", "2024", "7.of-nine", "platform.engineering-of-a-large-company.production-12"]
    {
        names_are_taken(release, &chart());
    }
}

#[test]
fn an_alias_of_the_chart_may_have_capitals() {
    let folder = described(|chart| chart.replacen("name: gitops-runtime\n", "name: RuntimeOfTeamA\n", 1));
    names_are_taken("prod", folder.path());
}
