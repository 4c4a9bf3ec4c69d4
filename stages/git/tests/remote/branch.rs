//! Commits to branches that were not there, and first commits, pushed to a real server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{Request, State};
use axum::response::Response;
use futures::future::join_all;
use stages_git::{NewCommit, NewFile};

use crate::commit::{Meddling, Scene, change, deleted, meddle, serving, who, written};
use crate::support::{Cache, Forge, Serving, address, backend, commit, git, serve};

/// A commit to a new branch that begins at another.
fn branched(branch: &str, base: &str, files: Vec<NewFile>) -> NewCommit {
    NewCommit { branch: branch.to_owned(), base: Some(base.to_owned()), ..change(files) }
}

fn at(repository: &Path, revision: &str) -> String {
    git(repository, &["rev-parse", revision])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_branch_begins_at_the_branch_tag_or_commit_that_is_named() {
    let scene = Scene::new().await;
    let first = at(&scene.repository, "main");
    git(&scene.repository, &["tag", "v1", "main"]);
    commit(&scene.repository, "main", "b.yaml", "b: 1\n");
    let second = at(&scene.repository, "main");
    for (branch, base, begins) in [
        ("of-branch", "main", &second),
        ("of/a/tag", "v1", &first),
        ("of-commit", first.as_str(), &first),
        ("of-name", "refs/heads/main", &second),
    ] {
        let done =
            scene.commit("ada", branched(branch, base, vec![written("a.yaml", "a: 2\n")])).await.unwrap();
        assert_eq!(at(&scene.repository, &format!("refs/heads/{branch}")), done.id.to_string());
        assert_eq!(at(&scene.repository, &format!("refs/heads/{branch}~1")), *begins);
        assert_eq!(git(&scene.repository, &["show", &format!("{branch}:a.yaml")]), "a: 2");
    }
    assert_eq!(at(&scene.repository, "main"), second, "the branch that it begins at stays");
    let more = NewCommit { branch: "of/a/tag".to_owned(), ..change(vec![written("c", "1")]) };
    scene.commit("ada", more).await.unwrap();
    assert_eq!(git(&scene.repository, &["rev-list", "--count", "of/a/tag"]), "3");
    git(&scene.repository, &["fsck", "--strict", "--full"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_cannot_be_made_is_refused_and_nothing_changes() {
    let scene = Scene::new().await;
    git(&scene.repository, &["branch", "feature", "main"]);
    let before = git(&scene.repository, &["for-each-ref"]);
    let new = |branch: &str, base: &str| branched(branch, base, vec![written("a.yaml", "a: 2\n")]);
    let host = address(&scene.url).host();
    for (name, new, said) in [
        (
            "ada",
            new("feature", "main"),
            "there is a branch feature already: commit to it as it is, or name another one".to_owned(),
        ),
        ("ada", new("fix", "nowhere"), format!("{} has no branch, tag or commit nowhere", scene.url)),
        ("ada", new("a b", "main"), "a b cannot be the name of a branch".to_owned()),
        ("ada", new("-x", "main"), "-x cannot be the name of a branch".to_owned()),
        ("ada", new("a..b", "main"), "a..b cannot be the name of a branch".to_owned()),
        ("ada", new("", "main"), " cannot be the name of a branch".to_owned()),
        (
            "lin",
            new("fix", "main"),
            format!(
                "{} takes no commits with the credentials of lin's token: they are wrong, expired, or may only read it",
                scene.url
            ),
        ),
        (
            "ada",
            branched("fix", "main", vec![written("a.yaml", "a: 1\n")]),
            "the files are so already: there is nothing to commit".to_owned(),
        ),
    ] {
        assert_eq!(scene.commit(name, new).await.unwrap_err().to_string(), said);
        assert_eq!(git(&scene.repository, &["for-each-ref"]), before);
    }
    let below = scene.commit("ada", new("feature/x", "main")).await.unwrap_err().to_string();
    assert!(below.starts_with(&format!("{host} does not take the commit: ")), "{below}");
    assert_eq!(git(&scene.repository, &["for-each-ref"]), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_who_make_one_branch_at_once_one_does_and_the_others_are_told() {
    let scene = Scene::new().await;
    let cache = [Cache::new(|_| {}).await, Cache::new(|_| {}).await];
    let url = address(&scene.url);
    let all = (0..20).map(|number| {
        let new = branched("feature", "main", vec![written("a.yaml", &format!("a: {}\n", number + 2))]);
        let (url, cache) = (&url, &cache[number % 2]);
        async move { cache.checkouts.commit_as(url, &who(&format!("person{number}")), new).await }
    });
    let (done, refused): (Vec<_>, Vec<_>) = join_all(all).await.into_iter().partition(Result::is_ok);
    assert_eq!((done.len(), refused.len()), (1, 19));
    assert_eq!(at(&scene.repository, "feature"), done[0].as_ref().unwrap().id.to_string());
    assert_eq!(git(&scene.repository, &["rev-list", "--count", "feature"]), "2");
    for refused in refused {
        assert_eq!(
            refused.unwrap_err().to_string(),
            "there is a branch feature already: commit to it as it is, or name another one"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_repository_takes_its_first_commit_and_those_that_follow() {
    let scene = Scene::empty().await;
    let gone = scene.commit("ada", change(vec![deleted("a.yaml")])).await.unwrap_err();
    assert_eq!(gone.to_string(), "a.yaml is not there to be deleted");
    assert_eq!(git(&scene.repository, &["for-each-ref"]), "");
    let files = vec![written("a.yaml", "a: 1\n"), written("deep/b.yaml", "b: 1\n")];
    let done = scene.commit("ada", change(files)).await.unwrap();
    assert_eq!(at(&scene.repository, "main"), done.id.to_string());
    assert_eq!(git(&scene.repository, &["rev-list", "--count", "main"]), "1");
    assert_eq!(git(&scene.repository, &["ls-tree", "-r", "--name-only", "main"]), "a.yaml\ndeep/b.yaml");
    scene.commit("ada", change(vec![written("a.yaml", "a: 2\n")])).await.unwrap();
    assert_eq!(git(&scene.repository, &["show", "main:a.yaml"]), "a: 2");
    git(&scene.repository, &["fsck", "--strict", "--full"]);
}

/// A server at which somebody makes the first commit right before it is looked at for the nth time.
#[derive(Clone)]
struct Overtaking {
    serving: Serving,
    repository: PathBuf,
    before: Arc<AtomicUsize>,
}

async fn overtake(State(overtaking): State<Overtaking>, request: Request) -> Response {
    let is_look = request.uri().path().ends_with("/info/refs");
    if is_look && overtaking.before.fetch_sub(1, Ordering::SeqCst) == 1 {
        let repository = overtaking.repository.clone();
        let made = move || commit(&repository, "main", "a.yaml", "a: 1\n");
        tokio::task::spawn_blocking(made).await.unwrap();
    }
    backend(State(overtaking.serving), request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_commit_that_another_one_overtakes_at_any_moment_follows_it() {
    // It looks for the branch and then whether there is any, both twice, and last when it pushes.
    for before in 1..=5 {
        let scene = Scene::empty().await;
        let (repository, count) = (scene.repository.clone(), Arc::new(AtomicUsize::new(before)));
        let overtaking = Overtaking { serving: scene.serving(), repository, before: count };
        let server = serve(axum::Router::new().fallback(overtake).with_state(overtaking)).await;
        let url = address(&format!("{server}/team/mono.git"));
        let cache = Cache::new(|_| {}).await;
        let new = change(vec![written("b.yaml", "b: 1\n")]);
        let done = cache.checkouts.commit_as(&url, &who("ada"), new).await;
        let done = done.unwrap_or_else(|error| panic!("before look {before}: {error}"));
        assert_eq!(at(&scene.repository, "main"), done.id.to_string(), "before look {before}");
        assert_eq!(git(&scene.repository, &["ls-tree", "--name-only", "main"]), "a.yaml\nb.yaml");
        assert_eq!(git(&scene.repository, &["rev-list", "--count", "main"]), "2");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_first_commits_at_once_none_is_lost() {
    let scene = Scene::empty().await;
    let cache = [Cache::new(|_| {}).await, Cache::new(|_| {}).await];
    let url = address(&scene.url);
    let all = (0..20).map(|number| {
        let new = change(vec![written(&format!("person{number}"), "1\n")]);
        let (url, cache) = (&url, &cache[number % 2]);
        async move { cache.checkouts.commit_as(url, &who(&format!("person{number}")), new).await }
    });
    for done in join_all(all).await {
        done.unwrap();
    }
    assert_eq!(git(&scene.repository, &["rev-list", "--count", "main"]), "20");
    assert_eq!(git(&scene.repository, &["ls-tree", "--name-only", "main"]).lines().count(), 20);
    git(&scene.repository, &["fsck", "--strict", "--full"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_of_a_new_branch_that_breaks_off_is_one_commit_whether_or_not_it_arrived() {
    for passes in [false, true] {
        let forge = Forge::new();
        let repository = forge.repository("a");
        let broken = Arc::new(AtomicUsize::new(1));
        let meddling = Meddling { serving: serving(&forge), broken: broken.clone(), passes };
        let server = serve(axum::Router::new().fallback(meddle).with_state(meddling)).await;
        let cache = Cache::new(|_| {}).await;
        let url = address(&format!("{server}/a.git"));
        let new = branched("feature", "main", vec![written("b", "1")]);
        let done = cache.checkouts.commit_as(&url, &who("ada"), new).await.unwrap();
        assert_eq!(at(&repository, "feature"), done.id.to_string());
        assert_eq!(git(&repository, &["rev-list", "--count", "feature"]), "2", "passes: {passes}");
        assert_eq!(broken.load(Ordering::SeqCst), 0);
    }
}
