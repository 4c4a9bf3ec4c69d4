//! What is fetched from Argo CD, and what came of it.

use std::sync::Arc;

use crate::labels;
use crate::sources::SourcesAt;
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pipeline_core::{Call, Digest, EntityId, Hasher, Reason};

/// What stays as it is in a path and in a query (RFC 3986, unreserved).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An application as Argo CD's API names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AppRef {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `spec.project`; `default` when the application names none.
    pub project: String,
}

/// A resource as `status.resources[]` names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceRef {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty for a cluster-scoped resource.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ResourceRef {
    /// Identifies it among the resources of its application.
    #[must_use]
    pub fn id(&self) -> EntityId {
        let mut hasher = Hasher::default();
        for part in [&self.group, &self.version, &self.kind, &self.namespace, &self.name] {
            hasher.write(part.as_bytes());
        }
        EntityId(hasher.finish().0)
    }
}

/// What `manifests` is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The desired state of resources, at the revisions that the application was compared with.
    Desired,
    /// `appVersions`, at the revision that was synced.
    Versions,
}

/// Under what an answer of `manifests` may be kept: the manifests carry the tracking id, so an answer is
/// never shared between applications.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ManifestsKey {
    /// The life of the application.
    pub uid: String,
    /// Of its sources and its destination.
    pub sources: Digest,
    /// The resolved revisions, one per source; never empty.
    pub revisions: Vec<String>,
}

/// One thing that must be fetched before the plan can go on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Fetch {
    /// Live and desired state of every resource but hooks.
    ManagedResources {
        /// Of which application.
        app: AppRef,
        /// As for the tree.
        paced: bool,
    },
    /// The nodes below the application, with their health.
    ResourceTree {
        /// Of which application.
        app: AppRef,
        /// Nothing of the application changed: at most one such call per application in 10 s is worth its
        /// cost; others are answered with [`Response::Skipped`].
        paced: bool,
    },
    /// The generated manifests.
    Manifests {
        /// Of which application.
        app: AppRef,
        /// The `revision` to ask for; `None` asks without the parameter (several sources).
        revision: Option<String>,
        /// What for. Two fetches that differ in it alone are the same call.
        purpose: Purpose,
        /// Under what the answer may be kept; `None` when the revisions are not resolved yet.
        cache: Option<ManifestsKey>,
        /// A hard refresh is under way: a kept answer is to be dropped first.
        fresh: bool,
        /// What Git is to be asked about; `None` when it is not asked, or the revisions are not resolved yet.
        sources: Option<Arc<SourcesAt>>,
    },
    /// Live state of one resource.
    Resource {
        /// Of which application.
        app: AppRef,
        /// Which resource.
        resource: ResourceRef,
    },
    /// Author, date and message of one commit. The answer is the same for every application.
    RevisionMetadata {
        /// Through which application.
        app: AppRef,
        /// The repository; with `revision`, what the answer may be kept under.
        repo_url: String,
        /// The revision.
        revision: String,
        /// Position of the source in the application.
        source_index: usize,
    },
    /// The application that tracks this one.
    Parent {
        /// Its namespace, empty when the tracking value names none.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// What came of an [`Fetch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// The body of a 2xx, as it came.
    Body(Bytes),
    /// 404, or an error whose text says `not found`; for a parent also 403: empty.
    NotFound,
    /// `manifests` cannot be generated: an answer about the application, not a failure of the call.
    GenerationError,
    /// Nothing is known of what the application has, because it is not compared, as its conditions tell: the same.
    NotCompared,
    /// Argo CD holds no states of the application now, and nothing tells why: its controller has written none, or its cache has lost
    /// them. The application is reported without them, and they are asked for again.
    NotHeld,
    /// It failed, after all tries.
    Failed(Reason),
    /// A paced call that was not made, because one was made just before.
    Skipped,
}

impl Fetch {
    /// Which call it is; a metric label.
    #[must_use]
    pub const fn call(&self) -> Call {
        match self {
            Self::ManagedResources { .. } => labels::MANAGED_RESOURCES,
            Self::ResourceTree { .. } => labels::RESOURCE_TREE,
            Self::Manifests { .. } => labels::MANIFESTS,
            Self::Resource { .. } => labels::RESOURCE,
            Self::RevisionMetadata { .. } => labels::REVISION_METADATA,
            Self::Parent { .. } => labels::APPLICATION,
        }
    }

    /// Path and query of the call, every value escaped. `root` is Argo CD's root path, empty or `/argo`.
    #[must_use]
    pub fn path(&self, root: &str) -> String {
        let mut path = String::with_capacity(160);
        path.push_str(root.trim_end_matches('/'));
        path.push_str("/api/v1/applications/");
        match self {
            Self::ManagedResources { app, .. } => of(&mut path, app, "managed-resources"),
            Self::ResourceTree { app, .. } => of(&mut path, app, "resource-tree"),
            Self::Manifests { app, revision, .. } => {
                of(&mut path, app, "manifests");
                if let Some(revision) = revision {
                    pair(&mut path, '&', "revision", revision);
                }
            }
            Self::Resource { app, resource } => {
                escape(&mut path, &app.name);
                path.push_str("/resource");
                pair(&mut path, '?', "appNamespace", &app.namespace);
                pair(&mut path, '&', "namespace", &resource.namespace);
                pair(&mut path, '&', "resourceName", &resource.name);
                pair(&mut path, '&', "version", &resource.version);
                pair(&mut path, '&', "group", &resource.group);
                pair(&mut path, '&', "kind", &resource.kind);
                pair(&mut path, '&', "project", &app.project);
            }
            Self::RevisionMetadata { app, revision, source_index, .. } => {
                escape(&mut path, &app.name);
                path.push_str("/revisions/");
                escape(&mut path, revision);
                path.push_str("/metadata");
                pair(&mut path, '?', "appNamespace", &app.namespace);
                pair(&mut path, '&', "project", &app.project);
                pair(&mut path, '&', "sourceIndex", &source_index.to_string());
            }
            Self::Parent { namespace, name } => {
                escape(&mut path, name);
                pair(&mut path, '?', "appNamespace", namespace);
            }
        }
        path
    }
}

fn of(path: &mut String, app: &AppRef, what: &str) {
    escape(path, &app.name);
    path.push('/');
    path.push_str(what);
    pair(path, '?', "appNamespace", &app.namespace);
    pair(path, '&', "project", &app.project);
}

fn pair(path: &mut String, before: char, name: &str, value: &str) {
    path.push(before);
    path.push_str(name);
    path.push('=');
    escape(path, value);
}

fn escape(path: &mut String, text: &str) {
    path.extend(utf8_percent_encode(text, SEGMENT));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_escaped_and_as_argo_cd_serves_it() {
        let app =
            || AppRef { name: "store".to_owned(), namespace: "argocd".to_owned(), project: "a&b".to_owned() };
        let of = "/api/v1/applications/store";
        let query = "appNamespace=argocd&project=a%26b";
        let manifests = |revision: Option<&str>| Fetch::Manifests {
            app: app(),
            revision: revision.map(str::to_owned),
            purpose: Purpose::Desired,
            cache: None,
            fresh: false,
            sources: None,
        };
        let metadata = Fetch::RevisionMetadata {
            app: app(),
            repo_url: String::new(),
            revision: "feature/x y".to_owned(),
            source_index: 2,
        };
        for (fetch, path) in [
            (Fetch::ManagedResources { app: app(), paced: false }, format!("{of}/managed-resources?{query}")),
            (Fetch::ResourceTree { app: app(), paced: true }, format!("{of}/resource-tree?{query}")),
            (manifests(None), format!("{of}/manifests?{query}")),
            (manifests(Some("")), format!("{of}/manifests?{query}&revision=")),
            (manifests(Some("v1+2")), format!("{of}/manifests?{query}&revision=v1%2B2")),
            (metadata, format!("{of}/revisions/feature%2Fx%20y/metadata?{query}&sourceIndex=2")),
            (
                Fetch::Parent { namespace: "né".to_owned(), name: "p?".to_owned() },
                "/api/v1/applications/p%3F?appNamespace=n%C3%A9".to_owned(),
            ),
        ] {
            assert_eq!(fetch.path(""), path);
            assert_eq!(fetch.path("/argo/"), format!("/argo{path}"));
        }
    }
}
