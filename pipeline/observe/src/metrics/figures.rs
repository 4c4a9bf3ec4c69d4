//! Figures that are counted elsewhere, as metrics.

use prometheus::{IntCounter, IntGauge};

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
