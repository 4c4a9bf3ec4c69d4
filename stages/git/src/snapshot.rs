//! The files of one commit, read and never written: nothing of a repository is ever checked out.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use git2::{ErrorCode, ObjectType, Oid, Repository, Tree};

use crate::error::GitError;
use crate::trees::{LINK, TreeLimits, Trees};

/// Links that are followed one after another.
const MAX_LINKS: usize = 8;
/// Bytes of a link's target, and of a path that is looked at below a directory: a file system takes no more.
const MAX_PATH: usize = 4_096;
/// Bytes of the paths that all links of a snapshot lead through, each counted with [`EACH_LINK`] more.
const MAX_BEHIND: usize = 8 * 1024 * 1024;
const EACH_LINK: usize = 64;
/// Names of one directory that are listed.
const MAX_NAMES: usize = 100_000;
const KEPT: TreeLimits = TreeLimits { trees: 1_024, entries: 100_000 };
/// What a file begins with whose content is kept elsewhere.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1";

/// The files of one commit. Links are followed up to a bound, which all that is asked of it shares.
pub struct Snapshot<'r> {
    repository: &'r Repository,
    root: Rc<Tree<'r>>,
    trees: Rc<RefCell<Trees<'r>>>,
    /// What is left of [`MAX_BEHIND`].
    behind: Cell<usize>,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its path from the root.
    pub path: String,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// What a path is, once links were followed.
enum Found {
    Nothing,
    Directory(Oid),
    File(Oid),
}

impl<'r> Snapshot<'r> {
    pub(crate) fn new(repository: &'r Repository, commit: Oid) -> Result<Self, GitError> {
        let tree = repository.find_commit(commit).and_then(|commit| commit.tree());
        let tree = tree.map_err(|source| GitError::Read { what: commit.to_string(), source })?;
        let trees = Rc::new(RefCell::new(Trees::new(repository, KEPT)));
        Ok(Self { repository, root: Rc::new(tree), trees, behind: Cell::new(MAX_BEHIND) })
    }

    /// The same files for another question, which follows as many links as though it were the first.
    pub(crate) fn asked_anew(&self) -> Self {
        let (root, trees) = (self.root.clone(), self.trees.clone());
        Self { repository: self.repository, root, trees, behind: Cell::new(MAX_BEHIND) }
    }

    /// The content of a file; `None` when there is none.
    ///
    /// # Errors
    /// The file is larger than `limit`, kept elsewhere (LFS), in a submodule, behind a link that leaves the repository or one too many,
    /// or cannot be read.
    pub fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, GitError> {
        let Found::File(id) = self.find(path)? else { return Ok(None) };
        let failed = |source| GitError::Read { what: shown(path), source };
        let odb = self.repository.odb().map_err(failed)?;
        let (size, _) = odb.read_header(id).map_err(failed)?;
        if size > limit {
            return Err(GitError::TooLarge { path: shown(path), size, limit });
        }
        let content = odb.read(id).map_err(failed)?.data().to_vec();
        if content.starts_with(LFS) {
            return Err(GitError::Lfs { path: shown(path) });
        }
        Ok(Some(content))
    }

    /// Text of a file; as [`Snapshot::read`], and what is no UTF-8 is replaced.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn text(&self, path: &str, limit: usize) -> Result<Option<String>, GitError> {
        Ok(self.read(path, limit)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// What a directory holds, sorted; nothing when it is not there. Submodules are left out.
    ///
    /// # Errors
    /// The path is in a submodule, behind a link that leaves the repository or one too many, holds too many names, or cannot be read.
    pub fn list(&self, path: &str) -> Result<Vec<Listed>, GitError> {
        let Found::Directory(id) = self.find(path)? else { return Ok(Vec::new()) };
        let failed = |source| GitError::Read { what: shown(path), source };
        let tree = self.repository.find_tree(id).map_err(failed)?;
        if tree.len() > MAX_NAMES {
            return Err(GitError::TooManyNames { path: shown(path), limit: MAX_NAMES });
        }
        let mut all: Vec<Listed> = tree
            .iter()
            // A name that is no text cannot be asked for.
            .filter_map(|entry| {
                let name = std::str::from_utf8(entry.name_bytes()).ok()?.to_owned();
                let is_directory = match entry.kind()? {
                    ObjectType::Tree => true,
                    ObjectType::Blob => false,
                    _ => return None,
                };
                Some(Listed { path: join(path, &name)?, is_directory })
            })
            .collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(all)
    }

    /// Whether there is a directory of this path.
    ///
    /// # Errors
    /// As [`Snapshot::list`].
    pub fn is_directory(&self, path: &str) -> Result<bool, GitError> {
        Ok(matches!(self.find(path)?, Found::Directory(_)))
    }

    /// What a path stands for behind its links: a path after each of them, the last of which leads through no other. What leads out
    /// of the repository, into a submodule or in a circle ends before.
    ///
    /// # Errors
    /// The repository cannot be read, or there are too many links.
    pub fn behind_links(&self, path: &str) -> Result<Vec<String>, GitError> {
        let mut behind = Vec::new();
        match self.follow(path, &mut behind) {
            Err(error) if error.ends_reading() => Err(error),
            _ => Ok(behind),
        }
    }

    /// The symbolic links in a directory and below it, as far as so many entries tell, which are counted down.
    ///
    /// # Errors
    /// As [`Snapshot::list`].
    pub fn links(&self, directory: &str, entries: &mut usize) -> Result<Vec<String>, GitError> {
        self.below(directory, entries, |_, is_link| is_link)
    }

    /// The files in a directory and below it whose names end so, as [`Snapshot::links`].
    ///
    /// # Errors
    /// As [`Snapshot::list`].
    pub fn files(&self, directory: &str, end: &str, entries: &mut usize) -> Result<Vec<String>, GitError> {
        self.below(directory, entries, |path, is_link| !is_link && path.ends_with(end))
    }

    fn below(
        &self,
        directory: &str,
        entries: &mut usize,
        is_wanted: impl Fn(&str, bool) -> bool,
    ) -> Result<Vec<String>, GitError> {
        let Found::Directory(id) = self.find(directory)? else { return Ok(Vec::new()) };
        let (mut found, mut rest) = (Vec::new(), vec![(directory.to_owned(), id)]);
        while let Some((directory, id)) = rest.pop() {
            let failed = |source| GitError::Read { what: shown(&directory), source };
            for entry in &self.repository.find_tree(id).map_err(failed)? {
                let Some(left) = entries.checked_sub(1) else { return Ok(found) };
                *entries = left;
                // A name that is no text cannot be asked for.
                let name = std::str::from_utf8(entry.name_bytes()).ok();
                let path = name.and_then(|name| join(&directory, name));
                let Some(path) = path.filter(|path| path.len() <= MAX_PATH) else { continue };
                match entry.kind() {
                    Some(ObjectType::Tree) => rest.push((path, entry.id())),
                    Some(ObjectType::Blob) if is_wanted(&path, entry.filemode_raw() == LINK) => {
                        found.push(path);
                    }
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    fn find(&self, path: &str) -> Result<Found, GitError> {
        self.follow(path, &mut Vec::new())
    }

    fn follow(&self, path: &str, behind: &mut Vec<String>) -> Result<Found, GitError> {
        let outside = || GitError::Outside { path: shown(path) };
        let mut rest: Vec<String> = parts(&join("", path).ok_or_else(outside)?);
        rest.reverse();
        let mut at: Vec<(String, Oid)> = Vec::new();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            let id = at.last().map_or(self.root.id(), |(_, id)| *id);
            let failed = |source| GitError::Read { what: shown(path), source };
            let tree = match self.trees.borrow_mut().get(id) {
                Ok(tree) => tree,
                // What is no directory has nothing in it.
                Err(error) if matches!(error.code(), ErrorCode::NotFound | ErrorCode::InvalidSpec) => {
                    return Ok(Found::Nothing);
                }
                Err(source) => return Err(failed(source)),
            };
            let Some(entry) = tree.get_name(&name) else { return Ok(Found::Nothing) };
            let last = rest.is_empty();
            match entry.kind() {
                Some(ObjectType::Tree) => at.push((name, entry.id())),
                Some(ObjectType::Commit) => return Err(GitError::Submodule { path: shown(path) }),
                Some(ObjectType::Blob) if entry.filemode_raw() == LINK => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(GitError::Links { path: shown(path) });
                    }
                    let odb = self.repository.odb().map_err(failed)?;
                    let (size, _) = odb.read_header(entry.id()).map_err(failed)?;
                    if size > MAX_PATH {
                        return Err(outside());
                    }
                    let target = odb.read(entry.id()).map_err(failed)?;
                    let target = String::from_utf8_lossy(target.data()).into_owned();
                    if target.starts_with('/') {
                        return Err(outside());
                    }
                    let here = at.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("/");
                    let mut all = parts(&join(&here, &target).ok_or_else(outside)?);
                    all.extend(rest.drain(..).rev());
                    self.count_link(path, all.iter().map(|name| name.len() + 1).sum())?;
                    behind.push(all.join("/"));
                    all.reverse();
                    rest = all;
                    at.clear();
                }
                Some(ObjectType::Blob) if last => return Ok(Found::File(entry.id())),
                _ => return Ok(Found::Nothing),
            }
        }
        Ok(Found::Directory(at.last().map_or(self.root.id(), |(_, id)| *id)))
    }

    /// Counts a link that leads through a path of so many bytes.
    fn count_link(&self, path: &str, bytes: usize) -> Result<(), GitError> {
        let left = self.behind.get().checked_sub(bytes.saturating_add(EACH_LINK));
        self.behind.set(left.unwrap_or_default());
        match left {
            Some(_) => Ok(()),
            None => Err(GitError::TooManyLinks { path: shown(path), limit: MAX_BEHIND }),
        }
    }
}

fn parts(path: &str) -> Vec<String> {
    path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// `path` as seen from `base`, from the root and without `.` and `..`; `None` when it leaves the repository. One that begins
/// with `/` is from the root.
pub fn join(base: &str, path: &str) -> Option<String> {
    let base = if path.starts_with('/') { "" } else { base };
    let mut all: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                all.pop()?;
            }
            part => all.push(part),
        }
    }
    Some(all.join("/"))
}

/// A path as it may stand in a line: a name may hold anything.
pub fn shown(path: &str) -> String {
    path.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}
