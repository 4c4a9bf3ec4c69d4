//! The paths of many applications, as one tree: a walk over a repository's tree says at each name whose paths it is under.

use std::collections::{BTreeMap, HashMap};

use crate::Paths;
use crate::manifest_files::ManifestFiles;
use crate::pattern::{is_pattern, matches};
use crate::snapshot::join;

/// A node of [`PathTree`].
pub(super) type Node = u32;

/// A place in the list of what is asked.
pub(super) type Query = u32;

/// The root of every [`PathTree`].
pub(super) const ROOT: Node = 0;

/// Patterns of one query in one directory, each of which is compared with every name there: more of them stand for the directory.
pub(super) const MAX_PATTERNS: usize = 64;

#[derive(Default)]
struct At {
    children: HashMap<Box<[u8]>, Node>,
    patterns: BTreeMap<Box<[u8]>, Node>,
    /// Whose path ends here: the file of this name is theirs, and everything under the directory of this name.
    owners: Vec<Query>,
    /// Whose pattern ends here: the file of this name is theirs, not what is under a directory.
    files: Vec<Query>,
    /// Of whose directory of this name some files alone are theirs.
    some: Vec<SomeFiles>,
}

/// Some files of a directory, and whose they are.
#[derive(Clone, Copy)]
pub(super) struct SomeFiles {
    pub(super) query: Query,
    /// Which, by their place in the [`PathTree`].
    files: usize,
}

/// Paths of many applications.
///
/// A path is a file, or a directory with everything in it; one that holds `*`, `?` or `[` is a pattern of a file as well, in
/// which no `*` goes beyond a `/`. This is how Argo CD reads `argocd.argoproj.io/manifest-generate-paths`.
pub(super) struct PathTree {
    nodes: Vec<At>,
    some: Vec<ManifestFiles>,
}

impl PathTree {
    /// The paths of each of `queries`.
    pub(super) fn new<'a>(queries: impl Iterator<Item = (Query, &'a Paths)>) -> Self {
        let mut tree = Self { nodes: vec![At::default()], some: Vec::new() };
        for (query, paths) in queries {
            for some in &paths.some {
                let node = parts(&some.directory).iter().fold(ROOT, |node, part| tree.child(node, part));
                let files = tree.some.len();
                tree.at_mut(node).some.push(SomeFiles { query, files });
                tree.some.push(some.clone());
            }
            // What leads out of the repository is nothing of it.
            let paths: Vec<String> = paths.all.iter().filter_map(|path| join("", path)).collect();
            let mut paths: Vec<Vec<&[u8]>> = paths.iter().map(|path| parts(path)).collect();
            let mut patterns: HashMap<Vec<&[u8]>, usize> = HashMap::new();
            for parts in &paths {
                if let Some(above) = above_pattern(parts) {
                    *patterns.entry(above.to_vec()).or_default() += 1;
                }
            }
            for parts in &mut paths {
                let above = above_pattern(parts);
                let many =
                    above.filter(|above| patterns.get(*above).is_some_and(|count| *count > MAX_PATTERNS));
                if let Some(length) = many.map(<[&[u8]]>::len) {
                    parts.truncate(length);
                }
                let node = parts.iter().fold(ROOT, |node, part| tree.child(node, part));
                let owners = &mut tree.at_mut(node).owners;
                if owners.last() != Some(&query) {
                    owners.push(query);
                }
                if parts.iter().any(|part| is_pattern(part)) {
                    let node = parts.iter().fold(ROOT, |node, part| tree.pattern(node, part));
                    tree.at_mut(node).files.push(query);
                }
            }
        }
        tree
    }

    fn at(&self, node: Node) -> &At {
        &self.nodes[node as usize]
    }

    fn at_mut(&mut self, node: Node) -> &mut At {
        &mut self.nodes[node as usize]
    }

    fn add(&mut self) -> Node {
        self.nodes.push(At::default());
        Node::try_from(self.nodes.len() - 1).unwrap_or(ROOT)
    }

    fn child(&mut self, node: Node, part: &[u8]) -> Node {
        if let Some(found) = self.at(node).children.get(part) {
            return *found;
        }
        let new = self.add();
        self.at_mut(node).children.insert(part.into(), new);
        new
    }

    fn pattern(&mut self, node: Node, part: &[u8]) -> Node {
        if !is_pattern(part) {
            return self.child(node, part);
        }
        if let Some(found) = self.at(node).patterns.get(part) {
            return *found;
        }
        let new = self.add();
        self.at_mut(node).patterns.insert(part.into(), new);
        new
    }

    /// The nodes that `name` in a directory at `nodes` is at.
    pub(super) fn step(&self, nodes: &[Node], name: &[u8]) -> Vec<Node> {
        let mut found = Vec::new();
        for node in nodes {
            let at = self.at(*node);
            found.extend(at.children.get(name));
            found.extend(at.patterns.iter().filter(|(pattern, _)| matches(pattern, name)).map(|(_, to)| *to));
        }
        found
    }

    /// Whose path ends at one of `nodes`.
    pub(super) fn owners(&self, nodes: &[Node]) -> impl Iterator<Item = Query> {
        nodes.iter().flat_map(|node| self.at(*node).owners.iter().copied())
    }

    /// Whose pattern ends at one of `nodes`.
    pub(super) fn files(&self, nodes: &[Node]) -> impl Iterator<Item = Query> {
        nodes.iter().flat_map(|node| self.at(*node).files.iter().copied())
    }

    /// Of whose directory at one of `nodes` some files alone are theirs.
    pub(super) fn some(&self, nodes: &[Node]) -> impl Iterator<Item = SomeFiles> {
        nodes.iter().flat_map(|node| self.at(*node).some.iter().copied())
    }

    /// Whether a file is one of `some`, by its path from their directory.
    pub(super) fn has(&self, some: SomeFiles, path: &str) -> bool {
        self.some[some.files].has(path)
    }

    /// Everybody with a path below one of `nodes`; patterns count as well where asked for.
    pub(super) fn below(&self, nodes: &[Node], patterns: bool) -> Vec<Query> {
        let mut all = Vec::new();
        let mut rest = nodes.to_vec();
        while let Some(node) = rest.pop() {
            let at = self.at(node);
            all.extend(&at.owners);
            all.extend(at.some.iter().map(|some| some.query));
            rest.extend(at.children.values());
            if patterns {
                all.extend(&at.files);
                rest.extend(at.patterns.values());
            }
        }
        all
    }

    /// Whether anybody has a path below one of `nodes`.
    pub(super) fn goes_on(&self, nodes: &[Node]) -> bool {
        nodes.iter().any(|node| !self.at(*node).children.is_empty() || !self.at(*node).patterns.is_empty())
    }
}

/// The directory whose names are compared with the first pattern of a path.
fn above_pattern<'p, 'n>(parts: &'p [&'n [u8]]) -> Option<&'p [&'n [u8]]> {
    parts.iter().position(|part| is_pattern(part)).and_then(|first| parts.get(..first))
}

fn parts(path: &str) -> Vec<&[u8]> {
    path.split('/').filter(|part| !part.is_empty()).map(str::as_bytes).collect()
}
