//! Answers of Argo CD, read leniently: an item that is not what it should be is skipped, a field of the
//! wrong type counts as absent.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::application::Health;
use crate::round::{RawManifests, ResourceRef};

/// A body that is not the JSON object it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotReadable;

/// Group, kind, namespace and name: how `managed-resources` and the tree name a resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Place {
    pub(crate) fn of(resource: &ResourceRef) -> Self {
        Self {
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            namespace: resource.namespace.clone(),
            name: resource.name.clone(),
        }
    }
}

/// Live and desired state of one resource; `None` where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ManagedState {
    pub(crate) live: Option<String>,
    pub(crate) target: Option<String>,
}

/// `managed-resources`: the states of the resources that were wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    states: HashMap<Place, ManagedState>,
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
            items: Option<Vec<&'a RawValue>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Item<'a> {
            #[serde(default)]
            group: Option<String>,
            kind: String,
            #[serde(default)]
            namespace: Option<String>,
            name: String,
            #[serde(borrow, default)]
            live_state: Option<&'a RawValue>,
            #[serde(borrow, default)]
            target_state: Option<&'a RawValue>,
        }
        let wanted: std::collections::HashSet<Place> = wanted.map(Place::of).collect();
        let body: Body<'_> = serde_json::from_slice(body).map_err(|_| NotReadable)?;
        let mut states = HashMap::new();
        for item in body.items.unwrap_or_default() {
            let Ok(item) = serde_json::from_str::<Item<'_>>(item.get()) else { continue };
            let place = Place {
                group: item.group.unwrap_or_default(),
                kind: item.kind,
                namespace: item.namespace.unwrap_or_default(),
                name: item.name,
            };
            if wanted.contains(&place) {
                let state = ManagedState { live: state(item.live_state), target: state(item.target_state) };
                states.entry(place).or_insert(state);
            }
        }
        Ok(Self { states })
    }

    pub(crate) fn get(&self, resource: &ResourceRef) -> Option<&ManagedState> {
        self.states.get(&Place::of(resource))
    }
}

/// An object that is not there is the text `null`.
fn state(raw: Option<&RawValue>) -> Option<String> {
    let text: String = serde_json::from_str(raw?.get()).ok()?;
    (!text.is_empty() && text != "null").then_some(text)
}

/// One node of `resource-tree`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) resource: ResourceRef,
    pub(crate) health: Option<Health>,
    /// RFC 3339, empty if unknown.
    pub(crate) created_at: String,
    parents: Vec<Place>,
}

/// `resource-tree`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    by_place: HashMap<Place, usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeWire {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
    #[serde(default)]
    health: Option<HealthWire>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    parent_refs: Option<Vec<ParentWire>>,
}

#[derive(Deserialize)]
struct HealthWire {
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct ParentWire {
    #[serde(default)]
    group: String,
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
}

impl Tree {
    pub(crate) fn read(body: &[u8]) -> Result<Self, NotReadable> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow, default)]
            nodes: Option<Vec<&'a RawValue>>,
        }
        let body: Body<'_> = serde_json::from_slice(body).map_err(|_| NotReadable)?;
        let mut tree = Self::default();
        for raw in body.nodes.unwrap_or_default() {
            let Some(node) = node(raw) else { continue };
            tree.by_place.entry(Place::of(&node.resource)).or_insert(tree.nodes.len());
            tree.nodes.push(node);
        }
        Ok(tree)
    }

    pub(crate) fn get(&self, resource: &ResourceRef) -> Option<&Node> {
        self.nodes.get(*self.by_place.get(&Place::of(resource))?)
    }

    /// Every degraded node below `resource`, in the order of the tree; the resource itself is not examined.
    pub(crate) fn degraded_below(&self, resource: &ResourceRef) -> impl Iterator<Item = (&Node, &Health)> {
        let mut below = vec![false; self.nodes.len()];
        let mut front = vec![Place::of(resource)];
        while let Some(parent) = front.pop() {
            for (node, reached) in self.nodes.iter().zip(below.iter_mut()) {
                if !*reached && node.parents.contains(&parent) {
                    *reached = true;
                    front.push(Place::of(&node.resource));
                }
            }
        }
        self.nodes.iter().zip(below).filter(|(_, below)| *below).filter_map(|(node, _)| {
            let health = node.health.as_ref()?;
            (health.status == "Degraded").then_some((node, health))
        })
    }
}

fn node(raw: &RawValue) -> Option<Node> {
    let wire = match serde_json::from_str::<NodeWire>(raw.get()) {
        Ok(wire) => wire,
        Err(_) => node_of_value(&serde_json::from_str(raw.get()).ok()?)?,
    };
    let place = |parent: ParentWire| Place {
        group: parent.group,
        kind: parent.kind,
        namespace: parent.namespace,
        name: parent.name,
    };
    Some(Node {
        resource: ResourceRef {
            group: wire.group,
            version: wire.version,
            kind: wire.kind,
            namespace: wire.namespace,
            name: wire.name,
        },
        health: wire
            .health
            .map(|health| Health { status: health.status, message: health.message })
            .filter(|health| !health.status.is_empty()),
        created_at: wire.created_at.unwrap_or_default(),
        parents: wire.parent_refs.unwrap_or_default().into_iter().map(place).collect(),
    })
}

/// The slow way, for a node with a field of the wrong type: that field alone is absent.
fn node_of_value(node: &Value) -> Option<NodeWire> {
    let field = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let named = |of: &Value| !field(of, "kind").is_empty() && !field(of, "name").is_empty();
    let parents = node.get("parentRefs").and_then(Value::as_array).map(|parents| {
        let parent = |parent: &Value| ParentWire {
            group: field(parent, "group"),
            kind: field(parent, "kind"),
            namespace: field(parent, "namespace"),
            name: field(parent, "name"),
        };
        parents.iter().filter(|parent| named(parent)).map(parent).collect()
    });
    named(node).then(|| NodeWire {
        group: field(node, "group"),
        version: field(node, "version"),
        kind: field(node, "kind"),
        namespace: field(node, "namespace"),
        name: field(node, "name"),
        health: node
            .get("health")
            .map(|health| HealthWire { status: field(health, "status"), message: field(health, "message") }),
        created_at: Some(field(node, "createdAt")),
        parent_refs: parents,
    })
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
        Ok(Self { all, shape, versions: body.application_versions })
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
