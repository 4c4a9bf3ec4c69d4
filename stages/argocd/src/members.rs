//! The digest of an object's members as they stand, each one's name and its text, less those that do not count. The text is
//! gone through once.

use std::borrow::Cow;
use std::fmt;

use pipeline_core::{Digest, Hasher};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// What is taken of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// Nothing: it does not count.
    Nothing,
    /// Its own members, as they are judged; it must be an object.
    Members,
    /// All of it.
    Whole,
}

/// Of the object in `text`; `take` is asked of each member, with the section that it stands in, `None` for those of the
/// object itself. `None` for what is no object, or where a section is none.
pub(crate) fn digest(text: &str, take: fn(Option<&str>, &str) -> Take) -> Option<Digest> {
    let mut hasher = Hasher::default();
    let mut text = serde_json::Deserializer::from_str(text);
    Members { of: None, take, hasher: &mut hasher }.deserialize(&mut text).ok()?;
    text.end().ok()?;
    Some(hasher.finish())
}

struct Members<'h> {
    of: Option<&'h str>,
    take: fn(Option<&str>, &str) -> Take,
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
        let Self { of, take, hasher } = self;
        while let Some(Name(name)) = map.next_key()? {
            match take(of, &name) {
                Take::Nothing => {
                    map.next_value::<IgnoredAny>()?;
                }
                Take::Members => {
                    hasher.write(name.as_bytes());
                    map.next_value_seed(Members { of: Some(&name), take, hasher })?;
                    // So that no member can be taken for one of the object itself.
                    hasher.write(&[]);
                }
                Take::Whole => {
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
