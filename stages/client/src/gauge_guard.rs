//! One more of something that a gauge counts.

use prometheus::IntGauge;

/// One more of a gauge, until this is dropped.
#[derive(Debug)]
pub struct GaugeGuard(IntGauge);

impl GaugeGuard {
    /// Counts one more.
    #[must_use]
    pub fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::Registry;

    use crate::Families;

    #[test]
    fn a_gauge_counts_those_that_are_held() {
        let gauge = Families::new(&Registry::new(), "test_").gauge("held", "Those that are held.");
        let first = GaugeGuard::new(&gauge);
        let second = GaugeGuard::new(&gauge);
        assert_eq!(gauge.get(), 2);
        drop(first);
        assert_eq!(gauge.get(), 1);
        drop(second);
        assert_eq!(gauge.get(), 0);
    }
}
