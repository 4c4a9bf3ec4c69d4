//! Reads JSON without building a tree of it: a small text could become one of many times its size in memory.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::refusal::Refusal;

/// Fields that are kept of an object.
const FIELDS: usize = 1_000;
/// Entries of a list that are kept.
pub(crate) const LISTED: usize = 65_536;

/// The fields of an object, each as the text that it is.
#[derive(Default)]
pub(crate) struct Fields<'a> {
    all: Vec<(String, &'a RawValue)>,
    are_many: bool,
}

/// The entries of a list, each as the text that it is.
#[derive(Default)]
pub(crate) struct Entries<'a> {
    pub(crate) all: Vec<&'a RawValue>,
    /// There are more than are kept.
    pub(crate) are_many: bool,
}

impl<'a> Entries<'a> {
    /// Of what may be a list; nothing where it is none.
    pub(crate) fn of(list: Option<&'a RawValue>) -> Self {
        list.and_then(|list| serde_json::from_str(list.get()).ok()).unwrap_or_default()
    }
}

impl<'a> Fields<'a> {
    /// Itself, unless there are more than are kept.
    pub(crate) fn few(self, field: &'static str) -> Result<Self, Refusal> {
        if self.are_many { Err(Refusal::Many { field, most: FIELDS }) } else { Ok(self) }
    }

    /// Of what may be an object; nothing where it is none.
    pub(crate) fn of(object: Option<&'a RawValue>) -> Self {
        object.and_then(|object| serde_json::from_str(object.get()).ok()).unwrap_or_default()
    }

    /// The last of that name, as in every reading of JSON.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.all.iter().rev().find(|(own, _)| own == name).map(|(_, value)| *value)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let found = self.get(name);
        if found.is_some() {
            self.all.retain(|(own, _)| own != name);
        }
        found
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(string).map(Cow::into_owned)
    }

    /// The same, and nothing where it is none.
    pub(crate) fn text_or_empty(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    /// Whether it is said to be so.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    /// Those that are texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (String, String)> {
        self.all.iter().filter_map(|(name, value)| Some((name.clone(), string(value)?.into_owned())))
    }

    /// As JSON, with another `source` where it is given; `None` where there is nothing.
    pub(crate) fn without_manifests(&self, source: Option<&Self>) -> Option<String> {
        if self.all.is_empty() {
            return None;
        }
        let mut json = String::from("{");
        for (name, value) in &self.all {
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&serde_json::Value::from(name.as_str()).to_string());
            json.push(':');
            match source.filter(|_| name == "source") {
                Some(source) => {
                    json.push_str(&source.without_manifests(None).unwrap_or_else(|| "{}".to_owned()));
                }
                None => json.push_str(value.get()),
            }
        }
        json.push('}');
        Some(json)
    }
}

/// For what is null or of another kind, in a type of which the rest counts all the same.
pub(crate) fn lenient<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value: &'de RawValue = Deserialize::deserialize(deserializer)?;
    Ok(serde_json::from_str(value.get()).unwrap_or_default())
}

/// The text of a string; `None` for what is none.
pub(crate) fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    match serde_json::from_str::<&str>(value.get()) {
        Ok(text) => Some(Cow::Borrowed(text)),
        // What is escaped cannot be borrowed.
        Err(_) => serde_json::from_str(value.get()).ok().map(Cow::Owned),
    }
}

struct OfFields;
struct OfEntries;

impl<'de> Visitor<'de> for OfFields {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields::default();
        while fields.all.len() < FIELDS {
            let Some(field) = map.next_entry()? else { return Ok(fields) };
            fields.all.push(field);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            fields.are_many = true;
        }
        Ok(fields)
    }
}

impl<'de> Visitor<'de> for OfEntries {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut entries = Entries { all: Vec::new(), are_many: false };
        while entries.all.len() < LISTED {
            let Some(entry) = list.next_element()? else { return Ok(entries) };
            entries.all.push(entry);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            entries.are_many = true;
        }
        Ok(entries)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfFields)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(OfEntries)
    }
}
