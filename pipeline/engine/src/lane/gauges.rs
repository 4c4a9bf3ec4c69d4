//! What a lane tells of itself, counted anew: the simulation compares both after every step.

use pipeline_core::LaneCounts;

use super::Lane;
use super::key_state::State;

impl Lane {
    /// Where the gauges that are kept as sums, and the lines, are not what the lane really holds: both.
    pub(crate) fn miscounted(&self) -> Option<String> {
        let keys = || self.keys.values();
        let number = |count: usize| count as u64;
        let waiting = keys().filter(|key| key.state == State::Waiting && !key.queue.is_empty()).count();
        let held = || keys().flat_map(|key| key.queue.iter().chain(&key.running));
        let loads = || keys().flat_map(|key| key.dirty.iter().chain(&key.asked)).map(|entry| entry.load());
        let held = LaneCounts {
            queued: number(keys().map(|key| key.queue.len()).sum::<usize>() - waiting),
            waiting: number(waiting),
            in_flight: number(keys().filter(|key| key.running.is_some()).count()),
            dirty: number(keys().filter(|key| key.is_dirty()).count()),
            reading: number(keys().filter(|key| key.state == State::Reading).count()),
            incomplete: number(keys().filter(|key| key.refetch.is_some()).count()),
            bytes: held().map(|held| held.event.size() as u64).sum(),
            summaries: loads().map(|load| load.facts).sum(),
            summary_bytes: loads().map(|load| load.bytes).sum(),
            ..self.counts
        };
        let line = |state| keys().filter(|key| key.state == state).count();
        let lines =
            (line(State::Attempt), line(State::Read), keys().filter(|key| key.timer.is_some()).count());
        let told = (self.attempts.len(), self.reads.len(), self.timers.len());
        (held != self.counts || lines != told)
            .then(|| format!("{:?} and lines of {told:?} instead of {held:?} and {lines:?}", self.counts))
    }

    /// Whether nothing is left to do: what is still known of a key waits for the watch to come up with a read.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.keys.values().all(|key| key.state == State::Idle && key.is_ahead())
    }
}
