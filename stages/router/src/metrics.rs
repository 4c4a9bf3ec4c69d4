//! What is counted, by route.

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

use crate::refusal::Refusal;
use crate::route::Route;

const STATUS: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// The head of a request that is none.
pub(crate) const HEAD: &str = "head";
/// Seconds until the head of an answer.
const SECONDS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0];

/// Counts; cloning shares.
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
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let of = |name: &str, help: &str| Opts::new(format!("gitops_runtime_router_{name}"), help);
        let seconds = HistogramOpts::from(of("answer_seconds", "Time until the head of an answer."));
        let metrics = Self {
            requests: IntCounterVec::new(of("requests_total", "Requests answered."), &["route", "status"])?,
            seconds: HistogramVec::new(seconds.buckets(SECONDS.to_vec()), &["route"])?,
            bytes: IntCounterVec::new(of("bytes_total", "Bytes of bodies and upgrades."), &["route", "way"])?,
            failures: IntCounterVec::new(
                of("failures_total", "Requests that a service did not answer."),
                &["route", "reason"],
            )?,
            refused: IntCounterVec::new(
                of("refused_total", "Requests that are passed to nobody."),
                &["reason"],
            )?,
            retries: IntCounterVec::new(
                of("retries_total", "Requests sent to a service again."),
                &["route"],
            )?,
            under_way: IntGaugeVec::new(of("under_way", "Requests and upgrades under way."), &["route"])?,
            connections: IntGauge::with_opts(of("connections", "Connections of clients."))?,
        };
        // Nothing shows only once it has happened.
        for route in Route::ALL.map(Route::label) {
            for status in STATUS {
                metrics.requests.with_label_values(&[route, status]).reset();
            }
            for way in ["in", "out"] {
                metrics.bytes.with_label_values(&[route, way]).reset();
            }
            for reason in Refusal::FAILED {
                metrics.failures.with_label_values(&[route, reason]).reset();
            }
            metrics.retries.with_label_values(&[route]).reset();
            metrics.under_way.with_label_values(&[route]).set(0);
            metrics.seconds.with_label_values(&[route]);
        }
        for reason in Refusal::REFUSED.into_iter().chain([HEAD]) {
            metrics.refused.with_label_values(&[reason]).reset();
        }
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.seconds.clone()))?;
        registry.register(Box::new(metrics.bytes.clone()))?;
        registry.register(Box::new(metrics.failures.clone()))?;
        registry.register(Box::new(metrics.refused.clone()))?;
        registry.register(Box::new(metrics.retries.clone()))?;
        registry.register(Box::new(metrics.under_way.clone()))?;
        registry.register(Box::new(metrics.connections.clone()))?;
        Ok(metrics)
    }

    pub(crate) fn began(&self, route: Route) {
        self.under_way.with_label_values(&[route.label()]).inc();
    }

    pub(crate) fn answered(&self, route: Route, status: u16, seconds: f64) {
        let class = STATUS.get(usize::from(status / 100).wrapping_sub(1)).copied().unwrap_or("5xx");
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

    /// Something that is no request was sent.
    pub(crate) fn no_request(&self) {
        self.refused.with_label_values(&[HEAD]).inc();
    }

    pub(crate) fn retried(&self, route: Route) {
        self.retries.with_label_values(&[route.label()]).inc();
    }
}
