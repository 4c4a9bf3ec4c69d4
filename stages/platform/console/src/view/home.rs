//! What needs somebody now.

use jiff::Timestamp;
use stages_platform_store::{ApplicationName, FleetMover};

use super::cluster::ClusterRow;
use super::runtime::RuntimeRow;
use super::state::Health;

/// What a need is about.
#[derive(Debug, Clone)]
pub enum Subject {
    /// An application that is not well, and where it runs.
    Unhealthy(ApplicationName, String, Health),
    /// An application whose last deployment failed.
    SyncFailed(ApplicationName, String),
    /// An application of which Argo CD does not know how it is, or whether it is as Git says.
    Unknown(ApplicationName, String),
    /// An application that has drifted, or is out of sync.
    OutOfSync(ApplicationName, String),
    /// A runtime that is silent.
    Silent(String),
    /// A runtime that says that something is wrong with it.
    Troubled(String),
}

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Words.
    Text(String),
    /// What somebody may copy: a revision, a name, a path.
    Code(String),
}

impl Said {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// As it reads.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Code(text) => text,
        }
    }
}

/// Something that needs somebody.
#[derive(Debug, Clone)]
pub struct Need {
    /// What it is about.
    pub subject: Subject,
    /// Why, in a sentence.
    pub reason: Vec<Said>,
    /// Since when.
    pub since: Timestamp,
}

/// Deployments of a day.
#[derive(Debug, Clone)]
pub struct Day {
    /// When it began.
    pub from: Timestamp,
    /// How many succeeded.
    pub succeeded: u64,
    /// How many failed.
    pub failed: u64,
}

/// What moves, against the 28 days before; it may be a minute old.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    /// Deployments of the last 28 days.
    pub deployments: u64,
    /// Deployments of the 28 days before; `None` where history is not kept for so long.
    pub before: Option<u64>,
    /// The applications that were deployed most often, these first.
    pub movers: Vec<FleetMover>,
}

/// What the first page shows.
#[derive(Debug, Clone)]
pub struct Home {
    /// What needs somebody, most urgent first.
    pub needs: Vec<Need>,
    /// How many there are, if not all are listed.
    pub needs_total: u64,
    /// How many applications are known.
    pub applications: u64,
    /// Runtimes.
    pub runtimes: Vec<RuntimeRow>,
    /// The last 28 days, as UTC counts them, the oldest first and today last.
    pub days: Vec<Day>,
    /// What moves.
    pub activity: Activity,
    /// Clusters, what needs attention first.
    pub clusters: Vec<ClusterRow>,
    /// How many clusters there are.
    pub clusters_total: u64,
}
