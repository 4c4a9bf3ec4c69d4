//! Which Argo CD application an object belongs to: its own tracking annotation says it, or that of an owner, or else
//! their labels.
//!
//! takes: an object's text - gives: the application's name, namespace, project and revision - calls: `GET` of an owner's
//! metadata and of the application, each kept for a while - fails: within a bound where an API server is slow, and where it or
//! a right is missing ([`LookupError`]): what then waits for the answer is tried again, and what only shows it goes without

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use pipeline_core::{Reason, async_trait};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kind::{KnownKind, OwnerKind, row};
use crate::warnings::WarningLimit;

/// The most owners above each other that are read.
const MAX_OWNERS: usize = 4;
/// How long the application of one object is looked for.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most owners that are cached.
const CACHED_OWNERS: u64 = 10_000;
/// How long an owner is cached: its marks change only when its application does.
const OWNERS_CACHED_FOR: Duration = Duration::from_secs(300);
/// The most applications that are cached.
const CACHED_APPLICATIONS: u64 = 2_000;
/// How long an application is cached: its revision changes with each sync.
const APPLICATIONS_CACHED_FOR: Duration = Duration::from_secs(5);

/// An Argo CD application, as far as reports of its objects tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its project.
    pub project: String,
    /// The revision it is synced to; empty where it has several sources or none.
    pub revision: String,
}

impl Application {
    pub(crate) fn to_json(&self) -> Value {
        json!({"name": self.name, "namespace": self.namespace, "project": self.project, "revision": self.revision})
    }
}

/// Something could not be read, so that it is not known whether it is there; with the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the application of an object cannot be found out")]
pub struct LookupError(pub Reason);

/// Reads objects of the cluster.
#[async_trait]
pub trait ObjectReader: Send + Sync {
    /// The object at a path of the API server, or its metadata alone; `None` where there is none.
    ///
    /// # Errors
    /// If it could not be read; the implementation has logged why.
    async fn read(&self, path: &str, wanted: ObjectPart) -> Result<Option<Value>, LookupError>;
}

/// How much of an object is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectPart {
    /// The metadata alone.
    Metadata,
    /// The whole object.
    Whole,
}

/// How Argo CD marks the objects of applications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracking {
    /// The label that names the application, where labels do: charts write the same one, with a release's name, so it counts
    /// only where no annotation says more.
    pub label: Option<String>,
    /// The namespace of applications that are named without one.
    pub namespace: String,
}

/// Finds the applications of objects. Cloning shares the caches.
#[derive(Clone)]
pub struct Applications {
    objects: Arc<dyn ObjectReader>,
    tracking: Arc<Tracking>,
    owners: Cache<String, Arc<TrackingMarks>>,
    applications: Cache<ApplicationName, FoundApplication>,
    late: Arc<WarningLimit>,
}

impl fmt::Debug for Applications {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applications").field("tracking", &self.tracking).finish_non_exhaustive()
    }
}

/// An application's namespace and name.
type ApplicationName = (String, String);

/// An application, or `None` where there is none.
type FoundApplication = Result<Option<Arc<Application>>, LookupError>;

/// The metadata of an object that tells its application or its owner.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct TrackingMarks {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    labels: Option<std::collections::HashMap<String, String>>,
    annotations: Option<Annotations>,
    owner_references: Option<Vec<OwnerReference>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Annotations {
    /// Argo CD's tracking id: `<application>:<group>/<kind>:<namespace>/<name>`.
    #[serde(rename = "argocd.argoproj.io/tracking-id", default)]
    tracking: Option<String>,
}

impl TrackingMarks {
    /// Reads the text of an object.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// Reads an object.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        Self::deserialize(object).ok()
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OwnerReference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
}

impl Applications {
    /// Asks `objects`, and finds applications by `tracking`.
    #[must_use]
    pub fn new(objects: Arc<dyn ObjectReader>, tracking: Tracking) -> Self {
        let kept = |most, time| Cache::builder().max_capacity(most).time_to_live(time);
        Self {
            objects,
            tracking: Arc::new(tracking),
            owners: kept(CACHED_OWNERS, OWNERS_CACHED_FOR).build(),
            applications: Cache::builder()
                .max_capacity(CACHED_APPLICATIONS)
                .time_to_live(APPLICATIONS_CACHED_FOR)
                .build(),
            late: Arc::default(),
        }
    }

    /// The application of an object of a kind, by its marks.
    pub(crate) async fn of(
        &self,
        kind: &KnownKind,
        namespace: &str,
        marks: TrackingMarks,
    ) -> FoundApplication {
        match tokio::time::timeout(TIMEOUT, self.find(kind.owners(), namespace, marks)).await {
            Ok(found) => found,
            Err(_) => {
                if self.late.due() {
                    tracing::warn!(kind = %kind.resource, "the application of an object was not found in time");
                }
                Err(LookupError(Reason::Timeout))
            }
        }
    }

    /// The application that the annotation of the object or of an owner names, or else the one that a label names. Of labels the topmost
    /// owner's counts: that is the object in Git, and objects made of it have the labels of its chart.
    async fn find(
        &self,
        mut owners: &[OwnerKind],
        namespace: &str,
        marks: TrackingMarks,
    ) -> FoundApplication {
        let mut marks = Arc::new(marks);
        let mut labelled = Vec::new();
        for _ in 0..MAX_OWNERS {
            let tracked = self.tracked(&marks);
            if let Some(application) = self.first_of(tracked).await? {
                return Ok(Some(application));
            }
            labelled.extend(self.labelled(&marks));
            match self.owner(owners, namespace, &marks).await? {
                Some((owner, above)) => (owners, marks) = (owners_of(owner), above),
                None => break,
            }
        }
        self.first_of(labelled.into_iter().rev()).await
    }

    /// The first of these applications that is there.
    async fn first_of(&self, names: impl IntoIterator<Item = ApplicationName>) -> FoundApplication {
        for name in names {
            if let Some(application) = self.application(name).await? {
                return Ok(Some(application));
            }
        }
        Ok(None)
    }

    /// The application that an object's annotation names.
    fn tracked(&self, marks: &TrackingMarks) -> Option<ApplicationName> {
        let annotation = marks.metadata.annotations.as_ref()?.tracking.as_deref()?;
        self.name(annotation.split(':').next()?)
    }

    /// The application that an object's label names.
    fn labelled(&self, marks: &TrackingMarks) -> Option<ApplicationName> {
        let label = self.tracking.label.as_ref()?;
        self.name(marks.metadata.labels.as_ref()?.get(label)?)
    }

    fn name(&self, text: &str) -> Option<ApplicationName> {
        match text.split_once('_') {
            _ if text.is_empty() => None,
            Some((namespace, name)) => Some((namespace.to_owned(), name.to_owned())),
            None => Some((self.tracking.namespace.clone(), text.to_owned())),
        }
    }

    /// The owner of an object, of one of the kinds that may own it, and its marks.
    async fn owner<'o>(
        &self,
        owners: &'o [OwnerKind],
        namespace: &str,
        marks: &TrackingMarks,
    ) -> Result<Option<(&'o OwnerKind, Arc<TrackingMarks>)>, LookupError> {
        let Some((path, uid, owner)) = reference(owners, namespace, marks) else { return Ok(None) };
        let key = format!("{path} {uid}");
        if let Some(kept) = self.owners.get(&key).await {
            return Ok(Some((owner, kept)));
        }
        let found = self.objects.read(&path, ObjectPart::Metadata).await?;
        let marks: Option<TrackingMarks> = found.and_then(|found| serde_json::from_value(found).ok());
        // Another incarnation under the same name may belong to another application.
        let Some(marks) = marks.filter(|marks| marks.metadata.uid == uid) else { return Ok(None) };
        let marks = Arc::new(marks);
        self.owners.insert(key, marks.clone()).await;
        Ok(Some((owner, marks)))
    }

    async fn application(&self, name: ApplicationName) -> FoundApplication {
        let read = async {
            let path = path("argoproj.io/v1alpha1", &name.0, "applications", &name.1);
            let Some(path) = path else { return Ok(None) };
            let Some(found) = self.objects.read(&path, ObjectPart::Whole).await? else { return Ok(None) };
            let text =
                |pointer: &str| found.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            Ok(Some(Arc::new(Application {
                namespace: name.0.clone(),
                name: name.1.clone(),
                project: text("/spec/project"),
                revision: text("/status/sync/revision"),
            })))
        };
        self.applications.get_with(name.clone(), read).await
    }
}

/// The kinds that own objects of an owner's kind.
fn owners_of(owner: &OwnerKind) -> &'static [OwnerKind] {
    row(&owner.resource).map_or(&[], KnownKind::owners)
}

/// The path and the uid of the owner of an object, and its kind, of the kinds that may own the object.
fn reference<'o, 'm>(
    owners: &'o [OwnerKind],
    namespace: &str,
    marks: &'m TrackingMarks,
) -> Option<(String, &'m str, &'o OwnerKind)> {
    let references = marks.metadata.owner_references.as_ref()?;
    let (reference, owner) = references
        .iter()
        .find_map(|reference| Some((reference, owners.iter().find(|owner| is_of(reference, owner))?)))?;
    let plural = owner.resource.split('.').next().unwrap_or_default();
    let path = path(&reference.api_version, namespace, plural, &reference.name)?;
    Some((path, &reference.uid, owner))
}

/// Whether a reference is to an owner of this kind; other groups may have a kind of the same name.
fn is_of(reference: &OwnerReference, owner: &OwnerKind) -> bool {
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    owner.kind == reference.kind && owner.resource.split_once('.').map_or("", |(_, group)| group) == group
}

/// The path of an object, if its names are such as Kubernetes gives.
fn path(api_version: &str, namespace: &str, plural: &str, name: &str) -> Option<String> {
    let fits = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.')
            && !text.starts_with('.')
    };
    let root = match api_version.split_once('/') {
        Some((group, version)) if fits(group) && fits(version) => format!("/apis/{group}/{version}"),
        None if fits(api_version) => format!("/api/{api_version}"),
        _ => return None,
    };
    (fits(namespace) && fits(name)).then(|| format!("{root}/namespaces/{namespace}/{plural}/{name}"))
}

#[cfg(test)]
mod tests;
