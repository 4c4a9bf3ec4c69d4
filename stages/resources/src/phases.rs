//! The members of a `status` that may tell of a phase or a step, of any known kind. Nothing else of a status is kept, however large it is.

use std::collections::HashSet;
use std::fmt;
use std::sync::LazyLock;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::kind;

/// The members of a status that facts of any kind are read from.
static PHASE_MEMBERS: LazyLock<HashSet<&str>> = LazyLock::new(|| kind::fact_members().collect());

/// The members of one `status` that facts may be read from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Phases(Value);

impl Phases {
    /// The members, as an object.
    pub(crate) fn status(&self) -> &Value {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Phases {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PhasesVisitor)
    }
}

/// Reads the members that are kept.
struct PhasesVisitor;

impl<'de> Visitor<'de> for PhasesVisitor {
    type Value = Phases;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Phases, A::Error> {
        let mut kept = Map::new();
        while let Some(name) = members.next_key_seed(MemberName)? {
            match name {
                Some(name) => drop(kept.insert(name.to_owned(), members.next_value()?)),
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Phases(Value::Object(kept)))
    }
}

/// Reads the name of a member, if the member is kept.
struct MemberName;

impl<'de> DeserializeSeed<'de> for MemberName {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for MemberName {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(PHASE_MEMBERS.get(name).copied())
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
