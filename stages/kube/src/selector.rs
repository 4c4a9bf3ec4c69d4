//! Which objects of a kind the API server gives: its own label and field selectors, as `kubectl` takes them.

use std::collections::HashMap;

/// What is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Of labels.
    #[error("'{0}' is not a label selector such as team=a, team!=b, team in (a,b), team or !team")]
    Labels(String),
    /// Of fields.
    #[error("'{0}' is not a field selector such as metadata.name=web or status.phase!=Succeeded")]
    Fields(String),
}

/// Objects with these labels and fields; all of them where nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

impl Selector {
    /// A selector of labels and of fields, each empty for none.
    ///
    /// # Errors
    /// [`SelectorError`] names the part that is none.
    pub fn new(labels: &str, fields: &str) -> Result<Self, SelectorError> {
        let (labels, fields) = (labels.trim(), fields.trim());
        if let Some(part) = requirements(labels).into_iter().find(|part| !is_of_labels(part)) {
            return Err(SelectorError::Labels(part.to_owned()));
        }
        if let Some(part) = requirements(fields).into_iter().find(|part| !is_of_fields(part)) {
            return Err(SelectorError::Fields(part.to_owned()));
        }
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Ok(Self { labels: given(labels), fields: given(fields) })
    }

    /// Whether it selects nothing: every object is given.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }

    /// Whether it selects an object with these labels; of fields the API server alone judges.
    #[must_use]
    pub fn selects(&self, labels: &HashMap<String, String>) -> bool {
        requirements(self.labels.as_deref().unwrap_or_default()).into_iter().all(|part| is_met(part, labels))
    }

    /// The fields, and one object by its name.
    pub(crate) fn fields_of(&self, name: &str) -> String {
        let name = format!("metadata.name={name}");
        self.fields.as_ref().map_or_else(|| name.clone(), |fields| format!("{name},{fields}"))
    }
}

/// The parts of a selector: its commas, but for those of lists. None of an empty one.
fn requirements(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    if text.is_empty() {
        return parts;
    }
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts.into_iter().map(str::trim).collect()
}

fn is_of_labels(part: &str) -> bool {
    if let Some(key) = part.strip_prefix('!') {
        return is_key(key.trim());
    }
    for operator in ["!=", "==", "="] {
        if let Some((key, value)) = part.split_once(operator) {
            return is_key(key.trim()) && is_value(value.trim());
        }
    }
    if let Some((head, rest)) = part.split_once('(') {
        let mut words = head.split_whitespace();
        let (key, word, more) = (words.next(), words.next(), words.next());
        let Some(values) = rest.strip_suffix(')') else { return false };
        return key.is_some_and(is_key)
            && matches!(word, Some("in" | "notin"))
            && more.is_none()
            && values.split(',').all(|value| is_value(value.trim()));
    }
    is_key(part)
}

/// Whether labels are as one part of a selector has them: as with the API server, a label that is not there differs from
/// every value.
fn is_met(part: &str, labels: &HashMap<String, String>) -> bool {
    let label = |key: &str| labels.get(key.trim()).map(String::as_str);
    if let Some(key) = part.strip_prefix('!') {
        return label(key).is_none();
    }
    for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some((key, value)) = part.split_once(operator) {
            return (label(key) == Some(value.trim())) == equal;
        }
    }
    if let Some((head, rest)) = part.split_once('(') {
        let mut words = head.split_whitespace();
        let found = words.next().and_then(label);
        let values = rest.strip_suffix(')').unwrap_or(rest);
        let is_in = found.is_some_and(|found| values.split(',').any(|value| value.trim() == found));
        return is_in == (words.next() == Some("in"));
    }
    label(part).is_some()
}

fn is_of_fields(part: &str) -> bool {
    let found = ["!=", "==", "="].into_iter().find_map(|operator| part.split_once(operator));
    found.is_some_and(|(field, value)| {
        let field = field.trim();
        !field.is_empty()
            && field.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
            && !value.contains(['=', ','])
    })
}

/// A label's name, with or without a prefix.
fn is_key(text: &str) -> bool {
    let (prefix, name) = text.rsplit_once('/').unwrap_or(("", text));
    let is_prefix = prefix.len() <= 253
        && prefix.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c));
    is_prefix && !name.is_empty() && is_value(name) && !text.starts_with('/')
}

/// A label's value, which may be empty.
fn is_value(text: &str) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        && ends(text.chars().next())
        && ends(text.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_selected_as_the_api_server_selects_them() {
        let labels = [("team", "a"), ("app.kubernetes.io/part-of", "shop"), ("empty", "")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for (selector, selected) in [
            ("", true),
            ("team", true),
            ("!team", false),
            ("tier", false),
            ("!tier", true),
            ("! tier", true),
            ("team=a", true),
            ("team == a", true),
            ("team=b", false),
            ("team!=b", true),
            ("team != a", false),
            ("tier!=a", true),
            ("tier=", false),
            ("empty=", true),
            ("team in (b, a)", true),
            ("team in (b)", false),
            ("tier in (a)", false),
            ("team notin (b,c)", true),
            ("team notin ( a )", false),
            ("tier notin (a)", true),
            ("team=a,app.kubernetes.io/part-of=shop", true),
            ("team=a,app.kubernetes.io/part-of in (x)", false),
        ] {
            assert_eq!(Selector::new(selector, "").unwrap().selects(&labels), selected, "{selector}");
        }
    }

    #[test]
    fn selectors_are_those_of_kubectl_and_what_is_none_is_named() {
        for labels in [
            "",
            "team",
            "!team",
            "team=a",
            "team==a,app.kubernetes.io/part-of!=x",
            "team in (a, b),tier notin (c)",
            "team=",
        ] {
            assert!(Selector::new(labels, "").is_ok(), "{labels}");
        }
        for (labels, named) in [
            ("team=a,=b", "=b"),
            ("team in a", "team in a"),
            ("team in (a", "team in (a"),
            ("team within (a)", "team within (a)"),
            ("team=a b", "team=a b"),
            ("-team", "-team"),
            ("team,", ""),
        ] {
            let message = format!(
                "'{named}' is not a label selector such as team=a, team!=b, team in (a,b), team or !team"
            );
            assert_eq!(Selector::new(labels, "").unwrap_err().to_string(), message, "{labels}");
        }
        assert!(Selector::new("", "metadata.name=web,status.phase!=Succeeded").is_ok());
        assert_eq!(
            Selector::new("", "metadata.name").unwrap_err().to_string(),
            "'metadata.name' is not a field selector such as metadata.name=web or status.phase!=Succeeded"
        );
    }

    #[test]
    fn one_object_is_selected_by_its_name_beside_the_fields() {
        assert_eq!(Selector::default().fields_of("web"), "metadata.name=web");
        let phase = Selector::new("a=b", "status.phase=Failed").unwrap();
        assert_eq!(phase.fields_of("web"), "metadata.name=web,status.phase=Failed");
        assert!(Selector::default().is_all() && !phase.is_all());
    }
}
