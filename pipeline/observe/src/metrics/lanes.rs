//! What the lanes did and hold: one snapshot a shard, shown whole, so that within one scrape
//! `observed = acked + coalesced + filtered + parked + queued + waiting + in_flight` for every shard.

use std::time::{Duration, Instant};

use prometheus::{Gauge, GaugeVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::figures::{set_counter, set_gauge};
use pipeline_core::{Families, LaneCounts};

/// How many shards are shown one by one. With more of them in one process, their sum is shown as shard `all`: the number of series stays
/// bounded, and the law holds for a sum as well.
const SHOWN: usize = 8;

/// The newest snapshot of a shard.
struct Snapshot {
    shard: u32,
    counts: LaneCounts,
    taken: Instant,
}

/// Snapshots of all shards and the series that show them.
pub(super) struct Lanes {
    snapshots: Vec<Snapshot>,
    /// What shards did that are another process's by now: counters never fall.
    gone: Option<LaneCounts>,
    counters: [IntCounterVec; 5],
    gauges: [IntGaugeVec; 4],
    oldest: GaugeVec,
    totals: [IntCounter; 8],
    held: [IntGauge; 5],
    paused: IntGauge,
}

impl Lanes {
    pub(super) fn new(families: &Families, owned: &[u32], now: Instant) -> Self {
        let counter = |name: &str, help: &str| families.counters(name, help, ["shard"]);
        let gauge = |name: &str, help: &str| families.gauges(name, help, ["shard"]);
        let snapshot = |shard: &u32| Snapshot { shard: *shard, counts: LaneCounts::default(), taken: now };
        Self {
            snapshots: owned.iter().map(snapshot).collect(),
            gone: None,
            counters: [
                counter("events_observed_total", "Events taken in, re-reads included."),
                counter("events_acked_total", "Events whose reports were all acknowledged."),
                counter("events_coalesced_total", "Events whose state was folded into a newer one."),
                counter("events_filtered_total", "Events that brought no report."),
                counter("events_parked_total", "Events that were refused for good."),
            ],
            gauges: [
                gauge("events_queued", "Events that may start as soon as there is a place."),
                gauge("events_waiting", "Events that wait for a retry or the rate limit."),
                gauge("events_in_flight", "Events whose attempt is running."),
                gauge("keys_dirty", "Applications that are to be read again."),
            ],
            oldest: families.measures(
                "oldest_unreported_seconds",
                "How long the oldest unreported change has been waiting.",
                ["shard"],
            ),
            totals: [
                families
                    .counter("queue_overflows_total", "Events that a full queue turned into a dirty mark."),
                families.counter("stale_events_total", "Redeliveries of states already acknowledged."),
                families.counter("attempts_retried_total", "Attempts and reads that ended in: try again."),
                families.counter("dirty_reads_total", "Reads of dirty applications."),
                families.counter("rate_limited_total", "Attempts that the rate limit delayed."),
                families
                    .counter("rate_limited_learning_total", "Attempts that the rate limit would have delayed."),
                families
                    .counter("summaries_dropped_total", "Facts that must not be merged, such as ends of operations, given up because of their bound."),
                families.counter("parked_dropped_total", "Parked entries given up because of their bound."),
            ],
            held: [
                families.gauge("keys_incomplete", "Applications of which something could not be fetched."),
                families.gauge("keys_parked", "Applications whose last event was refused for good."),
                families.gauge("queue_bytes", "Bytes of the events held."),
                families.gauge("summaries", "Facts that must not be merged, kept of dirty objects."),
                families.gauge("summary_bytes", "Bytes of those operation ends."),
            ],
            paused: families.gauge("shards_paused", "Shards that start nothing: the sink's circuit is open."),
        }
    }

    /// Takes the newest snapshot of a shard; another process's shard is not shown.
    pub(super) fn take(&mut self, shard: u32, counts: &LaneCounts, now: Instant) {
        if let Some(snapshot) = self.snapshots.iter_mut().find(|snapshot| snapshot.shard == shard) {
            snapshot.counts = *counts;
            snapshot.taken = now;
        }
    }

    /// A shard came, or went. Shards that come and go are shown as a sum.
    pub(super) fn owns(&mut self, shard: u32, owned: bool, now: Instant) {
        let gone = self.gone.get_or_insert_default();
        if let Some(at) = self.snapshots.iter().position(|snapshot| snapshot.shard == shard) {
            *gone = gone.plus(&self.snapshots.swap_remove(at).counts.left());
        }
        if owned {
            self.snapshots.push(Snapshot { shard, counts: LaneCounts::default(), taken: now });
        }
    }

    pub(super) fn shards(&self) -> usize {
        self.snapshots.len()
    }

    /// What every shard holds in its queue, for the compatibility family.
    pub(super) fn queued(&self) -> impl Iterator<Item = (u32, u64)> {
        self.snapshots.iter().map(|snapshot| (snapshot.shard, snapshot.counts.queued))
    }

    /// Sets the series to what the snapshots say.
    pub(super) fn show(&self, now: Instant) {
        let aged = |snapshot: &Snapshot| {
            let counts = snapshot.counts;
            let since = if counts.held() > 0 {
                now.saturating_duration_since(snapshot.taken)
            } else {
                Duration::ZERO
            };
            LaneCounts { oldest: counts.oldest + since, ..counts }
        };
        let gone = self.gone.unwrap_or_default();
        let sum = self.snapshots.iter().fold(gone, |sum, next| sum.plus(&aged(next)));
        if self.gone.is_some() || self.snapshots.len() > SHOWN {
            self.show_shard("all", &sum);
        } else {
            for snapshot in &self.snapshots {
                self.show_shard(&snapshot.shard.to_string(), &aged(snapshot));
            }
        }
        let totals = [
            sum.overflowed,
            sum.stale,
            sum.retried,
            sum.reads,
            sum.limited,
            sum.limited_learning,
            sum.summaries_dropped,
            sum.parked_dropped,
        ];
        self.totals.iter().zip(totals).for_each(|(counter, value)| set_counter(counter, value));
        let held = [sum.incomplete, sum.parked_keys, sum.bytes, sum.summaries, sum.summary_bytes];
        self.held.iter().zip(held).for_each(|(gauge, value)| set_gauge(gauge, value));
        set_gauge(
            &self.paused,
            self.snapshots.iter().filter(|snapshot| snapshot.counts.paused).count() as u64,
        );
    }

    fn show_shard(&self, shard: &str, counts: &LaneCounts) {
        let out = [counts.observed, counts.acked, counts.coalesced, counts.filtered, counts.parked];
        for (family, value) in self.counters.iter().zip(out) {
            set_counter(&family.with_label_values(&[shard]), value);
        }
        let held = [counts.queued, counts.waiting, counts.in_flight, counts.dirty];
        for (family, value) in self.gauges.iter().zip(held) {
            set_gauge(&family.with_label_values(&[shard]), value);
        }
        seconds(&self.oldest.with_label_values(&[shard]), counts.oldest);
    }
}

/// Sets a gauge of seconds to `age`.
pub(super) fn seconds(gauge: &Gauge, age: Duration) {
    gauge.set(age.as_secs_f64());
}
