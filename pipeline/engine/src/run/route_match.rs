//! Which events a route takes.

use std::collections::HashMap;

use globset::{Glob, GlobMatcher};
use pipeline_core::{Change, Event, Key};
use serde::Deserialize;

/// Which events a route takes: those to which all applies that is said. What a route has reported before it also takes when
/// that applies no more, so that what its receiver holds is brought up to date, and ended.
#[derive(Debug, Clone, Default)]
pub struct Match {
    kinds: Option<Vec<String>>,
    namespace: Option<GlobMatcher>,
    label: Option<(String, String)>,
}

impl Match {
    /// Only objects of these kinds, as [`Key::kind`] names them.
    #[must_use]
    pub fn of_kinds(self, kinds: impl IntoIterator<Item = String>) -> Self {
        Self { kinds: Some(kinds.into_iter().collect()), ..self }
    }

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
        self.kinds.is_none() && self.namespace.is_none() && self.label.is_none()
    }

    /// Whether all that is said of an object's name applies; its labels stand in its body.
    #[must_use]
    pub fn may_take(&self, key: &Key) -> bool {
        let kind = self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind == key.kind()));
        kind && self.namespace.as_ref().is_none_or(|of| of.is_match(key.namespace()))
    }

    /// Whether all applies to this event. A state that came without its body may be taken: it is read again, and judged
    /// then. A deletion that shows no body tells of no label: it is the route's only if the route reported the object.
    #[must_use]
    pub fn takes(&self, event: &Event) -> bool {
        let unread = matches!(&event.change, Change::Applied { body } if body.is_empty());
        let labelled = |(name, value): &(String, String)| unread || has_label(event, name, value);
        self.may_take(&event.key) && self.label.as_ref().is_none_or(labelled)
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

    #[test]
    fn a_kind_and_a_namespace_are_told_by_the_name_alone() {
        let rollouts = Match::default().of_kinds(["rollout".to_owned()]).in_namespaces("team-*").unwrap();
        assert!(!rollouts.is_all());
        for (kind, namespace, taken) in
            [("rollout", "team-a", true), ("workflow", "team-a", false), ("rollout", "other", false)]
        {
            let key = Key::of_kind(kind, namespace, "a").unwrap();
            assert_eq!(rollouts.may_take(&key), taken, "{key}");
            assert_eq!(rollouts.takes(&Event { key, ..event("x", "{}") }), taken);
        }
    }

    #[test]
    fn what_came_without_its_body_is_judged_once_it_is_read_and_a_deletion_without_one_has_no_label() {
        let labelled = Match::default().labelled("team", "a");
        assert!(labelled.takes(&event("x", "")));
        let gone = Event { change: Change::Deleted { body: None }, ..event("x", "") };
        assert!(!labelled.takes(&gone));
        assert!(Match::default().takes(&gone));
    }
}
