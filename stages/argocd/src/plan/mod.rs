//! One watch event on its way to reports: what must be fetched, and what is reported of it. Owns no I/O and
//! no clock.
//!
//! takes: an event, what the ledger remembers, and answers - gives: reports, and what to remember of them
//! calls: none; it says what to call as [`Fetch`]s - fails: rejects what is no Application; retries while
//! `managed-resources` or the parent cannot be had

mod build;
mod decide;
mod fetch;
mod needs;
mod resource;
mod settings;
mod stub;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use crate::{OperationEnd, Sections};
use pipeline_core::{Attempt, Digest, Enriched, Event, Fact, Filtered, Reason, Record, StageError, Version};
use pipeline_redact::Redactor;

use crate::application::{Application, Entry, ParentRef};
use crate::canonical;
use crate::changes::Newest;
use crate::responses::{self, Commit, Managed, Manifests, Tree};

pub(crate) use decide::{Facts, unchanged};
use decide::{Scope, Which};

pub use fetch::{AppRef, Fetch, ManifestsKey, Purpose, ResourceRef, Response};
pub use settings::{RawManifests, Settings, TrackingMethod};

/// How long an event waits for what reports cannot do without.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// After how long a tree is read that was not, because it had been read just before.
const PACE: Duration = Duration::from_secs(10);

/// What became of an event at first sight.
#[derive(Debug)]
pub enum Begun {
    /// Nothing is to be fetched: filtered, or a stub.
    Done(Enriched),
    /// Fetch [`FetchPlan::fetches`] until there are none, then [`FetchPlan::finish`].
    Go(Box<FetchPlan>),
}

/// One event being turned into reports. Owns all that it needs, so that it can be worked on in any thread.
#[derive(Debug)]
pub struct FetchPlan {
    event: Event,
    /// What is remembered of this life of the application.
    known: Option<Record>,
    /// What is remembered of an earlier life, whose deletion nobody saw.
    earlier: Option<Record>,
    attempt: Attempt,
    settings: Settings,
    redactor: Redactor,
    app: Application,
    /// The application as each operation left it whose end is still to be told, oldest first, with the digest of that end.
    ended: Vec<(Application, Digest)>,
    sections: Sections,
    /// Of what resources were deployed from.
    deployed: Digest,
    parent: Option<ParentRef>,
    scope: Scope,
    responses: HashMap<Fetch, Parsed>,
    learned: Option<RawManifests>,
    changed_by: ChangedBy,
}

/// What is known of the commits that changed the application.
#[derive(Debug)]
enum ChangedBy {
    NotAsked,
    /// Asked, and to be asked again later.
    NotKnown,
    Known(Newest),
}

/// Whether one state came before another; of an unknown version nothing is known.
fn is_older(version: Version, than: Version) -> bool {
    version != Version(0) && version < than
}

/// Ends of operations that were coalesced away and are still to be told, oldest first, with their digests: what
/// [`Record::unreported`] says, but for the one that the newest state shows.
fn untold(event: &Event, known: Option<&Record>, shown: Option<Digest>) -> Vec<(OperationEnd, Digest)> {
    let facts = Record::unreported(known, &event.coalesced).filter(|fact| Some(fact.id) != shown);
    let mut ends: Vec<_> = facts.filter_map(|fact| Some((OperationEnd::of(fact)?, fact.id))).collect();
    // Of what was folded together twice the order is lost; these times are written alike.
    ends.sort_by(|(a, _), (b, _)| a.finished_at.cmp(&b.finished_at));
    ends
}

/// Facts that were to be told with an event and say nothing that this version can read: they are lost.
fn unreadable(event: &Event) -> impl Iterator<Item = &Fact> {
    event.coalesced.iter().filter(|fact| OperationEnd::of(fact).is_none())
}

/// The operation that an application's newest state shows.
fn shown(app: &Application) -> Option<Digest> {
    app.operation.as_ref().map(|operation| operation.digest())
}

/// A response, read.
#[derive(Debug)]
enum Parsed {
    Managed(Managed),
    Tree(Tree),
    Manifests(Manifests),
    Live(String),
    Commit(Commit),
    Parent(Box<Application>),
    NotFound,
    GenerationError,
    NotCompared,
    NotHeld,
    Failed(Reason),
    Skipped,
}

impl FetchPlan {
    /// Decides what of `event` is worth reporting.
    ///
    /// # Errors
    /// [`StageError::Reject`] when the object is not a JSON object with a name.
    pub fn begin(
        event: &Event,
        known: Option<&Record>,
        attempt: &Attempt,
        settings: &Settings,
        redactor: &Redactor,
    ) -> Result<Begun, StageError> {
        Self::begin_noting(event, known, attempt, settings, redactor, &mut None)
    }

    /// The same, and notes what was found in the object, if it was read.
    ///
    /// # Errors
    /// As [`FetchPlan::begin`].
    pub(crate) fn begin_noting(
        event: &Event,
        known: Option<&Record>,
        attempt: &Attempt,
        settings: &Settings,
        redactor: &Redactor,
        found: &mut Option<Facts>,
    ) -> Result<Begun, StageError> {
        for fact in unreadable(event) {
            let (id, bytes) = (fact.id.0, fact.body.len());
            tracing::warn!(key = %event.key, id = format_args!("{id:016x}"), bytes, "a fact cannot be read and is not told");
        }
        let (known, earlier) = match known {
            Some(record) if record.uid == event.uid => (Some(record), None),
            other => (None, other),
        };
        if event.is_deleted() && earlier.is_some_and(|later| is_older(event.version, later.version)) {
            // The record is of a later life, which the end of an earlier one does not end. What is there is
            // there, whatever its version: a cluster that was built anew counts from the start.
            return Ok(Begun::Done(Enriched::filtered(Filtered::Stale)));
        }
        let gone = || {
            // Of a life that came and went before it could be read, that it is over is all that can be told.
            let unseen = || (!event.uid.is_empty()).then(|| Record::new(event.uid.clone()));
            let remembered = known.cloned().or_else(unseen);
            let departed = |record| stub::departed(event, record, attempt, settings, redactor);
            let former = earlier.map(|earlier| stub::end(event, earlier, attempt, settings));
            let reports: Vec<_> = former.into_iter().chain(remembered.iter().flat_map(departed)).collect();
            let filtered = reports.is_empty().then_some(Filtered::NeverReported);
            Ok(Begun::Done(Enriched { reports, settle: None, filtered, refetch: None }))
        };
        let Some(body) = event.body() else { return gone() };
        let app = match Application::read(body, redactor) {
            Ok(app) => app,
            // That it is gone is certain, whatever it was.
            Err(_) if event.is_deleted() => return gone(),
            Err(malformed) => return Err(StageError::reject(Reason::Malformed, malformed)),
        };
        let sections = canonical::sections(&app.object);
        let parent = app.parent(settings);
        let facts = Facts {
            sections,
            healthy: app.health.is_healthy(),
            health_in_tree: app.health_in_tree,
            may_drift: app.entries.iter().any(Entry::may_drift),
        };
        *found = Some(facts);
        let ends = untold(event, known, shown(&app));
        let scope = match decide::decide(event, known, facts, !ends.is_empty()) {
            Ok(scope) => scope,
            Err(why) => return Ok(Begun::Done(decide::filtered(why, known))),
        };
        // They are reported with the application alone.
        let ends = ends.iter().filter(|_| scope.application);
        let ended = ends.map(|(end, digest)| (app.with_operation_end(end, redactor), *digest)).collect();
        Ok(Begun::Go(Box::new(Self {
            event: event.clone(),
            known: known.cloned(),
            earlier: earlier.cloned(),
            attempt: attempt.clone(),
            settings: settings.clone(),
            redactor: redactor.clone(),
            deployed: app.deployed_digest(),
            app,
            ended,
            sections,
            parent,
            scope,
            responses: HashMap::new(),
            learned: None,
            changed_by: ChangedBy::NotAsked,
        })))
    }

    /// With what it is to be asked which commits changed the application, if that is to be reported and nothing notes them; JSON.
    #[must_use]
    pub fn changes_question(&self) -> Option<String> {
        if !self.scope.application || self.event.is_deleted() {
            return None;
        }
        self.app.changes_question()
    }

    /// Takes what was answered of that; `None` where it is to be asked again later. Before the first of [`FetchPlan::fetches`].
    pub fn changed_by(&mut self, newest: Option<Newest>) {
        self.changed_by = newest.map_or(ChangedBy::NotKnown, ChangedBy::Known);
    }

    /// What must still be fetched; all of one list may be fetched at the same time. Empty: ready.
    #[must_use]
    pub fn fetches(&self) -> Vec<Fetch> {
        let mut fetches = self.needs();
        let mut seen = std::collections::HashSet::new();
        fetches.retain(|fetch| !self.responses.contains_key(fetch) && seen.insert(fetch.clone()));
        fetches
    }

    /// Takes what came of one fetch. Responses may come in any order; one to what was not fetched changes nothing.
    pub fn respond(&mut self, fetch: &Fetch, response: Response) {
        let parsed = match response {
            Response::Body(body) => self.read(fetch, &body).unwrap_or(Parsed::Failed(Reason::Malformed)),
            Response::NotFound => Parsed::NotFound,
            Response::GenerationError => Parsed::GenerationError,
            Response::NotCompared => Parsed::NotCompared,
            Response::NotHeld => Parsed::NotHeld,
            Response::Failed(reason) => Parsed::Failed(reason),
            Response::Skipped => Parsed::Skipped,
        };
        if let Parsed::Manifests(manifests) = &parsed {
            self.learned = self.learned.or(manifests.shape);
        }
        self.responses.insert(fetch.clone(), parsed);
    }

    fn read(&self, fetch: &Fetch, body: &[u8]) -> Result<Parsed, responses::NotReadable> {
        Ok(match fetch {
            Fetch::ManagedResources { .. } => {
                let changed = self.changed();
                let wanted = changed.iter().map(|(entry, _)| &entry.resource);
                let drifting: Vec<_> = self.drifting().map(|entry| &entry.resource).collect();
                let mut managed = Managed::read(body, wanted.chain(drifting.iter().copied()))?;
                managed.digest(drifting.into_iter(), &self.redactor);
                Parsed::Managed(managed)
            }
            Fetch::ResourceTree { .. } => Parsed::Tree(Tree::read(body)?),
            Fetch::Manifests { .. } => Parsed::Manifests(Manifests::read(body)?),
            Fetch::Resource { .. } => Parsed::Live(responses::live(body)?),
            Fetch::RevisionMetadata { .. } => {
                let commit = Commit::read(body)?;
                Parsed::Commit(Commit {
                    author: self.redactor.text(&commit.author).into_owned(),
                    message: self.redactor.text(&commit.message).into_owned(),
                    ..commit
                })
            }
            Fetch::Parent { .. } => Parsed::Parent(Box::new(
                Application::read(body, &self.redactor).map_err(|_| responses::NotReadable)?,
            )),
        })
    }

    /// What the responses told of `manifests`, if anything: to be kept in [`Settings`].
    #[must_use]
    pub fn learned(&self) -> Option<RawManifests> {
        self.learned
    }

    /// Builds the reports, and what is remembered when they are acknowledged.
    ///
    /// # Errors
    /// [`StageError::Retry`] when `managed-resources` or the parent failed in a way that may pass, and the event has been
    /// tried for less than 5 minutes.
    pub fn finish(self) -> Result<Enriched, StageError> {
        if let Some((act, reason)) = self.in_want()
            && self.attempt.trying_for < PATIENCE
        {
            return Err(StageError::retry(reason, act));
        }
        Ok(self.build())
    }
}
