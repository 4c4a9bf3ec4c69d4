//! Whose paths differ between two trees, and at which.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

use git2::{Oid, Repository, Tree};

use super::paths::{Node, PathTree, Query, ROOT, SomeFiles};
use crate::error::GitError;
use crate::trees::{LINK, TreeLimits, Trees};

/// A file system takes no path of more names than this (4,096 bytes); nothing is looked for below.
const MAX_DEPTH: usize = 512;
/// Names that differ of which each comparison may look at so many more than those before it left. A repository of ten objects may have more
/// paths than anybody can count.
const EACH: usize = 1_000;
const KEPT: TreeLimits = TreeLimits { trees: 4_096, entries: 400_000 };
/// Paths that are told of one application in one commit.
pub(super) const MAX_PATHS: usize = 100;

const TREE: i32 = 0o040_000;
const SUBMODULE: i32 = 0o160_000;

/// The paths of one application that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) paths: Vec<String>,
    pub(super) more: usize,
}

/// Compares trees of one repository.
pub(super) struct Differ<'r> {
    trees: Trees<'r>,
    /// How many names that differ may still be looked at.
    left: usize,
    most: usize,
}

/// One comparison.
struct Comparison<'p> {
    paths: &'p PathTree,
    touched: HashMap<Query, Touched>,
    /// The names from the root to where it is.
    names: Vec<Vec<u8>>,
}

/// Where a comparison is.
struct Inside<'i> {
    /// What may come below.
    nodes: &'i [Node],
    /// Whose everything here is.
    owners: &'i [Query],
    /// Whose some files here are, and how many names their directory has.
    some: &'i [(SomeFiles, usize)],
}

#[derive(Clone, Copy)]
struct Entry<'t> {
    name: &'t [u8],
    mode: i32,
    id: Oid,
}

impl Entry<'_> {
    /// How trees are sorted: a directory's name as though it ended with a slash.
    fn order(&self, other: &Self) -> Ordering {
        let end = |entry: &Self| (entry.mode == TREE).then_some(b'/');
        self.name.iter().copied().chain(end(self)).cmp(other.name.iter().copied().chain(end(other)))
    }
}

impl<'r> Differ<'r> {
    /// Looks at `most` names that differ in one comparison, and at fewer once others took them up.
    pub(super) fn new(repository: &'r Repository, most: usize) -> Self {
        Self { trees: Trees::new(repository, KEPT), left: most, most }
    }

    /// Whose paths differ; `None` is the tree of nothing. Whoever has a path in a directory that differs and is not looked into counts as
    /// one of them.
    ///
    /// # Errors
    /// A tree cannot be read.
    pub(super) fn compare(
        &mut self,
        old: Option<Oid>,
        new: Option<Oid>,
        paths: &PathTree,
    ) -> Result<HashMap<Query, Touched>, GitError> {
        self.left = self.left.saturating_add(EACH).min(self.most);
        let mut comparison = Comparison { paths, touched: HashMap::new(), names: Vec::new() };
        let owners: Vec<Query> = paths.owners(&[ROOT]).collect();
        let some: Vec<_> = paths.some(&[ROOT]).map(|some| (some, 0)).collect();
        if old != new {
            let root = Inside { nodes: &[ROOT], owners: &owners, some: &some };
            self.trees(old, new, &root, &mut comparison)?;
        }
        Ok(comparison.touched)
    }

    fn tree(&mut self, id: Option<Oid>) -> Result<Option<Rc<Tree<'r>>>, GitError> {
        let Some(id) = id else { return Ok(None) };
        let failed = |source| GitError::Read { what: format!("the tree {id}"), source };
        self.trees.get(id).map(Some).map_err(failed)
    }

    fn trees(
        &mut self,
        old: Option<Oid>,
        new: Option<Oid>,
        inside: &Inside<'_>,
        comparison: &mut Comparison<'_>,
    ) -> Result<(), GitError> {
        if comparison.names.len() >= MAX_DEPTH || self.left == 0 {
            let below = comparison.paths.below(inside.nodes, true);
            let some = inside.some.iter().map(|(some, _)| some.query);
            comparison.touch(inside.owners.iter().copied().chain(some).chain(below));
            return Ok(());
        }
        let (old, new) = (self.tree(old)?, self.tree(new)?);
        let entries = |tree: &Option<Rc<Tree<'r>>>| tree.as_ref().map_or(0, |tree| tree.len());
        let (olds, news) = (entries(&old), entries(&new));
        let (mut o, mut n) = (0, 0);
        while o < olds || n < news {
            let held_old = old.as_ref().and_then(|tree| tree.get(o));
            let held_new = new.as_ref().and_then(|tree| tree.get(n));
            let of = |entry: &git2::TreeEntry<'_>| (entry.filemode_raw(), entry.id());
            let a = held_old.as_ref().map(|held| (held.name_bytes(), of(held)));
            let b = held_new.as_ref().map(|held| (held.name_bytes(), of(held)));
            let a = a.map(|(name, (mode, id))| Entry { name, mode, id });
            let b = b.map(|(name, (mode, id))| Entry { name, mode, id });
            let order = match (&a, &b) {
                (Some(a), Some(b)) => a.order(b),
                (Some(_), None) => Ordering::Less,
                _ => Ordering::Greater,
            };
            let (a, b) = match order {
                Ordering::Less => (a, None),
                Ordering::Greater => (None, b),
                Ordering::Equal => (a, b),
            };
            o += usize::from(a.is_some());
            n += usize::from(b.is_some());
            if let (Some(a), Some(b)) = (&a, &b)
                && a.id == b.id
                && a.mode == b.mode
            {
                continue;
            }
            self.left = self.left.saturating_sub(1);
            self.entry(a, b, inside, comparison)?;
        }
        Ok(())
    }

    /// One name whose entries differ, or stand on one side alone.
    fn entry(
        &mut self,
        old: Option<Entry<'_>>,
        new: Option<Entry<'_>>,
        inside: &Inside<'_>,
        comparison: &mut Comparison<'_>,
    ) -> Result<(), GitError> {
        let Some(name) = old.or(new).map(|entry| entry.name) else { return Ok(()) };
        let at = comparison.paths.step(inside.nodes, name);
        let mut here = inside.owners.to_vec();
        here.extend(comparison.paths.owners(&at));
        let mut some = inside.some.to_vec();
        some.extend(comparison.paths.some(&at).map(|some| (some, comparison.names.len() + 1)));
        let below = comparison.paths.goes_on(&at);
        let files: Vec<Query> = comparison.paths.files(&at).collect();
        if here.is_empty() && some.is_empty() && files.is_empty() && !below {
            return Ok(());
        }
        comparison.names.push(name.to_vec());
        let modes = [old, new].map(|entry| entry.map(|entry| entry.mode));
        if modes.iter().flatten().any(|mode| *mode != TREE) {
            // What a link or a submodule stands for is elsewhere: whoever has a path through it has something
            // else there. A pattern is one of files of this repository.
            let through = modes.iter().flatten().any(|mode| matches!(*mode, LINK | SUBMODULE));
            let through = if through && below { comparison.paths.below(&at, false) } else { Vec::new() };
            let taken = comparison.taken(&some, modes.contains(&Some(SUBMODULE)));
            comparison.touch(here.iter().copied().chain(taken).chain(files).chain(through));
        }
        if modes.iter().flatten().any(|mode| *mode == TREE) && (below || !here.is_empty() || !some.is_empty())
        {
            let tree =
                |entry: Option<Entry<'_>>| entry.filter(|entry| entry.mode == TREE).map(|entry| entry.id);
            let inside = Inside { nodes: &at, owners: &here, some: &some };
            self.trees(tree(old), tree(new), &inside, comparison)?;
        }
        comparison.names.pop();
        Ok(())
    }
}

impl Comparison<'_> {
    /// Whose the file is of which some are theirs; what a submodule holds may be any of them, and so may what stands in the place of
    /// their directory.
    fn taken(&self, some: &[(SomeFiles, usize)], is_submodule: bool) -> Vec<Query> {
        let is_one = |(some, names): &&(SomeFiles, usize)| {
            let below = &self.names[*names..];
            is_submodule
                || below.is_empty()
                || self.paths.has(*some, &String::from_utf8_lossy(&below.join(&b'/')))
        };
        some.iter().filter(is_one).map(|(some, _)| some.query).collect()
    }

    fn touch(&mut self, queries: impl Iterator<Item = Query>) {
        let mut path = None;
        for query in queries {
            let path =
                path.get_or_insert_with(|| String::from_utf8_lossy(&self.names.join(&b'/')).into_owned());
            let touched = self.touched.entry(query).or_default();
            if touched.paths.last() == Some(path) {
                continue;
            }
            if touched.paths.len() < MAX_PATHS {
                touched.paths.push(path.clone());
            } else {
                touched.more += 1;
            }
        }
    }
}
