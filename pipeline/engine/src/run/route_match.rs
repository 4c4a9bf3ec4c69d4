//! Which events a route takes.

use std::collections::HashMap;

use globset::{Glob, GlobMatcher};
use pipeline_core::Event;
use serde::Deserialize;

/// Which events a route takes: those to which all applies that is said. What a route has reported before it also takes when
/// that applies no more, so that what its receiver holds is brought up to date, and ended.
#[derive(Debug, Clone, Default)]
pub struct Match {
    namespace: Option<GlobMatcher>,
    label: Option<(String, String)>,
}

impl Match {
    /// Only objects in namespaces that match the pattern.
    ///
    /// # Errors
    /// When the pattern is none.
    pub fn in_namespaces(self, pattern: &str) -> Result<Self, globset::Error> {
        Ok(Self { namespace: Some(Glob::new(pattern)?.compile_matcher()), ..self })
    }

    /// Only objects with this label.
    #[must_use]
    pub fn labelled(self, name: &str, value: &str) -> Self {
        Self { label: Some((name.to_owned(), value.to_owned())), ..self }
    }

    /// Whether it takes everything.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.namespace.is_none() && self.label.is_none()
    }

    /// Whether all applies to this event. What has no body has no labels.
    #[must_use]
    pub fn takes(&self, event: &Event) -> bool {
        let named = self.namespace.as_ref().is_none_or(|of| of.is_match(event.key.namespace()));
        named && self.label.as_ref().is_none_or(|(name, value)| has_label(event, name, value))
    }
}

#[derive(Deserialize)]
struct Labelled {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: Option<HashMap<String, String>>,
}

fn has_label(event: &Event, name: &str, value: &str) -> bool {
    let object = event.body().and_then(|body| serde_json::from_slice::<Labelled>(body).ok());
    let labels = object.and_then(|object| object.metadata.labels).unwrap_or_default();
    labels.get(name).is_some_and(|is| is == value)
}

#[cfg(test)]
mod tests {
    use pipeline_core::{Cause, Change, Key, Timestamp, Version};

    use super::*;

    fn event(namespace: &str, body: &'static str) -> Event {
        Event {
            key: Key::new(namespace, "a").unwrap(),
            uid: "1".into(),
            version: Version(1),
            change: Change::Applied { body: body.into() },
            cause: Cause::Watch,
            observed: Timestamp::UNIX_EPOCH,
            fact: None,
            coalesced: Vec::new(),
            trace: 0,
        }
    }

    #[test]
    fn a_route_takes_what_all_its_conditions_apply_to() {
        let labelled = r#"{"metadata":{"labels":{"team":"a"}}}"#;
        let all = Match::default();
        assert!(all.is_all() && all.takes(&event("x", "{}")));
        let one = all.in_namespaces("team-*").unwrap().labelled("team", "a");
        assert!(one.takes(&event("team-a", labelled)));
        for (namespace, body) in [("other", labelled), ("team-a", "{}"), ("team-a", "no object")] {
            assert!(!one.takes(&event(namespace, body)), "{namespace} {body}");
        }
    }
}
