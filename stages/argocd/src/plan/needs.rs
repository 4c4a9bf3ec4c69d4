//! Which calls an event needs, in the order of need.

use std::sync::Arc;

use pipeline_core::{Cause, Digest, EntityRow, Hasher, Reason};

use super::{ChangedBy, Fetch, FetchPlan, ManifestsKey, PATIENCE, Parsed, Purpose, RawManifests, Which};
use crate::application::{Application, Entry, Health};
use crate::object::{Marks, Revision};
use crate::responses::{Commit, Manifests, Tree};
use crate::sources::SourcesAt;

/// So many states of an application are asked for one by one for an event, whose report of the application waits for them; others are
/// asked for when it is looked at again.
pub(super) const MOST_BY_THEMSELVES: usize = 500;

/// What stands in the way of a report that must not be made without it.
type Want = (&'static str, Reason);

impl FetchPlan {
    /// Every call that the answers so far show to be needed, answered or not.
    pub(super) fn needs(&self) -> Vec<Fetch> {
        if self.in_want().is_some() && self.attempt.trying_for < PATIENCE {
            return Vec::new();
        }
        let mut fetches = Vec::new();
        fetches.extend(self.parent_fetch().filter(|_| self.scope.application));
        if let Some(parent) = self.parent_app().filter(|_| self.scope.application) {
            fetches.push(self.desired_fetch(parent));
            fetches.extend(commit_fetches(parent, &parent.reported_revisions()));
        }
        fetches.extend(self.tree_fetch());
        let changed = self.changed();
        self.need_states(&changed, &mut fetches);
        if !self.event.is_deleted() && (self.scope.application || !changed.is_empty()) {
            for app in [&self.app].into_iter().chain(self.ended.iter().map(|(app, _)| app)) {
                fetches.extend(commit_fetches(app, &app.reported_revisions()));
                fetches.extend(commit_fetches(app, &self.change_revisions(app)));
            }
        }
        // The first answer of `manifests` may tell that there are no versions to ask for.
        let untold = self.raw_manifests() == RawManifests::Unknown
            && fetches
                .iter()
                .any(|fetch| matches!(fetch, Fetch::Manifests { .. }) && !self.responses.contains_key(fetch));
        if !untold {
            fetches.extend(self.versions_fetch());
        }
        fetches
    }

    fn need_states(&self, changed: &[(&Entry, Option<Health>)], fetches: &mut Vec<Fetch>) {
        if changed.iter().any(|(entry, _)| !entry.hook) || (self.tells() && self.drifting().next().is_some())
        {
            fetches.push(self.managed_fetch());
        }
        if changed.is_empty() {
            return;
        }
        let is_by_itself = |entry: &Entry| entry.hook || self.are_states_too_large();
        if self.raw_manifests() != RawManifests::Absent
            || changed.iter().any(|(entry, _)| is_by_itself(entry))
        {
            fetches.push(self.desired_fetch(&self.app));
        }
        let lacking = changed.iter().filter(|(entry, _)| is_by_itself(entry) || self.is_unmanaged(entry));
        let mut lacking: Vec<_> = lacking.collect();
        if self.are_states_too_large() {
            lacking.sort_by_cached_key(|(entry, health)| self.is_told(entry, health.as_ref()));
            lacking.truncate(MOST_BY_THEMSELVES);
        }
        fetches.extend(lacking.into_iter().map(|(entry, _)| self.resource_fetch(entry)));
    }

    /// Whether the receiver holds it as it is, so that it waits for what is new.
    fn is_told(&self, entry: &Entry, health: Option<&Health>) -> bool {
        let row = self.row(entry).filter(|row| !row.in_doubt);
        row.is_some_and(|row| self.decision(entry, health) == Some(row.decision))
    }

    /// `managed-resources` was answered, and lacks the entry.
    fn is_unmanaged(&self, entry: &Entry) -> bool {
        matches!(self.managed_response(), Some(Parsed::Managed(managed)) if managed.get(&entry.resource).is_none())
    }

    /// The answer of `managed-resources` is too large: live states are asked for one by one, and `manifests` says what is desired.
    pub(super) fn are_states_too_large(&self) -> bool {
        matches!(self.managed_response(), Some(Parsed::Failed(Reason::TooLarge)))
    }

    /// Where a tree is read too, that is what is paced.
    fn managed_fetch(&self) -> Fetch {
        Fetch::ManagedResources {
            app: self.app.api_name(),
            paced: self.is_paced() && !self.app.health_in_tree,
        }
    }

    pub(super) fn managed_response(&self) -> Option<&Parsed> {
        self.responses.get(&self.managed_fetch())
    }

    fn is_paced(&self) -> bool {
        self.scope.is_paced(&self.event, self.known.as_ref())
    }

    pub(super) fn resource_fetch(&self, entry: &Entry) -> Fetch {
        Fetch::Resource { app: self.app.api_name(), resource: entry.resource.clone() }
    }

    fn parent_fetch(&self) -> Option<Fetch> {
        let parent = self.parent.as_ref()?;
        Some(Fetch::Parent { namespace: parent.namespace.clone(), name: parent.name.clone() })
    }

    /// The parent, where it could be read.
    pub(super) fn parent_app(&self) -> Option<&Application> {
        match self.responses.get(&self.parent_fetch()?)? {
            Parsed::Parent(parent) => Some(parent),
            _ => None,
        }
    }

    /// What could not be had, though reports must wait for it.
    pub(super) fn in_want(&self) -> Option<Want> {
        self.lacking().find(|(_, reason)| is_waited_for(*reason))
    }

    /// What could not be had of what reports stand on, whether it is waited for or not.
    pub(super) fn lacking(&self) -> impl Iterator<Item = Want> {
        let states = failed(self.managed_response(), "read managed resources");
        // Where nothing else changed there is no report that waits: what may have drifted is looked at again later.
        let states = states.filter(|_| !self.scope.quiet || !self.changed().is_empty());
        // They are had one by one.
        let states = states.filter(|(_, reason)| *reason != Reason::TooLarge);
        let parent = self.parent_fetch().and_then(|fetch| self.responses.get(&fetch));
        states.into_iter().chain(failed(parent, "read parent application"))
    }

    /// Where health stands in the tree, always; else for what is degraded below an unhealthy resource.
    fn tree_fetch(&self) -> Option<Fetch> {
        if self.scope.resources == Which::None {
            return None;
        }
        let paced = self.is_paced();
        let unhealthy =
            || self.app.entries.iter().filter_map(health_of_entry).any(|health| !health.is_healthy());
        // A look at what may have drifted needs no tree before there is something to report.
        let is_wanted = || unhealthy() && (!paced || !self.changed().is_empty());
        (self.app.health_in_tree || is_wanted()).then(|| Fetch::ResourceTree {
            app: self.app.api_name(),
            paced: paced && self.app.health_in_tree,
        })
    }

    pub(super) fn tree(&self) -> Option<&Tree> {
        match self.tree_response()? {
            Parsed::Tree(tree) => Some(tree),
            _ => None,
        }
    }

    pub(super) fn tree_response(&self) -> Option<&Parsed> {
        self.responses.get(&self.tree_fetch()?)
    }

    /// The health of an entry; `None` where it has none.
    ///
    /// With health in the tree, a node without health is healthy once its entry is synced (it has none to
    /// have), missing where the cluster does not hold it, and an entry without a node is unknown.
    pub(super) fn health(&self, entry: &Entry) -> Option<Health> {
        if !self.app.health_in_tree {
            return health_of_entry(entry);
        }
        let Some(node) = self.tree().and_then(|tree| tree.get(&entry.resource)) else {
            return Some(Health::of("Unknown"));
        };
        match &node.health {
            Some(health) => Some(Health {
                status: health.status.clone(),
                message: self.redactor.text(&health.message).into_owned(),
            }),
            None if entry.status == "Synced" => Some(Health::of("Healthy")),
            None => (!entry.hook && node.is_missing()).then(|| Health::of("Missing")),
        }
    }

    /// Whether the health of an entry, which was told before, could not be read this once. Where it could not be read the next time
    /// either, it is unknown.
    pub(super) fn is_health_lacking_once(&self, entry: &Entry) -> bool {
        let may_pass = match self.tree_response() {
            Some(&Parsed::Failed(reason)) => is_waited_for(reason),
            Some(Parsed::NotHeld) => true,
            _ => false,
        };
        let is_well_known = |row: &EntityRow| !row.incomplete && !row.in_doubt;
        may_pass && self.app.health_in_tree && self.row(entry).is_some_and(is_well_known)
    }

    /// Of what decides whether a resource is worth a report; `None` while the states of one that is not in sync are not
    /// known.
    fn decision(&self, entry: &Entry, health: Option<&Health>) -> Option<Digest> {
        let states = if entry.may_drift() { self.states_of(entry)? } else { Digest::NONE };
        Some(self.decision_with(entry, health, states))
    }

    /// The same for what is reported whether its states are known or not.
    pub(super) fn decision_of_report(&self, entry: &Entry, health: Option<&Health>) -> Digest {
        self.decision(entry, health).unwrap_or_else(|| self.decision_with(entry, health, Digest::NONE))
    }

    fn decision_with(&self, entry: &Entry, health: Option<&Health>, states: Digest) -> Digest {
        let mut hasher = Hasher::default();
        for part in [self.deployed, entry.digest, states] {
            hasher.write(&part.0.to_be_bytes());
        }
        for part in health.iter().flat_map(|health| [&health.status, &health.message]) {
            hasher.write(part.as_bytes());
        }
        hasher.finish()
    }

    /// Of the live and the desired state of an entry, where they were had. What Argo CD does not know is about to go: what
    /// changed of it is told, with nothing.
    fn states_of(&self, entry: &Entry) -> Option<Digest> {
        match self.managed_response()? {
            Parsed::Managed(managed) => {
                Some(managed.get(&entry.resource).map_or(Digest::NONE, |state| state.digest))
            }
            Parsed::NotFound => (!self.scope.quiet).then_some(Digest::NONE),
            // Of what is only had one by one nothing tells that it drifted further, and what else changed is told.
            Parsed::Failed(Reason::TooLarge) => Some(Digest::NONE),
            _ => None,
        }
    }

    /// The entries whose states decide whether they are reported.
    pub(super) fn drifting(&self) -> impl Iterator<Item = &Entry> {
        self.app.entries.iter().filter(|entry| entry.may_drift())
    }

    /// It is not known whether anything drifted further, and might be another time.
    pub(super) fn is_untold_of_drift(&self) -> bool {
        matches!(self.managed_response(), Some(Parsed::Failed(_) | Parsed::NotHeld))
            && !self.are_states_too_large()
            && self.drifting().next().is_some()
    }

    /// Whether what is known of health tells what changed; not while the tree is still out.
    fn tells(&self) -> bool {
        if self.scope.resources == Which::None {
            return false;
        }
        if !self.app.health_in_tree {
            return true;
        }
        match self.tree_response() {
            None | Some(Parsed::Skipped) => false,
            // Nothing tells that a health moved; the tree is incomplete.
            Some(Parsed::Failed(_) | Parsed::NotCompared | Parsed::NotHeld) => !self.scope.quiet,
            Some(_) => true,
        }
    }

    /// The entries that are to be reported, with their health; none while the tree is still out, and of those that are
    /// not in sync none that was reported before while their states are.
    pub(super) fn changed(&self) -> Vec<(&Entry, Option<Health>)> {
        if !self.tells() {
            return Vec::new();
        }
        let entries = self.app.entries.iter().filter(|entry| !entry.is_application());
        let with_health = entries.map(|entry| (entry, self.health(entry)));
        with_health.filter(|(entry, health)| self.is_changed(entry, health.as_ref())).collect()
    }

    fn is_changed(&self, entry: &Entry, health: Option<&Health>) -> bool {
        let row = self.row(entry);
        match row {
            _ if self.scope.resources == Which::All => true,
            None => true,
            Some(row) => {
                let refetch = row.incomplete && self.event.cause == Cause::Refetch;
                let differs = |decision| row.decision != decision;
                refetch || row.in_doubt || self.decision(entry, health).is_some_and(differs)
            }
        }
    }

    /// What is remembered of an entry.
    pub(super) fn row(&self, entry: &Entry) -> Option<&EntityRow> {
        self.known.as_ref()?.entity(entry.id)
    }

    pub(super) fn raw_manifests(&self) -> RawManifests {
        // Where Git says it, it does not matter whether Argo CD does.
        let known = self.learned.unwrap_or(self.settings.raw_manifests);
        if self.asks_git(&self.app) { RawManifests::Served } else { known }
    }

    fn versions_fetch(&self) -> Option<Fetch> {
        let wanted = self.scope.application && !self.event.is_deleted();
        if !wanted || self.raw_manifests() == RawManifests::Absent {
            return None;
        }
        let revision = self.app.operation.as_ref()?.result_revision.clone()?;
        let single = !self.app.multi_source && !revision.is_empty();
        let revisions = if single { vec![revision.clone()] } else { self.app.compared_revisions() };
        let sources = self.sources_at(&self.app, &revisions);
        Some(Fetch::Manifests {
            app: self.app.api_name(),
            revision: single.then_some(revision),
            purpose: Purpose::Versions,
            cache: manifests_key(&self.app, revisions),
            fresh: self.app.refresh_hard,
            sources,
        })
    }

    /// What Git is asked of an application at these revisions, if it is.
    fn sources_at(&self, app: &Application, revisions: &[String]) -> Option<Arc<SourcesAt>> {
        if self.asks_git(app) { app.sources_at(revisions).map(Arc::new) } else { None }
    }

    pub(super) fn asks_git(&self, app: &Application) -> bool {
        self.settings.sources.of(app.repositories())
    }

    fn desired_fetch(&self, app: &Application) -> Fetch {
        let revisions = app.compared_revisions();
        let revision = if app.multi_source { None } else { revisions.first().cloned() };
        let sources = self.sources_at(app, &revisions);
        Fetch::Manifests {
            app: app.api_name(),
            revision,
            purpose: Purpose::Desired,
            cache: manifests_key(app, revisions),
            fresh: app.refresh_hard,
            sources,
        }
    }

    /// What `manifests` said of versions.
    pub(super) fn versions(&self) -> Option<&Parsed> {
        self.responses.get(&self.versions_fetch()?)
    }

    /// What `manifests` said of the desired state of an application's resources.
    pub(super) fn desired(&self, app: &Application) -> Option<&Parsed> {
        self.responses.get(&self.desired_fetch(app))
    }

    /// The commits of an application; all or none.
    pub(super) fn marks(&self, app: &Application) -> Marks {
        Marks {
            synced: self.commits(app, &app.reported_revisions()),
            changed: self.commits(app, &self.change_revisions(app)),
            first: app.first_source(),
        }
    }

    /// The revisions that changed an application: as something notes them with it, else as was answered of this event's own.
    fn change_revisions(&self, app: &Application) -> Vec<String> {
        let noted = app.change_revisions();
        if !noted.is_empty() || app.uid != self.app.uid {
            return noted;
        }
        match &self.changed_by {
            ChangedBy::Known(newest) => app.changes_of(newest).unwrap_or_default(),
            ChangedBy::NotAsked | ChangedBy::NotKnown => Vec::new(),
        }
    }

    fn commits(&self, app: &Application, revisions: &[String]) -> Option<Vec<Revision>> {
        if revisions.is_empty() {
            return None;
        }
        let commit = |(index, revision): (usize, &String)| match commit_fetch(app, index, revision) {
            None => (!has_commits(app, index)).then(|| (revision.clone(), None)),
            Some(fetch) => match self.responses.get(&fetch)? {
                Parsed::Commit(commit) => Some((revision.clone(), Some(Commit::clone(commit)))),
                _ => None,
            },
        };
        revisions.iter().enumerate().map(commit).collect()
    }

    /// Whether a look-up of a commit failed, so that it is to be tried again.
    pub(super) fn lacks_commits(&self, app: &Application) -> bool {
        let revisions = app.reported_revisions().into_iter().enumerate();
        let all = revisions.chain(self.change_revisions(app).into_iter().enumerate());
        all.filter_map(|(index, revision)| commit_fetch(app, index, &revision))
            .any(|fetch| matches!(self.responses.get(&fetch), Some(Parsed::Failed(_))))
    }
}

impl Parsed {
    pub(super) fn manifests(&self) -> Option<&Manifests> {
        match self {
            Self::Manifests(manifests) => Some(manifests),
            _ => None,
        }
    }
}

fn failed(parsed: Option<&Parsed>, act: &'static str) -> Option<Want> {
    match parsed? {
        &Parsed::Failed(reason) => Some((act, reason)),
        _ => None,
    }
}

/// What Argo CD refuses of an application is the same again until somebody changes something, as where its project is gone or does
/// not allow it, where the account has no right to the project, or where the application is another Argo CD's; and so is an answer
/// that is too large.
fn is_waited_for(reason: Reason) -> bool {
    !matches!(reason, Reason::Refused | Reason::Forbidden | Reason::TooLarge)
}

fn health_of_entry(entry: &Entry) -> Option<Health> {
    entry.health.clone().or_else(|| (entry.status == "Synced").then(|| Health::of("Healthy")))
}

fn manifests_key(app: &Application, revisions: Vec<String>) -> Option<ManifestsKey> {
    (!revisions.is_empty() && !app.uid.is_empty()).then(|| ManifestsKey {
        uid: app.uid.clone(),
        sources: app.sources_digest(),
        revisions,
    })
}

fn has_commits(app: &Application, index: usize) -> bool {
    app.source(index).is_none_or(|source| source.has_commits)
}

fn commit_fetches(app: &Application, revisions: &[String]) -> Vec<Fetch> {
    revisions.iter().enumerate().filter_map(|(index, revision)| commit_fetch(app, index, revision)).collect()
}

/// Not every source has commits, and an empty revision names none.
fn commit_fetch(app: &Application, index: usize, revision: &str) -> Option<Fetch> {
    if revision.is_empty() || !has_commits(app, index) {
        return None;
    }
    Some(Fetch::RevisionMetadata {
        app: app.api_name(),
        repo_url: app.source(index).map_or_else(String::new, |source| source.repo_url.clone()),
        revision: revision.to_owned(),
        source_index: index,
    })
}
