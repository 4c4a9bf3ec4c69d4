//! A commit that a deployment brought, with what it changed in the files of its application.

use stages_platform_store::{FileDiff, MadeFrom};

use super::application::Change;

/// A commit of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BroughtCommit {
    /// The commit.
    pub change: Change,
    /// What Argo CD made it from, where it did.
    pub made_from: Option<MadeFrom>,
    /// What it changed, by source.
    pub sources: Vec<CommitFiles>,
    /// The commit after it of the same deployment.
    pub newer: Option<String>,
    /// The one before it.
    pub older: Option<String>,
}

/// Files of one source of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitFiles {
    /// The address of the repository, as it was reported.
    pub repository: String,
    /// Files of which it is told what differs.
    pub diffs: Vec<FileDiff>,
    /// Further ones.
    pub paths: Vec<String>,
    /// How many more there are.
    pub more_paths: u64,
}
