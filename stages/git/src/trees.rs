//! Trees of a repository, kept once they were read: a large one takes long to read, and neighbours in history share most of theirs.

use std::collections::HashMap;
use std::rc::Rc;

use git2::{Oid, Repository, Tree};

/// The mode of a symbolic link.
pub(crate) const LINK: i32 = 0o120_000;

/// Reads trees of one repository, and keeps some.
pub(crate) struct Trees<'r> {
    repository: &'r Repository,
    kept: HashMap<Oid, Rc<Tree<'r>>>,
    entries: usize,
    limits: TreeLimits,
}

/// What is kept at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeLimits {
    /// Trees.
    pub(crate) trees: usize,
    /// And their entries, of some 80 bytes each.
    pub(crate) entries: usize,
}

impl<'r> Trees<'r> {
    pub(crate) fn new(repository: &'r Repository, limits: TreeLimits) -> Self {
        Self { repository, kept: HashMap::new(), entries: 0, limits }
    }

    /// A tree.
    ///
    /// # Errors
    /// It is not there, is none, or cannot be read.
    pub(crate) fn get(&mut self, id: Oid) -> Result<Rc<Tree<'r>>, git2::Error> {
        if let Some(found) = self.kept.get(&id) {
            return Ok(found.clone());
        }
        let tree = Rc::new(self.repository.find_tree(id)?);
        if self.kept.len() >= self.limits.trees || self.entries >= self.limits.entries {
            self.kept.clear();
            self.entries = 0;
        }
        self.entries += tree.len();
        self.kept.insert(id, tree.clone());
        Ok(tree)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::{TreeLimits, Trees};

    #[test]
    fn a_tree_is_read_once_until_there_are_too_many() {
        let directory = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init_bare(directory.path()).unwrap();
        let file = repository.blob(b"x").unwrap();
        let [one, two, three] = ["a", "b", "c"].map(|name| {
            let mut tree = repository.treebuilder(None).unwrap();
            tree.insert(name, file, 0o100_644).unwrap();
            tree.write().unwrap()
        });
        let mut trees = Trees::new(&repository, TreeLimits { trees: 2, entries: 100 });
        let first = trees.get(one).unwrap();
        assert!(Rc::ptr_eq(&first, &trees.get(one).unwrap()));
        trees.get(two).unwrap();
        assert!(Rc::ptr_eq(&first, &trees.get(one).unwrap()));
        trees.get(three).unwrap();
        assert!(!Rc::ptr_eq(&first, &trees.get(one).unwrap()));
        assert!(trees.get(file).is_err());
    }
}
