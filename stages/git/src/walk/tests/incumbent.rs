//! The incumbent's way, with the real git: the newest commit on the way from one revision to another that names a file of the
//! application.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use git2::Oid;

use super::generated::Question;
use super::{Built, File, Files, REGULAR, oracle};

/// How many of these questions it answers as the oracle does. The repository must be on the disk.
pub(super) fn agreements(built: &Built, questions: &[Question]) -> usize {
    let all = vec![true; built.commits.len()];
    let agrees = |question: &&Question| {
        let (_, newest) = oracle::changes(built, &all, question.to, question.since, &question.paths);
        newest_change(built, question) == newest.map(|n| built.commits[n].id)
    };
    questions.iter().filter(agrees).count()
}

fn newest_change(built: &Built, question: &Question) -> Option<Oid> {
    let to = built.commits[question.to].id;
    let Some(since) = question.since.map(|since| built.commits[since].id).filter(|since| *since != to) else {
        // Where there is nothing between, it is the revision itself.
        return Some(to);
    };
    let between = git(built, &["rev-list", "--ancestry-path", &format!("{since}..{to}")], "");
    let named = git(built, &["diff-tree", "--stdin", "--name-only", "-r"], &between);
    let mut files: HashMap<Oid, Files> = HashMap::new();
    let mut of = Oid::ZERO_SHA1;
    for line in named.lines() {
        match Oid::from_str(line) {
            Ok(id) if line.len() == 40 => of = id,
            _ => {
                let file = File { mode: REGULAR, id: Oid::ZERO_SHA1 };
                files.entry(of).or_default().insert(line.to_owned(), file);
            }
        }
    }
    let is_its = |id: &Oid| files.get(id).is_some_and(|of| !oracle::under(of, &question.paths).is_empty());
    between.lines().map(|id| Oid::from_str(id).unwrap()).find(is_its)
}

pub(super) fn git(built: &Built, arguments: &[&str], input: &str) -> String {
    let directory: &Path = built.directory.path();
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A few lines, which fit into the pipe; who reads none of them may be gone.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "git {arguments:?}");
    String::from_utf8(done.stdout).unwrap()
}
