use fastrand::Rng;
use git2::ObjectType;

use super::generated::{Shapes, compare, questions, repository};
use super::{Built, File, Files, SUBMODULE, git_log, incumbent};
use crate::Paths;
use crate::error::GitError;
use crate::manifest_files::ManifestFiles;
use crate::walk::paths::MAX_PATTERNS;
use crate::walk::{WalkLimits, WalkRequest, changes, differing};

/// Generated repositories in the gate; `GITOPS_RUNTIME_REPOSITORIES` asks for another number.
const REPOSITORIES: u64 = 200;
/// Of so many one is asked about in the incumbent's way, with processes of git.
const BESIDE: u64 = 10;

#[test]
fn the_walk_agrees_with_the_oracle_on_every_generated_repository() {
    let asked = std::env::var("GITOPS_RUNTIME_REPOSITORIES").ok();
    let count = asked.map_or(REPOSITORIES, |text| text.parse().unwrap());
    let mut shapes = Shapes::new();
    let mut compared = 0;
    let (mut asked_of_git, mut right_of_git, mut simplified) = (0, 0, 0);
    for seed in 0..count {
        let built = repository(seed, &mut shapes);
        let mut random = Rng::with_seed(seed ^ 0x5eed);
        let whole = vec![true; built.commits.len()];
        let asked = questions(&built, &whole, &mut random, &mut shapes);
        compared += compare(&built, &whole, &asked, seed);
        if seed % BESIDE == 0 {
            let written = built.written();
            asked_of_git += asked.len();
            right_of_git += incumbent::agreements(&written, &asked);
            simplified += git_log::compare(&written, &asked, seed);
        }
        if seed % 5 == 0 {
            *shapes.entry("shallow clone").or_default() += 1;
            // The newest commits, as a clone with a depth has: whoever is kept has kept children alone.
            let from = random.usize(..built.commits.len());
            let kept: Vec<bool> = (0..built.commits.len()).map(|n| n >= from).collect();
            let shallow = built.shallow(&kept);
            let asked = questions(&shallow, &kept, &mut random, &mut shapes);
            compared += compare(&shallow, &kept, &asked, seed);
        }
    }
    assert!(compared > 3 * usize::try_from(count).unwrap());
    let score = 100 * right_of_git / asked_of_git.max(1);
    println!(
        "{count} repositories: the walk agrees with the oracle in {compared} of {compared} questions, and the incumbent's way in \
         {right_of_git} of {asked_of_git} ({score} %)"
    );
    assert!(simplified > 0, "no question was asked of git log");
    assert!(right_of_git > 0, "the incumbent's way was asked of the very repositories");
    assert!(score < 90, "what the walk is better in is not asked");
    let expected = [
        "merge",
        "conflict",
        "octopus",
        "squash",
        "rebase",
        "cherry-pick",
        "revert",
        "first sync",
        "rename",
        "deletion",
        "mode change",
        "submodule bump",
        "shallow clone",
        "symbolic link",
        "rename of a directory",
        "another root",
        "a file in place of a directory",
        "a commit without changes",
        "a merge that adds something of its own",
        "a merge that throws a side away",
    ];
    for shape in expected {
        assert!(shapes.contains_key(shape), "no repository has {shape}");
    }
}

/// A line of commits, each of which changes `apps/{n % applications}/x`.
fn line(commits: usize, applications: usize) -> Built {
    grown(Built::new(""), commits, applications)
}

fn grown(mut built: Built, commits: usize, applications: usize) -> Built {
    let mut files = Files::new();
    for n in 0..commits {
        files.insert(format!("apps/{}/x", n % applications), built.file(&n.to_string()));
        let parents: Vec<usize> = n.checked_sub(1).into_iter().collect();
        built.commit(files.clone(), &parents, i64::try_from(n).unwrap());
    }
    built
}

#[test]
fn a_list_that_is_too_long_says_that_there_is_more() {
    let built = line(9, 2);
    let asked = |since: Option<usize>| WalkRequest {
        to: built.commits[8].id,
        since: since.map(|n| built.commits[n].id),
        paths: vec!["apps/0".to_owned()].into(),
    };
    let limits = WalkLimits { changes: 2, commits: 100, ..WalkLimits::default() };
    let all = [asked(None), asked(Some(4)), asked(Some(3))];
    let found = changes(&built.repository, &all, limits).unwrap().changes;
    let ids = |n: usize| found[n].since.iter().map(|change| change.commit).collect::<Vec<_>>();
    assert_eq!((ids(0), found[0].more), (vec![built.commits[8].id, built.commits[6].id], true));
    assert_eq!((ids(1), found[1].more), (vec![built.commits[8].id, built.commits[6].id], false));
    assert_eq!((ids(2), found[2].more), (vec![built.commits[8].id, built.commits[6].id], true));
}

#[test]
fn a_commit_dated_at_the_end_of_time_hides_nothing_that_it_follows() {
    let mut built = Built::new("");
    let mut files = Files::new();
    for n in 0..20_usize {
        files.insert(format!("apps/{n}"), built.file(&n.to_string()));
        let parents: Vec<usize> = n.checked_sub(1).into_iter().collect();
        let time = if n == 1 { i64::MAX } else { i64::try_from(n).unwrap() };
        built.commit(files.clone(), &parents, time);
    }
    let asked = |path: &str| WalkRequest {
        to: built.commits[19].id,
        since: None,
        paths: vec![path.to_owned()].into(),
    };
    let walked = changes(&built.repository, &[asked("apps/0"), asked("")], WalkLimits::default()).unwrap();
    let ids = |n: usize| walked.changes[n].since.iter().map(|change| change.commit).collect::<Vec<_>>();
    assert_eq!(ids(0), [built.commits[0].id]);
    let newest_first: Vec<_> = built.commits.iter().rev().map(|commit| commit.id).collect();
    assert_eq!(ids(1), newest_first);
}

#[test]
fn what_a_merge_throws_away_of_one_side_has_changed_nothing() {
    let files = |built: &Built, a: &str, b: &str| -> Files {
        [("apps/a/x", a), ("apps/b/x", b)].map(|(path, text)| (path.to_owned(), built.file(text))).into()
    };
    // `git merge -s ours` keeps the tree of the first parent; the same tree may be the second parent's.
    for parents in [[1, 2], [2, 1]] {
        let mut built = Built::new("");
        for (n, (a, b, before)) in
            [("1", "1", vec![]), ("1", "2", vec![0]), ("2", "1", vec![0])].into_iter().enumerate()
        {
            let files = files(&built, a, b);
            built.commit(files, &before, i64::try_from(n).unwrap());
        }
        let kept = built.commits[1].files.clone();
        let merge = built.commit(kept, &parents, 3);
        let asked = |path: &str, since: Option<usize>| WalkRequest {
            to: built.commits[merge].id,
            since: since.map(|n| built.commits[n].id),
            paths: vec![path.to_owned()].into(),
        };
        let all = [asked("apps/a", None), asked("apps/a", Some(1)), asked("apps/b", None), asked("", None)];
        let found = changes(&built.repository, &all, WalkLimits::default()).unwrap().changes;
        let place = |id| built.commits.iter().position(|commit| commit.id == id).unwrap();
        let told: Vec<(Option<usize>, Vec<usize>)> = found
            .iter()
            .map(|found| {
                let since = found.since.iter().map(|change| place(change.commit)).collect();
                (found.newest.as_ref().map(|newest| place(newest.commit)), since)
            })
            .collect();
        let expected = [(Some(0), vec![0]), (Some(0), vec![]), (Some(1), vec![1, 0]), (Some(1), vec![1, 0])];
        assert_eq!(told, expected, "{parents:?}");
    }
}

#[test]
fn history_that_is_too_long_is_refused() {
    let built = line(5, 1);
    let asked = WalkRequest { to: built.commits[4].id, since: None, paths: vec![String::new()].into() };
    let limits = WalkLimits { changes: 1, commits: 4, ..WalkLimits::default() };
    let refused = changes(&built.repository, &[asked], limits).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the repository's history has more than 4 commits, a merge counted once for each commit that it follows"
    );
}

#[test]
fn a_commit_that_follows_many_counts_as_many() {
    let mut built = Built::new("");
    let first = built.commit(Files::new(), &[], 1);
    let second = built.commit(Files::new(), &vec![first; 1_000], 2);
    let asked =
        [WalkRequest { to: built.commits[second].id, since: None, paths: vec![String::new()].into() }];
    let walked =
        |commits: usize| changes(&built.repository, &asked, WalkLimits { commits, ..WalkLimits::default() });
    assert!(matches!(walked(1_000), Err(GitError::TooManyCommits { limit: 1_000 })));
    assert_eq!(walked(1_001).unwrap().commits, 2);
}

#[test]
fn a_history_of_more_than_two_million_is_walked() {
    const MANY: usize = 1_100_000;
    let mut built = Built::new("");
    let first = built.commit(Files::new(), &[], 1);
    let second = built.commit(Files::new(), &vec![first; MANY], 2);
    let third = built.commit(Files::new(), &vec![second; MANY], 3);
    let asked = [WalkRequest { to: built.commits[third].id, since: None, paths: vec![String::new()].into() }];
    assert_eq!(changes(&built.repository, &asked, WalkLimits::default()).unwrap().commits, 3);
}

/// A tree of ten trees of ten trees and so on: few objects, and more paths than can be counted.
fn bomb(built: &Built, depth: usize) -> File {
    let odb = built.repository.odb().unwrap();
    (0..depth).fold(built.file("x"), |below, _| {
        let mut tree = Vec::new();
        for name in b'a'..=b'j' {
            tree.extend_from_slice(format!("{:o} ", below.mode).as_bytes());
            tree.extend_from_slice(&[name, 0]);
            tree.extend_from_slice(below.id.as_bytes());
        }
        File { mode: 0o040_000, id: odb.write(ObjectType::Tree, &tree).unwrap() }
    })
}

#[test]
fn of_a_tree_with_more_paths_than_can_be_counted_so_many_are_looked_at_and_no_more() {
    let mut built = Built::new("");
    let text = |built: &Built, text: &str| built.file(text);
    let files = |all: &[(&str, File)]| -> Files {
        all.iter().map(|(path, file)| ((*path).to_owned(), *file)).collect()
    };
    let bomb = bomb(&built, 5);
    let [one, two] = ["1", "2"].map(|of| text(&built, of));
    let first = built.commit(files(&[("app/x", bomb), ("other/f", one)]), &[], 1);
    let second = built.commit(files(&[("app/cm.yaml", one), ("other/f", one), ("z/f", one)]), &[first], 2);
    let third = built.commit(files(&[("app/cm.yaml", one), ("other/f", one), ("z/f", two)]), &[second], 3);
    let found = |to: usize, since: usize, path: &str| {
        let paths = ["app", "app/x/a/b", "other", "z", path].map(|path| WalkRequest {
            to: built.commits[to].id,
            since: Some(built.commits[since].id),
            paths: vec![path.to_owned()].into(),
        });
        let limits = WalkLimits { entries: 1_000, ..WalkLimits::default() };
        changes(&built.repository, &paths, limits).unwrap().changes
    };
    let of = found(second, first, "");
    let changed: Vec<usize> = of.iter().map(|of| of.since.len()).collect();
    assert_eq!(changed, [1, 1, 0, 1, 1], "what is beyond counts as changed, and nothing beside it");
    for all in [&of[0], &of[4]] {
        let looked_at = all.since[0].paths.len() + all.since[0].more_paths;
        assert!((900..1_100).contains(&looked_at), "{looked_at}");
    }
    // What comes after it is looked at as before.
    let of = found(third, first, "z/f");
    let paths: Vec<&[String]> = of[4].since.iter().map(|change| &*change.paths).collect();
    assert_eq!(paths[0], ["z/f"]);
    assert_eq!(found(third, second, "").iter().map(|of| of.since.len()).collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
}

#[test]
fn a_revision_that_is_not_there_is_refused() {
    let built = line(1, 1);
    let to = git2::Oid::from_str("00000000000000000000000000000000000000aa").unwrap();
    let asked = WalkRequest { to, since: None, paths: vec![String::new()].into() };
    let refused = changes(&built.repository, &[asked], WalkLimits::default()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "no commit is named 00000000000000000000000000000000000000aa: neither a branch, a tag nor an object of the repository is"
    );
}

#[test]
fn a_repository_that_lacks_a_commit_is_called_damaged() {
    let built = grown(Built::on_disk(""), 2, 1);
    let lost = built.commits[0].id.to_string();
    let (directory, file) = lost.split_at(2);
    std::fs::remove_file(built.directory.path().join("objects").join(directory).join(file)).unwrap();
    let repository = git2::Repository::open_bare(built.directory.path()).unwrap();
    let asked = WalkRequest { to: built.commits[1].id, since: None, paths: vec![String::new()].into() };
    let refused = changes(&repository, &[asked], WalkLimits::default()).unwrap_err();
    let child = built.commits[1].id;
    assert_eq!(
        refused.to_string(),
        format!("the repository is damaged: {lost} is not there, which {child} follows")
    );
}

#[test]
fn many_revisions_are_walked_in_parts_and_none_is_mixed_up() {
    let built = line(300, 3);
    let asked: Vec<WalkRequest> = (0..300)
        .map(|n| WalkRequest {
            to: built.commits[n].id,
            since: n.checked_sub(5).map(|n| built.commits[n].id),
            paths: vec!["apps/1".to_owned()].into(),
        })
        .collect();
    let found = changes(&built.repository, &asked, WalkLimits::default()).unwrap().changes;
    for (n, found) in found.iter().enumerate() {
        let from = n.saturating_sub(4);
        let expected: Vec<_> = (from..=n).rev().filter(|n| n % 3 == 1).map(|n| built.commits[n].id).collect();
        assert_eq!(found.since.iter().map(|change| change.commit).collect::<Vec<_>>(), expected, "{n}");
    }
}

#[test]
fn a_pull_request_changes_what_differs_in_the_end() {
    let built = line(4, 2);
    let paths = ["apps/0", "apps/1", "apps/2"].map(|path| Paths::from(vec![path.to_owned()]));
    let found = differing(&built.repository, built.commits[2].id, built.commits[3].id, &paths).unwrap();
    let changed: Vec<_> =
        found.iter().map(|found| found.as_ref().map(|change| change.paths.clone())).collect();
    assert_eq!(changed, [None, Some(vec!["apps/1/x".to_owned()]), None]);
}

#[test]
fn a_path_of_many_names_is_looked_at_down_to_a_bound() {
    let mut built = Built::new("");
    let deep = "d/".repeat(900);
    let mut files = Files::new();
    files.insert(format!("{deep}x"), built.file("1"));
    let first = built.commit(files.clone(), &[], 1);
    files.insert(format!("{deep}x"), built.file("2"));
    let second = built.commit(files, &[first], 2);
    let asked = |path: String| WalkRequest {
        to: built.commits[second].id,
        since: Some(built.commits[first].id),
        paths: vec![path].into(),
    };
    let asked = [asked("d".to_owned()), asked(format!("{deep}x")), asked("e".to_owned())];
    let found = changes(&built.repository, &asked, WalkLimits::default()).unwrap().changes;
    let changed: Vec<usize> = found.iter().map(|found| found.since.len()).collect();
    assert_eq!(changed, [1, 1, 0]);
}

#[test]
fn of_some_files_of_a_directory_the_others_change_nothing() {
    let mut built = Built::new("");
    let mut files = Files::new();
    let steps = [
        ("apps/a/application.yaml", "1"),
        ("apps/a/values.yaml", "1"),
        ("README.md", "1"),
        ("apps/a/application.yaml", "2"),
        ("application.yaml", "1"),
        ("apps/b/old.yaml", "1"),
    ];
    for (n, (path, text)) in steps.into_iter().enumerate() {
        files.insert(path.to_owned(), built.file(text));
        let parents: Vec<usize> = n.checked_sub(1).into_iter().collect();
        built.commit(files.clone(), &parents, i64::try_from(n).unwrap());
    }
    let bump = File { mode: SUBMODULE, id: built.commits[0].id };
    files.insert("apps/sub".to_owned(), bump);
    built.commit(files.clone(), &[5], 6);
    files.remove("apps/a/application.yaml");
    let last = built.commit(files, &[6], 7);
    let settings = serde_json::json!({"directory": {"recurse": true, "include": "*/application.yaml"}});
    let asked = |directory: &str| WalkRequest {
        to: built.commits[last].id,
        since: None,
        paths: Paths { some: vec![ManifestFiles::read(directory, &settings).unwrap()], ..Paths::default() },
    };
    let asked = [asked("apps"), asked(""), asked("apps/a"), asked("application.yaml")];
    let found = changes(&built.repository, &asked, WalkLimits::default()).unwrap().changes;
    let place = |id| built.commits.iter().position(|commit| commit.id == id).unwrap();
    let changed: Vec<Vec<usize>> =
        found.iter().map(|found| found.since.iter().map(|change| place(change.commit)).collect()).collect();
    // What a submodule holds may be any of them.
    assert_eq!(changed, [vec![7, 6, 3, 0], vec![7, 6, 3, 0], vec![], vec![4]]);
    assert_eq!(found[0].since[0].paths, ["apps/a/application.yaml"]);
    assert_eq!(found[0].since[1].paths, ["apps/sub"]);
}

#[test]
fn of_more_patterns_than_are_compared_in_one_directory_each_stands_for_that_directory() {
    let built = line(2, 2);
    let [from, to] = [0, 1].map(|n| built.commits[n].id);
    let of = |count: usize| {
        let patterns = (0..count).map(|n| format!("apps/1/none-{n}-*"));
        // Those of other directories are compared with other names, however many they are.
        let elsewhere = (0..=MAX_PATTERNS).map(|n| format!("elsewhere/{n}/*.yaml"));
        let others = ["*.none", "apps/*.none", "docs/*.md", "apps/0"].map(str::to_owned);
        Paths::from(patterns.chain(elsewhere).chain(others).collect::<Vec<_>>())
    };
    let paths = [of(MAX_PATTERNS), of(MAX_PATTERNS + 1)];
    let found = differing(&built.repository, from, to, &paths).unwrap();
    let changed: Vec<_> =
        found.into_iter().map(|found| found.map(|change| (change.paths, change.more_paths))).collect();
    assert_eq!(changed, [None, Some((vec!["apps/1/x".to_owned()], 0))]);
}

#[test]
fn a_path_is_the_same_however_it_is_written_and_nothing_where_it_leads_out() {
    let built = line(2, 2);
    let [from, to] = [0, 1].map(|n| built.commits[n].id);
    let written =
        ["apps/1", "/apps/1/", "./apps//./1", "lib/../apps/x/../1", "apps/../../apps/1", "../apps/1"];
    let paths = written.map(|path| Paths::from(vec![path.to_owned()]));
    let found = differing(&built.repository, from, to, &paths).unwrap();
    let changed: Vec<bool> = found.iter().map(Option::is_some).collect();
    assert_eq!(changed, [true, true, true, true, false, false]);
}
