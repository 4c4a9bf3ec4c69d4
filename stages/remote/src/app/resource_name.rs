//! The name of a resource, as reports have it.

use serde::Deserialize;

use crate::resource::{Node, title_in};

/// What tells a resource of an application from others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceName {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Empty for a cluster-scoped one.
    pub(super) namespace: String,
    pub(super) name: String,
}

impl ResourceName {
    /// Empty for the core group.
    pub(super) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The same without a version, as the runtime's app proxy knows resources.
    pub(super) fn node(&self) -> Node {
        Node::named(self.group(), &self.kind, &self.namespace, &self.name)
    }

    /// How people call it.
    pub(super) fn title(&self) -> String {
        title_in(&self.namespace, &self.kind, &self.name)
    }
}
