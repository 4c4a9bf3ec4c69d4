//! Histories of every shape, made from a seed.

use std::collections::BTreeMap;

use fastrand::Rng;
use git2::Oid;

use super::{Built, EXECUTABLE, File, Files, REGULAR, SUBMODULE, SYMLINK, oracle};
use crate::walk::{WalkLimits, WalkRequest, changes};

/// How often each shape was made, so that none is missing unnoticed.
pub(super) type Shapes = BTreeMap<&'static str, usize>;

const PLACES: &[&str] =
    &["apps/a", "apps/b", "apps/a/deep/er", "charts/web", "charts/web/templates", "base", "a", "."];
const NAMES: &[&str] = &["one.yaml", "two.yaml", "values.yaml", "Chart.yaml", "z"];
const PATHS: &[&str] = &[
    "apps/a",
    "apps/b",
    "apps",
    "charts/web",
    "charts/web/values.yaml",
    "base",
    "a",
    "",
    "apps/a/deep",
    "apps/*/one.yaml",
    "*/values.yaml",
    "apps/[ab]/t?o.yaml",
    "*.yaml",
    "sub/inner/dir",
    "link/x",
    "missing",
    "charts/*",
    "apps/a/*/er/z",
];

struct Making {
    built: Built,
    random: Rng,
    branches: Vec<usize>,
    clock: i64,
    shapes: Shapes,
}

/// Makes a history.
pub(super) fn repository(seed: u64, shapes: &mut Shapes) -> Built {
    let mut making = Making {
        built: Built::new(""),
        random: Rng::with_seed(seed),
        branches: Vec::new(),
        clock: 1_700_000_000,
        shapes: std::mem::take(shapes),
    };
    let steps = making.random.usize(4..24);
    making.root();
    for _ in 0..steps {
        making.step();
    }
    *shapes = making.shapes;
    making.built
}

impl Making {
    fn time(&mut self) -> i64 {
        // Many commits share a second, and some clocks are wrong.
        self.clock += self.random.i64(0..3);
        if self.random.u8(0..10) == 0 { self.clock + self.random.i64(-500..500) } else { self.clock }
    }

    fn count(&mut self, shape: &'static str) {
        *self.shapes.entry(shape).or_default() += 1;
    }

    fn file(&mut self) -> File {
        let text = format!("{}\n", self.random.u8(0..6));
        self.built.file(&text)
    }

    fn path(&mut self) -> String {
        let place = PLACES[self.random.usize(..PLACES.len())];
        let name = NAMES[self.random.usize(..NAMES.len())];
        if place == "." { name.to_owned() } else { format!("{place}/{name}") }
    }

    /// A path that no file is in the way of.
    fn put(&mut self, files: &mut Files, path: String, file: File) {
        let way: Vec<usize> = path.match_indices('/').map(|(n, _)| n).collect();
        for end in way {
            files.remove(path.get(..end).unwrap());
        }
        let below = format!("{path}/");
        files.retain(|other, _| !other.starts_with(&below));
        files.insert(path, file);
    }

    fn edit(&mut self, files: &mut Files) {
        let existing: Vec<String> = files.keys().cloned().collect();
        let some = |random: &mut Rng| {
            (!existing.is_empty()).then(|| existing[random.usize(..existing.len())].clone())
        };
        match self.random.u8(0..12) {
            0..=4 => {
                let (path, file) = (self.path(), self.file());
                self.put(files, path, file);
            }
            5 => {
                self.count("deletion");
                if let Some(path) = some(&mut self.random) {
                    files.remove(&path);
                }
            }
            6 => {
                self.count("rename");
                if let Some(file) = some(&mut self.random).and_then(|path| files.remove(&path)) {
                    let path = self.path();
                    self.put(files, path, file);
                }
            }
            7 => {
                self.count("rename of a directory");
                let moved: Vec<String> =
                    existing.iter().filter(|path| path.starts_with("apps/a/")).cloned().collect();
                for path in moved {
                    let file = files.remove(&path).unwrap();
                    self.put(files, path.replacen("apps/a/", "apps/b/", 1), file);
                }
            }
            8 => {
                self.count("mode change");
                if let Some(file) = some(&mut self.random).and_then(|path| files.get_mut(&path))
                    && matches!(file.mode, REGULAR | EXECUTABLE)
                {
                    file.mode = REGULAR + EXECUTABLE - file.mode;
                }
            }
            9 => {
                self.count("submodule bump");
                let id = Oid::from_bytes(&[self.random.u8(1..4); 20]).unwrap();
                let path = if self.random.bool() { "sub" } else { "sub/inner" };
                self.put(files, path.to_owned(), File { mode: SUBMODULE, id });
            }
            10 => {
                self.count("symbolic link");
                let id = self.built.blob(if self.random.bool() { "apps/a" } else { "base" });
                self.put(files, "link".to_owned(), File { mode: SYMLINK, id });
            }
            _ => {
                self.count("a file in place of a directory");
                let (place, file) = (PLACES[self.random.usize(..PLACES.len() - 1)], self.file());
                self.put(files, place.to_owned(), file);
            }
        }
    }

    fn edited(&mut self, mut files: Files) -> Files {
        for _ in 0..self.random.u8(1..4) {
            self.edit(&mut files);
        }
        files
    }

    fn root(&mut self) {
        let files = if self.random.u8(0..10) == 0 { Files::new() } else { self.edited(Files::new()) };
        let time = self.time();
        let root = self.built.commit(files, &[], time);
        self.branches.push(root);
    }

    fn head(&mut self) -> (usize, usize) {
        let branch = self.random.usize(..self.branches.len());
        (branch, self.branches[branch])
    }

    fn commit(&mut self, branch: usize, files: Files, parents: &[usize]) {
        let time = self.time();
        self.branches[branch] = self.built.commit(files, parents, time);
    }

    fn files(&self, n: usize) -> Files {
        self.built.commits[n].files.clone()
    }

    /// What `from` did to its first parent, done to `files`.
    fn applied(&mut self, from: usize, files: &Files, undone: bool) -> Files {
        let before =
            self.built.commits[from].parents.first().map(|parent| self.files(*parent)).unwrap_or_default();
        let after = self.files(from);
        let (old, new) = if undone { (after, before) } else { (before, after) };
        self.merged(&old, files, &new)
    }

    fn merged(&mut self, base: &Files, ours: &Files, theirs: &Files) -> Files {
        let mut files = ours.clone();
        for path in base.keys().chain(theirs.keys()).collect::<std::collections::BTreeSet<_>>() {
            if base.get(path) == theirs.get(path) {
                continue;
            }
            if base.get(path) == ours.get(path) || ours.get(path) == theirs.get(path) {
                match theirs.get(path) {
                    Some(file) => self.put(&mut files, path.clone(), *file),
                    None => drop(files.remove(path)),
                }
            } else {
                self.count("conflict");
                match self.random.u8(0..4) {
                    0 => {}
                    1 => {
                        if let Some(file) = theirs.get(path) {
                            self.put(&mut files, path.clone(), *file);
                        }
                    }
                    2 => drop(files.remove(path)),
                    _ => {
                        let file = self.file();
                        self.put(&mut files, path.clone(), file);
                    }
                }
            }
        }
        files
    }

    /// A commit that both follow, or none.
    fn base(&self, one: usize, two: usize) -> Option<usize> {
        let all = |from: usize| {
            let mut found = vec![from];
            let mut at = 0;
            while at < found.len() {
                found.extend(self.built.commits[found[at]].parents.iter().copied());
                at += 1;
                found.dedup();
            }
            found
        };
        let theirs = all(two);
        all(one).into_iter().filter(|n| theirs.contains(n)).max()
    }

    fn step(&mut self) {
        let (branch, head) = self.head();
        let (_, other) = self.head();
        let files = self.files(head);
        match self.random.u8(0..20) {
            0..=6 => {
                let files = self.edited(files);
                self.commit(branch, files, &[head]);
            }
            7..=9 => {
                self.branches.push(head);
                let files = self.edited(files);
                let new = self.branches.len() - 1;
                self.commit(new, files, &[head]);
            }
            10..=12 if other != head => {
                self.count("merge");
                let base = self.base(head, other).map(|base| self.files(base)).unwrap_or_default();
                let theirs = self.files(other);
                let mut merged = self.merged(&base, &files, &theirs);
                if self.random.u8(0..5) == 0 {
                    self.count("a merge that adds something of its own");
                    self.edit(&mut merged);
                } else if self.random.u8(0..5) == 0 {
                    self.count("a merge that throws a side away");
                    merged = if self.random.bool() { files } else { theirs };
                }
                self.commit(branch, merged, &[head, other]);
            }
            13 => {
                self.count("octopus");
                let mut parents = vec![head];
                let mut merged = files;
                for other in self.branches.clone() {
                    if !parents.contains(&other) && parents.len() < 5 {
                        let base = self.base(head, other).map(|base| self.files(base)).unwrap_or_default();
                        let theirs = self.files(other);
                        merged = self.merged(&base, &merged, &theirs);
                        parents.push(other);
                    }
                }
                self.commit(branch, merged, &parents);
            }
            14 if other != head => {
                self.count("squash");
                let base = self.base(head, other).map(|base| self.files(base)).unwrap_or_default();
                let theirs = self.files(other);
                let files = self.merged(&base, &files, &theirs);
                self.commit(branch, files, &[head]);
            }
            15 if other != head => {
                self.count("rebase");
                let base = self.base(head, other);
                let mut moved = Vec::new();
                let mut at = Some(head);
                while at != base
                    && let Some(n) = at
                {
                    moved.push(n);
                    at = self.built.commits[n].parents.first().copied();
                }
                self.branches[branch] = other;
                for n in moved.into_iter().rev().take(4) {
                    let onto = self.branches[branch];
                    let files = self.files(onto);
                    let files = self.applied(n, &files, false);
                    self.commit(branch, files, &[onto]);
                }
            }
            16 => {
                self.count("cherry-pick");
                let from = self.random.usize(..self.built.commits.len());
                let files = self.applied(from, &files, false);
                self.commit(branch, files, &[head]);
            }
            17 => {
                self.count("revert");
                let from = self.random.usize(..self.built.commits.len());
                let files = self.applied(from, &files, true);
                self.commit(branch, files, &[head]);
            }
            18 => {
                self.count("a commit without changes");
                self.commit(branch, files, &[head]);
            }
            _ => {
                self.count("another root");
                self.root();
            }
        }
    }
}

/// What is asked of a repository, as places in [`Built::commits`].
pub(super) struct Question {
    pub(super) to: usize,
    pub(super) since: Option<usize>,
    pub(super) paths: Vec<String>,
}

pub(super) fn questions(
    built: &Built,
    kept: &[bool],
    random: &mut Rng,
    shapes: &mut Shapes,
) -> Vec<Question> {
    let all: Vec<usize> = (0..built.commits.len()).filter(|n| kept[*n]).collect();
    (0..random.usize(3..12))
        .map(|_| {
            let to = all[random.usize(..all.len())];
            let since = match random.u8(0..8) {
                0 => {
                    *shapes.entry("first sync").or_default() += 1;
                    None
                }
                1 => Some(to),
                _ => Some(random.usize(..built.commits.len())),
            };
            let paths =
                (0..random.usize(1..4)).map(|_| PATHS[random.usize(..PATHS.len())].to_owned()).collect();
            Question { to, since, paths }
        })
        .collect()
}

/// Compares the walk with the oracle; how many questions were asked.
pub(super) fn compare(built: &Built, kept: &[bool], questions: &[Question], seed: u64) -> usize {
    let asked: Vec<WalkRequest> = questions
        .iter()
        .map(|question| WalkRequest {
            to: built.commits[question.to].id,
            since: question.since.map(|since| built.commits[since].id),
            paths: question.paths.clone().into(),
        })
        .collect();
    let found = changes(&built.repository, &asked, WalkLimits::default()).unwrap().changes;
    for (question, found) in questions.iter().zip(&found) {
        let (new, newest) = oracle::changes(built, kept, question.to, question.since, &question.paths);
        let ids = |all: &[usize]| all.iter().map(|n| built.commits[*n].id).collect::<Vec<_>>();
        let (to, since) = (question.to, question.since);
        let why = format!("seed {seed}, {since:?}..{to}, {:?}", question.paths);
        assert_eq!(found.since.iter().map(|change| change.commit).collect::<Vec<_>>(), ids(&new), "{why}");
        assert_eq!(
            found.newest.as_ref().map(|change| change.commit),
            newest.map(|n| built.commits[n].id),
            "{why}"
        );
        assert_eq!(found.since_unknown, since.is_some_and(|since| !kept[since]), "{why}");
        for (change, n) in found.since.iter().zip(&new) {
            assert_eq!(change.paths, paths(built, *n, &question.paths), "{why}, paths of {n}");
        }
    }
    questions.len()
}

/// The application's paths that differ from the first parent's.
fn paths(built: &Built, n: usize, paths: &[String]) -> Vec<String> {
    let own = oracle::under(&built.commits[n].files, paths);
    let parent = built.commits[n].parents.first();
    let before = parent.map(|parent| oracle::under(&built.commits[*parent].files, paths)).unwrap_or_default();
    let all: std::collections::BTreeSet<&String> = own.keys().chain(before.keys()).collect();
    all.into_iter().filter(|path| own.get(*path) != before.get(*path)).cloned().collect()
}
