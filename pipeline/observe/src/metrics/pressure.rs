//! How much is asked of a peer at once, and what had to wait for it.

use std::time::Duration;

use pipeline_core::{Families, Labels, Peer, Pressure, Wait};
use prometheus::{CounterVec, IntGauge, IntGaugeVec};

use super::figures::set_gauge;

/// The series of calls that are under way or wait, by peer.
pub(super) struct PressureSeries {
    limit: IntGaugeVec,
    in_flight: IntGaugeVec,
    waiting: IntGaugeVec,
    waited: CounterVec,
}

impl PressureSeries {
    pub(super) fn new(make: &Families, stages: &[Labels]) -> Self {
        let this = Self {
            limit: make.gauges("call_limit", "Calls of a peer that may be under way at once.", ["peer"]),
            in_flight: make.gauges("calls_in_flight", "Calls of a peer that are under way.", ["peer"]),
            waiting: make.gauges(
                "calls_waiting",
                "Calls of a peer that wait until fewer are under way.",
                ["peer"],
            ),
            waited: make.amounts(
                "call_wait_seconds_total",
                "How long calls had to wait, by for what.",
                ["peer", "wait"],
            ),
        };
        for peer in stages.iter().filter(|stage| stage.limits).map(|stage| stage.peer) {
            this.take(Pressure { peer, limit: 0, in_flight: 0, waiting: 0 });
            for wait in Wait::ALL {
                this.waited.with_label_values(&[peer.as_str(), wait.as_str()]);
            }
        }
        this
    }

    pub(super) fn take(&self, pressure: Pressure) {
        let set = |of: &IntGaugeVec, value: usize| {
            let gauge: IntGauge = of.with_label_values(&[pressure.peer.as_str()]);
            set_gauge(&gauge, value as u64);
        };
        set(&self.limit, pressure.limit);
        set(&self.in_flight, pressure.in_flight);
        set(&self.waiting, pressure.waiting);
    }

    pub(super) fn waited(&self, peer: Peer, wait: Wait, took: Duration) {
        self.waited.with_label_values(&[peer.as_str(), wait.as_str()]).inc_by(took.as_secs_f64());
    }
}
