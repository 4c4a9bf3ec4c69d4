//! Repositories for tests.

use git2::{Oid, Signature, Time};
use tempfile::TempDir;

use crate::repository::GitRepository;

/// A repository of one commit with these files; a mode stands before a content that is not a regular file's.
pub(crate) fn repository(files: &[(&str, i32, &[u8])]) -> (TempDir, GitRepository, Oid) {
    let directory = tempfile::tempdir().unwrap();
    let made = git2::Repository::init_bare(directory.path()).unwrap();
    let mut index = git2::Index::new().unwrap();
    for (path, mode, content) in files {
        let id =
            if *mode == 0o160_000 { Oid::from_bytes(&[7; 20]).unwrap() } else { made.blob(content).unwrap() };
        index
            .add(&git2::IndexEntry {
                ctime: git2::IndexTime::new(0, 0),
                mtime: git2::IndexTime::new(0, 0),
                dev: 0,
                ino: 0,
                mode: u32::try_from(*mode).unwrap(),
                uid: 0,
                gid: 0,
                file_size: 0,
                id,
                flags: 0,
                flags_extended: 0,
                path: path.as_bytes().to_vec(),
            })
            .unwrap();
    }
    let tree = made.find_tree(index.write_tree_to(&made).unwrap()).unwrap();
    let who = Signature::new("Ada", "ada@example.com", &Time::new(1_700_000_000, 60)).unwrap();
    let commit = made.commit(Some("HEAD"), &who, &who, "All of it\n", &tree, &[]).unwrap();
    drop(tree);
    let repository = GitRepository::open(directory.path()).unwrap();
    (directory, repository, commit)
}

/// A regular file.
pub(crate) fn file<'a>(path: &'a str, content: &'a str) -> (&'a str, i32, &'a [u8]) {
    (path, 0o100_644, content.as_bytes())
}

/// A symbolic link.
pub(crate) fn link<'a>(path: &'a str, target: &'a str) -> (&'a str, i32, &'a [u8]) {
    (path, 0o120_000, target.as_bytes())
}
