//! How long things took.

use std::time::Duration;

use anyhow::Context as _;
use hdrhistogram::Histogram;

/// Times of one thing that was done again and again.
#[derive(Debug, Clone)]
pub(super) struct Times(Histogram<u64>);

impl Times {
    pub(super) fn new() -> anyhow::Result<Self> {
        // One that grows: it would clamp what is longer than it was made for to 2 us, if it were told to saturate.
        Ok(Self(Histogram::new(3).context("make a histogram")?))
    }

    /// It took so long once more.
    pub(super) fn add(&mut self, time: Duration) -> anyhow::Result<()> {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.record(micros).context("count a time")
    }

    /// Those of another one as well.
    pub(super) fn all(&mut self, others: &Self) -> anyhow::Result<()> {
        self.0.add(&others.0).context("count times")
    }

    /// Within this time that part of them was done.
    pub(super) fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_micros(self.0.value_at_quantile(quantile))
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }
}

pub(super) fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}

pub(super) fn mib(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}
