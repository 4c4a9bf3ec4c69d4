//! What an event is worth, before anything is fetched for it.

use pipeline_core::{Cause, Change, Enriched, Event, Filtered, Record, Refetch};

use super::PACE;
use crate::application::{Application, Entry};
use crate::canonical;
use crate::labels;
use crate::{Sections, State};

/// What of an object decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Digests of its sections.
    pub(crate) sections: Sections,
    /// The application is healthy.
    pub(crate) healthy: bool,
    /// Health of resources stands in the tree.
    pub(crate) health_in_tree: bool,
    /// A resource is not in sync: it may drift further, of which nothing in the object tells.
    pub(crate) may_drift: bool,
}

impl Facts {
    pub(super) fn of(app: &Application) -> Self {
        Self {
            sections: canonical::sections(&app.object),
            healthy: app.health.is_healthy(),
            health_in_tree: app.health_in_tree,
            may_drift: app.entries.iter().any(Entry::may_drift),
        }
    }
}

/// What of an application is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scope {
    /// The application itself is reported.
    pub(super) application: bool,
    pub(super) resources: Which,
    /// Nothing of the application differs from what was acknowledged: only a tree can tell of a resource's health
    /// that moved, and only the states of a resource that is not in sync that it drifted further.
    pub(super) quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    None,
    Changed,
    All,
}

impl Scope {
    /// Whether a look at what the object does not tell is worth its calls only if there was none just before.
    pub(super) fn is_paced(self, event: &Event, known: Option<&Record>) -> bool {
        // Of something that is not sure it is not known what the receiver holds: it is reported, whether it changed
        // or not.
        self.quiet && event.cause != Cause::Refetch && !known.is_some_and(Record::is_in_doubt)
    }
}

/// What is to be looked at: deleted, first seen, became healthy, changed, not sure of, incomplete, in this order. `known` is
/// of this life; `ends`: ends of operations are still to be told.
pub(super) fn decide(
    event: &Event,
    known: Option<&Record>,
    found: Facts,
    ends: bool,
) -> Result<Scope, Filtered> {
    let changed = |resources| Ok(Scope { application: true, resources, quiet: false });
    if matches!(event.change, Change::Deleted { .. }) {
        return changed(Which::None);
    }
    let Some((known, before)) = known.and_then(|known| Some((known, State::acknowledged(known)?))) else {
        return changed(Which::Changed);
    };
    if event.cause == Cause::Watch && event.version < known.version {
        // Also where something is not sure: the newer state is on its way, and must not be overtaken.
        return Err(Filtered::Stale);
    }
    if found.healthy && !before.healthy {
        return changed(Which::All);
    }
    if before.sections != found.sections || ends {
        return changed(Which::Changed);
    }
    let refetch = event.cause == Cause::Refetch;
    if known.is_in_doubt() || found.health_in_tree || found.may_drift || (refetch && known.is_incomplete()) {
        let own = known.object();
        let application = own.in_doubt || (refetch && own.incomplete);
        return Ok(Scope { application, resources: Which::Changed, quiet: true });
    }
    Err(Filtered::Unchanged)
}

/// Nothing to report.
pub(super) fn filtered(why: Filtered, known: Option<&Record>) -> Enriched {
    // What is incomplete stays incomplete: a process that has just begun does not wait for it yet.
    let refetch = known.is_some_and(Record::is_incomplete).then_some(Refetch::Incomplete);
    Enriched { refetch, ..Enriched::filtered(why) }
}

/// What comes of an event of whose object the facts are known without reading it; `None` where it must be read.
/// `was_looked_at`: just before, so that a paced call would be skipped.
pub(crate) fn unchanged(
    event: &Event,
    known: Option<&Record>,
    found: Facts,
    was_looked_at: impl FnOnce() -> bool,
) -> Option<Enriched> {
    let known = known.filter(|known| known.uid == event.uid)?;
    if event.is_deleted() || !event.coalesced.is_empty() {
        return None;
    }
    match decide(event, Some(known), found, false) {
        Err(why) => Some(filtered(why, Some(known))),
        Ok(scope) if !scope.application && scope.is_paced(event, Some(known)) && was_looked_at() => {
            Some(Enriched {
                refetch: Some(Refetch::Paced(PACE)),
                ..Enriched::filtered(labels::RECONCILED_ONLY)
            })
        }
        Ok(_) => None,
    }
}
