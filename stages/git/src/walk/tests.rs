//! The walk beside an oracle, over generated repositories.

mod generated;
mod git_log;
mod incumbent;
mod oracle;
mod shapes;

use std::collections::BTreeMap;

use git2::{ObjectType, Oid, Repository};
use tempfile::TempDir;

/// A file as a tree holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct File {
    pub(super) mode: i32,
    pub(super) id: Oid,
}

pub(super) type Files = BTreeMap<String, File>;

/// A commit as it was made: what the oracle reads instead of the repository.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) id: Oid,
    pub(super) files: Files,
    pub(super) parents: Vec<usize>,
    pub(super) time: i64,
}

/// A repository that is being made, and what it was made of.
pub(super) struct Built {
    pub(super) directory: TempDir,
    pub(super) repository: Repository,
    pub(super) commits: Vec<Made>,
}

pub(super) const REGULAR: i32 = 0o100_644;
pub(super) const EXECUTABLE: i32 = 0o100_755;
pub(super) const SYMLINK: i32 = 0o120_000;
pub(super) const SUBMODULE: i32 = 0o160_000;

impl Built {
    /// A repository that is cut off at the commits of `boundary`, a line each. Its objects are in memory: thousands of
    /// repositories take the disk minutes.
    pub(super) fn new(boundary: &str) -> Self {
        let built = Self::on_disk(boundary);
        built.repository.odb().unwrap().add_new_mempack_backend(1_000).unwrap();
        built
    }

    pub(super) fn on_disk(boundary: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Repository::init_bare(directory.path()).unwrap();
        if !boundary.is_empty() {
            std::fs::write(directory.path().join("shallow"), boundary).unwrap();
        }
        // Opened as bare, libgit2 reads nothing of what is cut off.
        let repository = Repository::open(directory.path()).unwrap();
        Self { directory, repository, commits: Vec::new() }
    }

    pub(super) fn blob(&self, text: &str) -> Oid {
        self.repository.blob(text.as_bytes()).unwrap()
    }

    pub(super) fn file(&self, text: &str) -> File {
        File { mode: REGULAR, id: self.blob(text) }
    }

    fn tree(&self, files: &[(&str, File)]) -> Oid {
        let mut entries: Vec<(Vec<u8>, i32, Oid)> = Vec::new();
        let mut directories: BTreeMap<&str, Vec<(&str, File)>> = BTreeMap::new();
        for (path, file) in files {
            match path.split_once('/') {
                Some((directory, rest)) => directories.entry(directory).or_default().push((rest, *file)),
                None => entries.push((path.as_bytes().to_vec(), file.mode, file.id)),
            }
        }
        for (name, below) in directories {
            entries.push(([name.as_bytes(), b"/"].concat(), 0o040_000, self.tree(&below)));
        }
        entries.sort();
        let mut bytes = Vec::new();
        for (name, mode, id) in entries {
            bytes.extend_from_slice(format!("{mode:o} ").as_bytes());
            bytes.extend_from_slice(name.strip_suffix(b"/").unwrap_or(&name));
            bytes.push(0);
            bytes.extend_from_slice(id.as_bytes());
        }
        self.repository.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap()
    }

    /// Adds a commit; says which.
    pub(super) fn commit(&mut self, files: Files, parents: &[usize], time: i64) -> usize {
        let flat: Vec<(&str, File)> = files.iter().map(|(path, file)| (path.as_str(), *file)).collect();
        let mut text = format!("tree {}\n", self.tree(&flat));
        for parent in parents {
            text += &format!("parent {}\n", self.commits[*parent].id);
        }
        let number = self.commits.len();
        text += &format!("author A {number} <a{number}@example.com> {time} +0000\n");
        text += &format!("committer C <c@example.com> {time} +0000\n\ncommit {number}\n");
        let id = self.repository.odb().unwrap().write(ObjectType::Commit, text.as_bytes()).unwrap();
        self.commits.push(Made { id, files, parents: parents.to_vec(), time });
        number
    }

    /// A copy that has the commits of `kept` alone, as a shallow clone has.
    pub(super) fn shallow(&self, kept: &[bool]) -> Self {
        let is_cut = |commit: &Made| commit.parents.iter().any(|parent| !kept[*parent]);
        let all = || self.commits.iter().zip(kept);
        let boundary = all()
            .filter(|(commit, kept)| **kept && is_cut(commit))
            .map(|(commit, _)| format!("{}\n", commit.id));
        self.copied(kept, Self::new(&boundary.collect::<String>()))
    }

    /// A copy on the disk, for other programs.
    pub(super) fn written(&self) -> Self {
        self.copied(&vec![true; self.commits.len()], Self::on_disk(""))
    }

    fn copied(&self, kept: &[bool], mut copy: Self) -> Self {
        let is_cut = |commit: &Made| commit.parents.iter().any(|parent| !kept[*parent]);
        let (from, to) = (self.repository.odb().unwrap(), copy.repository.odb().unwrap());
        for (commit, kept) in self.commits.iter().zip(kept) {
            let mut made = commit.clone();
            if is_cut(commit) {
                made.parents.clear();
            }
            copy.commits.push(made);
            let tree = self.repository.find_commit(commit.id).unwrap().tree_id();
            let mut rest = if *kept { vec![commit.id, tree] } else { Vec::new() };
            while let Some(id) = rest.pop() {
                // There is nothing behind a submodule's entry.
                let Ok(object) = from.read(id) else { continue };
                to.write(object.kind(), object.data()).unwrap();
                if object.kind() == ObjectType::Tree {
                    let tree = self.repository.find_tree(id).unwrap();
                    rest.extend(tree.iter().map(|entry| entry.id()));
                }
            }
        }
        drop((from, to));
        copy
    }
}
