//! What can go wrong with a repository, in words that name it.

use git2::Oid;

/// An error and what led to it, in one line; what an error repeats of its cause stands there once.
pub fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    text
}

/// Something of a repository could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is no repository that could be opened.
    #[error("open the repository {place}")]
    Open {
        /// Where it should be.
        place: String,
        /// Why not.
        source: git2::Error,
    },
    /// No repository is there, nor, where that is looked at, above it.
    #[error("no Git repository is at {place}")]
    NoRepository {
        /// Where it should be.
        place: String,
    },
    /// An object of the repository cannot be read.
    #[error("read {what} of the repository")]
    Read {
        /// An object, or a path in one.
        what: String,
        /// Why not.
        source: git2::Error,
    },
    /// The revision names no commit.
    #[error("no commit is named {revision}: neither a branch, a tag nor an object of the repository is")]
    NoRevision {
        /// As it was given.
        revision: String,
    },
    /// A whole repository lacks a commit.
    #[error("the repository is damaged: {parent} is not there, which {commit} follows")]
    MissingParent {
        /// Whose parent.
        commit: Oid,
        /// What is not there.
        parent: Oid,
    },
    /// History is longer than it may be.
    #[error(
        "the repository's history has more than {limit} commits, a merge counted once for each commit that it follows"
    )]
    TooManyCommits {
        /// How many it may have.
        limit: usize,
    },
    /// Two revisions have nothing in common.
    #[error("{one} and {two} have no history in common")]
    NoMergeBase {
        /// One of them.
        one: Oid,
        /// The other.
        two: Oid,
    },
    /// A file is larger than what is read.
    #[error("{path} has {size} bytes, and no more than {limit} are read")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size.
        size: usize,
        /// What is read at most.
        limit: usize,
    },
    /// A directory holds more than is listed.
    #[error("the directory /{path} holds more than {limit} files and directories")]
    TooManyNames {
        /// The directory.
        path: String,
        /// What is listed at most.
        limit: usize,
    },
    /// A file's content is not in the repository.
    #[error("the content of {path} is not in the repository: it is kept with Git LFS")]
    Lfs {
        /// The file.
        path: String,
    },
    /// A path is in another repository.
    #[error("{path} is in a submodule, which is another repository")]
    Submodule {
        /// The path.
        path: String,
    },
    /// A path leads out of the repository.
    #[error("{path} leads out of the repository")]
    Outside {
        /// The path.
        path: String,
    },
    /// Links lead to links.
    #[error("{path} is behind more than 8 symbolic links")]
    Links {
        /// The path.
        path: String,
    },
    /// Links of many files lead through more than is followed.
    #[error(
        "symbolic links lead through more than {limit} bytes of paths, the last of them {path}: put files in the place of links, or \
         name what the application is made of in its annotation argocd.argoproj.io/manifest-generate-paths"
    )]
    TooManyLinks {
        /// The path that was not followed any more.
        path: String,
        /// What is followed at most.
        limit: usize,
    },
    /// A file is not the YAML or JSON that it should be.
    #[error("{path} is not valid: {why}")]
    Invalid {
        /// The file.
        path: String,
        /// What about it.
        why: String,
    },
}

impl GitError {
    /// Whether it is no answer about one path, but ends all reading.
    pub(crate) const fn ends_reading(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::TooManyLinks { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::{GitError, in_one_line};

    #[derive(Debug, thiserror::Error)]
    #[error("read the values: {0}")]
    struct Repeats(#[source] GitError);

    #[test]
    fn an_error_is_told_with_its_causes_and_each_of_them_once() {
        let cause =
            || GitError::Read { what: "a.yaml".to_owned(), source: git2::Error::from_str("no object") };
        assert_eq!(in_one_line(&cause()), "read a.yaml of the repository: no object");
        let wanted = "read the values: read a.yaml of the repository: no object";
        assert_eq!(in_one_line(&Repeats(cause())), wanted);
    }
}
