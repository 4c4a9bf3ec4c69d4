//! What this stage counts by.

use pipeline_core::{Call, Filtered, Labels, Peer, ReportKind};

/// The Argo CD API server.
pub const ARGOCD: Peer = Peer::new("argocd");

/// `managed-resources`.
pub const MANAGED_RESOURCES: Call = Call::new(ARGOCD, "managed_resources");
/// `resource-tree`.
pub const RESOURCE_TREE: Call = Call::new(ARGOCD, "resource_tree");
/// `resource`.
pub const RESOURCE: Call = Call::new(ARGOCD, "resource");
/// `manifests`.
pub const MANIFESTS: Call = Call::new(ARGOCD, "manifests");
/// `revisions/{rev}/metadata`.
pub const REVISION_METADATA: Call = Call::new(ARGOCD, "revision_metadata");
/// `applications/{name}`: a parent.
pub const APPLICATION: Call = Call::new(ARGOCD, "application");
/// `settings`.
pub const SETTINGS: Call = Call::new(ARGOCD, "settings");
/// `session`: a login.
pub const SESSION: Call = Call::new(ARGOCD, "session");

/// Of a root application.
pub const APP_REPORT: ReportKind = ReportKind::of_object("app");
/// Of a child application, reported as a resource of its parent.
pub const CHILD_APP_REPORT: ReportKind = ReportKind::of_object("child_app");
/// Of a resource.
pub const RESOURCE_REPORT: ReportKind = ReportKind::of_listed("resource");

/// Only `status.reconciledAt` moved, and no resource's health did.
pub const RECONCILED_ONLY: Filtered = Filtered::Of("reconciled_only");

/// All of them.
pub const LABELS: Labels = Labels {
    peer: ARGOCD,
    calls: &[
        MANAGED_RESOURCES,
        RESOURCE_TREE,
        RESOURCE,
        MANIFESTS,
        REVISION_METADATA,
        APPLICATION,
        SETTINGS,
        SESSION,
    ],
    caches: true,
    limits: true,
    kinds: &[APP_REPORT, CHILD_APP_REPORT, RESOURCE_REPORT],
    filtered: &[RECONCILED_ONLY],
};
