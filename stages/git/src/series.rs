//! What fetches, walks, commits and the directory of clones are counted by. Labels are of closed sets alone: neither a repository nor a
//! host nor a revision is ever one.

use std::sync::Arc;
use std::time::Duration;

use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge, Registry};
use stages_client::{Families, GaugeGuard};

use crate::remote::{COMMIT_OUTCOMES, FetchFailure};

/// From a server nearby that has nothing new to a large repository over a slow network.
const FETCH_SECONDS: [f64; 7] = [0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0];
/// From a history of some hundred commits to one of millions.
const WALK_SECONDS: [f64; 7] = [0.01, 0.05, 0.25, 1.0, 2.5, 10.0, 60.0];

/// Counts; cloning shares.
#[derive(Debug, Clone)]
pub struct GitSeries {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    fetched: Histogram,
    failed: Histogram,
    failures: IntCounterVec,
    bytes: IntCounter,
    waiting: IntGauge,
    cache_bytes: IntGauge,
    cache_limit: IntGauge,
    clones: IntGauge,
    evictions: IntCounter,
    walk_seconds: Histogram,
    walk_commits: IntCounter,
    walk_failures: IntCounter,
    commits: IntCounterVec,
    commit_retries: IntCounter,
}

/// What a directory of clones holds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
    /// Bytes that it may hold.
    pub(crate) limit: u64,
    pub(crate) clones: u64,
}

/// A number as a gauge takes it.
fn gauged(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Default for GitSeries {
    /// Such as nobody is shown.
    fn default() -> Self {
        Self::new(&Registry::new())
    }
}

impl GitSeries {
    /// Counts that a registry shows, to be made once a registry.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        let make = Families::new(registry, "gitops_runtime_git_");
        let fetch_seconds =
            make.histograms("fetch_seconds", "How long fetches take.", ["outcome"], &FETCH_SECONDS);
        let failures = make.counters("fetch_failures_total", "Fetches that failed, by why.", ["reason"]);
        // Nothing shows only once it has happened.
        for why in FetchFailure::ALL {
            failures.with_label_values(&[why.as_str()]);
        }
        let commits =
            make.counters("commits_total", "Commits of people, by what became of them.", ["outcome"]);
        for outcome in COMMIT_OUTCOMES {
            commits.with_label_values(&[outcome]);
        }
        let walk_seconds =
            make.histogram("walk_seconds", "How long walks over histories take.", &WALK_SECONDS);
        let inner = Inner {
            fetched: fetch_seconds.with_label_values(&["fetched"]),
            failed: fetch_seconds.with_label_values(&["failed"]),
            failures,
            bytes: make.counter("fetched_bytes_total", "Bytes of packs that were received."),
            waiting: make.gauge("fetches_waiting", "Fetches that wait for others to end."),
            cache_bytes: make.gauge("cache_bytes", "Bytes of all clones."),
            cache_limit: make.gauge("cache_limit_bytes", "Bytes that all clones may have."),
            clones: make.gauge("cache_clones", "Clones that are kept."),
            evictions: make.counter("cache_evictions_total", "Clones that were removed to make room."),
            walk_seconds,
            walk_commits: make.counter("walk_commits_total", "Commits that were walked over."),
            walk_failures: make.counter("walk_failures_total", "Walks that failed."),
            commits,
            commit_retries: make
                .counter("commit_retries_total", "Commits that were pushed, or made anew, once more."),
        };
        Self { inner: Arc::new(inner) }
    }

    /// A fetch ended.
    pub(crate) fn fetch(&self, failed: Option<FetchFailure>, took: Duration) {
        match failed {
            None => self.inner.fetched.observe(took.as_secs_f64()),
            Some(why) => {
                self.inner.failed.observe(took.as_secs_f64());
                self.inner.failures.with_label_values(&[why.as_str()]).inc();
            }
        }
    }

    /// A part of a pack came.
    pub(crate) fn received(&self, bytes: u64) {
        self.inner.bytes.inc_by(bytes);
    }

    /// A fetch waits, until what this gives is dropped.
    pub(crate) fn waits(&self) -> GaugeGuard {
        GaugeGuard::new(&self.inner.waiting)
    }

    /// What a directory of clones holds by now, what it was said to hold `before`, and how many clones had to go. A process
    /// that has several shows their sum.
    pub(crate) fn cache(&self, now: Held, before: Held, evicted: usize) {
        self.inner.cache_bytes.add(gauged(now.bytes) - gauged(before.bytes));
        self.inner.cache_limit.add(gauged(now.limit) - gauged(before.limit));
        self.inner.clones.add(gauged(now.clones) - gauged(before.clones));
        self.inner.evictions.inc_by(evicted as u64);
    }

    /// A commit was made, or not: one of [`COMMIT_OUTCOMES`].
    pub(crate) fn commit(&self, outcome: &'static str) {
        self.inner.commits.with_label_values(&[outcome]).inc();
    }

    /// A commit is tried once more.
    pub(crate) fn commit_again(&self) {
        self.inner.commit_retries.inc();
    }

    /// A walk ended, over so many commits; `None` where it failed.
    pub(crate) fn walk(&self, commits: Option<usize>, took: Duration) {
        self.inner.walk_seconds.observe(took.as_secs_f64());
        match commits {
            Some(commits) => self.inner.walk_commits.inc_by(commits as u64),
            None => self.inner.walk_failures.inc(),
        }
    }
}
