//! What the API server refuses of parts of pods and policies by their types: keys that it does not know, values of another type, and
//! what it cannot do without. It is told by the types that Kubernetes itself publishes.

use k8s_openapi::api::core::v1::{
    Affinity, EnvVarSource, Toleration, TopologySpreadConstraint, Volume, VolumeMount,
};
use k8s_openapi::api::networking::v1::{IngressTLS, NetworkPolicyEgressRule, NetworkPolicyPeer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::kubernetes::{CURE, is_qualified, matches};
use super::{Chart, Judged, Severity};

/// Kinds of volumes, and what each cannot be without.
const VOLUMES: [(&str, &str); 8] = [
    ("configMap", "name"),
    ("csi", "driver"),
    ("ephemeral", "volumeClaimTemplate"),
    ("hostPath", "path"),
    ("nfs", "path"),
    ("nfs", "server"),
    ("persistentVolumeClaim", "claimName"),
    ("secret", "secretName"),
];
/// Operators of selectors, and whether each compares with values.
const OPERATORS: [(&str, bool); 4] =
    [("In", true), ("NotIn", true), ("Exists", false), ("DoesNotExist", false)];
/// Those of nodes alone.
const OF_NODES: [(&str, bool); 2] = [("Gt", true), ("Lt", true)];

/// What is wrong, where in the value, and what is wanted.
type Wrong = Option<(String, String)>;

pub(super) fn check(judged: &mut Judged) {
    for value in &Chart::get().values {
        let path = value.path.as_str();
        match path.split_once('.') {
            // Every kind of pod has one, and so has what all of them share.
            Some((group, "nodeSelector")) => {
                let of = |key: &str| format!("{group}.{key}");
                one::<Affinity>(judged, &of("affinity"));
                each::<Toleration>(judged, &of("tolerations"));
                each::<TopologySpreadConstraint>(judged, &of("topologySpreadConstraints"));
                each::<Volume>(judged, &of("extraVolumes"));
                each::<VolumeMount>(judged, &of("extraVolumeMounts"));
                variables(judged, &of("extraEnv"));
            }
            Some(("networkPolicy", "extraEgress")) => each::<NetworkPolicyEgressRule>(judged, path),
            Some(("networkPolicy", key)) if key.ends_with("From") || key.ends_with("To") => {
                each::<NetworkPolicyPeer>(judged, path);
            }
            _ => {}
        }
    }
    each::<IngressTLS>(judged, "global.runtime.ingress.tls");
}

fn one<T: DeserializeOwned + Serialize>(judged: &mut Judged, path: &str) {
    let given = judged.at(path).map(crate::tree::Node::json).filter(Json::is_object);
    if let Some((found, wanted)) = given.and_then(|given| wrong::<T>(&given)) {
        tell(judged, path, found, &wanted);
    }
}

fn each<T: DeserializeOwned + Serialize>(judged: &mut Judged, path: &str) {
    let items = judged.at(path).map(|node| node.items().to_vec()).unwrap_or_default();
    let wrong = items.iter().enumerate().find_map(|(at, item)| {
        let (found, wanted) = wrong::<T>(&item.json())?;
        Some((format!("item {at} with {found}"), wanted))
    });
    if let Some((found, wanted)) = wrong {
        tell(judged, path, found, &wanted);
    }
}

fn variables(judged: &mut Judged, path: &str) {
    let entries = judged.at(path).map(|node| node.entries().to_vec()).unwrap_or_default();
    let wrong = entries.iter().find_map(|(name, node)| {
        let (found, wanted) = wrong::<EnvVarSource>(&node.get("valueFrom")?.json())?;
        let name: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
        Some((format!("the variable {name} with {found}"), wanted))
    });
    if let Some((found, wanted)) = wrong {
        tell(judged, path, found, &wanted);
    }
}

/// Tells what the rules before did not tell of the same value.
fn tell(judged: &mut Judged, path: &str, found: String, wanted: &str) {
    let is_told =
        |told: &str| told.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('['));
    if !judged.findings.iter().any(|finding| is_told(&finding.path)) {
        judged.told(Severity::Error, "GR0007", path, found, wanted, CURE);
    }
}

fn wrong<T: DeserializeOwned + Serialize>(given: &Json) -> Wrong {
    let given = plain(given);
    match serde_json::from_value::<T>(given.clone()) {
        Err(error) => {
            let text = error.to_string();
            // What was found may be anything; what was expected is a type.
            let expected = text.rsplit_once("expected ").map_or("another type", |(_, expected)| expected);
            Some(("a value of the wrong type".to_owned(), named(expected)))
        }
        Ok(known) => {
            let known = serde_json::to_value(known).ok()?;
            lacking(&given).or_else(|| unknown(&given, &known)).or_else(|| selector(&given, false))
        }
    }
}

/// A type as people call it.
fn named(expected: &str) -> String {
    match expected.trim() {
        "i32" | "i64" | "u32" | "u64" => "a whole number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" => "a text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a mapping".to_owned(),
        other if other.starts_with(|c: char| c.is_ascii_uppercase()) => format!("a mapping as {other}"),
        other => other.to_owned(),
    }
}

/// Without what is null, and with amounts as the texts that the types have them as.
fn plain(given: &Json) -> Json {
    match given {
        Json::Object(entries) => entries
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| match value {
                Json::Number(number) if ["sizeLimit", "storage", "divisor"].contains(&key.as_str()) => {
                    (key.clone(), number.to_string().into())
                }
                value => (key.clone(), plain(value)),
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Json::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

/// A key that the types do not have.
fn unknown(given: &Json, known: &Json) -> Wrong {
    match (given, known) {
        (Json::Object(given), Json::Object(known)) => {
            given.iter().find_map(|(key, value)| match known.get(key) {
                Some(known) => unknown(value, known),
                None => {
                    let key: String = key.chars().filter(|c| !c.is_control()).take(80).collect();
                    Some((format!("the unknown key {key}"), "a key that Kubernetes knows there".to_owned()))
                }
            })
        }
        (Json::Array(given), Json::Array(known)) => {
            given.iter().zip(known).find_map(|(given, known)| unknown(given, known))
        }
        _ => None,
    }
}

/// What a volume lacks.
fn lacking(given: &Json) -> Wrong {
    let lacks = |(kind, key): &&(&str, &str)| {
        let volume = given.get(kind).filter(|volume| volume.is_object());
        volume.is_some_and(|volume| match &volume[*key] {
            Json::Null => true,
            Json::String(text) => text.is_empty(),
            _ => false,
        })
    };
    let (kind, key) = VOLUMES.iter().find(lacks)?;
    Some((format!("a {kind} without {key}"), format!("{kind}.{key}")))
}

/// What is wrong with a selector, wherever it stands.
fn selector(given: &Json, is_of_nodes: bool) -> Wrong {
    match given {
        Json::Object(entries) => entries.iter().find_map(|(key, value)| match key.as_str() {
            "matchExpressions" => value.as_array()?.iter().find_map(|one| expression(one, is_of_nodes)),
            "nodeSelectorTerms" | "preference" => selector(value, true),
            "matchLabels" => {
                let is_right = |(key, value): &(&String, &Json)| {
                    is_qualified(key)
                        && value.as_str().is_some_and(|text| {
                            text.is_empty() || matches("[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", text)
                        })
                };
                let is_wrong = value.as_object()?.iter().any(|entry| !is_right(&entry));
                is_wrong.then(|| {
                    (
                        "a label that is none".to_owned(),
                        "labels of at most 63 letters, digits, -, _ and .".to_owned(),
                    )
                })
            }
            _ => selector(value, is_of_nodes),
        }),
        Json::Array(items) => items.iter().find_map(|item| selector(item, is_of_nodes)),
        _ => None,
    }
}

fn expression(given: &Json, is_of_nodes: bool) -> Wrong {
    let text = |key: &str| given[key].as_str().unwrap_or_default();
    let values = given["values"].as_array().map_or(0, Vec::len);
    let all = OPERATORS.iter().chain(OF_NODES.iter().filter(|_| is_of_nodes));
    let operator = all.into_iter().find(|(name, _)| *name == text("operator"));
    let is_right =
        is_qualified(text("key")) && operator.is_some_and(|(_, compares)| *compares == (values > 0));
    (!is_right).then(|| {
        let wanted = "a key, an operator, and values with In and NotIn alone";
        ("a selector that selects nothing".to_owned(), wanted.to_owned())
    })
}
