//! Sets metrics to figures that are counted elsewhere.

use prometheus::{IntCounter, IntGauge};

/// Sets a counter to `value`; a value that fell, as the component began anew, resets the counter.
pub(super) fn set_counter(counter: &IntCounter, value: u64) {
    if value < counter.get() {
        counter.reset();
    }
    counter.inc_by(value - counter.get());
}

/// Sets a gauge to `value`.
pub(super) fn set_gauge(gauge: &IntGauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}
