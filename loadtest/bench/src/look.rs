//! Looks on while a scenario runs: a sample of its curve each second, and whether the reporter accounts for every event.

use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use super::drive::Heard;
use super::measured::Sample;
use super::subject::Running;
use super::track::Counts;
use loadtest_sim::Simulation;
use loadtest_sim::reporter::{Figures, Usage};

/// Between two samples of the curve.
const SAMPLE: Duration = Duration::from_secs(1);
/// Violations that are told in full.
const TOLD: usize = 10;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct ObjectIndex {
    /// The curve.
    pub(super) curve: Vec<Sample>,
    /// Looks at the figures of one shard.
    pub(super) looks: u64,
    /// Of those, the ones with an event missing or counted twice.
    pub(super) unaccounted: u64,
    /// The first of them.
    pub(super) violations: Vec<String>,
    /// The most events that waited in one shard's queue.
    pub(super) queued: u64,
    /// Events that found a queue full.
    pub(super) overflowed: u64,
    /// The most memory that was resident at once, in bytes.
    pub(super) peak: u64,
}

impl ObjectIndex {
    /// Takes the shards' figures of one moment.
    pub(super) fn take(&mut self, shards: &[Figures]) {
        for shard in shards {
            self.looks += 1;
            self.queued = self.queued.max(shard.queued);
            let balance = shard.balance();
            if balance != 0 {
                self.unaccounted += 1;
                if self.violations.len() < TOLD {
                    self.violations.push(format!("shard {}: {balance} of {shard:?}", shard.shard));
                }
            }
        }
        self.overflowed = shards.iter().map(|shard| shard.overflowed).sum();
    }
}

/// The counters at the sample before.
struct Before {
    at: Instant,
    counts: Counts,
    calls: u64,
    usage: Usage,
}

/// Looks until it is dropped.
pub(super) async fn on(
    simulation: &Simulation,
    running: &Running,
    heard: &Heard,
    every: Duration,
    seen: &mut ObjectIndex,
) -> anyhow::Result<std::convert::Infallible> {
    let began = Instant::now();
    let mut tick = interval(every.min(SAMPLE));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let now = || -> anyhow::Result<Before> {
        Ok(Before {
            at: Instant::now(),
            counts: heard.counts(),
            calls: simulation.argocd.calls(),
            usage: running.usage()?,
        })
    };
    let mut before = now()?;
    loop {
        tick.tick().await;
        let told = running.told().await?;
        if let Some(told) = &told {
            seen.take(&told.shards);
        }
        if before.at.elapsed() < SAMPLE.mul_f64(0.95) {
            continue;
        }
        let own = now()?;
        let seconds = (own.at - before.at).as_secs_f64();
        let known = own.counts.known() - before.counts.known();
        let whole = own.counts.whole - before.counts.whole;
        let moved = known + whole;
        seen.peak = seen.peak.max(own.usage.resident);
        seen.curve.push(Sample {
            seconds: (own.at - began).as_secs_f64(),
            changes: moved as f64 / seconds,
            queue: told.map(|told| told.held()),
            resident: own.usage.resident,
            cores: (own.usage.cpu - before.usage.cpu).max(0.0) / seconds,
            calls: (moved > 0).then(|| (own.calls - before.calls) as f64 / moved as f64),
            p99: heard.take_recent(),
        });
        before = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_that_is_not_accounted_for_is_told() {
        let mut seen = ObjectIndex::default();
        let figures = Figures { observed: 5, acked: 2, queued: 3, shard: 4, ..Figures::default() };
        seen.take(&[figures]);
        assert_eq!((seen.looks, seen.unaccounted, seen.queued), (1, 0, 3));
        seen.take(&[figures, Figures { observed: 6, overflowed: 2, ..figures }]);
        assert_eq!((seen.looks, seen.unaccounted, seen.overflowed), (3, 1, 2));
        assert!(seen.violations[0].starts_with("shard 4: 1 of "), "{:?}", seen.violations);
    }
}
