//! Answers of Argo CD, read leniently: an item that is not what it should be is skipped, a field of the
//! wrong type counts as absent.

mod drift;
mod tree;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use pipeline_core::{Digest, Hasher};
use pipeline_redact::Redactor;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::plan::{RawManifests, ResourceRef};

pub(crate) use tree::Tree;

/// A body that is not the JSON object it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotReadable;

/// Group, kind, namespace and name, in short: how `managed-resources` and the tree name a resource. An answer names
/// hundreds, of which few are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place(Digest);

impl Place {
    fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let mut hasher = Hasher::default();
        for part in [group, kind, namespace, name] {
            hasher.write(part.as_bytes());
        }
        Self(hasher.finish())
    }

    fn of(resource: &ResourceRef) -> Self {
        Self::new(&resource.group, &resource.kind, &resource.namespace, &resource.name)
    }
}

/// Live and desired state of one resource; `None` where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ManagedState {
    pub(crate) live: Option<String>,
    pub(crate) target: Option<String>,
    /// Of both, under the runtime's key, where it was asked for; see [`Managed::digest`].
    pub(crate) digest: Digest,
}

/// `managed-resources`: the states of the resources that were wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    states: HashMap<Place, ManagedState>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    #[serde(borrow, default)]
    group: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    live_state: Option<&'a RawValue>,
    #[serde(borrow, default)]
    target_state: Option<&'a RawValue>,
}

impl Managed {
    /// Reads the states of the `wanted` resources; the texts of others are not even unescaped.
    pub(crate) fn read<'a>(
        body: &[u8],
        wanted: impl Iterator<Item = &'a ResourceRef>,
    ) -> Result<Self, NotReadable> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow, default)]
            items: Option<Vec<Item<'a>>>,
        }
        #[derive(Deserialize)]
        struct Lenient<'a> {
            #[serde(borrow, default)]
            items: Option<Vec<&'a RawValue>>,
        }
        let wanted: HashSet<Place> = wanted.map(Place::of).collect();
        let items = match serde_json::from_slice::<Body<'_>>(body) {
            Ok(body) => body.items.unwrap_or_default(),
            Err(_) => {
                let body: Lenient<'_> = serde_json::from_slice(body).map_err(|_| NotReadable)?;
                let items = body.items.unwrap_or_default().into_iter();
                items.filter_map(|item| serde_json::from_str(item.get()).ok()).collect()
            }
        };
        let mut states = HashMap::with_capacity(wanted.len());
        for item in items {
            let (group, namespace) = (item.group.as_deref(), item.namespace.as_deref());
            let place = Place::new(group.unwrap_or(""), &item.kind, namespace.unwrap_or(""), &item.name);
            if wanted.contains(&place) {
                let read = || ManagedState {
                    live: state(item.live_state),
                    target: state(item.target_state),
                    digest: Digest::NONE,
                };
                states.entry(place).or_insert_with(read);
            }
        }
        Ok(Self { states })
    }

    pub(crate) fn get(&self, resource: &ResourceRef) -> Option<&ManagedState> {
        self.states.get(&Place::of(resource))
    }

    /// Takes the digests of some resources' states: of all that makes them differ from each other, and not of what the
    /// cluster counts and tells by itself, which moves all the time. Keyed, since the states are not redacted yet and
    /// digests are remembered.
    pub(crate) fn digest<'a>(&mut self, of: impl Iterator<Item = &'a ResourceRef>, redactor: &Redactor) {
        for resource in of {
            let Some(state) = self.states.get_mut(&Place::of(resource)) else { continue };
            let mut hasher = Hasher::default();
            for text in [&state.live, &state.target].map(|text| text.as_deref().unwrap_or_default()) {
                drift::write(text, &mut hasher);
            }
            state.digest = Digest::of(redactor.digest(&hasher.finish().0.to_be_bytes()).as_bytes());
        }
    }
}

/// An object that is not there is the text `null`.
fn state(raw: Option<&RawValue>) -> Option<String> {
    let text: String = serde_json::from_str(raw?.get()).ok()?;
    (!text.is_empty() && text != "null").then_some(text)
}

/// Desired state of one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    header: ResourceRef,
    /// As it is to be applied.
    pub(crate) compiled: String,
    /// As it stands in Git; empty where Argo CD does not tell.
    pub(crate) raw: String,
    /// Where it stands in Git; empty where Argo CD does not tell.
    pub(crate) path: String,
}

/// `manifests`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Manifests {
    all: Vec<Manifest>,
    /// Whether this Argo CD gives raw manifests; `None` where the answer does not tell.
    pub(crate) shape: Option<RawManifests>,
    /// `applicationVersions`, if given.
    pub(crate) versions: Option<Value>,
    /// Git was asked, and could not say anything.
    pub(crate) sources_unknown: bool,
}

impl Manifests {
    pub(crate) fn read(body: &[u8]) -> Result<Self, NotReadable> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Body<'a> {
            #[serde(borrow, default)]
            manifests: Option<Vec<&'a RawValue>>,
            #[serde(default)]
            application_versions: Option<Value>,
            #[serde(default)]
            sources_unknown: Option<bool>,
            #[serde(default)]
            is_forks: bool,
        }
        let body: Body<'_> = serde_json::from_slice(body).map_err(|_| NotReadable)?;
        let mut all = Vec::new();
        let mut shape = body.application_versions.as_ref().map(|_| RawManifests::Served);
        for raw in body.manifests.unwrap_or_default() {
            let manifest = if raw.get().starts_with('"') {
                shape = shape.or(Some(RawManifests::Absent));
                serde_json::from_str(raw.get())
                    .ok()
                    .map(|compiled| Manifest { compiled, ..Manifest::default() })
            } else {
                shape = Some(RawManifests::Served);
                serde_json::from_str::<Value>(raw.get()).ok().map(|value| {
                    let field = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
                    Manifest {
                        compiled: field("compiledManifest"),
                        raw: field("rawManifest"),
                        path: field("path"),
                        ..Manifest::default()
                    }
                })
            };
            if let Some(mut manifest) = manifest
                && let Some(header) = header(&manifest.compiled)
            {
                manifest.header = header;
                all.push(manifest);
            }
        }
        let versions = body.application_versions;
        // What Git was asked about is upstream's, unless it says that it is not, whatever shape it has since.
        let shape = match (body.sources_unknown, body.is_forks) {
            (None, _) => shape,
            (Some(_), true) => Some(RawManifests::Served),
            (Some(_), false) => Some(RawManifests::Absent),
        };
        let sources_unknown = body.sources_unknown == Some(true);
        Ok(Self { all, shape, versions, sources_unknown })
    }

    /// The first manifest of the resource; one without a namespace belongs to any.
    pub(crate) fn get(&self, resource: &ResourceRef) -> Option<&Manifest> {
        self.all.iter().find(|manifest| {
            let header = &manifest.header;
            header.kind == resource.kind
                && header.name == resource.name
                && header.group == resource.group
                && header.version == resource.version
                && (header.namespace.is_empty() || header.namespace == resource.namespace)
        })
    }
}

/// What a manifest says it is.
fn header(json: &str) -> Option<ResourceRef> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Header {
        api_version: String,
        kind: String,
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        namespace: Option<String>,
    }
    let header: Header = serde_json::from_str(json).ok()?;
    let (group, version) = header.api_version.split_once('/').unwrap_or(("", &header.api_version));
    Some(ResourceRef {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: header.kind,
        namespace: header.metadata.namespace.unwrap_or_default(),
        name: header.metadata.name.unwrap_or_default(),
    })
}

/// `resource`: the live state, empty if there is none.
pub(crate) fn live(body: &[u8]) -> Result<String, NotReadable> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        manifest: Option<String>,
    }
    let body: Body = serde_json::from_slice(body).map_err(|_| NotReadable)?;
    Ok(body.manifest.filter(|text| text != "null").unwrap_or_default())
}

/// `revisions/{rev}/metadata`: who committed what, when.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Commit {
    pub(crate) author: String,
    /// RFC 3339, empty if unknown.
    pub(crate) date: String,
    pub(crate) tags: Vec<String>,
    pub(crate) message: String,
    pub(crate) signature: String,
}

impl Commit {
    pub(crate) fn read(body: &[u8]) -> Result<Self, NotReadable> {
        let value: Value = serde_json::from_slice(body).map_err(|_| NotReadable)?;
        let object = value.as_object().ok_or(NotReadable)?;
        let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
        let tags = object.get("tags").and_then(Value::as_array);
        Ok(Self {
            author: field("author"),
            date: field("date"),
            tags: tags.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
            message: field("message"),
            signature: field("signatureInfo"),
        })
    }
}
