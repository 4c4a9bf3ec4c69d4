//! The directory of clones: one fetch at a time, bounds, and processes that die.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use futures::StreamExt as _;
use stages_git::remote::Checkouts;
use tokio::sync::mpsc;

use crate::support::{Cache, Forge, Serving, address, backend, commit, config, git, noise, serve, text};

#[tokio::test(flavor = "multi_thread")]
async fn many_who_ask_for_one_revision_cause_one_fetch() {
    let forge = Forge::new();
    forge.repository("a");
    let serving = Serving::new(&forge);
    let url = format!("{}/a.git", serving.http().await);
    let cache = Cache::new(|config| config.fresh = Duration::from_secs(3_600)).await;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (checkouts, url) = (cache.checkouts.clone(), address(&url));
        asking.spawn(async move { checkouts.checkout(&url, "main").await.unwrap().commit });
    }
    let found = asking.join_all().await;
    assert!(found.iter().all(|of| *of == found[0]));
    // The greeting, the list of branches, the pack.
    assert_eq!(serving.requests(), 3);
    cache.checkout(&url, "main").await.unwrap();
    assert_eq!(serving.requests(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_failed_is_left_alone_for_a_while_unless_access_changes() {
    let forge = Forge::new();
    let serving = Serving { authorization: Some("Bearer right".to_owned()), ..Serving::new(&forge) };
    forge.repository("a");
    let server = serving.http().await;
    let url = format!("{server}/a.git");
    let cache = Cache::new(|config| config.pause = Duration::from_secs(3_600)).await;
    let first = cache.refusal(&url, "main").await;
    assert_eq!(cache.refusal(&url, "other").await, first);
    assert_eq!(serving.requests(), 1);
    cache.give(stages_git::remote::Credential {
        url: server,
        is_prefix: true,
        bearer: Some("right".to_owned().into()),
        ..Default::default()
    });
    cache.checkout(&url, "main").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_is_not_there_does_not_stop_others() {
    let forge = Forge::new();
    forge.repository("a");
    let url = format!("{}/a.git", Serving::new(&forge).http().await);
    let cache = Cache::new(|config| config.pause = Duration::from_secs(3_600)).await;
    assert_eq!(cache.refusal(&url, "none").await, format!("{url} has no branch, tag or commit none"));
    cache.checkout(&url, "main").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_is_too_large_stops_no_other_and_is_not_sent_again_for_a_while() {
    let forge = Forge::new();
    commit(&forge.repository("a"), "large", "b.yaml", &noise(1 << 20));
    let serving = Serving::new(&forge);
    let url = format!("{}/a.git", serving.http().await);
    let change = |config: &mut stages_git::remote::Config| {
        config.object_bytes = 100 << 10;
        config.pause = Duration::from_secs(3_600);
    };
    let cache = Cache::new(change).await;
    let refused = cache.refusal(&url, "large").await;
    assert!(refused.contains("holds an object of"), "{refused}");
    cache.checkout(&url, "main").await.unwrap();
    let asked = serving.requests();
    assert_eq!(cache.refusal(&url, "large").await, refused);
    assert_eq!(serving.requests(), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clone_that_was_used_longest_ago_goes_and_one_in_use_stays() {
    let forge = Forge::new();
    for name in ["a", "b", "c"] {
        forge.repository(name);
    }
    let server = Serving::new(&forge).http().await;
    let url = |name: &str| format!("{server}/{name}.git");
    // Nothing fits, so that whatever is not in use goes.
    let cache = Cache::new(|config| config.bytes = 1).await;
    let a = cache.checkout(&url("a"), "main").await.unwrap();
    let b = cache.checkout(&url("b"), "main").await.unwrap();
    let gone = b.directory().to_owned();
    drop(b);
    let c = cache.checkout(&url("c"), "main").await.unwrap();
    assert!(!gone.exists());
    assert!(a.directory().exists() && c.directory().exists());
    // It is fetched again when it is asked for.
    cache.checkout(&url("b"), "main").await.unwrap();

    let cache = Cache::new(|config| config.bytes = u64::MAX).await;
    for name in ["a", "b", "c"] {
        cache.checkout(&url(name), "main").await.unwrap();
    }
    let old = cache.checkout(&url("b"), "main").await.unwrap().directory().to_owned();
    for name in ["a", "c"] {
        cache.checkout(&url(name), "main").await.unwrap();
    }
    let size = std::process::Command::new("du").args(["-sb", "--apparent-size"]).arg(&old).output().unwrap();
    let size: u64 = String::from_utf8(size.stdout).unwrap().split('\t').next().unwrap().parse().unwrap();
    let folder = cache.folder;
    drop(cache.checkouts);
    // Two of the three fit.
    let bounded = stages_git::remote::Config { bytes: size * 2 + size / 2, ..config(folder.path()) };
    let _checkouts = Checkouts::new(bounded).await.unwrap();
    assert!(!old.exists());
    let clones = std::fs::read_dir(folder.path().join("cache")).unwrap().flatten();
    assert_eq!(clones.filter(|of| of.path().extension().is_some_and(|end| end == "git")).count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_belongs_to_one_process() {
    let cache = Cache::new(|_| {}).await;
    let error = Checkouts::new(config(cache.folder.path())).await.err().unwrap().to_string();
    let directory = cache.folder.path().join("cache");
    assert_eq!(
        error,
        format!("the cache directory {} is used by another process: give each its own", directory.display())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_that_was_damaged_is_fetched_anew() {
    let forge = Forge::new();
    forge.repository("a");
    let url = format!("{}/a.git", Serving::new(&forge).http().await);
    let cache = Cache::new(|_| {}).await;
    let at = cache.checkout(&url, "main").await.unwrap();
    std::fs::remove_dir_all(at.directory().join("objects")).unwrap();
    std::fs::write(at.directory().join("HEAD"), "nonsense").unwrap();
    let again = cache.checkout(&url, "main").await.unwrap();
    assert_eq!(again.commit, at.commit);
    git(again.directory(), &["fsck", "--strict"]);
}

/// Makes a clone look as if so many more fetches had added a pack to it.
fn add_packs(clone: &std::path::Path, more: usize) {
    for n in 0..more {
        std::fs::write(clone.join(format!("objects/pack/pack-{n}.pack")), "").unwrap();
    }
}

fn packs(clone: &std::path::Path) -> usize {
    let all = std::fs::read_dir(clone.join("objects/pack")).unwrap().flatten();
    all.filter(|of| of.path().extension().is_some_and(|end| end == "pack")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_of_many_packs_that_cannot_be_put_together_is_made_anew_but_never_while_it_is_read() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let url = format!("{}/a.git", Serving::new(&forge).http().await);
    let cache = Cache::new(|config| config.fresh = Duration::from_secs(3_600)).await;
    let first = cache.checkout(&url, "main").await.unwrap();
    add_packs(first.directory(), 127);
    // The fetch that adds one too many is not undone by it.
    commit(&path, "second", "b.yaml", "b: 1\n");
    let second = cache.checkout(&url, "second").await.unwrap();
    assert_eq!(packs(first.directory()), 129);
    drop(second);
    let third = commit(&path, "third", "c.yaml", "c: 1\n");
    let third = cache.checkout(&url, &third).await.unwrap();
    assert_eq!(packs(first.directory()), 130);
    assert_eq!(text(&first, "a.yaml").await.as_deref(), Some("a: 1\n"));
    drop(third);
    let clone = first.directory().to_owned();
    let main = first.commit;
    drop(first);
    commit(&path, "fourth", "d.yaml", "d: 1\n");
    let fourth = cache.checkout(&url, "fourth").await.unwrap();
    assert_eq!((fourth.directory(), packs(&clone)), (clone.as_path(), 1));
    assert_eq!(text(&fourth, "d.yaml").await.as_deref(), Some("d: 1\n"));
    // What a branch was seen at before is fetched again.
    commit(&path, "fifth", "e.yaml", "e: 1\n");
    let fifth = cache.checkout(&url, "fifth").await.unwrap();
    let again = cache.checkout(&url, "main").await.unwrap();
    assert_eq!(again.commit, main);
    assert_eq!(text(&again, "a.yaml").await.as_deref(), Some("a: 1\n"));
    drop(fifth);
    git(&clone, &["fsck", "--strict"]);
}

/// Adds so many packs to a clone, each of one object.
fn add_packs_of_objects(clone: &std::path::Path, more: usize) -> Vec<git2::Oid> {
    let repository = git2::Repository::open_bare(clone).unwrap();
    let add = |n: usize| {
        let id = repository.blob(format!("{n}: {}", "x".repeat(n)).as_bytes()).unwrap();
        let mut pack = repository.packbuilder().unwrap();
        pack.insert_object(id, None).unwrap();
        pack.write(&clone.join("objects/pack"), 0o644).unwrap();
        let text = id.to_string();
        let (directory, name) = text.split_at(2);
        std::fs::remove_file(clone.join("objects").join(directory).join(name)).unwrap();
        id
    };
    (0..more).map(add).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_small_packs_of_a_clone_become_one_once_nobody_reads_it_and_nothing_is_asked_for_again() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let serving = Serving::new(&forge);
    let url = format!("{}/a.git", serving.http().await);
    let cache = Cache::new(|_| {}).await;
    let first = cache.checkout(&url, "main").await.unwrap();
    let (clone, main) = (first.directory().to_owned(), first.commit.to_string());
    let added = add_packs_of_objects(&clone, 128);
    commit(&path, "second", "b.yaml", "b: 1\n");
    drop(cache.checkout(&url, "second").await.unwrap());
    assert_eq!(packs(&clone), 130, "they stay as they are while it is read");
    drop(first);
    std::fs::write(clone.join("stays"), "").unwrap();
    commit(&path, "third", "c.yaml", "c: 1\n");
    let third = cache.checkout(&url, "third").await.unwrap();
    // The sixteen largest, the one that was made of all others, and that of the fetch.
    assert_eq!(packs(&clone), 18);
    assert!(clone.join("stays").exists(), "it was not made anew");
    let repository = git2::Repository::open_bare(&clone).unwrap();
    assert!(added.iter().all(|id| repository.find_blob(*id).is_ok()));
    assert_eq!(text(&third, "c.yaml").await.as_deref(), Some("c: 1\n"));
    let requests = serving.requests();
    let again = cache.checkout(&url, &main).await.unwrap();
    assert_eq!(text(&again, "a.yaml").await.as_deref(), Some("a: 1\n"));
    assert_eq!(serving.requests(), requests, "it is still here");
    git(&clone, &["fsck", "--strict"]);
}

/// Fetches again and again until it is killed; it is started by the test below, as a process of its own.
#[tokio::test(flavor = "multi_thread")]
async fn fetches_until_it_is_killed() {
    let (Ok(folder), Ok(url)) = (std::env::var("GIT_TEST_FOLDER"), std::env::var("GIT_TEST_URL")) else {
        return;
    };
    let checkouts = Checkouts::new(config(std::path::Path::new(&folder))).await.unwrap();
    loop {
        let _ = checkouts.checkout(&address(&url), "main").await;
    }
}

/// Answers as the server does, but sends only so many bytes of a pack, says that it did, and hangs.
async fn cut(
    State((serving, at, said)): State<(Serving, Arc<AtomicUsize>, mpsc::UnboundedSender<()>)>,
    request: Request,
) -> Response {
    let is_pack = request.method() == axum::http::Method::POST;
    let (parts, body) = backend(State(serving), request).await.into_parts();
    let whole = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let at = at.load(Ordering::SeqCst);
    if !is_pack || at == 0 || whole.len() < 100_000 {
        return Response::from_parts(parts, Body::from(whole));
    }
    let first = futures::stream::iter([Ok::<_, std::io::Error>(whole.slice(..at.min(whole.len() - 1)))]);
    let _ = said.send(());
    Response::from_parts(parts, Body::from_stream(first.chain(futures::stream::pending())))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_in_the_middle_of_fetches_leaves_a_cache_that_works() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let noise = noise(1_000_000);
    commit(&path, "main", "big.txt", &noise);
    let at = Arc::new(AtomicUsize::new(0));
    let (said, mut hears) = mpsc::unbounded_channel();
    let state = (Serving::new(&forge), at.clone(), said);
    let url = format!("{}/a.git", serve(Router::new().fallback(cut).with_state(state)).await);
    let folder = tempfile::tempdir().unwrap();
    for (round, bytes) in
        [1, 20, 1_000, 60_000, 65_521, 200_000, 400_000, usize::MAX].into_iter().cycle().take(10).enumerate()
    {
        at.store(bytes, Ordering::SeqCst);
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cache::fetches_until_it_is_killed"])
            .env("GIT_TEST_FOLDER", folder.path())
            .env("GIT_TEST_URL", &url)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        hears.recv().await.unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        if round % 5 != 4 {
            continue;
        }
        // What is there by now is whole, and goes on.
        at.store(0, Ordering::SeqCst);
        let checkouts = Checkouts::new(config(folder.path())).await.unwrap();
        let found = checkouts.checkout(&address(&url), "main").await.unwrap();
        git(found.directory(), &["fsck", "--strict"]);
        let packs = std::fs::read_dir(found.directory().join("objects/pack")).unwrap().flatten();
        let packs: Vec<String> = packs.map(|of| of.file_name().to_string_lossy().into_owned()).collect();
        assert!(packs.iter().all(|name| name.starts_with("pack-")), "{packs:?}");
        drop(found);
        // The next ones add to what is there.
        let other: String = noise.chars().rev().skip(round).collect();
        commit(&path, "main", "big.txt", &other);
    }
}
