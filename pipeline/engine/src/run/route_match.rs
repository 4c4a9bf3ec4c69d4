//! Which events a route takes.

use std::fmt;
use std::sync::Arc;

use pipeline_core::{Change, Event, Key, Labelling};
use serde::Deserialize;

/// Whether a value of this kind is taken.
type Taken<T> = Arc<dyn Fn(&T) -> bool + Send + Sync>;

/// Which events a route takes: those to which all applies that is said. What a route has reported before it also takes when
/// that applies no more, so that what its receiver holds is brought up to date, and ended.
#[derive(Clone, Default)]
pub struct Match {
    kinds: Option<Vec<String>>,
    namespaces: Option<Taken<str>>,
    labels: Option<Taken<Labelling>>,
}

impl Match {
    /// Only objects of these kinds, as [`Key::kind`] names them.
    #[must_use]
    pub fn of_kinds(self, kinds: impl IntoIterator<Item = String>) -> Self {
        Self { kinds: Some(kinds.into_iter().collect()), ..self }
    }

    /// Only objects in namespaces that are `taken`; the one of an object of the whole cluster is empty.
    #[must_use]
    pub fn in_namespaces(self, taken: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self { namespaces: Some(Arc::new(taken)), ..self }
    }

    /// Only objects whose labels are `taken`.
    #[must_use]
    pub fn labelled(self, taken: impl Fn(&Labelling) -> bool + Send + Sync + 'static) -> Self {
        Self { labels: Some(Arc::new(taken)), ..self }
    }

    /// Whether it takes everything.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.kinds.is_none() && self.namespaces.is_none() && self.labels.is_none()
    }

    /// Whether all that is said of an object's name applies; its labels stand in its body.
    #[must_use]
    pub fn may_take(&self, key: &Key) -> bool {
        let kind = self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind == key.kind()));
        kind && self.namespaces.as_ref().is_none_or(|taken| taken(key.namespace()))
    }

    /// Whether all applies to this event. A state that came without its body may be taken: it is read again, and judged
    /// then. A deletion that shows no body tells of no label: it is the route's only if the route reported the object.
    #[must_use]
    pub fn takes(&self, event: &Event) -> bool {
        let unread = matches!(&event.change, Change::Applied { body } if body.is_empty());
        self.may_take(&event.key)
            && self.labels.as_ref().is_none_or(|taken| unread || labels(event).is_some_and(|it| taken(it)))
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Match")
            .field("kinds", &self.kinds)
            .field("by_namespace", &self.namespaces.is_some())
            .field("by_labels", &self.labels.is_some())
            .finish()
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
    labels: Option<Labelling>,
}

/// The labels of an object; `None` where nothing shows them.
fn labels(event: &Event) -> Option<&Labelling> {
    let body = event.body()?;
    event.labels.get_or_read(|| {
        let object = serde_json::from_slice::<Labelled>(body).ok()?;
        Some(object.metadata.labels.unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use pipeline_bus::Message;
    use pipeline_core::{Change, Key, Timestamp, Version};

    use super::*;

    fn event(namespace: &str, body: &'static str) -> Event {
        let (key, change) = (Key::new(namespace, "a").unwrap(), Change::Applied { body: body.into() });
        Event::watched(key, "1".into(), Version(1), change, Timestamp::UNIX_EPOCH)
    }

    fn of_team(labels: &Labelling) -> bool {
        labels.get("team").is_some_and(|team| team == "a")
    }

    #[test]
    fn a_route_takes_what_all_its_conditions_apply_to() {
        let labelled = r#"{"metadata":{"labels":{"team":"a"}}}"#;
        let all = Match::default();
        assert!(all.is_all() && all.takes(&event("x", "{}")));
        let one = all.in_namespaces(|namespace| namespace.starts_with("team-")).labelled(of_team);
        assert!(one.takes(&event("team-a", labelled)));
        for (namespace, body) in [("other", labelled), ("team-a", "{}"), ("team-a", "no object")] {
            assert!(!one.takes(&event(namespace, body)), "{namespace} {body}");
        }
        let without = Match::default().labelled(|labels| !labels.contains_key("team"));
        assert!(
            without.takes(&event("x", "{}")) && without.takes(&event("x", r#"{"metadata":{"labels":null}}"#))
        );
        assert!(!without.takes(&event("x", labelled)));
    }

    /// Each route has a message of its own, which shares what was read.
    #[test]
    fn the_text_of_an_event_is_read_once_for_all_routes_and_all_looks() {
        let route = Match::default().labelled(of_team);
        let message = Message::of(event("x", r#"{"metadata":{"labels":{"team":"a"}}}"#));
        let first = message.clone().into_event().unwrap();
        assert!(route.takes(&first));
        // Were it read again, another text would tell of other labels.
        let change = Change::Applied { body: "{}".into() };
        assert!(route.takes(&Event { change: change.clone(), ..message.into_event().unwrap() }));
        assert!(route.takes(&Event { change, ..first }));
    }

    #[test]
    fn a_kind_and_a_namespace_are_told_by_the_name_alone() {
        let rollouts = Match::default()
            .of_kinds(["rollout".to_owned()])
            .in_namespaces(|namespace| namespace == "team-a");
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
        let labelled = Match::default().labelled(of_team);
        assert!(labelled.takes(&event("x", "")));
        let gone = Event { change: Change::Deleted { body: None }, ..event("x", "") };
        assert!(!labelled.takes(&gone));
        assert!(Match::default().takes(&gone));
        let any = Match::default().labelled(|_| true);
        assert!(!any.takes(&gone), "nothing shows its labels");
    }
}
