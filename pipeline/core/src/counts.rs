//! What one lane has done and holds, as one snapshot.

use std::iter::Sum;
use std::time::Duration;

use serde::Serialize;

use crate::Version;

/// One lane's counters (they only grow) and gauges, all taken at one instant.
///
/// Every event that was observed has left by exactly one exit or is still held, so that at any moment
/// `observed = acked + coalesced + filtered + parked + queued + waiting + in_flight`. A snapshot must be
/// published whole: mixing two snapshots breaks the law.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LaneCounts {
    /// Counter: events taken in, re-reads of dirty keys included.
    pub observed: u64,
    /// Counter: events whose reports were all acknowledged.
    pub acked: u64,
    /// Counter: events whose state was folded into a newer one.
    pub coalesced: u64,
    /// Counter: events that brought no report, stale redeliveries included.
    pub filtered: u64,
    /// Counter: events that were refused for good.
    pub parked: u64,
    /// Gauge: events that may start as soon as there is a place.
    pub queued: u64,
    /// Gauge: events that wait for their time (retry, rate limit).
    pub waiting: u64,
    /// Gauge: events whose attempt is running.
    pub in_flight: u64,

    /// Gauge: keys in line for an attempt or a read, which nothing holds up but the want of a place.
    pub ready: u64,
    /// Gauge: keys that are to be read again, those being read included.
    pub dirty: u64,
    /// Gauge: keys being read.
    pub reading: u64,
    /// Gauge: keys of which something is incomplete and that wait for the time to look again.
    pub incomplete: u64,
    /// Gauge: keys whose last event was refused for good.
    pub parked_keys: u64,
    /// Gauge: bytes of the events held.
    pub bytes: u64,
    /// Gauge: facts kept for dirty keys; the metric's name says summaries.
    pub summaries: u64,
    /// Gauge: bytes of those facts.
    pub summary_bytes: u64,
    /// Gauge: the version of the oldest state that is held, or that a dirty key has kept something of; 0 for none.
    #[serde(skip)]
    pub oldest_version: Version,
    /// Gauge: how long the oldest event or dirty mark has been waiting to be reported.
    #[serde(skip)]
    pub oldest: Duration,

    /// Counter: of `observed`, those that the source brought, and not a read.
    #[serde(skip)]
    pub delivered: u64,
    /// Counter: times a full queue turned an event into a dirty mark.
    pub overflowed: u64,
    /// Counter: of `filtered`, the stale redeliveries that the lane itself found.
    pub stale: u64,
    /// Counter: attempts and reads that ended in "try again".
    pub retried: u64,
    /// Counter: reads of dirty keys begun.
    pub reads: u64,
    /// Counter: attempts that the rate limit delayed.
    pub limited: u64,
    /// Counter: attempts that the rate limit would have delayed, were it not only learning.
    pub limited_learning: u64,
    /// Counter: facts, or remembered deletions, given up because their bound was reached.
    pub summaries_dropped: u64,
    /// Counter: entries given up because the list of parked keys was full.
    pub parked_dropped: u64,
    /// Whether the lane starts nothing because the sink's circuit is open.
    pub paused: bool,
}

impl LaneCounts {
    /// Events that have left, by any exit.
    #[must_use]
    pub fn over(&self) -> u64 {
        self.acked + self.coalesced + self.filtered + self.parked
    }

    /// What there is to do: events that are held, and keys that are to be read again.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.queued + self.waiting + self.in_flight + self.dirty
    }

    /// What a lane did that is given up: its counters, without what it held, which another process takes up.
    #[must_use]
    pub fn left(&self) -> Self {
        let Self { acked, coalesced, filtered, parked, .. } = *self;
        Self {
            observed: self.over(),
            acked,
            coalesced,
            filtered,
            parked,
            delivered: self.delivered,
            overflowed: self.overflowed,
            stale: self.stale,
            retried: self.retried,
            reads: self.reads,
            limited: self.limited,
            limited_learning: self.limited_learning,
            summaries_dropped: self.summaries_dropped,
            parked_dropped: self.parked_dropped,
            ..Self::default()
        }
    }

    /// What is missing (positive) or counted twice (negative); 0 at any moment.
    #[must_use]
    pub fn balance(&self) -> i64 {
        let held = self.queued + self.waiting + self.in_flight;
        self.observed.cast_signed() - (self.over() + held).cast_signed()
    }

    /// Sums two lanes; the older of two ages, paused if either is.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            observed: self.observed + other.observed,
            acked: self.acked + other.acked,
            coalesced: self.coalesced + other.coalesced,
            filtered: self.filtered + other.filtered,
            parked: self.parked + other.parked,
            queued: self.queued + other.queued,
            waiting: self.waiting + other.waiting,
            in_flight: self.in_flight + other.in_flight,
            ready: self.ready + other.ready,
            dirty: self.dirty + other.dirty,
            reading: self.reading + other.reading,
            incomplete: self.incomplete + other.incomplete,
            parked_keys: self.parked_keys + other.parked_keys,
            bytes: self.bytes + other.bytes,
            summaries: self.summaries + other.summaries,
            summary_bytes: self.summary_bytes + other.summary_bytes,
            oldest_version: Version::older(self.oldest_version, other.oldest_version),
            oldest: self.oldest.max(other.oldest),
            delivered: self.delivered + other.delivered,
            overflowed: self.overflowed + other.overflowed,
            stale: self.stale + other.stale,
            retried: self.retried + other.retried,
            reads: self.reads + other.reads,
            limited: self.limited + other.limited,
            limited_learning: self.limited_learning + other.limited_learning,
            summaries_dropped: self.summaries_dropped + other.summaries_dropped,
            parked_dropped: self.parked_dropped + other.parked_dropped,
            paused: self.paused || other.paused,
        }
    }
}

impl Sum for LaneCounts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| sum.plus(&next))
    }
}
