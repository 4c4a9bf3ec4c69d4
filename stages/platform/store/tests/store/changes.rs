//! The commits that a sync brought: told by the application's own report, or by whoever looks at repositories, in any order.

use std::time::Duration;

use stages_platform_store::{CommitOf, FileDiff, Retention, SourceChange};

use crate::contract::retained;
use crate::support::{KEEP_ALL, Opened, operation, report};

const SHOP: (&str, &str) = ("argocd", "shop");

fn source(revisions: &[&str], paths: &[&str]) -> SourceChange {
    let commit = |revision: &&str| CommitOf {
        revision: (*revision).to_owned(),
        author: "Ada <ada@example.com>".to_owned(),
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..CommitOf::default()
    };
    SourceChange { commits: revisions.iter().map(commit).collect(), ..SourceChange::default() }
}

/// Of each deployment, the oldest first: when it began, and the commits of its first source with their paths.
async fn brought(opened: &Opened) -> Vec<(i64, Vec<(String, Vec<String>)>)> {
    let mut all = opened.store.deployments(opened.runtime.id, SHOP).await.unwrap();
    all.reverse();
    let commits = |changes: Vec<SourceChange>| {
        let first = changes.into_iter().next().unwrap_or_default();
        first.commits.into_iter().map(|one| (one.revision, one.paths)).collect()
    };
    all.into_iter().map(|one| (one.started_at, commits(one.changes))).collect()
}

fn commits(all: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let one = |(revision, paths): &(&str, &[&str])| {
        ((*revision).to_owned(), paths.iter().map(|path| (*path).to_owned()).collect())
    };
    all.iter().map(one).collect()
}

pub(crate) async fn what_changed_stands_with_its_sync_whatever_comes_first(opened: Opened) {
    let (store, runtime) = (&opened.store, opened.runtime.id);
    let keep = async |at: i64, sources: Vec<SourceChange>| {
        store.keep_changes(runtime, SHOP, at, sources).await.unwrap();
    };
    // Before anybody has told of the application, which is not made by it.
    keep(1_000, vec![source(&["b", "a"], &["x"])]).await;
    assert_eq!(store.applications(runtime, ("", ""), 10).await.unwrap(), []);
    let state = |version: i64, started_at: i64, changes: Vec<SourceChange>| {
        let mut report = report("u", version, version);
        report.operation = operation(started_at, Some(started_at + 500), "Succeeded");
        report.changes = changes;
        report
    };
    opened.keep(state(1, 1_000, vec![source(&["wrong"], &[])])).await;
    opened.keep(state(2, 2_000, vec![source(&["c"], &[])])).await;
    opened.keep(state(3, 3_000, Vec::new())).await;
    let first = (1_000, commits(&[("b", &["x"]), ("a", &["x"])]));
    let third = (3_000, Vec::new());
    assert_eq!(brought(&opened).await, [first.clone(), (2_000, commits(&[("c", &[])])), third.clone()]);
    // Whoever could not read a repository knows less than who could, and more than the application says.
    let failed = SourceChange { error: "it does not answer".to_owned(), ..SourceChange::default() };
    keep(2_000, vec![source(&["d"], &[]), failed.clone()]).await;
    opened.keep(state(4, 2_000, vec![source(&["c"], &[])])).await;
    assert_eq!(brought(&opened).await[1], (2_000, commits(&[("d", &[])])));
    keep(2_000, vec![source(&["d"], &["y"])]).await;
    keep(2_000, vec![failed]).await;
    assert_eq!(brought(&opened).await, [first, (2_000, commits(&[("d", &["y"])])), third]);
    // Of another runtime and another application nothing is told here.
    opened.store.keep_changes(runtime, ("argocd", "other"), 3_000, vec![source(&["z"], &[])]).await.unwrap();
    assert_eq!(brought(&opened).await[2].1, []);
    let known = opened.shop().await;
    let between = store.changes_between(known.id, (1_500, 3_500)).await.unwrap();
    assert_eq!(between.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [2_000]);
    opened.close().await;
}

pub(crate) async fn differences_of_files_are_read_of_one_sync_and_stay_when_less_is_told(opened: Opened) {
    let (store, runtime) = (&opened.store, opened.runtime.id);
    let mut state = report("u", 1, 1);
    state.operation = operation(1_000, Some(1_500), "Succeeded");
    opened.keep(state).await;
    let known = opened.shop().await.id;
    assert_eq!(store.changes_at(known, 1_000).await.unwrap(), []);
    let file = |path: &str, text: &str, untold: &str| FileDiff {
        path: path.to_owned(),
        text: text.to_owned(),
        untold: untold.to_owned(),
        cut: !text.is_empty(),
    };
    let none = source(&["d", "c"], &["x", "y"]);
    let mut whole = vec![source(&["b"], &["z"]), none.clone()];
    whole[1].commits[1].diffs = vec![file("x", "@@ -1,1 +1,1 @@\n-a\n+b\n", ""), file("y", "", "binary")];
    store.keep_changes(runtime, SHOP, 1_000, whole.clone()).await.unwrap();
    assert_eq!(store.changes_at(known, 1_000).await.unwrap(), whole);
    assert_eq!(store.changes_at(known, 1_001).await.unwrap(), []);
    // A list has no differences, nor has whoever knows less of the same.
    let listed = store.changes_between(known, (0, 2_000)).await.unwrap();
    assert_eq!(listed[0].1, [source(&["b"], &["z"]), none.clone()]);
    let place = store.sequence().await.unwrap();
    store.keep_changes(runtime, SHOP, 1_000, vec![source(&["b"], &["z"]), none]).await.unwrap();
    assert_eq!(store.changes_at(known, 1_000).await.unwrap(), whole);
    assert_eq!(store.sequence().await.unwrap(), place, "nothing changed");
    whole[0].commits[0].diffs = vec![file("z", "@@ -0,0 +1,1 @@\n+a\n", "")];
    store.keep_changes(runtime, SHOP, 1_000, whole.clone()).await.unwrap();
    assert_eq!(store.changes_at(known, 1_000).await.unwrap(), whole);
    assert!(store.sequence().await.unwrap() > place, "an open page hears of it");
    opened.close().await;
}

pub(crate) async fn what_changed_goes_with_the_history_that_it_is_of(opened: Opened) {
    let far = 4_000_000_000_000;
    for at in [1_000, far] {
        let mut report = report("u", at, at);
        report.operation = operation(at, None, "Running");
        opened.keep(report).await;
        let kept = opened.store.keep_changes(opened.runtime.id, SHOP, at, vec![source(&["a"], &[])]).await;
        kept.unwrap();
    }
    let known = opened.shop().await;
    let times = async || {
        let all = opened.store.changes_between(known.id, (0, i64::MAX)).await.unwrap();
        all.into_iter().map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!(times().await, [1_000, far]);
    let retention = Retention { history: Duration::ZERO, ..KEEP_ALL };
    retained(&opened, retention, async || times().await == [far]).await;
    opened.close().await;
}
