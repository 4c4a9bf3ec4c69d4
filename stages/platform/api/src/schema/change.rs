//! The commits that a deployment brought.

use async_graphql::SimpleObject;
use stages_platform_store as kept;

/// What a deployment brought of one source of its application.
#[derive(SimpleObject)]
pub(crate) struct SourceChange {
    /// Where its repository is.
    repo_url: String,
    /// The revision that was synced.
    revision: String,
    /// The revision that it stood at before; null: there was none, or it is not known.
    previous_revision: Option<String>,
    /// The commits that changed the application since, the newest first; where there is none, the last that did.
    commits: Vec<Commit>,
    /// There are more than these.
    more: bool,
    /// None of them is new.
    none_is_new: bool,
    /// Why they are not known.
    error: Option<String>,
}

/// A commit that changed an application.
#[derive(SimpleObject)]
struct Commit {
    revision: String,
    author: String,
    date: String,
    message: String,
    /// The paths of the application that it changed, as far as they are known.
    paths: Vec<String>,
    /// How many more there are.
    more_paths: u64,
}

impl SourceChange {
    pub(crate) fn of(source: kept::SourceChange) -> Self {
        let told = |text: String| Some(text).filter(|text| !text.is_empty());
        let commit = |kept::CommitOf { revision, author, date, message, paths, more_paths, .. }| Commit {
            revision,
            author,
            date,
            message,
            paths,
            more_paths,
        };
        Self {
            repo_url: source.repository,
            revision: source.revision,
            previous_revision: told(source.previous),
            commits: source.commits.into_iter().map(commit).collect(),
            more: source.more,
            none_is_new: source.none_is_new,
            error: told(source.error),
        }
    }
}
