//! The history of paths as git itself simplifies it.

use std::collections::BTreeSet;

use git2::Oid;

use super::Built;
use super::generated::Question;
use super::incumbent::git;
use crate::walk::{WalkLimits, WalkRequest, changes};

/// Compares all changes of the paths of these questions, whatever was known before, with `git log -- paths`; how many were compared.
/// A pattern, and a path through a link or a submodule, git reads in another way. The repository must be on the disk.
pub(super) fn compare(built: &Built, questions: &[Question], seed: u64) -> usize {
    let is_plain = |path: &String| {
        !path.is_empty() && !path.contains(['*', '?', '[']) && !path.starts_with("sub/") && path != "link/x"
    };
    let plain = |question: &&Question| question.paths.iter().all(is_plain);
    let plain: Vec<&Question> = questions.iter().filter(plain).collect();
    for question in &plain {
        let to = built.commits[question.to].id;
        let asked = WalkRequest { to, since: None, paths: question.paths.clone().into() };
        let found = changes(&built.repository, &[asked], WalkLimits::default()).unwrap().changes.remove(0);
        let found: BTreeSet<Oid> = found.since.iter().map(|change| change.commit).collect();
        let to = to.to_string();
        let mut arguments = vec!["rev-list", &to, "--"];
        arguments.extend(question.paths.iter().map(String::as_str));
        let told = git(built, &arguments, "");
        let told: BTreeSet<Oid> = told.lines().map(|id| Oid::from_str(id).unwrap()).collect();
        assert_eq!(found, told, "seed {seed}, {to}, {:?}", question.paths);
    }
    plain.len()
}
