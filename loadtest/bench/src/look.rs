//! Looks on while a scenario runs: whether the reporter accounts for every event, and how much memory it takes.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::subject::Running;
use loadtest_sim::reporter::Figures;

/// Between two looks at the memory.
const OFTEN: Duration = Duration::from_secs(1);
/// Violations that are told in full.
const TOLD: usize = 10;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Looks {
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

impl Looks {
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

/// Looks until it is dropped.
pub(super) async fn on(
    running: &Running,
    every: Duration,
    seen: &mut Looks,
) -> anyhow::Result<std::convert::Infallible> {
    let mut tick = interval(every.min(OFTEN));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        seen.take(&running.told().await?.shards);
        seen.peak = seen.peak.max(running.usage()?.resident);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_that_is_not_accounted_for_is_told() {
        let mut seen = Looks::default();
        let figures = Figures { observed: 5, acked: 2, queued: 3, shard: 4, ..Figures::default() };
        seen.take(&[figures]);
        assert_eq!((seen.looks, seen.unaccounted, seen.queued), (1, 0, 3));
        seen.take(&[figures, Figures { observed: 6, overflowed: 2, ..figures }]);
        assert_eq!((seen.looks, seen.unaccounted, seen.overflowed), (3, 1, 2));
        assert!(seen.violations[0].starts_with("shard 4: 1 of "), "{:?}", seen.violations);
    }
}
