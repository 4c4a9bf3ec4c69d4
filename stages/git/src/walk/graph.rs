//! The commits that can be reached from some, with what a walk needs of each: parents, tree, and place in time.

use std::collections::HashMap;

use git2::{ErrorCode, Oid, Repository};

use crate::error::GitError;

/// A commit's place in a [`Graph`].
pub(super) type Place = u32;

/// The newest that a commit's own clock may say: so many seconds before the last one that a commit behind as many others as there
/// are places is still newer than each of them.
const LATEST: i64 = i64::MAX - (1 << 32);

pub(super) struct Node {
    pub(super) id: Oid,
    pub(super) tree: Oid,
    pub(super) parents: Vec<Place>,
    /// Seconds: the commit's own time, at most [`LATEST`], or one more than its newest parent's where its clock was behind. So a commit is
    /// always newer than what it follows, and the order is the same whatever else was walked.
    time: i64,
}

/// The commits that can be reached from some.
pub(super) struct Graph {
    nodes: Vec<Node>,
    places: HashMap<Oid, Place>,
    /// Some parents are not there: the repository was cloned without them.
    pub(super) shallow: bool,
}

impl Graph {
    /// Loads what can be reached from `tips`; a tip that is not in the repository is passed over.
    ///
    /// # Errors
    /// A commit cannot be read, or there are more than `limit`, a merge counted once for each parent.
    pub(super) fn load(
        repository: &Repository,
        tips: impl IntoIterator<Item = Oid>,
        limit: usize,
    ) -> Result<Self, GitError> {
        let mut graph = Self { nodes: Vec::new(), places: HashMap::new(), shallow: false };
        let may_lack_parents = repository.is_shallow();
        // Each parent of a commit takes as much room as a commit, and one may have thousands.
        let mut weight: usize = 0;
        let mut finished: Vec<bool> = Vec::new();
        // A commit stands on the stack until all of its parents are there.
        let mut stack: Vec<Oid> = tips.into_iter().collect();
        let mut times: Vec<(i64, Vec<Oid>)> = Vec::new();
        while let Some(id) = stack.last().copied() {
            let Some(place) = graph.places.get(&id).copied() else {
                let commit = match repository.find_commit(id) {
                    Ok(commit) => commit,
                    Err(error) if error.code() == ErrorCode::NotFound => {
                        stack.pop();
                        continue;
                    }
                    Err(source) => return Err(GitError::Read { what: id.to_string(), source }),
                };
                weight = weight.saturating_add(commit.parent_count().max(1));
                if weight > limit {
                    return Err(GitError::TooManyCommits { limit });
                }
                let parents: Vec<Oid> = commit.parent_ids().collect();
                let time = commit.time().seconds().min(LATEST);
                graph.places.insert(id, graph.place(graph.nodes.len()));
                graph.nodes.push(Node { id, tree: commit.tree_id(), parents: Vec::new(), time });
                finished.push(false);
                stack.extend(parents.iter().filter(|parent| !graph.places.contains_key(parent)));
                times.push((time, parents));
                continue;
            };
            stack.pop();
            if std::mem::replace(&mut finished[place as usize], true) {
                continue;
            }
            let (own, parents) = std::mem::take(&mut times[place as usize]);
            let mut time = own;
            for parent in parents {
                match graph.places.get(&parent).copied() {
                    Some(parent) => {
                        time = time.max(graph.node(parent).time.saturating_add(1));
                        graph.nodes[place as usize].parents.push(parent);
                    }
                    None if may_lack_parents => graph.shallow = true,
                    None => return Err(GitError::MissingParent { commit: id, parent }),
                }
            }
            graph.nodes[place as usize].time = time;
        }
        graph.shallow |= may_lack_parents;
        Ok(graph)
    }

    fn place(&self, length: usize) -> Place {
        Place::try_from(length).unwrap_or(Place::MAX)
    }

    pub(super) fn node(&self, place: Place) -> &Node {
        &self.nodes[place as usize]
    }

    pub(super) fn find(&self, id: Oid) -> Option<Place> {
        self.places.get(&id).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All places, the newest first: no commit stands before one that follows it.
    pub(super) fn newest_first(&self) -> Vec<Place> {
        let mut all: Vec<Place> = (0..self.place(self.len())).collect();
        all.sort_unstable_by(|a, b| {
            let (a, b) = (self.node(*a), self.node(*b));
            b.time.cmp(&a.time).then_with(|| a.id.cmp(&b.id))
        });
        all
    }
}
