//! What the schema of the chart says: unknown keys, types, choices.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value as Json;

use super::{Finding, Judged, Node, Severity, Value, nearest, shown};
use crate::chart::{Chart, FOREIGN, FOREIGN_BELOW};
use crate::finding::MASKED;

/// So many keys of a mapping are named.
const FEW: usize = 4;

/// Checks what a file gives.
pub(super) fn check(judged: &mut Judged, root: &Node) {
    walk(judged, "", root, Chart::get().schema());
}

/// Tells of values that the chart needs and that a null took away: once of a group, as of one all of whose keys are comments.
pub(super) fn missing(judged: &mut Judged) {
    let mut told = BTreeSet::new();
    for value in &Chart::get().values {
        let Some(gone) = gone(judged, &value.path).filter(|gone| told.insert((*gone).to_owned())) else {
            continue;
        };
        let wanted = match gone == value.path {
            true => format!("a value, or no key: the chart's own is {}", value.default),
            false => "a mapping, or no key: the chart has values of its own below it".to_owned(),
        };
        judged.error("GR0006", gone, &wanted, "take the key away that sets it to null");
    }
    // The values of a new Argo CD are of another chart, and this one of them is asked for by ours.
    let switch = "argo-cd.enabled";
    if gone(judged, switch) == Some(switch) {
        let wanted = "true or false, or no key: the chart's own is false";
        judged.error("GR0006", switch, wanted, "take the key away that sets it to null");
    }
}

/// The first of the groups that a value is in, or the value itself, that is not there; `None` as well where one of these is no
/// group, which is told of it.
fn gone<'a>(judged: &Judged, path: &'a str) -> Option<&'a str> {
    let dots = path.match_indices('.').map(|(at, _)| at);
    let groups = dots.filter_map(|at| path.get(..at));
    for group in groups {
        match judged.at(group) {
            None => return Some(group),
            Some(node) if !matches!(node.value, Value::Map(_)) => return None,
            Some(_) => {}
        }
    }
    judged.at(path).is_none().then_some(path)
}

fn walk(judged: &mut Judged, path: &str, node: &Node, schema: &Json) {
    // A null takes a key away.
    if node.value == Value::Null {
        return;
    }
    if let Some(wanted) = types(schema).filter(|types| !types.iter().any(|name| is(node, name))) {
        let keys = schema["properties"].as_object().filter(|_| wanted.contains(&"object"));
        let keys: Vec<&str> = keys.into_iter().flat_map(|keys| keys.keys().map(String::as_str)).collect();
        let mut name = wanted.join(" or ");
        if !keys.is_empty() {
            name = format!(
                "{name} with keys such as {}",
                keys.iter().take(FEW).copied().collect::<Vec<_>>().join(", ")
            );
        }
        let mut finding = finding(node, "GR0004", path, &name, cure(node, &wanted));
        let article = if kind(node).starts_with(['a', 'i', 'o']) { "an" } else { "a" };
        finding.found = format!("{article} {}", kind(node));
        judged.findings.push(finding);
        return;
    }
    choices(judged, path, node, schema);
    match &node.value {
        Value::Map(entries) => {
            for (key, node) in entries {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match schema["properties"].get(key) {
                    _ if path.is_empty() && FOREIGN.contains(&key.as_str()) => foreign(judged, &below, node),
                    _ if FOREIGN_BELOW.contains(&below.as_str()) => foreign(judged, &below, node),
                    Some(schema) => walk(judged, &below, node, schema),
                    None if schema["additionalProperties"] == false => {
                        unknown(judged, &below, key, node, schema);
                    }
                    // Charts above share it, so that other keys are right as well.
                    None if path == "global" => {
                        let known = schema["properties"].as_object().into_iter().flat_map(|map| map.keys());
                        if nearest(key, known.map(String::as_str)).is_some() {
                            unknown(judged, &below, key, node, schema).severity = Severity::Warning;
                        }
                    }
                    None => {}
                }
            }
            for key in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
                if node.get(key).is_none() {
                    let wanted = format!("the key {key}");
                    judged.findings.push(finding(node, "GR0005", path, &wanted, "add it"));
                }
            }
        }
        Value::List(items) => {
            if let Some(schema) = schema.get("items") {
                for (number, item) in items.iter().enumerate() {
                    walk(judged, &format!("{path}[{number}]"), item, schema);
                }
            }
        }
        _ => {}
    }
}

/// What to do about a value of the wrong type.
fn cure(node: &Node, wanted: &[&str]) -> &'static str {
    let takes = |name: &str| wanted.contains(&name);
    match &node.value {
        Value::Number(_) | Value::Bool(_) if takes("string") => "write it in quotes",
        Value::Text(text) if takes("boolean") && ["true", "false"].contains(&text.trim()) => {
            "write it without quotes"
        }
        Value::Text(text) if takes("integer") && text.trim().parse::<i64>().is_ok() => {
            "write it without quotes"
        }
        Value::List(items) if takes("object") && items.iter().any(|item| item.get("name").is_some()) => {
            "write a mapping: each name, a colon, and what belongs to it"
        }
        Value::Text(_) if takes("array") => {
            "write a list, each on a line of its own after a dash, or in brackets"
        }
        Value::Text(_) | Value::Bool(_) | Value::Number(_) if takes("object") => {
            "write a mapping: a key, a colon and its value, on lines below that stand further in"
        }
        _ => "write it so, or take it away",
    }
}

fn choices(judged: &mut Judged, path: &str, node: &Node, schema: &Json) {
    let value = node.json();
    let wanted = if let Some(choices) = schema["enum"].as_array() {
        if choices.contains(&value) {
            return;
        }
        let names: Vec<String> = choices.iter().map(ToString::to_string).collect();
        let mut finding = finding(node, "GR0005", path, &names.join(" or "), "choose one of them");
        finding.meant = node.text().and_then(|text| nearest(text, choices.iter().filter_map(Json::as_str)));
        judged.findings.push(finding);
        return;
    } else if let (Some(text), Some(pattern)) = (node.text(), schema["pattern"].as_str())
        // The chart's hook is not given what may be a secret, such as an address with a password.
        && text != MASKED
        && Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
    {
        format!("a text like {pattern}")
    } else if node.text() == Some("") && schema["minLength"].as_u64().is_some_and(|least| least > 0) {
        "a text that is not empty".to_owned()
    } else if node.value == Value::List(Vec::new())
        && schema["minItems"].as_u64().is_some_and(|least| least > 0)
    {
        "a list that is not empty".to_owned()
    } else if let Some((number, least)) = value.as_f64().zip(schema["minimum"].as_f64())
        && number < least
    {
        format!("{least} or more")
    } else if let Some((number, most)) = value.as_f64().zip(schema["maximum"].as_f64())
        && number > most
    {
        format!("{most} or less")
    } else {
        return;
    };
    judged.findings.push(finding(node, "GR0005", path, &wanted, "write such a value"));
}

fn foreign(judged: &mut Judged, path: &str, node: &Node) {
    let wanted = "a key of this chart";
    let mut finding = finding(node, "GR0003", path, wanted, "run gitops-runtime values convert FILE");
    finding.found = "a key of the incumbent's chart".to_owned();
    judged.findings.push(finding);
}

fn unknown<'a>(judged: &'a mut Judged, path: &str, key: &str, node: &Node, schema: &Json) -> &'a mut Finding {
    let known =
        || schema["properties"].as_object().into_iter().flat_map(|map| map.keys().map(String::as_str));
    let few = known().filter(|name| !FOREIGN.contains(name)).collect::<Vec<_>>().join(", ");
    let in_group = || part_of(key, known());
    // At the top a key stands that belongs into a group; in a group, one that is called otherwise.
    let meant = nearest(key, known()).or_else(|| match path.contains('.') {
        true => in_group().or_else(|| elsewhere(key)),
        false => elsewhere(key).or_else(in_group),
    });
    // Whoever is told which one need not read them all.
    let wanted = match &meant {
        Some(_) => "a key that is known".to_owned(),
        None => format!("one of {few}"),
    };
    let mut finding = finding(node, "GR0002", path, &wanted, "correct the key, or take it away");
    finding.found = "an unknown key".to_owned();
    finding.meant = meant;
    judged.findings.push_mut(finding)
}

/// The longest of the known keys that a longer key holds, or that holds it, such as className of ingressClassName.
fn part_of<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let singular = |text: &str| text.to_lowercase().trim_end_matches('s').to_owned();
    let key = singular(key);
    let is_part = |name: &&str| {
        let name = singular(name);
        let (short, long) = if name.len() < key.len() { (&name, &key) } else { (&key, &name) };
        short.len() >= 4 && long.contains(short.as_str())
    };
    known.filter(is_part).max_by_key(|name| name.len()).map(ToOwned::to_owned)
}

/// The one path of the chart that ends so; of several, the one of them that is global.
fn elsewhere(key: &str) -> Option<String> {
    let mut paths = BTreeSet::new();
    for value in &Chart::get().values {
        let dots = value.path.match_indices('.').map(|(at, _)| at).chain([value.path.len()]);
        let groups = dots.filter_map(|at| value.path.get(..at));
        paths.extend(
            groups.filter(|path| path.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case(key))),
        );
    }
    let global = || paths.iter().filter(|path| path.starts_with("global."));
    let only = match (paths.len(), global().count()) {
        (1, _) => paths.first(),
        (_, 1) => global().next(),
        _ => None,
    };
    only.filter(|_| key.len() >= 4).map(|path| (*path).to_owned())
}

fn finding(node: &Node, code: &'static str, path: &str, wanted: &str, todo: &str) -> Finding {
    Finding {
        code,
        severity: Severity::Error,
        file: node.file.clone(),
        line: node.line,
        path: path.to_owned(),
        found: shown(path, Some(node)),
        wanted: wanted.to_owned(),
        meant: None,
        todo: todo.to_owned(),
    }
}

fn types(schema: &Json) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Json::String(name) => Some(vec![name]),
        Json::Array(names) => Some(names.iter().filter_map(Json::as_str).collect()),
        _ => None,
    }
}

fn is(node: &Node, name: &str) -> bool {
    kind(node) == name || (name == "number" && kind(node) == "integer")
}

fn kind(node: &Node) -> &'static str {
    match &node.value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Text(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
    }
}
