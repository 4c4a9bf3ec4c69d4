//! Tells that an event brings nothing new, without reading its object in full: most of what a watch delivers is a refresh
//! that found the same.
//!
//! takes: an event and what the ledger knows - gives: what deciding in full would give, or nothing - calls: none -
//! fails: never; what it cannot tell is decided in full
//!
//! What decides is a function of the object's text, less what never counts ([`canonical`]). So the
//! last text of each application is remembered as a digest, over what was found in it, too: where the ledger knows the
//! same, the same text is neither parsed into values nor redacted again. What was found does not stand here a second time.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

use pipeline_core::{Digest, Event, Hasher, Record, Uid};

use crate::canonical;
use crate::members::{self, Take};
use crate::plan::Facts;
use crate::{Sections, State};

/// Applications remembered; with more than that, memory is begun anew rather than grown.
const REMEMBERED: usize = 100_000;

/// The last text of each application, in short.
#[derive(Default)]
pub(crate) struct UnchangedFilter {
    /// By the uid's hash: the last text, and what was found in it.
    rows: Mutex<HashMap<u64, Digest>>,
    hash: RandomState,
}

impl UnchangedFilter {
    /// What was found in the last text of the event's object, if it has the same text and that is what is `known`; and
    /// that text, to be remembered when it was read.
    pub(crate) fn check(&self, event: &Event, known: Option<&Record>) -> (Option<Facts>, Option<Digest>) {
        let text = event.body().filter(|_| !event.is_deleted()).and_then(|body| digest(body));
        let found = || {
            let (known, text) = (known?, text?);
            let last = self.last(event)?;
            let State { sections, healthy, .. } = State::acknowledged(known)?;
            let is_last = |found: &Facts| found.with(text) == last;
            [(false, false), (true, false), (false, true), (true, true)]
                .into_iter()
                .map(|(health_in_tree, may_drift)| Facts { sections, healthy, health_in_tree, may_drift })
                .find(is_last)
        };
        (found(), text)
    }

    fn last(&self, event: &Event) -> Option<Digest> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).get(&self.place(&event.uid)).copied()
    }

    /// Remembers what was found in the text of the event's object.
    pub(crate) fn remember(&self, event: &Event, text: Digest, found: Facts) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() >= REMEMBERED {
            rows.clear();
        }
        rows.insert(self.place(&event.uid), found.with(text));
    }

    /// Forgets an application that is gone.
    pub(crate) fn forget(&self, event: &Event) {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.place(&event.uid));
    }

    fn place(&self, uid: &Uid) -> u64 {
        self.hash.hash_one(uid)
    }
}

impl Facts {
    /// One digest of a text and what was found in it.
    fn with(&self, text: Digest) -> Digest {
        let Sections { spec, status, operation, metadata } = self.sections;
        let mut hasher = Hasher::default();
        for part in [text, spec, status, operation, metadata] {
            hasher.write(&part.0.to_le_bytes());
        }
        hasher.write(&[u8::from(self.healthy), u8::from(self.health_in_tree), u8::from(self.may_drift)]);
        hasher.finish()
    }
}

impl fmt::Debug for UnchangedFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnchangedFilter").finish_non_exhaustive()
    }
}

/// Of an object's text, less the members that never count; `None` for what is no object, or whose `metadata` or
/// `status` is there and is none. The text is gone through once.
fn digest(body: &[u8]) -> Option<Digest> {
    members::digest(std::str::from_utf8(body).ok()?, |of, name| match of {
        Some(section) if !canonical::may_count(section, name) => Take::Nothing,
        None if matches!(name, "metadata" | "status") => Take::Members,
        _ => Take::Whole,
    })
}

#[cfg(test)]
mod tests {
    use pipeline_core::Settled;

    use super::*;

    fn same(one: &str, other: &str) -> bool {
        digest(one.as_bytes()).unwrap() == digest(other.as_bytes()).unwrap()
    }

    #[test]
    fn what_was_found_is_told_where_it_is_known_too() {
        let sections =
            Sections { spec: Digest(1), status: Digest(2), operation: Digest(3), metadata: Digest(4) };
        let key = pipeline_core::Key::new("ns", "app").unwrap();
        let change = pipeline_core::Change::Applied { body: "{\"spec\":{}}".into() };
        let (version, observed) = (pipeline_core::Version(1), pipeline_core::Timestamp::UNIX_EPOCH);
        let event = Event::watched(key, "uid".into(), version, change, observed);
        let settled = |sections: Option<Sections>, healthy| {
            let settled = if sections.is_some() { Settled::Now } else { Settled::Never };
            let state = State { sections: sections.unwrap_or_default(), healthy, ..State::default() };
            Record { settled, state: state.encode(), ..Record::new("uid".into()) }
        };
        let (filter, known) = (UnchangedFilter::default(), settled(Some(sections), true));
        let (found, text) = filter.check(&event, Some(&known));
        assert_eq!(found, None, "nothing was read yet");
        for (health_in_tree, may_drift) in [(false, false), (true, false), (false, true), (true, true)] {
            let found = Facts { sections, healthy: true, health_in_tree, may_drift };
            filter.remember(&event, text.unwrap(), found);
            assert_eq!(filter.check(&event, Some(&known)), (Some(found), text));
        }
        for (other, why) in [
            (
                Some(settled(Some(Sections { metadata: Digest(5), ..sections }), true)),
                "another state is known",
            ),
            (Some(settled(Some(sections), false)), "it was not healthy"),
            (Some(settled(None, true)), "it is not settled"),
            (None, "nothing is known"),
        ] {
            assert_eq!(filter.check(&event, other.as_ref()), (None, text), "{why}");
        }
        let other = Event { change: pipeline_core::Change::Applied { body: "{}".into() }, ..event.clone() };
        assert_eq!(filter.check(&other, Some(&known)).0, None, "it is another text");
        filter.forget(&event);
        assert_eq!(filter.check(&event, Some(&known)), (None, text));
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
        assert!(same(r#"{"status":{"\u0072econciledAt":1}}"#, r#"{"status":{}}"#), "names are unescaped");
        for other in [
            "[]",
            "{\"a\":",
            "{} {}",
            r#"{"status":"reconciledAt"}"#,
            r#"{"metadata":null}"#,
            "{\"a\":\"\u{1}\"}",
        ] {
            assert_eq!(digest(other.as_bytes()), None, "{other}");
        }
        assert_eq!(digest(b"{\"a\":\"\xff\"}"), None, "no text");
    }
}
