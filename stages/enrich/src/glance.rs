//! Tells at a glance that an event brings nothing new: most of what a watch delivers is a refresh that found the same.
//!
//! takes: an event and what the ledger knows - gives: what deciding in full would give, or nothing - calls: none -
//! fails: never; what it cannot tell is decided in full
//!
//! What decides is a function of the object's text, less what never counts ([`canonical`]). So the
//! last text of each application is remembered as a digest, beside what was found in it, and the same text is neither
//! parsed into values nor redacted again.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use pipeline_core::{Digest, Event, Hasher};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::canonical;
use crate::round::Facts;

/// Applications remembered; with more than that, memory is begun anew rather than grown.
const REMEMBERED: usize = 100_000;

/// The last text of each application, in short.
#[derive(Default)]
pub(crate) struct Glance {
    /// By the uid, in short.
    rows: Mutex<HashMap<Digest, (Digest, Facts)>>,
}

impl Glance {
    /// What was found in the last text of the event's object, if it has the same text; and that text, to be
    /// remembered when it was read.
    pub(crate) fn of(&self, event: &Event) -> (Option<Facts>, Option<Digest>) {
        let text = event.body().filter(|_| !event.is_deleted()).and_then(|body| digest(body));
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let row = rows.get(&Digest::of(event.uid.as_bytes()));
        let facts = row.filter(|(last, _)| text == Some(*last)).map(|(_, facts)| *facts);
        (facts, text)
    }

    /// Remembers what was found in the text of the event's object.
    pub(crate) fn note(&self, event: &Event, text: Digest, facts: Facts) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() >= REMEMBERED {
            rows.clear();
        }
        rows.insert(Digest::of(event.uid.as_bytes()), (text, facts));
    }

    /// Forgets an application that is gone.
    pub(crate) fn forget(&self, event: &Event) {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).remove(&Digest::of(event.uid.as_bytes()));
    }
}

impl fmt::Debug for Glance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Glance").finish_non_exhaustive()
    }
}

/// Of an object's text, less the members that never count; `None` for what is no object.
fn digest(body: &[u8]) -> Option<Digest> {
    let object: Members<'_> = serde_json::from_slice(body).ok()?;
    let mut hasher = Hasher::default();
    for (name, value) in object.0 {
        hasher.write(name.as_bytes());
        let inner = matches!(&*name, "metadata" | "status").then(|| serde_json::from_str(value.get()).ok());
        match inner.flatten() {
            Some(Members(members)) => {
                for (inner, value) in members.iter().filter(|(inner, _)| canonical::may_count(&name, inner)) {
                    hasher.write(inner.as_bytes());
                    hasher.write(value.get().as_bytes());
                }
                // So that no member can be taken for one of the object itself.
                hasher.write(&[]);
            }
            None => hasher.write(value.get().as_bytes()),
        }
    }
    Some(hasher.finish())
}

/// The members of an object as they stand, each with its text.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(16);
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Each)
    }
}

/// A member's name, borrowed where it holds no escape.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &str, other: &str) -> bool {
        digest(one.as_bytes()).unwrap() == digest(other.as_bytes()).unwrap()
    }

    #[test]
    fn what_never_counts_does_not_make_another_text() {
        let refreshed = |at: u32| {
            format!(
                r#"{{"kind":"Application","metadata":{{"name":"a","resourceVersion":"{at}","generation":{at},
                "managedFields":[{{"time":{at}}}]}},"spec":{{"project":"p"}},
                "status":{{"reconciledAt":"{at}","sync":{{"status":"Synced"}}}}}}"#
            )
        };
        assert!(same(&refreshed(1), &refreshed(2)));
        assert!(!same(&refreshed(1), &refreshed(1).replace("Synced", "OutOfSync")));
        assert!(!same(&refreshed(1), &refreshed(1).replace("\"p\"", "\"q\"")));
        assert!(!same(&refreshed(1), &refreshed(1).replace("\"a\"", "\"b\"")));
    }

    #[test]
    fn a_member_counts_where_it_stands() {
        assert!(!same(r#"{"status":{"x":1},"y":2}"#, r#"{"status":{"x":1,"y":2}}"#));
        assert!(!same(r#"{"status":{"x":1}}"#, r#"{"metadata":{"x":1}}"#));
        assert!(!same(r#"{"spec":{"reconciledAt":1}}"#, r#"{"spec":{"reconciledAt":2}}"#));
        assert!(!same(r#"{"status":"reconciledAt"}"#, r#"{"status":{}}"#));
        assert!(same(r#"{"status":{"\u0072econciledAt":1}}"#, r#"{"status":{}}"#), "names are unescaped");
        assert_eq!(digest(b"[]"), None);
        assert_eq!(digest(b"{\"a\":"), None);
    }
}
