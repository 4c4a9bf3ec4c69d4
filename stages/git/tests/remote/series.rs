//! What fetches, walks and the directory of clones are counted by.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use prometheus::{Registry, TextEncoder};
use stages_git::walk::{WalkLimits, WalkRequest};
use stages_git::{Checkout, GitSeries, NewFile};

use crate::commit::{Meddling, change, deleted, meddle, serving, who, written};
use crate::support::{Cache, Forge, Serving, address, commit, git, noise, serve};

/// What is shown, and a cache that counts so.
async fn counted(bytes: u64) -> (Registry, Cache) {
    let registry = Registry::new();
    let series = GitSeries::new(&registry);
    let cache = Cache::new(|config| {
        config.bytes = bytes;
        config.series = series;
    })
    .await;
    (registry, cache)
}

fn page(registry: &Registry) -> String {
    TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
}

/// A series, by what stands before its value.
fn value(registry: &Registry, series: &str) -> u64 {
    let page = page(registry);
    let wanted = format!("gitops_runtime_git_{series} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&wanted));
    line.unwrap_or_else(|| panic!("there is no {series}:\n{page}")).parse().unwrap()
}

/// Walks over the history of a checkout.
async fn walk(of: &Checkout) {
    let walked = of.read(|repository, to| {
        let asked = WalkRequest { to, since: None, paths: vec!["a.yaml".to_owned()].into() };
        repository.changes(&[asked], WalkLimits::default()).map(|found| found.len())
    });
    assert_eq!(walked.await.unwrap().unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn fetches_walks_and_clones_are_counted_and_nobody_is_named() {
    let forge = Forge::new();
    let path = forge.repository("secret-name");
    forge.repository("other-name");
    commit(&path, "main", "a.yaml", &noise(50_000));
    let server = Serving::new(&forge).http().await;
    let url = |name: &str| format!("{server}/{name}.git");
    let (registry, cache) = counted(1).await;
    let first = page(&registry);
    assert_eq!(value(&registry, "cache_limit_bytes"), 1);
    assert_eq!(value(&registry, "fetch_seconds_count{outcome=\"fetched\"}"), 0);

    let checkout = cache.checkout(&url("secret-name"), "main").await.unwrap();
    assert_eq!(value(&registry, "fetch_seconds_count{outcome=\"fetched\"}"), 1);
    assert!(value(&registry, "fetched_bytes_total") > 30_000);
    assert!(value(&registry, "cache_bytes") > 30_000);
    assert_eq!((value(&registry, "cache_clones"), value(&registry, "cache_evictions_total")), (1, 0));

    walk(&checkout).await;
    assert_eq!((value(&registry, "walk_seconds_count"), value(&registry, "walk_commits_total")), (1, 2));
    drop(checkout);

    // The second clone takes the place of the first.
    cache.checkout(&url("other-name"), "main").await.unwrap();
    assert_eq!((value(&registry, "cache_clones"), value(&registry, "cache_evictions_total")), (1, 1));

    cache.refusal(&url("vanished"), "main").await;
    cache.refusal(&url("other-name"), "no-branch").await;
    for (reason, count) in [("no_repository", 1), ("no_revision", 1), ("unreachable", 0)] {
        assert_eq!(
            value(&registry, &format!("fetch_failures_total{{reason=\"{reason}\"}}")),
            count,
            "{reason}"
        );
    }
    assert_eq!(value(&registry, "fetch_seconds_count{outcome=\"failed\"}"), 2);
    assert_eq!((value(&registry, "fetches_waiting"), value(&registry, "walk_failures_total")), (0, 0));

    let series = |page: &str| -> Vec<String> {
        let lines = page.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    let last = page(&registry);
    assert_eq!(series(&last), series(&first), "every series is there from the start");
    assert!(series(&last).len() < 70, "{}", series(&last).len());
    assert!(!["name", "main", "127.0.0.1"].iter().any(|of| series(&last).join("\n").contains(of)), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_of_this_machine_is_counted_as_well() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let registry = Registry::new();
    let series = GitSeries::new(&registry);
    let cache = Cache::new(|config| {
        config.files = true;
        config.series = series;
    })
    .await;
    cache.checkout(&format!("file://{}", path.display()), "main").await.unwrap();
    assert!(value(&registry, "fetched_bytes_total") > 0);
    assert_eq!(value(&registry, "fetch_seconds_count{outcome=\"fetched\"}"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_directories_of_clones_in_one_process_are_shown_as_their_sum() {
    let (forge, registry) = (Forge::new(), Registry::new());
    let url = format!("file://{}", forge.repository("a").display());
    let series = GitSeries::new(&registry);
    let cache = async || {
        let counted = |config: &mut stages_git::remote::Config| {
            (config.files, config.bytes, config.series) = (true, 1 << 30, series.clone());
        };
        Cache::new(counted).await
    };
    let (first, second) = (cache().await, cache().await);
    assert_eq!(value(&registry, "cache_limit_bytes"), 2 << 30);
    first.checkout(&url, "main").await.unwrap();
    let one = value(&registry, "cache_bytes");
    assert!(one > 0);
    second.checkout(&url, "main").await.unwrap();
    assert_eq!((value(&registry, "cache_bytes"), value(&registry, "cache_clones")), (2 * one, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_counted_by_what_became_of_them() {
    let forge = Forge::new();
    let repository = forge.repository("a");
    let old = git(&repository, &["rev-parse", "main"]);
    let broken = Arc::new(AtomicUsize::new(2));
    let meddling = Meddling { serving: serving(&forge), broken, passes: false };
    let server = serve(axum::Router::new().fallback(meddle).with_state(meddling)).await;
    let (registry, cache) = counted(u64::MAX).await;
    let commits = |outcome: &str| value(&registry, &format!("commits_total{{outcome=\"{outcome}\"}}"));
    let (there, gone) = (address(&format!("{server}/a.git")), address(&format!("{server}/gone.git")));
    let of_old = |text: &str| change(vec![NewFile { revision: Some(old.clone()), ..written("b", text) }]);
    // Two pushes break off before they arrive.
    cache.checkouts.commit_as(&there, &who("ada"), of_old("1")).await.unwrap();
    assert_eq!((commits("committed"), value(&registry, "commit_retries_total")), (1, 2));
    cache.checkouts.commit_as(&there, &who("ada"), of_old("2")).await.unwrap_err();
    cache.checkouts.commit_as(&gone, &who("ada"), of_old("3")).await.unwrap_err();
    for (outcome, count) in
        [("committed", 1), ("conflict", 1), ("failed", 1), ("busy", 0), ("in_doubt", 0), ("refused", 0)]
    {
        assert_eq!(commits(outcome), count, "{outcome}");
    }
    assert_eq!(value(&registry, "commit_retries_total"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clone_of_an_empty_repository_is_counted_and_one_that_a_fetch_in_vain_left() {
    let forge = Forge::new();
    let path = forge.repository("empty");
    git(&path, &["update-ref", "-d", "refs/heads/main"]);
    forge.repository("full");
    let (of_people, of_all) = (serving(&forge).http().await, Serving::new(&forge).http().await);
    let (registry, cache) = counted(u64::MAX).await;
    let empty = address(&format!("{of_people}/empty.git"));
    let vain = cache.checkouts.commit_as(&empty, &who("ada"), change(vec![deleted("a")])).await;
    assert_eq!(vain.unwrap_err().to_string(), "a is not there to be deleted");
    assert_eq!(value(&registry, "cache_clones"), 1);
    assert!(value(&registry, "cache_bytes") > 0);
    cache.refusal(&format!("{of_all}/full.git"), "no-branch").await;
    let kept = std::fs::read_dir(cache.folder.path().join("cache")).unwrap().flatten();
    let kept = kept.filter(|of| of.path().extension().is_some_and(|end| end == "git")).count();
    assert_eq!(value(&registry, "cache_clones"), kept as u64);
}
