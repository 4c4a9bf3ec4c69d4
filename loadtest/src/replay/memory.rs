//! What was reported before: by the recorded reporter, and by the product. Neither uses the product's memory.

use std::collections::{HashMap, HashSet};

use pipeline_redact::Redactor;
use serde_json::{Value, json};

use super::compare::is_same_yaml;
use super::observed::sections;
use super::play::{Playback, Played};
use super::predicates::Predecessor;
use super::said::{Span, redacted, timeless};
use loadtest_judge::diff::diff;
use loadtest_judge::view::View;
use loadtest_sim::platform::ResourceKey;
use loadtest_sim::recordings::{Case, RoundLine};

/// An application, and what of it was reported.
type Entity = (String, ResourceKey);

/// What was reported before.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The recorded reporter's last report of each entity.
    theirs: HashMap<Entity, Predecessor>,
    /// The entries that the recorded reporter reported, each with the latest revision then.
    entries: HashMap<(Entity, Value), Value>,
    /// The product's last report of each entity.
    ours: HashMap<Entity, Last>,
}

/// The product's last report of an entity.
#[derive(Debug)]
struct Last {
    report: View,
    /// Its "now".
    now: String,
    /// What decided that it was to be made.
    state: Value,
}

impl Memory {
    pub(super) fn predecessor(&self, round: &Played<'_>, about: &ResourceKey) -> Option<&Predecessor> {
        self.theirs.get(&entity(round, about))
    }

    /// Keeps what the recorded reporter posted.
    pub(super) fn posted(&mut self, round: &Played<'_>, about: &ResourceKey, report: Predecessor) {
        let entity = entity(round, about);
        if let Some((revision, entry)) = entry(round, about) {
            self.entries.insert((entity.clone(), revision), entry);
        }
        self.theirs.insert(entity, report);
    }

    /// Keeps what the product made.
    pub(super) fn made(&mut self, round: &Played<'_>, view: &View, now: &str) {
        let about = view.identity();
        let last = Last { report: view.clone(), now: now.to_owned(), state: state(round, &about) };
        self.ours.insert(entity(round, &about), last);
    }

    /// Keeps that the product had nothing new to say of an entity as it is now.
    pub(super) fn unsent(&mut self, round: &Played<'_>, about: &ResourceKey) {
        if let Some(last) = self.ours.get_mut(&entity(round, about)) {
            last.state = state(round, about);
        }
    }

    /// Whether the recorded reporter reported this entry before, as it is now, for the revision that is now
    /// the latest.
    pub(super) fn is_remembered(&self, round: &Played<'_>, about: &ResourceKey) -> bool {
        entry(round, about).is_some_and(|(revision, entry)| {
            self.entries.get(&(self::entity(round, about), revision)) == Some(&entry)
        })
    }

    /// Whether the product's last report of the entity says what `theirs` says.
    pub(super) fn is_said(
        &self,
        round: &Played<'_>,
        theirs: &View,
        now: (&str, &str),
        redactor: &Redactor,
    ) -> bool {
        let last = self.ours.get(&entity(round, &theirs.identity()));
        let said = |last: &Last| is_same((&last.report, (&last.now, &last.now)), (theirs, now), redactor);
        last.is_some_and(said)
    }

    /// Whether nothing that decides about a report has changed since the product's last one; a resource of
    /// an application that became healthy is looked at all the same.
    pub(super) fn is_unchanged(&self, round: &Played<'_>, about: &ResourceKey) -> bool {
        let watched = &round.watched.object;
        let healthy = |object: &Value| {
            object.pointer("/status/health/status").and_then(Value::as_str) == Some("Healthy")
        };
        let own = ResourceKey {
            api_version: "argoproj.io/v1alpha1".to_owned(),
            kind: "Application".to_owned(),
            namespace: round.watched.event.key.namespace().to_owned(),
            name: round.watched.event.key.name().to_owned(),
        };
        let before = self.ours.get(&entity(round, &own));
        let became_healthy = healthy(watched) && !before.is_some_and(|last| healthy(&last.state));
        let last = self.ours.get(&entity(round, about));
        !became_healthy
            && !round.watched.event.is_deleted()
            && last.is_some_and(|last| last.state == state(round, about))
    }
}

/// Whether two reports say the same, whatever the hour, once secrets are replaced in theirs.
pub(super) fn is_same(ours: (&View, Span<'_>), theirs: (&View, Span<'_>), redactor: &Redactor) -> bool {
    let same = |view: &View| {
        let (ours, theirs) = timeless(ours, (view, theirs.1));
        let mut found = Vec::new();
        diff("", Some(&ours), Some(&theirs), &mut found);
        found.iter().all(is_same_yaml)
    };
    same(theirs.0) || same(&redacted(theirs.0, redactor))
}

/// What the recorded reporter posted when it took the same event up again.
pub(super) fn posted_later(case: &Case, playback: &Playback<'_>, line: &RoundLine) -> HashSet<ResourceKey> {
    let again = playback.rounds.iter().map(|round| round.line).filter(|later| {
        later.n > line.n && later.app == line.app && later.resource_version == line.resource_version
    });
    let numbers: HashSet<u64> = again.flat_map(|later| later.reports.iter().copied()).collect();
    let reports = case.reports.iter().filter(|report| numbers.contains(&report.n));
    reports.map(|report| View::of(&report.data).identity()).collect()
}

fn entity(round: &Played<'_>, about: &ResourceKey) -> Entity {
    (round.watched.event.key.as_str().to_owned(), about.clone())
}

/// What decides whether an entity is worth a report.
fn state(round: &Played<'_>, about: &ResourceKey) -> Value {
    match entry(round, about) {
        Some((revision, entry)) => json!([&*round.watched.event.uid, revision, entry]),
        None => sections(&round.watched.object),
    }
}

/// The latest revision, and the entry of a resource in the watched object.
fn entry(round: &Played<'_>, about: &ResourceKey) -> Option<(Value, Value)> {
    let watched = &round.watched.object;
    let history = watched.pointer("/status/history").and_then(Value::as_array).and_then(|all| all.last());
    let revision = match history {
        Some(last) => last.get("revision"),
        None => watched.pointer("/status/sync/revision"),
    };
    let entries = watched.pointer("/status/resources")?.as_array()?;
    let entry = entries.iter().find(|entry| {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or("");
        let (group, version) = about.api_version.split_once('/').unwrap_or(("", &about.api_version));
        text("kind") == about.kind
            && text("name") == about.name
            && text("namespace") == about.namespace
            && text("group") == group
            && text("version") == version
    })?;
    let mut entry = entry.clone();
    if entry.get("status").and_then(Value::as_str) == Some("Synced")
        && let Some(entry) = entry.as_object_mut()
    {
        entry.entry("health").or_insert_with(|| json!({"status": "Healthy"}));
    }
    // Absent and empty say the same.
    let revision = revision.cloned().unwrap_or_else(|| json!(""));
    Some((revision, entry))
}
