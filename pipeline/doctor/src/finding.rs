//! One thing that is wrong, and one that nobody could look at.

use std::sync::Arc;

use serde::Serialize;

use crate::tree::{Node, Value};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know, and nothing is wrong.
    Note,
    /// It works, and is not what most people want.
    Warning,
    /// It does not work.
    Error,
}

/// What stands in the place of a secret, in findings and in values that are handed on.
pub const MASKED: &str = "a value (masked)";

impl Severity {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that is wrong with the values. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of thing it is; never used for another.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The file; `None` where nothing was given and the chart's own value is meant.
    pub file: Option<Arc<str>>,
    /// The line in it, from 1; 0 where there is none.
    pub line: u64,
    /// The path of the value, with dots.
    pub path: String,
    /// What stands there.
    pub found: String,
    /// What should.
    pub wanted: String,
    /// What was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meant: Option<String>,
    /// What to do about it.
    pub todo: String,
}

/// Something that was not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmeasured {
    /// The code that its finding would have.
    pub code: &'static str,
    /// Where one would have to look: cluster or network.
    pub tier: &'static str,
    /// What would have been looked at.
    pub what: &'static str,
    /// Why it was not.
    pub why: String,
}

/// The most keys of a mapping that are named.
const KEYS: usize = 4;

/// What may be shown of a value: nothing of one that is or may hold a secret.
pub(crate) fn shown(path: &str, node: Option<&Node>) -> String {
    let Some(node) = node else { return "nothing".to_owned() };
    let text = match &node.value {
        Value::Null => return "nothing".to_owned(),
        Value::List(items) if items.is_empty() => return "an empty list".to_owned(),
        Value::List(items) => return format!("a list of {}", items.len()),
        Value::Map(entries) => return keys(entries),
        Value::Text(text) if text.is_empty() => return "\"\"".to_owned(),
        Value::Text(text) => text.clone(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
    };
    let last = path.rsplit('.').next().unwrap_or(path).to_lowercase();
    let secret =
        ["token", "password", "secret", "value", "content", "headers", "credentials", "certificates"];
    // An address may hold a user and a password; a tag of an image holds a digest.
    let has_user = text.contains('@') && last != "tag";
    if secret.iter().any(|word| last.contains(word)) || path.contains("certificates") || has_user {
        return MASKED.to_owned();
    }
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(80).collect();
    format!("\"{clean}\"")
}

/// The keys of a mapping that are given: those of the chart's own values stand there empty.
fn keys(entries: &[(String, Node)]) -> String {
    let given: Vec<&str> =
        entries.iter().filter(|(_, node)| is_given(node)).map(|(key, _)| key.as_str()).collect();
    let (named, others) = given.split_at(given.len().min(KEYS));
    let named: Vec<String> =
        named.iter().map(|key| key.chars().filter(|c| !c.is_control()).take(40).collect()).collect();
    match (named.is_empty(), others.len()) {
        (true, _) => "nothing".to_owned(),
        (false, 0) => format!("the keys {}", named.join(", ")),
        (false, others) => format!("the keys {} and {others} more", named.join(", ")),
    }
}

fn is_given(node: &Node) -> bool {
    match &node.value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) | Value::Number(_) => true,
        Value::Text(text) => !text.is_empty(),
        Value::List(items) => !items.is_empty(),
        Value::Map(entries) => entries.iter().any(|(_, node)| is_given(node)),
    }
}

/// The candidate that is nearest to a name, where one is near.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let lower = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}
