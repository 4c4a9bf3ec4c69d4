//! Which objects are watched, and what is made of them: all that the caller knows and this crate does not.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use pipeline_core::Event;
use serde::de::DeserializeOwned;

use crate::api::segment;

/// A kind of objects, as an API server serves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The resource, as it stands in paths and in roles; what [`pipeline_core::Source::name`] is.
    pub plural: &'static str,
    /// One of them, in errors.
    pub singular: &'static str,
}

/// What the objects of one kind mean to whoever watches them. Pure.
pub trait Mapping: Send + Sync + 'static {
    /// Which objects.
    fn kind(&self) -> Kind;

    /// What their keys call the kind; empty where the source has no other, which leaves it out.
    fn named(&self) -> &'static str {
        ""
    }

    /// What is read of an object's `status`, in the same pass as its identity; [`serde::de::IgnoredAny`] for nothing.
    /// Where a status is not of this form the object is there without one.
    type Status: DeserializeOwned + Send + Sync;

    /// Completes the event that tells of one state of an object.
    fn event(&self, event: Event, status: Option<&Self::Status>) -> Event;

    /// Whether what is reported of an object may change though its version does not.
    fn may_drift(&self, status: Option<&Self::Status>) -> bool;
}

impl Kind {
    /// A kind that is known only as it runs. Its texts are kept for as long as the process lives, each once: there are as
    /// many as somebody configured.
    #[must_use]
    pub fn interned(group: &str, version: &str, plural: &str, singular: &str) -> Self {
        Self {
            group: interned(group),
            version: interned(version),
            plural: interned(plural),
            singular: interned(singular),
        }
    }

    /// The path of all of them, or of those in one namespace.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let Self { group, version, plural, .. } = self;
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{}/{plural}", segment(namespace)),
            None => format!("{root}/{plural}"),
        }
    }

    pub(crate) fn list(&self) -> Act {
        Act { verb: "list", what: self.plural }
    }

    pub(crate) fn watch(&self) -> Act {
        Act { verb: "watch", what: self.plural }
    }

    pub(crate) fn get(&self) -> Act {
        Act { verb: "get", what: self.singular }
    }
}

fn interned(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = known.get(text) {
        return same;
    }
    let kept: &'static str = Box::leak(text.into());
    known.insert(kept);
    kept
}

/// The name of the resource, as `kubectl` takes it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            "" => f.write_str(self.plural),
            group => write!(f, "{}.{group}", self.plural),
        }
    }
}

/// What was asked of the API server, in errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Act {
    pub(crate) verb: &'static str,
    pub(crate) what: &'static str,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_the_core_group_has_a_path_of_its_own() {
        let core = Kind { group: "", version: "v1", plural: "configmaps", singular: "configmap" };
        assert_eq!(core.collection(None), "/api/v1/configmaps");
        assert_eq!(core.collection(Some("a/b")), "/api/v1/namespaces/a%2Fb/configmaps");
        assert_eq!(
            (core.to_string(), core.get().to_string()),
            ("configmaps".to_owned(), "get configmap".to_owned())
        );
        let other = Kind { group: "example.org", ..core };
        assert_eq!(other.collection(Some("a")), "/apis/example.org/v1/namespaces/a/configmaps");
        assert_eq!(other.to_string(), "configmaps.example.org");
    }
}
