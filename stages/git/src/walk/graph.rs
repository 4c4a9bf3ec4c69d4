//! The commits that can be reached from some, with what a walk needs of each: parents, tree, and place in time.

use std::collections::{HashMap, VecDeque};

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
    /// Where its parents end among those of all.
    end: u32,
    /// Seconds: the commit's own time, at most [`LATEST`], or one more than its newest parent's where its clock was behind. So a commit is
    /// always newer than what it follows, and the order is the same whatever else was walked.
    time: i64,
}

/// The commits that can be reached from some. There may be millions, so that each takes as little room as it can.
pub(super) struct Graph {
    nodes: Vec<Node>,
    /// Those of all, in the order of the places.
    parents: Vec<Place>,
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
        let shallow = repository.is_shallow();
        let mut graph = Self { nodes: Vec::new(), parents: Vec::new(), places: HashMap::new(), shallow };
        let find = |id: Oid| match repository.find_commit(id) {
            Ok(commit) => Ok(Some(commit)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(source) => Err(GitError::Read { what: id.to_string(), source }),
        };
        // Those whose place is known and that were not read yet, in the order of their places.
        let mut next: VecDeque<Oid> = VecDeque::new();
        for tip in tips {
            if !graph.places.contains_key(&tip) && find(tip)?.is_some() {
                graph.places.insert(tip, place(next.len()));
                next.push_back(tip);
            }
        }
        // Each parent of a commit takes as much room as a commit, and one may have thousands.
        let mut weight: usize = 0;
        while let Some(id) = next.pop_front() {
            let Some(commit) = find(id)? else {
                let missing = place(graph.nodes.len());
                let child = graph.nodes.iter().zip(0..).find(|(_, of)| graph.parents(*of).contains(&missing));
                let commit = child.map_or(id, |(child, _)| child.id);
                return Err(GitError::MissingParent { commit, parent: id });
            };
            weight = weight.saturating_add(commit.parent_count().max(1));
            if weight > limit {
                return Err(GitError::TooManyCommits { limit });
            }
            for parent in commit.parent_ids() {
                let known = graph.places.get(&parent).copied();
                if known.is_none() && shallow && find(parent)?.is_none() {
                    continue;
                }
                let parent = known.unwrap_or_else(|| {
                    let new = place(graph.nodes.len() + 1 + next.len());
                    graph.places.insert(parent, new);
                    next.push_back(parent);
                    new
                });
                graph.parents.push(parent);
            }
            let (tree, time) = (commit.tree_id(), commit.time().seconds().min(LATEST));
            graph.nodes.push(Node { id, tree, end: place(graph.parents.len()), time });
        }
        graph.order();
        Ok(graph)
    }

    /// Makes each commit newer than what it follows.
    fn order(&mut self) {
        let mut finished = vec![false; self.nodes.len()];
        // A commit stands on the stack, with how many of its parents were looked at, until all of them are finished.
        let mut stack: Vec<(Place, u32)> = Vec::new();
        for start in 0..place(self.nodes.len()) {
            if !finished[start as usize] {
                stack.push((start, 0));
            }
            while let Some((at, looked_at)) = stack.pop() {
                if let Some(parent) = self.parents(at).get(looked_at as usize).copied() {
                    stack.push((at, looked_at + 1));
                    if !finished[parent as usize] {
                        stack.push((parent, 0));
                    }
                    continue;
                }
                let after =
                    self.parents(at).iter().map(|parent| self.node(*parent).time.saturating_add(1)).max();
                let time = self.node(at).time;
                self.nodes[at as usize].time = after.map_or(time, |after| after.max(time));
                finished[at as usize] = true;
            }
        }
    }

    pub(super) fn node(&self, place: Place) -> &Node {
        &self.nodes[place as usize]
    }

    /// What a commit follows.
    pub(super) fn parents(&self, place: Place) -> &[Place] {
        let end = |place: Place| self.node(place).end as usize;
        let start = place.checked_sub(1).map_or(0, end);
        &self.parents[start..end(place)]
    }

    pub(super) fn find(&self, id: Oid) -> Option<Place> {
        self.places.get(&id).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All places, the newest first: no commit stands before one that follows it.
    pub(super) fn newest_first(&self) -> Vec<Place> {
        let mut all: Vec<Place> = (0..place(self.len())).collect();
        all.sort_unstable_by(|a, b| {
            let (a, b) = (self.node(*a), self.node(*b));
            b.time.cmp(&a.time).then_with(|| a.id.cmp(&b.id))
        });
        all
    }
}

fn place(length: usize) -> Place {
    Place::try_from(length).unwrap_or(Place::MAX)
}
