//! Repositories for tests.

use std::path::Path;

use git2::{IndexEntry, IndexTime, Oid, Signature, Time};
use stages_git::GitRepository;
use tempfile::TempDir;

/// A repository of one commit with these files.
pub(crate) fn repository(files: &[(&str, &str)]) -> (TempDir, GitRepository, Oid) {
    let directory = tempfile::tempdir().unwrap();
    git2::Repository::init_bare(directory.path()).unwrap();
    let commit = commit(directory.path(), files);
    let repository = GitRepository::open(directory.path()).unwrap();
    (directory, repository, commit)
}

/// One more commit, of these files alone.
pub(crate) fn commit(directory: &Path, files: &[(&str, &str)]) -> Oid {
    let made = git2::Repository::open(directory).unwrap();
    let mut index = git2::Index::new().unwrap();
    for (path, content) in files {
        let entry = IndexEntry {
            ctime: IndexTime::new(0, 0),
            mtime: IndexTime::new(0, 0),
            dev: 0,
            ino: 0,
            mode: 0o100_644,
            uid: 0,
            gid: 0,
            file_size: 0,
            id: made.blob(content.as_bytes()).unwrap(),
            flags: 0,
            flags_extended: 0,
            path: path.as_bytes().to_vec(),
        };
        index.add(&entry).unwrap();
    }
    let tree = made.find_tree(index.write_tree_to(&made).unwrap()).unwrap();
    let who = Signature::new("Ada", "ada@example.com", &Time::new(1_700_000_000, 60)).unwrap();
    let parent = made.head().ok().map(|head| head.peel_to_commit().unwrap());
    let parents: Vec<_> = parent.iter().collect();
    made.commit(Some("HEAD"), &who, &who, "All of it\n", &tree, &parents).unwrap()
}
