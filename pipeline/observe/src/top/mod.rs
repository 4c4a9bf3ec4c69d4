//! What keeps a shard busy: its hottest and slowest applications, those with the most calls, what fails, and examples
//! of each bucket of the latency histogram.
//!
//! takes: every step of an event, and what each attempt did - gives: a [`Ranking`] of the last minutes, when asked
//! calls: nothing; it belongs to its shard's task - fails: never; whoever has no place in a list is counted there as
//! [`Ranked`] says
//!
//! Bounded whatever the number of applications: some 120 kB a shard. Two sketches follow one another: the one that is
//! being filled, and the one before it, so that what is told is of the last two and a half to five minutes.

mod sketch;
mod slowest;
mod tally;

#[cfg(test)]
mod tests;

use std::time::Duration;

use pipeline_core::{Key, Peer, Reason, Step, Timestamp, Trace, Version};

pub use self::sketch::Ranked;
use self::sketch::{Detail, Sketch, largest};
pub use self::slowest::{AckedEvent, SlowApplication};
use self::slowest::{Slowest, slowest};
pub use self::tally::Tally;
use crate::metrics::LATENCY_BUCKETS;

/// Applications in each list: what fits a hash table of 128.
const PLACES: usize = 112;
/// A sketch is filled for so long, and told for as long again.
const SPAN: Duration = Duration::from_secs(150);
/// Examples kept of each bucket.
const EXAMPLES: usize = 4;
/// Buckets of the latency histogram; the last one has no upper bound.
const BUCKETS: usize = LATENCY_BUCKETS.len() + 1;

/// What kept a shard busy in the last minutes. Each list begins with the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// How far back it goes; figures of latency examples go back further.
    pub window: Duration,
    /// By events that were seen.
    pub hottest: Vec<Ranked<EventCounts>>,
    /// By the slowest event that was acknowledged.
    pub slowest: Vec<SlowApplication>,
    /// By calls of Argo CD.
    pub most_calls: Vec<Ranked<CallCounts>>,
    /// By the time that these took together, in microseconds.
    pub longest_fetch: Vec<Ranked<CallCounts>>,
    /// By tries that failed.
    pub failing: Vec<Ranked<FailureCounts>>,
    /// What failed, by peer and reason, in the order of those.
    pub errors: Vec<PeerErrors>,
    /// The latency histogram: from the watch to the acknowledgement of all reports.
    pub latency: Vec<Bucket>,
}

/// What became of an application's events and how many reports they brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Reports that were acknowledged.
    pub reports: u64,
    /// Events that were folded into a newer one.
    pub coalesced: u64,
    /// Events that brought no report.
    pub filtered: u64,
}

/// The calls of Argo CD that were made for an application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// How many calls there were; of one attempt the first 64 are counted.
    pub calls: u64,
    /// How long they took together.
    pub took: Duration,
}

/// The failed tries of an application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailureCounts {
    /// How many of them were refused for good.
    pub parked: u64,
    /// The try that failed last.
    pub last: Option<FailedTry>,
}

/// One failed try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedTry {
    /// Why it failed.
    pub reason: Reason,
    /// The version of the application that was tried.
    pub version: Version,
    /// W3C trace id of the event's life.
    pub trace: u128,
    /// When it failed.
    pub at: Timestamp,
}

/// What failed of one peer for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerErrors {
    /// The peer that answered so, or that did not answer.
    pub peer: Peer,
    /// Why they failed.
    pub reason: Reason,
    /// How many calls and reports failed.
    pub count: u64,
    /// The application that met it last.
    pub key: Key,
    /// The trace id that it met last; 0 when an application was read again.
    pub trace: u128,
    /// When it failed.
    pub at: Timestamp,
}

/// One bucket of the latency histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct Bucket {
    /// Its events took this many seconds at most, and longer than those of the bucket before; `None` has no bound.
    pub up_to: Option<f64>,
    /// Events of the last minutes.
    pub count: u64,
    /// Its last events since the process began, the newest first.
    pub examples: Vec<AckedEvent>,
}

impl Detail for EventCounts {
    fn add(&mut self, earlier: &Self) {
        self.reports += earlier.reports;
        self.coalesced += earlier.coalesced;
        self.filtered += earlier.filtered;
    }
}

impl Detail for CallCounts {
    fn add(&mut self, earlier: &Self) {
        self.calls += earlier.calls;
        self.took = self.took.saturating_add(earlier.took);
    }
}

impl Detail for FailureCounts {
    fn add(&mut self, earlier: &Self) {
        self.parked += earlier.parked;
        self.last = self.last.or(earlier.last);
    }
}

/// What kept one shard busy.
#[derive(Debug)]
pub struct Top {
    /// Spans since the engine started.
    span: u64,
    now: Lists,
    before: Lists,
    examples: [Vec<AckedEvent>; BUCKETS],
}

/// What one span of time filled.
#[derive(Debug)]
struct Lists {
    hot: Sketch<EventCounts>,
    slow: Slowest,
    calls: Sketch<CallCounts>,
    fetch: Sketch<CallCounts>,
    failing: Sketch<FailureCounts>,
    errors: Vec<PeerErrors>,
    latency: [u64; BUCKETS],
}

impl Default for Top {
    /// Of nothing so far.
    fn default() -> Self {
        Self {
            span: 0,
            now: Lists::new(),
            before: Lists::new(),
            examples: std::array::from_fn(|_| Vec::new()),
        }
    }
}

impl Top {
    /// Takes in a step that a lane told at `at`; `now` is the time since the engine started.
    pub fn step(&mut self, told: &Trace, now: Duration, at: Timestamp) {
        self.turn_over(now);
        let Trace { key, version, trace, step } = told;
        let failed = |reason| FailedTry { reason, version: *version, trace: *trace, at };
        let lists = &mut self.now;
        match *step {
            Step::Observed => drop(lists.hot.add(key, 1)),
            Step::Coalesced(_) => lists.hot(key, |hot| hot.coalesced += 1),
            Step::Filtered(_) => lists.hot(key, |hot| hot.filtered += 1),
            Step::Retried { reason, .. } => lists.failing.add(key, 1).last = Some(failed(reason)),
            Step::Parked(reason) => {
                let failing = lists.failing.add(key, 1);
                failing.parked += 1;
                failing.last = Some(failed(reason));
            }
            Step::Acked { after } => {
                let (key, version, trace) = (key.clone(), *version, *trace);
                self.acknowledged(AckedEvent { key, version, trace, at, took: after });
            }
            _ => {}
        }
    }

    /// Takes in what an attempt did.
    pub fn attempt(&mut self, key: &Key, tally: &Tally, now: Duration) {
        self.turn_over(now);
        let Tally { trace, calls, took, reports, .. } = *tally;
        let lists = &mut self.now;
        if calls > 0 {
            let fetched = CallCounts { calls, took };
            lists.calls.add(key, calls).add(&fetched);
            let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            lists.fetch.add(key, microseconds).add(&fetched);
        }
        if reports > 0 {
            lists.hot(key, |hot| hot.reports += reports);
        }
        for (peer, reason, count, at) in &tally.failed {
            let (peer, reason, count, at) = (*peer, *reason, *count, *at);
            lists.fail(PeerErrors { peer, reason, count, key: key.clone(), trace, at });
        }
    }

    /// An application could not be read again.
    pub fn not_read(&mut self, key: &Key, reason: Reason, now: Duration, at: Timestamp) {
        self.turn_over(now);
        let (peer, key) = (Peer::KUBERNETES, key.clone());
        self.now.fail(PeerErrors { peer, reason, count: 1, key, trace: 0, at });
    }

    /// The first `limit` of each list.
    pub fn ranking(&mut self, limit: usize, now: Duration) -> Ranking {
        self.turn_over(now);
        let (lists, before) = (&self.now, &self.before);
        let mut errors = lists.errors.clone();
        for earlier in &before.errors {
            match errors.iter_mut().find(|errors| errors.is_of(earlier)) {
                Some(errors) => errors.count += earlier.count,
                None => errors.push(earlier.clone()),
            }
        }
        errors.sort_unstable_by_key(|errors| (errors.peer, errors.reason));
        let bounds = LATENCY_BUCKETS.iter().copied().map(Some).chain([None]);
        let counts = lists.latency.iter().zip(&before.latency).map(|(now, before)| now + before);
        let bucket = |((up_to, count), examples): ((Option<f64>, u64), &Vec<AckedEvent>)| Bucket {
            up_to,
            count,
            examples: examples.iter().rev().cloned().collect(),
        };
        let begun = SPAN.saturating_mul(u32::try_from(self.span.saturating_sub(1)).unwrap_or(u32::MAX));
        Ranking {
            window: now.saturating_sub(begun),
            hottest: largest(&lists.hot, &before.hot, limit),
            slowest: slowest(&lists.slow, &before.slow, limit),
            most_calls: largest(&lists.calls, &before.calls, limit),
            longest_fetch: largest(&lists.fetch, &before.fetch, limit),
            failing: largest(&lists.failing, &before.failing, limit),
            errors,
            latency: bounds.zip(counts).zip(&self.examples).map(bucket).collect(),
        }
    }

    fn acknowledged(&mut self, acknowledged: AckedEvent) {
        self.now.slow.add(&acknowledged);
        let seconds = acknowledged.took.as_secs_f64();
        let bucket = LATENCY_BUCKETS.iter().position(|up_to| seconds <= *up_to).unwrap_or(BUCKETS - 1);
        self.now.latency[bucket] += 1;
        let examples = &mut self.examples[bucket];
        if examples.len() == EXAMPLES {
            examples.remove(0);
        }
        examples.push(acknowledged);
    }

    /// Begins a new span when it is time.
    fn turn_over(&mut self, now: Duration) {
        let span = now.as_secs() / SPAN.as_secs();
        if span <= self.span {
            return;
        }
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.clear();
        if span > self.span + 1 {
            self.before.clear();
        }
        self.span = span;
    }
}

impl PeerErrors {
    fn is_of(&self, other: &Self) -> bool {
        (self.peer, self.reason) == (other.peer, other.reason)
    }
}

impl Lists {
    fn new() -> Self {
        Self {
            hot: Sketch::new(PLACES),
            slow: Slowest::new(PLACES),
            calls: Sketch::new(PLACES),
            fetch: Sketch::new(PLACES),
            failing: Sketch::new(PLACES),
            errors: Vec::new(),
            latency: [0; BUCKETS],
        }
    }

    fn clear(&mut self) {
        let Self { hot, slow, calls, fetch, failing, errors, latency } = self;
        hot.clear();
        slow.clear();
        calls.clear();
        fetch.clear();
        failing.clear();
        errors.clear();
        *latency = [0; BUCKETS];
    }

    fn hot(&mut self, key: &Key, count: impl FnOnce(&mut EventCounts)) {
        if let Some(hot) = self.hot.detail(key) {
            count(hot);
        }
    }

    fn fail(&mut self, errors: PeerErrors) {
        match self.errors.iter_mut().find(|known| known.is_of(&errors)) {
            Some(known) => *known = PeerErrors { count: known.count + errors.count, ..errors },
            None => self.errors.push(errors),
        }
    }
}
