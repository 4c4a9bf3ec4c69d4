//! Which commits changed which application, from one walk over a repository's history.
//!
//! A commit changed an application if, under the application's paths, its tree differs from that of **every** parent; one
//! without parents, if its tree is not empty there. So a merge that only brings together what others did has changed
//! nothing, and one that resolves a conflict has. And what a merge throws away has not: where its tree is that of a parent there,
//! that parent's history alone counts, as in `git log -- paths`.

mod diff;
mod graph;
mod paths;
mod simplified;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use git2::{Oid, Repository};

use self::diff::{Differ, Touched};
use self::graph::{Graph, Place};
use self::paths::{PathTree, Query};
use self::simplified::{Simplified, Way};
use crate::Paths;
use crate::error::GitError;

/// What is asked of one application.
#[derive(Debug, Clone)]
pub struct WalkRequest {
    /// The revision it stands at now.
    pub to: Oid,
    /// The revision it stood at before; `None` when it never did. One that the repository does not know is as none.
    pub since: Option<Oid>,
    /// What of the repository is the application's.
    pub paths: Paths,
}

/// A commit that changed an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub commit: Oid,
    /// The application's paths that differ from the first parent's; at most a hundred, in the order of the tree.
    pub paths: Vec<String>,
    /// How many more of them differ.
    pub more_paths: usize,
}

/// What is known of one application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The newest change: the first of `since`, and where there is none (a rollback, a forced push), the newest that the
    /// revision has at all. `None`: no commit ever changed it.
    pub newest: Option<Change>,
    /// The changes that the revision has and the one before had not, the newest first.
    pub since: Vec<Change>,
    /// There are more than were asked for.
    pub more: bool,
    /// Older history is not in the repository: a change may be said of the oldest commit there is that was made before it.
    pub shallow: bool,
    /// The revision before is not in the repository, so that everything counts as new.
    pub since_unknown: bool,
}

/// What came of one walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    /// What is known of each of those that were asked about.
    pub changes: Vec<Changes>,
    /// The commits of the history that was walked over.
    pub commits: usize,
}

/// What a walk may cost.
#[derive(Debug, Clone, Copy)]
pub struct WalkLimits {
    /// How many changes are told of each application.
    pub changes: usize,
    /// How many commits are looked at, a merge counted once for each commit that it follows.
    pub commits: usize,
    /// How many names that differ are looked at in one comparison of trees; fewer once others took them up.
    pub entries: usize,
}

impl Default for WalkLimits {
    fn default() -> Self {
        Self { changes: 100, commits: 4_000_000, entries: 10_000_000 }
    }
}

/// Memory that sets of revisions may take while history is walked.
const SET_BYTES: usize = 32 * 1024 * 1024;

/// Answers all of `asked` from one walk.
///
/// # Errors
/// A commit or tree cannot be read, a revision is not there, or history is longer than `limits` allow.
pub fn changes(
    repository: &Repository,
    asked: &[WalkRequest],
    limits: WalkLimits,
) -> Result<Walked, GitError> {
    let tips = asked.iter().flat_map(|asked| [Some(asked.to), asked.since]).flatten();
    let graph = Graph::load(repository, tips, limits.commits)?;
    let order = graph.newest_first();
    let mut walk = Walk {
        graph: &graph,
        order: &order,
        differ: Differ::new(repository, limits.entries),
        answers: vec![Changes { shallow: graph.shallow, ..Changes::default() }; asked.len()],
        limit: limits.changes.max(1),
    };
    // As many different revisions at once as their sets have room for.
    let width = (SET_BYTES / (8 * graph.len().max(1))).max(1) * 64;
    let mut part: Vec<Query> = Vec::new();
    let mut tips: HashMap<Oid, usize> = HashMap::new();
    for (query, wanted) in asked.iter().enumerate() {
        if graph.find(wanted.to).is_none() {
            return Err(GitError::NoRevision { revision: wanted.to.to_string() });
        }
        if tips.len() + 2 > width {
            walk.part(asked, &part, &tips)?;
            part.clear();
            tips.clear();
        }
        for tip in [Some(wanted.to), wanted.since].into_iter().flatten() {
            let next = tips.len();
            tips.entry(tip).or_insert(next);
        }
        part.push(u32::try_from(query).unwrap_or(u32::MAX));
    }
    walk.part(asked, &part, &tips)?;
    Ok(Walked { changes: walk.answers, commits: graph.len() })
}

/// Which paths of `paths` differ between two commits, each of `paths` being one application's.
///
/// # Errors
/// A tree cannot be read.
pub fn differing(
    repository: &Repository,
    old: Oid,
    new: Oid,
    paths: &[Paths],
) -> Result<Vec<Option<Change>>, GitError> {
    let tree = |id: Oid| {
        repository
            .find_commit(id)
            .map(|commit| commit.tree_id())
            .map_err(|source| GitError::Read { what: id.to_string(), source })
    };
    let all = PathTree::new(
        paths.iter().enumerate().filter_map(|(n, paths)| Some((u32::try_from(n).ok()?, paths))),
    );
    let mut differ = Differ::new(repository, WalkLimits::default().entries);
    let mut found = differ.compare(Some(tree(old)?), Some(tree(new)?), &all)?;
    Ok((0..paths.len())
        .map(|n| found.remove(&u32::try_from(n).ok()?).map(|touched| change(new, touched)))
        .collect())
}

fn change(commit: Oid, touched: Touched) -> Change {
    Change { commit, paths: touched.paths, more_paths: touched.more }
}

struct Walk<'g, 'r> {
    graph: &'g Graph,
    order: &'g [Place],
    differ: Differ<'r>,
    answers: Vec<Changes>,
    limit: usize,
}

type WhoseDiffer = HashMap<Query, Touched>;
type Ways = HashMap<Query, Way>;

/// Those who ask about the same two revisions.
struct Group {
    to: usize,
    since: Option<usize>,
    queries: Vec<Query>,
    /// Commits that are new to them and were not looked at yet.
    candidates: usize,
}

impl Group {
    fn is_open(&self, answers: &[Changes], limit: usize) -> bool {
        self.queries.iter().any(|query| is_open(&answers[*query as usize], self.candidates, limit))
    }
}

/// Whether an older commit can still add to what is known.
fn is_open(known: &Changes, candidates: usize, limit: usize) -> bool {
    let listed = known.since.len() >= limit && known.more;
    known.newest.is_none() || (candidates > 0 && !listed)
}

/// For each commit the set of tips it can be reached from.
struct Reach {
    words: usize,
    bits: Vec<u64>,
}

impl Reach {
    fn has(&self, place: Place, tip: usize) -> bool {
        self.bits[place as usize * self.words + tip / 64] >> (tip % 64) & 1 == 1
    }
}

impl Walk<'_, '_> {
    fn reach(&self, tips: &HashMap<Oid, usize>) -> Reach {
        let words = tips.len().div_ceil(64).max(1);
        let mut bits = vec![0_u64; words * self.graph.len()];
        for (tip, bit) in tips {
            if let Some(place) = self.graph.find(*tip) {
                bits[place as usize * words + bit / 64] |= 1 << (bit % 64);
            }
        }
        for place in self.order {
            for parent in self.graph.parents(*place) {
                for word in 0..words {
                    bits[*parent as usize * words + word] |= bits[*place as usize * words + word];
                }
            }
        }
        Reach { words, bits }
    }

    /// Those of `part` who have paths, by the revisions that they ask about.
    fn groups(
        &mut self,
        asked: &[WalkRequest],
        part: &[Query],
        tips: &HashMap<Oid, usize>,
        reach: &Reach,
    ) -> Vec<Group> {
        let mut groups: HashMap<(Oid, Option<Oid>), Group> = HashMap::new();
        for query in part {
            let wanted = &asked[*query as usize];
            let known = wanted.since.filter(|since| self.graph.find(*since).is_some());
            self.answers[*query as usize].since_unknown = wanted.since.is_some() && known.is_none();
            let group = groups.entry((wanted.to, known)).or_insert_with(|| Group {
                to: tips[&wanted.to],
                since: known.map(|since| tips[&since]),
                queries: Vec::new(),
                candidates: 0,
            });
            if !wanted.paths.is_empty() {
                group.queries.push(*query);
            }
        }
        let mut groups: Vec<Group> = groups.into_values().filter(|group| !group.queries.is_empty()).collect();
        for group in &mut groups {
            let new = self.order.iter().filter(|place| is_new(reach, group, **place));
            group.candidates = new.count();
        }
        groups
    }

    fn part(
        &mut self,
        asked: &[WalkRequest],
        part: &[Query],
        tips: &HashMap<Oid, usize>,
    ) -> Result<(), GitError> {
        let reach = self.reach(tips);
        let mut groups = self.groups(asked, part, tips, &reach);
        let mut history = Simplified::default();
        for group in &groups {
            let to = group.queries.first().and_then(|query| self.graph.find(asked[*query as usize].to));
            if let Some(to) = to {
                history.begin(to, &group.queries);
            }
        }
        let mut open: Vec<Query> = groups.iter().flat_map(|group| group.queries.iter().copied()).collect();
        let mut paths = tree_of(asked, &open);
        for place in self.order {
            let here: Vec<usize> = (0..groups.len()).filter(|g| reach.has(*place, groups[*g].to)).collect();
            if here.is_empty() {
                continue;
            }
            let (mut touched, mut ways) = Default::default();
            if history.goes_through(*place) {
                (touched, ways) = self.touched(*place, &paths)?;
            }
            touched.retain(|query, _| history.has(*query, *place));
            history.go_on(*place, self.graph.parents(*place), &ways);
            for g in here {
                let new = is_new(&reach, &groups[g], *place);
                for query in &groups[g].queries {
                    if let Some(touched) = touched.get(query) {
                        self.note(*query, self.graph.node(*place).id, touched, new);
                    }
                }
                groups[g].candidates -= usize::from(new);
            }
            groups.retain(|group| group.is_open(&self.answers, self.limit));
            if groups.is_empty() {
                break;
            }
            // Whoever has an answer is not looked for any more; the tree of paths is made anew when that is half of them.
            let candidates: usize = groups.iter().map(|group| group.queries.len()).sum();
            if !touched.is_empty() || candidates * 2 <= open.len() {
                let still = self.still_open(&groups);
                if still.len() * 2 <= open.len() {
                    paths = tree_of(asked, &still);
                    open = still;
                }
            }
        }
        // What a rollback or a forced push left without anything new has its newest change all the same.
        for query in part {
            let answer = &mut self.answers[*query as usize];
            if let Some(first) = answer.since.first() {
                answer.newest = Some(first.clone());
            }
        }
        Ok(())
    }

    /// Those whose answers an older commit can still add to.
    fn still_open(&self, groups: &[Group]) -> Vec<Query> {
        let of = |group: &Group| {
            let is_open =
                |query: &Query| is_open(&self.answers[*query as usize], group.candidates, self.limit);
            group.queries.iter().copied().filter(is_open).collect::<Vec<_>>()
        };
        groups.iter().flat_map(of).collect()
    }

    fn note(&mut self, query: Query, commit: Oid, touched: &Touched, new: bool) {
        let answer = &mut self.answers[query as usize];
        let found = || change(commit, touched.clone());
        if answer.newest.is_none() {
            answer.newest = Some(found());
        }
        if new && answer.since.len() < self.limit {
            answer.since.push(found());
        } else if new {
            answer.more = true;
        }
    }

    /// Whose paths differ from those of every parent, and whose history goes another way than along the first parent.
    fn touched(&mut self, place: Place, paths: &PathTree) -> Result<(WhoseDiffer, Ways), GitError> {
        let graph = self.graph;
        let node = graph.node(place);
        let Some((first, others)) = graph.parents(place).split_first() else {
            return Ok((self.differ.compare(None, Some(node.tree), paths)?, Ways::new()));
        };
        let mut touched = self.differ.compare(Some(graph.node(*first).tree), Some(node.tree), paths)?;
        let mut ways = Ways::new();
        for parent in others {
            if touched.is_empty() {
                break;
            }
            let other = self.differ.compare(Some(graph.node(*parent).tree), Some(node.tree), paths)?;
            let same = touched.keys().filter(|query| !other.contains_key(query));
            ways.extend(same.map(|query| (*query, Way::Parent(*parent))));
            touched.retain(|query, _| other.contains_key(query));
        }
        if !others.is_empty() {
            ways.extend(touched.keys().map(|query| (*query, Way::All)));
        }
        Ok((touched, ways))
    }
}

fn is_new(reach: &Reach, group: &Group, place: Place) -> bool {
    reach.has(place, group.to) && !group.since.is_some_and(|since| reach.has(place, since))
}

fn tree_of(asked: &[WalkRequest], queries: &[Query]) -> PathTree {
    PathTree::new(queries.iter().map(|query| (*query, &asked[*query as usize].paths)))
}
