//! Reads JSON and YAML into one tree, strictly: what two readers could read differently is not read.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The text is not one that every reader reads the same way: malformed, a name twice in one object, nested
/// too deeply, or larger when expanded than is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

/// Reads one JSON document. At most 128 levels.
pub(super) fn json(text: &str) -> Result<Value, Unreadable> {
    serde_json::from_str::<Tree>(text).map(|Tree(value)| value).map_err(|_| Unreadable)
}

/// Reads all documents of a YAML text, aliases and merge keys expanded. At most 64 levels and 250,000 nodes.
pub(super) fn yaml(text: &str) -> Result<Vec<Value>, Unreadable> {
    serde_saphyr::from_multiple_with_options::<Tree>(text, options())
        .map(|trees| trees.into_iter().map(|Tree(value)| value).collect())
        .map_err(|_| Unreadable)
}

/// How YAML is read.
pub(super) fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_total_scalar_bytes: 64 * 1024 * 1024 },
        // Kubernetes reads YAML 1.1, where 0644 is octal; a text that is written again must mean the same.
        legacy_octal_numbers: true,
        ignore_binary_tag_for_string: true,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    }
}

/// A number with a fraction; as text where JSON has none such.
pub(super) fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number)
}

/// Writes documents as YAML; as JSON, which is YAML too, where the YAML would not read back as the same.
pub(super) fn write_yaml(documents: &[Value]) -> String {
    let written: Option<Vec<String>> =
        documents.iter().map(|document| serde_saphyr::to_string(document).ok()).collect();
    let text = written.map(|written| written.join("---\n")).unwrap_or_default();
    let same = yaml(&text).is_ok_and(|read| read == documents);
    if same {
        return text;
    }
    documents.iter().map(|document| format!("{document}\n")).collect::<Vec<_>>().join("---\n")
}

struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Tree)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::String(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Value::String(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Tree(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let Tree(value) = members.next_value()?;
            if map.insert(name, value).is_some() {
                return Err(de::Error::custom("a name stands twice in one object"));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests;
