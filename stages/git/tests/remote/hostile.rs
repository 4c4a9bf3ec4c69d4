//! Repositories that were made to do harm: nothing of one is ever checked out, and what is read of one is bounded.

use std::path::Path;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use git2::{ObjectType, Oid, Repository};
use stages_git::GitError;
use stages_git::manifests::manifests;
use stages_git::walk::{WalkLimits, WalkRequest};

use crate::support::{Cache, Forge, Serving, backend, git, serve};

fn tree(repository: &Repository, entries: &[(&str, &[u8], Oid)]) -> Oid {
    let mut raw = Vec::new();
    for (mode, name, id) in entries {
        raw.extend(mode.as_bytes());
        raw.push(b' ');
        raw.extend(*name);
        raw.push(0);
        raw.extend(id.as_bytes());
    }
    repository.odb().unwrap().write(ObjectType::Tree, &raw).unwrap()
}

/// Has the branch `main` at a new commit of this tree.
fn commit(path: &Path, tree: Oid) -> String {
    let repository = Repository::open_bare(path).unwrap();
    let parent = repository.revparse_single("main").unwrap().id();
    let raw = format!(
        "tree {tree}\nparent {parent}\nauthor A <a@b> 1700000000 +0000\ncommitter A <a@b> 1700000000 +0000\n\nx\n"
    );
    let id = repository.odb().unwrap().write(ObjectType::Commit, raw.as_bytes()).unwrap();
    git(path, &["update-ref", "refs/heads/main", &id.to_string()]);
    id.to_string()
}

async fn fetched(forge: &Forge, cache: &Cache) -> stages_git::Checkout {
    let url = format!("{}/a.git", Serving::new(forge).http().await);
    cache.checkout(&url, "main").await.unwrap()
}

/// Everything below a folder that is not in the cache.
fn outside(cache: &Cache) -> Vec<String> {
    let all = std::fs::read_dir(cache.folder.path()).unwrap().flatten();
    all.map(|of| of.file_name().to_string_lossy().into_owned()).filter(|name| name != "cache").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_lead_elsewhere_are_only_names() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let repository = Repository::open_bare(&path).unwrap();
    let hook = repository.blob(b"#!/bin/sh\ntouch /tmp/never\n").unwrap();
    let target = repository.blob(b"../../../../etc/passwd").unwrap();
    let manifest = repository.blob(b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n").unwrap();
    let git_directory = tree(&repository, &[("100755", b"hooks", hook)]);
    let link = Oid::from_bytes(&[7; 20]).unwrap();
    let up = tree(&repository, &[("100644", b"escaped.yaml", manifest)]);
    let root = tree(
        &repository,
        &[
            ("40000", b"..", up),
            ("40000", b".git", git_directory),
            ("100644", b".gitmodules", manifest),
            ("100644", b"a\nb.yaml", manifest),
            ("100644", b"a\x1b[31m.yaml", manifest),
            ("120000", b"out", target),
            ("160000", b"self", link),
        ],
    );
    commit(&path, root);
    let cache = Cache::new(|_| {}).await;
    let at = fetched(&forge, &cache).await;
    let seen = at
        .read(|repository, commit| {
            let files = repository.snapshot(commit).unwrap();
            assert!(matches!(files.read("out", 100), Err(GitError::Outside { .. })));
            assert!(matches!(files.read("self/x", 100), Err(GitError::Submodule { .. })));
            assert!(matches!(files.read("../escaped.yaml", 100), Err(GitError::Outside { .. })));
            let found = manifests(&files, "", true).unwrap();
            let asked = WalkRequest { to: commit, since: None, paths: vec![String::new()].into() };
            let changes = repository.changes(&[asked], WalkLimits::default()).unwrap();
            assert!(changes[0].newest.is_some());
            found.manifests.len()
        })
        .await
        .unwrap();
    assert!(seen >= 2);
    assert_eq!(outside(&cache), Vec::<String>::new());
    let hooks = std::fs::read_dir(at.directory().join("hooks")).into_iter().flatten().flatten();
    assert_eq!(hooks.filter(|of| of.file_name() != "README.sample").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn submodules_that_lead_to_each_other_are_not_followed() {
    let forge = Forge::new();
    let serving = Serving::new(&forge);
    let server = serving.clone().http().await;
    let mut newest = String::new();
    for (own, other) in [("a", "b"), ("b", "a")] {
        let path = forge.repository(own);
        let repository = Repository::open_bare(&path).unwrap();
        let text = format!(
            "[submodule \"x\"]\n\tpath = sub\n\turl = {server}/{other}.git\n[submodule \"y\"]\n\tpath = own\n\turl = ./\n"
        );
        let modules = repository.blob(text.as_bytes()).unwrap();
        let here = repository.revparse_single("main").unwrap().id();
        let there = Oid::from_str(&git(&path, &["rev-parse", "main"])).unwrap();
        let root = tree(
            &repository,
            &[("100644", b".gitmodules", modules), ("160000", b"own", here), ("160000", b"sub", there)],
        );
        let id = commit(&path, root);
        if own == "a" {
            newest = id;
        }
    }
    let cache = Cache::new(|_| {}).await;
    let at = cache.checkout(&format!("{server}/a.git"), "main").await.unwrap();
    assert_eq!(at.commit.to_string(), newest);
    let requests = serving.requests();
    at.read(|repository, commit| {
        let files = repository.snapshot(commit).unwrap();
        for path in ["sub/x.yaml", "own/own/own/x.yaml"] {
            assert!(matches!(files.read(path, 100), Err(GitError::Submodule { .. })), "{path}");
        }
        assert!(manifests(&files, "", true).unwrap().manifests.is_empty());
        let paths = vec!["sub".to_owned(), "own".to_owned()];
        let changes = repository
            .changes(&[WalkRequest { to: commit, since: None, paths: paths.into() }], WalkLimits::default());
        assert_eq!(changes.unwrap()[0].newest.as_ref().unwrap().paths, ["own", "sub"]);
    })
    .await
    .unwrap();
    assert_eq!(serving.requests(), requests, "nobody is asked for them");
    let clones = std::fs::read_dir(cache.folder.path().join("cache")).unwrap().flatten();
    assert_eq!(clones.filter(|of| of.path().extension().is_some_and(|end| end == "git")).count(), 1);
    assert_eq!(outside(&cache), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_levels_are_read_within_bounds() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let repository = Repository::open_bare(&path).unwrap();
    let mut at = tree(&repository, &[("100644", b"x.yaml", repository.blob(b"a: 1\n").unwrap())]);
    for _ in 0..10_000 {
        at = tree(&repository, &[("40000", b"d", at)]);
    }
    let id = commit(&path, at);
    let cache = Cache::new(|_| {}).await;
    let at = fetched(&forge, &cache).await;
    assert_eq!(at.commit.to_string(), id);
    at.read(|repository, commit| {
        let files = repository.snapshot(commit).unwrap();
        let deepest = format!("{}x.yaml", "d/".repeat(10_000));
        assert_eq!(files.text(&deepest, 100).unwrap().as_deref(), Some("a: 1\n"));
        assert!(manifests(&files, "", true).unwrap().manifests.is_empty());
        for paths in [vec![String::new()], vec![deepest], vec!["d".to_owned(), "e".to_owned()]] {
            let asked = WalkRequest { to: commit, since: None, paths: paths.into() };
            // It is told or refused; what matters is that the process lives.
            let _ = repository.changes(&[asked], WalkLimits::default());
        }
    })
    .await
    .unwrap();
    assert_eq!(outside(&cache), Vec::<String>::new());
}

/// Answers as the server does, and names more tags than it has.
async fn more_tags(State((serving, head)): State<(Serving, String)>, request: Request) -> Response {
    let (parts, body) = backend(State(serving), request).await.into_parts();
    let whole = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let Some(list) = whole.strip_suffix(b"0000").filter(|list| list.windows(5).any(|part| part == b" HEAD"))
    else {
        return Response::from_parts(parts, Body::from(whole));
    };
    let mut list = list.to_vec();
    for name in
        ["refs/tags/v1", "refs/tags/../../../../escaped", "refs/tags/x.lock", "refs/tags/a\x07b", "nothing"]
    {
        list.extend(format!("{:04x}{head} {name}\n", head.len() + name.len() + 6).into_bytes());
    }
    list.extend(b"0000");
    Response::from_parts(parts, Body::from(list))
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_branches_and_tags_that_are_none_are_passed_over() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let head = git(&path, &["rev-parse", "main"]);
    let state = (Serving::new(&forge), head.clone());
    let server = serve(axum::Router::new().fallback(more_tags).with_state(state)).await;
    let cache = Cache::new(|_| {}).await;
    let at = cache.checkout(&format!("{server}/a.git"), "main").await.unwrap();
    assert_eq!(at.commit.to_string(), head);
    let tags = at.read(|repository, commit| repository.tagged(commit).unwrap().tags).await.unwrap();
    assert_eq!(tags, ["v1"]);
    assert_eq!(outside(&cache), Vec::<String>::new());
}
