//! Which commits changed an application between two revisions, and which of its files differ between them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_git::application::Application;
use stages_git::walk::{WalkLimits, WalkRequest};
use stages_git::{GitError, GitRepository, Oid};

/// The most commits of an answer.
const MAX_COMMITS: usize = 100;

/// A question which commits changed one source of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangesRequest {
    /// The Application.
    pub app: Value,
    /// Which of its sources: the position in `spec.sources`.
    #[serde(default)]
    pub source: usize,
    /// The older revision; empty where everything is new.
    #[serde(default)]
    pub from: String,
    /// The newer revision.
    pub to: String,
}

/// The answer to a [`ChangesRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangesResponse {
    /// The older commit; none where everything is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whether the repository does not have the older revision any more, so that everything is new.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_unknown: bool,
    /// The newer commit.
    pub to: String,
    /// The application's files that differ between the two; at most a hundred.
    pub files: Vec<String>,
    /// How many more there are.
    pub more: usize,
    /// The commits that changed it, the newest first; where none is new, the newest that there is at all.
    pub commits: Vec<ChangingCommit>,
    /// Whether there are more than `commits` holds.
    pub more_commits: bool,
    /// Whether none of the commits is new.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub none_is_new: bool,
}

/// A commit that changed the application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangingCommit {
    /// Its id.
    pub revision: String,
    /// Who wrote it: `name <address>`.
    pub author: String,
    /// When it was written, as RFC 3339.
    pub date: String,
    /// Its message.
    pub message: String,
    /// The application's files that it changed; at most a hundred.
    pub files: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

/// The commits between which changes are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommitRange {
    /// `None` where everything is new.
    pub(crate) from: Option<Oid>,
    /// Whether an older revision was named that is not there.
    pub(crate) from_unknown: bool,
    pub(crate) to: Oid,
}

/// The commits that changed a source of an application, from a repository that has both ends of the range.
pub(crate) fn changed(
    repository: &GitRepository,
    application: &Application,
    source: usize,
    between: CommitRange,
) -> Result<ChangesResponse, GitError> {
    let CommitRange { from, from_unknown, to } = between;
    let paths = application.paths(source, &repository.snapshot(to)?)?;
    let (files, more) = match from {
        Some(from) => {
            let differing = repository.differing(from, to, std::slice::from_ref(&paths))?;
            let differing = differing.into_iter().next().flatten();
            differing.map_or_else(Default::default, |of| (of.paths, of.more_paths))
        }
        None => Default::default(),
    };
    let limits = WalkLimits { changes: MAX_COMMITS, ..WalkLimits::default() };
    let found = repository.changes(&[WalkRequest { to, since: from, paths }], limits)?;
    let found = found.into_iter().next().unwrap_or_default();
    let none_is_new = found.since.is_empty();
    let commits = if none_is_new { found.newest.into_iter().collect() } else { found.since };
    let commits = commits.into_iter().map(|change| {
        let commit = repository.commit(change.commit)?;
        Ok(ChangingCommit {
            revision: commit.revision,
            author: commit.author,
            date: commit.date,
            message: commit.message,
            files: change.paths,
            more: change.more_paths,
        })
    });
    Ok(ChangesResponse {
        from: from.map(|from| from.to_string()),
        from_unknown,
        to: to.to_string(),
        files,
        more,
        commits: commits.collect::<Result<_, GitError>>()?,
        more_commits: found.more,
        none_is_new,
    })
}
