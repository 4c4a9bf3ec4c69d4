//! A commit of a deployment, with what it changed in files.

use stages_platform_store::{ApplicationName, CommitOf, SourceChange, Store, StoreError, View};

use crate::view::application::Change;
use crate::view::commit::{BroughtCommit, CommitFiles};

pub(super) async fn read(
    store: &Store,
    view: &View,
    id: &ApplicationName,
    (began, revision): (i64, &str),
) -> Result<Option<BroughtCommit>, StoreError> {
    let Some(known) = store.known(view, id).await? else { return Ok(None) };
    Ok(of(store.changes_at(known.id, began).await?, revision))
}

/// The commit of that revision, in all sources that it changed; its neighbours are those in the first of them.
fn of(sources: Vec<SourceChange>, revision: &str) -> Option<BroughtCommit> {
    let mut found: Option<BroughtCommit> = None;
    for SourceChange { repository, commits, .. } in sources {
        let Some(at) = commits.iter().position(|one| one.revision == revision) else { continue };
        let neighbour = |at: Option<usize>| Some(commits.get(at?)?.revision.clone());
        let (newer, older) = (neighbour(at.checked_sub(1)), neighbour(at.checked_add(1)));
        let Some(one) = commits.into_iter().nth(at) else {
            continue;
        };
        let CommitOf { revision, author, message, made_from, mut paths, more_paths, diffs, .. } = one;
        let of = found.get_or_insert_with(|| BroughtCommit {
            change: Change { revision, message, author },
            made_from,
            sources: Vec::new(),
            newer,
            older,
        });
        paths.retain(|path| diffs.iter().all(|told| told.path != *path));
        of.sources.push(CommitFiles { repository, diffs, paths, more_paths });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_stands_among_its_neighbours_with_the_files_of_all_sources_that_it_changed() {
        let told = |path: &str| stages_platform_store::FileDiff {
            path: path.to_owned(),
            ..stages_platform_store::FileDiff::default()
        };
        let commit = |revision: &str, paths: &[&str], diffs: usize| CommitOf {
            revision: revision.to_owned(),
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            more_paths: 2,
            diffs: paths.iter().take(diffs).map(|path| told(path)).collect(),
            ..CommitOf::default()
        };
        let source = |commits: Vec<CommitOf>| SourceChange { commits, ..SourceChange::default() };
        let made_from = stages_platform_store::MadeFrom {
            revision: "dry".to_owned(),
            ..stages_platform_store::MadeFrom::default()
        };
        let written = CommitOf { made_from: Some(made_from), ..commit("b", &["x", "y", "z"], 2) };
        let sources = vec![
            source(vec![commit("c", &["x"], 0), written, commit("a", &[], 0)]),
            source(vec![commit("e", &["x"], 0)]),
            source(vec![commit("b", &["v"], 1)]),
        ];
        let found = of(sources.clone(), "b").unwrap();
        assert_eq!((found.newer.as_deref(), found.older.as_deref()), (Some("c"), Some("a")));
        assert_eq!(found.made_from.unwrap().revision, "dry");
        let files = |files: &CommitFiles| (files.diffs.len(), files.paths.clone(), files.more_paths);
        let files: Vec<_> = found.sources.iter().map(files).collect();
        assert_eq!(files, [(2, vec!["z".to_owned()], 2), (1, Vec::new(), 2)]);
        let first = of(sources.clone(), "c").unwrap();
        assert_eq!((first.newer, first.older.as_deref()), (None, Some("b")));
        assert_eq!(of(sources, "gone"), None);
    }
}
