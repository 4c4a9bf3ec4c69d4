//! JSON pointers (RFC 6901), in which `*` stands for every element of a list or member of an object.

use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A pointer, split at its slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pointer(Vec<String>);

impl<'de> Deserialize<'de> for Pointer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a pointer begins with /"))
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| write!(f, "/{}", part.replace('~', "~0").replace('/', "~1")))
    }
}

/// The members of any object that are of least use to readers of reports.
static FIRST_TO_GO: LazyLock<[Pointer; 2]> = LazyLock::new(|| {
    [
        Pointer::of(&["metadata", "managedFields"]),
        Pointer::of(&["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"]),
    ]
});

impl Pointer {
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('/')?;
        Some(Self(rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect()))
    }

    /// A pointer of these parts.
    pub(crate) fn of(parts: &[&str]) -> Self {
        Self(parts.iter().map(|part| (*part).to_owned()).collect())
    }

    /// The members that are cut first from an object that is too large.
    pub(crate) fn first_to_go() -> &'static [Self] {
        &*FIRST_TO_GO
    }

    /// The parts behind the first one, if that is `first`.
    pub(crate) fn below(&self, first: &str) -> Option<&[String]> {
        let (head, rest) = self.0.split_first()?;
        (head == first).then_some(rest)
    }

    /// All parts.
    pub(crate) fn parts(&self) -> &[String] {
        &self.0
    }
}

/// Gives every value that the parts name to `take`, in the order of the object.
pub(crate) fn each<'v>(parts: &[String], value: &'v Value, take: &mut impl FnMut(&'v Value)) {
    let Some((first, rest)) = parts.split_first() else { return take(value) };
    match value {
        Value::Object(members) if first == "*" => members.values().for_each(|value| each(rest, value, take)),
        Value::Array(items) if first == "*" => items.iter().for_each(|value| each(rest, value, take)),
        Value::Object(members) => {
            if let Some(value) = members.get(first) {
                each(rest, value, take);
            }
        }
        _ => {}
    }
}

/// Removes every member that the parts name.
pub(crate) fn remove(parts: &[String], value: &mut Value) {
    let Some((first, rest)) = parts.split_first() else { return };
    match value {
        Value::Object(members) if first == "*" => members.values_mut().for_each(|value| remove(rest, value)),
        Value::Array(items) if first == "*" => items.iter_mut().for_each(|value| remove(rest, value)),
        Value::Object(members) if rest.is_empty() => drop(members.remove(first)),
        Value::Object(members) => {
            if let Some(value) = members.get_mut(first) {
                remove(rest, value);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointer(text: &str) -> Pointer {
        serde_json::from_value(json!(text)).unwrap()
    }

    #[test]
    fn a_star_is_every_element_and_every_member() {
        let object = json!({"a": [{"b": 1, "c": 2}, {"b": 3}], "d": {"x": {"b": 4}, "y": 5}, "e/f": 6});
        for (text, expected) in [
            ("/a/*/b", json!([1, 3])),
            ("/d/*/b", json!([4])),
            ("/e~1f", json!([6])),
            ("/a/b", json!([])),
            ("/none", json!([])),
        ] {
            let mut found = Vec::new();
            each(pointer(text).parts(), &object, &mut |value| found.push(value.clone()));
            assert_eq!(json!(found), expected, "{text}");
        }
        let mut left = object;
        for text in ["/a/*/b", "/d/*/b", "/e~1f", "/none/x"] {
            remove(pointer(text).parts(), &mut left);
        }
        assert_eq!(left, json!({"a": [{"c": 2}, {}], "d": {"x": {}, "y": 5}}));
    }

    #[test]
    fn what_begins_with_no_slash_is_no_pointer() {
        let error = serde_json::from_value::<Pointer>(json!("a/b")).unwrap_err();
        assert_eq!(error.to_string(), "a pointer begins with /");
    }
}
