//! What of a manifest makes it differ from another one of the same resource: all of it, but for what the cluster counts
//! and tells by itself (`status`, versions, who manages which field).

use std::borrow::Cow;
use std::fmt;

use pipeline_core::Hasher;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Adds the text of a manifest, in one pass; all of a text that is no JSON object.
pub(super) fn write(manifest: &str, hasher: &mut Hasher) {
    let mut counted = Hasher::default();
    let mut text = serde_json::Deserializer::from_str(manifest);
    let members = Members { in_metadata: false, hasher: &mut counted };
    match members.deserialize(&mut text).and_then(|()| text.end()) {
        Ok(()) => hasher.write(&counted.finish().0.to_be_bytes()),
        Err(_) => hasher.write(manifest.as_bytes()),
    }
}

struct Members<'h> {
    in_metadata: bool,
    hasher: &'h mut Hasher,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { in_metadata, hasher } = self;
        while let Some(Name(name)) = map.next_key()? {
            match &*name {
                "resourceVersion" | "generation" | "managedFields" if in_metadata => {
                    map.next_value::<IgnoredAny>()?;
                }
                "status" if !in_metadata => {
                    map.next_value::<IgnoredAny>()?;
                }
                "metadata" if !in_metadata => {
                    hasher.write(name.as_bytes());
                    map.next_value_seed(Members { in_metadata: true, hasher })?;
                    // So that no member can be taken for one of the object itself.
                    hasher.write(&[]);
                }
                _ => {
                    hasher.write(name.as_bytes());
                    hasher.write(map.next_value::<&RawValue>()?.get().as_bytes());
                }
            }
        }
        Ok(())
    }
}

/// A member's name, borrowed where it holds no escape.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline_core::Digest;

    fn of(manifest: &str) -> Digest {
        let mut hasher = Hasher::default();
        write(manifest, &mut hasher);
        hasher.finish()
    }

    #[test]
    fn what_the_cluster_counts_and_tells_is_no_drift() {
        let live = |version: u32, ready: u32, replicas: u32| {
            of(&format!(
                r#"{{"kind":"Deployment","metadata":{{"name":"web","resourceVersion":"{version}","generation":{version},
                "managedFields":[{version}]}},"spec":{{"replicas":{replicas}}},"status":{{"ready":{ready}}}}}"#
            ))
        };
        assert_eq!(live(1, 1, 3), live(2, 3, 3));
        assert_ne!(live(1, 1, 3), live(1, 1, 4));
    }

    #[test]
    fn all_else_counts_where_it_stands() {
        let different = [
            "{}",
            r#"{"metadata":{"status":1}}"#,
            r#"{"metadata":{},"generation":1}"#,
            r#"{"metadata":{"labels":{"status":"1"}}}"#,
            r#"{"metadata":{"labels":{"status":"2"}}}"#,
            r#"{"metadata":null}"#,
            "not json",
            "null",
            "",
        ];
        for (at, one) in different.iter().enumerate() {
            assert!(different.iter().skip(at + 1).all(|other| of(one) != of(other)), "{one}");
        }
        assert_eq!(of(r#"{"status":1}"#), of("{}"));
    }
}
