//! Reads JSON and YAML into one tree, strictly: what two readers could read differently is not read.

use std::fmt;
use std::marker::PhantomData;

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

/// What a text is read into, part by part.
pub(super) trait Node<'de>: Sized {
    fn leaf(value: Value) -> Self;

    fn list<A: SeqAccess<'de>>(items: A) -> Result<Self, A::Error>;

    fn map<A: MapAccess<'de>>(members: A) -> Result<Self, A::Error>;
}

/// Reads a value of whatever type the text has.
pub(super) fn read<'de, N: Node<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<N, D::Error> {
    deserializer.deserialize_any(NodeVisitor(PhantomData))
}

struct NodeVisitor<N>(PhantomData<N>);

impl<'de, N: Node<'de>> Visitor<'de> for NodeVisitor<N> {
    type Value = N;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<N, E> {
        Ok(N::leaf(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<N, E> {
        Ok(N::leaf(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<N, E> {
        Ok(N::leaf(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<N, E> {
        Ok(N::leaf(value.to_string().into()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<N, E> {
        Ok(N::leaf(value.to_string().into()))
    }

    /// A number with a fraction; as text where JSON has none such.
    fn visit_f64<E>(self, value: f64) -> Result<N, E> {
        let number = serde_json::Number::from_f64(value);
        Ok(N::leaf(number.map_or_else(|| value.to_string().into(), Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<N, E> {
        Ok(N::leaf(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<N, E> {
        Ok(N::leaf(value.into()))
    }

    fn visit_unit<E>(self) -> Result<N, E> {
        Ok(N::leaf(Value::Null))
    }

    fn visit_none<E>(self) -> Result<N, E> {
        Ok(N::leaf(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<N, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<N, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<N, A::Error> {
        N::list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<N, A::Error> {
        N::map(members)
    }
}

struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

impl<'de> Node<'de> for Tree {
    fn leaf(value: Value) -> Self {
        Self(value)
    }

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut array = Vec::new();
        while let Some(Self(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Self(Value::Array(array)))
    }

    fn map<A: MapAccess<'de>>(mut members: A) -> Result<Self, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let Self(value) = members.next_value()?;
            if map.insert(name, value).is_some() {
                return Err(de::Error::custom("a name stands twice in one object"));
            }
        }
        Ok(Self(Value::Object(map)))
    }
}

#[cfg(test)]
mod tests;
