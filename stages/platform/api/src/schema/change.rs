//! The commits that a deployment brought.

use async_graphql::SimpleObject;
use stages_platform_store as kept;

use super::told;

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
    /// The commit of people that it was made from, where Argo CD wrote it.
    made_from: Option<MadeFrom>,
    /// The paths of the application that it changed, as far as they are known.
    paths: Vec<String>,
    /// How many more there are.
    more_paths: u64,
}

/// A commit of people that Argo CD made another one from.
#[derive(SimpleObject)]
struct MadeFrom {
    /// Where its repository is.
    repo_url: String,
    revision: String,
    /// Null: it is not known, as what follows.
    author: Option<String>,
    date: Option<String>,
    message: Option<String>,
}

/// What a commit changed in the files of an application, of one of its sources.
#[derive(SimpleObject)]
pub(crate) struct ChangedFiles {
    /// Where the repository of the source is.
    repo_url: String,
    /// Files of which it is told what differs, at most a hundred.
    files: Vec<FileDiff>,
    /// Paths of further ones, as far as they are known.
    paths: Vec<String>,
    /// How many more there are.
    more_paths: u64,
}

/// What a commit changed in one file, without its secrets.
#[derive(SimpleObject)]
struct FileDiff {
    path: String,
    /// A unified diff without its head; null: there is none.
    text: Option<String>,
    /// Why there is none: binary, large, unreadable (what is secret in it is not known), same (no line differs) or lost.
    untold: Option<String>,
    /// There is more of it than is told.
    cut: bool,
}

impl ChangedFiles {
    /// Of the commit of that revision, in each source that it changed.
    pub(crate) fn of(sources: Vec<kept::SourceChange>, revision: &str) -> Vec<Self> {
        let diff = |kept::FileDiff { path, text, untold, cut }| FileDiff {
            path,
            text: told(text),
            untold: told(untold),
            cut,
        };
        let of = |kept::SourceChange { repository, commits, .. }| {
            let commit = commits.into_iter().find(|commit| commit.revision == revision)?;
            let kept::CommitOf { mut paths, more_paths, diffs, .. } = commit;
            paths.retain(|path| diffs.iter().all(|file| file.path != *path));
            Some(Self {
                repo_url: repository,
                files: diffs.into_iter().map(diff).collect(),
                paths,
                more_paths,
            })
        };
        sources.into_iter().filter_map(of).collect()
    }
}

impl SourceChange {
    pub(crate) fn of(source: kept::SourceChange) -> Self {
        let made_from = |kept::MadeFrom { repository, revision, author, date, message }| MadeFrom {
            repo_url: repository,
            revision,
            author: told(author),
            date: told(date),
            message: told(message),
        };
        let commit = |of: kept::CommitOf| Commit {
            revision: of.revision,
            author: of.author,
            date: of.date,
            message: of.message,
            made_from: of.made_from.map(made_from),
            paths: of.paths,
            more_paths: of.more_paths,
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
