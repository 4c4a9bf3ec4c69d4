//! What is known of kinds: the table `kinds.yaml`.

use std::sync::LazyLock;

use pipeline_core::{Fact, Hasher};
use pipeline_redact::Redactor;
use serde::Deserialize;
use serde_json::Value;

use crate::phase;
use crate::phases::Phases;
use crate::pointer::{self, Pointer};

/// What the table knows of one kind.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownKind {
    /// `plural.group`, as `kubectl` takes it.
    pub resource: String,
    /// Its name in keys.
    pub name: String,
    #[serde(default)]
    quiet: Vec<Pointer>,
    #[serde(default)]
    facts: Vec<Pointer>,
    #[serde(default)]
    times: Vec<Pointer>,
    #[serde(default)]
    idle: Vec<Pointer>,
    #[serde(default)]
    heavy: Vec<Pointer>,
    #[serde(default)]
    owners: Vec<OwnerKind>,
}

/// A kind that owns objects of another.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnerKind {
    /// Its name in owner references.
    pub kind: String,
    /// `plural.group`.
    pub resource: String,
}

/// A kind of which nothing is known.
pub(crate) static NOTHING: KnownKind = KnownKind {
    resource: String::new(),
    name: String::new(),
    quiet: Vec::new(),
    facts: Vec::new(),
    times: Vec::new(),
    idle: Vec::new(),
    heavy: Vec::new(),
    owners: Vec::new(),
};

static KINDS: LazyLock<Vec<KnownKind>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the table is compiled in, and a test reads it")]
    serde_saphyr::from_str(include_str!("kinds.yaml")).expect("a table of kinds")
});

/// The row of the table for `resource`, which is `plural.group`.
pub(crate) fn row(resource: &str) -> Option<&'static KnownKind> {
    KINDS.iter().find(|kind| kind.resource == resource)
}

/// The members of a status that facts of any kind are read from.
pub(crate) fn fact_members() -> impl Iterator<Item = &'static str> {
    let told = KINDS.iter().flat_map(|kind| kind.facts.iter().chain(&kind.times));
    told.filter_map(|pointer| pointer.below("status")?.first()).map(String::as_str)
}

/// What is known of `resource`, which is `plural.group`. A kind that is not in the table is named by its plural in keys.
#[must_use]
pub fn known(resource: &str) -> KnownKind {
    row(resource).cloned().unwrap_or_else(|| KnownKind {
        resource: resource.to_owned(),
        name: resource.split('.').next().unwrap_or(resource).to_owned(),
        ..KnownKind::default()
    })
}

impl KnownKind {
    /// The phase and step that a status shows, as a fact. Its texts are redacted: they outlive the object, and are put into
    /// one that is redacted already.
    #[must_use]
    pub fn fact(&self, phases: &Phases, redactor: &Redactor) -> Option<Fact> {
        let status = phases.status();
        let mut hasher = Hasher::default();
        let mut any = false;
        for parts in self.facts.iter().chain(&self.times).filter_map(|pointer| pointer.below("status")) {
            // A separator before each member, so that two members never hash as one.
            hasher.write(b"\0");
            pointer::each(parts, status, &mut |value| {
                any = true;
                hasher.write(value.to_string().as_bytes());
                hasher.write(b"\x01");
            });
        }
        if !any {
            return None;
        }
        let shown = self.facts.iter().filter_map(|pointer| pointer.below("status"));
        Some(Fact { id: hasher.finish(), body: phase::of(shown, status, redactor) })
    }

    /// The members that are cut first from an object that is too large.
    pub(crate) fn heavy(&self) -> &[Pointer] {
        &self.heavy
    }

    /// Whether a member tells of a phase or a step.
    pub(crate) fn tells_of_phase(&self, pointer: &Pointer) -> bool {
        self.facts.iter().chain(&self.times).any(|fact| fact.parts().starts_with(pointer.parts()))
    }

    /// The kinds whose application is that of an object of this kind.
    #[must_use]
    pub fn owners(&self) -> &[OwnerKind] {
        &self.owners
    }

    /// Removes the members whose changes nobody would call a change of the object.
    pub(crate) fn silence(&self, object: &mut Value) {
        self.quiet.iter().for_each(|pointer| pointer::remove(pointer.parts(), object));
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
        }
    }

    /// Whether nothing of an object runs now.
    pub(crate) fn is_idle(&self, object: &Value) -> bool {
        let mut in_use = self.idle.is_empty();
        for pointer in &self.idle {
            pointer::each(pointer.parts(), object, &mut |value| in_use |= *value != 0);
        }
        !in_use
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_is_read_and_facts_stand_below_the_status() {
        assert!(KINDS.len() >= 7);
        for kind in KINDS.iter() {
            assert!(kind.facts.iter().chain(&kind.times).all(|pointer| pointer.below("status").is_some()));
            assert_eq!(known(&kind.resource).name, kind.name);
        }
        assert_eq!(known("widgets.example.org").name, "widgets");
    }

    #[test]
    fn a_state_that_comes_back_later_is_another_fact() {
        let (kind, redactor) = (known("rollouts.argoproj.io"), Redactor::new(b"k"));
        let phases = |status: Value| serde_json::from_value::<Phases>(status).unwrap();
        let status = |phase: &str, since: &str| {
            phases(json!({"phase": phase, "conditions": [{"lastTransitionTime": since}]}))
        };
        let id = |status: &Phases| kind.fact(status, &redactor).unwrap().id;
        assert_eq!(id(&status("Paused", "1")), id(&status("Paused", "1")));
        assert_ne!(id(&status("Paused", "1")), id(&status("Progressing", "1")));
        assert_ne!(id(&status("Paused", "1")), id(&status("Paused", "2")));
        assert_eq!(kind.fact(&Phases::default(), &redactor), None);
        assert_eq!(known("replicasets.apps").fact(&phases(json!({"replicas": 1})), &redactor), None);
    }

    #[test]
    fn an_object_is_idle_when_nothing_of_it_is_wanted_or_runs() {
        let kind = known("replicasets.apps");
        for (object, idle) in [
            (json!({"spec": {"replicas": 0}, "status": {"replicas": 0}}), true),
            (json!({"spec": {"replicas": 0}, "status": {}}), true),
            (json!({"spec": {"replicas": 0}, "status": {"replicas": 1}}), false),
            (json!({"spec": {"replicas": 2}, "status": {"replicas": 0}}), false),
        ] {
            assert_eq!(kind.is_idle(&object), idle, "{object}");
        }
        assert!(!known("rollouts.argoproj.io").is_idle(&json!({})));
    }
}
