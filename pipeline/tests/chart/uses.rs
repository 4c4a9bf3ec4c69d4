//! Every value is used by a template, and every value that a template uses exists.

use std::collections::BTreeSet;

use pipeline_doctor::Chart;

use crate::helm::{chart, texts_below};

/// What a template reads of a value that is not written out there: a mapping that is passed on as a whole.
const WHOLE: &[(&str, &str)] = &[
    // Values of the chart that it depends on.
    ("argo-cd", "(index .Values \"argo-cd\")"),
    // Accepted, and without effect.
    ("global.runtime.codefreshHosted", "$runtime.codefreshHosted"),
];

fn templates() -> String {
    texts_below(chart().join("templates")).into_iter().map(|(_, text)| text).collect()
}

/// The names that a value can be read by, where a template has put a part of the tree into a variable.
fn readings(path: &str) -> Vec<String> {
    let mut readings = vec![format!(".Values.{path}")];
    let variables = [
        ("global.codefresh.tls.caCerts.", "$ca."),
        ("global.codefresh.", "$codefresh."),
        ("global.codefresh.tls.caCerts.secret.", "."),
        ("global.codefresh.tls.workflowPipelinesGitWebhooks.", "."),
        ("global.runtime.", "$runtime."),
        ("global.runtime.", "."),
        ("global.integrations.argo-cd.server.", "$argocd."),
        ("global.integrations.argo-cd.server.", "$server."),
        ("global.integrations.argo-cd.", "$argocd."),
        ("global.integrations.argo-cd.", "\"argo-cd\")."),
        ("global.integrations.argo-cd.server.", "$argocd.server."),
        ("global.integrations.argo-cd.server.auth.", "$auth."),
        ("global.", "$root.Values.global."),
        ("nats.", "$nats."),
        ("platform.", "$platform."),
        // Helpers that take a claim.
        ("platform.persistence.", "$persistence."),
        ("platform.backup.persistence.", "$persistence."),
        ("reporter.persistence.", "$persistence."),
        // Helpers that take a part: the image, where pods run.
        ("image.", "$image."),
        ("nats.image.", "$image."),
        ("nats.", "$values."),
        ("reporter.", "$values."),
        ("platform.", "$values."),
        ("appProxy.", "$values."),
        ("changeRevision.", "$values."),
        ("changeRevision.persistence.", "$persistence."),
        ("resourceReporter.", "$values."),
        ("resourceReporter.persistence.", "$persistence."),
        ("sourceServer.", "$values."),
        ("changeRevision.git.", "$git."),
        ("sourceServer.git.", "$git."),
        // The roles without state have one template.
        ("router.", "$values."),
        ("tunnelClient.", "$values."),
        ("tunnelServer.", "$values."),
        ("router.", "$router."),
        ("tunnelClient.", "$client."),
        ("tunnelClient.", "."),
        ("tunnelServer.", "$server."),
        // Helpers that take the values of an Ingress.
        ("global.runtime.ingress.", "$ingress."),
        ("platform.ingress.", "$ingress."),
        ("tunnelServer.ingress.", "$ingress."),
        ("reporter.autoscaling.", "."),
        ("router.autoscaling.", "."),
        ("sourceServer.autoscaling.", "."),
        ("reporter.pdb.", "."),
        ("resourceReporter.pdb.", "."),
        ("router.pdb.", "."),
        ("tunnelClient.pdb.", "."),
        ("tunnelServer.pdb.", "."),
        ("sourceServer.pdb.", "."),
        ("appProxy.pdb.", "."),
        ("changeRevision.pdb.", "."),
    ];
    for (prefix, variable) in variables {
        if let Some(rest) = path.strip_prefix(prefix) {
            readings.push(format!("{variable}{rest}"));
        }
    }
    // A reference to a Secret is often read as a whole.
    if let Some(group) = path.strip_suffix(".name").or_else(|| path.strip_suffix(".key"))
        && group.ends_with("SecretKeyRef") | group.ends_with("secretKeyRef")
    {
        readings.extend(self::readings(group));
    }
    readings
}

/// Whether a text holds a name that does not go on.
fn holds(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let next = text.get(at + name.len()..).and_then(|rest| rest.chars().next());
        next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
    })
}

#[test]
fn every_value_is_used() {
    let templates = templates();
    let unused: Vec<&str> = Chart::get()
        .values
        .iter()
        .map(|value| value.path.as_str())
        .filter(|path| !readings(path).iter().any(|name| holds(&templates, name)))
        .filter(|path| !WHOLE.iter().any(|(whole, name)| path == whole && holds(&templates, name)))
        .collect();
    assert!(unused.is_empty(), "no template uses {unused:?}");
}

#[test]
fn every_value_that_is_used_exists() {
    let chart = Chart::get();
    let mut missing = BTreeSet::new();
    let templates = templates();
    for (at, start) in templates.match_indices(".Values.") {
        let rest = templates.get(at + start.len()..).unwrap();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '.' && c != '_').unwrap_or(rest.len());
        let path = rest.get(..end).unwrap().trim_end_matches('.');
        let known = |value: &pipeline_doctor::ChartValue| {
            value.path == path
                || value.path.starts_with(&format!("{path}."))
                || path.starts_with(&format!("{}.", value.path))
        };
        if !chart.values.iter().any(known) {
            missing.insert(path.to_owned());
        }
    }
    assert!(missing.is_empty(), "the chart has no values {missing:?}");
}
