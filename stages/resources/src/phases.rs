//! What of a `status` may tell of a phase or a step, of any kind that is known: nothing else is kept of it, however large it is.

use std::collections::HashSet;
use std::fmt;
use std::sync::LazyLock;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::kind;

/// Members of a status that any kind's facts are read of.
static TOLD: LazyLock<HashSet<&str>> = LazyLock::new(|| kind::told_members().collect());

/// The members of a `status` that facts are read of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Phases(Value);

impl Phases {
    /// As members of a status.
    pub(crate) fn status(&self) -> &Value {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Phases {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Phases;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Phases, A::Error> {
        let mut kept = Map::new();
        while let Some(name) = members.next_key_seed(Name)? {
            match name {
                Some(name) => drop(kept.insert(name.to_owned(), members.next_value()?)),
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Phases(Value::Object(kept)))
    }
}

/// The name of a member, if it is kept.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(TOLD.get(name).copied())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_of_a_status_is_kept_but_what_facts_are_read_of() {
        let text = r#"{"nodes":{"a":{"phase":"Failed"}},"phase":"Running","ph\u0061se":"Failed","startedAt":[1],"x":1}"#;
        let phases: Phases = serde_json::from_str(text).unwrap();
        assert_eq!(*phases.status(), json!({"phase": "Failed", "startedAt": [1]}));
        assert!(serde_json::from_str::<Phases>("[1]").is_err());
    }
}
