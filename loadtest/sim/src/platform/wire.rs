//! Reading posts: gunzip, then only what counting needs, borrowed from the text.

use std::borrow::Cow;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The largest post that is read.
const LIMIT: u64 = 256 * 1024 * 1024;

/// What a report is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityName {
    /// Namespace of the application; of a child application, its own.
    pub app_namespace: String,
    /// Name of the application; of a child application, its own.
    pub app_name: String,
    /// `None` for the application itself.
    pub resource: Option<ResourceKey>,
}

/// Which resource of the application.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceKey {
    /// `apiVersion`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty if cluster-scoped.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// One report, as far as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// What it is about.
    pub entity: EntityName,
    /// The application that a child application or a resource belongs to; empty for a root application.
    pub parent: String,
    /// `metadata.uid` of the object, empty if it has none.
    pub uid: String,
    /// `metadata.resourceVersion` of the object.
    pub version: Option<u64>,
    /// The object is marked as deleted.
    pub ends: bool,
    /// Of an application, the resources that its object lists.
    pub listed: Vec<Listed>,
}

/// A resource as an application's object lists it: group, kind, namespace and name, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Listed(u64);

impl Listed {
    fn of(parts: [&str; 4]) -> Self {
        Self(pipeline_core::Digest::of(parts.join("/").as_bytes()).0)
    }
}

impl ResourceKey {
    /// How its application lists it: there versions may differ.
    #[must_use]
    pub fn listed(&self) -> Listed {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        Listed::of([group, &self.kind, &self.namespace, &self.name])
    }
}

#[derive(Deserialize)]
struct Post<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow)]
    reports: Vec<InBatch<'a>>,
}

/// A report in a batch.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct InBatch<'a> {
    pub(super) idempotency_key: &'a str,
    pub(super) traceparent: Option<&'a str>,
    pub(super) fencing_epoch: Option<u64>,
    pub(super) cluster_era: Option<u64>,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl<'a> InBatch<'a> {
    pub(super) fn payload(&self) -> &'a str {
        self.data.get()
    }
}

#[derive(Deserialize)]
struct Data<'a> {
    /// A text of an application's reporter, or an object as it is.
    #[serde(borrow)]
    object: &'a RawValue,
    #[serde(borrow)]
    source: Option<Source<'a>>,
    #[serde(default)]
    deleted: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source<'a> {
    #[serde(borrow, default)]
    app_name: Cow<'a, str>,
    #[serde(borrow, default)]
    app_namespace: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
    /// As it stands, as with a time of deletion.
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Status<'a> {
    #[serde(borrow, default)]
    resources: Vec<Entry<'a>>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, default)]
    group: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    /// As it stands, since an odd one is no reason to refuse a report.
    #[serde(borrow)]
    deletion_timestamp: Option<&'a RawValue>,
}

/// Unzips a post.
pub(super) fn unzip(body: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(body.len() * 6);
    let mut decoder = flate2::read::GzDecoder::new(body).take(LIMIT);
    decoder.read_to_end(&mut text).ok()?;
    Some(text)
}

/// The payload of a post, which stands under `data`, and what it is about.
pub(super) fn post(text: &[u8]) -> Option<(&str, Parsed)> {
    let payload = serde_json::from_slice::<Post<'_>>(text).ok()?.data.get();
    Some((payload, parse(payload)?))
}

/// The reports of a batch.
pub(super) fn batch(text: &[u8]) -> Option<Vec<InBatch<'_>>> {
    serde_json::from_slice::<Batch<'_>>(text).ok().map(|batch| batch.reports)
}

/// The resources that a status lists.
fn listed(status: &RawValue) -> Vec<Listed> {
    let status: Status<'_> = serde_json::from_str(status.get()).unwrap_or_default();
    let entries = status.resources.iter();
    entries.map(|entry| Listed::of([&entry.group, &entry.kind, &entry.namespace, &entry.name])).collect()
}

/// Reads a payload; `None` when it is no report.
#[must_use]
pub fn parse(payload: &str) -> Option<Parsed> {
    let data: Data<'_> = serde_json::from_str(payload).ok()?;
    let decoded;
    let (object, source): (Object<'_>, _) = match (data.object.get(), data.source) {
        (text, Some(source)) if text.starts_with('"') => {
            decoded = STANDARD.decode(serde_json::from_str::<Cow<'_, str>>(text).ok()?.as_bytes()).ok()?;
            (serde_json::from_slice(&decoded).ok()?, source)
        }
        (text, None) => (serde_json::from_str(text).ok()?, Source::default()),
        _ => return None,
    };
    let metadata = object.metadata;
    let is_application = object.kind == "Application" && object.api_version.starts_with("argoproj.io/");
    let entity = if is_application {
        EntityName {
            app_namespace: metadata.namespace.into_owned(),
            app_name: metadata.name.into_owned(),
            resource: None,
        }
    } else {
        EntityName {
            app_namespace: source.app_namespace.into_owned(),
            app_name: source.app_name.clone().into_owned(),
            resource: Some(ResourceKey {
                api_version: object.api_version.into_owned(),
                kind: object.kind.into_owned(),
                namespace: metadata.namespace.into_owned(),
                name: metadata.name.into_owned(),
            }),
        }
    };
    Some(Parsed {
        entity,
        parent: source.app_name.into_owned(),
        uid: metadata.uid.into_owned(),
        version: metadata.resource_version.parse().ok(),
        listed: object.status.filter(|_| is_application).map(listed).unwrap_or_default(),
        ends: data.deleted || metadata.deletion_timestamp.is_some_and(|at| at.get().starts_with('"')),
    })
}
