//! What is asked of Argo CD: paths and queries, read the same way from requests and from recordings.

use std::collections::HashMap;

use axum::extract::Query;
use axum::http::Uri;

/// Kinds of calls; their names are those of fault rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `applications/{name}/managed-resources`
    ManagedResources,
    /// `applications/{name}/resource-tree`
    ResourceTree,
    /// `applications/{name}/resource`
    Resource,
    /// `applications/{name}/manifests`
    Manifests,
    /// `applications/{name}/revisions/{revision}/metadata`
    RevisionMetadata,
    /// `applications/{name}`
    Application,
    /// `settings`
    Settings,
    /// `/api/version`
    Version,
    /// Anything else.
    Other,
}

impl Kind {
    /// Its name in fault rules and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ManagedResources => "managed_resources",
            Self::ResourceTree => "resource_tree",
            Self::Resource => "resource",
            Self::Manifests => "manifests",
            Self::RevisionMetadata => "revision_metadata",
            Self::Application => "application",
            Self::Settings => "settings",
            Self::Version => "version",
            Self::Other => "other",
        }
    }
}

/// Names one resource of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ResourceName {
    /// API group, empty for the core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty for cluster-scoped ones.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// What is asked about one application.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Live and desired states of all resources.
    ManagedResources,
    /// The tree.
    ResourceTree,
    /// The live state of one resource.
    Resource(ResourceName),
    /// Desired states, of a revision if one is given.
    Manifests {
        /// The parameter `revision`, as given.
        revision: Option<String>,
    },
    /// A commit.
    RevisionMetadata {
        /// The revision.
        revision: String,
        /// The parameter `sourceIndex`; empty when not given.
        source_index: String,
    },
    /// The application itself.
    Application,
}

impl Ask {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::ManagedResources => Kind::ManagedResources,
            Self::ResourceTree => Kind::ResourceTree,
            Self::Resource(_) => Kind::Resource,
            Self::Manifests { .. } => Kind::Manifests,
            Self::RevisionMetadata { .. } => Kind::RevisionMetadata,
            Self::Application => Kind::Application,
        }
    }
}

/// A request, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// About an application.
    About {
        /// Its name.
        application: String,
        /// What.
        ask: Ask,
    },
    /// The settings.
    Settings,
    /// The version.
    Version,
    /// Anything else.
    Other,
}

impl Asked {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::About { ask, .. } => ask.kind(),
            Self::Settings => Kind::Settings,
            Self::Version => Kind::Version,
            Self::Other => Kind::Other,
        }
    }

    pub(crate) fn application(&self) -> &str {
        match self {
            Self::About { application, .. } => application,
            _ => "",
        }
    }

    /// Reads a path below the root path, and its query.
    #[must_use]
    pub fn read(uri: &Uri, root: &str) -> Self {
        let Some(path) = uri.path().strip_prefix(root) else { return Self::Other };
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            ["api", "version"] => return Self::Version,
            ["api", "v1", "settings"] => return Self::Settings,
            _ => {}
        }
        let ["api", "v1", "applications", application, rest @ ..] = parts.as_slice() else {
            return Self::Other;
        };
        let mut query = match Query::<HashMap<String, String>>::try_from_uri(uri) {
            Ok(Query(query)) => query,
            Err(_) => return Self::Other,
        };
        let mut take = |name: &str| query.remove(name);
        let ask = match rest {
            [] => Ask::Application,
            ["managed-resources"] => Ask::ManagedResources,
            ["resource-tree"] => Ask::ResourceTree,
            ["manifests"] => Ask::Manifests { revision: take("revision") },
            ["revisions", revision, "metadata"] => Ask::RevisionMetadata {
                revision: decode(revision),
                source_index: take("sourceIndex").unwrap_or_default(),
            },
            ["resource"] => Ask::Resource(ResourceName {
                group: take("group").unwrap_or_default(),
                version: take("version").unwrap_or_default(),
                kind: take("kind").unwrap_or_default(),
                namespace: take("namespace").unwrap_or_default(),
                name: take("resourceName").unwrap_or_default(),
            }),
            _ => return Self::Other,
        };
        Self::About { application: decode(application), ask }
    }
}

fn decode(part: &str) -> String {
    percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()
}
