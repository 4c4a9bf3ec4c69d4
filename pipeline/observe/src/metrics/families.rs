//! Makes and registers metric families, each with every value of its labels at zero.

use prometheus::core::Collector;
use prometheus::{
    Counter, CounterVec, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGauge, IntGaugeVec, Opts, Registry,
};

const PREFIX: &str = "gitops_runtime_";

/// A registry in the making.
pub(super) struct Families {
    registry: Registry,
}

impl Families {
    pub(super) fn new() -> Self {
        Self { registry: Registry::new() }
    }

    /// Adds to a registry that is in use.
    pub(super) fn on(registry: &Registry) -> Self {
        Self { registry: registry.clone() }
    }

    pub(super) fn done(self) -> Registry {
        self.registry
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.add(IntCounter::with_opts(opts(name, help)))
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.add(IntGauge::with_opts(opts(name, help)))
    }

    /// Of seconds, or another unit that is no whole number.
    pub(super) fn amount(&self, name: &str, help: &str) -> Counter {
        self.add(Counter::with_opts(opts(name, help)))
    }

    /// In seconds, or another unit that is no whole number.
    pub(super) fn measure(&self, name: &str, help: &str) -> Gauge {
        self.add(Gauge::with_opts(opts(name, help)))
    }

    pub(super) fn counters<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> IntCounterVec {
        self.add(IntCounterVec::new(opts(name, help), &labels))
    }

    /// As [`Families::amount`], by labels.
    pub(super) fn amounts<const N: usize>(&self, name: &str, help: &str, labels: [&str; N]) -> CounterVec {
        self.add(CounterVec::new(opts(name, help), &labels))
    }

    pub(super) fn gauges<const N: usize>(&self, name: &str, help: &str, labels: [&str; N]) -> IntGaugeVec {
        self.add(IntGaugeVec::new(opts(name, help), &labels))
    }

    pub(super) fn measures<const N: usize>(&self, name: &str, help: &str, labels: [&str; N]) -> GaugeVec {
        self.add(GaugeVec::new(opts(name, help), &labels))
    }

    pub(super) fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        self.add(Histogram::with_opts(HistogramOpts::from(opts(name, help)).buckets(buckets.to_vec())))
    }

    pub(super) fn histograms<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        buckets: &[f64],
    ) -> HistogramVec {
        let opts = HistogramOpts::from(opts(name, help)).buckets(buckets.to_vec());
        self.add(HistogramVec::new(opts, &labels))
    }

    #[expect(
        clippy::expect_used,
        reason = "names, labels and buckets are constants, and a test makes them all"
    )]
    fn add<C: Collector + Clone + 'static>(&self, made: prometheus::Result<C>) -> C {
        let family = made.expect("a metric's name, labels and buckets are well formed");
        self.registry.register(Box::new(family.clone())).expect("a metric is registered once");
        family
    }
}

/// A name that is not the process's own gets the prefix of this runtime.
fn opts(name: &str, help: &str) -> Opts {
    let whole = name.starts_with("process_") || name.starts_with("codefresh_");
    Opts::new(if whole { name.to_owned() } else { format!("{PREFIX}{name}") }, help)
}

/// Makes a counter say `value`; a value that fell (the component began anew) is a counter reset.
pub(super) fn say(counter: &IntCounter, value: u64) {
    if value < counter.get() {
        counter.reset();
    }
    counter.inc_by(value - counter.get());
}

/// Makes a gauge say `value`.
pub(super) fn show(gauge: &IntGauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}
