//! What is reported of one application.

use serde::Serialize;
use stages_git::MadeFrom;

/// Between which revisions an application went, and which commits did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeReport {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its incarnation.
    pub uid: String,
    /// When the sync began that brought it there, as Argo CD says it; of one that has not begun, nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// The commit that last changed the first source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_revision: Option<String>,
    /// The commit that last changed each source; empty where none is known.
    pub change_revisions: Vec<String>,
    /// Its sources, in its order.
    pub sources: Vec<ShownSource>,
}

/// One source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownSource {
    /// Where its repository is.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// The revision it stands at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The revision it stood at before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_revision: Option<String>,
    /// The commit that last changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_revision: Option<String>,
    /// The commits that changed it since the revision before, the newest first; where there is none (a rollback, a sync of the
    /// same revision, a forced push), the newest that there is at all.
    pub changes: Vec<ShownChange>,
    /// No commit is new.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub none_is_new: bool,
    /// There are more than are told.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// The revision before is not in the repository any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub previous_unknown: bool,
    /// Why nothing is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownChange {
    /// Its id.
    pub revision: String,
    /// Who wrote it: `name <address>`.
    pub author: String,
    /// When, RFC 3339.
    pub date: String,
    /// What it says.
    pub message: String,
    /// The commit of people that Argo CD made it from, where it writes the manifests of the application to a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_from: Option<MadeFrom>,
    /// The application's paths that differ from its first parent's.
    pub paths: Vec<String>,
    /// How many more of them differ.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_paths: usize,
    /// What differs in the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<FileDiff>,
}

/// What a commit changed in one file, beside its first parent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileDiff {
    /// The file.
    pub path: String,
    /// A unified diff without its head, of the file without its secrets.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untold: Option<Untold>,
    /// There is more of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Why it is not told what a commit changed in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Untold {
    /// It is no text.
    Binary,
    /// It is larger than what is compared.
    Large,
    /// It is neither YAML nor JSON that could be read: what is secret in it is not known.
    Unreadable,
    /// Nothing but its mode differs, or what stands for a secret there.
    Same,
    /// It cannot be had from the repository.
    Lost,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
