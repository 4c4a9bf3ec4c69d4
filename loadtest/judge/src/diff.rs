//! Differences between two JSON values, each with its path.

use std::fmt::Write as _;

use serde_json::Value;

/// One place where two values differ; `None` is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Where.
    pub path: String,
    /// What stands there on our side.
    pub ours: Option<Value>,
    /// What stands there on the other.
    pub theirs: Option<Value>,
}

/// Every place where `ours` and `theirs` differ, below `path`.
pub fn diff(path: &str, ours: Option<&Value>, theirs: Option<&Value>, out: &mut Vec<Difference>) {
    match (ours, theirs) {
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => {
            for (name, value) in ours {
                diff(&member(path, name), Some(value), theirs.get(name), out);
            }
            for (name, value) in theirs.iter().filter(|(name, _)| !ours.contains_key(*name)) {
                diff(&member(path, name), None, Some(value), out);
            }
        }
        (Some(Value::Array(ours)), Some(Value::Array(theirs))) => {
            for index in 0..ours.len().max(theirs.len()) {
                diff(&format!("{path}[{index}]"), ours.get(index), theirs.get(index), out);
            }
        }
        (ours, theirs) if ours == theirs => {}
        (ours, theirs) => {
            out.push(Difference { path: path.to_owned(), ours: ours.cloned(), theirs: theirs.cloned() });
        }
    }
}

/// `path.name`, or `path["name"]` where the name holds more than letters, digits, `-` and `_`.
#[must_use]
pub fn member(path: &str, name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut out = path.to_owned();
    if !name.is_empty() && name.chars().all(plain) {
        if !out.is_empty() {
            out.push('.');
        }
        out.push_str(name);
    } else {
        // Writing to a `String` cannot fail.
        let _ = write!(out, "[{}]", Value::String(name.to_owned()));
    }
    out
}

/// Whether a concrete path is the one a rule names; `[*]` in the rule stands for any index.
#[must_use]
pub fn is_path(rule: &str, path: &str) -> bool {
    let mut rest = path;
    let mut parts = rule.split("[*]");
    let Some(mut rest_of_rule) = parts.next().and_then(|first| rest.strip_prefix(first)) else {
        return false;
    };
    for part in parts {
        rest = rest_of_rule;
        let Some(after) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) else {
            return false;
        };
        if after.0.is_empty() || !after.0.bytes().all(|byte| byte.is_ascii_digit()) {
            return false;
        }
        let Some(next) = after.1.strip_prefix(part) else { return false };
        rest_of_rule = next;
    }
    rest_of_rule.is_empty()
}

/// Puts `theirs` in the place of `ours` in `value`, whose root is named `root`.
pub fn patch(value: &mut Value, root: &str, difference: &Difference) {
    let Some(steps) = difference.path.strip_prefix(root).map(steps) else { return };
    let Some((last, walk)) = steps.split_last() else {
        *value = difference.theirs.clone().unwrap_or_default();
        return;
    };
    let mut at = value;
    for step in walk {
        let next = match (at, step) {
            (Value::Object(object), Step::Name(name)) => object.get_mut(name),
            (Value::Array(list), Step::Index(index)) => list.get_mut(*index),
            _ => None,
        };
        let Some(next) = next else { return };
        at = next;
    }
    match (at, last, &difference.theirs) {
        (Value::Object(object), Step::Name(name), Some(theirs)) => {
            object.insert(name.clone(), theirs.clone());
        }
        (Value::Object(object), Step::Name(name), None) => {
            object.remove(name);
        }
        (Value::Array(list), Step::Index(index), Some(theirs)) => {
            if let Some(item) = list.get_mut(*index) {
                *item = theirs.clone();
            }
        }
        (Value::Array(list), Step::Index(index), None) if *index < list.len() => {
            list.remove(*index);
        }
        _ => {}
    }
}

/// The value at a path below `value`, as [`diff`] names paths.
#[must_use]
pub fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    steps(path).iter().try_fold(value, |at, step| match step {
        Step::Name(name) => at.get(name),
        Step::Index(index) => at.get(index),
    })
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
}

fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let Some((name, after)) = quoted.split_once("\"]") else { break };
            let name = serde_json::from_str(&format!("\"{name}\"")).unwrap_or_else(|_| name.to_owned());
            steps.push(Step::Name(name));
            rest = after;
        } else if let Some(index) = rest.strip_prefix('[') {
            let Some((index, after)) = index.split_once(']') else { break };
            steps.push(Step::Index(index.parse().unwrap_or(usize::MAX)));
            rest = after;
        } else {
            let name = rest.trim_start_matches('.');
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            steps.push(Step::Name(name.to_owned()));
            rest = after;
        }
    }
    steps
}

/// A value shortened for a line of output; no whole manifest is ever printed.
#[must_use]
pub fn short(value: Option<&Value>) -> String {
    const SHOWN: usize = 60;
    let Some(value) = value else { return "(absent)".to_owned() };
    let text = value.to_string();
    let mut chars = text.chars();
    let shown: String = chars.by_ref().take(SHOWN).collect();
    if chars.next().is_some() { format!("{shown}... ({} bytes)", text.len()) } else { shown }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_every_place_and_patches_it() {
        let theirs = json!({"a": [1, {"b.c": "x"}], "d": {"e": 1}});
        let ours = json!({"a": [1, {"b.c": "y"}], "d": {}, "f": null});
        let mut found = Vec::new();
        diff("object", Some(&ours), Some(&theirs), &mut found);
        let paths: Vec<_> = found.iter().map(|difference| difference.path.as_str()).collect();
        assert_eq!(paths, ["object.a[1][\"b.c\"]", "object.d.e", "object.f"]);
        let mut patched = ours;
        found.iter().for_each(|difference| patch(&mut patched, "object", difference));
        assert_eq!(patched, theirs);
    }

    #[test]
    fn a_rule_names_one_path() {
        let rule = "object.status.conditions[*].lastTransitionTime";
        assert!(is_path(rule, "object.status.conditions[12].lastTransitionTime"));
        for other in [
            "object.status.conditions[12].message",
            "object.status.conditions[].lastTransitionTime",
            "object.status.conditions[a].lastTransitionTime",
            "object.status.conditions[1].lastTransitionTime.x",
            "object.status.conditions",
        ] {
            assert!(!is_path(rule, other), "{other}");
        }
        assert!(is_path("object", "object"));
        assert!(!is_path("object", "object.a"));
    }
}
