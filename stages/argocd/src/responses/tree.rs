//! `resource-tree`: the nodes below an application, with their health.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{NotReadable, Place};
use crate::application::Health;
use crate::plan::ResourceRef;

/// One node of `resource-tree`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    place: Place,
    /// Where its uid stands for it; `None` for what the cluster does not hold.
    by_uid: Option<Place>,
    pub(crate) health: Option<Health>,
    /// RFC 3339, empty if unknown.
    pub(crate) created_at: String,
    /// Each by its name, and by its uid: of an owner that stands in no namespace Argo CD names that of the node, so that its uid
    /// alone tells who it is.
    parents: Vec<Place>,
}

/// `resource-tree`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    by_place: HashMap<Place, usize>,
    /// The nodes below each; made when something is unhealthy.
    children: OnceLock<HashMap<Place, Vec<usize>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeWire<'a> {
    #[serde(borrow, default)]
    group: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Option<Cow<'a, str>>,
    #[serde(default)]
    health: Option<Health>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(borrow, default)]
    parent_refs: Option<Vec<ParentWire<'a>>>,
}

#[derive(Deserialize)]
struct ParentWire<'a> {
    #[serde(borrow, default)]
    group: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Option<Cow<'a, str>>,
}

impl Place {
    /// Of a uid, which no name can be taken for: a kind is never empty.
    fn of_uid(uid: Option<&str>) -> Option<Self> {
        uid.filter(|uid| !uid.is_empty()).map(|uid| Self::new("", "", "", uid))
    }
}

impl Tree {
    pub(crate) fn read(body: &[u8]) -> Result<Self, NotReadable> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow, default)]
            nodes: Option<Vec<NodeWire<'a>>>,
        }
        #[derive(Deserialize)]
        struct Lenient<'a> {
            #[serde(borrow, default)]
            nodes: Option<Vec<&'a RawValue>>,
        }
        let nodes: Vec<NodeWire<'_>> = match serde_json::from_slice::<Body<'_>>(body) {
            Ok(body) => body.nodes.unwrap_or_default(),
            Err(_) => {
                let body: Lenient<'_> = serde_json::from_slice(body).map_err(|_| NotReadable)?;
                body.nodes.unwrap_or_default().into_iter().filter_map(one).collect()
            }
        };
        let mut tree = Self { nodes: Vec::with_capacity(nodes.len()), ..Self::default() };
        for wire in nodes {
            let node = Node::of(wire);
            tree.by_place.entry(node.place).or_insert(tree.nodes.len());
            tree.nodes.push(node);
        }
        Ok(tree)
    }

    pub(crate) fn get(&self, resource: &ResourceRef) -> Option<&Node> {
        self.nodes.get(*self.by_place.get(&Place::of(resource))?)
    }

    /// Every degraded node below `resource`, in the order of the tree; the resource itself is not examined.
    pub(crate) fn degraded_below(&self, resource: &ResourceRef) -> impl Iterator<Item = (&Node, &Health)> {
        let children = self.children.get_or_init(|| self.by_parent());
        let mut below = vec![false; self.nodes.len()];
        let mut front = vec![Place::of(resource)];
        front.extend(self.get(resource).and_then(|node| node.by_uid));
        while let Some(parent) = front.pop() {
            for &index in children.get(&parent).into_iter().flatten() {
                if let (Some(reached), Some(node)) = (below.get_mut(index), self.nodes.get(index))
                    && !*reached
                {
                    *reached = true;
                    front.push(node.place);
                    front.extend(node.by_uid);
                }
            }
        }
        self.nodes.iter().zip(below).filter(|(_, below)| *below).filter_map(|(node, _)| {
            let health = node.health.as_ref()?;
            (health.status == "Degraded").then_some((node, health))
        })
    }

    fn by_parent(&self) -> HashMap<Place, Vec<usize>> {
        let mut children: HashMap<_, Vec<_>> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            for parent in &node.parents {
                children.entry(*parent).or_default().push(index);
            }
        }
        children
    }
}

impl Node {
    /// Whether the cluster does not hold it, as nothing tells of its life there. Not every Argo CD says so as its health.
    pub(crate) fn is_missing(&self) -> bool {
        self.by_uid.is_none() && self.created_at.is_empty()
    }

    fn of(wire: NodeWire<'_>) -> Self {
        let parents = wire.parent_refs.unwrap_or_default().into_iter();
        let places = |of: ParentWire<'_>| {
            let named = Place::new(&of.group, &of.kind, &of.namespace, &of.name);
            [Some(named), Place::of_uid(of.uid.as_deref())].into_iter().flatten()
        };
        Self {
            place: Place::new(&wire.group, &wire.kind, &wire.namespace, &wire.name),
            by_uid: Place::of_uid(wire.uid.as_deref()),
            health: wire.health.filter(|health| !health.status.is_empty()),
            created_at: wire.created_at.unwrap_or_default(),
            parents: parents.flat_map(places).collect(),
        }
    }
}

/// One node of an answer in which some are not as they should be.
fn one(raw: &RawValue) -> Option<NodeWire<'_>> {
    match serde_json::from_str(raw.get()) {
        Ok(wire) => Some(wire),
        Err(_) => of_value(&serde_json::from_str(raw.get()).ok()?),
    }
}

/// The slow way, for a node with a field of the wrong type: that field alone is absent.
fn of_value(node: &Value) -> Option<NodeWire<'static>> {
    let field = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let named = |of: &Value| !field(of, "kind").is_empty() && !field(of, "name").is_empty();
    let parents = node.get("parentRefs").and_then(Value::as_array).map(|parents| {
        let parent = |parent: &Value| ParentWire {
            group: field(parent, "group").into(),
            kind: field(parent, "kind").into(),
            namespace: field(parent, "namespace").into(),
            name: field(parent, "name").into(),
            uid: Some(field(parent, "uid").into()),
        };
        parents.iter().filter(|parent| named(parent)).map(parent).collect()
    });
    named(node).then(|| NodeWire {
        group: field(node, "group").into(),
        kind: field(node, "kind").into(),
        namespace: field(node, "namespace").into(),
        name: field(node, "name").into(),
        uid: Some(field(node, "uid").into()),
        health: node
            .get("health")
            .map(|health| Health { status: field(health, "status"), message: field(health, "message") }),
        created_at: Some(field(node, "createdAt")),
        parent_refs: parents,
    })
}
