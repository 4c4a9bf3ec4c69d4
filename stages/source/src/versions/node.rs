//! YAML as a version is looked for in it: numbers are texts, and the keys of maps must be.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A value of YAML.
pub(super) enum Node {
    Null,
    Bool(bool),
    Text(String),
    /// As a text: the shortest, without an exponent.
    Number(String),
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
}

impl Node {
    /// As JSON; `None` when a key is no text.
    pub(super) fn into_value(self) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(is) => Value::Bool(is),
            Self::Text(text) | Self::Number(text) => Value::String(text),
            Self::List(all) => Value::Array(all.into_iter().map(Self::into_value).collect::<Option<_>>()?),
            Self::Map(all) => {
                let entry = |(name, value): (Self, Self)| match name {
                    Self::Text(name) => Some((name, value.into_value()?)),
                    _ => None,
                };
                Value::Object(all.into_iter().map(entry).collect::<Option<_>>()?)
            }
        })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, is: bool) -> Result<Node, E> {
        Ok(Node::Bool(is))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_u128<E>(self, number: u128) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(node) = list.next_element()? {
            all.push(node);
        }
        Ok(Node::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = map.next_entry()? {
            all.push(entry);
        }
        Ok(Node::Map(all))
    }
}
