//! Which objects of a kind the API server gives: its own label and field selectors, as `kubectl` takes them.

use std::collections::HashMap;

use kube::core::Expression;

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
    /// What the labels must be, one by one.
    required: Vec<Expression>,
}

impl Selector {
    /// A selector of labels and of fields, each empty for none.
    ///
    /// # Errors
    /// [`SelectorError`] names the part that is none.
    pub fn new(labels: &str, fields: &str) -> Result<Self, SelectorError> {
        let (labels, fields) = (labels.trim(), fields.trim());
        let read = |part| requirement(part).ok_or_else(|| SelectorError::Labels(part.to_owned()));
        let required = requirements(labels).into_iter().map(read).collect::<Result<_, _>>()?;
        if let Some(part) = requirements(fields).into_iter().find(|part| !is_of_fields(part)) {
            return Err(SelectorError::Fields(part.to_owned()));
        }
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Ok(Self { labels: given(labels), fields: given(fields), required })
    }

    /// Whether it selects nothing: every object is given.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }

    /// Whether it selects an object with these labels; of fields the API server alone judges.
    #[must_use]
    pub fn selects(&self, labels: &HashMap<String, String>) -> bool {
        self.required.iter().all(|required| is_met(required, labels))
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

/// One part of a selector of labels; `None`: it is none.
fn requirement(part: &str) -> Option<Expression> {
    let key = |text: &str| Some(text.trim()).filter(|text| is_key(text)).map(str::to_owned);
    let value = |text: &str| Some(text.trim()).filter(|text| is_value(text)).map(str::to_owned);
    if let Some(name) = part.strip_prefix('!') {
        return Some(Expression::DoesNotExist(key(name)?));
    }
    if let Some((name, other)) = part.split_once("!=") {
        return Some(Expression::NotEqual(key(name)?, value(other)?));
    }
    if let Some((name, same)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Expression::Equal(key(name)?, value(same)?));
    }
    let Some((head, rest)) = part.split_once('(') else { return Some(Expression::Exists(key(part)?)) };
    let values = rest.strip_suffix(')')?.split(',').map(value).collect::<Option<_>>()?;
    match head.split_whitespace().collect::<Vec<_>>()[..] {
        [name, "in"] => Some(Expression::In(key(name)?, values)),
        [name, "notin"] => Some(Expression::NotIn(key(name)?, values)),
        _ => None,
    }
}

/// Whether labels are as one part of a selector has them: as with the API server, a label that is not there differs from
/// every value.
fn is_met(required: &Expression, labels: &HashMap<String, String>) -> bool {
    match required {
        Expression::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
        Expression::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
        Expression::Exists(key) => labels.contains_key(key),
        Expression::DoesNotExist(key) => !labels.contains_key(key),
        Expression::Equal(key, value) => labels.get(key) == Some(value),
        Expression::NotEqual(key, value) => labels.get(key) != Some(value),
    }
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
