//! What the chart and Kubernetes take of values, and nobody means: amounts in a wrong unit, replicas that never come, budgets that hold a
//! node for ever, a claim of two, values that nothing reads, and texts that are still to be filled in.

use regex::Regex;

use super::kubernetes::amount;
use super::rights::WITH_ACCOUNT;
use super::{Chart, GIT_CREDENTIALS, GIVES_GIT_TOKEN, Judged, Node, Value};

/// Memory and volumes below this are in another unit than was meant.
const LEAST: f64 = 1024.0 * 1024.0;
/// More processors than this no pod is given.
const MOST: f64 = 128.0;
/// Components whose replicas may come and go.
pub(super) const SCALED: [&str; 3] = ["reporter", "router", "sourceServer"];
/// Components with a budget.
pub(super) const LIMITED: [&str; 8] = [
    "appProxy",
    "changeRevision",
    "reporter",
    "resourceReporter",
    "router",
    "sourceServer",
    "tunnelClient",
    "tunnelServer",
];
/// What is of the bus alone.
const OF_BUS: [&str; 4] = [
    "nats.auth.credentialsSecretKeyRef",
    "nats.auth.tokenSecretKeyRef",
    "nats.tls.caSecretKeyRef",
    "nats.url",
];
/// How people and their programs write what is to be put in.
const TO_FILL_IN: &str = "\\$\\{|\\$\\(|\\{\\{|^<[^<>]+>$|^(change-?me|replace-?me|todo|xxx+|your[-_ ].*)$";

pub(super) fn check(judged: &mut Judged) {
    amounts(judged);
    for group in SCALED {
        scaled(judged, group);
    }
    for group in LIMITED {
        budget(judged, group);
    }
    claims(judged);
    without_effect(judged);
    account(judged);
    to_fill_in(judged);
}

fn amounts(judged: &mut Judged) {
    let is_less = |judged: &Judged, path: &str| {
        judged.at(path).and_then(amount).is_some_and(|size| size > 0.0 && size < LEAST)
    };
    for value in &Chart::get().values {
        if value.path.ends_with(".persistence.size") && is_less(judged, &value.path) {
            let todo = "write the unit: Mi, Gi";
            judged.warning("GR0085", &value.path, "a size of 1Mi or more", todo);
        }
        if !value.path.ends_with(".resources") {
            continue;
        }
        for kind in ["requests", "limits"] {
            let memory = format!("{}.{kind}.memory", value.path);
            if is_less(judged, &memory) {
                let todo = "write the unit: Mi, Gi; m is a thousandth of a byte";
                judged.warning("GR0085", &memory, "memory of 1Mi or more", todo);
            }
            let cpu = format!("{}.{kind}.cpu", value.path);
            if judged.at(&cpu).and_then(amount).is_some_and(|count| count > MOST) {
                let todo = "write the unit: 500m is half a processor";
                judged.warning("GR0085", &cpu, "processors that a node has", todo);
            }
        }
    }
}

fn scaled(judged: &mut Judged, group: &str) {
    let asks = |judged: &Judged, kind: &str| !judged.is_empty(&format!("{group}.resources.{kind}.cpu"));
    let is_scaled = judged.is_on(group) && judged.is_on(&format!("{group}.autoscaling"));
    // What is limited and not requested is requested up to its limit.
    if is_scaled && !asks(judged, "requests") && !asks(judged, "limits") {
        let wanted = "requests.cpu, by which an autoscaler measures the load";
        let todo = format!("give it, or set {group}.autoscaling.enabled to false");
        judged.error("GR0080", &format!("{group}.resources"), wanted, &todo);
    }
}

/// How many replicas a component has at the least.
fn replicas(judged: &Judged, group: &str) -> f64 {
    let path = match judged.is_on(&format!("{group}.autoscaling")) {
        true => format!("{group}.autoscaling.minReplicas"),
        false => format!("{group}.replicaCount"),
    };
    judged.number(&path).unwrap_or(1.0)
}

fn budget(judged: &mut Judged, group: &str) {
    let replicas = replicas(judged, group);
    let path = |key: &str| format!("{group}.pdb.{key}");
    let is_there = judged.is_on(group) && (group != "tunnelClient" || !judged.is_empty("tunnelClient.to"));
    if !is_there || !judged.truth(&path("enabled")) || replicas < 1.0 {
        return;
    }
    let (stay, go) = (path("minAvailable"), path("maxUnavailable"));
    let (key, holds) = if judged.is_empty(&stay) {
        (go.clone(), judged.at(&go).and_then(|node| share(node, replicas)).is_some_and(|most| most < 1.0))
    } else {
        (
            stay.clone(),
            judged.at(&stay).and_then(|node| share(node, replicas)).is_some_and(|least| least >= replicas),
        )
    };
    if holds {
        let wanted = "a budget by which a pod may go: else no node that has one is ever drained";
        let todo = format!(
            "give maxUnavailable 1 and no minAvailable, or more replicas than the {replicas} of {group}"
        );
        judged.warning("GR0081", &key, wanted, &todo);
    }
}

/// How many pods a budget speaks of; Kubernetes rounds percentages up.
fn share(node: &Node, replicas: f64) -> Option<f64> {
    match &node.value {
        Value::Number(number) => number.as_f64(),
        Value::Text(text) => match text.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().ok().map(|percent| (percent * replicas / 100.0).ceil()),
            None => text.parse().ok(),
        },
        _ => None,
    }
}

/// What keeps its state on a volume, and whether it is there.
pub(super) fn volumes(judged: &Judged) -> [(&'static str, bool); 5] {
    let keeps = |group: &str| judged.is_on(group) && judged.is_on(&format!("{group}.persistence"));
    let on_file = judged.is_on("platform") && judged.is_empty("platform.postgres.secretKeyRef");
    [
        ("reporter.persistence", keeps("reporter") && judged.text("nats.mode") == "none"),
        ("resourceReporter.persistence", keeps("resourceReporter")),
        ("changeRevision.persistence", keeps("changeRevision") && replicas(judged, "changeRevision") <= 1.0),
        ("platform.persistence", on_file),
        ("platform.backup.persistence", on_file && judged.is_on("platform.backup")),
    ]
}

fn claims(judged: &mut Judged) {
    let mut named: Vec<(String, String)> = Vec::new();
    for (group, _) in volumes(judged).into_iter().filter(|(_, is_used)| *is_used) {
        let path = format!("{group}.existingClaim");
        let claim = judged.text(&path).to_owned();
        if claim.is_empty() {
            continue;
        }
        match named.iter().find(|(_, other)| *other == claim) {
            Some((first, _)) => {
                let wanted = format!("another claim than {first}");
                judged.error(
                    "GR0082",
                    &path,
                    &wanted,
                    "give each a claim of its own: their files are called alike",
                );
            }
            None => named.push((path, claim)),
        }
    }
}

fn without_effect(judged: &mut Judged) {
    let mode = judged.text("nats.mode").to_owned();
    for path in
        OF_BUS.into_iter().filter(|path| mode == "none" || (mode == "embedded" && *path == "nats.url"))
    {
        if !judged.is_empty(path) {
            let wanted = format!("nothing where nats.mode is {mode}");
            judged.warning("GR0083", path, &wanted, "set nats.mode to existing, or take it away");
        }
    }
    for group in WITH_ACCOUNT.map(|group| format!("{group}.serviceAccount")) {
        let annotations = format!("{group}.annotations");
        if !judged.truth(&format!("{group}.create")) && !judged.is_empty(&annotations) {
            let wanted = format!("nothing where {group}.create is false");
            judged.warning("GR0083", &annotations, &wanted, "annotate the account that is there");
        }
    }
    let todo = format!("take it away: {GIVES_GIT_TOKEN}");
    for key in ["value", "secretKeyRef"] {
        let path = format!("{GIT_CREDENTIALS}.password.{key}");
        if !judged.is_empty(&path) {
            judged.warning("GR0083", &path, "nothing: no part of this runtime uses it", &todo);
        }
    }
    let hosted = "global.runtime.codefreshHosted";
    if judged.truth(hosted) {
        judged.warning("GR0083", hosted, "nothing: no part of this runtime heeds it", "take it away");
    }
}

/// An account that is not made and has no name is the one of every pod that names none; one that two make is made once.
fn account(judged: &mut Judged) {
    // The platform's is given no rights.
    for of in WITH_ACCOUNT.into_iter().filter(|of| *of != "platform") {
        let (create, name) = (format!("{of}.serviceAccount.create"), format!("{of}.serviceAccount.name"));
        let is_default = judged.is_empty(&name) || judged.text(&name) == "default";
        if judged.is_on(of) && !judged.truth(&create) && is_default {
            let wanted = "an account of its own: the account default is that of every pod which names none";
            judged.warning("GR0086", &name, wanted, &format!("name one, or set {create} to true"));
        }
    }
    let mut made: Vec<(&str, String)> = Vec::new();
    for of in WITH_ACCOUNT {
        let (create, path) = (format!("{of}.serviceAccount.create"), format!("{of}.serviceAccount.name"));
        let name = judged.text(&path).to_owned();
        if name.is_empty() || !judged.is_on(of) || !judged.truth(&create) {
            continue;
        }
        match made.iter().find(|(_, other)| *other == name) {
            Some((first, _)) => {
                let wanted = format!("another account than the one that {first} makes");
                judged.error("GR0086", &path, &wanted, &format!("name another, or set {create} to false"));
            }
            None => made.push((of, name)),
        }
    }
}

fn to_fill_in(judged: &mut Judged) {
    let Ok(pattern) = Regex::new(TO_FILL_IN) else { return };
    let is_open = |node: &Node| node.text().is_some_and(|text| pattern.is_match(&text.trim().to_lowercase()));
    // What is passed on as it is may well hold such a text, and stands in a mapping.
    let open: Vec<&str> = Chart::get()
        .values
        .iter()
        .map(|value| value.path.as_str())
        .filter(|path| {
            judged.given.at(path).is_some_and(|node| is_open(node) || node.items().iter().any(is_open))
        })
        .collect();
    for path in open {
        let todo = "give the values as the programs before Helm leave them: Helm itself fills nothing in";
        judged.warning("GR0084", path, "what is to be put in there", todo);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_filled_in_is_known_and_what_only_looks_like_it_is_not() {
        let pattern = Regex::new(TO_FILL_IN).unwrap();
        for text in [
            "${TOKEN}",
            "https://$(HOST)",
            "{{ .Values.a }}",
            "<your token>",
            "CHANGE-ME",
            "changeme",
            "your-account",
            "xxxx",
        ] {
            assert!(pattern.is_match(&text.to_lowercase()), "{text}");
        }
        for text in ["a$b", "<<", "https://a.example.com/?a=<b>", "todos", "yours", "exchange-me", "xx", ""] {
            assert!(!pattern.is_match(text), "{text}");
        }
    }

    #[test]
    fn a_budget_speaks_of_as_many_pods_as_kubernetes_counts() {
        let of = |value: Value| share(&Node { value, line: 0, file: None }, 3.0);
        assert_eq!(of(Value::Text("50%".to_owned())), Some(2.0));
        assert_eq!(of(Value::Text("0%".to_owned())), Some(0.0));
        assert_eq!(of(Value::Text("2".to_owned())), Some(2.0));
        assert_eq!(of(Value::Number(1.into())), Some(1.0));
        assert_eq!(of(Value::Text("half".to_owned())), None);
    }
}
