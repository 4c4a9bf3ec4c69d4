//! Reports of resources, and of child applications as resources of their parent.

use pipeline_core::Timestamp;
use serde_json::{Value, json};

use super::build::Draft;
use super::{FetchPlan, Parsed};
use crate::application::{Application, Entry, Health};
use crate::faults;
use crate::labels;
use crate::object::{self, Marks};
use crate::payload::{self, Moment, ObjectText, Payload, Source};
use crate::plan::{RawManifests, ResourceRef};
use crate::responses::{ManagedState, Tree};

/// Desired state of one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Desired {
    /// As it is to be applied, redacted; empty if there is none.
    compiled: String,
    /// As it stands in Git, redacted; empty if that is not known.
    git: String,
    path: String,
    /// It is not known whether there is one.
    unknown: bool,
    /// Something that failed is to be asked again.
    incomplete: bool,
}

/// What is reported as a resource.
struct Subject<'a> {
    resource: &'a ResourceRef,
    status: &'a str,
    health: Option<Health>,
    requires_pruning: bool,
    /// The application, or its parent for a child application.
    of: &'a Application,
    /// The application or its parent goes.
    deleting: bool,
    /// Empty if there is none.
    live: String,
}

impl FetchPlan {
    /// The report of one entry; `None` if it cannot be made, because its live state or its health could not be had.
    pub(super) fn resource(&self, entry: &Entry, health: Option<Health>) -> Option<Draft> {
        if self.is_health_lacking_once(entry) {
            return None;
        }
        let managed = self.managed(entry);
        let live = match (entry.hook, self.managed_response()) {
            (false, Some(Parsed::Failed(_) | Parsed::NotCompared | Parsed::NotHeld))
                if !self.are_states_too_large() =>
            {
                return None;
            }
            (false, Some(Parsed::NotFound)) => String::new(),
            _ => match managed {
                Some(state) if !entry.hook => state.live.clone().unwrap_or_default(),
                _ => match self.responses.get(&self.resource_fetch(entry)) {
                    Some(Parsed::Live(live)) => live.clone(),
                    Some(Parsed::NotFound) => String::new(),
                    _ => return None,
                },
            },
        };
        let decision = self.decision_of_report(entry, health.as_ref());
        let desired = self.desired_of(&self.app, &entry.resource, managed);
        let incomplete = desired.incomplete
            || matches!(self.tree_response(), Some(Parsed::Failed(_) | Parsed::NotHeld))
            || self.lacks_commits(&self.app);
        let subject = Subject {
            resource: &entry.resource,
            status: &entry.status,
            health,
            requires_pruning: entry.requires_pruning,
            of: &self.app,
            deleting: self.app.deleting,
            live: self.redactor.manifest(&live).into_owned(),
        };
        let none = Tree::default();
        let mut errors: Vec<_> =
            faults::of_sync_result(self.app.operation.as_ref(), &entry.resource).into_iter().collect();
        if subject.health.as_ref().is_some_and(|health| !health.is_healthy()) {
            let tree = self.tree().unwrap_or(&none);
            errors.extend(faults::below(&entry.resource, tree, &self.redactor, None));
        }
        let object = self.object_of(&subject, &desired);
        let source = self.source_of(subject, desired, &self.marks(&self.app));
        let payload = self.redacted(Payload { object, source, errors, app_versions: json!({}) });
        Some(Draft {
            entity: entry.id,
            kind: labels::RESOURCE_REPORT,
            decision,
            incomplete,
            fact: None,
            payload,
        })
    }

    /// The report of a child application, and whether something of it failed.
    pub(super) fn child(
        &self,
        app: &Application,
        parent: &Application,
        marks: &Marks,
        gone: Option<Timestamp>,
        app_versions: Value,
    ) -> (Payload, bool) {
        let resource = ResourceRef {
            group: "argoproj.io".to_owned(),
            version: "v1alpha1".to_owned(),
            kind: "Application".to_owned(),
            namespace: app.namespace.clone(),
            name: app.name.clone(),
        };
        let desired = self.desired_of(parent, &resource, None);
        let incomplete = desired.incomplete || self.lacks_commits(parent);
        let subject = Subject {
            resource: &resource,
            status: &app.sync_status,
            health: Some(app.health.clone()),
            requires_pruning: app.deleting,
            of: parent,
            deleting: app.deleting || gone.is_some() || parent.deleting,
            live: object::application(app, None, gone).text,
        };
        let mut errors = Vec::new();
        errors.extend(faults::of_sync_result(parent.operation.as_ref(), &resource));
        errors.extend(faults::of_operation(app.operation.as_ref()));
        errors.extend(faults::of_conditions(app));
        errors.extend(self.faults_below(app));
        let object = object::application(app, Some(marks), gone);
        let source = self.source_of(subject, desired, &self.marks(parent));
        (Payload { object, source, errors, app_versions }, incomplete)
    }

    fn managed(&self, entry: &Entry) -> Option<&ManagedState> {
        match self.managed_response()? {
            Parsed::Managed(managed) => managed.get(&entry.resource),
            _ => None,
        }
    }

    fn desired_of(
        &self,
        app: &Application,
        resource: &ResourceRef,
        managed: Option<&ManagedState>,
    ) -> Desired {
        let target = || managed.and_then(|state| state.target.as_deref());
        let mut desired = Desired::default();
        let compiled = match self.desired(app) {
            Some(Parsed::Manifests(manifests)) => {
                let manifest = manifests.get(resource);
                if let Some(manifest) = manifest {
                    desired.path.clone_from(&manifest.path);
                    desired.git = self.redactor.raw(&manifest.raw).into_owned();
                }
                desired.incomplete = manifests.sources_unknown;
                let compiled = manifest.map(|manifest| manifest.compiled.as_str());
                match manifests.shape {
                    Some(RawManifests::Served) => compiled,
                    _ => target().or(compiled),
                }
            }
            Some(Parsed::Failed(_)) => {
                (desired.unknown, desired.incomplete) = (true, true);
                target()
            }
            Some(_) => {
                desired.unknown = true;
                // Where `manifests` is asked for hooks alone, the others have their target state.
                target().filter(|_| self.asks_git(app) || self.raw_manifests() == RawManifests::Absent)
            }
            None => {
                desired.unknown = app.conditions.iter().any(|condition| condition.kind == "ComparisonError");
                target()
            }
        };
        let compiled = compiled.unwrap_or("");
        desired.compiled = self.redactor.manifest(compiled).into_owned();
        if is_secret(resource) {
            // Git holds the values in clear; Argo CD masks those of the compiled manifest.
            desired.git.clone_from(&desired.compiled);
        }
        desired
    }

    /// Live; without that desired, in the resource's namespace; without that a stub.
    fn object_of(&self, subject: &Subject<'_>, desired: &Desired) -> ObjectText {
        if !subject.live.is_empty() {
            return subject.live.clone().into();
        }
        object::desired(&desired.compiled, subject.resource)
            .unwrap_or_else(|| object::stub(subject.resource))
            .into()
    }

    fn source_of(&self, subject: Subject<'_>, desired: Desired, commits: &Marks) -> Source {
        let app = subject.of;
        let pruned = subject.requires_pruning && !subject.live.is_empty() && !desired.unknown;
        let (actual, compiled) = if pruned || subject.deleting {
            (String::new(), String::new())
        } else {
            (subject.live, desired.compiled)
        };
        let git = if desired.git.is_empty() && !compiled.is_empty() { yaml(&compiled) } else { desired.git };
        let operation = app.operation.as_ref();
        let started = operation.map_or(Moment::Now, |operation| Moment::or_now(&operation.started_at));
        let settled = subject.status == "Synced" && subject.health.as_ref().is_some_and(Health::is_healthy);
        let finished = if settled {
            Some(started.clone())
        } else {
            operation.and_then(|operation| payload::time(&operation.finished_at)).map(Moment::At)
        };
        let commit = commits.commit();
        Source {
            desired_manifest: compiled,
            actual_manifest: actual,
            git_manifest: git,
            repo_url: app.compared_repo_url.clone(),
            path: desired.path,
            revision: app.latest_revision().to_owned(),
            commit_message: commit.map_or_else(String::new, |commit| commit.message.clone()),
            commit_author: commit.map_or_else(String::new, |commit| commit.author.clone()),
            commit_date: commit.and_then(|commit| payload::time(&commit.date)),
            app_name: app.name.clone(),
            app_labels: app.labels.clone(),
            sync_status: subject.status.to_owned(),
            sync_started_at: started,
            sync_finished_at: finished,
            health: subject.health.map(|health| (health.status, health.message)),
            cluster: app.server.clone(),
            history_id: app.last_history.as_ref().map_or(0, |(_, id)| *id),
            operation_sync_revision: app.operation_revision().to_owned(),
            app_uid: app.uid.clone(),
            app_namespace: app.namespace.clone(),
            app_instance_label_key: self.settings.instance_label_key.clone(),
            tracking_method: self.settings.tracking_method.as_str(),
        }
    }
}

fn is_secret(resource: &ResourceRef) -> bool {
    resource.group.is_empty() && resource.version == "v1" && resource.kind == "Secret"
}

/// A JSON manifest as YAML; empty if it is no JSON.
fn yaml(json: &str) -> String {
    serde_json::from_str::<Value>(json)
        .ok()
        .and_then(|value| serde_saphyr::to_string(&value).ok())
        .unwrap_or_default()
}
