//! A deployment: an operation of Argo CD, with its commit, its people and what it changed.

use jiff::Timestamp;
use stages_platform_store::{ApplicationName, SourceChange};

use super::application::Change;
use super::state::states;

states! {
    /// How a deployment ended.
    Outcome {
        /// It goes on.
        Running = "◐", "progress";
        /// It is done.
        Succeeded = "●", "ok";
        /// It failed.
        Failed = "✕", "bad";
    }
}

/// An image that a deployment changed, or kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageChange {
    /// The image, without its version.
    pub name: String,
    /// The version before; `None`: the image is new.
    pub before: Option<String>,
    /// The version after.
    pub after: String,
}

/// A deployment.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// Of which application.
    pub application: ApplicationName,
    /// When it began.
    pub at: Timestamp,
    /// When it ended.
    pub finished: Option<Timestamp>,
    /// The commit.
    pub change: Change,
    /// Who synced: a person, or nothing for automation.
    pub by: Option<String>,
    /// Its images.
    pub images: Vec<ImageChange>,
    /// How it ended.
    pub outcome: Outcome,
    /// What Argo CD said of its end.
    pub message: String,
    /// The commits that it brought, by source, where they are known.
    pub brought: Vec<SourceChange>,
}
