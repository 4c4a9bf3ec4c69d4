//! Makes the metrics of a stage, whose names begin alike.

use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Result};

/// What the names of a stage's metrics begin with, such as `gitops_runtime_git`. Its metrics show nowhere before a registry has
/// them.
#[derive(Debug, Clone, Copy)]
pub struct Family(pub &'static str);

impl Family {
    fn opts(self, name: &str, help: &str) -> Opts {
        Opts::new(format!("{}_{name}", self.0), help)
    }

    fn seconds_opts(self, name: &str, help: &str, buckets: &[f64]) -> HistogramOpts {
        HistogramOpts::from(self.opts(name, help)).buckets(buckets.to_vec())
    }

    /// Counts.
    #[must_use]
    pub fn counter(self, name: &str, help: &str) -> IntCounter {
        made(IntCounter::with_opts(self.opts(name, help)))
    }

    /// Counts by labels.
    #[must_use]
    pub fn counters(self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        made(IntCounterVec::new(self.opts(name, help), labels))
    }

    /// Goes up and down.
    #[must_use]
    pub fn gauge(self, name: &str, help: &str) -> IntGauge {
        made(IntGauge::with_opts(self.opts(name, help)))
    }

    /// How many seconds things take, up to each of `buckets`.
    #[must_use]
    pub fn histogram(self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        made(Histogram::with_opts(self.seconds_opts(name, help, buckets)))
    }

    /// The same by labels.
    #[must_use]
    pub fn histograms(self, name: &str, help: &str, buckets: &[f64], labels: &[&str]) -> HistogramVec {
        made(HistogramVec::new(self.seconds_opts(name, help, buckets), labels))
    }
}

#[expect(
    clippy::expect_used,
    reason = "names, labels and buckets are constants, and every test of a stage makes them all"
)]
fn made<C>(family: Result<C>) -> C {
    family.expect("a metric's name, labels and buckets are well formed")
}
