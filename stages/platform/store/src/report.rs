//! What the store takes: a report as it was read, whoever sent it in whichever form.

use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::change::SourceChange;
use crate::columns::{Column, Columns, from_columns};
use crate::error::StoreError;
use crate::placement::Placement;

/// Milliseconds since 1970.
pub type Millis = i64;
/// A day.
pub const DAY: Millis = 86_400_000;

/// A text that is kept once however often it is reported, with its digest.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    pub(crate) digest: [u8; 32],
    pub(crate) text: Arc<str>,
}

impl Text {
    /// Takes the digest of the text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self { digest: Sha256::digest(text.as_bytes()).into(), text: text.into() }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// What a report is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityName {
    /// The application's namespace; empty for what belongs to no application.
    pub app_namespace: String,
    /// The application's name; empty for what belongs to no application.
    pub app_name: String,
    /// `None`: the application itself.
    pub resource: Option<ResourceName>,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceName {
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for what is cluster-wide.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// How an application lists a resource: a digest of group, kind, namespace and name, since there versions may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Listing(pub(crate) [u8; 8]);

impl Listing {
    /// Of these.
    #[must_use]
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self(pipeline_core::Digest::of([group, kind, namespace, name].join("/").as_bytes()).0.to_be_bytes())
    }
}

/// The group of an API version: nothing of `v1`, `apps` of `apps/v1`.
#[must_use]
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

from_columns! { EntityName { app_namespace, app_name, resource } }
from_columns! { ResourceName { api_version, kind, namespace, name } }

/// An application itself has no kind.
impl Column for Option<ResourceName> {
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        Ok(Some(columns.value()?).filter(|name: &ResourceName| !name.kind.is_empty()))
    }
}

impl ResourceName {
    pub(crate) fn listing(&self) -> Listing {
        Listing::new(group_of(&self.api_version), &self.kind, &self.namespace, &self.name)
    }
}

/// An operation of an application: what deploys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operation {
    /// When it began.
    pub started_at: Millis,
    /// When it ended, if it has.
    pub finished_at: Option<Millis>,
    /// How it stands, such as `Succeeded`.
    pub phase: String,
    /// What it deployed; of several sources the revisions, with commas between them.
    pub revision: String,
    /// Who asked for it; empty for Argo CD itself.
    pub initiated_by: String,
    /// What is said of how it stands.
    pub message: String,
    /// Whether it only tried what it would deploy.
    pub is_dry_run: bool,
}

/// Pods of a ReplicaSet, as it tells of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pods {
    /// How many are ready.
    pub ready: i64,
    /// How many there are to be.
    pub wanted: i64,
    /// Which revision of its owner they are of, if that is told.
    pub revision: Option<i64>,
}

/// In words for people.
impl std::fmt::Display for Pods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} pods are ready", self.ready, self.wanted)?;
        self.revision.map_or(Ok(()), |revision| write!(f, ", revision {revision}"))
    }
}

/// The commit that an application was at, as its report says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// Who wrote it.
    pub author: String,
    /// Its message.
    pub message: String,
    /// When it was made, as it was reported.
    pub date: String,
}

/// A report.
#[derive(Clone, Default)]
pub struct Report {
    /// What it is about.
    pub entity: EntityName,
    /// The incarnation; empty for what is not there.
    pub uid: String,
    /// Its `resourceVersion`.
    pub version: Option<i64>,
    /// When the object was created.
    pub created_at: Option<Millis>,
    /// When the report was made, or received where it does not say when.
    pub at: Millis,
    /// Whether it says when.
    pub timed: bool,
    /// Whether it tells an end.
    pub deleted: bool,
    /// What owns it, as `group/kind/name` of something in its namespace or of the whole cluster; empty: that is not said.
    pub owner: String,
    /// Of an application: the resources that it lists.
    pub listed: Vec<Listing>,
    /// The status of sync, where it is told.
    pub sync: Option<String>,
    /// The status of health, where it is told.
    pub health: Option<String>,
    /// What is said of health, where it is told.
    pub health_message: Option<String>,
    /// The revision, where it is told.
    pub revision: Option<String>,
    /// Of a ReplicaSet: its pods.
    pub pods: Option<Pods>,
    /// Of an application: its last operation.
    pub operation: Option<Operation>,
    /// Of an application: the commit that is synced.
    pub commit: Commit,
    /// Of an application: the commits that changed it in that operation, as far as it says them.
    pub changes: Vec<SourceChange>,
    /// Of an application: its images, as a JSON list.
    pub images: String,
    /// Of an application: where it comes from and goes to.
    pub placement: Placement,
    /// Whether it says anything but the object: one that does not comes from whoever watches resources.
    pub has_source: bool,
    /// Whether it says where the object comes from, as all that a reporter of applications sends does: an Application may as well
    /// be told of by whoever watches resources.
    pub from_reporter: bool,
    /// The object, as JSON.
    pub object: Option<Text>,
    /// Whether `object` stood in the report as JSON, or else as base64 of it.
    pub object_is_json: bool,
    /// The live manifest.
    pub actual: Option<Text>,
    /// The desired manifest.
    pub desired: Option<Text>,
    /// The manifest in Git.
    pub git: Option<Text>,
    /// All the rest of the report as JSON, without its time.
    pub details: Option<Text>,
}

impl Report {
    /// Of everything that it says but its time.
    pub(crate) fn content(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update([u8::from(self.object_is_json), u8::from(self.deleted)]);
        for text in self.texts() {
            hasher.update(text.map_or([0; 32], |text| text.digest));
        }
        hasher.finalize().into()
    }

    /// Replaces zero bytes in what is compared with what is kept: Postgres keeps none.
    pub(crate) fn replace_zero_bytes(&mut self) {
        let EntityName { app_namespace, app_name, resource } = &mut self.entity;
        let resource = resource
            .as_mut()
            .map(|name| [&mut name.api_version, &mut name.kind, &mut name.namespace, &mut name.name]);
        let said = [&mut self.sync, &mut self.health, &mut self.revision].into_iter().flatten();
        let Commit { author, message, .. } = &mut self.commit;
        let all = [app_namespace, app_name, &mut self.uid, &mut self.owner, author, message];
        for text in all.into_iter().chain(resource.into_iter().flatten()).chain(said) {
            if text.contains('\0') {
                *text = text.replace('\0', "\u{fffd}");
            }
        }
    }

    /// In the order of the columns: object, actual, desired, git, details.
    pub(crate) fn texts(&self) -> [Option<&Text>; 5] {
        [&self.object, &self.actual, &self.desired, &self.git, &self.details].map(Option::as_ref)
    }
}

/// Without the payload: what is printed may end in a log.
impl std::fmt::Debug for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Report").field("entity", &self.entity).field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// A report on its way into the store.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Whose it is.
    pub runtime: i64,
    /// SHA-256 of its idempotency key, or of its body where it has none.
    pub key: [u8; 32],
    /// Whether it had a key: what is compared later.
    pub keyed: bool,
    /// The right by which it is sent, where shards change hands.
    pub epoch: Option<i64>,
    /// How often the versions of the object's cluster had gone back before, from 0.
    pub era: i64,
    /// The report.
    pub report: Report,
}

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is kept.
    Kept,
    /// It was kept before, under the same key.
    Repeated,
    /// A newer owner has reported of the application: it is not kept.
    Outdated,
    /// The database can hold nothing like it: it is not kept, and never will be.
    Unfit,
}
