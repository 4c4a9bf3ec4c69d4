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
        labels_are_texts(object, &at);
        kinds.insert(kind);
    }
    for kind in ["CronJob", "Deployment", "Job", "Service", "StatefulSet"] {
        assert!(kinds.contains(kind), "{release} has no {kind}");
    }
}

/// The API server takes no number and no boolean for a label, wherever it stands.
fn labels_are_texts(object: &Value, at: &str) {
    match object {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value.as_object().filter(|_| ["labels", "matchLabels", "selector"].contains(&&**key)) {
                    Some(labels) if !labels.contains_key("matchLabels") => {
                        assert!(labels.values().all(Value::is_string), "{at}: {key} {value}");
                    }
                    _ => labels_are_texts(value, at),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| labels_are_texts(item, at)),
        _ => {}
    }
}

#[test]
fn a_release_may_be_called_as_helm_lets_it() {
    let long = "platform.engineering-of-a-large-company.production-12";
    for release in ["prod", "team.prod", "2024", "1e3", "1.5", "true", "null", "7.of-nine", long] {
        names_are_taken(release, &chart());
    }
}

#[test]
fn an_alias_of_the_chart_may_have_capitals() {
    let folder = described(|chart| chart.replacen("name: gitops-runtime\n", "name: RuntimeOfTeamA\n", 1));
    names_are_taken("prod", folder.path());
}

/// Whatever is called by a name that the values give is called by a text.
fn names_are_texts(object: &Value, at: &str) {
    const NAMES: [&str; 5] = ["claimName", "name", "namespace", "secretName", "serviceAccountName"];
    match object {
        Value::Object(entries) => {
            for (key, value) in entries {
                let is_name = NAMES.contains(&&**key) && !value.is_object();
                assert!(!is_name || value.is_string(), "{at}: {key} {value}");
                names_are_texts(value, at);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names_are_texts(item, at)),
        _ => {}
    }
}

#[test]
fn a_name_of_digits_stays_a_text() {
    let secrets = [
        "global.codefresh.runtimeToken.secretKeyRef",
        "global.integrations.argo-cd.server.auth.tokenSecretKeyRef",
        "platform.oidc.secretKeyRef",
        "platform.oidc.caSecretKeyRef",
        "sourceServer.git.caSecretKeyRef",
        "changeRevision.git.caSecretKeyRef",
    ];
    let secrets = secrets.map(|path| format!("{path}.name=2024,{path}.key=2025"));
    let claims = ["platform", "platform.backup", "reporter", "changeRevision", "resourceReporter"];
    let claims = claims.map(|group| format!("{group}.persistence.existingClaim=2024"));
    let more = [
        "reporter.serviceAccount.name=2024",
        "platform.oidc.issuer=https://idp.example.com",
        "platform.oidc.clientId=2024",
    ];
    let set: Vec<&str> = ALL.iter().copied().filter(|one| !one.starts_with("nats.mode")).collect();
    let texts = [secrets.join(","), claims.join(","), more.join(",")].join(",");
    let output = template_of("prod", &chart(), &["--set", &set.join(","), "--set-string", &texts]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = str::from_utf8(&output.stdout).unwrap();
    assert!(text.matches("2024").count() > 12, "{text}");
    for object in &serde_saphyr::from_multiple::<Value>(text).unwrap() {
        names_are_texts(object, &format!("{} {}", object["kind"], object["metadata"]["name"]));
    }
}
