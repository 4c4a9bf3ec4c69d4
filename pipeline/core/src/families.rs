//! Makes families of metrics and registers them.

use prometheus::core::Collector;
use prometheus::{
    Counter, CounterVec, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGauge, IntGaugeVec, Opts, Registry,
};

/// Makes families whose names begin alike, and registers each. Names, labels and buckets are constants of the program: one that is
/// malformed, or that the registry has already, panics.
#[derive(Debug, Clone)]
pub struct Families {
    registry: Registry,
    prefix: &'static str,
}

impl Families {
    /// Adds to a registry families whose names begin so, such as `gitops_runtime_git_`.
    #[must_use]
    pub fn new(registry: &Registry, prefix: &'static str) -> Self {
        Self { registry: registry.clone(), prefix }
    }

    /// Adds to the same registry families whose names begin otherwise.
    #[must_use]
    pub fn beginning(&self, prefix: &'static str) -> Self {
        Self::new(&self.registry, prefix)
    }

    /// Counts.
    #[must_use]
    pub fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.add(IntCounter::with_opts(self.opts(name, help)))
    }

    /// Counts by labels.
    #[must_use]
    pub fn counters<const N: usize>(&self, name: &str, help: &str, labels: [&str; N]) -> IntCounterVec {
        self.add(IntCounterVec::new(self.opts(name, help), &labels))
    }

    /// Goes up and down.
    #[must_use]
    pub fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.add(IntGauge::with_opts(self.opts(name, help)))
    }

    /// Go up and down, by labels.
    #[must_use]
    pub fn gauges<const N: usize>(&self, name: &str, help: &str, labels: [&str; N]) -> IntGaugeVec {
        self.add(IntGaugeVec::new(self.opts(name, help), &labels))
    }

    /// Counts seconds, or another unit that is no whole number.
    #[must_use]
    pub fn amount(&self, name: &str, help: &str) -> Counter {
        self.add(Counter::with_opts(self.opts(name, help)))
    }

    /// Count seconds, or another unit that is no whole number, by labels.
    #[must_use]
    pub fn amounts<const N: usize>(&self, name: &str, help: &str, labels: [&str; N]) -> CounterVec {
        self.add(CounterVec::new(self.opts(name, help), &labels))
    }

    /// Goes up and down, in seconds or another unit that is no whole number.
    #[must_use]
    pub fn measure(&self, name: &str, help: &str) -> Gauge {
        self.add(Gauge::with_opts(self.opts(name, help)))
    }

    /// Go up and down, in seconds or another unit that is no whole number, by labels.
    #[must_use]
    pub fn measures<const N: usize>(&self, name: &str, help: &str, labels: [&str; N]) -> GaugeVec {
        self.add(GaugeVec::new(self.opts(name, help), &labels))
    }

    /// How large things are, up to each of `buckets`.
    #[must_use]
    pub fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        self.add(Histogram::with_opts(self.histogram_opts(name, help, buckets)))
    }

    /// How large things are, by labels.
    #[must_use]
    pub fn histograms<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        buckets: &[f64],
    ) -> HistogramVec {
        self.add(HistogramVec::new(self.histogram_opts(name, help, buckets), &labels))
    }

    fn opts(&self, name: &str, help: &str) -> Opts {
        Opts::new(format!("{}{name}", self.prefix), help)
    }

    fn histogram_opts(&self, name: &str, help: &str, buckets: &[f64]) -> HistogramOpts {
        HistogramOpts::from(self.opts(name, help)).buckets(buckets.to_vec())
    }

    #[expect(
        clippy::expect_used,
        reason = "names, labels and buckets are constants, and a test of each crate makes them all"
    )]
    fn add<C: Collector + Clone + 'static>(&self, made: prometheus::Result<C>) -> C {
        let family = made.expect("a metric's name, labels and buckets are well formed");
        self.registry.register(Box::new(family.clone())).expect("a metric is registered once");
        family
    }
}
