//! A repository on this machine.

use std::path::Path;
use std::time::Instant;

use git2::{ErrorCode, Oid, Repository, RepositoryOpenFlags};
use serde::Serialize;

use crate::error::GitError;
use crate::file_change::BesideParent;
use crate::paths::Paths;
use crate::series::GitSeries;
use crate::snapshot::Snapshot;
use crate::walk::{self, Change, Changes, WalkLimits, WalkRequest};

/// Characters of a commit's message that are kept.
const MAX_MESSAGE: usize = 8_192;

/// A repository on this machine, bare or not.
pub struct GitRepository {
    inner: Repository,
    series: Option<GitSeries>,
}

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Commit {
    /// Its id.
    pub revision: String,
    /// Who wrote it: `name <address>`.
    pub author: String,
    /// When it was written, RFC 3339 in seconds.
    pub date: String,
    /// What it says; at most 8,192 characters.
    pub message: String,
    /// The tags that name it, sorted; at most a hundred. None where they were not looked for: see [`GitRepository::tagged`].
    pub tags: Vec<String>,
    /// It carries a signature; whose and whether it is good is not looked at.
    pub signed: bool,
}

fn not_opened(directory: &Path, source: git2::Error) -> GitError {
    let place = directory.display().to_string();
    match source.code() {
        ErrorCode::NotFound => GitError::NoRepository { place },
        _ => GitError::Open { place, source },
    }
}

impl GitRepository {
    /// Opens the repository of a directory, or the one that the directory is in.
    ///
    /// Like git, it looks no higher than the directories of `GIT_CEILING_DIRECTORIES`.
    ///
    /// # Errors
    /// There is none, or it is somebody else's.
    pub fn open(directory: &Path) -> Result<Self, GitError> {
        settle();
        let ceilings = std::env::var_os("GIT_CEILING_DIRECTORIES").unwrap_or_default();
        let ceilings = std::env::split_paths(&ceilings);
        let inner = Repository::open_ext(directory, RepositoryOpenFlags::empty(), ceilings)
            .map_err(|source| not_opened(directory, source))?;
        Ok(Self { inner, series: None })
    }

    /// From now on its walks are counted.
    #[must_use]
    pub fn counted(self, series: GitSeries) -> Self {
        Self { series: Some(series), ..self }
    }

    /// The library's own.
    pub(crate) fn repository(&self) -> &Repository {
        &self.inner
    }

    /// Opens a bare repository, and no other that its directory is in.
    ///
    /// # Errors
    /// There is none, or it is somebody else's.
    pub fn open_bare(directory: &Path) -> Result<Self, GitError> {
        settle();
        let inner = Repository::open_bare(directory).map_err(|source| not_opened(directory, source))?;
        Ok(Self { inner, series: None })
    }

    /// The commit of a branch, a tag, `HEAD`, or a commit's (abbreviated) id; a branch of the remote `origin` too.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn resolve(&self, revision: &str) -> Result<Oid, GitError> {
        let none = || GitError::NoRevision { revision: revision.to_owned() };
        let one = |name: &str| {
            let object = self.inner.revparse_single(name)?;
            object.peel_to_commit().map(|commit| commit.id())
        };
        match one(revision).or_else(|_| one(&format!("refs/remotes/origin/{revision}"))) {
            Ok(id) => Ok(id),
            Err(error)
                if matches!(error.code(), ErrorCode::NotFound | ErrorCode::InvalidSpec | ErrorCode::Peel) =>
            {
                Err(none())
            }
            Err(source) => Err(GitError::Read { what: revision.to_owned(), source }),
        }
    }

    /// Where `origin` is.
    pub fn origin(&self) -> Option<String> {
        self.inner.find_remote("origin").ok()?.url().ok().map(str::to_owned)
    }

    /// The newest commit that both follow.
    ///
    /// # Errors
    /// They have no history in common, or it cannot be read.
    pub fn merge_base(&self, one: Oid, two: Oid) -> Result<Oid, GitError> {
        self.inner.merge_base(one, two).map_err(|source| match source.code() {
            ErrorCode::NotFound => GitError::NoMergeBase { one, two },
            _ => GitError::Read { what: format!("the history of {one} and {two}"), source },
        })
    }

    /// The files of a commit.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn snapshot(&self, commit: Oid) -> Result<Snapshot<'_>, GitError> {
        Snapshot::new(&self.inner, commit)
    }

    /// The files of a commit beside those of its first parent.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn beside_parent(&self, commit: Oid) -> Result<BesideParent<'_>, GitError> {
        BesideParent::new(&self.inner, commit)
    }

    /// Answers all of `asked` from one walk; see [`walk::changes`].
    ///
    /// # Errors
    /// As [`walk::changes`].
    pub fn changes(&self, asked: &[WalkRequest], limits: WalkLimits) -> Result<Vec<Changes>, GitError> {
        let begun = Instant::now();
        let walked = walk::changes(&self.inner, asked, limits);
        if let Some(series) = &self.series {
            series.walk(walked.as_ref().ok().map(|walked| walked.commits), begun.elapsed());
        }
        walked.map(|walked| walked.changes)
    }

    /// Whose paths differ between two commits; see [`walk::differing`].
    ///
    /// # Errors
    /// As [`walk::differing`].
    pub fn differing(&self, old: Oid, new: Oid, paths: &[Paths]) -> Result<Vec<Option<Change>>, GitError> {
        walk::differing(&self.inner, old, new, paths)
    }

    /// What a commit says of itself. Its tags are not looked for: each tag of the repository is read for that.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn commit(&self, id: Oid) -> Result<Commit, GitError> {
        let failed = |source| GitError::Read { what: id.to_string(), source };
        let commit = self.inner.find_commit(id).map_err(failed)?;
        let author = commit.author();
        let date = jiff::Timestamp::from_second(author.when().seconds()).unwrap_or_default();
        Ok(Commit {
            revision: id.to_string(),
            author: format!("{} <{}>", text(author.name_bytes()), text(author.email_bytes())),
            date: date.to_string(),
            message: text(commit.message_bytes()).chars().take(MAX_MESSAGE).collect(),
            tags: Vec::new(),
            signed: self.inner.extract_signature(&id, None).is_ok(),
        })
    }

    /// What a commit says of itself, with the tags that name it.
    ///
    /// # Errors
    /// It, or the names of the tags, cannot be read.
    pub fn tagged(&self, id: Oid) -> Result<Commit, GitError> {
        let commit = self.commit(id)?;
        let failed = |source| GitError::Read { what: id.to_string(), source };
        let names = self.inner.references_glob("refs/tags/*").map_err(failed)?;
        let mut tags: Vec<String> = Vec::new();
        for tag in names.flatten() {
            if tag.peel_to_commit().is_ok_and(|commit| commit.id() == id) {
                tags.push(text(tag.name_bytes()).replacen("refs/tags/", "", 1));
            }
        }
        tags.sort();
        tags.truncate(100);
        Ok(Commit { tags, ..commit })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How the library works, in the whole process.
fn settle() {
    // What a repository's objects are is kept by the walk itself, within bounds.
    git2::opts::enable_caching(false);
    // Every object that was fetched was hashed when it came; hashing it at each reading takes longer than all else.
    git2::opts::strict_hash_verification(false);
}

#[cfg(test)]
mod tests {
    use super::Commit;
    use crate::testing::repository;

    #[test]
    fn a_commit_is_told_without_a_look_at_tags_but_where_they_are_asked_for() {
        let (directory, repository, commit) = repository(&[]);
        let tag = git2::Repository::open_bare(directory.path()).unwrap();
        tag.reference("refs/tags/v1", commit, false, "tagged").unwrap();
        let plain = repository.commit(commit).unwrap();
        assert_eq!(plain.tags, [""; 0]);
        assert_eq!(
            repository.tagged(commit).unwrap(),
            Commit { tags: vec!["v1".to_owned()], ..plain.clone() }
        );
        // Names that cannot be read are no matter of who does not ask for them.
        std::fs::write(directory.path().join("packed-refs"), "neither an id nor a name\n").unwrap();
        assert_eq!(repository.commit(commit).unwrap(), plain);
        assert!(repository.tagged(commit).is_err());
    }
}
