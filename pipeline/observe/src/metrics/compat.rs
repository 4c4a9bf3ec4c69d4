//! The compatibility family: names and labels of Codefresh's event reporter, for dashboards that read them.
//!
//! Its `application` label makes a dozen series an application, which is why it is off by default and bounded:
//! applications beyond the bound are counted together as `other`.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pipeline_core::{Families, Key};
use prometheus::{HistogramVec, IntCounterVec, IntGaugeVec};

use super::figures::set_gauge;

const BUCKETS: [f64; 7] = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

/// The values of labels that say the same of every event: each is of an application, why one fails is not told apart, and the
/// rate limit counts for itself what it only learns.
const EVENT_TYPE: &str = "app";
const ERROR_TYPE: &str = "unknown";
const LEARNING: &str = "false";

/// The compatibility family, which is there only when it is switched on. Its label `application` is the application's name.
pub struct Compat {
    queue_size: IntGaugeVec,
    enqueued: IntCounterVec,
    dropped: IntCounterVec,
    errored: IntCounterVec,
    ignored: IntCounterVec,
    duration: HistogramVec,
    names: Mutex<HashSet<Box<str>>>,
    limit: usize,
}

impl Compat {
    pub(super) fn new(families: &Families, limit: usize) -> Self {
        let families = families.beginning("codefresh_event_reporter_");
        let queued = ["reporter_shard", "application", "error_in_learning_mode"];
        Self {
            queue_size: families.gauges(
                "queue_size",
                "Size of application events queue of a particular shard.",
                ["reporter_shard"],
            ),
            enqueued: families.counters("enqueued_events_total", "Application events taken in.", queued),
            dropped: families.counters(
                "dropped_events_total",
                "Application events that the rate limit holds back; none is dropped.",
                queued,
            ),
            errored: families.counters(
                "errored_events_total",
                "Application events whose report failed, each try.",
                ["reporter_shard", "metric_event_type", "error_type", "application"],
            ),
            ignored: families.counters(
                "cached_ignored_events",
                "Application events that bring nothing new.",
                ["reporter_shard", "metric_event_type", "application"],
            ),
            duration: families.histograms(
                "event_processing_duration",
                "Seconds from taking an event up to its acknowledgement.",
                ["reporter_shard", "application", "metric_event_type"],
                &BUCKETS,
            ),
            names: Mutex::default(),
            limit,
        }
    }

    /// An event was taken in.
    pub fn enqueued(&self, shard: u32, key: &Key) {
        let labels = [&shard.to_string(), self.application(key), LEARNING];
        self.enqueued.with_label_values(&labels).inc();
    }

    /// The rate limit held an event back.
    pub fn dropped(&self, shard: u32, key: &Key) {
        let labels = [&shard.to_string(), self.application(key), LEARNING];
        self.dropped.with_label_values(&labels).inc();
    }

    /// A report failed.
    pub fn errored(&self, shard: u32, key: &Key) {
        let labels = [&shard.to_string(), EVENT_TYPE, ERROR_TYPE, self.application(key)];
        self.errored.with_label_values(&labels).inc();
    }

    /// An event brought nothing new.
    pub fn ignored(&self, shard: u32, key: &Key) {
        let labels = [&shard.to_string(), EVENT_TYPE, self.application(key)];
        self.ignored.with_label_values(&labels).inc();
    }

    /// An event was done with, `took` after it was taken in.
    pub fn processed(&self, shard: u32, key: &Key, took: Duration) {
        let labels = [&shard.to_string(), self.application(key), EVENT_TYPE];
        self.duration.with_label_values(&labels).observe(took.as_secs_f64());
    }

    pub(super) fn queue_size(&self, shard: u32, size: u64) {
        set_gauge(&self.queue_size.with_label_values(&[&shard.to_string()]), size);
    }

    fn application<'a>(&self, key: &'a Key) -> &'a str {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.contains(key.name()) {
            key.name()
        } else if names.len() < self.limit {
            names.insert(key.name().into());
            key.name()
        } else {
            "other"
        }
    }
}
