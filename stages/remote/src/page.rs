//! A page of a list, read from the bytes of an answer once.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::Value;

use crate::platform::Message;

/// Where a list goes on.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PageInfo {
    end_cursor: Option<String>,
    pub(crate) has_next_page: bool,
}

impl PageInfo {
    /// Behind which place the next page begins. A page that does not lead on is the last one, whatever it says.
    pub(crate) fn next(&self, after: &str) -> Option<&str> {
        self.end_cursor.as_deref().filter(|end| self.has_next_page && *end != after)
    }
}

/// What an answer with a page holds.
#[derive(Default)]
pub(crate) struct Page {
    pub(crate) nodes: Vec<Value>,
    pub(crate) info: PageInfo,
    /// Where this page and those behind it end, if that was asked for.
    pub(crate) ends: Vec<String>,
    /// What of what was asked is not known, a sentence each, if that was asked for.
    pub(crate) mistyped: Vec<String>,
    pub(crate) errors: Vec<Message>,
    /// Whether it holds the list at all.
    pub(crate) is_there: bool,
}

/// Why an answer cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is none of a platform.
    NoAnswer,
    /// The list is another than the schema says.
    OtherSchema,
}

/// A row, in its place.
#[derive(Deserialize)]
struct Edge {
    node: Value,
}

impl Page {
    /// Reads the list that an answer holds in `field`.
    pub(crate) fn read(body: &[u8], field: &str) -> Result<Self, Unread> {
        let mut page = Self::default();
        let mut json = serde_json::Deserializer::from_slice(body);
        let reading = Reading { part: Part::Answer, field, page: &mut page };
        match reading.deserialize(&mut json).and_then(|()| json.end()) {
            Ok(()) => Ok(page),
            Err(error) if page.is_there && error.is_data() => Err(Unread::OtherSchema),
            Err(_) => Err(Unread::NoAnswer),
        }
    }
}

/// Which object of an answer is read.
#[derive(Clone, Copy)]
enum Part {
    Answer,
    Data,
    List,
}

/// Reads such an object into a page.
struct Reading<'p> {
    part: Part,
    field: &'p str,
    page: &'p mut Page,
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of an answer")
    }

    /// Of what was refused there is nothing.
    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { part, field, page } = self;
        while let Some(key) = map.next_key::<String>()? {
            match (part, &*key) {
                (Part::Answer, "data") => {
                    map.next_value_seed(Reading { part: Part::Data, field, page })?;
                }
                (Part::Answer, "errors") => {
                    page.errors = map.next_value::<Option<_>>()?.unwrap_or_default();
                }
                (Part::Data, key) if key == field => {
                    page.is_there = true;
                    map.next_value_seed(Reading { part: Part::List, field, page })?;
                }
                (Part::List, "pageInfo") => {
                    page.info = map.next_value()?;
                }
                (Part::List, "ends") => {
                    page.ends = map.next_value()?;
                }
                (Part::List, "mistyped") => {
                    page.mistyped = map.next_value()?;
                }
                (Part::List, "edges") => {
                    let edges: Vec<Edge> = map.next_value()?;
                    page.nodes = edges.into_iter().map(|edge| edge.node).collect();
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &str) -> Result<Page, Unread> {
        Page::read(body.as_bytes(), "runtimes")
    }

    #[test]
    fn a_page_is_read_whichever_of_its_parts_stands_first() {
        let info = r#""pageInfo": {"endCursor": "b", "hasNextPage": true, "startCursor": "a"}"#;
        let edges = r#""edges": [{"cursor": "a", "node": {"name": "a\u00e9"}}, {"node": {"name": "b"}}]"#;
        let ends = r#""ends": ["b"]"#;
        for list in [format!("{ends}, {info}, {edges}"), format!("{edges}, {info}, {ends}")] {
            let page =
                read(&format!(r#"{{"data": {{"runtimes": {{{list}}}}}, "extensions": [1]}}"#)).unwrap();
            assert_eq!(page.nodes, [json!({"name": "aé"}), json!({"name": "b"})]);
            assert_eq!((page.info.next(""), page.info.next("b")), (Some("b"), None));
            assert_eq!((page.ends, page.errors.len(), page.is_there), (vec!["b".to_owned()], 0, true));
        }
        let last = PageInfo { end_cursor: Some("b".to_owned()), has_next_page: false };
        assert_eq!((last.next(""), PageInfo::default().next("")), (None, None));
    }

    #[test]
    fn what_is_refused_holds_no_list() {
        for data in [r#""data": null, "#, ""] {
            let page = read(&format!(r#"{{{data}"errors": [{{"message": "no", "path": ["a"]}}]}}"#)).unwrap();
            assert_eq!((page.is_there, page.nodes.len()), (false, 0));
            assert_eq!(page.errors[0].message, "no");
        }
    }

    #[test]
    fn an_answer_of_another_schema_is_told_from_one_that_is_none_of_a_platform() {
        let of = |body: &str| read(body).err();
        for none in ["", "<html>", "[]", r#""ok""#, r#"{"data": 1}"#, r#"{"data": {"runtimes": {}}} x"#] {
            assert_eq!(of(none), Some(Unread::NoAnswer), "{none}");
        }
        for other in [r#"[]"#, r#"{"edges": [{}]}"#, r#"{"pageInfo": {"hasNextPage": "yes"}}"#] {
            let body = format!(r#"{{"data": {{"runtimes": {other}}}}}"#);
            assert_eq!(of(&body), Some(Unread::OtherSchema), "{other}");
        }
        assert_eq!(of(r#"{"data": {"runtimes": null}}"#), None);
    }
}
