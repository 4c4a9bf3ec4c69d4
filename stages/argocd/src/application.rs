//! An Application as far as reports need it, read leniently: a field of the wrong type counts as absent.

mod changes_question;
mod read;

use std::borrow::Cow;

use crate::OperationEnd;
use pipeline_core::{Digest, EntityId, Hasher};
use pipeline_redact::Redactor;
use serde::Deserialize;
use serde_json::{Map, Value};
use stages_client::synced_sources;

use crate::canonical;
use crate::changes::Newest;
use crate::operation_end;
use crate::plan::{AppRef, ResourceRef, Settings, TrackingMethod};
use crate::sources::{SourceAt, SourcesAt};

const TRACKING_ANNOTATION: &str = "argocd.argoproj.io/tracking-id";
/// Which Argo CD wrote the tracking id, where several share a cluster.
const INSTALLATION_ANNOTATION: &str = "argocd.argoproj.io/installation-id";
const REFRESH_ANNOTATION: &str = "argocd.argoproj.io/refresh";
/// What the role `change-revision`, or `argocd-monorepo-controller`, notes on an application: a list, and of its first alone.
const CHANGE_ANNOTATIONS: [&str; 2] =
    ["mrp-controller.argoproj.io/change-revisions", "mrp-controller.argoproj.io/change-revision"];
/// The revisions that this was noted of.
const GIT_ANNOTATIONS: [&str; 2] =
    ["mrp-controller.argoproj.io/git-revisions", "mrp-controller.argoproj.io/git-revision"];

/// Health as Argo CD assesses it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Health {
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) message: String,
}

impl Health {
    pub(crate) fn of(status: &str) -> Self {
        Self { status: status.to_owned(), message: String::new() }
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.status == "Healthy"
    }
}

/// The application that tracks this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParentRef {
    /// Namespace, empty when the tracking value names none.
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
}

/// One entry of `status.resources[]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: EntityId,
    pub(crate) resource: ResourceRef,
    /// `Synced`, `OutOfSync`, `Unknown`; empty for a hook.
    pub(crate) status: String,
    /// As the entry says it.
    pub(crate) health: Option<Health>,
    pub(crate) hook: bool,
    pub(crate) requires_pruning: bool,
    /// Of everything in the entry but its health and what `id` is of.
    pub(crate) digest: Digest,
}

impl Entry {
    /// Nested applications are left to their own events.
    pub(crate) fn is_application(&self) -> bool {
        let resource = &self.resource;
        resource.group == "argoproj.io" && resource.version == "v1alpha1" && resource.kind == "Application"
    }

    /// What lives is not what is wanted: both may change, and the entry does not.
    pub(crate) fn may_drift(&self) -> bool {
        self.status == "OutOfSync" && !self.hook && !self.is_application()
    }
}

/// One of the sources of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) repo_url: String,
    /// Names other sources' values; has no manifests of its own.
    pub(crate) is_ref: bool,
    /// Its revisions are commits: see [`stages_client::has_commits`].
    pub(crate) has_commits: bool,
}

/// The revisions of an operation's `sync`, or of `status.sync`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Revisions {
    pub(crate) revision: String,
    pub(crate) revisions: Vec<String>,
    pub(crate) change_revision: String,
    pub(crate) change_revisions: Vec<String>,
}

impl Revisions {
    /// One per source; perhaps one empty text.
    pub(crate) fn synced(&self) -> Vec<String> {
        if self.revisions.is_empty() { vec![self.revision.clone()] } else { self.revisions.clone() }
    }

    fn changed(&self) -> Vec<String> {
        match (self.change_revisions.is_empty(), self.change_revision.is_empty()) {
            (false, _) => self.change_revisions.clone(),
            (true, false) => vec![self.change_revision.clone()],
            (true, true) => Vec::new(),
        }
    }
}

/// One resource's outcome in an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SyncedResource {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) message: String,
    pub(crate) hook_phase: String,
    pub(crate) sync_phase: String,
}

/// `status.operationState`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) phase: String,
    pub(crate) message: String,
    pub(crate) started_at: String,
    /// Empty while it runs.
    pub(crate) finished_at: String,
    pub(crate) sync: Option<Revisions>,
    /// The revision of `syncResult`, where there is one; it may be empty.
    pub(crate) result_revision: Option<String>,
    /// All revisions of `syncResult`, where there is one.
    pub(crate) result_revisions: Option<Vec<String>>,
    /// `syncResult.resources`, where there are some.
    pub(crate) results: Option<Vec<SyncedResource>>,
}

impl Operation {
    /// As [`OperationEnd::digest`].
    pub(crate) fn digest(&self) -> Digest {
        operation_end::digest(&self.started_at, &self.finished_at, &self.phase)
    }
}

/// One of `status.conditions[]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) last_transition_time: String,
}

/// An Application: the object, redacted, and what was read of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Application {
    pub(crate) object: Map<String, Value>,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) project: String,
    /// `None` where the application has none.
    pub(crate) labels: Option<Map<String, Value>>,
    pub(crate) deleting: bool,
    pub(crate) refresh_hard: bool,
    pub(crate) server: String,
    pub(crate) sources: Vec<Source>,
    pub(crate) multi_source: bool,
    pub(crate) sync_status: String,
    pub(crate) synced: Option<Revisions>,
    pub(crate) compared_repo_url: String,
    pub(crate) health: Health,
    pub(crate) entries: Vec<Entry>,
    /// Health stands in the tree, not in the entries.
    pub(crate) health_in_tree: bool,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) operation: Option<Operation>,
    /// `operation.sync`: asked for, not begun.
    pub(crate) requested: Option<Revisions>,
    /// Revision and id of the last of `status.history[]`.
    pub(crate) last_history: Option<(String, i64)>,
}

impl Application {
    /// The same application with another operation's end in place of its own. The object is redacted, so what
    /// is put into it is redacted too, wherever it comes from.
    pub(crate) fn with_operation_end(&self, end: &OperationEnd, redactor: &Redactor) -> Self {
        let text = |text: &str| Value::String(redactor.text(text).into_owned());
        let mut object = self.object.clone();
        let state = child(child(&mut object, "status"), "operationState");
        // What else stands there is of the operation that it shows.
        if state.get("startedAt").and_then(Value::as_str) != Some(&*end.started_at) {
            state.clear();
            state.insert("operation".to_owned(), end.operation(text));
        }
        for (name, value) in [
            ("phase", &end.phase),
            ("startedAt", &end.started_at),
            ("finishedAt", &end.finished_at),
            ("message", &end.message),
        ] {
            state.insert(name.to_owned(), text(value));
        }
        let result = child(state, "syncResult");
        result.insert("revision".to_owned(), text(&end.revision));
        if !end.revisions.is_empty() {
            result.insert("revisions".to_owned(), end.revisions.iter().map(|one| text(one)).collect());
        }
        // Its name did not change, so it is still an application.
        Self::of(object).unwrap_or_else(|_| self.clone())
    }

    /// How Argo CD's API names it.
    pub(crate) fn api_name(&self) -> AppRef {
        AppRef { name: self.name.clone(), namespace: self.namespace.clone(), project: self.project.clone() }
    }

    /// The application that tracks this one, if it is a child application. What another Argo CD tracks has no parent here, though an
    /// application of the same name may be here.
    pub(crate) fn parent(&self, settings: &Settings) -> Option<ParentRef> {
        let metadata = map(self.object.get("metadata"))?;
        let value = match settings.tracking_method {
            TrackingMethod::Label => text(map(metadata.get("labels"))?.get(&settings.instance_label_key)),
            TrackingMethod::Annotation | TrackingMethod::AnnotationAndLabel => {
                let annotations = map(metadata.get("annotations"))?;
                let installation = text(annotations.get(INSTALLATION_ANNOTATION));
                if settings.installation_id.as_ref().is_some_and(|own| own != installation) {
                    return None;
                }
                tracked_by(text(annotations.get(TRACKING_ANNOTATION)))?
            }
        };
        if value.is_empty() {
            return None;
        }
        let (namespace, name) = value.split_once('_').unwrap_or(("", value));
        Some(ParentRef { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// The revisions that the operation brought, where it says: one, and those of several sources.
    pub(crate) fn brought(&self) -> Option<(&str, &[String])> {
        let operation = self.operation.as_ref()?;
        Some((
            operation.result_revision.as_deref()?,
            operation.result_revisions.as_deref().unwrap_or_default(),
        ))
    }

    /// Whose `revisions` a report's commits are taken from, one per source.
    pub(crate) fn reported_revisions(&self) -> Vec<String> {
        if !self.was_compared() {
            return Vec::new();
        }
        self.operation
            .as_ref()
            .and_then(|operation| operation.sync.as_ref())
            .or(self.requested.as_ref())
            .or(self.synced.as_ref())
            .map(Revisions::synced)
            .unwrap_or_default()
    }

    /// The revisions that changed this application, where something noted them: in its operation, or in its annotations, of
    /// the very revisions that are reported.
    pub(crate) fn change_revisions(&self) -> Vec<String> {
        if !self.was_compared() {
            return Vec::new();
        }
        let operation = self.operation.as_ref().and_then(|operation| operation.sync.as_ref());
        let changed = operation.or(self.requested.as_ref()).map(Revisions::changed).unwrap_or_default();
        if changed.is_empty() { self.annotated_changes().unwrap_or_default() } else { changed }
    }

    fn annotated_changes(&self) -> Option<Vec<String>> {
        let annotations = map(map(self.object.get("metadata"))?.get("annotations"))?;
        let read = |[list, first]: [&str; 2]| {
            let list = text(annotations.get(list));
            let first = || Some(text(annotations.get(first))).filter(|of| !of.is_empty());
            match list {
                "" => Some(vec![first()?.to_owned()]),
                list => serde_json::from_str::<Vec<String>>(list).ok(),
            }
        };
        let (revisions, change_revisions) = (read(GIT_ANNOTATIONS)?, read(CHANGE_ANNOTATIONS)?);
        self.changes_of(&Newest { revisions, change_revisions })
    }

    /// The commits that changed it, where they are of the revisions that are reported, or of the commits that its operation found
    /// behind these: it may have been asked for a branch, or an annotated tag.
    pub(crate) fn changes_of(&self, newest: &Newest) -> Option<Vec<String>> {
        let operation = self.operation.as_ref().filter(|operation| operation.sync.is_some());
        let found = operation.and_then(|operation| operation.result_revisions.as_ref());
        let found = found.filter(|revisions| revisions.iter().all(|revision| !revision.is_empty()));
        newest.of(&self.reported_revisions()).or_else(|| newest.of(found?))
    }

    fn was_compared(&self) -> bool {
        self.last_history.is_some()
            || self
                .synced
                .as_ref()
                .is_some_and(|sync| !sync.revision.is_empty() || !sync.revisions.is_empty())
    }

    /// The revisions it was compared with, one per source; empty when that is not known.
    pub(crate) fn compared_revisions(&self) -> Vec<String> {
        let revisions = self.synced.as_ref().map(Revisions::synced).unwrap_or_default();
        if revisions.iter().any(String::is_empty) { Vec::new() } else { revisions }
    }

    /// The last revision that was deployed, else the one it was compared with; empty for several sources.
    pub(crate) fn latest_revision(&self) -> &str {
        match (&self.last_history, &self.synced) {
            (Some((revision, _)), _) => revision,
            (None, Some(sync)) => &sync.revision,
            (None, None) => "",
        }
    }

    /// Of everything that resources were deployed from: of the last deployment, else of what the application was compared
    /// with, every revision and every source with its parameters. A sync of some resources alone stands in no history; its
    /// operation tells of it once it has succeeded.
    pub(crate) fn deployed_digest(&self) -> Digest {
        const MEMBERS: [&str; 4] = ["revision", "revisions", "source", "sources"];
        let status = map(self.object.get("status"));
        let deployed =
            status.and_then(|status| list(status.get("history")).last()).and_then(Value::as_object);
        let sync = || status.and_then(|status| map(status.get("sync")));
        let compared = || sync().and_then(|sync| map(sync.get("comparedTo")));
        let mut hasher = Hasher::default();
        let parts = match deployed {
            Some(deployed) => [Some(deployed), None],
            None => [sync(), compared()],
        };
        for part in parts.into_iter().flatten() {
            MEMBERS
                .iter()
                .filter_map(|name| part.get(*name))
                .for_each(|value| hasher.write(&canonical::bytes(value)));
        }
        let synced = self.operation.as_ref().filter(|operation| operation.phase == "Succeeded");
        let results = synced.and_then(|operation| operation.result_revisions.as_ref());
        if let (Some(results), Some(deployed)) = (results, deployed)
            && *results != read::revisions(deployed)
        {
            results.iter().for_each(|revision| hasher.write(revision.as_bytes()));
        }
        hasher.finish()
    }

    /// The revision the operation was asked for.
    pub(crate) fn operation_revision(&self) -> &str {
        let of_operation = self.operation.as_ref().and_then(|operation| operation.sync.as_ref());
        of_operation.or(self.requested.as_ref()).or(self.synced.as_ref()).map_or("", |sync| &sync.revision)
    }

    /// The first source that has manifests.
    pub(crate) fn first_source(&self) -> usize {
        self.sources.iter().position(|source| !source.is_ref).unwrap_or(0)
    }

    /// The source that a revision of this index is of: the first, where there are fewer.
    pub(crate) fn source(&self, index: usize) -> Option<&Source> {
        self.sources.get(index).or(self.sources.first())
    }

    /// The repository of the first source, a reference included.
    pub(crate) fn repo_url(&self) -> &str {
        self.sources.first().map_or("", |source| &source.repo_url)
    }

    /// The repositories of its sources that have commits.
    pub(crate) fn repositories(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().filter(|source| source.has_commits).map(|source| &*source.repo_url)
    }

    /// Its sources, each at one of `revisions`; `None` where these are not one for each.
    pub(crate) fn sources_at(&self, revisions: &[String]) -> Option<SourcesAt> {
        let whole = self.object.get("spec")?;
        let (spec, sources) = (map(Some(whole))?, synced_sources(whole).all);
        if sources.is_empty() || sources.len() != revisions.len() {
            return None;
        }
        let at = |(source, revision): (Cow<'_, Value>, &String)| SourceAt {
            source: source.to_string(),
            revision: revision.clone(),
        };
        let mut metadata = map(self.object.get("metadata"))?.clone();
        metadata.retain(|name, _| {
            matches!(name.as_str(), "name" | "namespace" | "uid" | "labels" | "annotations")
        });
        Some(SourcesAt {
            metadata: Value::Object(metadata).to_string(),
            project: text(spec.get("project")).to_owned(),
            namespace: map(spec.get("destination")).map_or("", |to| text(to.get("namespace"))).to_owned(),
            sources: sources.into_iter().zip(revisions).map(at).collect(),
        })
    }

    /// Of what manifests are generated from, but for the revisions.
    pub(crate) fn sources_digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        if let Some(spec) = map(self.object.get("spec")) {
            for name in ["source", "sources", "sourceHydrator", "destination"] {
                hasher.write(&canonical::bytes(spec.get(name).unwrap_or(&Value::Null)));
            }
        }
        hasher.finish()
    }
}

/// The application named in `<app>:<group>/<kind>:<namespace>/<name>`; anything else names none.
fn tracked_by(tracking_id: &str) -> Option<&str> {
    let mut parts = tracking_id.split(':');
    let (app, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
    (parts.next().is_none() && kind.matches('/').count() == 1 && name.matches('/').count() == 1)
        .then_some(app)
}

/// The member `name` as an object, made if it is missing or something else.
pub(crate) fn child<'a>(of: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let slot = of.entry(name).or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(object) => object,
        _ => unreachable!("it was made an object just above"),
    }
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or("")
}

fn map(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}
