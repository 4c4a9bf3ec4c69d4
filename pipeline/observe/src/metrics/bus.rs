//! What goes over the bus, as metrics. Only there where the bus is not the memory of the process.

use std::sync::Arc;

use pipeline_core::Families;
use prometheus::{IntCounter, IntGauge};

use super::figures::set_gauge;
use super::{Metrics, PREFIX};

/// Why a message of the bus cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Unreadable {
    /// A newer version wrote it.
    Newer,
    /// It is no message of this program.
    Garbage,
}

impl Unreadable {
    /// All, so that each starts at zero.
    pub const ALL: [Self; 2] = [Self::Newer, Self::Garbage];

    /// The label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Counts what goes over the bus; cloning shares.
#[derive(Debug, Clone)]
pub struct BusSeries {
    series: Arc<Series>,
}

#[derive(Debug)]
struct Series {
    published: IntCounter,
    refused: IntCounter,
    unpublished: IntGauge,
    delivered: IntCounter,
    acknowledged: IntCounter,
    unreadable: [IntCounter; 2],
    results_dropped: IntCounter,
    results_discarded: IntCounter,
    fenced: IntCounter,
    made: IntCounter,
}

impl BusSeries {
    pub(super) fn new(make: &Families) -> Self {
        let unreadable =
            make.counters("bus_unreadable_total", "Messages that were kept aside, by why.", ["reason"]);
        Self {
            series: Arc::new(Series {
                published: make.counter("bus_published_total", "Events that the bus took."),
                refused: make.counter(
                    "bus_refused_total",
                    "Events that the bus did not take, or not for certain: their applications are read again.",
                ),
                unpublished: make.gauge("bus_dirty_keys", "Applications that are to be read and published again."),
                delivered: make.counter("bus_delivered_total", "Messages taken from the bus."),
                acknowledged: make.counter("bus_acknowledged_total", "Messages that are done with."),
                unreadable: Unreadable::ALL.map(|why| unreadable.with_label_values(&[why.as_str()])),
                results_dropped: make.counter(
                    "bus_results_dropped_total",
                    "Acknowledged reports that were not published for other readers.",
                ),
                results_discarded: make.counter(
                    "bus_results_discarded_total",
                    "Published reports that went unread: their readers did not keep up.",
                ),
                fenced: make
                    .counter("bus_fenced_total", "Shards found to be another process's while in work."),
                made: make.counter("bus_made_anew_total", "Times the stream was lost and made anew."),
            }),
        }
    }

    /// A message was stored.
    pub fn published(&self) {
        self.series.published.inc();
    }

    /// A message was not stored.
    pub fn refused(&self) {
        self.series.refused.inc();
    }

    /// So many applications are to be published again.
    pub fn unpublished(&self, keys: usize) {
        set_gauge(&self.series.unpublished, keys as u64);
    }

    /// A message came.
    pub fn delivered(&self) {
        self.series.delivered.inc();
    }

    /// So many messages were acknowledged.
    pub fn acknowledged(&self, messages: usize) {
        self.series.acknowledged.inc_by(messages as u64);
    }

    /// A message could not be read and was kept aside; says whether it is the first one for this reason.
    pub fn unreadable(&self, why: Unreadable) -> bool {
        let counter = &self.series.unreadable[why as usize];
        counter.inc();
        counter.get() == 1
    }

    /// A report that was acknowledged is not published: its readers are too slow.
    pub fn result_dropped(&self) {
        self.series.results_dropped.inc();
    }

    /// So many published reports went unread as their readers did not keep up; says whether they are the first ones.
    pub fn results_discarded(&self, reports: u64) -> bool {
        let counter = &self.series.results_discarded;
        counter.inc_by(reports);
        reports > 0 && counter.get() == reports
    }

    /// What this process sent was refused, since another has followed it.
    pub fn fenced(&self) {
        self.series.fenced.inc();
    }

    /// The stream was lost and made anew.
    pub fn made_anew(&self) {
        self.series.made.inc();
    }
}

impl Metrics {
    /// Adds the series of a bus, at zero; asked for again, the same.
    pub fn bus(&self) -> &BusSeries {
        self.inner.bus.get_or_init(|| BusSeries::new(&Families::new(&self.inner.registry, PREFIX)))
    }
}
