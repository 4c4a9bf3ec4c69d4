//! How stages tell the engine what they did toward a peer, without counting themselves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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

/// How much is asked of a peer at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// Who is called.
    pub peer: Peer,
    /// Calls that may be under way at once.
    pub limit: usize,
    /// Calls that are.
    pub in_flight: usize,
    /// Calls that wait until fewer are.
    pub waiting: usize,
}

/// What a call had to wait for before it was made; a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wait {
    /// For another call to end: as many as may be were under way.
    Slot,
    /// For the budget of calls in a second.
    Budget,
}

impl Wait {
    /// All, for metrics that start at zero.
    pub const ALL: [Self; 2] = [Self::Slot, Self::Budget];

    /// The label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Slot => "slot",
            Self::Budget => "budget",
        }
    }
}

/// Takes samples; the engine's metrics implement it.
pub trait Meter: Send + Sync {
    /// Takes one sample. Never blocks.
    fn record(&self, sample: Sample);

    /// Takes how much is asked of a peer from now on. Never blocks.
    fn pressure(&self, _pressure: Pressure) {}

    /// Takes that a call had to wait. Never blocks.
    fn waited(&self, _peer: Peer, _wait: Wait, _took: Duration) {}
}

/// The calls that were made for one event; cloning shares. The first 64 are kept.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    samples: Arc<Mutex<Vec<(Instant, Sample)>>>,
}

/// A round that made more calls than this is told by the first of them.
const SAMPLES: usize = 64;

impl Samples {
    /// The samples taken so far, which are forgotten.
    #[must_use]
    pub fn take(&self) -> Vec<Sample> {
        self.take_ended().into_iter().map(|(_, sample)| sample).collect()
    }

    /// As [`Samples::take`], each with when it was taken: when its call ended.
    #[must_use]
    pub fn take_ended(&self) -> Vec<(Instant, Sample)> {
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Meter for Samples {
    fn record(&self, sample: Sample) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() < SAMPLES {
            samples.push((Instant::now(), sample));
        }
    }
}

/// Forgets every sample; for tools and tests that look at results alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn record(&self, _: Sample) {}
}
