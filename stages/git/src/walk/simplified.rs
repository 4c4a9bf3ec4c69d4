//! Along which commits the history of each query goes on, as `git log -- paths` simplifies it.
//!
//! Of a merge whose paths are those of a parent, that parent alone is followed, and the first one of several such: whatever the other
//! sides did is not what stands there. Of any other merge all parents are followed.
//!
//! Most queries go the same way, along first parents; so those that do are one line of history, which takes one step for all of them.

use std::collections::{BTreeSet, HashMap};

use super::graph::Place;
use super::paths::Query;

/// Which parent's history a query goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Way {
    /// This one's alone.
    Parent(Place),
    /// Every parent's.
    All,
}

/// The histories of many queries, as far as they were walked over.
#[derive(Default)]
pub(super) struct Simplified {
    lines: Vec<Line>,
    line_of: HashMap<Query, usize>,
    /// Which lines go through a commit that was not looked at yet; some may not any more.
    at: HashMap<Place, Vec<usize>>,
}

/// What some queries have in common: where their history goes on.
#[derive(Default)]
struct Line {
    /// The commits that were not looked at yet.
    ends: BTreeSet<Place>,
    queries: usize,
    /// The line that it has become one with.
    joined: Option<usize>,
}

impl Simplified {
    /// Begins the history of `queries` at a commit.
    pub(super) fn begin(&mut self, place: Place, queries: &[Query]) {
        let line = self.add(Line { queries: queries.len(), ..Line::default() });
        self.line_of.extend(queries.iter().map(|query| (*query, line)));
        self.lead(line, place);
    }

    /// Whether anybody's history goes through a commit.
    pub(super) fn goes_through(&self, place: Place) -> bool {
        self.at.contains_key(&place)
    }

    /// Whether the history of this query goes through a commit that was not looked at yet.
    pub(super) fn has(&mut self, query: Query, place: Place) -> bool {
        let Some(line) = self.line_of.get(&query).copied() else { return false };
        let line = self.now(line);
        self.lines[line].ends.contains(&place)
    }

    /// Goes on behind a commit, which no commit that is looked at later follows. Whoever is not in `ways` goes along the first parent.
    pub(super) fn go_on(&mut self, place: Place, parents: &[Place], ways: &HashMap<Query, Way>) {
        let here = self.joined_at(place);
        let mut leaving: HashMap<(usize, Way), Vec<Query>> = HashMap::new();
        for (query, way) in ways {
            let Some(line) = self.line_of.get(query).copied() else { continue };
            let line = self.now(line);
            if here.contains(&line) {
                leaving.entry((line, *way)).or_default().push(*query);
            }
        }
        for line in &here {
            self.lines[*line].ends.remove(&place);
        }
        for ((line, way), queries) in leaving {
            self.lines[line].queries -= queries.len();
            let ends = self.lines[line].ends.clone();
            for end in &ends {
                self.at.entry(*end).or_default().push(self.lines.len());
            }
            let new = self.add(Line { ends, queries: queries.len(), joined: None });
            self.line_of.extend(queries.into_iter().map(|query| (query, new)));
            match way {
                Way::Parent(parent) => self.lead(new, parent),
                Way::All => parents.iter().for_each(|parent| self.lead(new, *parent)),
            }
        }
        for line in here {
            match parents.first() {
                Some(first) if self.lines[line].queries > 0 => self.lead(line, *first),
                // Nobody is left on it, or there is nothing before this commit.
                Some(_) => self.lines[line].ends.clear(),
                None => {}
            }
        }
    }

    /// The lines through a commit; those that go nowhere else become one.
    fn joined_at(&mut self, place: Place) -> BTreeSet<usize> {
        let mut here = BTreeSet::new();
        let mut only: Option<usize> = None;
        for line in self.at.remove(&place).unwrap_or_default() {
            let line = self.now(line);
            let ends = &self.lines[line].ends;
            if !ends.contains(&place) || here.contains(&line) {
                continue;
            }
            match only {
                Some(kept) if ends.len() == 1 => {
                    self.lines[kept].queries += self.lines[line].queries;
                    self.lines[line] = Line { joined: Some(kept), ..Line::default() };
                }
                _ => {
                    if ends.len() == 1 {
                        only = Some(line);
                    }
                    here.insert(line);
                }
            }
        }
        here
    }

    /// The line that this one has become. The way there is made shorter, so that many steps are not gone again and again.
    fn now(&mut self, mut line: usize) -> usize {
        while let Some(joined) = self.lines[line].joined {
            let behind = self.lines[joined].joined;
            if behind.is_some() {
                self.lines[line].joined = behind;
            }
            line = joined;
        }
        line
    }

    fn add(&mut self, line: Line) -> usize {
        self.lines.push(line);
        self.lines.len() - 1
    }

    fn lead(&mut self, line: usize, place: Place) {
        if self.lines[line].ends.insert(place) {
            self.at.entry(place).or_default().push(line);
        }
    }
}
