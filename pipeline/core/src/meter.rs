//! How stages tell the engine what they did toward a peer, without counting themselves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::Reason;

/// Who was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Peer {
    /// The Kubernetes API server.
    Kubernetes,
    /// The Argo CD API server.
    ArgoCd,
    /// Where reports go.
    Platform,
}

/// Which call; a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// One page of a list.
    List,
    /// One watch connection.
    Watch,
    /// One object by name.
    Get,
    /// `managed-resources`.
    ManagedResources,
    /// `resource-tree`.
    ResourceTree,
    /// `resource`.
    Resource,
    /// `manifests`.
    Manifests,
    /// `revisions/{rev}/metadata`.
    RevisionMetadata,
    /// `applications/{name}`: a parent.
    Application,
    /// `settings`.
    Settings,
    /// One report.
    Report,
}

impl Call {
    /// The label and log value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Watch => "watch",
            Self::Get => "get",
            Self::ManagedResources => "managed_resources",
            Self::ResourceTree => "resource_tree",
            Self::Resource => "resource",
            Self::Manifests => "manifests",
            Self::RevisionMetadata => "revision_metadata",
            Self::Application => "application",
            Self::Settings => "settings",
            Self::Report => "report",
        }
    }
}

impl Peer {
    /// The label and log value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::ArgoCd => "argocd",
            Self::Platform => "platform",
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// An answer that could be used, "not found" included where that is an answer.
    Ok,
    /// Answered from a cache; nothing was sent.
    Cached,
    /// It failed.
    Failed(Reason),
}

/// One call that was made.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Who was called.
    pub peer: Peer,
    /// Which call.
    pub call: Call,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

/// Takes samples; the engine's metrics implement it.
pub trait Meter: Send + Sync {
    /// Takes one sample. Never blocks.
    fn record(&self, sample: Sample);
}

/// The calls that were made for one event; cloning shares. The first 64 are kept.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    samples: Arc<Mutex<Vec<Sample>>>,
}

/// A round that made more calls than this is told by the first of them.
const SAMPLES: usize = 64;

impl Samples {
    /// The samples taken so far, which are forgotten.
    #[must_use]
    pub fn take(&self) -> Vec<Sample> {
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Meter for Samples {
    fn record(&self, sample: Sample) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() < SAMPLES {
            samples.push(sample);
        }
    }
}

/// Forgets every sample; for tools and tests that look at results alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn record(&self, _: Sample) {}
}
