//! The metrics of the router, by route.

use pipeline_core::Families;
use prometheus::{HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use crate::refusal::Refusal;
use crate::route::Route;

const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// The label of what was sent and is no request.
pub(crate) const HEAD: &str = "head";
/// The upper bounds of the buckets of the time until the head of an answer, in seconds.
const ANSWER_BUCKETS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0];

/// The metrics of the router; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct RouterMetrics {
    requests: IntCounterVec,
    seconds: HistogramVec,
    bytes: IntCounterVec,
    failures: IntCounterVec,
    refused: IntCounterVec,
    retries: IntCounterVec,
    under_way: IntGaugeVec,
    pub(crate) connections: IntGauge,
}

impl RouterMetrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let make = Families::new(registry, "gitops_runtime_router_");
        let metrics = Self {
            requests: make.counters("requests_total", "Requests answered.", ["route", "status"]),
            seconds: make.histograms(
                "answer_seconds",
                "Time until the head of an answer.",
                ["route"],
                &ANSWER_BUCKETS,
            ),
            bytes: make.counters("bytes_total", "Bytes of bodies and upgrades.", ["route", "way"]),
            failures: make.counters(
                "failures_total",
                "Requests that a service did not answer.",
                ["route", "reason"],
            ),
            refused: make.counters("refused_total", "Requests that are passed to nobody.", ["reason"]),
            retries: make.counters("retries_total", "Requests sent to a service again.", ["route"]),
            under_way: make.gauges("under_way", "Requests and upgrades under way.", ["route"]),
            connections: make.gauge("connections", "Connections of clients."),
        };
        // Every series is there from the start, at zero.
        for route in Route::ALL.map(Route::label) {
            for status in STATUS_CLASSES {
                metrics.requests.with_label_values(&[route, status]);
            }
            for way in ["in", "out"] {
                metrics.bytes.with_label_values(&[route, way]);
            }
            for reason in Refusal::FAILED {
                metrics.failures.with_label_values(&[route, reason]);
            }
            metrics.retries.with_label_values(&[route]);
            metrics.under_way.with_label_values(&[route]);
            metrics.seconds.with_label_values(&[route]);
        }
        for reason in Refusal::REFUSED.into_iter().chain([HEAD]) {
            metrics.refused.with_label_values(&[reason]);
        }
        metrics
    }

    pub(crate) fn began(&self, route: Route) {
        self.under_way.with_label_values(&[route.label()]).inc();
    }

    pub(crate) fn answered(&self, route: Route, status: u16, seconds: f64) {
        let class = STATUS_CLASSES.get(usize::from(status / 100).wrapping_sub(1)).copied().unwrap_or("5xx");
        self.requests.with_label_values(&[route.label(), class]).inc();
        self.seconds.with_label_values(&[route.label()]).observe(seconds);
    }

    pub(crate) fn ended(&self, route: Route, received: u64, sent: u64) {
        self.under_way.with_label_values(&[route.label()]).dec();
        self.bytes.with_label_values(&[route.label(), "in"]).inc_by(received);
        self.bytes.with_label_values(&[route.label(), "out"]).inc_by(sent);
    }

    pub(crate) fn refused(&self, route: Route, refusal: Refusal) {
        match refusal.is_failure() {
            true => self.failures.with_label_values(&[route.label(), refusal.reason()]).inc(),
            false => self.refused.with_label_values(&[refusal.reason()]).inc(),
        }
    }

    /// Counts what was sent and is no request.
    pub(crate) fn no_request(&self) {
        self.refused.with_label_values(&[HEAD]).inc();
    }

    pub(crate) fn retried(&self, route: Route) {
        self.retries.with_label_values(&[route.label()]).inc();
    }
}
