//! What is right, worked out by its definition from all files of all commits. Knows nothing of the walk.

use std::collections::{BTreeMap, BTreeSet};

use regex::bytes::Regex;

use super::{Built, File, Files, SUBMODULE, SYMLINK};

/// The changes of one application: new ones, the newest first, and the newest of all.
pub(super) fn changes(
    built: &Built,
    known: &[bool],
    to: usize,
    since: Option<usize>,
    paths: &[String],
) -> (Vec<usize>, Option<usize>) {
    let now = followed(built, to, paths);
    let before = since.filter(|since| known[*since]).map(|since| reachable(built, since)).unwrap_or_default();
    let mut order: Vec<usize> = now.iter().copied().collect();
    let times = times(built);
    order.sort_by_key(|n| (std::cmp::Reverse(times[n]), built.commits[*n].id));
    let changed: Vec<usize> = order.into_iter().filter(|n| is_changed(built, *n, paths)).collect();
    let new: Vec<usize> = changed.iter().copied().filter(|n| !before.contains(n)).collect();
    let newest = new.first().or(changed.first()).copied();
    (new, newest)
}

fn reachable(built: &Built, from: usize) -> BTreeSet<usize> {
    let mut all = BTreeSet::from([from]);
    loop {
        let more: BTreeSet<usize> = all.iter().flat_map(|n| built.commits[*n].parents.clone()).collect();
        let before = all.len();
        all.extend(more);
        if all.len() == before {
            return all;
        }
    }
}

/// The commits that an application's files come from: before a merge that has them as a parent has them, that parent's alone, and of
/// several such parents the first one's.
fn followed(built: &Built, from: usize, paths: &[String]) -> BTreeSet<usize> {
    let (mut all, mut rest) = (BTreeSet::new(), vec![from]);
    while let Some(n) = rest.pop() {
        if !all.insert(n) {
            continue;
        }
        let own = under(&built.commits[n].files, paths);
        let parents = &built.commits[n].parents;
        match parents.iter().find(|parent| under(&built.commits[**parent].files, paths) == own) {
            Some(parent) => rest.push(*parent),
            None => rest.extend(parents),
        }
    }
    all
}

/// A commit is at least a second newer than each of its parents, whatever its clock said.
fn times(built: &Built) -> BTreeMap<usize, i64> {
    let mut times = BTreeMap::new();
    for (n, commit) in built.commits.iter().enumerate() {
        let parents = commit.parents.iter().map(|parent| times[parent] + 1);
        let time = parents.chain([commit.time]).max().unwrap();
        times.insert(n, time);
    }
    times
}

fn is_changed(built: &Built, n: usize, paths: &[String]) -> bool {
    let own = under(&built.commits[n].files, paths);
    match &*built.commits[n].parents {
        [] => !own.is_empty(),
        parents => parents.iter().all(|parent| under(&built.commits[*parent].files, paths) != own),
    }
}

/// The files of an application.
pub(super) fn under(files: &Files, paths: &[String]) -> BTreeMap<String, (i32, git2::Oid)> {
    let is_under = |file: &str, entry: &File| {
        paths.iter().any(|path| {
            let path = path.trim_matches('/');
            let directory =
                |of: &str, what: &str| what.strip_prefix(of).is_some_and(|rest| rest.starts_with('/'));
            path.is_empty()
                || path == "."
                || file == path
                || directory(path, file)
                || (matches!(entry.mode, SYMLINK | SUBMODULE) && (directory(file, path)))
                || pattern(path).is_some_and(|pattern| pattern.is_match(file.as_bytes()))
        })
    };
    let found = files.iter().filter(|(path, file)| is_under(path, file));
    found.map(|(path, file)| (path.clone(), (file.mode, file.id))).collect()
}

fn pattern(path: &str) -> Option<Regex> {
    if !path.contains(['*', '?', '[']) {
        return None;
    }
    let text = regex::escape(path)
        .replace(r"\*", "[^/]*")
        .replace(r"\?", "[^/]")
        .replace(r"\[", "[")
        .replace(r"\]", "]");
    Regex::new(&format!("^{}$", text.replace(r"\-", "-"))).ok()
}
