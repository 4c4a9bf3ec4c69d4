//! What fetches, walks, commits and the directory of clones are counted by. Labels are of closed sets alone: neither a repository nor a
//! host nor a revision is ever one.

use std::sync::Arc;
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, Registry};
use stages_client::{Family, GaugeGuard};

use crate::remote::{COMMIT_OUTCOMES, FetchFailure};

/// From a server nearby that has nothing new to a large repository over a slow network.
const FETCH_SECONDS: [f64; 7] = [0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0];
/// From a history of some hundred commits to one of millions.
const WALK_SECONDS: [f64; 7] = [0.01, 0.05, 0.25, 1.0, 2.5, 10.0, 60.0];

/// Counts; cloning shares. Nothing shows before it is [registered](GitSeries::register).
#[derive(Debug, Clone)]
pub struct GitSeries {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    fetched: Histogram,
    failed: Histogram,
    fetch_seconds: HistogramVec,
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

/// What their names begin with.
const FAMILY: Family = Family("gitops_runtime_git");

/// Bytes as a gauge takes them.
fn gauged(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Default for GitSeries {
    fn default() -> Self {
        let fetch_seconds =
            FAMILY.histograms("fetch_seconds", "How long fetches take.", &FETCH_SECONDS, &["outcome"]);
        let failures = FAMILY.counters("fetch_failures_total", "Fetches that failed, by why.", &["reason"]);
        // Nothing shows only once it has happened.
        for why in FetchFailure::ALL {
            failures.with_label_values(&[why.as_str()]);
        }
        let commits =
            FAMILY.counters("commits_total", "Commits of people, by what became of them.", &["outcome"]);
        for outcome in COMMIT_OUTCOMES {
            commits.with_label_values(&[outcome]);
        }
        let walk_seconds =
            FAMILY.histogram("walk_seconds", "How long walks over histories take.", &WALK_SECONDS);
        let inner = Inner {
            fetched: fetch_seconds.with_label_values(&["fetched"]),
            failed: fetch_seconds.with_label_values(&["failed"]),
            fetch_seconds,
            failures,
            bytes: FAMILY.counter("fetched_bytes_total", "Bytes of packs that were received."),
            waiting: FAMILY.gauge("fetches_waiting", "Fetches that wait for others to end."),
            cache_bytes: FAMILY.gauge("cache_bytes", "Bytes of all clones."),
            cache_limit: FAMILY.gauge("cache_limit_bytes", "Bytes that all clones may have."),
            clones: FAMILY.gauge("cache_clones", "Clones that are kept."),
            evictions: FAMILY.counter("cache_evictions_total", "Clones that were removed to make room."),
            walk_seconds,
            walk_commits: FAMILY.counter("walk_commits_total", "Commits that were walked over."),
            walk_failures: FAMILY.counter("walk_failures_total", "Walks that failed."),
            commits,
            commit_retries: FAMILY
                .counter("commit_retries_total", "Commits that were pushed, or made anew, once more."),
        };
        Self { inner: Arc::new(inner) }
    }
}

impl GitSeries {
    /// Shows them, to be done once.
    ///
    /// # Errors
    /// The registry has such metrics already.
    pub fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        let inner = &*self.inner;
        let all: [Box<dyn Collector>; 13] = [
            Box::new(inner.fetch_seconds.clone()),
            Box::new(inner.failures.clone()),
            Box::new(inner.bytes.clone()),
            Box::new(inner.waiting.clone()),
            Box::new(inner.cache_bytes.clone()),
            Box::new(inner.cache_limit.clone()),
            Box::new(inner.clones.clone()),
            Box::new(inner.evictions.clone()),
            Box::new(inner.walk_seconds.clone()),
            Box::new(inner.walk_commits.clone()),
            Box::new(inner.walk_failures.clone()),
            Box::new(inner.commits.clone()),
            Box::new(inner.commit_retries.clone()),
        ];
        all.into_iter().try_for_each(|family| registry.register(family))
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

    /// What the directory of clones holds by now, and how many clones had to go.
    pub(crate) fn cache(&self, bytes: u64, limit: u64, clones: usize, evicted: usize) {
        self.inner.cache_bytes.set(gauged(bytes));
        self.inner.cache_limit.set(gauged(limit));
        self.inner.clones.set(gauged(clones as u64));
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
